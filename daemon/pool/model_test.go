package pool

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"runtime"
	"slices"
	"sync"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/executord/executord/ipc/executor"
	"github.com/executord/executord/ipc/protocol"
)

// How long a program of the model may run and a request may wait, on the model's clock.
const (
	modelTotal = 20 * time.Second
	modelQueue = 8 * time.Second
	modelLong  = modelTotal + stopGrace
)

// TestAdmissionModel drives a pool and a simple model of it with the same random events. After each the counters of the
// pool are those of the model, and each request ends once, in the way that the model says.
func TestAdmissionModel(t *testing.T) {
	before := runtime.NumGoroutine()
	rapid.Check(t, func(rt *rapid.T) {
		m := newModel(t, rt)
		defer m.end()
		rt.Repeat(map[string]func(*rapid.T){
			"submit":     m.submit,
			"submit 2":   m.submit, // more often than the others, or nobody would wait
			"submit 3":   m.submit,
			"submit 4":   m.submit,
			"answer":     m.answer,
			"cancel":     m.cancel,
			"disconnect": m.disconnect,
			"race":       m.race,
			"crash":      m.crash,
			"deadline":   m.deadline,
			"impatience": m.impatience,
			"retire":     m.retire,
			"drain":      m.drain,
			"":           m.compare,
		})
	})
	noLeak(t, before, openFiles(t))
}

// request is one Execute under the model's eye.
type request struct {
	*job
	number   int
	identity string
	asked    chan struct{} // closed when the program has called its tool
	gate     chan struct{} // closed to let the program end
	over     chan struct{} // closed when it did
	queuedAt time.Duration // on the model's clock
	started  time.Duration
	retired  bool // its worker is to be replaced
	retains  bool // it wants to be retained
	forsaken bool // but its session is gone
}

// model is what a pool has to be like: lists, in the order of the specification.
type model struct {
	t     *testing.T
	rt    *rapid.T
	bench *bench
	world *world

	workers, queue, share int

	places, placesEach int
	kept               []*holding // in the order in which they were retained

	requests int
	running  []*request
	lanes    map[string][]*request // who waits
	turns    []string              // identities that have someone waiting, next first
	drained  bool
	ended    Totals // what came of all requests and workers so far
	instead  uint64 // workers that may have taken the place of a killed one when what they retained ended, and not have retired
}

// world is the clock and the timers of a pool, which a test moves.
type world struct {
	clockwork
	mu     sync.Mutex
	timers map[chan time.Time]time.Duration // when they are due
}

func (w *world) timer(d time.Duration) (<-chan time.Time, func()) {
	w.mu.Lock()
	defer w.mu.Unlock()
	c := make(chan time.Time, 1)
	w.timers[c] = time.Duration(w.ahead.Load()) + d
	return c, func() {
		w.mu.Lock()
		defer w.mu.Unlock()
		delete(w.timers, c)
	}
}

func (w *world) set() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return len(w.timers)
}

// ring fires the timers that are due at that time.
func (w *world) ring(at time.Duration) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for c, due := range w.timers {
		if due <= at {
			c <- time.Time{}
			delete(w.timers, c)
		}
	}
}

func newModel(t *testing.T, rt *rapid.T) *model {
	m := &model{
		t: t, rt: rt, lanes: map[string][]*request{}, ended: newTotals(),
		workers: rapid.IntRange(1, 3).Draw(rt, "workers"), queue: rapid.IntRange(0, 8).Draw(rt, "queue"),
		world: &world{timers: map[chan time.Time]time.Duration{}},
	}
	m.places = rapid.IntRange(0, 3).Draw(rt, "places")
	m.placesEach = m.places - rapid.IntRange(0, max(0, m.places-1)).Draw(rt, "less of them")
	m.share = m.queue - min(m.queue, rapid.IntRange(0, 4).Draw(rt, "less"))
	c, o := testConfig(), realOutside()
	c.Workers, c.Queue, c.QueuePerIdentity, c.QueueTimeout = m.workers, m.queue, m.share, modelQueue
	c.Limits.WallMs, c.Limits.TotalMs = modelTotal.Milliseconds(), modelTotal.Milliseconds()
	c.WorkerMaxAge, c.WorkerMaxExecutions = 365*24*time.Hour, 1e6
	c.Retained, c.RetainedPerIdentity, c.RetainIdle, c.RetainLifetime = m.places, m.placesEach, modelIdle, modelLife
	c.MaxLimits.TotalMs, c.MaxLimits.WallMs = maxMs, maxMs
	c.Launcher = &inside{}
	start := time.Now()
	o.now = func() time.Time { return start.Add(time.Duration(m.world.ahead.Load())) } // it stands unless it is moved
	o.timer = m.world.timer
	o.random = func() float64 { return 0.5 }
	o.meter = func(int) (meter, error) { return &dial{}, nil }
	m.bench = &bench{t: t, news: make(chan struct{}, 1)}
	p, err := newPool(c, o)
	if err != nil {
		rt.Fatal(err)
	}
	m.bench.Pool = p
	m.bench.waitReady()
	return m
}

