package pool

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/executord/executord/ipc/executor"
	"github.com/executord/executord/ipc/protocol"
	"github.com/executord/executord/ipc/worker"
)

// calling begins an invocation that plays lines.
func (b *bench) calling(session, handle string, list ...string) *job {
	ctx, cancel := context.WithCancelCause(context.Background())
	j := &job{cancel: cancel, running: make(chan struct{}), done: make(chan struct{})}
	i := lines(session, handle, list...)
	asked := make(chan struct{}, 10)
	i.Host.Call = func(ctx context.Context, _ executor.ToolCall) (protocol.Value, error) {
		asked <- struct{}{}
		<-ctx.Done()
		return nil, ctx.Err()
	}
	i.Host.OnState = func(protocol.State) {
		if !strings.HasPrefix(list[0], "call") {
			close(j.running)
		}
	}
	go func() {
		defer close(j.done)
		j.out, j.err = b.Invoke(ctx, i)
	}()
	if strings.HasPrefix(list[0], "call") {
		go func() {
			<-asked
			close(j.running)
		}()
	}
	j.isRunning(b.t.(*testing.T))
	return j
}

// ended waits for a job and returns its outcome.
func (j *job) ended(t testing.TB) *protocol.Outcome {
	t.Helper()
	select {
	case <-j.done:
	case <-time.After(20 * time.Second):
		t.Fatal("does not end")
	}
	if j.err != nil {
		t.Fatal(j.err)
	}
	return j.out
}

func TestRetainedEnds(t *testing.T) {
	for name, c := range map[string]struct {
		tune   func(*Config)
		end    func(b *bench, id string)
		reason EndReason
		why    string
	}{
		"its last handle": {nil, func(b *bench, id string) { b.Release("s", []string{id + ".2", id + ".1"}) }, EndReleased, "its handles were released"},
		"all at once":     {nil, func(b *bench, id string) { b.Release("s", []string{id}) }, EndReleased, "its handles were released"},
		"idle":            {func(c *Config) { c.RetainIdle = 50 * time.Millisecond }, nil, EndIdle, "it was idle for 50ms"},
		"its time":        {func(c *Config) { c.RetainLifetime = 50 * time.Millisecond }, nil, EndExpired, "its time of 50ms was over"},
		"the operator": {nil, func(b *bench, _ string) {
			if !b.CancelExecution(b.nameOf(1), "for room") {
				b.t.Error("cannot cancel")
			}
		}, EndCancelled, "for room"},
		"the session":   {nil, func(b *bench, _ string) { b.ReleaseSession("s") }, EndSession, "its session ended"},
		"the worker":    {nil, func(b *bench, _ string) { b.holder().proc.Kill() }, EndLost, "its worker ended: signal:SIGKILL"},
		"Ready unasked": {nil, func(b *bench, id string) { b.Invoke(b.t.Context(), lines("s", id+".1", "ready")) }, EndLost, "worker broke the contract: Ready without a reason"},
		"stop by itself": {nil, func(b *bench, id string) {
			b.Invoke(b.t.Context(), lines("s", id+".1", `stop {"type":"cpu_timeout","message":"x"}`))
		}, EndStopped, "a call into it was stopped (cpu_timeout)"},
	} {
		t.Run(name, func(t *testing.T) {
			config := retainConfig()
			if c.tune != nil {
				c.tune(&config)
			}
			b := insideBench(t, config)
			k := b.retain("s", 2)
			if c.end != nil {
				c.end(b, k.ID)
			}
			b.quiet(0)
			if got := b.Stats().Totals.RetainedEnds; got[c.reason] != 1 || len(got) != 1 {
				t.Errorf("ends %v, want %s", got, c.reason)
			}
			b.unknown("s", k.ID+".1", "ago: "+c.why)
			b.unknown("t", k.ID+".1", "no such handle")
			list := b.Execution(b.nameOf(1))
			if len(list) != 1 || list[0].Phase != Ended || list[0].Kept == nil || list[0].Kept.Why != c.why || list[0].Over.IsZero() {
				t.Errorf("record %+v", list)
			}
			if c.reason == EndLost {
				b.awaitEvents(RetainedLost, 1) // news comes after the counters
			} else if b.count(RetainedLost) != 0 {
				t.Error("told of a loss")
			}
			b.works()
		})
	}
}

