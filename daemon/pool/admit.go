package pool

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/executord/executord/ipc/protocol"
)

// Bounds of the hint with overloaded, and the guess before anything was measured.
const (
	leastRetry   = 10 * time.Millisecond
	mostRetry    = time.Minute
	guessService = 100 * time.Millisecond
)

// average is an exponentially weighted mean of durations.
type average time.Duration

func (a *average) add(d time.Duration) {
	if *a == 0 {
		*a = average(d)
		return
	}
	*a += (average(d) - *a) / 8
}

// acquire gets a worker, waiting for its turn if it has to. Nil without an error means that ctx ended first.
func (p *Pool) acquire(ctx context.Context, r *run, w *waiter) (*member, error) {
	if ctx.Err() != nil {
		p.countLeft()
		return nil, nil
	}
	m, place, err := p.admit(r, w)
	switch {
	case errors.Is(err, protocol.Draining):
		return nil, err
	case err != nil:
		p.turnedAway(r, protocol.AsError(err).Type)
		return nil, err
	case m != nil || place == 0:
		return m, nil
	}
	return p.await(ctx, r, w, place)
}

func (p *Pool) turnedAway(r *run, t protocol.Type) {
	e := Event{Kind: Overload, Type: t}
	r.name(&e)
	p.emit(e)
}

// admit takes an idle worker or a place in the queue, from 1; neither for a run that the operator cancelled.
func (p *Pool) admit(r *run, w *waiter) (m *member, place int, err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	switch {
	case p.drained:
		return nil, 0, drainError()
	case r.ordered.Load() != nil:
		p.totals.Left++
		return nil, 0, nil
	}
	if p.queue.size == 0 {
		if m := p.take(w.identity); m != nil {
			return m, 0, nil
		}
	}
	// Counted over those who wait and those who run: a worker that is just being made ready is room for one.
	workers := p.config().Workers
	full := crowd(p.running, p.calling, workers)+p.queue.size >= workers+p.config().Queue
	if full || p.queue.load(w.identity, workers) >= workers+p.config().QueuePerIdentity {
		p.totals.Overloaded++
		return nil, 0, p.overloaded()
	}
	return nil, p.queue.push(w), nil
}

// crowd is how many of those who run count against the room to wait: the workers but for those on which an execution could
// begin. Invocations take none of that room.
func crowd(running, calling, workers int) int {
	return workers - max(0, room(calling, workers)-(running-calling))
}

// room is for how many executions there is while so many retained workers have invocations: these compute in their place, but
// one execution may always run, whoever keeps invocations under way.
func room(calling, workers int) int { return max(1, workers-calling) }

// overloaded says when to come back: when what waits now will have run, by the service time of late.
func (p *Pool) overloaded() error {
	service := time.Duration(p.service)
	if service == 0 {
		service = guessService
	}
	wait := service * time.Duration(p.queue.size+1) / time.Duration(p.config().Workers)
	e := protocol.Errorf(protocol.Overloaded, "all %d workers are busy and %d requests wait", p.config().Workers, p.queue.size)
	e.RetryAfterMs = min(max(wait, leastRetry), mostRetry).Milliseconds()
	return e
}

// await waits for the turn of w, which is queued at place. Nil without an error means that nobody waits any more.
func (p *Pool) await(ctx context.Context, r *run, w *waiter, place int) (*member, error) {
	if r.req.OnState != nil {
		r.req.OnState(protocol.State{Execution: r.execution, State: protocol.StateQueued, Position: place})
	}
	tooLong, stop := p.outside.timer(r.config.QueueTimeout - p.outside.now().Sub(r.queued))
	defer stop()
	select {
	case m := <-w.grant:
		return m, nil
	case <-ctx.Done():
		p.giveUp(w)
		return nil, nil
	case <-p.draining:
		p.giveUp(w)
		return nil, drainError()
	case <-tooLong:
		if !p.leaveQueue(w, &p.totals.QueueTimeouts) {
			return <-w.grant, nil // just in time
		}
		err := protocol.Errorf(protocol.QueueTimeout, "no worker was free within %s", r.config.QueueTimeout)
		p.turnedAway(r, err.Type)
		return nil, err
	}
}

// leaveQueue takes w out and counts it; false means that w was granted a worker before.
func (p *Pool) leaveQueue(w *waiter, count *uint64) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.queue.remove(w) {
		return false
	}
	*count++
	return true
}

// giveUp gives up the place of w, or the worker that it was just granted.
func (p *Pool) giveUp(w *waiter) {
	if !p.leaveQueue(w, &p.totals.Left) {
		if m := <-w.grant; m != nil {
			p.unassign(m)
			p.countLeft()
		}
	}
}

// discharge takes w out of the queue for the operator; false when it does not wait there.
func (p *Pool) discharge(w *waiter) bool {
	if !p.leaveQueue(w, &p.totals.Left) {
		return false
	}
	w.grant <- nil
	return true
}

func (p *Pool) countLeft() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.totals.Left++
}

// requeue puts w before everybody, for the worker that it was granted died. A run that the operator cancelled gets no
// place.
func (p *Pool) requeue(r *run, w *waiter) (place int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if r.ordered.Load() != nil {
		p.totals.Left++
		return 0
	}
	p.queue.pushFront(w)
	p.serve()
	return 1
}

// take assigns the worker that became idle last, whose memory is warm, to an execution of identity; nil when there is none
// or too many run. With mu.
func (p *Pool) take(identity string) *member {
	if len(p.idle) == 0 || p.running-p.calling >= room(p.calling, p.config().Workers) {
		return nil
	}
	last := len(p.idle) - 1
	m := p.idle[last]
	p.idle = slices.Delete(p.idle, last, last+1)
	m.state = running
	m.executions++
	if m.executions >= p.config().WorkerMaxExecutions {
		m.due = true
		p.poke() // the replacement starts while the last execution runs
	}
	m.lane = p.queue.enter(identity)
	m.lane.running++
	p.running++
	return m
}

// serve gives idle workers to those who wait. With mu.
func (p *Pool) serve() {
	for p.queue.size > 0 {
		front := p.queue.ring.Front().Value.(*lane)
		m := p.take(front.identity)
		if m == nil {
			return
		}
		p.queue.pop().grant <- m
	}
}

// release ends the assignment of m. With mu.
func (p *Pool) release(m *member) {
	if m.state != running {
		return
	}
	p.running--
	m.lane.running--
	if m.held != nil {
		p.calling--
		m.lane.calling--
	}
	p.queue.leave(m.lane)
	m.lane = nil
	m.state = leaving
}

// unassign takes m back from somebody who did not use it.
func (p *Pool) unassign(m *member) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if m.state == running {
		p.release(m)
		m.executions--
		if m.gone.Load() {
			p.serve()
			return
		}
		m.state = idle
		p.idle = append(p.idle, m)
	}
	p.serve()
}
