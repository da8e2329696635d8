package pool

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/executord/executord/ipc/executor"
	"github.com/executord/executord/ipc/protocol"
)

// job is an execution on a goroutine of its own.
type job struct {
	cancel  context.CancelCauseFunc
	queued  chan int // position
	running chan struct{}
	out     *protocol.Outcome
	err     error
	done    chan struct{}
}

// start executes r, of identity.
func (b *bench) start(identity string, r executor.Request) *job {
	ctx, cancel := context.WithCancelCause(context.Background())
	j := &job{cancel: cancel, queued: make(chan int, 10), running: make(chan struct{}), done: make(chan struct{})}
	r.Identity = identity
	r.OnState = func(s protocol.State) {
		if s.State == protocol.StateQueued {
			j.queued <- s.Position
		} else {
			close(j.running)
		}
	}
	go func() {
		defer close(j.done)
		j.out, j.err = b.Execute(ctx, r)
	}()
	return j
}

// isRunning waits until j runs, isQueued until it waits.
func (j *job) isRunning(t *testing.T) {
	t.Helper()
	select {
	case <-j.running:
	case <-time.After(10 * time.Second):
		t.Fatal("does not run")
	}
}

func (j *job) isQueued(t *testing.T) int {
	t.Helper()
	select {
	case n := <-j.queued:
		return n
	case <-time.After(10 * time.Second):
		t.Fatal("is not queued")
		return 0
	}
}

// end cancels j and waits for it.
func (j *job) end() {
	j.cancel(nil)
	<-j.done
}

// TestA1RefusedAtOnce: over the limits a request is turned away at once, with a hint when to come back.
func TestA1RefusedAtOnce(t *testing.T) {
	c := testConfig()
	c.Workers, c.Queue, c.QueuePerIdentity = 2, 3, 3
	b := insideBench(t, c)
	var jobs []*job
	for i := range 5 {
		j := b.start("a", script("wait"))
		if i < 2 {
			j.isRunning(t)
		} else if got := j.isQueued(t); got != i-1 {
			t.Errorf("request %d is at %d", i, got)
		}
		jobs = append(jobs, j)
	}
	timed(t, 0, 100*time.Millisecond, func() {
		out, err := b.Execute(t.Context(), script("return 1"))
		var e *protocol.Error
		if !errors.As(err, &e) || e.Type != protocol.Overloaded || e.RetryAfterMs < 10 || out != nil {
			t.Errorf("got %+v, %v", out, err)
		}
	})
	s := b.Stats()
	if s.Running != 2 || s.Queued != 3 || s.Identities["a"] != (Load{Queued: 3, Running: 2}) || s.Totals.Overloaded != 1 {
		t.Errorf("stats %+v", s)
	}
	if b.count(Overload) != 1 {
		t.Error("no event")
	}
	for _, j := range jobs {
		j.end()
		want(t, j.out, protocol.Cancelled, "")
	}
	b.works()
}

func TestQueuePerIdentity(t *testing.T) {
	c := testConfig()
	c.Queue, c.QueuePerIdentity = 4, 1
	b := insideBench(t, c)
	runs := b.start("a", script("wait"))
	defer runs.end()
	runs.isRunning(t)
	waits := b.start("a", script("wait"))
	defer waits.end()
	waits.isQueued(t)
	r := script("return 1")
	r.Identity = "a"
	if _, err := b.Execute(t.Context(), r); !errors.Is(err, protocol.Overloaded) {
		t.Errorf("got %v", err)
	}
	other := b.start("b", script("return 1"))
	if got := other.isQueued(t); got != 2 {
		t.Errorf("the other waits at %d", got)
	}
	other.end()
}

func TestQueueTimeout(t *testing.T) {
	c := testConfig()
	c.QueueTimeout = 100 * time.Millisecond
	b := insideBench(t, c)
	busy := b.start("a", script("wait"))
	defer busy.end()
	busy.isRunning(t)
	timed(t, 100*time.Millisecond, time.Second, func() {
		if _, err := b.Execute(t.Context(), script("return 1")); !errors.Is(err, protocol.QueueTimeout) {
			t.Errorf("got %v", err)
		}
	})
	if s := b.Stats(); s.Queued != 0 || s.Totals.QueueTimeouts != 1 {
		t.Errorf("stats %+v", s)
	}
}