// holder is the worker of the one that is retained.
func (b *bench) holder() *member {
	b.Pool.mu.Lock()
	defer b.Pool.mu.Unlock()
	for _, k := range b.Pool.retained {
		return k.m
	}
	b.t.Fatal("nothing is retained")
	return nil
}

// TestRetainedTTLOfTheRequest: it is the lesser of what the request and the service say.
func TestRetainedTTLOfTheRequest(t *testing.T) {
	c := retainConfig()
	c.RetainLifetime = time.Minute
	b := insideBench(t, c)
	for asked, want := range map[int64]int64{0: 60_000, 5: 5, 60_001: 60_000, 1 << 62: 60_000} {
		r := retaining("s", 1)
		r.Retain.TTLMs = asked
		k := b.run(r).Retained
		if k.TTLMs != want {
			t.Errorf("asked for %d ms, got %d", asked, k.TTLMs)
		}
		b.Release("s", []string{k.ID})
		b.quiet(0)
	}
}

// TestRetainedAwaitsInvocations: no end but those that cancel interrupts what is under way.
func TestRetainedAwaitsInvocations(t *testing.T) {
	for name, end := range map[string]func(b *bench, id string){
		"its handles": func(b *bench, id string) { b.Release("s", []string{id}) },
		"its time": func(b *bench, _ string) {
			b.settles("it does not expire", func(s Stats) bool { return s.Retained == 0 })
		},
		"a drain": func(b *bench, _ string) { b.Drain() },
	} {
		t.Run(name, func(t *testing.T) {
			c := retainConfig()
			c.RetainIdle = 100 * time.Millisecond // which is no end while something is under way
			if name == "its time" {
				c.RetainLifetime = 200 * time.Millisecond
			}
			b := insideBench(t, c)
			k := b.retain("s", 1)
			gate := make(chan struct{})
			i := lines("s", k.ID+".1", "call gate")
			asked := make(chan struct{})
			i.Host.Call = func(context.Context, executor.ToolCall) (protocol.Value, error) {
				close(asked)
				<-gate
				return protocol.Value("5"), nil
			}
			done := make(chan *protocol.Outcome, 1)
			go func() {
				out, err := b.Invoke(t.Context(), i)
				if err != nil {
					t.Error(err)
				}
				done <- out
			}()
			<-asked
			end(b, k.ID)
			why := "the retained execution ended"
			if name == "its time" { // and not for being idle
				why = "its time of 200ms was over"
			}
			b.unknown("s", k.ID+".1", why)
			if s := b.Stats(); s.Running != 1 {
				t.Errorf("stats %+v", s)
			}
			close(gate)
			if out := <-done; string(out.Value) != "5" || out.Retained != nil {
				t.Errorf("got %+v, retained %+v", out, out.Retained)
			}
			if name != "a drain" {
				b.quiet(0)
			}
		})
	}
}

// TestUnknownBeforeDraining: what is gone is told to be, and since when and why, also by a pool that drains or is closed.
func TestUnknownBeforeDraining(t *testing.T) {
	b := insideBench(t, retainConfig())
	released, kept := b.retain("s", 1), b.retain("s", 1)
	b.Release("s", []string{released.ID})
	for name, end := range map[string]func(){"drained": b.Drain, "closed": func() { _ = b.Close() }} {
		end()
		for handle, text := range map[string]string{
			released.ID + ".1": "its handles were released", kept.ID + ".1": "ago: the service is stopping", "x.1": "there is no such handle in this session",
		} {
			t.Run(name, func(t *testing.T) { b.unknown("s", handle, text) })
		}
	}
	if _, err := b.Execute(t.Context(), script("return 1")); !errors.Is(err, protocol.Draining) {
		t.Errorf("an execution: %v", err)
	}
}

