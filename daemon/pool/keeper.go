package pool

import (
	"fmt"
	"slices"
	"time"

	"github.com/executord/executord/ipc/protocol"
	"github.com/executord/executord/ipc/worker"
)

// keepEvery is the longest time between two rounds of the keeper.
const keepEvery = 10 * time.Second

// provenAfter is the age at which a worker that never ran anything no longer counts as one that failed to start.
const provenAfter = 10 * time.Second

// keep is the goroutine that replaces workers: those that are gone, and those that are due.
func (p *Pool) keep() {
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		select {
		case <-p.closing:
			return
		case <-p.wake:
		case <-timer.C:
		}
		surplus, next := p.round()
		for _, m := range surplus {
			m.stop()
		}
		timer.Reset(min(next, p.expire()))
	}
}

// poke makes the keeper go round.
func (p *Pool) poke() {
	select {
	case p.wake <- struct{}{}:
	default:
	}
}

// round starts what is missing and returns the idle workers to end, and when to come again.
func (p *Pool) round() (surplus []*member, next time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.shut {
		return nil, keepEvery
	}
	close(p.rounded)
	p.rounded = make(chan struct{})
	now := p.outside.now()
	next = p.markDue(now)
	p.shrink()
	for missing := p.config().processes() - p.fresh(); missing > 0; missing-- {
		if wait := p.notBefore.Sub(now); wait > 0 {
			next = min(next, wait)
			break
		}
		p.spawn(now)
	}
	for _, m := range slices.Clone(p.idle) {
		if p.replaced(m) {
			p.idle = slices.DeleteFunc(p.idle, func(o *member) bool { return o == m })
			m.state = leaving
			surplus = append(surplus, m)
		}
	}
	return surplus, next
}

// markDue marks workers that are too old, and returns when the next will be.
func (p *Pool) markDue(now time.Time) time.Duration {
	next := keepEvery
	for m := range p.members {
		if m.held != nil {
			continue
		}
		age := time.Duration(float64(p.config().WorkerMaxAge) * m.ageing)
		if left := age - now.Sub(m.born); left > 0 {
			next = min(next, left)
		} else {
			m.due = true
		}
	}
	return next
}

// shrink marks workers that are more than there shall be, those that do nothing first. With mu.
func (p *Pool) shrink() {
	extra := p.fresh() - p.config().processes()
	for _, state := range []memberState{idle, starting, restoring, running} {
		for m := range p.members {
			if extra > 0 && m.state == state && !m.due && m.held == nil {
				m.due = true
				extra--
			}
		}
	}
}

// fresh counts the workers that need no replacement: those that are retained do. With mu.
func (p *Pool) fresh() int {
	n := 0
	for m := range p.members {
		if !m.due && m.state != leaving && m.held == nil {
			n++
		}
	}
	return n
}

// serving counts the workers that are through with their start, due ones included, retained ones not. With mu.
func (p *Pool) serving() int {
	n := 0
	for m := range p.members {
		if m.held == nil && (m.state == idle || m.state == running || m.state == restoring) {
			n++
		}
	}
	return n
}

// replaced tells that m is due and everybody else makes up for it. With mu.
func (p *Pool) replaced(m *member) bool { return m.due && p.serving() > p.config().Workers }

// spawn starts a worker on a goroutine of its own. With mu.
func (p *Pool) spawn(now time.Time) {
	p.lastWorker++
	m := &member{
		pool: p, name: fmt.Sprintf("worker-%d", p.lastWorker), born: now, ageing: 0.9 + 0.2*p.outside.random(), hello: worker.Hello{},
	}
	p.members[m] = struct{}{}
	p.routines.Go(func() { m.live(p.life) })
}

// note changes what mu guards in m.
func (p *Pool) note(m *member, change func()) {
	p.mu.Lock()
	defer p.mu.Unlock()
	change()
}

// join makes a worker that is ready idle. It returns errRetired when the worker is due and was replaced.
func (p *Pool) join(m *member, grown bool) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if m.state == starting {
		p.lastFailure = nil
		p.totals.Started++
	}
	m.state = idle
	m.due = m.due || grown
	if p.shut || p.replaced(m) {
		m.state = leaving
		return errRetired
	}
	p.idle = append(p.idle, m)
	p.announce()
	p.serve()
	p.poke()
	return nil
}