// TestA3NeverOverTheLimit: simultaneous requests never pass the limits, and each is answered one way or the other.
func TestA3NeverOverTheLimit(t *testing.T) {
	c := testConfig()
	c.Workers, c.Queue, c.QueuePerIdentity = 4, 20, 20
	b := insideBench(t, c)
	var live, most, ok, refused atomic.Int64
	var all sync.WaitGroup
	for i := range 500 {
		all.Go(func() {
			r := script("calls tools.echo []", "return 1")
			r.Identity = fmt.Sprint(i % 3)
			r.Call = func(context.Context, executor.ToolCall) (protocol.Value, error) {
				n := live.Add(1)
				for old := most.Load(); n > old && !most.CompareAndSwap(old, n); old = most.Load() {
				}
				time.Sleep(time.Millisecond) // long enough for others to be let in by mistake
				live.Add(-1)
				return protocol.Value("1"), nil
			}
			switch _, err := b.Execute(t.Context(), r); {
			case err == nil:
				ok.Add(1)
			case errors.Is(err, protocol.Overloaded):
				refused.Add(1)
			default:
				t.Errorf("got %v", err)
			}
		})
	}
	all.Wait()
	if most.Load() > 4 || ok.Load() < 24 || ok.Load()+refused.Load() != 500 {
		t.Errorf("%d ran at once, %d were served, %d refused", most.Load(), ok.Load(), refused.Load())
	}
	if s := b.Stats(); s.Running != 0 || s.Queued != 0 || len(s.Identities) != 0 {
		t.Errorf("stats at rest %+v", s)
	}
}

// TestA5CallersThatGiveUp: callers that give up while queued free their places.
func TestA5CallersThatGiveUp(t *testing.T) {
	b := insideBench(t, testConfig())
	busy := b.start("a", script("wait"))
	busy.isRunning(t)
	for range 20 {
		var jobs []*job
		for range 4 {
			j := b.start("a", script("return 1"))
			j.isQueued(t)
			jobs = append(jobs, j)
		}
		for _, j := range jobs {
			j.end()
			want(t, j.out, protocol.Cancelled, "")
			if j.out.Logs == nil || j.out.Stats.QueueMs <= 0 {
				t.Errorf("outcome %+v", j.out)
			}
		}
	}
	if s := b.Stats(); s.Queued != 0 || s.Running != 1 || s.Totals.Left != 80 {
		t.Errorf("stats %+v", s)
	}
	busy.end()
	for range 10 {
		b.works()
	}
}

// TestG9ManyCallersFewWorkers: how many isolates there are is the operator's number, not the callers'.
func TestG9ManyCallersFewWorkers(t *testing.T) {
	c := testConfig()
	c.Workers, c.Queue, c.QueuePerIdentity = 2, 10, 10
	b := insideBench(t, c)
	var served, refused atomic.Int64
	var all sync.WaitGroup
	for range 2100 {
		all.Go(func() {
			switch _, err := b.Execute(t.Context(), script("return 1")); {
			case err == nil:
				served.Add(1)
			case errors.Is(err, protocol.Overloaded):
				refused.Add(1)
			default:
				t.Errorf("got %v", err)
			}
		})
	}
	all.Wait()
	if served.Load() < 12 || served.Load()+refused.Load() != 2100 {
		t.Errorf("%d were served, %d refused", served.Load(), refused.Load())
	}
	if n := b.Stats().Totals.Started; n != 2 {
		t.Errorf("%d workers were started", n)
	}
}

// TestGrantedAndGone: who is granted a worker in the moment of giving up hands it on.
func TestGrantedAndGone(t *testing.T) {
	b := insideBench(t, testConfig())
	busy := b.start("a", script("wait"))
	busy.isRunning(t)
	w := newWaiter("b")
	if m, place, err := b.admit(&run{}, w); m != nil || place != 1 || err != nil {
		t.Fatalf("admitted to %v at %d, %v", m, place, err)
	}
	next := b.start("c", script("return 1"))
	next.isQueued(t)
	busy.end()
	for len(w.grant) == 0 {
		runtime.Gosched()
	}
	b.giveUp(w)
	<-next.done
	if next.err != nil || string(next.out.Value) != "1" {
		t.Errorf("next: %+v, %v", next.out, next.err)
	}
	if s := b.Stats(); s.Running != 0 || s.Totals.Left != 1 || len(s.Identities) != 0 {
		t.Errorf("stats %+v", s)
	}
}