// TestRetainedGoesOnWithNewHandles: what had no handle left gets one by what was under way.
func TestRetainedGoesOnWithNewHandles(t *testing.T) {
	b := insideBench(t, retainConfig())
	k := b.retain("s", 1)
	var out *protocol.Outcome
	i := lines("s", k.ID+".1", "more 1")
	i.Host.OnState = func(protocol.State) { b.Release("s", []string{k.ID + ".1"}) }
	out, err := b.Invoke(t.Context(), i)
	if err != nil || out.Retained == nil || out.Retained.Handles != 1 {
		t.Fatalf("got %+v, %v", out, err)
	}
	b.quiet(1)
	b.invoke("s", k.ID+".2", "return 1")
	b.Release("s", []string{k.ID + ".2"})
	b.quiet(0)
}

// TestRetainedCancels: those who end it with what is under way.
func TestRetainedCancels(t *testing.T) {
	for name, end := range map[string]func(b *bench){
		"the operator": func(b *bench) { b.CancelExecution(b.nameOf(1), "enough") },
		"the session":  func(b *bench) { b.ReleaseSession("s") },
		"the service":  func(b *bench) { _ = b.Close() },
	} {
		t.Run(name, func(t *testing.T) {
			b := insideBench(t, retainConfig())
			k := b.retain("s", 1)
			var jobs []*job
			for range 3 {
				jobs = append(jobs, b.calling("s", k.ID+".1", "call gate"))
			}
			end(b)
			for _, j := range jobs {
				want(t, j.ended(t), protocol.Cancelled, "")
			}
			if name != "the service" {
				b.quiet(0)
				b.works()
			}
			_ = b.Close() // all is told then
			if b.count(WorkerStopped) != 1 || b.count(RetainedLost) != 0 {
				t.Errorf("told of %d workers that were stopped, and %d losses", b.count(WorkerStopped), b.count(RetainedLost))
			}
		})
	}
}

// TestStoppedInvocation: its isolate is not used again. Others under way are cancelled, and their worker is killed.
func TestStoppedInvocation(t *testing.T) {
	for name, c := range map[string]struct {
		lines []string
		typ   protocol.Type
		ended bool // the worker ended with it
	}{
		"by the worker": {[]string{`stop {"type":"tool_limit","message":"x"}`}, protocol.ToolLimit, false},
		"last word":     {[]string{"word wall_timeout"}, protocol.WallTimeout, true},
		"by the pool":   {[]string{"deaf"}, protocol.WallTimeout, true},
		"its caller":    {[]string{"wait"}, protocol.Cancelled, false},
		"deaf to it":    {[]string{"deaf"}, protocol.Cancelled, true},
	} {
		t.Run(name, func(t *testing.T) {
			b := insideBench(t, retainConfig())
			k := b.retain("s", 1)
			other := b.calling("s", k.ID+".1", "call gate")
			i := lines("s", k.ID+".1", c.lines...)
			i.Execution = "stopped"
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			if name == "by the pool" {
				i.Limits.TotalMs = 50
				c.typ = protocol.TotalTimeout // the wall clock stands while the other has a call under way
			}
			if c.typ == protocol.Cancelled {
				i.Host.OnState = func(protocol.State) { time.AfterFunc(10*time.Millisecond, cancel) }
			}
			out, err := b.Invoke(ctx, i)
			if err != nil {
				t.Fatal(err)
			}
			want(t, out, c.typ, "")
			if out.Retained != nil {
				t.Errorf("retained %+v", out.Retained)
			}
			out = other.ended(t)
			want(t, out, protocol.Cancelled, "")
			if text := fmt.Sprintf("the retained execution ended: another call into it was stopped (%s)", c.typ); out.Error.Message != text {
				t.Errorf("the other: %q", out.Error.Message)
			}
			b.quiet(0)
			b.unknown("s", k.ID+".1", "a call into it was stopped")
			b.works()
			if s := b.Stats().Totals; s.Crashed != 0 || s.Stopped != 1 || s.RetainedEnds[EndStopped] != 1 {
				t.Errorf("totals %+v", s)
			}
			b.awaitEvents(WorkerStopped, 1)
			if d := b.lastDeath(); c.ended && (d.Execution != "stopped" || d.Type != c.typ) {
				t.Errorf("told that %q (%s) ended its worker", d.Execution, d.Type)
			}
			_ = b.Close() // all is told then
			if b.count(RetainedLost) != 0 {
				t.Error("what was stopped is told of as lost")
			}
		})
	}
}