// end drains what is left, and wants every request to have ended.
func (m *model) end() {
	if m.rt.Failed() {
		_ = m.bench.Close() // what failed first is what counts
		return
	}
	if !m.drained {
		m.close()
		m.compare(m.rt)
	}
}

func (m *model) now() time.Duration { return time.Duration(m.world.ahead.Load()) }

func (m *model) waiting() (n int) {
	for _, l := range m.lanes {
		n += len(l)
	}
	return n
}

// submit sends a request of one of three callers.
func (m *model) submit(rt *rapid.T) {
	r := m.request(rapid.SampledFrom([]string{"a", "b", "c"}).Draw(rt, "identity"))
	s := script("call tools.gate []")
	s.Execution, s.Call = fmt.Sprint(r.number), r.answer
	m.send(r, s)
}

// request makes the next one.
func (m *model) request(identity string) *request {
	m.requests++
	return &request{
		number: m.requests, identity: identity,
		asked: make(chan struct{}), gate: make(chan struct{}), over: make(chan struct{}), queuedAt: m.now(),
	}
}

// answer is the program's one tool.
func (r *request) answer(context.Context, executor.ToolCall) (protocol.Value, error) {
	close(r.asked)
	select {
	case <-r.gate:
	case <-r.over: // and not when its context ends: a value might then come before the cancellation
	}
	return protocol.Value(fmt.Sprint(r.number)), nil
}

// send executes s as r.
func (m *model) send(r *request, s executor.Request) {
	rt := m.rt
	r.job = m.bench.start(r.identity, s)
	switch {
	case m.drained:
		m.refused(r, protocol.Draining)
	case r.retains && m.taken("") >= m.places:
		m.ended.Overloaded++
		m.refused(r, protocol.Overloaded)
	case r.retains && m.taken(r.identity) >= m.placesEach:
		m.ended.Unplaced++
		m.refused(r, protocol.SessionLimit)
	case m.waiting() == 0 && m.room():
		m.begin(r)
	case m.crowd("")+m.waiting() >= m.workers+m.queue, m.crowd(r.identity)+len(m.lanes[r.identity]) >= m.workers+m.share:
		m.ended.Overloaded++
		m.refused(r, protocol.Overloaded)
	default:
		m.enqueue(r)
		if got, want := m.position(r.job), m.place(r); got != want {
			rt.Fatalf("request %d waits at %d, want %d", r.number, got, want)
		}
	}
}

// position is where the pool says that a job waits.
func (m *model) position(j *job) int {
	select {
	case n := <-j.queued:
		return n
	case <-j.done:
		m.rt.Fatalf("ended with %v, %v, and should wait", j.out, j.err)
	case <-time.After(patience):
		m.rt.Fatalf("is not queued; stats %+v", m.bench.Stats())
	}
	return 0
}

// patience is for a machine that is busy with other things.
const patience = 20 * time.Second

func (m *model) enqueue(r *request) {
	if len(m.lanes[r.identity]) == 0 {
		m.turns = append(m.turns, r.identity)
	}
	m.lanes[r.identity] = append(m.lanes[r.identity], r)
}

// next takes who is served next, nil when nobody waits.
func (m *model) next() *request {
	if len(m.turns) == 0 {
		return nil
	}
	r := m.lanes[m.turns[0]][0]
	m.turns = append(m.turns[1:], r.identity)
	m.remove(r)
	return r
}

// remove takes r out of the queue.
func (m *model) remove(r *request) {
	lane := slices.DeleteFunc(slices.Clone(m.lanes[r.identity]), func(o *request) bool { return o == r })
	m.lanes[r.identity] = lane
	if len(lane) == 0 {
		delete(m.lanes, r.identity)
		m.turns = slices.DeleteFunc(slices.Clone(m.turns), func(id string) bool { return id == r.identity })
	}
}

// place is how many are served up to r, r included.
func (m *model) place(r *request) int {
	c := &model{lanes: maps.Clone(m.lanes), turns: slices.Clone(m.turns)}
	for n := 1; ; n++ {
		if c.next() == r {
			return n
		}
	}
}

