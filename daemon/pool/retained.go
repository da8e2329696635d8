package pool

import (
	"errors"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/executord/executord/ipc/executor"
	"github.com/executord/executord/ipc/protocol"
	"github.com/executord/executord/ipc/worker"
)

// retained is an execution whose isolate stays after its outcome, with the worker that holds it, so that its host can
// invoke handles.
type retained struct {
	m        *member
	id       string // what the ids of handles begin with
	number   uint64 // of the execution
	name     string // of its program
	session  string
	identity string
	network  protocol.Network
	tools    toolset
	limits   protocol.Limits
	guest    guest // of all invocations
	since    time.Time
	idle     time.Duration // it ends after so long without an invocation
	until    time.Time     // and then in any case

	// Guarded by Pool.mu.
	info   ExecutionInfo
	live   map[uint64]struct{} // numbers of the handles that were not released
	issued uint64              // number of the newest handle; changed by the reader only
	calls  int                 // invocations, those that are about to begin included
	used   time.Time           // when the last one ended
	over   bool                // it has no handles any more
	parted bool                // and its member is on its own again, or gone
	stops  bool                // that member ends

	letGo atomic.Int64 // when it was let go, to make itself ready from then on; unix nanoseconds, 0 before

	// mu is held, too, while the worker is told something, so that it hears of invocations in the order of their numbers.
	mu     sync.Mutex
	begun  map[uint64]*run // invocations that the worker was told of
	closed bool            // no other may begin
	owed   []uint64        // released handles that the worker was not told of
	told   bool            // the worker was told that it is let go
}

// EndReason is why a retained execution ended.
type EndReason string

// The reasons. The set is closed and append-only.
const (
	EndReleased  EndReason = "released"  // its handles were
	EndIdle      EndReason = "idle"      // nothing was invoked for too long
	EndExpired   EndReason = "expired"   // its time was over
	EndCancelled EndReason = "cancelled" // by the operator
	EndSession   EndReason = "session"   // its session ended
	EndDraining  EndReason = "draining"  // the service stops
	EndStopped   EndReason = "stopped"   // an invocation had to be stopped
	EndLost      EndReason = "lost"      // its worker ended
)