// TestCrashWithInvocations: a worker that dies takes all of them along, and each hears of it.
func TestCrashWithInvocations(t *testing.T) {
	b := insideBench(t, retainConfig())
	k := b.retain("s", 1)
	one, two := b.calling("s", k.ID+".1", "call gate"), b.calling("s", k.ID+".1", "call gate")
	b.holder().proc.Kill()
	for _, j := range []*job{one, two} {
		want(t, j.ended(t), protocol.WorkerCrashed, "signal:SIGKILL")
	}
	b.quiet(0)
	b.unknown("s", k.ID+".1", "its worker ended: signal:SIGKILL")
	if s := b.Stats().Totals; s.Crashed != 1 || s.Endings[protocol.WorkerCrashed] != 2 {
		t.Errorf("totals %+v", s)
	}
}

// TestBreachWithInvocations: the limit that a worker let one pass is the type of that one's end.
func TestBreachWithInvocations(t *testing.T) {
	b := insideBench(t, retainConfig())
	k := b.retain("s", 1)
	other := b.calling("s", k.ID+".1", "call gate")
	i := lines("s", k.ID+".1", fmt.Sprintf("more %d", worker.MaxHandles))
	i.Execution = "culprit"
	out, err := b.Invoke(t.Context(), i)
	if err != nil {
		t.Fatal(err)
	}
	want(t, out, protocol.ResultUnserializable, "")
	want(t, other.ended(t), protocol.Cancelled, "")
	b.awaitEvents(RetainedLost, 1)
	if d := b.lastDeath(); d.Execution != "culprit" || d.Type != protocol.ResultUnserializable {
		t.Errorf("told %+v", d)
	}
}

// TestCulprit: one of several invocations is to blame, and for a crash none.
func TestCulprit(t *testing.T) {
	condemned := func(r *run) { r.verdict = stopped(protocol.CPUTimeout, r.limits) }
	limit := func(id uint64) *worker.LastWord { return &worker.LastWord{ID: id, Type: string(protocol.MemoryLimit)} }
	for name, c := range map[string]struct {
		condemned, blame int // 0 for none
		word             *worker.LastWord
		err              error
		want             int
	}{
		"nobody knows":                {err: io.EOF},
		"what the pool saw":           {condemned: 2, blame: 3, word: limit(1), err: overLimit(protocol.ToolLimit, "x"), want: 2},
		"whose frame passed a limit":  {blame: 3, word: limit(1), err: overLimit(protocol.ToolLimit, "x"), want: 3},
		"found while nothing ran":     {blame: 4, err: overLimit(protocol.MemoryLimit, "x"), want: 1},
		"another breach":              {blame: 3, err: violationf("x")},
		"a last word":                 {blame: 3, word: limit(2), err: io.EOF, want: 2},
		"one on none of them":         {word: limit(9), err: io.EOF},
		"one that names nobody":       {word: limit(0), err: io.EOF},
		"one of a crash":              {word: &worker.LastWord{ID: 2, Type: string(protocol.WorkerCrashed)}, err: io.EOF},
		"one that may not be claimed": {word: &worker.LastWord{ID: 2, Type: string(protocol.Unauthorized)}, err: io.EOF},
	} {
		all := []*run{{id: 1}, {id: 2}, {id: 3}, {id: 4}}
		m := &member{word: c.word}
		if c.condemned > 0 {
			condemned(all[c.condemned-1])
		}
		if c.blame > 0 {
			m.blame = all[c.blame-1]
		}
		runs := all[:3]
		got := m.culprit(runs, c.err)
		if got != c.want-1 {
			t.Errorf("%s: %d, want %d", name, got, c.want-1)
		}
		if toFront(runs, got); c.want > 0 && (runs[0].id != uint64(c.want) || runs[0].id+runs[1].id+runs[2].id != 6 || runs[1].id > runs[2].id) {
			t.Errorf("%s: %d, %d, %d", name, runs[0].id, runs[1].id, runs[2].id)
		}
	}
	if got := (&member{word: limit(1)}).culprit([]*run{{id: 1}}, io.EOF); got != -1 {
		t.Errorf("of one: %d", got)
	}
}