// begin wants r to run.
func (m *model) begin(r *request) {
	r.started = m.now()
	m.running = append(m.running, r)
	select {
	case <-r.asked:
	case <-r.done:
		m.rt.Fatalf("request %d ended with %+v, %v, and should run", r.number, r.out, r.err)
	case <-time.After(patience):
		m.rt.Fatalf("request %d does not run; stats %+v", r.number, m.bench.Stats())
	}
}

// fill gives free places to those who wait.
func (m *model) fill() {
	for m.room() {
		r := m.next()
		if r == nil {
			return
		}
		m.begin(r)
	}
}

// leave takes r out of those that run.
func (m *model) leave(r *request) {
	m.running = slices.DeleteFunc(m.running, func(o *request) bool { return o == r })
}

// await waits for the end of a request.
func (m *model) await(r *request) {
	select {
	case <-r.done:
		select {
		case <-r.over:
		default:
			close(r.over)
		}
	case <-time.After(patience):
		m.rt.Fatalf("request %d does not end; stats %+v", r.number, m.bench.Stats())
	}
}

// refused wants that r never ran and is told why.
func (m *model) refused(r *request, typ protocol.Type) {
	m.await(r)
	var e *protocol.Error
	if r.out != nil || !errors.As(r.err, &e) || e.Type != typ {
		m.rt.Fatalf("request %d came to %+v, %v, want %s", r.number, r.out, r.err, typ)
	}
	if typ == protocol.Overloaded && (e.RetryAfterMs < leastRetry.Milliseconds() || e.RetryAfterMs > mostRetry.Milliseconds()) {
		m.rt.Fatalf("hint of %d ms", e.RetryAfterMs)
	}
}

// ran wants that r ran and ended so; an empty type is a value.
func (m *model) ran(r *request, typ protocol.Type) {
	m.await(r)
	switch {
	case r.err != nil || typeOf(r.out) != typ:
		m.rt.Fatalf("request %d came to %+v, %v, want %q", r.number, r.out, r.err, typ)
	case r.out.Stats.Worker == "":
		m.rt.Fatalf("request %d did not run", r.number)
	case typ == "" && string(r.out.Value) != fmt.Sprint(r.number):
		m.rt.Fatalf("request %d got the value of another: %s", r.number, r.out.Value)
	}
	m.ended.Executions++
	m.ended.Endings[typ]++
	m.leave(r)
}

// pick draws one of the list, which must not be empty.
func pick(rt *rapid.T, list []*request) *request {
	if len(list) == 0 {
		rt.Skip("there is none")
	}
	return rapid.SampledFrom(list).Draw(rt, "request")
}

// everybody waits or runs.
func (m *model) everybody() []*request {
	list := slices.Clone(m.running)
	for _, id := range m.turns {
		list = append(list, m.lanes[id]...)
	}
	return list
}

// answer lets one program end with its value.
func (m *model) answer(rt *rapid.T) {
	r := pick(rt, m.running)
	close(r.gate)
	m.done(r)
	m.fill()
}

// done wants that r came to its value, and maybe is retained.
func (m *model) done(r *request) {
	m.ran(r, "")
	if !r.retains || r.forsaken {
		m.freed(r)
	}
	if r.retains {
		m.keeps(r)
	}
}

// freed counts a worker that goes once it has nothing to run.
func (m *model) freed(r *request) {
	if r.retired {
		m.ended.Retired++
	}
}

// cancel has one caller give up, wherever its request is.
func (m *model) cancel(rt *rapid.T) {
	r := pick(rt, m.everybody())
	r.job.cancel(nil)
	m.gaveUp(r)
	m.fill()
}

// gaveUp wants the end of a request whose caller gave up.
func (m *model) gaveUp(r *request) {
	if slices.Contains(m.running, r) {
		m.ran(r, protocol.Cancelled)
		m.freed(r)
		return
	}
	m.await(r)
	if r.err != nil || typeOf(r.out) != protocol.Cancelled || r.out.Stats.Worker != "" {
		m.rt.Fatalf("request %d came to %+v, %v, want cancelled", r.number, r.out, r.err)
	}
	m.ended.Left++
	m.remove(r)
}

