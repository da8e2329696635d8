package pool

import (
	"context"
	"time"

	"go.opentelemetry.io/otel/metric"

	"github.com/executord/executord/daemon/telemetry/instrument"
	"github.com/executord/executord/ipc/protocol"
)

// scope names the package in metrics and traces.
const scope = "github.com/executord/executord/daemon/pool"

// measures are what the pool tells a metric.MeterProvider. Only times are recorded as they happen, outside of all locks;
// the rest is read from Stats when somebody asks. docs/telemetry.md lists it all.
type measures struct {
	queued, ran, took, restored, started, called, fetched metric.Float64Histogram

	outcomes map[protocol.Type][]metric.RecordOption
	statuses map[protocol.CallStatus][]metric.RecordOption
}

// The values of labels that are not the protocol's.
var (
	workerEnds   = instrument.LabelsOf(instrument.Reason, "crashed", "failed", "retired", "stopped")
	workerStates = instrument.LabelsOf(instrument.State, stateNames[:]...)
	layerLabels  = instrument.LabelsOf(instrument.Layer, LayerEngine, LayerWorker, LayerContract, LayerSupervisor)
	limitLabels  = instrument.LabelsOf(instrument.Limit, protocol.LimitNames()...)
	statusLabels = instrument.LabelsOf(instrument.Status, protocol.CallOK, protocol.CallError, protocol.CallPending)
	refusals     = instrument.LabelsOf(instrument.ErrorType, protocol.Overloaded, protocol.QueueTimeout, protocol.SessionLimit)
	retainedEnds = instrument.LabelsOf(instrument.Reason, EndReleased, EndIdle, EndExpired, EndCancelled, EndSession, EndDraining, EndStopped, EndLost)
	outcomes     = outcomeLabels()
)

// outcomeLabels are those of all endings of a program; a value counts under "".
func outcomeLabels() instrument.Labels[protocol.Type] {
	names := []protocol.Type{instrument.OK}
	for _, i := range protocol.Types() {
		if i.Ran {
			names = append(names, i.Type)
		}
	}
	// A fault of the input, or of a handle, is found by the worker, so that such a request has run.
	names = append(names, protocol.InvalidParams, protocol.HandleUnknown)
	labels := instrument.LabelsOf(instrument.Outcome, names...)
	labels[""] = labels[instrument.OK]
	delete(labels, instrument.OK)
	return labels
}