// TestSharedClock: the guest's clock stands for all invocations while one of them waits for its host.
func TestSharedClock(t *testing.T) {
	now := time.Unix(1000, 0)
	at := func(d time.Duration) time.Time { return now.Add(d) }
	var g guest
	l := testConfig().Limits
	l.WallMs = 100
	one, two := newLedger(l, 100, newLogbook(l, nil)), newLedger(l, 100, newLogbook(l, nil))
	one.share(&g)
	two.share(&g)
	one.enter(at(0))
	two.enter(at(10 * time.Millisecond))
	call := &hostCall{kind: toolKind, number: 1, size: 60}
	if _, err := one.hostCall(at(20*time.Millisecond), call); err != nil {
		t.Fatal(err)
	}
	if due, typ := two.due(); typ != protocol.TotalTimeout {
		t.Errorf("due %s as %s while the other waits", due, typ)
	}
	refused, _ := two.hostCall(at(30*time.Millisecond), &hostCall{kind: toolKind, number: 2, size: 60})
	if refused == nil {
		t.Error("the bytes of both are not counted together")
	}
	if used := two.account(at(40 * time.Millisecond)); used.guest != 10*time.Millisecond { // with a call that has no answer
		t.Errorf("the second had %s", used.guest)
	}
	one.answered(at(1020*time.Millisecond), call, true)
	two.answered(at(1025*time.Millisecond), &hostCall{kind: toolKind, size: 60, record: &protocol.Call{}}, true) // too late to count
	if due, typ := one.due(); typ != protocol.WallTimeout || due != at(1100*time.Millisecond) {
		t.Errorf("due at %s as %s", due.Sub(now), typ)
	}
	if used := one.account(at(1050 * time.Millisecond)); used.guest != 50*time.Millisecond {
		t.Errorf("the first had %s", used.guest)
	}
	if g.waiting != 0 || g.inFlight != 0 {
		t.Errorf("%d calls with %d bytes are left", g.waiting, g.inFlight)
	}
}

// TestRetainedMemory: what is retained is held to its limits while nothing runs in it.
func TestRetainedMemory(t *testing.T) {
	c := retainConfig()
	c.Launcher = &inside{}
	o := realOutside()
	var mu sync.Mutex
	var meters []*dial
	o.meter = func(int) (meter, error) {
		mu.Lock()
		defer mu.Unlock()
		meters = append(meters, &dial{})
		return meters[len(meters)-1], nil
	}
	b := newBench(t, c, o)
	b.waitReady()
	first := meters[0]
	k := b.retain("s", 1)
	first.resident.Store(mostMemory(b.config().Limits) + 1)
	b.settles("it is still there", func(s Stats) bool { return s.Retained == 0 })
	b.awaitEvents(RetainedLost, 1)
	b.unknown("s", k.ID+".1", "the program needed more memory")
	if s := b.Stats().Totals; s.Stopped != 1 || s.Crashed != 0 {
		t.Errorf("totals %+v", s)
	}
}

// TestRestoresWhereNobodyTookItsPlace: a worker that is let go serves on while no other can be started.
func TestRestoresWhereNobodyTookItsPlace(t *testing.T) {
	l := &inside{}
	c := retainConfig()
	c.Launcher = l
	o := realOutside()
	o.meter = func(int) (meter, error) { return &dial{}, nil }
	b := newBench(t, c, o)
	b.waitReady()
	name := b.Workers()[0].Name
	l.fail.Store(true)
	k := b.retain("s", 1)
	b.Release("s", []string{k.ID})
	if out := b.run(script("return 5")); string(out.Value) != "5" || out.Stats.Worker != name {
		t.Errorf("got %+v", out)
	}
	l.fail.Store(false)
	b.quiet(0)
	if n := b.Stats().Totals.Retired; n > 1 {
		t.Errorf("%d retired", n)
	}
}

// TestLastExecutionOfAWorker: one that has done all it may goes once it is not retained any more, and not before.
func TestLastExecutionOfAWorker(t *testing.T) {
	c := retainConfig()
	c.WorkerMaxExecutions = 1
	b := insideBench(t, c)
	k := b.retain("s", 1)
	b.works()
	name := b.invoke("s", k.ID+".1", "return 1").Stats.Worker
	if name != b.invoke("s", k.ID+".1", "return 1").Stats.Worker {
		t.Error("another worker")
	}
	b.Release("s", []string{k.ID})
	b.settles("it is still there", func(s Stats) bool { return s.Totals.Retired == 2 && s.Leaving == 0 })
	for _, w := range b.Workers() {
		if w.Name == name {
			t.Errorf("worker %+v", w)
		}
	}
}

