package pool

import (
	"context"
	"fmt"
	"runtime"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/executord/executord/ipc/protocol"
)

// How long what is retained stays, on the model's clock.
const (
	modelIdle = 15 * time.Second
	modelLife = 40 * time.Second
)

// TestRetainedModel is TestAdmissionModel for what is retained.
func TestRetainedModel(t *testing.T) {
	before := runtime.NumGoroutine()
	rapid.Check(t, func(rt *rapid.T) {
		m := newModel(t, rt)
		defer m.end()
		actions := map[string]func(*rapid.T){
			"submit": m.submit, "give up": m.giveUp, "release": m.release, "idle": m.idles, "lose": m.lose, "session": m.session,
			"disconnect": m.disconnect, "retire": m.retire, "crash": m.crash, "deadline": m.deadline, "drain": m.drain, "": m.compare,
		}
		for i := range 24 { // more often than what ends them
			actions[fmt.Sprint("use ", i)] = m.use
		}
		actions["pass"], actions["pass 2"] = m.pass, m.pass
		rt.Repeat(actions)
	})
	noLeak(t, before, openFiles(t))
}

// use does something with what is retained, as far as anything is.
func (m *model) use(rt *rapid.T) {
	moves := []func(*rapid.T){m.submit}
	if m.places > 0 {
		moves = []func(*rapid.T){m.retain}
	}
	if len(m.running) > 0 {
		moves = append(moves, m.answer)
	}
	callable := func(k *holding) bool { return !k.over && k.handles > 0 }
	if slices.ContainsFunc(m.kept, callable) {
		moves = append(moves, m.invoke, m.invoke)
	}
	if slices.ContainsFunc(m.kept, func(k *holding) bool { return len(k.calls) > 0 }) {
		moves = append(moves, m.returns, m.returns)
	}
	rapid.SampledFrom(moves).Draw(rt, "move")(rt)
}

// holding is a retained execution under the model's eye. It begins with two handles.
type holding struct {
	id, identity, worker string
	since, used          time.Duration
	handles              int // from the first on that many were not released
	calls                []*request
	over                 bool // it ends after its calls
	due                  bool // its worker was to be replaced before
}

// busy is how many run, as workers are counted.
func (m *model) busy() int {
	n := len(m.running)
	for _, k := range m.kept {
		n += min(len(k.calls), 1)
	}
	return n
}

// crowd is how many of an identity, or of all, run as those who wait are counted with them: what calls into a retained
// execution is left out where it is beyond the workers, or beyond all but one while no execution runs.
func (m *model) crowd(identity string) int {
	executions := 0
	for _, r := range m.running {
		if identity == "" || r.identity == identity {
			executions++
		}
	}
	if executions == 0 {
		return min(m.called(identity), m.workers-1)
	}
	return max(executions, min(executions+m.called(identity), m.workers))
}

// called is how many of what an identity, or all, retain something calls.
func (m *model) called(identity string) (n int) {
	for _, k := range m.kept {
		if (identity == "" || k.identity == identity) && len(k.calls) > 0 {
			n++
		}
	}
	return n
}

// room tells whether one more execution may run: one always may.
func (m *model) room() bool {
	return len(m.running) == 0 || len(m.running)+m.called("") < m.workers
}

// taken is how many places an identity, or all, have.
func (m *model) taken(identity string) (n int) {
	for _, r := range m.everybody() {
		if r.retains && (identity == "" || r.identity == identity) {
			n++
		}
	}
	for _, k := range m.kept {
		if identity == "" || k.identity == identity {
			n++
		}
	}
	return n
}

func (m *model) callingNow() int {
	m.bench.Pool.mu.Lock()
	defer m.bench.Pool.mu.Unlock()
	return m.bench.Pool.calling
}

// placesTaken is what the pool says of them, -1 where it contradicts itself.
func (m *model) placesTaken() int {
	m.bench.Pool.mu.Lock()
	defer m.bench.Pool.mu.Unlock()
	n := 0
	for _, each := range m.bench.placesOf {
		n += each
	}
	if all := len(m.bench.reserved) + m.bench.places; all != n {
		return -1
	}
	return n
}

// retained counts those that can be called.
func (m *model) retained() (n int) {
	for _, k := range m.kept {
		if !k.over {
			n++
		}
	}
	return n
}

// retain sends a request that wants to be retained.
func (m *model) retain(rt *rapid.T) {
	if m.places == 0 {
		rt.Skip("nothing is retained")
	}
	r := m.request(rapid.SampledFrom([]string{"a", "b", "c"}).Draw(rt, "identity"))
	r.retains = true
	s := script("calls tools.gate []", fmt.Sprintf("retain 2 %d", r.number))
	s.Execution, s.Call = fmt.Sprint(r.number), r.answer
	s.Retain, s.Session = &protocol.Retain{}, "of "+r.identity
	m.send(r, s)
}

