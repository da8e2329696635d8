package pool

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/executord/executord/ipc/testbin"
	"github.com/executord/executord/ipc/worker"
)

// TestChildSurroundings: a worker finds its channel, its snapshot, and nothing else.
func TestChildSurroundings(t *testing.T) {
	// Descriptors of this process that are not close-on-exec, as an embedding program may have them.
	fd, err := syscall.Dup(2)
	if err != nil {
		t.Fatal(err)
	}
	defer syscall.Close(fd)
	t.Setenv("SECRET", "value")
	b := childBench(t, testConfig())
	var got inspection
	if err := json.Unmarshal(b.run(script("inspect")).Value, &got); err != nil {
		t.Fatal(err)
	}
	sockets := 0
	for n, target := range got.FDs {
		if strings.HasPrefix(target, "socket:") {
			sockets++
		}
		switch kind, _, _ := strings.Cut(target, ":"); {
		case n == "0" && target == "/dev/null", n == "1" && target == "/dev/null", n == "2" && kind == "pipe":
		case n == "4" && strings.HasPrefix(target, "/memfd:executor-snapshot"):
		case kind == "socket", kind == "anon_inode", strings.HasPrefix(target, "/proc/"), strings.HasPrefix(target, "/sys/fs/cgroup/"): // Go's own
		default:
			t.Errorf("descriptor %s is %s", n, target)
		}
	}
	if sockets != 1 {
		t.Errorf("%d sockets, want the channel alone: %v", sockets, got.FDs)
	}
	if len(got.Env) != 0 || got.Dir != "/" || !got.OwnGroup || got.CoreLimit != 0 {
		t.Errorf("surroundings %+v", got)
	}
	if want := []string{"executor-worker", "-channel", "3", "-snapshot", "4"}; strings.Join(got.Args, " ") != strings.Join(want, " ") {
		t.Errorf("arguments %q", got.Args)
	}
	if got.Snapshot != "snapshot bytes" || got.CanWrite {
		t.Errorf("snapshot %q, writable %t", got.Snapshot, got.CanWrite)
	}
}

// TestC11StartErrors: a worker binary that cannot make its snapshot fails the start, with exit status and what it said.
func TestC11StartErrors(t *testing.T) {
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cases := []struct {
		mode string
		path string
		want []string
	}{
		{"snapshot-fails", self, []string{"exit:3", "no such engine"}},
		{"snapshot-empty", self, []string{"wrote nothing"}},
		{"snapshot-big", self, []string{"over 16777216 bytes"}},
		{"snapshot-hangs", self, []string{"not done within 2s", "signal:SIGKILL"}},
		{"no binary", "/does/not/exist", []string{"/does/not/exist"}},
	}
	for _, c := range cases {
		t.Run(c.mode, func(t *testing.T) {
			patience := time.Minute
			if c.mode == "snapshot-hangs" {
				patience = 2 * time.Second
			}
			_, err := NewChild(t.Context(), ChildConfig{Path: c.path, Args: []string{c.mode}, SnapshotTimeout: patience})
			for _, text := range c.want {
				if err == nil || !strings.Contains(err.Error(), text) {
					t.Errorf("got %v, want %q in it", err, text)
				}
			}
		})
	}
}

// TestFailingStarts: whatever goes wrong before a worker is ready is a failed start that says why.
func TestFailingStarts(t *testing.T) {
	for mode, text := range map[string]string{
		"exit-at-start": "cannot find the engine", "wrong-version": "version 99", "no-hello": "ready within",
		"no-ready": "ready within", "ready-first": "before Hello",
	} {
		t.Run(mode, func(t *testing.T) {
			c := testConfig()
			c.SpawnTimeout = 2 * time.Second
			c.Launcher = newChildLauncher(t, mode)
			b := newBench(t, c, realOutside())
			b.awaitEvents(WorkerFailed, 1)
			ctx, cancel := context.WithCancel(t.Context())
			cancel()
			if err := b.WaitReady(ctx); err == nil || !strings.Contains(err.Error(), text) {
				t.Errorf("got %v, want %q in it", err, text)
			}
		})
	}
}

