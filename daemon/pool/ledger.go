package pool

import (
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/executord/executord/ipc/executor"
	"github.com/executord/executord/ipc/protocol"
	"github.com/executord/executord/ipc/worker"
)

// Bounds of the list of calls in an outcome.
const (
	listedCalls     = 256
	listedCallBytes = 32 << 10 // of their names
)

// ledger is the governor of every execution. Its lock is taken last, and nothing is called under it.
type ledger struct {
	limits        protocol.Limits
	inFlightBytes int64
	logs          *logbook

	guest *guest // &own, but for an invocation
	own   guest

	mu         sync.Mutex
	began      time.Time
	shown      time.Duration // what the guest's clock showed then
	waiting    int           // host calls under way
	inFlight   int64         // their bytes
	closed     bool          // the books are: the guest does not wait for these calls any more
	tools      int64         // tool calls among them
	calls      int64
	fetches    int64
	fetchBytes int64      // of bodies, both ways
	answers    [2]answers // of calls, by kind
	list       ends[*protocol.Call]
	reached    map[string]bool
}

func newLedger(l protocol.Limits, inFlightBytes int64, logs *logbook) governor {
	own := &ledger{
		limits: l, inFlightBytes: inFlightBytes, logs: logs,
		list: ends[*protocol.Call]{maxItems: listedCalls, maxBytes: listedCallBytes, size: callBytes},
	}
	own.guest = &own.own
	return own
}

func (l *ledger) share(g *guest) { l.guest = g }

func callBytes(c *protocol.Call) int64 {
	n := len(c.Provider)
	for _, name := range c.Path {
		n += len(name)
	}
	return int64(n)
}

func (l *ledger) admit(r *executor.Request) error {
	n := int64(len(r.Code))
	for _, m := range r.Modules {
		n += int64(len(m.Source))
	}
	if n > l.limits.ModuleBytes {
		return protocol.FieldError("modules", "code and modules have %d bytes together, more than %d", n, l.limits.ModuleBytes)
	}
	return nil
}

// enter begins the execution, or begins it again: what was begun on a worker that is dead counts for nothing.
func (l *ledger) enter(now time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.began, l.shown = now, l.guest.enter(now)
}

func (l *ledger) hostCall(now time.Time, c *hostCall) (*protocol.ThrownError, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	switch {
	case c.kind == toolKind && l.calls >= l.limits.ToolCalls:
		return nil, overLimit(protocol.ToolLimit, "more than %d tool calls", l.limits.ToolCalls)
	case c.kind == toolKind && l.tools >= l.limits.ToolCallsInFlight:
		return nil, overLimit(protocol.ToolLimit, "more than %d tool calls at once", l.limits.ToolCallsInFlight)
	case c.kind == fetchKind && l.fetches >= l.limits.Fetches:
		return nil, overLimit(protocol.ToolLimit, "more than %d fetches", l.limits.Fetches)
	}
	inFlight := l.open(now, c)
	switch {
	case c.size > l.limits.MessageBytes:
		l.reach("messageBytes")
		return throw("TypeError", "the arguments have %d bytes, more than %d", c.size, l.limits.MessageBytes), nil
	case inFlight > l.inFlightBytes:
		return throw("RangeError", "the arguments of all calls under way would have more than %d bytes", l.inFlightBytes), nil
	case l.fetchBytes > l.limits.FetchBytes:
		l.reach("fetchBytes")
		return tooManyBytes(l.limits), nil
	}
	return nil, nil
}

// open counts a call, and returns the bytes of all that are under way. l.mu is held.
func (l *ledger) open(now time.Time, c *hostCall) (inFlight int64) {
	l.waiting++
	l.inFlight += c.size
	l.fetchBytes += c.body
	switch c.kind {
	case toolKind:
		l.calls++
		l.tools++
		c.record = &protocol.Call{Call: c.number, Provider: c.provider, Path: c.path, Status: protocol.CallPending}
		l.list.add(c.record)
	case fetchKind:
		l.fetches++
	}
	return l.guest.wait(now, 1, c.size)
}

func (l *ledger) answered(now time.Time, c *hostCall, ok bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.inFlight -= c.size
	l.waiting--
	if !l.closed {
		l.guest.wait(now, -1, -c.size)
	}
	if c.kind == readKind {
		return
	}
	l.answers[c.kind].answer(ok)
	if c.kind != toolKind {
		return
	}
	l.tools--
	c.record.Ms, c.record.Status = ms(now.Sub(c.asked)), protocol.CallError
	if ok {
		c.record.Status = protocol.CallOK
	}
}

func (l *ledger) body(n int) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.fetchBytes += int64(n)
	if l.fetchBytes > l.limits.FetchBytes {
		l.reach("fetchBytes")
		return false
	}
	return true
}

