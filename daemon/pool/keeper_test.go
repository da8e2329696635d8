package pool

import (
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/executord/executord/ipc/protocol"
)

// TestFreshProcessEach: with one execution per worker each has a process of its own, and no more run at once.
func TestFreshProcessEach(t *testing.T) {
	c := testConfig()
	c.WorkerMaxExecutions = 1
	b := childBench(t, c)
	seen := map[string]bool{}
	for range 5 {
		pid := string(b.run(script("pid")).Value)
		if seen[pid] {
			t.Errorf("process %s ran two", pid)
		}
		seen[pid] = true
	}
	b.awaitEvents(WorkerRetired, 5)
	if s := b.Stats(); s.Totals.Crashed != 0 || s.Totals.Failed != 0 || s.Totals.Retired != 5 {
		t.Errorf("stats %+v", s)
	}
}

// TestReplacementComesFirst: the replacement is ready before the worker that it replaces is ended.
func TestReplacementComesFirst(t *testing.T) {
	c := testConfig()
	c.WorkerMaxExecutions = 3
	b := childBench(t, c)
	j := b.start("a", script("return 1"))
	<-j.done
	b.works()
	j = b.start("a", script("wait"))
	j.isRunning(t)
	b.awaitEvents(WorkerReady, 2)
	if s := b.Stats(); s.Running != 1 || s.Due != 1 {
		t.Errorf("stats %+v", s)
	}
	j.end()
	b.awaitEvents(WorkerRetired, 1)
	b.works()
}

// TestSpares: a spare runs the next program at once while the worker of the last one is replaced, and never one more at
// a time.
func TestSpares(t *testing.T) {
	l := &inside{}
	c := testConfig()
	c.Spares, c.Launcher = 2, l
	o := realOutside()
	o.meter = func(int) (meter, error) { return &dial{}, nil }
	b := newBench(t, c, o)
	b.awaitEvents(WorkerReady, 3)
	l.fail.Store(true)
	for range 2 {
		want(t, b.run(script("exit 3")), protocol.WorkerCrashed, "exit:3")
	}
	j := b.start("a", script("wait"))
	j.isRunning(t)
	next := b.start("a", script("return 1"))
	<-next.queued
	if s := b.Stats(); s.Running != 1 || s.Queued != 1 || s.Idle+s.Restoring != 0 {
		t.Errorf("stats %+v", s)
	}
	l.fail.Store(false)
	j.end()
	<-next.done
	b.works()
}

func TestRetire(t *testing.T) {
	b := childBench(t, testConfig())
	before := b.Workers()
	if len(before) != 1 || before[0].State != "idle" || before[0].RSSBytes == 0 || !slices.Contains(before[0].Layers, "none") || strings.Contains(before[0].Engine, "\x1b") {
		t.Fatalf("workers %+v", before)
	}
	if b.Retire("worker-99") || !b.Retire(before[0].Name) {
		t.Error("Retire mistakes the name")
	}
	b.awaitEvents(WorkerRetired, 1)
	after := b.Workers()
	if len(after) != 1 || after[0].PID == before[0].PID {
		t.Errorf("workers %+v", after)
	}
	b.works()
}

// TestSpentWorkersRetire: a worker may leave between two executions, and its replacement does not wait.
func TestSpentWorkersRetire(t *testing.T) {
	c := testConfig()
	c.Launcher = newChildLauncher(t, "spent")
	b := childBench(t, c)
	for range 5 {
		b.works()
	}
	b.awaitEvents(WorkerRetired, 5)
	if s := b.Stats(); s.Totals.Crashed != 0 || s.FailuresInRow != 0 || b.count(WorkerCrashed) != 0 {
		t.Errorf("stats %+v", s)
	}
}

// clockwork is a clock that a test moves ahead of the real one.
type clockwork struct{ ahead atomic.Int64 }

func (c *clockwork) now() time.Time { return time.Now().Add(time.Duration(c.ahead.Load())) }

func TestRetirementByAge(t *testing.T) {
	c := testConfig()
	c.Workers = 3
	c.WorkerMaxAge = time.Hour
	c.Launcher = &inside{}
	o := realOutside()
	var clock clockwork
	o.now = clock.now
	o.meter = func(int) (meter, error) { return &dial{}, nil }
	b := newBench(t, c, o)
	b.waitReady()
	before := b.Workers()
	clock.ahead.Store(int64(67 * time.Minute)) // a tenth over the age, and more
	b.poke()
	b.awaitEvents(WorkerRetired, 3)
	b.waitReady()
	for _, w := range b.Workers() {
		if slices.ContainsFunc(before, func(o WorkerInfo) bool { return o.Name == w.Name }) {
			t.Errorf("%s is still there", w.Name)
		}
	}
}

