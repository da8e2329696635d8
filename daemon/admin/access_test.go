package admin

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"

	"github.com/executord/executord/daemon/events"
	"github.com/executord/executord/daemon/peercred"
)

func TestWhoMayDoWhat(t *testing.T) {
	a := Access{Groups: []uint32{500}, Readers: []uint32{42}}
	for _, c := range []struct {
		name string
		peer peercred.Credentials
		want Right
	}{
		{"root", peercred.Credentials{UID: 0}, Operate},
		{"the service's own user", peercred.Credentials{UID: uint32(os.Getuid())}, Operate},
		{"a member of the group", peercred.Credentials{UID: 1000, Groups: []uint32{1000, 500}}, Operate},
		{"a reader", peercred.Credentials{UID: 42, Groups: []uint32{42}}, Read},
		{"a reader in the group", peercred.Credentials{UID: 42, Groups: []uint32{500}}, Read},
		{"somebody else", peercred.Credentials{UID: 1000, Groups: []uint32{1000, 0}}, ""},
	} {
		if got := a.judge(c.peer); got != c.want {
			t.Errorf("%s may %q, want %q", c.name, got, c.want)
		}
	}
	if got := (Access{}).judge(peercred.Credentials{UID: 1000, Groups: []uint32{0}}); got != "" {
		t.Errorf("without a group, the group root may %q", got)
	}
}

// runProbe is what another user's process does: it looks, and tries to change something, and prints the statuses.
func runProbe(socket string) int {
	c, err := NewClient("unix:" + socket)
	if err != nil {
		fmt.Println(err)
		return 1
	}
	_, looked := c.Status(context.Background())
	_, did := c.SetLogLevel(context.Background(), LogLevel{"error"})
	fmt.Printf("look: %v\ndo: %v\n", looked, did)
	return 0
}

// probe asks as another user, who claims to be root wherever he can.
func (b *bench) probe(credential syscall.Credential) string {
	b.t.Helper()
	self, err := os.Open("/proc/self/exe") // which he may not reach by its path
	if err != nil {
		b.t.Fatal(err)
	}
	defer self.Close()
	cmd := exec.Command("/proc/self/fd/3")
	cmd.ExtraFiles = []*os.File{self}
	cmd.Env = []string{"EXECUTORD_TEST_PROBE=" + b.socket, "USER=root", "SUDO_USER=root"}
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &credential}
	cmd.Dir = "/"
	out, err := cmd.CombinedOutput()
	if err != nil {
		b.t.Fatalf("%v\n%s", err, out)
	}
	return string(out)
}

// U3, U5: what the kernel says of the peer decides, also where the file's mode would let everybody connect.
func TestU5OtherUsersAreRefused(t *testing.T) {
	if os.Getuid() != 0 {
		t.Skip("needs root, to be other users")
	}
	b := start(t, func(_ *bench, c *Config) { c.Access = Access{Groups: []uint32{500}, Readers: []uint32{4242}} })
	for _, c := range []struct {
		name       string
		credential syscall.Credential
		look, do   string
	}{
		{"somebody", syscall.Credential{Uid: 4343, Gid: 4343}, "unauthorized: uid 4343 may not", "unauthorized: uid 4343 may not"},
		{"a reader", syscall.Credential{Uid: 4242, Gid: 4242}, "<nil>", "unauthorized: uid 4242 may look, and no more"},
		{"a member", syscall.Credential{Uid: 4343, Gid: 4343, Groups: []uint32{500}}, "<nil>", "<nil>"},
	} {
		t.Run(c.name, func(t *testing.T) {
			out := b.probe(c.credential)
			if !strings.Contains(out, "look: "+c.look) || !strings.Contains(out, "do: "+c.do) {
				t.Error(out)
			}
		})
	}
	refused := 0
	for _, e := range b.kept() {
		if e.Kind == events.AuthFailed && strings.HasPrefix(e.Who, "uid 4") && e.Reason != "" {
			refused++
		}
	}
	if refused != 3 {
		t.Errorf("%d refusals are told", refused)
	}
}

// An http.Server that does not tell who is there gets nothing.
func TestNoPeerNoRights(t *testing.T) {
	b := start(t, nil)
	w := &recorder{}
	r, err := http.NewRequest(http.MethodGet, "http://localhost/v1/status", nil)
	if err != nil {
		t.Fatal(err)
	}
	b.app.mux.ServeHTTP(w, r)
	if w.status != http.StatusForbidden {
		t.Errorf("status %d", w.status)
	}
}

type recorder struct {
	status int
	header http.Header
}

func (r *recorder) Header() http.Header {
	if r.header == nil {
		r.header = http.Header{}
	}
	return r.header
}
func (r *recorder) Write(p []byte) (int, error) { return len(p), nil }
func (r *recorder) WriteHeader(status int)      { r.status = status }
