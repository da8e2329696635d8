package pool

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"go.opentelemetry.io/otel/trace"

	"github.com/executord/executord/ipc/executor"
	"github.com/executord/executord/ipc/protocol"
)

// closeGrace bounds how long Close waits for executions, and then for processes.
const closeGrace = 10 * time.Second

// Pool is an [executor.Executor] over worker processes.
type Pool struct {
	current atomic.Pointer[Config]
	log     *slog.Logger
	outside outside
	measure *measures
	tracer  trace.Tracer // nil where nobody wants spans
	prefix  string       // of the ids that the pool gives executions
	lastID  atomic.Uint64

	draining chan struct{}      // closed when Drain begins
	closing  chan struct{}      // closed when Close begins
	life     context.Context    // ends when workers have to go
	end      context.CancelFunc // of life
	wake     chan struct{}      // pokes the keeper; capacity 1
	calls    sync.WaitGroup     // Execute
	routines sync.WaitGroup     // keeper and members
	closed   sync.Once
	closeErr error

	mu          sync.Mutex
	drained     bool // draining is closed
	shut        bool // closing is closed
	queue       fairQueue
	members     map[*member]struct{} // whose process may exist
	idle        []*member            // longest idle first; the last is taken
	running     int                  // members in that state
	calling     int                  // of those, members that are retained and have invocations
	retained    map[string]*retained // by what the ids of their handles begin with
	places      int                  // for retained executions that are taken, those that end while something is under way included
	reserved    map[*run]struct{}    // that have a place besides
	placesOf    map[string]int       // both, by identity
	tombs       tombs
	rounded     chan struct{} // closed and replaced when the keeper has gone round
	ready       chan struct{} // closed and replaced when a member joins or a start fails
	lastWorker  uint64
	failures    int       // starts that failed in a row
	notBefore   time.Time // no start before
	lastFailure error     // of a start, nil once one succeeded
	warned      string    // the missing layers of isolation that were last warned of
	service     average   // dispatch to end
	totals      Totals

	records records
}

// New checks c and starts the workers; it does not wait for them, see WaitReady. On an error the launcher is still the
// caller's to close.
func New(c Config) (*Pool, error) { return newPool(c, realOutside()) }

func newPool(c Config, o outside) (*Pool, error) {
	if err := c.check(); err != nil {
		return nil, err
	}
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
	p := &Pool{
		log: c.Logger, outside: o, prefix: rand.Text()[:10],
		draining: make(chan struct{}), closing: make(chan struct{}), wake: make(chan struct{}, 1), ready: make(chan struct{}), rounded: make(chan struct{}),
		members: map[*member]struct{}{}, totals: newTotals(), records: newRecords(),
		retained: map[string]*retained{}, reserved: map[*run]struct{}{}, placesOf: map[string]int{},
	}
	p.current.Store(&c)
	var err error
	if p.measure, err = newMeasures(p, c.Meter); err != nil {
		return nil, fmt.Errorf("cannot make pool: %w", err)
	}
	if c.Tracer != nil {
		p.tracer = c.Tracer.Tracer(scope)
	}
	p.life, p.end = context.WithCancel(context.Background())
	p.routines.Go(p.keep)
	return p, nil
}

// WaitReady waits until all workers are ready. When ctx ends first the error says why workers do not start, if they
// do not. A worker without a layer of Config.RequireLayers is an error at once.
func (p *Pool) WaitReady(ctx context.Context) error {
	for {
		p.mu.Lock()
		ready, failure, change := p.serving() >= p.config().Workers, p.lastFailure, p.ready
		p.mu.Unlock()
		if ready {
			return nil
		}
		if errors.Is(failure, errUnconfined) { // the next one will not have it either
			return fmt.Errorf("cannot start workers: %w", failure)
		}
		select {
		case <-change:
		case <-p.closing:
			return closedError()
		case <-ctx.Done():
			if failure != nil {
				return fmt.Errorf("cannot start workers: %w", failure)
			}
			return fmt.Errorf("cannot start workers: %w", context.Cause(ctx))
		}
	}
}

