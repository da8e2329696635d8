package systemd

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/executord/executord/daemon/executor"
	"github.com/executord/executord/daemon/pool"
	"github.com/executord/executord/ipc/protocol"
	"github.com/executord/executord/ipc/testbin"
)

func TestMain(m *testing.M) { os.Exit(testbin.Main(m)) }

// playing is systemd as far as a socket with Accept=yes goes, with this process as its manager.
type playing struct {
	t      *testing.T
	script string // what a unit runs; $worker is the binary
	silent bool   // it never says how a unit ended
	socket string

	mu    sync.Mutex
	units map[string]*exec.Cmd
	ends  map[string]chan struct{}
	kills int
}

func play(t *testing.T, script string) *playing {
	t.Helper()
	p := &playing{t: t, script: script, socket: filepath.Join(t.TempDir(), "s"), units: map[string]*exec.Cmd{}, ends: map[string]chan struct{}{}}
	l, err := net.Listen("unix", p.socket)
	if err != nil {
		t.Fatal(err)
	}
	var serving sync.WaitGroup
	serving.Go(func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			serving.Go(func() { p.serve(c.(*net.UnixConn)) })
		}
	})
	t.Cleanup(func() {
		_ = l.Close()
		p.mu.Lock()
		for _, c := range p.units {
			_ = c.Process.Kill()
		}
		p.mu.Unlock()
		serving.Wait()
	})
	return p
}

// serve runs a unit for one connection.
func (p *playing) serve(c *net.UnixConn) {
	f, err := c.File()
	_ = c.Close()
	if err != nil {
		p.t.Error(err)
		return
	}
	cmd := exec.Command("/bin/sh", "-c", p.script)
	cmd.Env = []string{"LISTEN_FDS=1", "worker=" + testbin.Worker(p.t)}
	cmd.ExtraFiles, cmd.Stderr = []*os.File{f}, os.Stderr
	p.mu.Lock()
	err = cmd.Start()
	if err == nil {
		name := unitName(cmd.Process.Pid)
		p.units[name], p.ends[name] = cmd, make(chan struct{})
	}
	p.mu.Unlock()
	_ = f.Close()
	if err != nil {
		p.t.Error(err)
		return
	}
	_ = cmd.Wait()
	p.mu.Lock()
	close(p.ends[unitName(cmd.Process.Pid)])
	p.mu.Unlock()
}

func unitName(pid int) string { return fmt.Sprintf("executor-worker@%d.service", pid) }

func (p *playing) unit(pid int) (string, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.units[unitName(pid)] == nil {
		return "", errors.New("not ours")
	}
	return unitName(pid), nil
}

func (p *playing) kill(_ context.Context, name string) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.kills++
	return p.units[name].Process.Kill()
}

func (p *playing) close() error { return nil }

func (p *playing) workers(context.Context) (names []string, err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for name := range p.units {
		names = append(names, name)
	}
	return names, nil
}

func (p *playing) isolation(context.Context, string) (isolation, error) {
	return isolation{layers: []string{"process"}, missing: []string{"pid-namespace: it is played"}}, nil
}

func (p *playing) watch(_ context.Context, name string) ending { return played{p, name} }

type played struct {
	p    *playing
	name string
}

func (e played) end() chan struct{} {
	e.p.mu.Lock()
	defer e.p.mu.Unlock()
	return e.p.ends[e.name]
}

func (e played) state(grace time.Duration) pool.ExitState {
	if e.p.silent {
		await(make(chan struct{}), grace)
		return pool.ExitState{Code: -1}
	}
	if !await(e.end(), grace) {
		return pool.ExitState{Code: -1}
	}
	status := e.p.units[e.name].ProcessState.Sys().(syscall.WaitStatus)
	if status.Signaled() {
		return pool.ExitState{Signal: status.Signal()}
	}
	return pool.ExitState{Code: status.ExitStatus()}
}

func (e played) lingers(grace time.Duration) bool { return !await(e.end(), grace) }

const unitScript = "export LISTEN_PID=$$; exec $worker -unit"

func units(t *testing.T, p *playing) *Units {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	u, err := newUnits(ctx, UnitsConfig{Socket: p.socket, Logger: slog.New(slog.DiscardHandler)}, p)
	if err != nil {
		t.Fatal(err)
	}
	return u
}

func TestProgramsRunInUnits(t *testing.T) {
	p := play(t, unitScript)
	e, err := executor.New(t.Context(), executor.Config{Workers: 2, Tune: func(c *pool.Config) { c.Launcher = units(t, p) }})
	if err != nil {
		t.Fatal(err)
	}
	run := func(code string) *protocol.Outcome {
		t.Helper()
		o, err := e.Execute(t.Context(), executor.Request{Execute: protocol.Execute{Code: code, Limits: protocol.Limits{CPUMs: 200}}})
		if err != nil {
			t.Fatal(err)
		}
		return o
	}
	if o := run("6 * 7"); string(o.Value) != "42" {
		t.Errorf("got %s, %v", o.Value, o.Err())
	}
	if o := run("for (;;);"); !errors.Is(o.Err(), protocol.CPUTimeout) {
		t.Errorf("got %v", o.Err())
	}
	// Regular expressions of V8 cannot be interrupted everywhere: the process goes, and the type stays.
	if o := run("const a=[]; a.length=4294967295; a.fill(0)"); !errors.Is(o.Err(), protocol.CPUTimeout) {
		t.Errorf("got %v", o.Err())
	}
	if o := run("'next'"); string(o.Value) != `"next"` {
		t.Errorf("got %s, %v", o.Value, o.Err())
	}
	if err := e.Close(); err != nil {
		t.Error(err)
	}
	for name, end := range p.ends {
		if !await(end, 10*time.Second) { // one whose start was given up ends by itself
			t.Errorf("%s is still there", name)
		}
	}
}