// TestFairness: a newcomer does not wait behind all requests of somebody else.
func TestFairness(t *testing.T) {
	c := testConfig()
	c.Queue, c.QueuePerIdentity = 20, 20
	b := insideBench(t, c)
	busy := b.start("greedy", script("wait"))
	busy.isRunning(t)
	var mu sync.Mutex
	var order []string
	var jobs []*job
	add := func(identity string, position int) {
		r := script("calls tools.echo []", "return 1")
		r.Call = func(context.Context, executor.ToolCall) (protocol.Value, error) {
			mu.Lock()
			defer mu.Unlock()
			order = append(order, identity)
			return nil, nil
		}
		j := b.start(identity, r)
		if got := j.isQueued(t); got != position {
			t.Errorf("%s is told %d, want %d", identity, got, position)
		}
		jobs = append(jobs, j)
	}
	for i := range 6 {
		add("greedy", i+1)
	}
	add("modest", 2)
	add("modest", 4)
	add("third", 3)
	busy.end()
	for _, j := range jobs {
		<-j.done
	}
	if got, want := fmt.Sprint(order), "[greedy modest third greedy modest greedy greedy greedy greedy]"; got != want {
		t.Errorf("order %s, want %s", got, want)
	}
}

// TestCancelRunning: the worker is told, and its outcome has the logs so far.
func TestCancelRunning(t *testing.T) {
	b := childBench(t, testConfig())
	j := b.start("a", script("log before", "wait"))
	j.isRunning(t)
	j.cancel(errors.New("somebody pressed the button"))
	<-j.done
	want(t, j.out, protocol.Cancelled, "")
	if j.out.Error.Message != "somebody pressed the button" || len(j.out.Logs) != 1 {
		t.Errorf("outcome %+v, %v", j.out, j.out.Error)
	}
	if b.count(WorkerCrashed) != 0 {
		t.Error("a worker that obeyed was killed")
	}
	b.works()
}

// TestT20CallerLeaves: a caller that leaves stops the engine, also one that will not be told.
func TestT20CallerLeaves(t *testing.T) {
	b := childBench(t, testConfig())
	for _, last := range []string{"hang", "silent", "exit 77"} {
		j := b.start("a", script("log before", "sleep 50ms", last))
		j.isRunning(t)
		timed(t, 0, 900*time.Millisecond, j.end)
		want(t, j.out, protocol.Cancelled, "")
		b.works()
	}
}

func TestDeadContextRunsNothing(t *testing.T) {
	b := insideBench(t, testConfig())
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	out, err := b.Execute(ctx, script("return 1"))
	if err != nil {
		t.Fatal(err)
	}
	want(t, out, protocol.Cancelled, "")
}

func TestRefusesBadRequests(t *testing.T) {
	b := insideBench(t, testConfig())
	for name, c := range map[string]struct {
		change func(*executor.Request)
		want   protocol.Type
	}{
		"no code":         {func(r *executor.Request) { r.Code = "" }, protocol.InvalidCode},
		"negative limit":  {func(r *executor.Request) { r.Limits.CPUMs = -1 }, protocol.InvalidParams},
		"input no JSON":   {func(r *executor.Request) { r.Input = protocol.Value("{") }, protocol.InvalidParams},
		"provider's name": {func(r *executor.Request) { r.Providers[0].Name = "a b" }, protocol.InvalidProvider},
	} {
		r := script("return 1")
		c.change(&r)
		if _, err := b.Execute(t.Context(), r); !errors.Is(err, c.want) {
			t.Errorf("%s: got %v", name, err)
		}
	}
	big := script("return 1")
	big.Modules = map[string]protocol.ModuleSource{}
	for i := range 5 {
		big.Modules[fmt.Sprint(i)] = protocol.ModuleSource{Source: string(make([]byte, 15<<20))}
	}
	if _, err := b.Execute(t.Context(), big); !errors.Is(err, protocol.InvalidParams) {
		t.Errorf("too large: got %v", err)
	}
}

