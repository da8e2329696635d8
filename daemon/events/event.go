// Package events keeps the news of the service for those who watch it: what workers, executions and the service itself
// came to. The daemon feeds it, from the pool and from its own parts; the admin app and programs that embed the service
// read it.
//
// It must never make whoever has news wait for those who read them, and never hold more than its bounds: a reader that is
// too slow is told how many events it missed, and of a kind that floods the ring only some are kept, with the number of
// those left out. It never gets what a program computed, printed or was given.
//
// Concurrency: any goroutine may call. A Subscription is for one goroutine.
package events

import (
	"time"

	"github.com/executord/executord/daemon/pool"
	"github.com/executord/executord/ipc/protocol"
)

// Kind names what happened. The set is closed and append-only.
type Kind string

// The kinds. Those of workers are package pool's.
const (
	WorkerStarted    Kind = "worker_started"    // the process exists
	WorkerReady      Kind = "worker_ready"      // it can take its first execution
	WorkerFailed     Kind = "worker_failed"     // it never became ready
	WorkerCrashed    Kind = "worker_crashed"    // it ended, or was killed, after it was ready
	WorkerStopped    Kind = "worker_stopped"    // it ended with a program that a limit or its caller stopped
	WorkerRetired    Kind = "worker_retired"    // it was replaced and is gone
	ExecutionFailed  Kind = "execution_failed"  // an execution ended badly; Type says how
	OverloadBegan    Kind = "overload_began"    // the first request was turned away for want of room
	OverloadEnded    Kind = "overload_ended"    // none was for a while; Count says how many were
	MaintenanceBegan Kind = "maintenance_began" // Who wanted it, for which Reason
	MaintenanceEnded Kind = "maintenance_ended"
	ServiceReady     Kind = "service_ready" // callers are served
	DrainBegan       Kind = "drain_began"   // the service is stopping
	Reloaded         Kind = "reloaded"      // settings were read again and are in force
	ReloadFailed     Kind = "reload_failed" // they were not; Reason says why
	AuthFailed       Kind = "auth_failed"   // a caller was refused; Reason says why
	RetainedLost     Kind = "retained_lost" // a retained execution was lost with its worker; Detail says how
)

// Kinds are all of them.
func Kinds() []Kind {
	return []Kind{
		WorkerStarted, WorkerReady, WorkerFailed, WorkerCrashed, WorkerStopped, WorkerRetired, ExecutionFailed,
		OverloadBegan, OverloadEnded, MaintenanceBegan, MaintenanceEnded, ServiceReady, DrainBegan, Reloaded, ReloadFailed, AuthFailed,
		RetainedLost,
	}
}

// Event is one piece of news. Fields that do not apply are zero. Texts are cut at MaxTextBytes.
type Event struct {
	ID        uint64        `json:"id"` // from 1, in the order of events; a Ring sets it
	Time      time.Time     `json:"time"`
	Kind      Kind          `json:"kind"`
	Worker    string        `json:"worker,omitempty"`
	PID       int           `json:"pid,omitempty"`
	Execution string        `json:"execution,omitempty"` // its id in the service
	CallerID  string        `json:"callerId,omitempty"`  // the execution's id as its caller gave it
	Session   string        `json:"session,omitempty"`
	Identity  string        `json:"identity,omitempty"` // of the caller
	Type      protocol.Type `json:"type,omitempty"`
	Reason    string        `json:"reason,omitempty"`
	Detail    string        `json:"detail,omitempty"`  // for people
	Who       string        `json:"who,omitempty"`     // the operator whose doing it is
	TookMs    float64       `json:"tookMs,omitempty"`  // from start to ready, from dispatch to end, or the time of an overload
	Count     int64         `json:"count,omitempty"`   // requests turned away in an overload
	Omitted   int64         `json:"omitted,omitempty"` // events of this kind before this one that were too many to keep
}

// MaxTextBytes bounds each text of an event.
const MaxTextBytes = 512

// tidy bounds the texts.
func (e *Event) tidy() {
	for _, text := range []*string{&e.Worker, &e.Execution, &e.CallerID, &e.Session, &e.Identity, &e.Reason, &e.Detail, &e.Who} {
		*text = pool.Clip(*text, MaxTextBytes)
	}
}