func (l *ledger) output(line worker.Log) error { return l.logs.add(line) }

func (l *ledger) spent(now time.Time) account {
	l.mu.Lock()
	defer l.mu.Unlock()
	return account{guest: l.guest.at(now) - l.shown, calls: l.calls, fetches: l.fetches}
}

func (l *ledger) due() (time.Time, protocol.Type) {
	l.mu.Lock()
	defer l.mu.Unlock()
	total := l.began.Add(millis(l.limits.TotalMs))
	if wall, runs := l.guest.shows(l.shown + millis(l.limits.WallMs)); runs && wall.Before(total) {
		return wall, protocol.WallTimeout
	}
	return total, protocol.TotalTimeout
}

func (l *ledger) end(m worker.Result, cancelled bool) (protocol.Value, *protocol.Error, error) {
	if err := l.note(m.Reached); err != nil {
		return nil, nil, err
	}
	return checkResult(m, l.limits, cancelled, l.guest != &l.own)
}

// note takes the names of limits that the worker says the program ran into.
func (l *ledger) note(names []string) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, name := range names {
		if l.limits.Field(name) == nil {
			return violationf("a limit that there is not")
		}
		l.reach(name)
	}
	return nil
}

// reach notes a limit. l.mu is held.
func (l *ledger) reach(name string) {
	if l.reached == nil {
		l.reached = map[string]bool{}
	}
	l.reached[name] = true
}

func (l *ledger) account(now time.Time) account {
	lines := l.logs.close(now.Sub(l.began))
	cut := l.logs.truncated()
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, name := range cut {
		l.reach(name)
	}
	a := account{
		guest: l.guest.at(now) - l.shown, calls: l.calls, fetches: l.fetches, logs: lines, reached: slices.Collect(maps.Keys(l.reached)),
		tools: l.answers[toolKind].of(l.calls), exchanges: l.answers[fetchKind].of(l.fetches),
	}
	for _, c := range l.list.list(func(lost protocol.Truncated) *protocol.Call { return &protocol.Call{Omitted: lost.Lines} }) {
		a.list = append(a.list, *c) // what is answered from here on stays pending
	}
	if !l.closed {
		l.closed = true
		l.guest.wait(now, -l.waiting, -l.inFlight)
	}
	return a
}

// guest is what the ledgers of one isolate share, those of invocations side by side among them: the guest's clock, which
// stands while any of them has a host call under way, and the bytes of those calls. Its lock is taken after a ledger's.
type guest struct {
	mu       sync.Mutex
	clock    stopwatch
	entered  bool
	waiting  int   // host calls under way
	inFlight int64 // their bytes
}

// enter returns what the clock shows, and starts it the first time.
func (g *guest) enter(now time.Time) time.Duration {
	g.mu.Lock()
	defer g.mu.Unlock()
	if !g.entered {
		g.entered = true
		g.clock.start(now)
	}
	return g.clock.at(now)
}

// wait counts host calls that begin, or end where the numbers are negative: the guest leaves with the first and comes back
// with the last. It returns the bytes of all that are under way.
func (g *guest) wait(now time.Time, calls int, bytes int64) int64 {
	g.mu.Lock()
	defer g.mu.Unlock()
	before := g.waiting
	g.waiting += calls
	g.inFlight += bytes
	switch {
	case before == 0 && g.waiting > 0:
		g.clock.pause(now)
	case before > 0 && g.waiting == 0:
		g.clock.start(now)
	}
	return g.inFlight
}

func (g *guest) at(now time.Time) time.Duration {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.clock.at(now)
}

// shows is when the clock will show d, unless it stands.
func (g *guest) shows(d time.Duration) (at time.Time, runs bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.clock.since.Add(d - g.clock.counted), !g.clock.since.IsZero()
}

// stopwatch counts time while it is not paused.
type stopwatch struct {
	counted time.Duration
	since   time.Time // zero while paused
}

func (s *stopwatch) start(now time.Time) { s.since = now }

func (s *stopwatch) pause(now time.Time) {
	s.counted, s.since = s.at(now), time.Time{}
}

func (s *stopwatch) at(now time.Time) time.Duration {
	if s.since.IsZero() {
		return s.counted
	}
	return s.counted + now.Sub(s.since)
}

func throw(name, format string, args ...any) *protocol.ThrownError {
	return &protocol.ThrownError{Name: name, Message: fmt.Sprintf(format, args...)}
}

func tooManyBytes(l protocol.Limits) *protocol.ThrownError {
	return throw("RangeError", "fetch: the bodies of all requests and responses have more than %d bytes", l.FetchBytes)
}
