package admin

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"net/http"
	"os"
	"slices"
	"time"

	"github.com/executord/executord/daemon/pool"
	"github.com/executord/executord/ipc/protocol"
)

// State is what the service is doing.
type State struct {
	Name   string    `json:"name"`             // as package lifecycle calls it: ready, maintenance, draining, …
	Since  time.Time `json:"since"`            //
	Reason string    `json:"reason,omitempty"` // in words
	Who    string    `json:"who,omitempty"`    // the operator who wanted it
	Ready  bool      `json:"ready"`            // whether /readyz lets callers come
}

// Status is the service at one moment.
type Status struct {
	Version  string    `json:"version"`
	PID      int       `json:"pid"`
	Started  time.Time `json:"started"`
	UptimeMs float64   `json:"uptimeMs"`
	State    State     `json:"state"`
	Warnings []string  `json:"warnings"` // in words, what the operator should look at

	Workers    WorkerCounts            `json:"workers"`
	Queue      Queue                   `json:"queue"`
	Identities map[string]IdentityLoad `json:"identities"` // of callers who wait or run
	Sessions   int                     `json:"sessions"`
	Retained   int                     `json:"retained"` // executions that are
	Totals     Totals                  `json:"totals"`
	Isolation  []string                `json:"isolation"` // layers that are in force around every worker
	Events     EventPosition           `json:"events"`
}

// WorkerCounts are worker processes by state.
type WorkerCounts struct {
	Starting      int    `json:"starting"`
	Idle          int    `json:"idle"`
	Running       int    `json:"running"`
	Retained      int    `json:"retained"` // hold an execution that is retained, and run nothing
	Restoring     int    `json:"restoring"`
	Leaving       int    `json:"leaving"`
	Due           int    `json:"due"` // of any state, to be replaced
	FailuresInRow int    `json:"failuresInRow"`
	LastFailure   string `json:"lastFailure,omitempty"` // of a start, absent once one succeeded
}

// Queue is who waits for a worker.
type Queue struct {
	Waiting   int     `json:"waiting"`
	Running   int     `json:"running"`
	ServiceMs float64 `json:"serviceMs"` // mean time of late from dispatch to end
}

// IdentityLoad is what one caller has in the service.
type IdentityLoad struct {
	Queued  int `json:"queued"`
	Running int `json:"running"`
}

// Totals count since the start.
type Totals struct {
	Executions     uint64            `json:"executions"`     // that ran and ended
	Outcomes       map[string]uint64 `json:"outcomes"`       // of those: "ok" and the types of errors
	Overloaded     uint64            `json:"overloaded"`     // requests turned away at once
	QueueTimeouts  uint64            `json:"queueTimeouts"`  // that waited too long
	Retained       uint64            `json:"retained"`       // executions whose isolate stayed
	Invocations    uint64            `json:"invocations"`    // of their handles; they count among the executions
	Left           uint64            `json:"left"`           // whose caller gave up while they waited
	WorkersStarted uint64            `json:"workersStarted"` // that became ready
	WorkersFailed  uint64            `json:"workersFailed"`  // that did not
	WorkersCrashed uint64            `json:"workersCrashed"` // that died for a reason of their own
	WorkersStopped uint64            `json:"workersStopped"` // that ended with a program that was stopped
	WorkersRetired uint64            `json:"workersRetired"` // that were replaced
	LimitsReached  map[string]uint64 `json:"limitsReached"`  // by the names of limits
	EndedBy        map[string]uint64 `json:"endedBy"`        // executions by the layer that ended them
}

// EventPosition is where the stream of events is.
type EventPosition struct {
	Instance string `json:"instance"` // ids count from 1 in each
	Last     uint64 `json:"last"`     // id of the newest
}

// OK is the outcome of an execution that ended with a value.
const OK = "ok"

func (a *App) status(*call) (any, error) {
	s, workers := a.cfg.Pool.Stats(), a.cfg.Pool.Workers()
	st := Status{
		Version: a.cfg.Version, PID: os.Getpid(), Started: a.cfg.Started, UptimeMs: ms(time.Since(a.cfg.Started)), State: a.cfg.Service.State(),
		Workers: WorkerCounts{
			Starting: s.Starting, Idle: s.Idle, Running: s.Running, Retained: s.Retaining, Restoring: s.Restoring, Leaving: s.Leaving, Due: s.Due,
			FailuresInRow: s.FailuresInRow, LastFailure: s.LastFailure,
		},
		Queue:      Queue{Waiting: s.Queued, Running: s.Running, ServiceMs: ms(s.ServiceTime)},
		Identities: make(map[string]IdentityLoad, len(s.Identities)),
		Sessions:   len(a.cfg.Sessions()),
		Retained:   s.Retained,
		Totals:     totals(s.Totals),
		Isolation:  common(workers),
		Events:     EventPosition{a.cfg.Events.Instance(), a.cfg.Events.Last()},
	}
	for name, l := range s.Identities {
		st.Identities[name] = IdentityLoad{l.Queued, l.Running}
	}
	st.Warnings = warnings(s, workers)
	return st, nil
}

func totals(t pool.Totals) Totals {
	own := Totals{
		Executions: t.Executions, Outcomes: make(map[string]uint64, len(t.Endings)), Overloaded: t.Overloaded,
		QueueTimeouts: t.QueueTimeouts, Left: t.Left, Retained: t.Retained, Invocations: t.Invocations, WorkersStarted: t.Started, WorkersFailed: t.Failed,
		WorkersCrashed: t.Crashed, WorkersStopped: t.Stopped, WorkersRetired: t.Retired,
		LimitsReached: t.Limits, EndedBy: make(map[string]uint64, len(t.Layers)),
	}
	for typ, n := range t.Endings {
		own.Outcomes[outcomeOf(typ)] = n
	}
	for layer, n := range t.Layers {
		own.EndedBy[string(layer)] = n
	}
	return own
}

func outcomeOf(t protocol.Type) string { return cmp.Or(string(t), OK) }

// common are the layers that all workers have; those that are being started say nothing yet.
func common(workers []pool.WorkerInfo) []string {
	layers := []string{}
	first := true
	for _, w := range workers {
		if len(w.Layers) == 0 {
			continue
		}
		if first {
			layers, first = slices.Clone(w.Layers), false
		}
		layers = slices.DeleteFunc(layers, func(l string) bool { return !slices.Contains(w.Layers, l) })
	}
	return layers
}

// warnings say in words what is not as it should be.
func warnings(s pool.Stats, workers []pool.WorkerInfo) []string {
	list := []string{}
	if s.FailuresInRow > 0 {
		list = append(list, fmt.Sprintf("workers do not start: %d failed in a row, the last with: %s", s.FailuresInRow, s.LastFailure))
	}
	missing := map[string]bool{}
	for _, w := range workers {
		for _, entry := range w.Missing {
			missing[entry] = true
		}
	}
	for _, entry := range slices.Sorted(maps.Keys(missing)) {
		list = append(list, "isolation layer is not in force around all workers: "+entry)
	}
	return list
}

// Status asks what the service is doing.
func (c *Client) Status(ctx context.Context) (Status, error) {
	return ask[Status](ctx, c, http.MethodGet, "/v1/status", nil)
}
