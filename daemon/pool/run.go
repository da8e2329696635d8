package pool

import (
	"context"
	"sync"
	"time"

	"github.com/executord/executord/ipc/executor"
	"github.com/executord/executord/ipc/protocol"
	"github.com/executord/executord/ipc/worker"
)

// run is one execution from its arrival to its outcome.
type run struct {
	starting sync.WaitGroup // calls of Request.Call that have a goroutine but are not in the host's hands yet

	pool      *Pool
	id        uint64 // on the channel
	execution string // the caller's id
	req       *executor.Request
	limits    protocol.Limits
	message   worker.Execute
	queued    time.Time

	// Set by begin, before the worker hears of the execution.
	m        *member
	ctx      context.Context // of tool calls
	cancel   context.CancelFunc
	logs     *logbook
	started  time.Time
	startCPU time.Duration // of the process

	turns chan struct{} // of fetches; has an item for each that is performed

	done chan struct{}     // closed by finish
	out  *protocol.Outcome // set before done is closed

	mu        sync.Mutex
	ended     bool     // no more frames, calls or verdicts count
	verdict   *verdict // the pool's own; set at most once, and then the process dies
	cancelled *verdict // set when the worker was told to cancel
	tools     toolset  // made at the first call
	lastCall  uint64
	calls     int64
	waiting   int // calls under way
	inFlight  int64

	exchanges  map[uint64]*exchange // fetches that are not at their end
	lastFetch  uint64
	fetches    int64
	fetchBytes int64 // of bodies, both ways
	open       int   // exchanges that have a body

	guest    stopwatch
	peakHeap uint64
	seenCPU  time.Duration // of the process, at the last look
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

// begin makes the run the worker's and sends it. False means that the worker was dead before it could hear of it; the
// run can then begin on another.
func (r *run) begin(ctx context.Context, m *member) (bool, error) {
	now := r.pool.outside.now()
	r.m, r.started = m, now
	r.startCPU, _ = m.meter.cpu()
	r.ctx, r.cancel = context.WithCancel(ctx)
	r.logs = newLogbook(r.limits, r.req.OnLog)
	r.guest.start(now)
	m.lastID.Store(r.id)
	m.run.Store(r)
	if m.gone.Load() && m.run.CompareAndSwap(r, nil) {
		r.abandon()
		return false, nil
	}
	switch err := m.conn.TrySend(r.message); {
	case err == worker.ErrTooLarge && m.run.CompareAndSwap(r, nil):
		r.abandon()
		return false, protocol.Errorf(protocol.InvalidParams, "the request is larger than a message may be")
	case err == worker.ErrQueueFull:
		r.condemn(unresponsive("the worker does not read its channel"))
	} // a channel that broke ends the run through its reader
	return true, nil
}

// abandon undoes begin where nothing was sent.
func (r *run) abandon() {
	r.cancel()
	r.logs.close(0, 0, 0)
	r.logs.read.Wait()
}

// condemn makes v the outcome, whatever the worker still says, and kills it. It does nothing once the run ended or was
// condemned: whichever came first stands.
func (r *run) condemn(v *verdict) {
	r.mu.Lock()
	first := !r.ended && r.verdict == nil
	if first {
		r.verdict = v
	}
	r.mu.Unlock()
	if first {
		r.m.kill()
	}
}

// halt tells the worker to cancel, the first time. When it returns the worker has been told.
func (r *run) halt(reason string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.cancelled == nil {
		r.cancelled = &verdict{typ: protocol.Cancelled, message: reason}
		// A queue that is full means that the worker does not read: then it is killed in time.
		_ = r.m.conn.TrySend(worker.Cancel{ID: r.id, Reason: reason})
	}
}

// wasCancelled is the verdict of halt, nil before it.
func (r *run) wasCancelled() *verdict {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.cancelled
}

// beat takes what a heartbeat says of this run.
func (r *run) beat(h worker.Heartbeat) {
	r.mu.Lock()
	r.peakHeap = max(r.peakHeap, h.HeapBytes)
	r.mu.Unlock()
}

// settle ends the run with the worker's own result. False means that the run is condemned: the result does not count.
// The error is a violation.
func (r *run) settle(m worker.Result) (*protocol.Outcome, error) {
	r.mu.Lock()
	cancelled := r.cancelled != nil
	r.mu.Unlock()
	value, fault, err := checkResult(m, r.limits, cancelled)
	if err != nil || !r.end() {
		return nil, err
	}
	out := r.outcome(m.DroppedLines, m.DroppedBytes)
	if fault != nil {
		out.Status, out.Error = protocol.StatusError, fault
	} else {
		out.Status, out.Value = protocol.StatusOK, value
	}
	out.Stats.CPUMs = ms(m.CPU)
	out.Stats.WallMs = min(ms(m.Wall), out.Stats.TotalMs)
	out.Stats.PeakHeapBytes = int64(min(m.PeakHeapBytes, protocol.MaxLimit))
	return out, nil
}

// end makes the run deaf. False when it was condemned.
func (r *run) end() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.verdict != nil {
		return false
	}
	r.ended = true
	return true
}

// fail makes the outcome of a run whose worker is gone: the pool's verdict where there is one, else last.
func (r *run) fail(exit ExitState, last func(cancelled *verdict) *verdict) *protocol.Outcome {
	r.mu.Lock()
	r.ended = true
	v, cancelled, peak := r.verdict, r.cancelled, r.peakHeap
	cpu := max(exit.CPU, r.seenCPU) - r.startCPU
	guest := r.guest.at(r.pool.outside.now())
	r.mu.Unlock()
	if v == nil {
		v = last(cancelled)
	}
	out := r.outcome(0, 0)
	out.Status, out.Error = protocol.StatusError, v.err()
	out.Stats.CPUMs, out.Stats.WallMs = ms(max(cpu, 0)), ms(guest)
	out.Stats.PeakHeapBytes = int64(min(peak, protocol.MaxLimit))
	return out
}

// outcome is the part of the outcome that the pool knows by itself.
func (r *run) outcome(droppedLines, droppedBytes uint64) *protocol.Outcome {
	total := r.pool.outside.now().Sub(r.started)
	r.mu.Lock()
	calls, fetches := r.calls, r.fetches
	r.mu.Unlock()
	limits := r.limits
	return &protocol.Outcome{
		Logs: r.logs.close(total, droppedLines, droppedBytes),
		Stats: protocol.Stats{
			QueueMs: ms(r.started.Sub(r.queued)), TotalMs: ms(total), ToolCalls: calls, Fetches: fetches,
			Worker: r.m.name, Limits: &limits,
		},
	}
}

// finish hands the outcome to Execute. It is called once.
func (r *run) finish(out *protocol.Outcome) {
	r.cancel()
	r.out = out
	close(r.done)
}