// reserve takes a place for what a run may retain. Others need none.
func (p *Pool) reserve(r *run) error {
	if r.message.Retain == "" {
		return nil
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	switch {
	case p.drained:
		return drainError()
	case len(p.reserved)+p.places >= r.config.Retained:
		p.totals.Overloaded++
		e := protocol.Errorf(protocol.Overloaded, "all %d places for retained executions are taken", r.config.Retained)
		e.RetryAfterMs = p.nextPlace().Milliseconds()
		return e
	case p.placesOf[r.req.Identity] >= r.config.RetainedPerIdentity:
		p.totals.Unplaced++
		return protocol.Errorf(protocol.SessionLimit, "this caller has %d retained executions, and may have no more", r.config.RetainedPerIdentity)
	}
	r.place = true
	p.reserved[r] = struct{}{}
	p.placesOf[r.req.Identity]++
	return nil
}

// nextPlace guesses when a place gets free. With mu.
func (p *Pool) nextPlace() time.Duration {
	next := mostRetry
	now := p.outside.now()
	for _, k := range p.retained {
		next = min(next, k.due().Sub(now))
	}
	return max(next, leastRetry)
}

// unreserve gives the place of a run back that retained nothing.
func (p *Pool) unreserve(r *run) {
	if r.message.Retain == "" {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if r.place {
		r.place = false
		delete(p.reserved, r)
		p.unplace(r.req.Identity)
	}
}

// unplace counts a place less. With mu.
func (p *Pool) unplace(identity string) {
	if p.placesOf[identity]--; p.placesOf[identity] <= 0 {
		delete(p.placesOf, identity)
	}
}

// checkRetained holds what a result says of handles against what was asked for. The error is a violation.
func (r *run) checkRetained(m worker.Result, fault *protocol.Error) error {
	if r.invoked != nil {
		return r.invoked.of.check(m, fault)
	}
	switch {
	case !m.Retained:
		return nil
	case r.message.Retain == "":
		return violationf("a result that retains what nobody asked to")
	case fault != nil:
		return violationf("a result that retains an error")
	case m.Handles == 0:
		return violationf("a result that retains nothing")
	case m.Handles > worker.MaxHandles:
		return overLimit(protocol.ResultUnserializable, "result with %d handles", m.Handles)
	}
	return nil
}

// check is checkRetained for an invocation.
func (k *retained) check(m worker.Result, fault *protocol.Error) error {
	if stopped := fault != nil && lastWords[fault.Type]; stopped == m.Retained {
		return violationf("a result of an invocation after which the isolate cannot be as it says")
	}
	if !m.Retained {
		return nil
	}
	p := k.m.pool
	p.mu.Lock()
	defer p.mu.Unlock()
	switch {
	case m.Handles < k.issued:
		return violationf("a result with handle %d after %d", m.Handles, k.issued)
	case fault == nil && m.Handles-k.issued > uint64(worker.MaxHandles-len(k.live)):
		return overLimit(protocol.ResultUnserializable, "result with %d handles, besides %d", m.Handles-k.issued, len(k.live))
	}
	return nil
}

// issue counts the handles up to newest, which are in a value that the host gets, or, where it gets none, nowhere. With mu.
func (k *retained) issue(newest uint64, value bool) (count uint64) {
	if value {
		count = newest - k.issued
		for n := k.issued + 1; n <= newest; n++ {
			k.live[n] = struct{}{}
		}
	}
	k.issued = newest
	return count
}

// tell is what an outcome says of it. With mu.
func (k *retained) tell(handles uint64, now time.Time) *protocol.Retained {
	if k.over {
		return nil
	}
	return &protocol.Retained{ID: k.id, Handles: handles, IdleMs: k.idle.Milliseconds(), TTLMs: max(k.until.Sub(now), 0).Milliseconds()}
}

// retain is result for a run whose isolate stays.
func (m *member) retain(r *run, msg worker.Result, out *protocol.Outcome) error {
	k := m.pool.retain(m, r, msg, out)
	m.kept = k
	m.pool.records.drop(r)
	r.finish(out)
	return k.part()
}

// retain makes m the worker of a retained execution. Nobody gets to call one that the operator cancelled meanwhile, or whose
// session is gone: it ends at once.
func (p *Pool) retain(m *member, r *run, msg worker.Result, out *protocol.Outcome) *retained {
	k := newRetained(m, r)
	p.mu.Lock()
	defer p.mu.Unlock()
	order := r.ordered.Load()
	if order != nil { // the result crossed it
		out.Status, out.Value, out.Error = protocol.StatusError, nil, protocol.Errorf(protocol.Cancelled, "%s", *order)
		out.Calls = r.used.list
	}
	p.release(m)
	p.account(r, out, LayerEngine)
	p.failures, p.notBefore = 0, time.Time{}
	m.state, m.held = keeping, k
	r.place = false
	delete(p.reserved, r)
	p.places++
	p.retained[k.id] = k
	p.totals.Retained++
	r.kept = true
	out.Retained = k.tell(k.issue(msg.Handles, true), k.since)
	k.info = r.record(out, nil)
	k.info.Phase, k.info.Over = Retained, time.Time{}
	switch {
	case order != nil:
		k.end(EndCancelled, *order)
	case p.drained:
		k.end(EndDraining, stoppingText)
	case r.forsaken:
		k.end(EndSession, sessionText)
	}
	if k.over {
		out.Retained = nil
	}
	p.serve()
	p.poke() // another worker takes the place of this one
	return k
}

func newRetained(m *member, r *run) *retained {
	k := &retained{
		m: m, id: r.message.Retain, number: r.number, name: strings.Clone(r.req.Name), session: r.req.Session, identity: r.req.Identity, network: r.req.Network,
		tools: newToolset(r.req.Providers), limits: r.limits, since: r.settled, used: r.settled,
		idle: r.config.RetainIdle, live: map[uint64]struct{}{}, begun: map[uint64]*run{},
	}
	life := r.config.RetainLifetime
	if asked := r.req.Retain.TTLMs; asked > 0 && asked < life.Milliseconds() {
		life = millis(asked)
	}
	k.until = k.since.Add(life)
	return k
}

// due is when it ends if nothing is invoked. With Pool.mu.
func (k *retained) due() time.Time {
	if idle := k.used.Add(k.idle); k.calls == 0 && idle.Before(k.until) {
		return idle
	}
	return k.until
}

// expire ends what is due, and returns how long it is until the next is.
func (p *Pool) expire() time.Duration {
	next := keepEvery
	now := p.outside.now()
	var over []*retained
	p.mu.Lock()
	for _, k := range p.retained {
		due := k.due()
		switch {
		case due.After(now):
			next = min(next, due.Sub(now))
			continue
		case k.until.After(now):
			k.end(EndIdle, "it was idle for "+k.idle.String())
		default:
			k.end(EndExpired, "its time of "+k.until.Sub(k.since).String()+" was over")
		}
		over = append(over, k)
	}
	p.mu.Unlock()
	partAll(over)
	return next
}

// end makes handles unknown. Where nothing is under way the member is on its own again; whoever calls does part then. With
// mu.
func (k *retained) end(reason EndReason, why string) {
	p := k.m.pool
	if k.over {
		return
	}
	k.over = true
	clear(k.live)
	delete(p.retained, k.id)
	p.totals.RetainedEnds[reason]++
	now := p.outside.now()
	p.tombs.add(tomb{id: k.id, session: k.session, at: now, why: why})
	k.info.Phase, k.info.Over, k.info.Kept = Ended, now, k.state(why)
	p.records.remember(k.info)
	if k.calls == 0 && !k.parted {
		p.free(k, false)
	}
}

// free gives the member back: it makes itself ready, by itself or because it is told to, or ends where another took its
// place. With mu.
func (p *Pool) free(k *retained, byItself bool) {
	m := k.m
	p.release(m)
	p.forget(k)
	m.state = restoring
	exhausted := m.executions >= p.config().WorkerMaxExecutions
	m.due = m.due || p.fresh() > p.config().processes()
	if p.shut || exhausted || p.replaced(m) {
		m.state, k.stops = leaving, true
	} else if !byItself {
		k.letGo.Store(time.Now().UnixNano())
	}
	p.serve()
	p.poke()
}

// forget takes a member from k that ends or makes itself ready, and that runs nothing of it any more. With mu.
func (p *Pool) forget(k *retained) {
	k.parted, k.m.held = true, nil
	p.places--
	p.unplace(k.identity)
}

// part does to the member, outside of Pool.mu, what free decided. It returns errRetired where that ends.
func (k *retained) part() error {
	p := k.m.pool
	p.mu.Lock()
	parted, stops := k.parted, k.stops
	p.mu.Unlock()
	switch {
	case stops:
		k.m.stop()
		return errRetired
	case parted:
		k.flush()
	}
	return nil
}

func partAll(list []*retained) {
	for _, k := range list {
		_ = k.part()
	}
}

// flush tells the worker what was released. What it has no room for comes with its next heartbeat.
func (k *retained) flush() {
	k.mu.Lock()
	defer k.mu.Unlock()
	m := worker.Release{Handles: k.owed}
	switch {
	case k.told:
		return
	case k.letGo.Load() != 0:
		m.Handles = nil
	case len(k.owed) == 0 || k.closed:
		return
	}
	if err := k.m.conn.TrySend(m); !errors.Is(err, worker.ErrQueueFull) {
		k.owed, k.told = nil, m.Handles == nil
	}
}

// find is the invocation of that number on the channel, nil when the worker was not told of it or it ended.
func (k *retained) find(id uint64) *run {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.begun[id]
}

// watch looks at the memory of one in which nothing runs. The error costs the worker its life.
func (k *retained) watch(rss int64) error {
	if rss <= k.m.baseline.Load()+mostMemory(k.limits) || k.letGo.Load() != 0 || len(k.underWay(false)) > 0 {
		return nil
	}
	return overLimit(protocol.MemoryLimit, "%d bytes are resident while nothing runs", rss)
}

// underWay lists invocations, oldest first. With last no other begins.
func (k *retained) underWay(last bool) []*run {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.closed = k.closed || last
	list := make([]*run, 0, len(k.begun))
	for _, r := range k.begun {
		list = append(list, r)
	}
	slices.SortFunc(list, func(a, b *run) int { return int(int64(a.id) - int64(b.id)) })
	return list
}

// cancel has all invocations end.
func (k *retained) cancel(reason string) {
	for _, r := range k.underWay(true) {
		r.halt(reason)
	}
}

// state is what the operator may know of it; why is empty while it lasts. With Pool.mu.
func (k *retained) state(why string) *KeptInfo {
	return &KeptInfo{Since: k.since, Used: k.used, Until: k.until, Handles: len(k.live), Calls: k.calls, Why: why}
}

// lose ends what m retained with m, and returns it where that is a loss: nothing else ended it. With mu.
func (p *Pool) lose(m *member, d death) *retained {
	k := m.held
	if k == nil {
		return nil
	}
	reason, why := EndLost, "its worker ended: "+d.exit.String()
	var v *violation
	switch {
	case d.err == errRetired:
		reason, why = EndDraining, stoppingText
	case len(d.runs) > 0 && lastWords[d.typ]:
		reason, why = EndStopped, stoppedText(d.typ)
	case errors.As(d.err, &v):
		why = v.verdict(k.limits).message
	case errors.Is(d.err, errSilent), errors.Is(d.err, errDeaf):
		why = d.err.Error()
	}
	lost := reason == EndLost && !k.over
	p.forget(k)
	k.end(reason, why)
	if !lost {
		return nil
	}
	return k
}

// lost is the news that it was lost with its worker.
func (k *retained) lost(m *member, d death) Event {
	p := m.pool
	p.mu.Lock()
	defer p.mu.Unlock()
	return Event{
		Kind: RetainedLost, Worker: m.name, PID: m.pid, Execution: k.info.CallerID, ID: k.info.ID, Session: k.session, Identity: k.identity,
		Type: d.typ, Reason: d.exit.String(), Detail: k.info.Kept.Why,
	}
}

const (
	stoppingText = "the service is stopping"
	sessionText  = "its session ended"
)

// endAll ends the retained executions that which takes, and returns how many there are, those that end after what is under
// way included. That is cancelled for the reason in cancel, unless it is empty.
func (p *Pool) endAll(which func(*retained) bool, reason EndReason, why, cancel string) int {
	p.mu.Lock()
	var over []*retained
	for m := range p.members {
		if k := m.held; k != nil && which(k) {
			k.end(reason, why)
			over = append(over, k)
		}
	}
	p.mu.Unlock()
	if cancel != "" {
		for _, k := range over {
			k.cancel(cancel)
		}
	}
	partAll(over)
	return len(over)
}

// ReleaseSession implements [executor.Retainer]. Executions of the session that have no outcome yet are not retained either.
func (p *Pool) ReleaseSession(session string) {
	p.mu.Lock()
	for r := range p.reserved {
		r.forsaken = r.forsaken || r.req.Session == session
	}
	p.mu.Unlock()
	p.endAll(func(k *retained) bool { return k.session == session }, EndSession, sessionText, "the session ended")
}

// Retained is how many executions the pool retains for a session.
func (p *Pool) Retained(session string) (n int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, k := range p.retained {
		if k.session == session {
			n++
		}
	}
	return n
}

var _ executor.Retainer = (*Pool)(nil)
