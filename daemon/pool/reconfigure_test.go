package pool

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/executord/executord/ipc/executor"
	"github.com/executord/executord/ipc/protocol"
)

// reconfigure changes the configuration in force.
func (b *bench) reconfigure(change func(*Config)) {
	b.t.Helper()
	c := *b.config()
	change(&c)
	if err := b.Reconfigure(c); err != nil {
		b.t.Fatal(err)
	}
}

// awaitStats waits until the figures are as wanted. Workers come and go with events; one that becomes idle makes none.
func (b *bench) awaitStats(what string, ok func(Stats) bool) {
	b.t.Helper()
	deadline, again := time.After(20*time.Second), time.NewTicker(10*time.Millisecond)
	defer again.Stop()
	for !ok(b.Stats()) {
		select {
		case <-b.news:
		case <-again.C:
		case <-deadline:
			b.t.Fatalf("%s: stats %+v", what, b.Stats())
		}
	}
}

func (b *bench) awaitWorkers(n int) {
	b.t.Helper()
	b.awaitStats("workers", func(s Stats) bool { return s.Starting+s.Idle+s.Running+s.Restoring == n && s.Starting == 0 })
}

func TestReconfigureWorkers(t *testing.T) {
	c := testConfig()
	c.Workers, c.Queue, c.QueuePerIdentity = 1, 4, 4
	b := insideBench(t, c)
	first := b.start("a", script("wait"))
	defer first.end()
	first.isRunning(t)
	second := b.start("a", script("wait"))
	defer second.end()
	second.isQueued(t)

	b.reconfigure(func(c *Config) { c.Workers, c.Spares = 3, 1 })
	second.isRunning(t) // what waited gets one of the new workers
	b.awaitWorkers(4)

	b.reconfigure(func(c *Config) { c.Workers, c.Spares = 1, 0 })
	b.awaitWorkers(2) // the idle ones go, those that run stay
	third := b.start("a", script("return 3"))
	defer third.end()
	if got := third.isQueued(t); got != 1 {
		t.Errorf("the third waits at %d", got)
	}
	first.end()
	want(t, first.out, protocol.Cancelled, "")
	if s := b.Stats(); s.Running != 1 || s.Queued != 1 {
		t.Errorf("with one running over the new limit: stats %+v", s)
	}
	second.end()
	want(t, second.out, protocol.Cancelled, "")
	<-third.done
	if third.err != nil || string(third.out.Value) != "3" {
		t.Errorf("the third: %+v, %v", third.out, third.err)
	}
	b.awaitWorkers(1)
	if n := b.count(WorkerCrashed) + b.count(WorkerFailed) + b.count(WorkerStopped); n != 0 {
		t.Errorf("%d workers did not end in order", n)
	}
	b.works()
}

func TestReconfigureQueue(t *testing.T) {
	c := testConfig()
	c.Queue, c.QueuePerIdentity = 0, 0
	b := insideBench(t, c)
	busy := b.start("a", script("wait"))
	defer busy.end()
	busy.isRunning(t)
	refused := func() bool {
		r := script("return 1")
		r.Identity = "a"
		ctx, cancel := context.WithCancel(t.Context())
		r.OnState = func(protocol.State) { cancel() } // it waits: that is enough
		_, err := b.Execute(ctx, r)
		return errors.Is(err, protocol.Overloaded)
	}
	if !refused() {
		t.Error("without a queue a request waits")
	}
	b.reconfigure(func(c *Config) { c.Queue, c.QueuePerIdentity = 2, 1 })
	if refused() {
		t.Error("with a queue it is refused")
	}
	waits := b.start("a", script("wait"))
	defer waits.end()
	waits.isQueued(t)
	if !refused() {
		t.Error("a second of the same caller waits")
	}
	b.reconfigure(func(c *Config) { c.Queue, c.QueuePerIdentity = 0, 0 })
	if s := b.Stats(); s.Queued != 1 {
		t.Errorf("what waited is gone: stats %+v", s)
	}
	b.reconfigure(func(c *Config) { c.Queue, c.QueuePerIdentity, c.QueueTimeout = 2, 2, 50*time.Millisecond })
	r := script("return 1")
	if _, err := b.Execute(t.Context(), r); !errors.Is(err, protocol.QueueTimeout) || !strings.Contains(err.Error(), "50ms") {
		t.Errorf("got %v", err)
	}
	if s := b.Stats(); s.Queued != 1 {
		t.Errorf("the wait of one that came before changed: stats %+v", s)
	}
}

