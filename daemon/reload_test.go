package daemon

import (
	"crypto/tls"
	"errors"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/executord/executord/daemon/events"
	"github.com/executord/executord/daemon/lifecycle"
	"github.com/executord/executord/ipc/client"
	"github.com/executord/executord/ipc/executor"
	"github.com/executord/executord/ipc/protocol"
	"github.com/executord/executord/ipc/testcert"
)

const (
	secretA = "a0123456789abcdef"
	secretB = "b0123456789abcdef"
)

// write makes or replaces a file that only its owner may read.
func write(t *testing.T, file, text string) {
	t.Helper()
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

// tcp is the address of the first listener on TCP.
func (s *service) tcp() string {
	s.t.Helper()
	for _, a := range s.Addresses() {
		if tcp, is := a.(*net.TCPAddr); is {
			return "tcp://" + tcp.String()
		}
	}
	s.t.Fatal("there is no TCP listener")
	return ""
}

// works tells whether c can run a program, and how not.
func works(t *testing.T, c executor.Executor) error {
	t.Helper()
	o, err := c.Execute(t.Context(), executor.Request{Execute: protocol.Execute{Code: "1"}})
	if err == nil {
		err = o.Err()
	}
	return err
}

func TestReloadRotatesTokens(t *testing.T) {
	tokens := filepath.Join(t.TempDir(), "tokens")
	write(t, tokens, "app "+secretA+"\n")
	s := start(t, []string{"--listen=tcp://127.0.0.1:0", "--token-file=" + tokens})
	dial := func(secret string) (*client.Client, error) {
		c, err := client.Dial(t.Context(), s.tcp(), client.WithToken(secret))
		if err == nil {
			t.Cleanup(func() { _ = c.Close() })
		}
		return c, err
	}
	old, err := dial(secretA)
	if err != nil {
		t.Fatal(err)
	}
	write(t, tokens, "app "+secretA+"\napp "+secretB+"\n")
	if err := s.Reload(""); err != nil {
		t.Fatal(err)
	}
	next, err := dial(secretB)
	if err != nil {
		t.Fatal(err)
	}
	if err := works(t, old); err != nil {
		t.Errorf("the old secret, which is still there: %v", err)
	}
	// A file that cannot be used changes nothing, and is told.
	for _, bad := range []string{"app short\n", "app\n", ""} {
		write(t, tokens, bad)
		err := s.Reload("")
		if err == nil || s.State() != lifecycle.Ready {
			t.Fatalf("%q: %v", bad, err)
		}
		if last := s.LastReload(); last == nil || last.Err == nil || last.Err.Error() != err.Error() || last.Time.IsZero() {
			t.Errorf("the last reload is %+v", last)
		}
		if !slices.Contains(s.path(), "reload_ended>ready") || strings.Contains(s.log.String(), secretA) {
			t.Error("the reload did not end, or the log has a secret")
		}
		for _, secret := range []string{secretA, secretB} {
			if _, err := dial(secret); err != nil {
				t.Errorf("after %q: %v", bad, err)
			}
		}
	}
	write(t, tokens, "app "+secretB+"\n")
	if err := s.Reload(""); err != nil {
		t.Fatal(err)
	}
	if _, err := dial(secretA); !errors.Is(err, protocol.Unauthorized) {
		t.Errorf("the secret that was removed: %v", err)
	}
	if err := works(t, old); err == nil {
		t.Error("its session goes on")
	}
	if err := works(t, next); err != nil {
		t.Errorf("the session of the other: %v", err)
	}
}

// Over TLS with certificates of both ends, which a reload changes.
func TestReloadRotatesCertificates(t *testing.T) {
	dir := t.TempDir()
	cert, key, callers := filepath.Join(dir, "cert.pem"), filepath.Join(dir, "key.pem"), filepath.Join(dir, "callers.pem")
	old, next := testcert.New(t), testcert.New(t)
	lay := func(ca *testcert.CA) {
		t.Helper()
		pair := ca.Server("executord.example")
		write(t, cert, string(pair.Cert))
		write(t, key, string(pair.Key))
		write(t, callers, string(ca.PEM()))
	}
	lay(old)
	s := start(t, []string{"--listen=tcp://127.0.0.1:0", "--tls-cert=" + cert, "--tls-key=" + key, "--tls-client-ca=" + callers})
	dial := func(trusted *testcert.CA, own ...testcert.Pair) (*client.Client, error) {
		config := &tls.Config{RootCAs: trusted.Pool()}
		for _, p := range own {
			config.Certificates = append(config.Certificates, p.TLS(t))
		}
		c, err := client.Dial(t.Context(), strings.Replace(s.tcp(), "tcp://", "wss://", 1), client.WithTLS(config))
		if err == nil {
			t.Cleanup(func() { _ = c.Close() })
		}
		return c, err
	}
	if _, err := dial(old); !errors.Is(err, protocol.Unauthorized) {
		t.Errorf("without a certificate: %v", err)
	}
	c, err := dial(old, old.Client("app"))
	if err != nil {
		t.Fatal(err)
	}
	if err := works(t, c); err != nil {
		t.Error(err)
	}
	if _, err := client.Dial(t.Context(), s.tcp()); err == nil {
		t.Error("TCP is served without TLS")
	}
	write(t, key, "no key")
	if err := s.Reload(""); err == nil || works(t, c) != nil {
		t.Errorf("a bad key: %v", err)
	}
	lay(next)
	if err := s.Reload(""); err != nil {
		t.Fatal(err)
	}
	if err := works(t, c); err == nil {
		t.Error("a session goes on whose certificate nobody trusts any more")
	}
	if _, err := dial(old, old.Client("app")); err == nil {
		t.Error("the old certificate is still shown")
	}
	if c, err = dial(next, next.Client("app")); err != nil {
		t.Fatal(err)
	}
	if err := works(t, c); err != nil {
		t.Error(err)
	}
}

// Settings that can change do, what needs a restart is named, and one that is wrong keeps all of them.
func TestReloadOfSettings(t *testing.T) {
	file := filepath.Join(t.TempDir(), "executord.env")
	write(t, file, "EXECUTORD_MAX_SESSION_EXECUTIONS=5\nEXECUTORD_MAX_MESSAGE=8\n")
	s := start(t, []string{"--settings-file=" + file})
	c := s.client()
	write(t, file, "EXECUTORD_MAX_SESSION_EXECUTIONS=1\nEXECUTORD_MAX_MESSAGE=9\nEXECUTORD_DRAIN_GRACE=3s\n")
	if err := s.Reload(""); err != nil {
		t.Fatal(err)
	}
	last := s.LastReload()
	if !slices.Contains(last.Changes.Applied, "max-session-executions") || !slices.Contains(last.Changes.Applied, "drain-grace") ||
		!slices.Equal(last.Changes.NeedRestart, []string{"max-message"}) {
		t.Errorf("changes are %+v", last.Changes)
	}
	running := hold(c)
	<-running.running
	if err := works(t, c); !errors.Is(err, protocol.SessionLimit) {
		t.Errorf("over the new limit: %v", err)
	}
	write(t, file, "EXECUTORD_MAX_SESSION_EXECUTIONS=7\nEXECUTORD_MAX_SESSIONS=0\n")
	if err := s.Reload(""); err == nil || !strings.Contains(err.Error(), "--max-sessions") {
		t.Errorf("a bad value: %v", err)
	}
	if err := works(t, c); !errors.Is(err, protocol.SessionLimit) {
		t.Errorf("half of a bad file was taken: %v", err)
	}
	close(running.release)
	<-running.done
	if running.err != nil {
		t.Error(running.err)
	}
}

// What the pool decides changes under the feet of an open session.
func TestReloadChangesThePool(t *testing.T) {
	target := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "reached") }))
	t.Cleanup(target.Close)
	file := filepath.Join(t.TempDir(), "executord.env")
	const before = "EXECUTORD_DEFAULT_CPU=3s\nEXECUTORD_MAX_HEAP=200\n"
	write(t, file, before)
	s := start(t, []string{"--settings-file=" + file})
	c := s.client()
	fetch := executor.Request{Execute: protocol.Execute{
		Code: `return (await fetch("` + target.URL + `")).text()`, Network: protocol.NetworkDirect, Limits: protocol.Limits{HeapMiB: 1000},
	}}
	check := func(when string, reached bool, cpuMs, heapMiB int64) {
		t.Helper()
		r := fetch
		if !reached {
			if _, err := c.Execute(t.Context(), r); !errors.Is(err, protocol.InvalidParams) {
				t.Errorf("%s the network is allowed: %v", when, err)
			}
			r.Code, r.Network = "'reached'", protocol.NetworkNone
		}
		o, err := c.Execute(t.Context(), r)
		if err != nil || string(o.Value) != `"reached"` || o.Stats.Limits.CPUMs != cpuMs || o.Stats.Limits.HeapMiB != heapMiB {
			t.Errorf("%s: %+v, %v", when, o, err)
		}
	}
	reload := func(text string) {
		t.Helper()
		write(t, file, text)
		if err := s.Reload(""); err != nil {
			t.Fatal(err)
		}
	}
	check("at first", false, 3000, 200)
	reload("EXECUTORD_DEFAULT_CPU=2s\nEXECUTORD_MAX_HEAP=300\nEXECUTORD_QUEUE_PER_CALLER=0\n" +
		"EXECUTORD_EGRESS_ALLOW=" + target.URL + "\nEXECUTORD_EGRESS_ALLOW_PRIVATE=127.0.0.0/8\n")
	check("after a reload", true, 2000, 300)
	running := hold(c)
	<-running.running
	if err := works(t, c); !errors.Is(err, protocol.Overloaded) {
		t.Errorf("a second of the same caller: %v", err)
	}
	close(running.release)
	<-running.done
	reload(before)
	check("after another", false, 3000, 200)
}