// disconnect has all requests of one caller vanish at once. Which of those that wait get a place of those that run before
// they vanish themselves is a matter of luck; their outcomes say.
func (m *model) disconnect(rt *rapid.T) {
	identity := rapid.SampledFrom([]string{"a", "b", "c"}).Draw(rt, "identity")
	var all sync.WaitGroup
	gone := slices.DeleteFunc(m.everybody(), func(r *request) bool { return r.identity != identity })
	for _, r := range gone {
		all.Go(func() { r.job.cancel(nil) })
	}
	for _, k := range m.kept {
		for _, r := range k.calls {
			if identity == k.identity {
				all.Go(func() { r.job.cancel(nil) })
			}
		}
	}
	all.Wait()
	for _, r := range gone {
		m.gaveUpSometime(r)
	}
	for _, k := range slices.Clone(m.kept) {
		if identity == k.identity && len(k.calls) > 0 {
			m.stopped(k, EndStopped)
		}
	}
	m.fill()
}

// gaveUpSometime is gaveUp for a request that may have got a place before.
func (m *model) gaveUpSometime(r *request) {
	m.await(r)
	if !slices.Contains(m.running, r) && r.err == nil && r.out.Stats.Worker != "" { // it ran for a moment
		m.remove(r)
		m.running = append(m.running, r)
	}
	m.gaveUp(r)
}

// race has the caller of who is served next give up while a place gets free for it.
func (m *model) race(rt *rapid.T) {
	if len(m.turns) == 0 {
		rt.Skip("nobody waits")
	}
	r := pick(rt, m.running)
	next := m.lanes[m.turns[0]][0]
	close(r.gate)
	for range rapid.IntRange(0, 300).Draw(rt, "pause") {
		runtime.Gosched()
	}
	next.job.cancel(nil)
	m.done(r)
	m.gaveUpSometime(next)
	m.fill()
}

// crash kills the worker of one program.
func (m *model) crash(rt *rapid.T) {
	r := pick(rt, m.running)
	m.member(r).proc.Kill()
	m.ran(r, protocol.WorkerCrashed)
	m.ended.Crashed++
	m.fill()
}

// member is the worker of a request that runs.
func (m *model) member(r *request) *member {
	m.bench.Pool.mu.Lock()
	defer m.bench.Pool.mu.Unlock()
	for w := range m.bench.members {
		if run := w.run.Load(); run != nil && run.execution == fmt.Sprint(r.number) {
			return w
		}
	}
	m.rt.Fatalf("request %d has no worker", r.number)
	return nil
}

// deadline moves the clock until the longest running program is past its time, and others with it.
func (m *model) deadline(rt *rapid.T) {
	if len(m.running) == 0 {
		rt.Skip("nothing runs")
	}
	m.advance(modelLong - (m.now() - m.running[0].started))
}

// impatience moves the clock until who waits longest has waited too long.
func (m *model) impatience(rt *rapid.T) {
	oldest := time.Duration(-1)
	for _, lane := range m.lanes {
		for _, r := range lane {
			if oldest < 0 || r.queuedAt < oldest {
				oldest = r.queuedAt
			}
		}
	}
	if oldest < 0 {
		rt.Skip("nobody waits")
	}
	m.advance(max(0, modelQueue-(m.now()-oldest)))
}

// advance moves the clock. Those who have waited too long leave before places are free for them.
func (m *model) advance(d time.Duration) {
	now := m.now() + d
	m.world.ring(now)
	for _, r := range m.everybody() {
		if !slices.Contains(m.running, r) && r.queuedAt+modelQueue <= now {
			m.ended.QueueTimeouts++
			m.refused(r, protocol.QueueTimeout)
			m.remove(r)
		}
	}
	m.world.ahead.Store(int64(now))
	before := m.ended.Stopped
	for _, r := range slices.Clone(m.running) {
		if r.started+modelLong <= now {
			m.ran(r, protocol.TotalTimeout)
			m.ended.Stopped++
		}
	}
	m.bench.poke()
	for _, k := range slices.Clone(m.kept) {
		m.expired(k)
	}
	m.instead += m.ended.Stopped - before
	m.fill()
}

// retire has one worker replaced; one that runs a program is when that ends.
func (m *model) retire(rt *rapid.T) {
	workers := m.bench.Workers()
	if m.drained || len(workers) == 0 {
		rt.Skip("there is none")
	}
	w := rapid.SampledFrom(workers).Draw(rt, "worker")
	if w.Due {
		rt.Skip("it is on its way")
	}
	if slices.ContainsFunc(m.kept, func(k *holding) bool { return k.worker == w.Name }) {
		rt.Skip("it goes then in any case")
	}
	if !m.bench.Retire(w.Name) {
		m.rt.Fatalf("there is no worker %s", w.Name)
	}
	for _, r := range m.running {
		if m.member(r).name == w.Name {
			r.retired = true
			return
		}
	}
	m.ended.Retired++
}

