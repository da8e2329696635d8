package main

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/gorilla/websocket"

	"github.com/executord/executord/ipc/client"
	"github.com/executord/executord/ipc/executor"
	"github.com/executord/executord/ipc/protocol"
	"github.com/executord/executord/ipc/testbin"
)

func TestMain(m *testing.M) { os.Exit(testbin.Main(m)) }

// process is a running executord.
type process struct {
	*exec.Cmd
	socket string
	log    *bufio.Scanner
}

// start runs the service until it listens.
func start(t *testing.T, binary, socket string, args ...string) *process {
	t.Helper()
	p := launch(t, binary, socket, args...)
	p.awaitLog(t, "msg=listening")
	return p
}

// launch starts the service and does not wait for it.
func launch(t *testing.T, binary, socket string, args ...string) *process {
	t.Helper()
	args = append([]string{"--listen", "unix:" + socket, "--worker-binary", testbin.Worker(t), "--workers", "1"}, args...)
	p := &process{Cmd: exec.Command(binary, args...), socket: socket}
	out, err := p.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := p.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = p.Process.Kill(); _ = p.Wait() })
	p.log = bufio.NewScanner(out)
	return p
}

// stop sends a signal and returns the exit status.
func (p *process) stop(t *testing.T, sig os.Signal) int {
	t.Helper()
	if err := p.Process.Signal(sig); err != nil {
		t.Fatal(err)
	}
	for p.log.Scan() {
		t.Log(p.log.Text())
	}
	_ = p.Wait()
	return p.ProcessState.ExitCode()
}

func dial(t *testing.T, socket string) *client.Client {
	t.Helper()
	c, err := client.Dial(t.Context(), "unix:"+socket)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	return c
}

func TestServeAndStop(t *testing.T) {
	path := testbin.Executord(t)
	for _, sig := range []syscall.Signal{syscall.SIGTERM, syscall.SIGINT} {
		t.Run(sig.String(), func(t *testing.T) {
			socket := filepath.Join(t.TempDir(), "s")
			p := start(t, path, socket, "--drain-grace", "30s")
			c := dial(t, socket)
			running := make(chan struct{})
			ended := make(chan error, 1)
			go func() {
				r := executor.Request{Execute: protocol.Execute{Code: "await new Promise(r => setTimeout(r, 500)); 'finished'"}}
				r.OnState = func(s protocol.State) {
					if s.State == protocol.StateRunning {
						close(running)
					}
				}
				o, err := c.Execute(context.Background(), r)
				if err == nil && string(o.Value) != `"finished"` {
					err = o.Err()
				}
				ended <- err
			}()
			<-running
			if status := p.stop(t, sig); status != 0 {
				t.Errorf("exit status %d", status)
			}
			if err := <-ended; err != nil {
				t.Errorf("the running program ended with %v", err)
			}
			if _, err := os.Lstat(socket); !errors.Is(err, fs.ErrNotExist) {
				t.Errorf("the socket is still there: %v", err)
			}
		})
	}
}

func TestDrainIsBounded(t *testing.T) {
	socket := filepath.Join(t.TempDir(), "s")
	p := start(t, testbin.Executord(t), socket, "--drain-grace", "200ms")
	c := dial(t, socket)
	running, ended := make(chan struct{}), make(chan error, 1)
	go func() {
		r := executor.Request{Execute: protocol.Execute{Code: "for (;;);"}}
		r.OnState = func(s protocol.State) {
			if s.State == protocol.StateRunning {
				close(running)
			}
		}
		o, err := c.Execute(context.Background(), r)
		if err == nil {
			err = o.Err()
		}
		ended <- err
	}()
	<-running
	began := time.Now()
	if status := p.stop(t, syscall.SIGTERM); status != 0 {
		t.Errorf("exit status %d", status)
	}
	if took := time.Since(began); took > 10*time.Second {
		t.Errorf("stopping took %v", took)
	}
	if err := <-ended; !errors.Is(err, protocol.Cancelled) {
		t.Errorf("the endless program ended with %v", err)
	}
}

