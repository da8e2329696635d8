package pool

import (
	"context"
	"errors"
	"time"

	"github.com/executord/executord/ipc/executor"
	"github.com/executord/executord/ipc/protocol"
	"github.com/executord/executord/ipc/worker"
)

// invocationsAtOnce bounds those into one retained execution.
const invocationsAtOnce = 64

// invocation is what a run calls that is no execution.
type invocation struct {
	of      *retained
	message worker.Invoke
}

// Invoke implements [executor.Retainer].
func (p *Pool) Invoke(ctx context.Context, i executor.Invocation) (*protocol.Outcome, error) {
	ctx, spans := p.trace(ctx, "invoke", i.Trace)
	out, err := p.invoke(ctx, &i, spans)
	spans.end(out, err)
	return out, err
}

func (p *Pool) invoke(ctx context.Context, i *executor.Invocation, spans *tracing) (*protocol.Outcome, error) {
	if err := protocol.ValidateInvoke(&i.HandleInvoke); err != nil {
		return nil, err
	}
	if !p.enter() {
		_, _, err := p.engage(i) // a closed pool retains nothing: it is why the handle is unknown
		return nil, err
	}
	defer p.calls.Done()
	k, handle, err := p.engage(i)
	if err != nil {
		return nil, err
	}
	run, err := p.newInvocation(k, handle, i)
	if err != nil {
		p.disengage(k)
		return nil, err
	}
	run.trace = spans
	spans.invoked(run)
	p.records.add(run)
	out, err := p.call(ctx, run, i.Begun)
	p.records.end(run, out, err)
	return out, err
}

// call takes an invocation from its acceptance to its end.
func (p *Pool) call(ctx context.Context, run *run, begun func()) (*protocol.Outcome, error) {
	if ctx.Err() != nil {
		p.disengage(run.invoked.of)
		out := run.neverRan(ctx)
		p.mu.Lock()
		out.Retained = run.invoked.of.tell(0, p.outside.now())
		p.mu.Unlock()
		return out, nil
	}
	if run.req.OnState != nil {
		run.req.OnState(protocol.State{Execution: run.execution, State: protocol.StateRunning})
	}
	if err := run.beginCall(run.trace.running(ctx)); err != nil {
		p.disengage(run.invoked.of)
		return nil, err
	}
	if begun != nil {
		begun()
	}
	return p.follow(ctx, run)
}

// engage finds what an invocation calls, and counts it. What is gone is unknown also while the pool drains: that is final, and
// draining would have the caller try elsewhere.
func (p *Pool) engage(i *executor.Invocation) (k *retained, handle uint64, err error) {
	p.mu.Lock()
	k, handle, err = p.handle(i.Host.Session, i.Handle)
	switch {
	case err != nil:
	case p.drained:
		err = drainError()
	case k.calls >= invocationsAtOnce:
		e := protocol.Errorf(protocol.Overloaded, "%d invocations of this retained execution are under way", k.calls)
		e.RetryAfterMs = leastRetry.Milliseconds()
		p.totals.Overloaded++
		err = e
	}
	if err == nil {
		p.occupy(k)
	}
	p.mu.Unlock()
	if errors.Is(err, protocol.Overloaded) {
		p.emit(Event{Kind: Overload, Type: protocol.Overloaded, Execution: i.Execution, Session: i.Host.Session, Identity: i.Host.Identity})
	}
	return k, handle, err
}

// occupy counts an invocation; with the first the worker is one that runs a program. With mu.
func (p *Pool) occupy(k *retained) {
	if k.calls++; k.calls > 1 {
		return
	}
	m := k.m
	m.state = running
	m.lane = p.queue.enter(k.identity)
	m.lane.running++
	m.lane.calling++
	p.running++
	p.calling++
}

// vacate is the end of what occupy began. With mu.
func (p *Pool) vacate(k *retained) {
	k.calls--
	k.used = p.outside.now()
	switch {
	case k.parted || k.calls > 0:
		return
	case k.over:
		p.free(k, false)
		return
	}
	p.release(k.m)
	k.m.state = keeping
	if k.spent() {
		k.end(EndReleased, releasedText)
	}
	p.serve()
	p.poke() // when it is due is another time now
}

// disengage takes back an invocation that did not begin.
func (p *Pool) disengage(k *retained) {
	p.mu.Lock()
	p.vacate(k)
	p.mu.Unlock()
	_ = k.part()
}

// newInvocation makes the run of an invocation.
func (p *Pool) newInvocation(k *retained, handle uint64, i *executor.Invocation) (*run, error) {
	config := p.config()
	host := i.Host
	host.Execute = protocol.Execute{Execution: i.Execution, Name: k.name, Network: k.network, Logs: i.Logs, Trace: i.Trace}
	if err := config.checkNetwork(&host); err != nil {
		return nil, err
	}
	args, err := arguments(i.Args)
	if err != nil {
		return nil, err
	}
	r := p.makeRun(config, &host, config.overlay(k.limits, i.Limits))
	r.govern.share(&k.guest)
	r.tools = k.tools
	r.invoked = &invocation{k, worker.Invoke{Handle: handle, Method: string(i.Method), Args: args, Limits: newLimits(r.limits)}}
	return r, nil
}