// announce wakes WaitReady. With mu.
func (p *Pool) announce() {
	close(p.ready)
	p.ready = make(chan struct{})
}

// finished frees the place of a run that has its result. True means that the worker has done all it may.
func (p *Pool) finished(m *member, r *run, out *protocol.Outcome) (exhausted bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.release(m)
	p.account(r, out, LayerEngine)
	p.failures, p.notBefore = 0, time.Time{}
	exhausted = m.executions >= p.config().WorkerMaxExecutions
	if !exhausted {
		m.state = restoring
	}
	p.serve()
	return exhausted
}

// account counts a run that ended. With mu.
func (p *Pool) account(r *run, out *protocol.Outcome, by Layer) {
	r.by = by
	p.totals.Executions++
	p.totals.Endings[typeOf(out)]++
	p.totals.Layers[by]++
	if name := limitsHit(typeOf(out), by, r.limits, out.Stats); name != "" {
		p.totals.Limits[name]++
	}
	for _, name := range r.used.reached {
		p.totals.Limits[name]++
	}
	r.used.tools.addTo(p.totals.ToolCalls)
	r.used.exchanges.addTo(p.totals.Fetches)
	if r.invoked != nil {
		p.totals.Invocations++
		return
	}
	p.service.add(p.outside.now().Sub(r.started))
}

// left forgets a worker whose process is gone.
func (p *Pool) left(m *member, d death) {
	p.mu.Lock()
	wasReady := m.state != starting
	p.release(m)
	k := p.lose(m, d)
	m.state = leaving
	p.idle = slices.DeleteFunc(p.idle, func(o *member) bool { return o == m })
	delete(p.members, m)
	for _, r := range d.runs {
		p.account(r, r.out, r.endedBy(d.err))
	}
	kind := p.judge(m, wasReady, d)
	p.serve()
	p.announce()
	p.mu.Unlock()
	p.poke()
	p.obituary(m, k, kind, d)
}

// judge counts how a worker ended, and delays the next start when workers do not even get to their first execution.
// With mu.
func (p *Pool) judge(m *member, wasReady bool, d death) EventKind {
	if d.err == errRetired || d.spent() && m.executions > 0 {
		p.totals.Retired++
		return WorkerRetired
	}
	now := p.outside.now()
	kind := WorkerCrashed
	switch {
	case !wasReady:
		kind = WorkerFailed
		p.totals.Failed++
		p.lastFailure = startError{fmt.Sprintf("worker failed to start: %s; stderr: %q", m.obituary(d.err, d.exit), m.stderr()), d.err}
	case d.typ != "" && d.typ != protocol.WorkerCrashed:
		kind = WorkerStopped
		p.totals.Stopped++
	default:
		p.totals.Crashed++
	}
	if d.typ == "" && m.executions == 0 && now.Sub(m.born) < provenAfter || !wasReady {
		p.failures++
		p.notBefore = now.Add(backoff(p.failures, p.outside.random()))
	}
	return kind
}

// startError is why a worker did not get ready, in full for the operator.
type startError struct {
	text  string
	cause error
}

func (e startError) Error() string { return e.text }
func (e startError) Unwrap() error { return e.cause }

// obituary tells the operator how a worker ended, k being what was lost with it, if anything. That a program had to be stopped
// with its process is everyday work.
func (p *Pool) obituary(m *member, k *retained, kind EventKind, d death) {
	e := Event{Kind: kind, Worker: m.name, Type: d.typ, Reason: d.exit.String(), Detail: m.obituary(d.err, d.exit), Stderr: m.stderr()}
	if m.proc != nil {
		e.PID = m.proc.PID()
	}
	if len(d.runs) > 0 {
		d.runs[0].name(&e)
	}
	log := p.log.With("worker", e.Worker, "pid", e.PID, "execution", e.Execution, "detail", e.Detail)
	switch kind {
	case WorkerRetired:
		log.Debug("worker retired")
	case WorkerStopped:
		log.Info("worker stopped with its program", "type", string(e.Type), "stderr", e.Stderr)
	default:
		log.Warn("worker ended", "event", string(kind), "reason", e.Reason, "stderr", e.Stderr)
	}
	p.emit(e)
	if k != nil {
		p.emit(k.lost(m, d))
	}
}
