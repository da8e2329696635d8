package pool

import (
	"context"
	"time"

	"github.com/executord/executord/ipc/protocol"
	"github.com/executord/executord/ipc/worker"
)

const (
	// stopGrace is what a worker has to end an execution by itself after a deadline, before it is killed: no program runs
	// on for 250 ms after one.
	stopGrace = worker.EngineGrace + 100*time.Millisecond
	// lookEvery is the time between two looks at memory and CPU. A program fills memory with 1 to 2 GB/s (the kernel has to
	// clear each page), and what fits into one interval comes on top of the slack.
	lookEvery = 20 * time.Millisecond
	// cpuGrace is the same from the look that finds the isolate's thread over its limit, which is late by a look at most.
	cpuGrace = stopGrace - lookEvery
	// cpuFactor is how much CPU time the whole process may use per CPU time of the isolate's thread: garbage collection
	// and compilation run on one thread of V8's beside it, and the Go runtime's threads wait for most of the time.
	cpuFactor = 2
)

// supervise watches the run from outside until it is over. It never waits for the worker or the caller.
func (r *run) supervise(ctx context.Context) {
	w := watch{run: r, caller: ctx.Done(), closing: r.pool.closing}
	timer := time.NewTimer(lookEvery)
	defer timer.Stop()
	for {
		select {
		case <-r.done:
			return
		case <-w.caller:
			w.caller = nil
			r.halt(cause(ctx))
		case <-w.closing:
			w.closing = nil
			r.halt("the service is shutting down")
		case <-timer.C:
			if w.look() {
				<-r.done // it is being killed; the reader bounds how long that takes
				return
			}
		}
		timer.Reset(w.next())
	}
}

// cause is the text of why the caller gave up.
func cause(ctx context.Context) string {
	if err := context.Cause(ctx); err != nil && err != ctx.Err() {
		return Clip(err.Error(), maxDetail)
	}
	if ctx.Err() == context.DeadlineExceeded {
		return "the caller's deadline passed"
	}
	return "the caller cancelled the execution"
}

// watch is what supervise knows between two looks.
type watch struct {
	run             *run
	caller, closing <-chan struct{}
	cpuBy           time.Time // zero while the isolate's thread is within its limit
}

// deadline is when the run is killed if nothing changes, and what for.
func (w *watch) deadline() (time.Time, *verdict) {
	r := w.run
	due, typ := r.govern.due()
	by, v := due.Add(stopGrace), stopped(typ, r.limits)
	if !w.cpuBy.IsZero() && w.cpuBy.Before(by) {
		by, v = w.cpuBy, stopped(protocol.CPUTimeout, r.limits)
	}
	if cancelled, at := r.wasCancelled(); cancelled != nil && at.Add(stopGrace).Before(by) {
		by, v = at.Add(stopGrace), cancelled
	}
	return by, v
}

// next is how long to sleep: to the deadline, but no longer than to the next look.
func (w *watch) next() time.Duration {
	by, _ := w.deadline()
	return min(lookEvery, max(by.Sub(w.run.pool.outside.now()), 0))
}

// look condemns the run if one of its clocks or its memory is past what the worker should have stopped by itself, and
// tells whether it did.
func (w *watch) look() bool {
	r := w.run
	over := w.overCPU()
	by, v := w.deadline()
	switch now := r.pool.outside.now(); {
	case !now.Before(by):
		r.late = now.Sub(by) + stopGrace
	case over:
		v = stopped(protocol.CPUTimeout, r.limits)
	case w.overMemory():
		v = stopped(protocol.MemoryLimit, r.limits)
	default:
		return false
	}
	r.condemn(v)
	return true
}

// A figure that cannot be read means that the process is gone, which its reader finds out.

// overCPU tells whether the whole process used far more than the isolate's thread may, and starts the grace of a thread
// that used all it may.
func (w *watch) overCPU() bool {
	r := w.run
	used, err := r.m.meter.cpu()
	if err != nil {
		return false
	}
	r.mu.Lock()
	r.seenCPU = used
	r.mu.Unlock()
	limit := millis(r.limits.CPUMs)
	if w.cpuBy.IsZero() && used-r.startCPU >= limit { // else the thread cannot have
		if thread, err := r.m.meter.thread(); err == nil && thread-r.startThread >= limit {
			w.cpuBy = r.pool.outside.now().Add(cpuGrace)
		}
	}
	return used-r.startCPU > cpuFactor*limit+stopGrace
}

func (w *watch) overMemory() bool {
	m := w.run.m
	used, err := m.meter.rss()
	return err == nil && used > m.baseline.Load()+mostMemory(w.run.limits)
}

// mostMemory is how many bytes a worker may have beyond those at rest.
func mostMemory(l protocol.Limits) int64 { return (2*l.HeapMiB + l.BufferMiB + l.SlackMiB) << 20 }
