package pool

import (
	"context"
	"time"

	"github.com/executord/executord/ipc/protocol"
	"github.com/executord/executord/ipc/worker"
)

const (
	// stopGrace is what a worker has to end an execution by itself after a limit of the worker's own clocks, before it
	// is killed.
	stopGrace = worker.EngineGrace + 100*time.Millisecond
	// lookEvery is the time between two looks at memory and CPU. A program fills memory with 1 to 2 GB/s (the kernel has to
	// clear each page), and what fits into one interval comes on top of the slack.
	lookEvery = 20 * time.Millisecond
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
			w.cancel(cause(ctx))
		case <-w.closing:
			w.closing = nil
			w.cancel("the service is shutting down")
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
		return clip(err.Error(), maxDetail)
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
	cancelBy        time.Time // zero when not cancelled
}

// cancel tells the worker, which then has its grace.
func (w *watch) cancel(reason string) {
	w.run.halt(reason)
	if w.cancelBy.IsZero() {
		w.cancelBy = w.run.pool.outside.now().Add(stopGrace)
	}
}

// deadlines are when the run is killed if nothing changes, zero for never.
func (w *watch) deadlines() (total, wall, cancel time.Time) {
	r := w.run
	total = r.started.Add(millis(r.limits.TotalMs) + stopGrace)
	r.mu.Lock()
	defer r.mu.Unlock()
	if !r.guest.since.IsZero() {
		wall = r.guest.since.Add(millis(r.limits.WallMs) + stopGrace - r.guest.counted)
	}
	return total, wall, w.cancelBy
}

// next is how long to sleep: to the next deadline, but no longer than to the next look.
func (w *watch) next() time.Duration {
	now, sleep := w.run.pool.outside.now(), lookEvery
	total, wall, cancel := w.deadlines()
	for _, t := range []time.Time{total, wall, cancel} {
		if !t.IsZero() {
			sleep = min(sleep, max(t.Sub(now), 0))
		}
	}
	return sleep
}

// look condemns the run if one of its clocks or its memory is past what the worker should have stopped by itself, and
// tells whether it did.
func (w *watch) look() bool {
	r := w.run
	now := r.pool.outside.now()
	total, wall, cancel := w.deadlines()
	past := func(t time.Time) bool { return !t.IsZero() && !now.Before(t) }
	switch {
	case past(cancel):
		r.condemn(r.wasCancelled())
	case past(total):
		r.condemn(stopped(protocol.TotalTimeout, r.limits))
	case past(wall):
		r.condemn(stopped(protocol.WallTimeout, r.limits))
	case w.overCPU():
		r.condemn(stopped(protocol.CPUTimeout, r.limits))
	case w.overMemory():
		r.condemn(stopped(protocol.MemoryLimit, r.limits))
	default:
		return false
	}
	return true
}

// A figure that cannot be read means that the process is gone, which its reader finds out.

func (w *watch) overCPU() bool {
	r := w.run
	used, err := r.m.meter.cpu()
	if err != nil {
		return false
	}
	r.mu.Lock()
	r.seenCPU = used
	r.mu.Unlock()
	return used-r.startCPU > cpuFactor*millis(r.limits.CPUMs)+stopGrace
}

func (w *watch) overMemory() bool {
	l, m := w.run.limits, w.run.m
	used, err := m.meter.rss()
	return err == nil && used > m.baseline.Load()+(2*l.HeapMiB+l.BufferMiB)<<20+w.run.pool.config.MemorySlackBytes
}
