package pool

import (
	"cmp"
	"slices"
	"time"
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
}

// Stats is the pool at one moment.
type Stats struct {
	Queued, Running           int // requests
	Idle, Starting, Restoring int // workers, besides the running ones
	Leaving                   int // workers that end
	Due                       int // workers, of any state, that are to be replaced
	Identities                map[string]Load
	ServiceTime               time.Duration // mean of late, from dispatch to end
	FailuresInRow             int           // starts of workers that failed since the last success
	LastFailure               string        // of a start, empty once one succeeded
	Totals                    Totals
}

// Load is what one identity has in the pool.
type Load struct{ Queued, Running int }

// WorkerInfo is one worker process.
type WorkerInfo struct {
	Name       string
	PID        int
	State      string // "starting", "idle", "running", "restoring" or "leaving"
	Due        bool   // to be replaced
	Executions int
	Age        time.Duration
	RSSBytes   int64 // as the pool saw it last
	Engine     string
	Layers     []string // isolation that the worker says is in force
}

// Stats returns counters that are derived from the live state, all at the same moment. Queued can be over
// Config.Queue by the workers that are just being made ready: what is bounded is who waits and who runs together.
func (p *Pool) Stats() Stats {
	p.mu.Lock()
	defer p.mu.Unlock()
	s := Stats{
		Queued: p.queue.size, Running: p.running, Identities: make(map[string]Load, len(p.queue.lanes)),
		ServiceTime: time.Duration(p.service), FailuresInRow: p.failures, Totals: p.totals,
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
		case restoring:
			s.Restoring++
		case leaving:
			s.Leaving++
		}
		if m.due {
			s.Due++
		}
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