// TestC7CloseWithWorkInFlight: closing with work in flight ends all of it, and nothing is left.
func TestC7CloseWithWorkInFlight(t *testing.T) {
	c := testConfig()
	c.Workers, c.Queue, c.QueuePerIdentity = 3, 10, 10
	b := childBench(t, c)
	scripts := []executor.Request{script("wait"), script("hang"), script("silent")}
	var runs, waits []*job
	for _, r := range scripts {
		j := b.start("a", r)
		j.isRunning(t)
		runs = append(runs, j)
	}
	for range 5 {
		j := b.start("a", script("return 1"))
		j.isQueued(t)
		waits = append(waits, j)
	}
	timed(t, 0, 4*time.Second, func() {
		var all sync.WaitGroup
		for range 3 { // from several goroutines at once
			all.Go(func() {
				if err := b.Close(); err != nil {
					t.Errorf("Close: %v", err)
				}
			})
		}
		all.Wait()
	})
	for _, j := range runs {
		<-j.done
		want(t, j.out, protocol.Cancelled, "")
	}
	for _, j := range waits {
		<-j.done
		if !errors.Is(j.err, protocol.Draining) {
			t.Errorf("queued: %+v, %v", j.out, j.err)
		}
	}
	if _, err := b.Execute(t.Context(), script("return 1")); !errors.Is(err, protocol.Draining) {
		t.Errorf("after Close: %v", err)
	}
	if err := b.WaitReady(t.Context()); !errors.Is(err, protocol.Draining) {
		t.Errorf("WaitReady after Close: %v", err)
	}
	if s := b.Stats(); s.Running+s.Idle+s.Starting+s.Restoring+s.Leaving != 0 {
		t.Errorf("stats %+v", s)
	}
}

// A drain refuses what waits and what comes, and touches nothing that runs.
func TestDrainLetsRunningGoOn(t *testing.T) {
	c := testConfig()
	c.Workers, c.Queue, c.QueuePerIdentity = 2, 10, 10
	b := insideBench(t, c)
	var runs, waits []*job
	for range 2 {
		j := b.start("a", script("wait"))
		j.isRunning(t)
		runs = append(runs, j)
	}
	for range 5 {
		j := b.start("a", script("return 1"))
		j.isQueued(t)
		waits = append(waits, j)
	}
	b.Drain()
	b.Drain()
	for _, j := range waits {
		<-j.done
		if !errors.Is(j.err, protocol.Draining) {
			t.Errorf("queued: %+v, %v", j.out, j.err)
		}
	}
	if _, err := b.Execute(t.Context(), script("return 1")); !errors.Is(err, protocol.Draining) {
		t.Errorf("a new one: %v", err)
	}
	if s := b.Stats(); s.Running != 2 || s.Queued != 0 {
		t.Errorf("stats %+v", s)
	}
	for _, j := range runs {
		j.end()
		want(t, j.out, protocol.Cancelled, "")
	}
}

func TestCloseWhileStarting(t *testing.T) {
	for range 5 {
		c := testConfig()
		c.Workers = 4
		b := newBench(t, c, realOutside())
		timed(t, 0, 4*time.Second, func() { b.Close() })
	}
}

// TestLateHeartbeat: one may name the execution before, which has a greater number where the queue let it pass this one.
func TestLateHeartbeat(t *testing.T) {
	b := insideBench(t, testConfig())
	first := b.start("a", script("wait"))
	first.isRunning(t)
	var all []*job
	before := []string{"1", "-1", "2"}
	for i, identity := range []string{"a", "a", "b"} { // with numbers 2, 3 and 4, of which 3 comes last
		j := b.start(identity, script("beat "+before[i], fmt.Sprintf("return %d", i)))
		j.isQueued(t)
		all = append(all, j)
	}
	first.end()
	for i, j := range all {
		if out := j.ended(t); string(out.Value) != fmt.Sprint(i) {
			t.Errorf("%d: got %+v, %v", i, out, out.Error)
		}
	}
}

// TestTheWarmestWorkerIsNext: what follows something else runs where that ran, though others have waited longer.
func TestTheWarmestWorkerIsNext(t *testing.T) {
	c := testConfig()
	c.Workers, c.WorkerMaxExecutions = 3, 100
	b := insideBench(t, c)
	first := b.run(script("return 1")).Stats.Worker
	for range 5 {
		b.awaitStats("all idle", func(s Stats) bool { return s.Idle == 3 })
		if next := b.run(script("return 2")).Stats.Worker; next != first {
			t.Fatalf("ran on %s and then on %s", first, next)
		}
	}
}
