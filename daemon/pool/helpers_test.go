package pool

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/executord/executord/ipc/executor"
	"github.com/executord/executord/ipc/protocol"
)

// testConfig is a small pool with short times.
func testConfig() Config {
	c := Defaults()
	c.Workers, c.Spares, c.Queue, c.QueuePerIdentity = 1, 0, 4, 4
	c.QueueTimeout = 20 * time.Second
	c.SpawnTimeout = 20 * time.Second
	c.Limits.CPUMs, c.Limits.WallMs, c.Limits.TotalMs = 10_000, 10_000, 20_000
	c.Limits.ResultBytes, c.Limits.LogBytes, c.Limits.LogLines = 1<<20, 1<<16, 100
	c.Limits.ToolCalls, c.Limits.Fetches, c.Limits.FetchBytes = 20, 20, 1<<20
	return c
}

// bench is a pool under test and what it said.
type bench struct {
	*Pool
	t      testing.TB
	mu     sync.Mutex
	events []Event
	news   chan struct{}
}

// newBench makes a pool that the test closes; leaks are the test's failure.
func newBench(t testing.TB, c Config, o outside) *bench {
	t.Helper()
	b := &bench{t: t, news: make(chan struct{}, 1)}
	goroutines, files := runtime.NumGoroutine(), openFiles(t)
	c.OnEvent = b.hear
	if testing.Verbose() {
		c.Logger = slog.New(slog.NewTextHandler(t.Output(), nil))
	}
	if c.Launcher == nil {
		c.Launcher = newChildLauncher(t)
	}
	p, err := newPool(c, o)
	if err != nil {
		t.Fatal(err)
	}
	b.Pool = p
	t.Cleanup(func() {
		if err := p.Close(); err != nil {
			t.Errorf("Close: %v", err)
		}
		noLeak(t, goroutines, files)
	})
	return b
}

func newChildLauncher(t testing.TB, args ...string) *Child {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	return launcherOf(t, self, args...)
}

// launcherOf starts workers of this binary. They begin with the snapshot that the first of its kind made, which takes longer
// than most tests.
func launcherOf(t testing.TB, binary string, args ...string) *Child {
	t.Helper()
	l, err := childWith(t.Context(), ChildConfig{Path: binary, Args: args}, snapshots.remember)
	if err != nil {
		t.Fatal(err)
	}
	return l
}

// memory has the snapshots that were made, by what they were made of.
type memory struct {
	mu    sync.Mutex
	blobs map[string][]byte
}

var snapshots = memory{blobs: map[string][]byte{}}

func (m *memory) remember(l *Child, ctx context.Context) ([]byte, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	kind := fmt.Sprintf("%q %q %t", l.config.Path, l.config.Args, l.cage.drop)
	if blob, made := m.blobs[kind]; made {
		return blob, nil
	}
	blob, err := l.snapshotBytes(ctx)
	if err == nil {
		m.blobs[kind] = blob
	}
	return blob, err
}

// insideBench is a bench over workers that are goroutines.
func insideBench(t testing.TB, c Config) *bench {
	c.Launcher = &inside{}
	o := realOutside()
	o.meter = func(int) (meter, error) { return &dial{}, nil }
	b := newBench(t, c, o)
	b.waitReady()
	return b
}

func childBench(t testing.TB, c Config) *bench {
	b := newBench(t, c, realOutside())
	b.waitReady()
	return b
}

func (b *bench) waitReady() {
	b.t.Helper()
	ctx, cancel := context.WithTimeout(b.t.Context(), 30*time.Second)
	defer cancel()
	if err := b.WaitReady(ctx); err != nil {
		b.t.Fatal(err)
	}
}

func (b *bench) hear(e Event) {
	b.mu.Lock()
	b.events = append(b.events, e)
	b.mu.Unlock()
	select {
	case b.news <- struct{}{}:
	default:
	}
}

