package cmd

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/executord/executord/ipc/client"
	"github.com/executord/executord/ipc/testbin"
)

func TestMain(m *testing.M) { os.Exit(testbin.Main(m)) }

// TestExamplesRun runs docs/examples as their users do, with a real service.
func TestExamplesRun(t *testing.T) {
	socket := filepath.Join(t.TempDir(), "s")
	service := exec.Command(testbin.Executord(t), "--listen", "unix:"+socket, "--worker-binary", testbin.Worker(t), "--workers", "1")
	if err := service.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = service.Process.Signal(syscall.SIGTERM)
		_ = service.Wait()
	})
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	for {
		c, err := client.Dial(ctx, "unix:"+socket)
		if err == nil {
			_ = c.Close()
			break
		}
		select {
		case <-ctx.Done():
			t.Fatal(err)
		case <-time.After(20 * time.Millisecond): // another process begins to listen
		}
	}
	for _, tc := range []struct {
		name    string
		command []string
		want    string
	}{
		{"go", []string{"go", "run", "./docs/examples/go", "unix:" + socket}, `7 ["asked for 2"] ""`},
		{"mcp", []string{"go", "run", "./docs/examples/mcp", testbin.Executorctl(t), "--address", "unix:" + socket}, "buy tea, buy milk"},
		{"curl", []string{"docs/examples/curl.sh", socket}, `"value":[1,4,9]`},
	} {
		t.Run(tc.name, func(t *testing.T) {
			if tc.name == "curl" {
				if _, err := exec.LookPath("curl"); err != nil {
					t.Skip("there is no curl here")
				}
			}
			c := exec.Command(tc.command[0], tc.command[1:]...)
			c.Dir = ".."
			out, err := c.CombinedOutput()
			if err != nil || !strings.Contains(string(out), tc.want) {
				t.Errorf("%v: %s\nwant %s in it", err, out, tc.want)
			}
		})
	}
}