// TestRetirementByGrowth: a worker that does not give back its memory is replaced.
func TestRetirementByGrowth(t *testing.T) {
	c := testConfig()
	c.WorkerMaxGrowthBytes = 10 << 20
	c.Launcher = &inside{}
	var d dial
	d.resident.Store(100 << 20)
	o := realOutside()
	o.meter = func(int) (meter, error) { return &d, nil }
	b := newBench(t, c, o)
	b.waitReady()
	d.resident.Store(105 << 20)
	b.works()
	b.works()
	if b.count(WorkerRetired) != 0 {
		t.Error("retired too early")
	}
	d.resident.Store(111 << 20)
	b.works()
	b.awaitEvents(WorkerRetired, 1)
	b.works()
}

// TestOutsideLimits: what the meters say ends a run, at the documented figures.
func TestOutsideLimits(t *testing.T) {
	memory := int64(50<<20 + 2*64<<20 + 64<<20 + 128<<20)
	cpu := int64(time.Hour + 2*10*time.Second + 225*time.Millisecond)
	cases := []struct {
		name string
		set  func(*dial)
		typ  protocol.Type
	}{
		{"just enough", func(d *dial) { d.resident.Store(memory); d.cpuTime.Store(cpu) }, protocol.Cancelled},
		{"a page more", func(d *dial) { d.resident.Store(memory + 4096) }, protocol.MemoryLimit},
		{"a moment more", func(d *dial) { d.cpuTime.Store(cpu + 1) }, protocol.CPUTimeout},
		{"a moment more on the isolate's thread", func(d *dial) {
			d.cpuTime.Store(int64(time.Hour + 10*time.Second))
			d.isolate.Store(int64(10 * time.Second))
		}, protocol.CPUTimeout},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			var d dial
			d.resident.Store(50 << 20)
			d.cpuTime.Store(int64(time.Hour))
			config, o := testConfig(), realOutside()
			config.Launcher = &inside{}
			o.meter = func(int) (meter, error) { return &d, nil }
			b := newBench(t, config, o)
			b.waitReady()
			j := b.start("a", script("wait"))
			j.isRunning(t)
			time.Sleep(5 * lookEvery) // until dispatch has read the figures
			c.set(&d)
			if c.typ == protocol.Cancelled {
				time.Sleep(5 * lookEvery)
				j.cancel(nil)
			}
			<-j.done
			want(t, j.out, c.typ, "")
		})
	}
}

// TestStartsThatFail: they are repeated, not in a hurry, and the pool recovers by itself.
func TestStartsThatFail(t *testing.T) {
	c := testConfig()
	l := &inside{}
	l.fail.Store(true)
	c.Launcher = l
	o := realOutside()
	o.meter = func(int) (meter, error) { return &dial{}, nil }
	b := newBench(t, c, o)
	b.awaitEvents(WorkerFailed, 3)
	time.Sleep(100 * time.Millisecond)
	if n := l.starts.Load(); n > 5 {
		t.Errorf("%d starts in a moment", n)
	}
	if s := b.Stats(); !strings.Contains(s.LastFailure, "no more processes") {
		t.Errorf("stats %+v", s)
	}
	l.fail.Store(false)
	b.works()
	if s := b.Stats(); s.LastFailure != "" || s.FailuresInRow != 0 {
		t.Errorf("stats %+v", s)
	}
}

// TestIdleDeath: a worker that dies at rest is replaced; nobody notices.
func TestIdleDeath(t *testing.T) {
	b := childBench(t, testConfig())
	for range 3 {
		b.mu.Lock()
		crashes := 0
		for _, e := range b.events {
			if e.Kind == WorkerCrashed {
				crashes++
			}
		}
		b.mu.Unlock()
		b.works()
		b.Pool.mu.Lock()
		for m := range b.members {
			m.proc.Kill()
		}
		b.Pool.mu.Unlock()
		b.awaitEvents(WorkerCrashed, crashes+1)
		b.works()
	}
}

// TestDeathAtDispatch: executions meet workers that die at any moment, and each ends one way or the other.
func TestDeathAtDispatch(t *testing.T) {
	c := testConfig()
	c.Workers, c.Queue, c.QueuePerIdentity = 2, 8, 8
	b := insideBench(t, c)
	stop := make(chan struct{})
	killed := make(chan struct{})
	go func() {
		defer close(killed)
		for {
			select {
			case <-stop:
				return
			case <-time.After(2 * time.Millisecond):
			}
			b.Pool.mu.Lock()
			for m := range b.members {
				if m.state != starting {
					m.proc.Kill()
					break
				}
			}
			b.Pool.mu.Unlock()
		}
	}()
	ended := 0
	for range 300 {
		out := b.run(script("return 1"))
		if out.Error != nil && out.Error.Type != protocol.WorkerCrashed {
			t.Errorf("got %v", out.Error)
		}
		ended++
	}
	close(stop)
	<-killed
	b.waitReady()
	b.works()
	if s := b.Stats(); s.Running != 0 || s.Queued != 0 || len(s.Identities) != 0 {
		t.Errorf("%d executions, stats %+v", ended, s)
	}
}