// TestCrashLoopBacksOff: workers that die as soon as they are ready are not started as fast as they die.
func TestCrashLoopBacksOff(t *testing.T) {
	c := testConfig()
	c.Launcher = newChildLauncher(t, "die-when-ready")
	o := realOutside()
	o.random = func() float64 { return 0.5 }
	begin := time.Now()
	b := newBench(t, c, o)
	b.awaitEvents(WorkerCrashed, 4)
	if took := time.Since(begin); took < 700*time.Millisecond { // 100 + 200 + 400
		t.Errorf("four workers died within %s", took)
	}
	if s := b.Stats(); s.FailuresInRow < 4 {
		t.Errorf("stats %+v", s)
	}
}

// TestWorkersDieWithParent: a worker outlives its pool by nothing, even when the pool is killed.
func TestWorkersDieWithParent(t *testing.T) {
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	parent := exec.Command(self, "-parent")
	out, err := parent.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := parent.Start(); err != nil {
		t.Fatal(err)
	}
	buf := make([]byte, 20)
	n, err := out.Read(buf)
	if err != nil {
		t.Fatal(err)
	}
	pid, err := strconv.Atoi(strings.TrimSpace(string(buf[:n])))
	if err != nil {
		t.Fatal(err)
	}
	if err := syscall.Kill(pid, 0); err != nil {
		t.Fatalf("worker %d: %v", pid, err)
	}
	_ = parent.Process.Kill()
	_ = parent.Wait()
	for range 500 {
		if !testbin.Alive(pid) {
			return
		}
		time.Sleep(10 * time.Millisecond)
	}
	t.Errorf("worker %d outlived its parent", pid)
	_ = syscall.Kill(pid, syscall.SIGKILL)
}

// parentMain is a process with a pool, which prints the pid of its worker.
func parentMain() {
	self, _ := os.Executable()
	l, err := NewChild(context.Background(), ChildConfig{Path: self})
	if err != nil {
		panic(err)
	}
	c := testConfig()
	c.Launcher = l
	p, err := New(c)
	if err != nil {
		panic(err)
	}
	if err := p.WaitReady(context.Background()); err != nil {
		panic(err)
	}
	r := script("pid")
	out, err := p.Execute(context.Background(), r)
	if err != nil {
		panic(err)
	}
	fmt.Printf("%s\n", out.Value)
	select {}
}

// TestThreadOfStartMayEnd: a worker does not die with the thread that asked for it.
func TestThreadOfStartMayEnd(t *testing.T) {
	l := newChildLauncher(t)
	started := make(chan Process)
	go func() {
		runtime.LockOSThread() // and never unlocked: the thread ends with the goroutine
		p, err := l.Start(t.Context())
		if err != nil {
			t.Error(err)
		}
		started <- p
	}()
	p := <-started
	if p == nil {
		t.FailNow()
	}
	defer l.Close()
	defer p.Kill()
	conn, err := worker.NewConn(p.Conn(), worker.Options{Side: worker.Parent})
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	for range 4 { // hello, ready, and heartbeats for a second
		if _, err := conn.Receive(); err != nil {
			t.Fatalf("the worker ended: %v", err)
		}
	}
}

func TestTail(t *testing.T) {
	var s tail
	for i := range 3000 {
		fmt.Fprintf(&s, "line %d\n", i)
	}
	got := s.String()
	if !strings.HasSuffix(got, "line 2998\nline 2999\n") || !strings.HasPrefix(got, "…") || len(got) > tailBytes+len("…") {
		t.Errorf("%d bytes: %.20q", len(got), got)
	}
	_, _ = s.Write(make([]byte, 10*tailBytes))
	if len(s.String()) > tailBytes+len("…") {
		t.Error("a big write broke the bound")
	}
}

func TestBackoff(t *testing.T) {
	cases := []struct {
		n      int
		random float64
		want   time.Duration
	}{
		{1, 0.5, 100 * time.Millisecond},
		{1, 0, 50 * time.Millisecond},
		{4, 0.5, 800 * time.Millisecond},
		{100, 0.5, 30 * time.Second},
		{1 << 30, 0, 15 * time.Second},
	}
	for _, c := range cases {
		if got := backoff(c.n, c.random); got != c.want {
			t.Errorf("backoff(%d, %v) is %s, want %s", c.n, c.random, got, c.want)
		}
	}
}
