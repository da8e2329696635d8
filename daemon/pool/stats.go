package pool

import (
	"cmp"
	"maps"
	"slices"
	"time"

	"github.com/executord/executord/ipc/protocol"
)

// Totals count since the pool was made.
type Totals struct {
	Executions    uint64 // that ran and ended
	Overloaded    uint64 // requests turned away at once
	QueueTimeouts uint64
	Left          uint64 // requests whose caller, or the pool, gave up while they waited
	Started       uint64 // workers that became ready
	Failed        uint64 // workers that did not
	Crashed       uint64 // workers that died or were killed after they were ready, for a reason of their own
	Stopped       uint64 // workers that ended with a program that a limit or its caller stopped
	Retired       uint64

	Endings map[protocol.Type]uint64 // of executions; those with a value count under ""
	Layers  map[Layer]uint64         // which layer ended them
	Limits  map[string]uint64        // executions and requests that ran into a limit, by its name

	ToolCalls map[protocol.CallStatus]uint64 // of executions that ended
	Fetches   map[protocol.CallStatus]uint64 // likewise; a fetch has its answer with the head of the response

	Retained     uint64               // executions whose isolate stayed
	RetainedEnds map[EndReason]uint64 // and ended
	Invocations  uint64               // that ended, which count among the executions
	Unplaced     uint64               // requests that one caller may retain no more for
}

func newTotals() Totals {
	return Totals{
		Endings: map[protocol.Type]uint64{}, Layers: map[Layer]uint64{}, Limits: map[string]uint64{},
		ToolCalls: map[protocol.CallStatus]uint64{}, Fetches: map[protocol.CallStatus]uint64{}, RetainedEnds: map[EndReason]uint64{},
	}
}

func (t Totals) clone() Totals {
	t.Endings, t.Layers, t.Limits = maps.Clone(t.Endings), maps.Clone(t.Layers), maps.Clone(t.Limits)
	t.ToolCalls, t.Fetches, t.RetainedEnds = maps.Clone(t.ToolCalls), maps.Clone(t.Fetches), maps.Clone(t.RetainedEnds)
	return t
}

// Layer is who ended an execution. The type of the ending is the same whichever it was.
type Layer string

// The layers, from the inside out.
const (
	LayerEngine     Layer = "engine"     // the worker answered; it lives on
	LayerWorker     Layer = "worker"     // the worker ended its process, or died
	LayerContract   Layer = "contract"   // the worker broke the contract, or went silent, and was killed
	LayerSupervisor Layer = "supervisor" // the pool killed the worker for a limit or a cancellation
)

// limitsHit are the limits that endings of a type stand for; the rest is noted where it happens.
func limitsHit(t protocol.Type, by Layer, l protocol.Limits, s protocol.Stats) string {
	switch t {
	case protocol.CPUTimeout:
		return "cpuMs"
	case protocol.WallTimeout:
		return "wallMs"
	case protocol.TotalTimeout:
		return "totalMs"
	case protocol.ResultTooLarge:
		return "resultBytes"
	case protocol.MemoryLimit:
		if by == LayerSupervisor {
			return "slackMiB"
		}
		return "heapMiB"
	case protocol.ToolLimit:
		if s.Fetches >= l.Fetches {
			return "fetches"
		}
		return "toolCalls"
	}
	return ""
}

// Stats is the pool at one moment.
type Stats struct {
	Queued, Running           int   // requests, and retained executions with invocations
	Idle, Starting, Restoring int   // workers, besides the running ones
	Retaining                 int   // workers that hold what is retained, while nothing runs in it
	Retained                  int   // executions that are retained
	Leaving                   int   // workers that end
	Due                       int   // workers, of any state, that are to be replaced
	RSSBytes                  int64 // of all workers, as the pool saw it last
	Identities                map[string]Load
	ServiceTime               time.Duration // mean of late, from dispatch to end
	FailuresInRow             int           // starts of workers that failed since the last success
	LastFailure               string        // of a start, empty once one succeeded
	Totals                    Totals
}

// states counts the workers by state.
func (s *Stats) states() map[string]int {
	return map[string]int{
		stateNames[starting]: s.Starting, stateNames[idle]: s.Idle, stateNames[running]: s.Running,
		stateNames[keeping]: s.Retaining, stateNames[restoring]: s.Restoring, stateNames[leaving]: s.Leaving,
	}
}

// Load is what one identity has in the pool.
type Load struct{ Queued, Running int }

// WorkerInfo is one worker process.
type WorkerInfo struct {
	Name       string
	PID        int
	State      string // "starting", "idle", "running", "retained", "restoring" or "leaving"
	Due        bool   // to be replaced
	Executions int
	Age        time.Duration
	RSSBytes   int64 // as the pool saw it last
	Engine     string
	Layers     []string // of isolation that are in force, by the names of ipc/worker
	Missing    []string // those that are not, each as "NAME: REASON"
}

// Stats returns counters that are derived from the live state, all at the same moment. Queued can be over
// Config.Queue by the workers that are just being made ready: what is bounded is who waits and who runs together.
func (p *Pool) Stats() Stats {
	p.mu.Lock()
	defer p.mu.Unlock()
	s := Stats{
		Queued: p.queue.size, Running: p.running, Retained: len(p.retained), Identities: make(map[string]Load, len(p.queue.lanes)),
		ServiceTime: time.Duration(p.service), FailuresInRow: p.failures, Totals: p.totals.clone(),
	}
	if p.lastFailure != nil {
		s.LastFailure = p.lastFailure.Error()
	}
	for m := range p.members {
		switch m.state {
		case starting:
			s.Starting++
		case idle:
			s.Idle++
		case keeping:
			s.Retaining++
		case restoring:
			s.Restoring++
		case leaving:
			s.Leaving++
		}
		if m.due {
			s.Due++
		}
		s.RSSBytes += m.rss.Load()
	}
	for name, l := range p.queue.lanes {
		s.Identities[name] = Load{Queued: l.waiting.Len(), Running: l.running}
	}
	return s
}

// Workers lists the worker processes, oldest first.
func (p *Pool) Workers() []WorkerInfo {
	p.mu.Lock()
	defer p.mu.Unlock()
	now := p.outside.now()
	list := make([]WorkerInfo, 0, len(p.members))
	for m := range p.members {
		list = append(list, WorkerInfo{
			Name: m.name, PID: m.pid, State: stateNames[m.state], Due: m.due, Executions: m.executions,
			Age: now.Sub(m.born), RSSBytes: m.rss.Load(), Engine: m.hello.Engine, Layers: slices.Clone(m.hello.Layers),
			Missing: slices.Clone(m.hello.Missing),
		})
	}
	slices.SortFunc(list, func(a, b WorkerInfo) int { return cmp.Compare(b.Age, a.Age) })
	return list
}

// Retire has a worker replaced as soon as it has nothing to run; false when there is none of that name.
func (p *Pool) Retire(name string) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	for m := range p.members {
		if m.name == name {
			m.due = true
			p.poke()
			return true
		}
	}
	return false
}

// count counts a limit that a request or a program ran into.
func (p *Pool) count(limit string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.totals.Limits[limit]++
}