// Where systemd does not say in time how a unit ended, what the worker said last still counts.
func TestSilentManagerLosesNoReason(t *testing.T) {
	p := play(t, unitScript)
	u := units(t, p)
	p.silent = true
	e, err := executor.New(t.Context(), executor.Config{Workers: 1, Tune: func(c *pool.Config) { c.Launcher = u }})
	if err != nil {
		t.Fatal(err)
	}
	defer e.Close()
	o, err := e.Execute(t.Context(), executor.Request{Execute: protocol.Execute{
		Code: "[].indexOf.call({length: 2 ** 53 - 1}, 1)", Limits: protocol.Limits{CPUMs: 200},
	}})
	if err != nil || !errors.Is(o.Err(), protocol.CPUTimeout) {
		t.Errorf("got %v, %v", o, err)
	}
}

// Whoever else answers at the socket is no worker, and is told apart by the kernel.
func TestStrangersAreNoWorkers(t *testing.T) {
	for name, tc := range map[string]struct{ script, want string }{
		"says nothing":       {"exec sleep 60", "introduce"},
		"leaves":             {"exit 0", "introduce"},
		"says something":     {"echo hello hello hello >&3; exec sleep 60", "introduced itself as"},
		"writes no snapshot": {`printf 'executor-worker 1\n' >&3; head -c1 <&3 >/dev/null`, "wrote none"},
		"fails":              {`printf 'executor-worker 1\n' >&3; head -c1 <&3 >/dev/null; echo x >&3; exit 3`, "exit:3"},
		"floods":             {`printf 'executor-worker 1\n' >&3; exec cat /dev/zero >&3`, "over 16 MiB"},
		"is a child of it":   {`(printf 'executor-worker 1\n' >&3; exec sleep 5)`, "not ours"},
	} {
		t.Run(name, func(t *testing.T) {
			p := play(t, tc.script)
			ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
			if strings.HasPrefix(name, "says nothing") {
				cancel()
				ctx, cancel = context.WithTimeout(t.Context(), 200*time.Millisecond)
			}
			defer cancel()
			if _, err := newUnits(ctx, UnitsConfig{Socket: p.socket, Logger: slog.New(slog.DiscardHandler)}, p); err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("got %v, want %q", err, tc.want)
			}
		})
	}
}

// A worker that was told to go and does not is killed by its unit's name.
func TestKillReachesAStoppedWorker(t *testing.T) {
	p := play(t, unitScript)
	u := units(t, p)
	w, err := u.Start(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if err := syscall.Kill(w.PID(), syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	w.Kill()
	w.Kill()
	<-w.Exited()
	if got := w.Exit(); got.Signal != syscall.SIGKILL || p.kills != 1 {
		t.Errorf("ended by %s after %d kills", got, p.kills)
	}
	_ = w.Conn().Close()
	if err := u.Close(); err != nil {
		t.Error(err)
	}
}

// A worker whose parent is gone ends by itself.
func TestWorkersEndWithTheChannel(t *testing.T) {
	p := play(t, unitScript)
	u := units(t, p)
	w, err := u.Start(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := io.ReadFull(w.Conn(), make([]byte, 1)); err != nil {
		t.Fatal(err)
	}
	_ = w.Conn().Close()
	select {
	case <-w.Exited():
	case <-time.After(10 * time.Second):
		t.Fatal("it goes on")
	}
	if p.kills != 0 {
		t.Error("it had to be killed")
	}
	_ = u.Close()
}

func TestOwnerOf(t *testing.T) {
	for unit, want := range map[string]int{
		"executor-worker@12-345-996.service": 345, "executor-worker@12-345_678-996.service": 345, "executor-worker@12-99-345_678-996.service": 345, "executor-worker@1-1-0.service": 0, "executor-worker@x.service": 0,
		"executor-worker@1-x-0.service": 0, "executor-worker.service": 0, "": 0,
	} {
		if got, ok := ownerOf(unit); ok != (want != 0) || ok && got != want {
			t.Errorf("%q: %d, %v", unit, got, ok)
		}
	}
}

func TestUnitIn(t *testing.T) {
	const prefix = "executor-worker@"
	for text, want := range map[string]string{
		"0::/executord-workers.slice/executor-worker@3-12-0.service\n":              "executor-worker@3-12-0.service",
		"9:name=systemd:/executord.slice/executor-worker@1.service/x\n4:memory:/\n": "executor-worker@1.service",
		"4:memory:/executor-worker@1.service\n0::/user.slice\n":                     "",
		"0::/system.slice/executord.service\n":                                      "",
		"0::/user.slice/executor-worker@1.scope\n":                                  "",
		"garbage\n0::": "",
	} {
		if got, ok := unitIn(text, prefix); got != want || ok != (want != "") {
			t.Errorf("%q: %q, %v", text, got, ok)
		}
	}
}
