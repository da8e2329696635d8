package settings

import (
	"os/user"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/executord/executord/ipc/testcert"
)

func TestCertificateFiles(t *testing.T) {
	ca := testcert.New(t)
	pair := ca.Server("executord.example")
	cert, key := tokenFile(t, string(pair.Cert), 0o644), tokenFile(t, string(pair.Key), 0o640)
	got, err := ReadCertificate(cert, key)
	if err != nil || got.Leaf.DNSNames[0] != "executord.example" {
		t.Errorf("got %v, %v", got, err)
	}
	pool, err := ReadCAs(tokenFile(t, string(ca.PEM())+string(testcert.New(t).PEM()), 0o644))
	if err != nil || pool == nil {
		t.Errorf("got %v, %v", pool, err)
	}
	if c, err := ReadCertificate("", ""); c != nil || err != nil {
		t.Errorf("no certificate: %v, %v", c, err)
	}
	if p, err := ReadCAs(""); p != nil || err != nil {
		t.Errorf("no CA: %v, %v", p, err)
	}
	// With a CA for callers, addresses beyond this machine may be listened on.
	_, err = load("--listen=tcp://0.0.0.0:0", "--tls-cert="+cert, "--tls-key="+key, "--tls-client-ca="+tokenFile(t, string(ca.PEM()), 0o644))
	if err != nil {
		t.Error(err)
	}
	if _, err = load("--listen=tcp://0.0.0.0:0", "--tls-cert="+cert, "--tls-key="+key); err == nil || !strings.Contains(err.Error(), "loopback") {
		t.Errorf("encrypted, but open to all: %v", err)
	}
}

// A pipe in the place of a file is refused, and keeps nobody waiting.
func TestSecretsAreNotReadFromPipes(t *testing.T) {
	pipe := filepath.Join(t.TempDir(), "pipe")
	if err := syscall.Mkfifo(pipe, 0o600); err != nil {
		t.Fatal(err)
	}
	done := make(chan error, 1)
	go func() { _, err := ReadTokens(pipe); done <- err }()
	select {
	case err := <-done:
		if err == nil || !strings.Contains(err.Error(), "no regular file") {
			t.Errorf("got %v", err)
		}
	case <-time.After(10 * time.Second):
		t.Error("waits for somebody who writes")
	}
}

func TestGroups(t *testing.T) {
	own, err := user.LookupGroupId("0")
	if err != nil {
		t.Skip("there is no group 0 here")
	}
	if ids, err := GroupIDs([]string{own.Name, "4242"}); err != nil || !slices.Equal(ids, []uint32{0, 4242}) {
		t.Errorf("got %v, %v", ids, err)
	}
	l, err := load("--allow-group=" + own.Name)
	if err != nil || !slices.Equal(l.Settings().AllowGroup, []string{own.Name}) {
		t.Errorf("got %v, %v", l.Settings().AllowGroup, err)
	}
	_, exists := user.LookupGroup(callersGroup)
	l, err = load()
	if err != nil || len(l.Settings().AllowGroup) != map[bool]int{true: 1, false: 0}[exists == nil] {
		t.Errorf("by default: %v, %v", l.Settings().AllowGroup, err)
	}
}

func TestLimitsOfACallerFollowThoseOfAll(t *testing.T) {
	l, err := load("--max-sessions=3", "--max-session-executions=5")
	if s := l.Settings(); err != nil || s.MaxCallerSessions != 3 || s.MaxCallerExecutions != 15 {
		t.Errorf("%d sessions, %d executions, %v", s.MaxCallerSessions, s.MaxCallerExecutions, err)
	}
	l, err = load("--max-sessions=1048576", "--max-session-executions=1048576")
	if s := l.Settings(); err != nil || s.MaxCallerExecutions != 1048576 {
		t.Errorf("%d executions, %v", s.MaxCallerExecutions, err)
	}
}