// Execute implements [executor.Executor]. It does not wait for a tool callback that ignores its context, but starts
// none once the execution ended.
func (p *Pool) Execute(ctx context.Context, r executor.Request) (*protocol.Outcome, error) {
	ctx, spans := p.trace(ctx, "execute", r.Trace)
	out, err := p.execute(ctx, &r, spans)
	spans.end(out, err)
	return out, err
}

func (p *Pool) execute(ctx context.Context, r *executor.Request, spans *tracing) (*protocol.Outcome, error) {
	run, err := p.newRun(r)
	if err != nil {
		return nil, err
	}
	run.trace = spans
	spans.queued(ctx, run)
	if !p.enter() {
		return nil, closedError()
	}
	defer p.calls.Done()
	p.records.add(run)
	out, err := p.through(ctx, run)
	p.records.end(run, out, err)
	return out, err
}

// through takes a run from its arrival to its end.
func (p *Pool) through(ctx context.Context, run *run) (*protocol.Outcome, error) {
	if err := p.reserve(run); err != nil {
		if errors.Is(err, protocol.Overloaded) {
			p.turnedAway(run, protocol.Overloaded)
		}
		return nil, err
	}
	defer p.unreserve(run)
	m, err := p.dispatch(ctx, run)
	if !errors.Is(err, protocol.Overloaded) {
		p.measure.waited(ctx, p.outside.now().Sub(run.queued))
	}
	switch {
	case err != nil:
		return nil, err
	case m == nil:
		return run.neverRan(ctx), nil
	}
	return p.follow(ctx, run)
}

// follow takes a run that its worker has to its end.
func (p *Pool) follow(ctx context.Context, run *run) (*protocol.Outcome, error) {
	run.supervise(ctx)
	run.logs.read.Wait()
	run.starting.Wait()
	p.measure.ended(ctx, typeOf(run.out), run.settled.Sub(run.started), run.settled.Sub(run.queued))
	p.report(run)
	if e := run.out.Error; e != nil && (e.Type == protocol.InvalidParams || e.Type == protocol.HandleUnknown) { // nothing ran
		return nil, e
	}
	return run.out, nil
}

// enter counts a call of Execute, unless the pool is closed.
func (p *Pool) enter() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.shut {
		return false
	}
	p.calls.Add(1)
	return true
}

func closedError() error { return protocol.Errorf(protocol.Draining, "the pool is closed") }

// newRun checks a request. Nothing of it was used before.
func (p *Pool) newRun(r *executor.Request) (*run, error) {
	if err := protocol.Validate(&r.Execute); err != nil {
		return nil, err
	}
	config := p.config()
	if err := config.checkNetwork(r); err != nil {
		return nil, err
	}
	if r.Retain != nil && config.Retained == 0 {
		return nil, protocol.FieldError("retain", "this service retains nothing")
	}
	x := p.makeRun(config, r, config.effective(r.Limits))
	x.id = x.number
	if err := x.govern.admit(r); err != nil {
		p.count("moduleBytes")
		return nil, err
	}
	var err error
	if x.message, err = p.newExecute(x.id, r, x.limits); err != nil {
		return nil, err
	}
	return x, nil
}

// makeRun makes the run of a request that was checked, with the limits in force: of an execution, or of an invocation.
func (p *Pool) makeRun(config *Config, r *executor.Request, limits protocol.Limits) *run {
	number := p.lastID.Add(1)
	logs := newLogbook(limits, r.OnLog)
	return &run{
		pool: p, config: config, number: number, execution: cmp.Or(r.Execution, p.nameOf(number)), waiter: newWaiter(r.Identity), req: r,
		limits: limits, govern: p.outside.govern(limits, config.InFlightBytes, logs), logs: logs, queued: p.outside.now(), done: make(chan struct{}),
		exchanges: map[uint64]*exchange{}, turns: make(chan struct{}, fetchesAtOnce),
	}
}

