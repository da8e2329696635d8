package events

import (
	"sync"
	"time"

	"github.com/executord/executord/daemon/pool"
)

// quiet is how long no request may have been turned away before an overload has ended.
const quiet = 2 * time.Second

// Feed puts the news of a pool into a Ring. Its Pool is a pool's OnEvent.
type Feed struct {
	ring *Ring

	mu      sync.Mutex
	began   time.Time // of the overload; zero when there is none
	latest  time.Time // request that was turned away
	refused int64
}

// NewFeed makes a Feed into ring.
func NewFeed(ring *Ring) *Feed { return &Feed{ring: ring} }

// Pool takes an event of a pool. It does not block.
func (f *Feed) Pool(e pool.Event) {
	if e.Kind == pool.Overload {
		f.turnedAway(e)
		return
	}
	own := Event{
		Time: e.Time, Kind: Kind(e.Kind), Worker: e.Worker, PID: e.PID, Execution: e.ID, Session: e.Session,
		Identity: e.Identity, Type: e.Type, Reason: e.Reason, Detail: e.Detail,
		TookMs: float64(e.Took) / float64(time.Millisecond),
	}
	if e.Execution != e.ID {
		own.CallerID = e.Execution
	}
	f.ring.Publish(own)
}

// turnedAway makes two events of an overload, however many requests it turns away.
func (f *Feed) turnedAway(e pool.Event) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.refused++
	f.latest = e.Time
	if !f.began.IsZero() {
		return
	}
	f.began = e.Time
	f.ring.Publish(Event{Time: e.Time, Kind: OverloadBegan, Identity: e.Identity, Type: e.Type})
	time.AfterFunc(quiet, f.settle)
}

// settle ends an overload, or comes again.
func (f *Feed) settle() {
	f.mu.Lock()
	defer f.mu.Unlock()
	if rest := quiet - time.Since(f.latest); rest > 0 {
		time.AfterFunc(rest, f.settle)
		return
	}
	f.ring.Publish(Event{Kind: OverloadEnded, Count: f.refused, TookMs: float64(f.latest.Sub(f.began)) / float64(time.Millisecond)})
	f.began, f.refused = time.Time{}, 0
}