func TestReloadChangesTheLevelOfTheLog(t *testing.T) {
	file := filepath.Join(t.TempDir(), "executord.env")
	write(t, file, "EXECUTORD_LOG_LEVEL=warn")
	level := &slog.LevelVar{}
	s := start(t, []string{"--settings-file=" + file}, WithLevel(level))
	if level.Level() != slog.LevelWarn {
		t.Errorf("the level is %s", level.Level())
	}
	write(t, file, "EXECUTORD_LOG_LEVEL=debug")
	if err := s.Reload(""); err != nil || level.Level() != slog.LevelDebug {
		t.Errorf("the level is %s, %v", level.Level(), err)
	}
}

// During the start a reload is put off, and during a stop refused.
func TestReloadAtOtherTimes(t *testing.T) {
	tokens := filepath.Join(t.TempDir(), "tokens")
	write(t, tokens, "app "+secretA+"\n")
	s := create(t, []string{"--token-file=" + tokens})
	write(t, tokens, "nothing\n")
	if err := s.Reload(""); err != nil || s.LastReload() != nil {
		t.Errorf("before the start: %v", err)
	}
	s.run()
	ctx, reloaded := s.machine.Until(t.Context(), func(lifecycle.State) bool { return s.LastReload() != nil })
	defer reloaded()
	<-ctx.Done()
	if s.LastReload().Err == nil {
		t.Error("what was put off was not done")
	}
	running := hold(s.client())
	<-running.running
	s.Stop()
	if err := s.Reload(""); err == nil || !strings.Contains(err.Error(), "while the service is") {
		t.Errorf("while it stops: %v", err)
	}
	close(running.release)
	<-running.done
}