// nameOf is the id of an execution for the operator.
func (p *Pool) nameOf(id uint64) string { return p.prefix + "-" + strconv.FormatUint(id, 10) }

// dispatch gets the run to a worker. Nil without an error means that the caller left before it ran.
func (p *Pool) dispatch(ctx context.Context, r *run) (*member, error) {
	w := r.waiter
	m, err := p.acquire(ctx, r, w)
	for err == nil && m != nil {
		if r.req.OnState != nil {
			r.req.OnState(protocol.State{Execution: r.execution, State: protocol.StateRunning})
		}
		begun, fault := r.begin(r.trace.running(ctx), m)
		if begun {
			return m, nil
		}
		p.unassign(m)
		if fault != nil {
			return nil, fault
		}
		place := p.requeue(r, w)
		if place == 0 {
			return nil, nil
		}
		m, err = p.await(ctx, r, w, place)
	}
	return nil, err
}

// neverRan is the outcome of a run that its caller, or the operator, gave up while it was queued.
func (r *run) neverRan(ctx context.Context) *protocol.Outcome {
	limits, reason := r.limits, ""
	if order := r.ordered.Load(); order != nil {
		reason = *order
	} else {
		reason = cause(ctx)
	}
	return &protocol.Outcome{
		Status: protocol.StatusError, Logs: []protocol.Log{},
		Error: protocol.Errorf(protocol.Cancelled, "%s", reason),
		Stats: protocol.Stats{QueueMs: ms(r.pool.outside.now().Sub(r.queued)), Limits: &limits},
	}
}

// report tells of a run that ended badly.
func (p *Pool) report(r *run) {
	e := r.out.Error
	if e == nil {
		return
	}
	news := Event{
		Kind: ExecutionFailed, Worker: r.m.name,
		Type: e.Type, Reason: e.Reason, Took: p.outside.now().Sub(r.started), Layer: r.by, Late: r.late,
	}
	r.name(&news)
	p.emit(news)
}

// name says in e which execution it is about.
func (r *run) name(e *Event) {
	e.Execution, e.ID, e.Session, e.Identity = r.execution, r.pool.nameOf(r.number), r.req.Session, r.req.Identity
}

// Drain refuses new requests and those that wait, with draining, ends what is retained, and lets go on what runs. It does
// not wait for that, and may be called more than once.
func (p *Pool) Drain() {
	p.mu.Lock()
	if !p.drained {
		p.drained = true
		close(p.draining)
	}
	p.mu.Unlock()
	p.endAll(func(*retained) bool { return true }, EndDraining, stoppingText, "")
}

func drainError() error { return protocol.Errorf(protocol.Draining, stoppingText) }

// Close refuses new requests and those that wait, cancels what runs, and returns when all executions ended and all
// processes are gone. It gives up, with an error, on callbacks that do not return.
func (p *Pool) Close() error {
	p.closed.Do(func() { p.closeErr = p.close() })
	return p.closeErr
}

func (p *Pool) close() error {
	p.Drain()
	p.mu.Lock()
	p.shut = true
	close(p.closing)
	p.mu.Unlock()
	ended := within(&p.calls, closeGrace)
	p.end()
	p.mu.Lock()
	members := make([]*member, 0, len(p.members))
	for m := range p.members {
		members = append(members, m)
	}
	p.mu.Unlock()
	for _, m := range members {
		m.stop()
	}
	gone := within(&p.routines, exitGrace+reapGrace+closeGrace)
	switch {
	case !gone:
		return fmt.Errorf("cannot close pool: worker processes are still there")
	case !ended:
		_ = p.config().Launcher.Close()
		return fmt.Errorf("cannot close pool: callbacks of executions did not return within %s", closeGrace)
	}
	return p.config().Launcher.Close()
}

// within waits for wg, but not for longer than d.
func within(wg *sync.WaitGroup, d time.Duration) bool {
	done := make(chan struct{})
	go func() {
		wg.Wait()
		close(done)
	}()
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-done:
		return true
	case <-timer.C:
		return false
	}
}