// keeps wants that r, which came to its value, is retained.
func (m *model) keeps(r *request) {
	m.ended.Retained++
	if r.forsaken {
		m.ended.RetainedEnds[EndSession]++
		if r.out.Retained != nil {
			m.rt.Fatalf("request %d is retained for a session that is gone", r.number)
		}
		return
	}
	if r.out.Retained == nil || r.out.Retained.Handles != 2 {
		m.rt.Fatalf("request %d is not retained: %+v", r.number, r.out)
	}
	m.kept = append(m.kept, &holding{
		id: r.out.Retained.ID, identity: r.identity, worker: r.out.Stats.Worker, since: m.now(), used: m.now(), handles: 2, due: r.retired,
	})
}

// pickKept draws one that can be called.
func (m *model) pickKept(rt *rapid.T) *holding {
	list := slices.DeleteFunc(slices.Clone(m.kept), func(k *holding) bool { return k.over })
	if len(list) == 0 {
		rt.Skip("there is none")
	}
	return rapid.SampledFrom(list).Draw(rt, "retained")
}

// invoke calls a handle, and wants it to run at once, however many do.
func (m *model) invoke(rt *rapid.T) {
	k := m.pickKept(rt)
	if k.handles == 0 {
		rt.Skip("it has no handles")
	}
	r := m.request(k.identity)
	i := lines("of "+k.identity, k.id+".1", "call gate")
	i.Execution, i.Limits = fmt.Sprint(r.number), protocol.Limits{TotalMs: maxMs, WallMs: maxMs}
	i.Host.Identity, i.Host.Call = k.identity, r.answer
	ctx, cancel := context.WithCancelCause(context.Background())
	r.job = &job{cancel: cancel, done: make(chan struct{})}
	go func() {
		defer close(r.job.done)
		r.job.out, r.job.err = m.bench.Invoke(ctx, i)
	}()
	k.calls = append(k.calls, r)
	select {
	case <-r.asked:
	case <-r.done:
		m.rt.Fatalf("invocation %d ended with %+v, %v", r.number, r.out, r.err)
	case <-time.After(patience):
		m.rt.Fatalf("invocation %d does not run; stats %+v", r.number, m.bench.Stats())
	}
}

// pickCall draws one that something calls.
func (m *model) pickCall(rt *rapid.T) (*holding, *request) {
	list := slices.DeleteFunc(slices.Clone(m.kept), func(k *holding) bool { return len(k.calls) == 0 })
	if len(list) == 0 {
		rt.Skip("there is none")
	}
	k := rapid.SampledFrom(list).Draw(rt, "retained")
	return k, pick(rt, k.calls)
}

// returned wants that an invocation came to that.
func (m *model) returned(k *holding, r *request, typ protocol.Type) {
	m.ran(r, typ)
	m.ended.Invocations++
	k.calls = slices.DeleteFunc(k.calls, func(o *request) bool { return o == r })
	k.used = m.now()
}

// returns lets an invocation end with its value.
func (m *model) returns(rt *rapid.T) {
	k, r := m.pickCall(rt)
	close(r.gate)
	m.returned(k, r, "")
	switch stays := !k.over && (k.handles > 0 || len(k.calls) > 0); {
	case (r.out.Retained != nil) != stays:
		m.rt.Fatalf("invocation %d says it is retained: %+v", r.number, r.out.Retained)
	case len(k.calls) > 0:
	case k.over:
		m.free(k)
	case k.handles == 0:
		m.gone(k, EndReleased)
	}
	m.fill()
}

// giveUp has the caller of an invocation give up, which ends what is retained.
func (m *model) giveUp(rt *rapid.T) {
	k, r := m.pickCall(rt)
	r.job.cancel(nil)
	m.stopped(k, EndStopped)
	m.fill()
}

// stopped wants that all invocations of k end as cancelled. Where there are several their worker is killed.
func (m *model) stopped(k *holding, reason EndReason) {
	if len(k.calls) > 1 {
		m.ended.Stopped++
	} else {
		m.ended.Retired++
	}
	for _, r := range slices.Clone(k.calls) {
		m.returned(k, r, protocol.Cancelled)
	}
	if !k.over {
		m.ended.RetainedEnds[reason]++
	}
	m.forget(k)
}

// gone wants that k ends, for which its worker goes: another took its place.
func (m *model) gone(k *holding, reason EndReason) {
	m.ended.RetainedEnds[reason]++
	m.free(k)
}