// awaitLog reads the log until a line has all parts.
func (p *process) awaitLog(t *testing.T, parts ...string) {
	t.Helper()
	for p.log.Scan() {
		t.Log(p.log.Text())
		missing := func(part string) bool { return !strings.Contains(p.log.Text(), part) }
		if !slices.ContainsFunc(parts, missing) {
			return
		}
	}
	t.Fatalf("the log has no line with %q", parts)
}

func (p *process) signal(t *testing.T, sig os.Signal) {
	t.Helper()
	if err := p.Process.Signal(sig); err != nil {
		t.Fatal(err)
	}
}

// unread is a running program whose outcome its client does not read: the service cannot get rid of it for a while.
func unread(t *testing.T, socket string) {
	t.Helper()
	d := websocket.Dialer{
		Subprotocols: []string{protocol.Subprotocol},
		NetDial:      func(string, string) (net.Conn, error) { return net.Dial("unix", socket) },
	}
	ws, _, err := d.Dial("ws://localhost/v1/session", nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = ws.Close() })
	code := `for (let i = 0; i < 200; i++) console.log("x".repeat(5000)); for (;;);`
	for _, text := range []string{
		`{"jsonrpc":"2.0","id":0,"method":"session.open","params":{"client":{"name":"test"}}}`,
		fmt.Sprintf(`{"jsonrpc":"2.0","id":1,"method":"execute","params":{"code":%q,"limits":{"logBytes":4000000,"cpuMs":60000,"wallMs":60000}}}`, code),
	} {
		if err := ws.WriteMessage(websocket.TextMessage, []byte(text)); err != nil {
			t.Fatal(err)
		}
	}
	for {
		_, text, err := ws.ReadMessage()
		if err != nil {
			t.Fatal(err)
		}
		if bytes.Contains(text, []byte(`"state":"running"`)) {
			return
		}
	}
}

// The second signal makes the grace short, and the end is in order; the third ends it at once, with a status of its own.
func TestFurtherSignals(t *testing.T) {
	path := testbin.Executord(t)
	long := []string{"--drain-delay", "10m", "--drain-grace", "1h", "--stop-timeout", "2h"}
	t.Run("second", func(t *testing.T) {
		socket := filepath.Join(t.TempDir(), "s")
		p := start(t, path, socket, long...)
		unread(t, socket)
		p.signal(t, syscall.SIGTERM)
		p.awaitLog(t, "event=stop", "state=drain_delay")
		if status := p.stop(t, syscall.SIGINT); status != 0 {
			t.Errorf("exit status %d", status)
		}
	})
	t.Run("third", func(t *testing.T) {
		socket := filepath.Join(t.TempDir(), "s")
		p := start(t, path, socket, long...)
		unread(t, socket)
		p.signal(t, syscall.SIGTERM)
		p.awaitLog(t, "event=stop")
		p.signal(t, syscall.SIGTERM)
		p.awaitLog(t, "event=hurry")
		if status := p.stop(t, syscall.SIGTERM); status != exitCutShort {
			t.Errorf("exit status %d", status)
		}
		if _, err := os.Lstat(socket); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("the socket is still there: %v", err)
		}
	})
}

// Who keeps the end from coming does so for as long as the stop timeout says, which has the status of an end cut short.
func TestStopTimeout(t *testing.T) {
	socket := filepath.Join(t.TempDir(), "s")
	p := start(t, testbin.Executord(t), socket, "--drain-grace", "900ms", "--stop-timeout", "1s")
	unread(t, socket)
	if status := p.stop(t, syscall.SIGTERM); status != exitCutShort {
		t.Errorf("exit status %d", status)
	}
}