// count is how many events of a kind there were.
func (b *bench) count(kind EventKind) int {
	b.mu.Lock()
	defer b.mu.Unlock()
	n := 0
	for _, e := range b.events {
		if e.Kind == kind {
			n++
		}
	}
	return n
}

// lastDeath is the event of the worker that ended last.
func (b *bench) lastDeath() Event {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, e := range slices.Backward(b.events) {
		if e.Kind == WorkerCrashed || e.Kind == WorkerStopped || e.Kind == WorkerRetired {
			return e
		}
	}
	return Event{}
}

// awaitEvents waits until there were n events of a kind.
func (b *bench) awaitEvents(kind EventKind, n int) {
	b.t.Helper()
	deadline := time.After(20 * time.Second)
	for b.count(kind) < n {
		select {
		case <-b.news:
		case <-deadline:
			b.t.Fatalf("%d events %s, want %d", b.count(kind), kind, n)
		}
	}
}

// script is a request that makes a fake worker play lines.
func script(lines ...string) executor.Request {
	return executor.Request{
		Execute: protocol.Execute{
			Code:      strings.Join(lines, "\n"),
			Providers: []protocol.Provider{{Name: "tools"}, {Name: "db", Tools: protocol.Tools{Paths: [][]string{{"users", "get"}}}}},
		},
		Call: func(_ context.Context, c executor.ToolCall) (protocol.Value, error) { return c.Args, nil },
	}
}

// run executes lines and wants an outcome.
func (b *bench) run(r executor.Request) *protocol.Outcome {
	b.t.Helper()
	out, err := b.Execute(b.t.Context(), r)
	if err != nil {
		b.t.Fatalf("Execute: %v", err)
	}
	return out
}

// works wants that the pool still runs programs.
func (b *bench) works() {
	b.t.Helper()
	if out := b.run(script("return 42")); string(out.Value) != "42" {
		b.t.Fatalf("next execution: %+v, error %v", out, out.Error)
	}
}

// want compares an outcome with an error type and its reason, or with a value.
func want(t testing.TB, out *protocol.Outcome, typ protocol.Type, reason string) {
	t.Helper()
	if out.Status != protocol.StatusError || out.Error == nil || out.Value != nil {
		t.Fatalf("outcome %q with value %s, want error %s", out.Status, out.Value, typ)
	}
	if out.Error.Type != typ || out.Error.Reason != reason {
		t.Errorf("got %v, reason %q, want %s, %q", out.Error, out.Error.Reason, typ, reason)
	}
	if out.Error.Message == "" {
		t.Error("error has no message")
	}
}

func texts(out *protocol.Outcome) (list []string) {
	for _, l := range out.Logs {
		list = append(list, l.Text)
	}
	return list
}

func openFiles(t testing.TB) []string {
	entries, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Fatal(err)
	}
	var list []string
	for _, e := range entries {
		target, err := os.Readlink("/proc/self/fd/" + e.Name())
		if err == nil && !strings.HasPrefix(target, "/proc/") {
			list = append(list, target)
		}
	}
	slices.Sort(list)
	return list
}

// noLeak waits for the counts from before.
func noLeak(t testing.TB, goroutines int, files []string) {
	t.Helper()
	var now []string
	for range 200 {
		now = openFiles(t)
		if runtime.NumGoroutine() <= goroutines && len(now) <= len(files) {
			return
		}
		time.Sleep(10 * time.Millisecond) // goroutines end a moment after what they announced
	}
	stacks := make([]byte, 1<<16)
	t.Errorf("leak: %d goroutines, were %d; files %q, were %q\n%s",
		runtime.NumGoroutine(), goroutines, now, files, stacks[:runtime.Stack(stacks, true)])
}

// within wants that f takes from least to most.
func timed(t testing.TB, least, most time.Duration, f func()) {
	t.Helper()
	begin := time.Now()
	f()
	if took := time.Since(begin); took < least || took > most {
		t.Errorf("took %s, want %s to %s", took, least, most)
	}
}