// TestRetainedAfterReleaseSession: what the session had under way when it ended retains nothing.
func TestRetainedAfterReleaseSession(t *testing.T) {
	b := insideBench(t, retainConfig())
	r := retaining("s", 1)
	r.Code = "sleep 100ms\n" + r.Code
	j := b.start("me", r)
	j.isRunning(t)
	b.ReleaseSession("s")
	if out := j.ended(t); out.Retained != nil || out.Error != nil {
		t.Errorf("got %+v", out)
	}
	b.quiet(0)
	if got := b.Stats().Totals.RetainedEnds[EndSession]; got != 1 {
		t.Errorf("%d ends", got)
	}
	if list := b.Execution(b.nameOf(1)); len(list) != 1 || list[0].Phase != Ended {
		t.Errorf("records %+v", list)
	}
}

// TestCancelCrossesRetainedResult: what the operator cancelled is not retained, wherever its result was by then.
func TestCancelCrossesRetainedResult(t *testing.T) {
	for name, crosses := range map[string]func(b *bench, j *job, id string) bool{
		"on its way": func(b *bench, _ *job, id string) bool { return b.CancelExecution(id, "enough") },
		"being read": func(b *bench, j *job, id string) bool {
			b.records.mu.Lock()
			r := b.records.named(id)[0]
			b.records.mu.Unlock()
			b.Pool.mu.Lock()
			unlock := sync.OnceFunc(b.Pool.mu.Unlock)
			defer unlock()
			j.cancel(nil) // has the result sent
			awaits(t, "the result is not read", func() bool {
				r.mu.Lock()
				defer r.mu.Unlock()
				return r.stays
			})
			told := make(chan bool)
			go func() { told <- b.CancelExecution(id, "enough") }()
			awaits(t, "the order is not given", func() bool { return r.ordered.Load() != nil })
			unlock()
			return <-told
		},
	} {
		t.Run(name, func(t *testing.T) {
			b := insideBench(t, retainConfig())
			r := retaining("s", 1)
			r.Code = "calls tools.echo [7]\nlog waits\nheedless\n" + r.Code
			waits := make(chan struct{})
			r.OnLog = func(protocol.Log) { close(waits) }
			j := b.start("me", r)
			<-waits
			if !crosses(b, j, b.nameOf(1)) {
				t.Error("not cancelled")
			}
			out := j.ended(t)
			want(t, out, protocol.Cancelled, "")
			if out.Error.Message != "enough" || out.Retained != nil || len(out.Calls) != 1 {
				t.Errorf("got %+v, calls %v", out, out.Calls)
			}
			b.quiet(0)
			b.works()
			if s := b.Stats().Totals; s.RetainedEnds[EndCancelled] != 1 || s.Endings[protocol.Cancelled] != 1 {
				t.Errorf("totals %+v", s)
			}
			if list := b.Execution(b.nameOf(1)); len(list) != 1 || list[0].Phase != Ended || list[0].Type != protocol.Cancelled {
				t.Errorf("records %+v", list)
			}
		})
	}
}

// awaits waits for something to be so.
func awaits(t *testing.T, otherwise string, is func() bool) {
	t.Helper()
	for deadline := time.Now().Add(20 * time.Second); !is(); time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatal(otherwise)
		}
	}
}