// overlay is l with what an invocation wants otherwise. What it may not give was refused before.
func (c *Config) overlay(l, asked protocol.Limits) protocol.Limits {
	for _, f := range limits {
		if n := *asked.Field(f.Name); n > 0 {
			*l.Field(f.Name) = min(max(n, f.Least), *c.MaxLimits.Field(f.Name))
		}
	}
	return l
}

// arguments is the JSON text of an array of values.
func arguments(values []protocol.Value) ([]byte, error) {
	n := 2
	for _, v := range values {
		n += len(v) + 1
	}
	if n > worker.DefaultFrameBytes-frameMargin {
		return nil, protocol.FieldError("args", "have %d bytes, more than %d", n, worker.DefaultFrameBytes-frameMargin)
	}
	text := append(make([]byte, 0, n), '[')
	for i, v := range values {
		if i > 0 {
			text = append(text, ',')
		}
		if v == nil {
			v = protocol.UndefinedValue
		}
		text = append(text, v...)
	}
	return append(text, ']'), nil
}

// beginCall tells the worker. An error means that it heard of nothing.
func (r *run) beginCall(ctx context.Context) error {
	k, message := r.invoked.of, r.invoked.message
	r.invoked.message.Args = nil // no need to hold them
	thread, _ := k.m.meter.thread()
	r.mount(ctx, k.m, thread)
	if err := k.send(r, message); err != nil {
		r.abandon()
		return err
	}
	r.begun()
	return nil
}

// send gives an invocation its number on the channel, under which its reader finds it from then on.
func (k *retained) send(r *run, message worker.Invoke) error {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.closed {
		return k.wasOver()
	}
	r.id = r.pool.lastID.Add(1)
	message.ID = r.id
	k.m.tell(r.id)
	k.begun[r.id] = r
	switch err := k.m.conn.TrySend(message); {
	case errors.Is(err, worker.ErrTooLarge):
		delete(k.begun, r.id)
		return protocol.FieldError("args", "are larger than a message may be")
	case errors.Is(err, worker.ErrQueueFull):
		delete(k.begun, r.id)
		e := protocol.Errorf(protocol.Overloaded, "the retained execution does not read what is sent to it")
		e.RetryAfterMs = leastRetry.Milliseconds()
		return e
	}
	return nil // a channel that broke ends the run through its reader
}

// wasOver is for an invocation that came while its isolate ended. How that ended may not be known yet.
func (k *retained) wasOver() error {
	return protocol.Errorf(protocol.HandleUnknown, "the retained execution has just ended")
}

// returned is result for an invocation.
func (m *member) returned(r *run, msg worker.Result, out *protocol.Outcome) error {
	k := m.kept
	others := k.remove(r, !msg.Retained)
	if msg.Retained {
		m.pool.answered(r, msg, out)
		r.finish(out)
		return k.part()
	}
	typ := typeOf(out)
	gone := m.pool.spoiled(r, out, len(others) > 0)
	r.finish(out)
	if len(others) > 0 {
		for _, o := range others {
			o.condemn(o.interrupted(typ))
		}
		return nil
	}
	m.kept, m.moveBy = nil, time.Now().Add(m.pool.config().SpawnTimeout)
	if gone {
		return errRetired
	}
	return nil
}

// remove forgets an invocation that ended, and returns those that are left. With last no other begins.
func (k *retained) remove(r *run, last bool) []*run {
	k.mu.Lock()
	delete(k.begun, r.id)
	k.mu.Unlock()
	return k.underWay(last)
}

// interrupted is the verdict on an invocation that ends because another was stopped.
func (r *run) interrupted(t protocol.Type) *verdict {
	if own, _ := r.wasCancelled(); own != nil {
		return own
	}
	return &verdict{typ: protocol.Cancelled, message: "the retained execution ended: another call into it was stopped (" + string(t) + ")"}
}

// answered counts an invocation after which the isolate stays.
func (p *Pool) answered(r *run, msg worker.Result, out *protocol.Outcome) {
	k := r.invoked.of
	p.mu.Lock()
	defer p.mu.Unlock()
	p.account(r, out, LayerEngine)
	handles := k.issue(msg.Handles, out.Error == nil && !k.over)
	p.vacate(k)
	out.Retained = k.tell(handles, r.settled)
}

// spoiled counts an invocation after which the isolate is over. Unless others have to be killed with it, its worker makes
// itself ready, or is gone, for another took its place.
func (p *Pool) spoiled(r *run, out *protocol.Outcome, others bool) (gone bool) {
	k := r.invoked.of
	p.mu.Lock()
	defer p.mu.Unlock()
	p.account(r, out, LayerEngine)
	k.end(EndStopped, stoppedText(typeOf(out)))
	if others {
		return false
	}
	if !k.parted {
		p.free(k, true)
	}
	return k.stops
}

func stoppedText(t protocol.Type) string { return "a call into it was stopped (" + string(t) + ")" }