// What a reload cannot do it leaves.
func TestReloadKeepsOpenAddressesProtected(t *testing.T) {
	dir := t.TempDir()
	file, tokens := filepath.Join(dir, "executord.env"), filepath.Join(dir, "tokens")
	write(t, tokens, "app "+secretA+"\n")
	write(t, file, "EXECUTORD_TOKEN_FILE="+tokens+"\n")
	s := start(t, []string{"--settings-file=" + file, "--listen=tcp://0.0.0.0:0"})
	if !strings.Contains(s.log.String(), "not encrypted") {
		t.Error("nobody was told that TCP to other machines is not encrypted")
	}
	write(t, file, "")
	if err := s.Reload(""); err == nil || !strings.Contains(err.Error(), "loopback") {
		t.Errorf("got %v", err)
	}
	address := strings.Replace(s.tcp(), "[::]", "127.0.0.1", 1)
	if _, err := client.Dial(t.Context(), strings.Replace(address, "0.0.0.0", "127.0.0.1", 1)); !errors.Is(err, protocol.Unauthorized) {
		t.Errorf("without a token: %v", err)
	}
	var failed bool
	news, _, err := s.Events().Subscribe(0).Next(t.Context())
	for _, e := range news {
		failed = failed || e.Kind == events.AuthFailed && e.Reason == "no_token" && e.Identity == "addr:127.0.0.1"
	}
	if !failed {
		t.Errorf("the refusal is no event: %+v, %v", news, err)
	}
}