// TestReleaseCrossesCall: a worker that heard of a release before the call answers that the handle is gone, and that ends this
// call only.
func TestReleaseCrossesCall(t *testing.T) {
	b := insideBench(t, retainConfig())
	k := b.retain("s", 2)
	other := make(chan struct{})
	under := lines("s", k.ID+".1", "call gate")
	asked := make(chan struct{})
	under.Host.Call = func(context.Context, executor.ToolCall) (protocol.Value, error) {
		close(asked)
		<-other
		return protocol.Value("5"), nil
	}
	done := make(chan *protocol.Outcome, 1)
	go func() {
		out, err := b.Invoke(t.Context(), under)
		if err != nil {
			t.Error(err)
		}
		done <- out
	}()
	<-asked
	crossed := lines("s", k.ID+".2", `throw {"type":"handle_unknown","message":"the handle was released"}`)
	crossed.Host.OnState = func(protocol.State) { b.Release("s", []string{k.ID + ".2"}) }
	out, err := b.Invoke(t.Context(), crossed)
	if out != nil || !errors.Is(err, protocol.HandleUnknown) || !strings.Contains(err.Error(), "the handle was released") {
		t.Errorf("got %+v, %v", out, err)
	}
	close(other)
	if out := <-done; out == nil || string(out.Value) != "5" || out.Retained == nil {
		t.Errorf("the other came to %+v", out)
	}
	b.quiet(1)
	b.invoke("s", k.ID+".1", "return 1")
	crossed.Handle = k.ID + ".1" // the last one: nothing is left after the call
	crossed.Host.OnState = func(protocol.State) { b.Release("s", []string{k.ID + ".1"}) }
	if _, err := b.Invoke(t.Context(), crossed); !errors.Is(err, protocol.HandleUnknown) {
		t.Errorf("got %v", err)
	}
	b.quiet(0)
	b.unknown("s", k.ID+".1", "its handles were released")
	if s := b.Stats().Totals; s.Crashed != 0 || s.RetainedEnds[EndReleased] != 1 {
		t.Errorf("totals %+v", s)
	}
}

func TestTenThousandHandles(t *testing.T) {
	b := insideBench(t, retainConfig())
	const n = 10_000
	k := b.retain("s", n)
	for from := 1; from <= n; from += 4000 {
		var list []string
		for i := from; i < min(from+4000, n); i++ {
			list = append(list, fmt.Sprintf("%s.%d", k.ID, i))
		}
		if got := b.Release("s", list); got != len(list) {
			t.Fatalf("%d of %d released", got, len(list))
		}
		if got := b.Release("s", list); got != 0 {
			t.Fatalf("%d released again", got)
		}
	}
	if out := b.invoke("s", fmt.Sprintf("%s.%d", k.ID, n), "released"); string(out.Value) != fmt.Sprint(n-1) {
		t.Errorf("the worker heard of %s", out.Value)
	}
	b.quiet(1)
	if got := b.Release("s", []string{fmt.Sprintf("%s.%d", k.ID, n)}); got != 1 {
		t.Errorf("%d released", got)
	}
	b.quiet(0)
}

// TestReleaseOfUnknownHandles: nothing is made for each of them while the pool's lock is held.
func TestReleaseOfUnknownHandles(t *testing.T) {
	b := insideBench(t, retainConfig())
	k := b.retain("s", 1)
	var list []string
	for i := range protocol.MaxReleased / 2 {
		list = append(list, fmt.Sprintf("nobody.%d", i+1), fmt.Sprintf("%s.%d", k.ID, i+2))
	}
	allocations := testing.AllocsPerRun(10, func() {
		if n := b.Release("s", list); n != 0 {
			t.Fatalf("%d released", n)
		}
	})
	if allocations > 100 { // of others too, while it runs
		t.Errorf("%v allocations", allocations)
	}
}

// TestHostileRetained: each breach costs the worker its life, and the program its execution.
func TestHostileRetained(t *testing.T) {
	for name, c := range map[string]struct {
		ask    bool
		code   string
		typ    protocol.Type
		reason string
	}{
		"unasked":          {false, "retain 1 []", protocol.WorkerCrashed, "protocol"},
		"without a handle": {true, "retain 0 []", protocol.WorkerCrashed, "protocol"},
		"too many":         {true, fmt.Sprintf("retain %d []", worker.MaxHandles+1), protocol.ResultUnserializable, ""},
		"an error":         {true, `retain-error 1 {"type":"exception","message":"x"}`, protocol.WorkerCrashed, "protocol"},
		"2^64 - 1":         {true, "retain 18446744073709551615 []", protocol.ResultUnserializable, ""},
	} {
		t.Run(name, func(t *testing.T) {
			b := insideBench(t, retainConfig())
			r := retaining("s", 1)
			r.Code = c.code
			if !c.ask {
				r.Retain = nil
			}
			want(t, b.run(r), c.typ, c.reason)
			b.quiet(0)
			b.works()
		})
	}
}

