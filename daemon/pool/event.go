package pool

import (
	"time"

	"github.com/executord/executord/ipc/protocol"
)

// EventKind names what happened. The set is closed and append-only.
type EventKind string

// The events of a pool.
const (
	WorkerStarted   EventKind = "worker_started"   // the process exists
	WorkerReady     EventKind = "worker_ready"     // it can take its first execution
	WorkerFailed    EventKind = "worker_failed"    // it never became ready
	WorkerCrashed   EventKind = "worker_crashed"   // it ended, or was killed, after it was ready
	WorkerRetired   EventKind = "worker_retired"   // it was replaced and is gone
	ExecutionFailed EventKind = "execution_failed" // an execution ended in an error; Type says which
	Overload        EventKind = "overload"         // a request was turned away; Type says why
	WorkerStopped   EventKind = "worker_stopped"   // it ended with a program that was stopped; Type says why
	RetainedLost    EventKind = "retained_lost"    // a retained execution was lost with its worker; Detail says how
)

// Event is news of the pool. Fields that do not apply are zero.
type Event struct {
	Kind      EventKind
	Time      time.Time
	Worker    string // name of the worker
	PID       int
	Execution string // the caller's id
	ID        string // the execution's in the pool, as in ExecutionInfo
	Session   string
	Identity  string
	Type      protocol.Type
	Reason    string        // as protocol.Error.Reason
	Detail    string        // for the operator
	Stderr    string        // its end, of a worker that is gone; for the operator
	Took      time.Duration // start to ready, or dispatch to end
	Layer     Layer         // who ended the execution
	Late      time.Duration // from the deadline of an execution until its worker was killed for it
}

// emit tells OnEvent. No lock may be held.
func (p *Pool) emit(e Event) {
	if p.config().OnEvent == nil {
		return
	}
	e.Time = p.outside.now()
	p.config().OnEvent(e)
}