// drain closes the pool, which ends everything. Nothing is let in after it.
func (m *model) drain(rt *rapid.T) {
	if m.drained || rapid.IntRange(0, 9).Draw(rt, "sparing") > 0 {
		rt.Skip("not yet")
	}
	m.close()
}

func (m *model) close() {
	m.drained = true
	if err := m.bench.Close(); err != nil {
		m.rt.Fatal(err)
	}
	for _, r := range m.everybody() {
		if slices.Contains(m.running, r) {
			m.ran(r, protocol.Cancelled)
			continue
		}
		m.refused(r, protocol.Draining)
		m.ended.Left++
		m.remove(r)
	}
	for _, k := range slices.Clone(m.kept) {
		if len(k.calls) > 0 {
			m.stopped(k, EndDraining)
		} else {
			m.gone(k, EndDraining)
		}
	}
}

// compare wants the pool's counters to become those of the model, and to be possible on the way.
func (m *model) compare(rt *rapid.T) {
	for deadline := time.Now().Add(patience); ; runtime.Gosched() {
		s := m.bench.Stats()
		m.possible(s)
		difference := m.difference(s)
		if difference == "" {
			return
		}
		if time.Now().After(deadline) {
			rt.Fatalf("%s; stats %+v", difference, s)
		}
	}
}

// possible holds at every moment.
func (m *model) possible(s Stats) {
	queued, running := 0, 0
	for _, l := range s.Identities {
		queued, running = queued+l.Queued, running+l.Running
	}
	if queued != s.Queued || running != s.Running || running > m.workers+m.places || queued+running > m.workers+m.queue+m.places {
		m.rt.Fatalf("impossible: %+v", s)
	}
}

// difference says where the pool is not as the model, empty when nowhere.
func (m *model) difference(s Stats) string {
	identities := map[string]Load{}
	retired, due, calling := 0, 0, 0
	for _, r := range m.running {
		l := identities[r.identity]
		identities[r.identity] = Load{Queued: l.Queued, Running: l.Running + 1}
		if r.retired {
			retired++
			due++
		}
	}
	for _, k := range m.kept {
		if len(k.calls) > 0 {
			calling++
			identities[k.identity] = Load{Running: identities[k.identity].Running + 1}
		}
		if k.due {
			due++
		}
	}
	for id, lane := range m.lanes {
		identities[id] = Load{Queued: len(lane), Running: identities[id].Running}
	}
	at, want := s.Totals, m.ended
	switch {
	case m.world.set() != m.waiting():
		return fmt.Sprintf("%d timers for %d that wait", m.world.set(), m.waiting())
	case s.Queued != m.waiting() || s.Running != m.busy() || !maps.Equal(s.Identities, identities):
		return fmt.Sprintf("want %d that wait, %d that run: %v", m.waiting(), m.busy(), identities)
	case at.Executions != want.Executions || at.Overloaded != want.Overloaded || at.QueueTimeouts != want.QueueTimeouts || at.Left != want.Left:
		return fmt.Sprintf("want totals %+v", want)
	case !maps.Equal(at.Endings, want.Endings):
		return fmt.Sprintf("want endings %v", want.Endings)
	case s.Starting+s.Restoring+s.Leaving != 0:
		return "workers come and go"
	case m.drained && s.Idle != 0:
		return fmt.Sprintf("%d workers after the end", s.Idle)
	case !m.drained && (s.Idle+s.Running-calling != m.workers+retired || s.Due != due || s.Retaining != len(m.kept)-calling):
		return fmt.Sprintf("want %d workers, %d of them due, and %d for what is retained, where nothing runs", m.workers+retired, due, len(m.kept)-calling)
	case s.Retained != m.retained() || !maps.Equal(at.RetainedEnds, want.RetainedEnds):
		return fmt.Sprintf("want %d retained, and %v that ended", m.retained(), want.RetainedEnds)
	case at.Retained != want.Retained || at.Invocations != want.Invocations || at.Unplaced != want.Unplaced:
		return fmt.Sprintf("want totals of what is retained %+v", want)
	case m.callingNow() != calling:
		return fmt.Sprintf("%d are called, want %d", m.callingNow(), calling)
	case m.placesTaken() != m.taken(""):
		return fmt.Sprintf("%d places are taken, want %d", m.placesTaken(), m.taken(""))
	case at.Crashed != want.Crashed || at.Stopped != want.Stopped || !m.drained && (at.Retired > want.Retired || at.Retired+m.instead < want.Retired):
		return fmt.Sprintf("want totals of workers %+v", want)
	}
	return ""
}