// A reload by signal never ends the service, whatever it finds, and not during the start either.
func TestReloadBySignal(t *testing.T) {
	dir := t.TempDir()
	socket, tokens := filepath.Join(dir, "s"), filepath.Join(dir, "tokens")
	write := func(text string) {
		t.Helper()
		if err := os.WriteFile(tokens, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write("app 0123456789abcdef\n")
	p := launch(t, testbin.Executord(t), socket, "--token-file", tokens)
	p.awaitLog(t, `msg="starting workers"`)
	p.signal(t, syscall.SIGHUP)
	p.awaitLog(t, "event=opened")
	p.awaitLog(t, "level=INFO", "event=reload_ended")
	write("app\n")
	p.signal(t, syscall.SIGHUP)
	p.awaitLog(t, "level=ERROR", "event=reload_ended", "token-file")
	write("app fedcba9876543210\n")
	p.signal(t, syscall.SIGHUP)
	p.awaitLog(t, "level=INFO", "event=reload_ended")
	if c, err := net.Dial("unix", socket); err != nil {
		t.Error(err)
	} else {
		_ = c.Close()
	}
	if status := p.stop(t, syscall.SIGTERM); status != 0 {
		t.Errorf("exit status %d", status)
	}
}

// A stop under load: whatever was accepted has its one outcome. What ran finished, though its tools answered only after
// the stop had begun; what waited was turned away as draining; nothing was lost. The end is within the grace.
func TestStopUnderLoad(t *testing.T) {
	const sessions, each = 8, 12
	socket := filepath.Join(t.TempDir(), "s")
	p := start(t, testbin.Executord(t), socket, "--workers", "4", "--queue", "200", "--drain-grace", "60s")
	stopping := make(chan struct{})
	var inTool sync.WaitGroup // four programs are in the middle of their tools
	inTool.Add(4)
	var accepted sync.WaitGroup // all are, whether they run or wait
	accepted.Add(sessions * each)
	var entered atomic.Int64
	var results [sessions * each]struct {
		ran     bool
		answers int
		value   string
		err     error
	}
	var all sync.WaitGroup
	for s := range sessions {
		c := dial(t, socket)
		for e := range each {
			r := &results[s*each+e]
			q := executor.Request{Execute: protocol.Execute{Code: fmt.Sprintf("await t.wait(); await t.wait(); 'done %d.%d'", s, e)}}
			var first sync.Once
			q.OnState = func(st protocol.State) {
				r.ran = r.ran || st.State == protocol.StateRunning
				first.Do(accepted.Done)
			}
			q.Provide(executor.Provider{Name: "t", Tools: map[string]executor.Tool{"wait": executor.Func(func() {
				if entered.Add(1) <= 4 {
					inTool.Done()
				}
				<-stopping
			})}})
			all.Go(func() {
				o, err := c.Execute(context.Background(), q)
				r.answers++
				if r.err = err; err == nil {
					r.value, r.err = string(o.Value), o.Err()
				}
			})
		}
	}
	inTool.Wait()
	accepted.Wait()
	p.signal(t, syscall.SIGTERM)
	p.awaitLog(t, "event=delay_over", "state=draining")
	began := time.Now()
	close(stopping)
	for p.log.Scan() {
		t.Log(p.log.Text())
	}
	_ = p.Wait()
	if status := p.ProcessState.ExitCode(); status != 0 || time.Since(began) > 60*time.Second {
		t.Errorf("exit status %d after %s", status, time.Since(began))
	}
	all.Wait()
	finished := 0
	for i, r := range results {
		switch {
		case r.answers != 1:
			t.Errorf("execution %d has %d results", i, r.answers)
		case r.ran && (r.err != nil || r.value != fmt.Sprintf(`"done %d.%d"`, i/each, i%each)):
			t.Errorf("execution %d ran, and came to %s, %v", i, r.value, r.err)
		case r.ran:
			finished++
		case !errors.Is(r.err, protocol.Draining):
			t.Errorf("execution %d waited, and came to %s, %v", i, r.value, r.err)
		}
	}
	if finished != 4 {
		t.Errorf("%d programs ran to their end, 4 were in the middle of it", finished)
	}
}

func TestSocketInUseAndLeftBehind(t *testing.T) {
	path, socket := testbin.Executord(t), filepath.Join(t.TempDir(), "s")
	p := start(t, path, socket)
	second := exec.Command(path, "--listen", "unix:"+socket, "--worker-binary", testbin.Worker(t), "--workers", "1")
	out, err := second.CombinedOutput()
	if err == nil || second.ProcessState.ExitCode() != exitFailure || !bytes.Contains(out, []byte("another process listens")) {
		t.Errorf("a second service: %v\n%s", err, out)
	}
	if c, err := net.Dial("unix", socket); err != nil {
		t.Errorf("the first service lost its socket: %v", err)
	} else {
		_ = c.Close()
	}
	_ = p.Process.Kill()
	_ = p.Wait()
	if _, err := os.Lstat(socket); err != nil {
		t.Fatalf("a killed service leaves its socket: %v", err)
	}
	if status := start(t, path, socket).stop(t, syscall.SIGTERM); status != 0 {
		t.Errorf("exit status %d", status)
	}
}

// TestSettingsFromEverywhere: a real service says all that is wrong with its settings at once, whichever way they came,
// and starts once they are right.
func TestSettingsFromEverywhere(t *testing.T) {
	path, dir := testbin.Executord(t), t.TempDir()
	file, socket := filepath.Join(dir, "executord.env"), filepath.Join(dir, "s")
	write := func(text string) {
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write("# ours\nEXECUTORD_MAX_HEAP=268435456\nEXECUTORD_WORKRES=1\n")
	cmd := exec.Command(path, "--drain-grace=5m")
	cmd.Env = []string{"EXECUTORD_SETTINGS_FILE=" + file, "EXECUTORD_QUEUE_TIMEOUT=30", "EXECUTORD_WORKER_BINARY=" + testbin.Worker(t)}
	out, _ := cmd.CombinedOutput()
	if status := cmd.ProcessState.ExitCode(); status != exitConfig {
		t.Errorf("exit status %d", status)
	}
	for _, want := range []string{
		"for 4 reasons:\n",
		"  EXECUTORD_WORKRES, given in " + file + ", line 3: there is no such setting; did you mean EXECUTORD_WORKERS?\n",
		`  --queue-timeout (EXECUTORD_QUEUE_TIMEOUT) is "30", given as the variable: it must be a duration with its unit`,
		`  --max-heap (EXECUTORD_MAX_HEAP) is "268435456", given in ` + file + `, line 2: it must be from 1 to 1048576 MiB; the unit is MiB: write 256`,
		`  --drain-grace (EXECUTORD_DRAIN_GRACE) is "5m", given as the flag: it must be shorter than --stop-timeout`,
	} {
		if !strings.Contains(string(out), want) {
			t.Errorf("no %q in\n%s", want, out)
		}
	}
	write("EXECUTORD_MAX_HEAP=256\nEXECUTORD_WORKERS=1\n")
	p := start(t, path, socket, "--settings-file", file)
	c := dial(t, socket)
	r := executor.Request{Execute: protocol.Execute{Code: "1", Limits: protocol.Limits{HeapMiB: 1000}}}
	o, err := c.Execute(t.Context(), r)
	if err != nil || o.Stats.Limits == nil || o.Stats.Limits.HeapMiB != 256 {
		t.Errorf("with the file: %+v, %v", o, err)
	}
	if status := p.stop(t, syscall.SIGTERM); status != 0 {
		t.Errorf("exit status %d", status)
	}
}

func TestCommandLine(t *testing.T) {
	path := testbin.Executord(t)
	for _, tc := range []struct {
		name   string
		args   []string
		status int
		want   string
	}{
		{"help", []string{"--help"}, 0, "--worker-binary"},
		{"help beside a mistake", []string{"--nope", "--help"}, 0, "--worker-binary"},
		{"version", []string{"--version"}, 0, "executord "},
		{"unknown flag", []string{"--nope"}, exitConfig, "unknown flag --nope"},
		{"argument", []string{"serve"}, exitConfig, "unexpected argument serve"},
		{"no worker", []string{"--worker-binary", "/nowhere"}, exitConfig, "worker binary"},
		{"worker that is none", []string{"--worker-binary", "/bin/false"}, 1, "cannot launch workers"},
		{"bad limit", []string{"--max-heap", "0"}, exitConfig, "--max-heap"},
		{"open to the world", []string{"--listen", "tcp://0.0.0.0:0", "--worker-binary", "/bin/false"}, exitConfig, "loopback"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			cmd := exec.Command(path, tc.args...)
			out, _ := cmd.CombinedOutput()
			if cmd.ProcessState.ExitCode() != tc.status || !strings.Contains(string(out), tc.want) {
				t.Errorf("status %d, want %d with %q\n%s", cmd.ProcessState.ExitCode(), tc.status, tc.want, out)
			}
		})
	}
}