// A request has the limits of when it came, and a worker that was there before may use new ones to the full.
func TestReconfigureLimits(t *testing.T) {
	c := testConfig()
	c.Limits.LogBytes, c.MaxLimits.LogBytes = 1000, 1000
	c.Limits.MessageBytes, c.MaxLimits.MessageBytes = 1000, 1000
	c.Limits.ResultBytes, c.MaxLimits.ResultBytes = 1000, 1000
	b := insideBench(t, c)
	giant := script(`return "` + strings.Repeat("x", 4_000_000) + `"`) // its frame is over what the worker's channel took
	giant.Limits.ResultBytes = 5_000_000

	before := script("call tools.wait []", "return 1")
	asked, answer := make(chan struct{}), make(chan struct{})
	before.Call = func(context.Context, executor.ToolCall) (protocol.Value, error) {
		close(asked)
		<-answer
		return protocol.Value("7"), nil
	}
	j := b.start("a", before)
	<-asked
	b.reconfigure(func(c *Config) {
		c.Limits.ResultBytes, c.MaxLimits.ResultBytes, c.Limits.ToolCalls = 5_000_000, 5_000_000, 7
	})
	close(answer)
	<-j.done
	if j.err != nil || j.out.Stats.Limits.ResultBytes != 1000 || j.out.Stats.Limits.ToolCalls != 20 {
		t.Errorf("what came before: %+v, %v", j.out, j.err)
	}
	worker := j.out.Stats.Worker
	out := b.run(giant)
	if len(out.Value) != 4_000_002 || out.Stats.Limits.ToolCalls != 7 || out.Stats.Worker != worker {
		t.Errorf("what came after: %d bytes from %s, error %v, limits %+v", len(out.Value), out.Stats.Worker, out.Error, out.Stats.Limits)
	}
	b.reconfigure(func(c *Config) { c.Limits.ResultBytes, c.MaxLimits.ResultBytes = 1000, 1000 })
	if out = b.run(giant); out.Error == nil || out.Stats.Limits.ResultBytes != 1000 {
		t.Errorf("with the old limits again: %d bytes, error %v, limits %+v", len(out.Value), out.Error, out.Stats.Limits)
	}
}

func TestReconfigureNetwork(t *testing.T) {
	b := insideBench(t, testConfig())
	direct := script("return 1")
	direct.Network = protocol.NetworkDirect
	if _, err := b.Execute(t.Context(), direct); !errors.Is(err, protocol.InvalidParams) {
		t.Errorf("before: %v", err)
	}
	b.reconfigure(func(c *Config) {
		c.Direct = func(context.Context, executor.FetchCall) (*executor.FetchResponse, error) {
			return nil, errors.New("no")
		}
	})
	if out := b.run(direct); string(out.Value) != "1" {
		t.Errorf("after: %v", out.Error)
	}
	b.reconfigure(func(c *Config) { c.Direct = nil })
	if _, err := b.Execute(t.Context(), direct); !errors.Is(err, protocol.InvalidParams) {
		t.Errorf("after it was taken back: %v", err)
	}
}

// How long workers live follows for those that are there.
func TestReconfigureLives(t *testing.T) {
	b := insideBench(t, testConfig())
	b.works()
	b.reconfigure(func(c *Config) { c.WorkerMaxExecutions = 2 })
	b.works()
	b.awaitEvents(WorkerRetired, 1)
	b.awaitEvents(WorkerReady, 2)
	b.reconfigure(func(c *Config) { c.WorkerMaxAge = time.Millisecond })
	b.awaitEvents(WorkerRetired, 2)
	b.reconfigure(func(c *Config) { c.WorkerMaxAge = time.Hour })
	b.works()

	b.reconfigure(func(c *Config) { c.HeartbeatTimeout = time.Second })
	timed(t, 500*time.Millisecond, 4*time.Second, func() {
		if out := b.run(script("log x", "silent")); out.Error == nil || out.Error.Type != protocol.WorkerCrashed {
			t.Errorf("a silent worker: %v", out.Error)
		}
	}) // counted from a frame that comes later than the change
}

// A configuration that makes no sense changes nothing, and what cannot change does not.
func TestReconfigureRefuses(t *testing.T) {
	b := insideBench(t, testConfig())
	before := b.config()
	for name, change := range map[string]func(*Config){
		"no workers":                func(c *Config) { c.Workers = 0 },
		"a share over the whole":    func(c *Config) { c.QueuePerIdentity = c.Queue + 1 },
		"a default over a maximum":  func(c *Config) { c.Limits.HeapMiB = c.MaxLimits.HeapMiB + 1 },
		"a timeout below heartbeat": func(c *Config) { c.HeartbeatTimeout = time.Millisecond },
	} {
		c := *before
		change(&c)
		if err := b.Reconfigure(c); err == nil || b.config() != before {
			t.Errorf("%s: %v", name, err)
		}
	}
	b.reconfigure(func(c *Config) { c.Launcher, c.Logger, c.OnEvent, c.SpawnTimeout = nil, nil, nil, time.Second })
	if c := b.config(); c.Launcher != before.Launcher || c.Logger != before.Logger || c.OnEvent == nil || c.SpawnTimeout != before.SpawnTimeout {
		t.Errorf("got %+v", c)
	}
	b.works()
}