func (m *model) free(k *holding) {
	m.ended.Retired++
	m.forget(k)
}

func (m *model) forget(k *holding) {
	m.kept = slices.DeleteFunc(m.kept, func(o *holding) bool { return o == k })
	if _, err := m.bench.Invoke(context.Background(), lines("of "+k.identity, k.id+".1", "return 1")); err == nil {
		m.rt.Fatalf("what ended can still be called")
	}
}

// release gives up one handle, or all.
func (m *model) release(rt *rapid.T) {
	k := m.pickKept(rt)
	handle, count := fmt.Sprintf("%s.%d", k.id, k.handles), min(k.handles, 1)
	if rapid.Bool().Draw(rt, "all") {
		handle, count = k.id, k.handles
	}
	if n := m.bench.Release("of "+k.identity, []string{handle, handle}); n != count {
		m.rt.Fatalf("%d released, want %d", n, count)
	}
	k.handles -= count
	switch {
	case handle == k.id && len(k.calls) > 0:
		k.over = true
		m.ended.RetainedEnds[EndReleased]++
	case len(k.calls) == 0 && k.handles == 0:
		m.gone(k, EndReleased)
	}
}

// idles moves the clock until the next that is retained ends.
func (m *model) idles(*rapid.T) {
	next := time.Duration(-1)
	for _, k := range m.kept {
		if due := m.endOf(k); !k.over && (next < 0 || due < next) {
			next = due
		}
	}
	if next < 0 {
		m.rt.Skip("nothing is retained")
	}
	m.advance(max(0, next-m.now()))
}

// pass moves the clock.
func (m *model) pass(rt *rapid.T) {
	m.advance(time.Duration(rapid.IntRange(1, 9).Draw(rt, "seconds")) * time.Second)
}

// endOf is when k ends if nothing happens.
func (m *model) endOf(k *holding) time.Duration {
	if len(k.calls) == 0 {
		return min(k.used+modelIdle, k.since+modelLife)
	}
	return k.since + modelLife
}

// expired ends k where its time has come.
func (m *model) expired(k *holding) {
	reason := EndIdle
	switch {
	case k.over || m.endOf(k) > m.now():
		return
	case k.since+modelLife <= m.now():
		reason = EndExpired
	}
	m.awaits("what is due is still there", func() bool { return m.bench.retained[k.id] == nil })
	if len(k.calls) > 0 {
		k.over = true
		m.ended.RetainedEnds[reason]++
		return
	}
	m.gone(k, reason)
}

// awaits waits for something that the pool's lock guards.
func (m *model) awaits(otherwise string, is func() bool) {
	for deadline := time.Now().Add(patience); ; time.Sleep(100 * time.Microsecond) {
		m.bench.Pool.mu.Lock()
		got := is()
		m.bench.Pool.mu.Unlock()
		if got {
			return
		}
		if time.Now().After(deadline) {
			m.rt.Fatalf("%s; stats %+v", otherwise, m.bench.Stats())
		}
	}
}

// lose kills the worker of one that is retained.
func (m *model) lose(rt *rapid.T) {
	if len(m.kept) == 0 {
		rt.Skip("there is none")
	}
	k := rapid.SampledFrom(m.kept).Draw(rt, "retained")
	m.holder(k).proc.Kill()
	m.ended.Crashed++
	for _, r := range slices.Clone(k.calls) {
		m.returned(k, r, protocol.WorkerCrashed)
	}
	if !k.over {
		m.ended.RetainedEnds[EndLost]++
	}
	m.awaits("a dead worker is still there", func() bool { return m.bench.retained[k.id] == nil })
	m.forget(k)
	m.fill()
}

// holder is the worker of k.
func (m *model) holder(k *holding) *member {
	m.bench.Pool.mu.Lock()
	defer m.bench.Pool.mu.Unlock()
	for w := range m.bench.members {
		if w.name == k.worker {
			return w
		}
	}
	m.rt.Fatalf("there is no worker %s", k.worker)
	return nil
}

// session ends all that one caller retains, and what it has under way retains nothing.
func (m *model) session(rt *rapid.T) {
	identity := rapid.SampledFrom([]string{"a", "b", "c"}).Draw(rt, "identity")
	m.bench.ReleaseSession("of " + identity)
	for _, r := range m.everybody() {
		r.forsaken = r.forsaken || r.retains && r.identity == identity
	}
	for _, k := range slices.Clone(m.kept) {
		switch {
		case k.identity != identity:
		case len(k.calls) > 0:
			m.stopped(k, EndSession)
		default:
			m.gone(k, EndSession)
		}
	}
	m.fill()
}