func TestHostileInvocation(t *testing.T) {
	for name, c := range map[string]struct {
		line string
		typ  protocol.Type
	}{
		"as many as there may be":    {fmt.Sprintf("more %d", worker.MaxHandles-1), ""},
		"more than there may be":     {fmt.Sprintf("more %d", worker.MaxHandles), protocol.ResultUnserializable},
		"handles that overflow":      {"more 18446744073709551610", protocol.ResultUnserializable},
		"fewer handles":              {"fewer 1", protocol.WorkerCrashed},
		"the result of another":      {"resultfor 1", protocol.WorkerCrashed},
		"Ready":                      {"ready", protocol.WorkerCrashed},
		"an error of none":           {`throw {"type":"overloaded","message":"x"}`, protocol.WorkerCrashed},
		"cancelled by nobody":        {`stop {"type":"cancelled","message":"x"}`, protocol.WorkerCrashed},
		"stopped, and goes on":       {`throw {"type":"cpu_timeout","message":"x"}`, protocol.WorkerCrashed},
		"an exception that ends it":  {`stop {"type":"exception","message":"x"}`, protocol.WorkerCrashed},
		"a handle that is not there": {`throw {"type":"handle_unknown","message":"x"}`, protocol.HandleUnknown},
		"an argument":                {`throw {"type":"invalid_params","message":"x","field":"args"}`, protocol.InvalidParams},
		"a parameter of no worker":   {`throw {"type":"invalid_params","message":"x","field":"method"}`, protocol.WorkerCrashed},
		"another parameter":          {`throw {"type":"invalid_params","message":"x","field":"input"}`, protocol.WorkerCrashed},
	} {
		t.Run(name, func(t *testing.T) {
			b := insideBench(t, retainConfig())
			k := b.retain("s", 1)
			out, err := b.Invoke(t.Context(), lines("s", k.ID+".1", c.line))
			typ := typeOf(out)
			if err != nil {
				typ = protocol.AsError(err).Type
			}
			if typ != c.typ {
				t.Errorf("got %+v, %v, want %s", out, err, c.typ)
			}
			left := 1
			if c.typ == protocol.WorkerCrashed || c.typ == protocol.ResultUnserializable {
				left = 0
			}
			b.quiet(left)
			b.works()
		})
	}
}

// TestHostileAfterResult: a second result of an invocation is a breach, as is a line after the worker was let go.
func TestHostileAfterResult(t *testing.T) {
	b := insideBench(t, retainConfig())
	k := b.retain("s", 1)
	b.invoke("s", k.ID+".1", "twice")
	b.quiet(0)
	b.unknown("s", k.ID+".1", "worker broke the contract")
}

func TestHostileAfterItWasLetGo(t *testing.T) {
	l := &inside{mode: "late"}
	c := retainConfig()
	c.Launcher = l
	o := realOutside()
	o.meter = func(int) (meter, error) { return &dial{}, nil }
	late := newBench(t, c, o)
	late.waitReady()
	l.fail.Store(true) // so that it is told to make itself ready
	k := late.retain("s", 1)
	late.Release("s", []string{k.ID})
	late.awaitEvents(WorkerCrashed, 1)
	if d := late.lastDeath(); !strings.Contains(d.Detail, "worker.Log for execution") {
		t.Errorf("got %+v", d)
	}
	l.fail.Store(false)
	late.quiet(0)
}

func TestTombs(t *testing.T) {
	var list tombs
	for i := range 3 * keptTombs {
		list.add(tomb{id: fmt.Sprint(i)})
	}
	if len(list.ring) != keptTombs || len(list.byID) != keptTombs {
		t.Fatalf("%d, %d", len(list.ring), len(list.byID))
	}
	for i := 2 * keptTombs; i < 3*keptTombs; i++ {
		if at, is := list.byID[fmt.Sprint(i)]; !is || list.ring[at].id != fmt.Sprint(i) {
			t.Fatalf("tomb %d is at %d, %v", i, at, is)
		}
	}
}
