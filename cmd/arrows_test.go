package cmd

import (
	"os/exec"
	"strings"
	"testing"
)

const module = "github.com/executord/executord/"

// imports gives the packages that pkg needs, directly or not, without those of its tests.
func imports(t *testing.T, pattern string) map[string][]string {
	t.Helper()
	out, err := exec.Command("go", "list", "-f", `{{.ImportPath}} {{join .Deps " "}}`, module+pattern).Output()
	if err != nil {
		t.Fatal(err)
	}
	deps := map[string][]string{}
	for line := range strings.Lines(string(out)) {
		f := strings.Fields(line)
		deps[strings.TrimPrefix(f[0], module)] = f[1:]
	}
	if len(deps) == 0 {
		t.Fatalf("no package matches %s", pattern)
	}
	return deps
}

func TestImportArrows(t *testing.T) {
	for _, c := range []struct{ from, never, why string }{
		{"ipc/...", module + "daemon", "ipc is below the service"},
		{"ipc/...", module + "sandbox", "ipc is below the sandbox"},
		{"ipc/...", module + "cmd", "mains are on top"},
		{"daemon/...", module + "sandbox", "the two meet only in ipc"},
		{"daemon/...", module + "cmd", "mains are on top"},
		{"sandbox/...", module + "daemon", "the two meet only in ipc"},
		{"sandbox/...", module + "cmd", "mains are on top"},
		{"daemon/...", "github.com/tommie/v8go", "only the worker links V8"},
		{"ipc/...", "github.com/tommie/v8go", "only the worker links V8"},
		{"cmd/executord", "github.com/tommie/v8go", "only the worker links V8"},
		{"cmd/executorctl", "github.com/tommie/v8go", "only the worker links V8"},
		{"cmd/executord", "runtime/cgo", "the service is pure Go"},
		{"cmd/executorctl", "runtime/cgo", "the service is pure Go"},
		{"ipc/...", "github.com/modelcontextprotocol/go-sdk", "only executorctl speaks MCP"},
		{"daemon/...", "github.com/modelcontextprotocol/go-sdk", "only executorctl speaks MCP"},
		{"cmd/executord", "github.com/modelcontextprotocol/go-sdk", "only executorctl speaks MCP"},
		{"cmd/executor-worker", "github.com/modelcontextprotocol/go-sdk", "only executorctl speaks MCP"},
		{"cmd/executor-worker", "github.com/gorilla/websocket", "a worker has no network"},
	} {
		t.Run(c.from+" never "+strings.TrimPrefix(c.never, module), func(t *testing.T) {
			t.Setenv("CGO_ENABLED", "1")
			if c.never == "runtime/cgo" {
				t.Setenv("CGO_ENABLED", "0")
			}
			for pkg, deps := range imports(t, c.from) {
				for _, d := range deps {
					if d == c.never || strings.HasPrefix(d, c.never+"/") {
						t.Errorf("%s needs %s: %s", pkg, d, c.why)
					}
				}
			}
		})
	}
}

func TestProtocolImportsOnlyTheStandardLibrary(t *testing.T) {
	for _, d := range imports(t, "ipc/protocol")["ipc/protocol"] {
		if strings.Contains(strings.Split(d, "/")[0], ".") {
			t.Errorf("ipc/protocol needs %s", d)
		}
	}
}