func newMeasures(p *Pool, provider metric.MeterProvider) (*measures, error) {
	s := instrument.New(provider, scope)
	m := &measures{
		queued:   s.Duration("executord.execution.queue.duration", "Time that requests waited for a worker, those that gave up included"),
		ran:      s.Duration("executord.execution.run.duration", "Time from a worker's start of an execution to its outcome"),
		took:     s.Duration("executord.execution.duration", "Time from the arrival of a request to the outcome of its execution"),
		restored: s.Duration("executord.worker.restore.duration", "Time that a worker takes to restore an isolate from the startup snapshot"),
		started:  s.Duration("executord.worker.start.duration", "Time from a worker's start until it takes its first execution"),
		called:   s.Duration("executord.tool.call.duration", "Time from a tool call to the host's answer"),
		fetched:  s.Duration("executord.fetch.duration", "Time from a fetch to the head of the response"),
		outcomes: recordOptions(outcomes), statuses: recordOptions(statusLabels),
	}
	ended := s.Counter("executord.executions", "{execution}", "Executions that ran and ended")
	layers := s.Counter("executord.execution.endings", "{execution}", "Executions that ended, by the layer that ended them")
	active := s.Level("executord.execution.active", "{execution}", "Executions that run")
	depth := s.Level("executord.queue.depth", "{request}", "Requests that wait for a worker")
	refused := s.Counter("executord.queue.refusals", "{request}", "Requests that got no worker: turned away at once, or after too long a wait")
	left := s.Counter("executord.queue.departures", "{request}", "Requests whose caller gave up while they waited")
	workers := s.Level("executord.worker.processes", "{worker}", "Worker processes")
	starts := s.Counter("executord.worker.starts", "{worker}", "Workers that became ready")
	ends := s.Counter("executord.worker.ends", "{worker}", "Workers that ended")
	memory := s.Level("executord.worker.memory.usage", "By", "Resident memory of all workers together")
	limits := s.Counter("executord.limit.hits", "{hit}", "Executions and requests that ran into a limit")
	calls := s.Counter("executord.tool.calls", "{call}", "Tool calls of executions that ended")
	fetches := s.Counter("executord.fetches", "{exchange}", "HTTP exchanges of executions that ended")
	invocations := s.Counter("executord.invocations", "{invocation}", "Invocations of handles that ran and ended; they count among the executions")
	retained := s.Level("executord.retained.executions", "{execution}", "Executions whose isolate is retained")
	retainedEnded := s.Counter("executord.retained.ends", "{execution}", "Retained executions that ended")
	err := s.Read(func(o metric.Observer) {
		now := p.Stats()
		t := now.Totals
		instrument.Observe(o, ended, outcomes, t.Endings)
		instrument.Observe(o, layers, layerLabels, t.Layers)
		o.ObserveInt64(active, int64(now.Running))
		o.ObserveInt64(depth, int64(now.Queued))
		instrument.Observe(o, refused, refusals, map[protocol.Type]uint64{protocol.Overloaded: t.Overloaded, protocol.QueueTimeout: t.QueueTimeouts, protocol.SessionLimit: t.Unplaced})
		o.ObserveInt64(left, int64(t.Left))
		instrument.Observe(o, workers, workerStates, now.states())
		o.ObserveInt64(starts, int64(t.Started))
		instrument.Observe(o, ends, workerEnds, map[string]uint64{"crashed": t.Crashed, "failed": t.Failed, "retired": t.Retired, "stopped": t.Stopped})
		o.ObserveInt64(memory, now.RSSBytes)
		instrument.Observe(o, limits, limitLabels, t.Limits)
		instrument.Observe(o, calls, statusLabels, t.ToolCalls)
		instrument.Observe(o, fetches, statusLabels, t.Fetches)
		o.ObserveInt64(invocations, int64(t.Invocations))
		o.ObserveInt64(retained, int64(now.Retained))
		instrument.Observe(o, retainedEnded, retainedEnds, t.RetainedEnds)
	})
	return m, err
}

// recordOptions are labels in the form that a record takes, so that recording allocates nothing.
func recordOptions[T ~string](labels instrument.Labels[T]) map[T][]metric.RecordOption {
	options := make(map[T][]metric.RecordOption, len(labels))
	for value, label := range labels {
		options[value] = []metric.RecordOption{label}
	}
	return options
}

// waited records a wait that is over, whatever came of it.
func (m *measures) waited(ctx context.Context, d time.Duration) { m.queued.Record(ctx, d.Seconds()) }

// ended records an execution that ran.
func (m *measures) ended(ctx context.Context, t protocol.Type, ran, took time.Duration) {
	m.ran.Record(ctx, ran.Seconds(), m.outcomes[t]...)
	m.took.Record(ctx, took.Seconds(), m.outcomes[t]...)
}

// answered records a call that the host answered.
func (m *measures) answered(ctx context.Context, kind callKind, d time.Duration, ok bool) {
	status := protocol.CallError
	if ok {
		status = protocol.CallOK
	}
	switch kind {
	case toolKind:
		m.called.Record(ctx, d.Seconds(), m.statuses[status]...)
	case fetchKind:
		m.fetched.Record(ctx, d.Seconds(), m.statuses[status]...)
	}
}

// restore records what a worker says of a restore, which cannot have taken longer than most.
func (m *measures) restore(d, most time.Duration) {
	m.restored.Record(context.Background(), min(max(d, 0), most).Seconds())
}

// start records a worker that became ready.
func (m *measures) start(d time.Duration) { m.started.Record(context.Background(), d.Seconds()) }
