package pool

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"github.com/executord/executord/ipc/executor"
	"github.com/executord/executord/ipc/protocol"
	"github.com/executord/executord/ipc/worker"
)

// run is one execution from its arrival to its outcome.
type run struct {
	starting sync.WaitGroup // calls of Request.Call that have a goroutine but are not in the host's hands yet

	pool      *Pool
	config    *Config     // as it was when the request came
	number    uint64      // in the pool
	id        uint64      // on the channel: the number of an execution, a later one of an invocation
	execution string      // the caller's id
	invoked   *invocation // nil for an execution
	req       *executor.Request
	limits    protocol.Limits
	govern    governor
	logs      *logbook
	message   worker.Execute
	queued    time.Time
	trace     *tracing
	waiter    *waiter
	ordered   atomic.Pointer[string] // why the operator cancels it
	place     bool                   // it may be retained; guarded by Pool.mu like forsaken
	forsaken  bool                   // and may not any more: its session is gone

	// Set by begin, before the worker hears of the execution.
	m           *member
	ctx         context.Context // of tool calls
	cancel      context.CancelFunc
	started     time.Time
	startCPU    time.Duration // of the process
	startThread time.Duration // of the isolate's thread
	late        time.Duration // from the deadline to the kill; supervise's

	turns chan struct{} // of fetches; has an item for each that is performed

	done    chan struct{}     // closed by finish
	out     *protocol.Outcome // set before done is closed
	settled time.Time         // set with the outcome, like what the execution used
	used    account
	by      Layer // set before done is closed
	kept    bool  // likewise: it is retained

	unread atomic.Int64 // bytes of answers that the channel has no room for

	mu        sync.Mutex
	placed    bool     // the worker was sent the execution: m and started stay as they are
	ended     bool     // no more frames, calls or verdicts count
	stays     bool     // likewise, for it is about to be retained
	verdict   *verdict // the pool's own; set at most once, and then the process dies
	cancelled *verdict // set when the worker was told to cancel
	haltedAt  time.Time
	tools     toolset // made at the first call
	lastTool  uint64  // number of a tool call; those of the network count apart, for tool calls may wait for their turn
	lastCall  uint64

	exchanges map[uint64]*exchange // fetches that are not at their end
	lastFetch uint64
	open      int // exchanges that have a body

	peakHeap uint64
	seenCPU  time.Duration // of the process, at the last look
}

// begin makes the run the worker's and sends it. False means that the worker was dead before it could hear of it; the
// run can then begin on another.
func (r *run) begin(ctx context.Context, m *member) (bool, error) {
	r.mount(ctx, m, m.rested)
	m.tell(r.id)
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
	r.begun()
	return true, nil
}

// mount notes what it begins with; thread is what the isolate's thread has used so far.
func (r *run) mount(ctx context.Context, m *member, thread time.Duration) {
	now := r.pool.outside.now()
	r.m, r.started = m, now
	r.startCPU, _ = m.meter.cpu()
	r.startThread = thread
	r.ctx, r.cancel = context.WithCancel(ctx)
	r.govern.enter(now)
}

// begun follows what was sent.
func (r *run) begun() {
	r.logs.open()
	r.mu.Lock()
	r.placed = true
	r.mu.Unlock()
	if order := r.ordered.Load(); order != nil {
		r.halt(*order)
	}
}

// abandon undoes begin where nothing was sent.
func (r *run) abandon() { r.cancel() }

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

// condemned tells that there is a verdict.
func (r *run) condemned() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.verdict != nil
}

// halt tells the worker to cancel, the first time. When it returns the worker has been told.
func (r *run) halt(reason string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.cancelled == nil {
		r.cancelled, r.haltedAt = &verdict{typ: protocol.Cancelled, message: reason}, r.pool.outside.now()
		// A queue that is full means that the worker does not read: then it is killed in time.
		_ = r.m.conn.TrySend(worker.Cancel{ID: r.id, Reason: reason})
	}
}

// wasCancelled is the verdict of halt and when it was; nil before it.
func (r *run) wasCancelled() (*verdict, time.Time) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.cancelled, r.haltedAt
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
	value, fault, err := r.govern.end(m, cancelled)
	if err == nil {
		err = r.checkRetained(m, fault)
	}
	if err != nil || !r.end(m.Retained && r.invoked == nil) {
		return nil, err
	}
	out, _ := r.outcome(fault == nil)
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

// end makes the run deaf; stays tells that its isolate does. False when it was condemned.
func (r *run) end(stays bool) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.verdict != nil {
		return false
	}
	r.ended, r.stays = true, stays
	return true
}

// fail makes the outcome of a run whose worker is gone: the pool's verdict where there is one, else last.
func (r *run) fail(exit ExitState, last func(cancelled *verdict) *verdict) *protocol.Outcome {
	r.mu.Lock()
	r.ended = true
	v, cancelled, peak := r.verdict, r.cancelled, r.peakHeap
	cpu := max(exit.CPU, r.seenCPU) - r.startCPU
	r.mu.Unlock()
	if v == nil {
		v = last(cancelled)
	}
	out, guest := r.outcome(false)
	out.Status, out.Error = protocol.StatusError, v.err()
	out.Stats.CPUMs, out.Stats.WallMs = ms(max(cpu, 0)), ms(guest)
	out.Stats.PeakHeapBytes = int64(min(peak, protocol.MaxLimit))
	return out
}

// outcome is the part of the outcome that the pool knows by itself, and the guest's own time.
func (r *run) outcome(ok bool) (*protocol.Outcome, time.Duration) {
	now := r.pool.outside.now()
	used := r.govern.account(now)
	r.settled, r.used = now, used
	if ok {
		used.list = nil
	}
	limits := r.limits
	return &protocol.Outcome{
		Logs: used.logs, Calls: used.list,
		Stats: protocol.Stats{
			QueueMs: ms(r.started.Sub(r.queued)), TotalMs: ms(now.Sub(r.started)), ToolCalls: used.calls, Fetches: used.fetches,
			Worker: r.m.name, Limits: &limits,
		},
	}, used.guest
}

// finish hands the outcome to Execute or Invoke. It is called once.
func (r *run) finish(out *protocol.Outcome) {
	r.cancel()
	r.out = out
	close(r.done)
}
