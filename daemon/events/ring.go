package events

import (
	"context"
	"crypto/rand"
	"io"
	"sync"
	"time"
)

// Bounds of events of one kind: as many at once, and so many more each second.
const (
	burst  = 256
	perSec = 20
)

// Size is how many events a Ring of the service keeps.
const Size = 4096

// Ring keeps the last events.
type Ring struct {
	instance string
	size     int
	now      func() time.Time

	mu      sync.Mutex
	items   []Event // the event with id n is at n % size
	last    uint64  // id of the newest event
	news    chan struct{}
	buckets map[Kind]*bucket
	closed  bool
}

// bucket bounds the events of one kind.
type bucket struct {
	tokens  float64
	filled  time.Time
	omitted int64
}

// New makes a ring that keeps the last size events.
func New(size int) *Ring {
	return &Ring{
		instance: rand.Text()[:10], size: max(size, 1), now: time.Now, items: make([]Event, max(size, 1)),
		buckets: map[Kind]*bucket{},
	}
}

// Instance tells rings apart: ids count from 1 in each.
func (r *Ring) Instance() string { return r.instance }

// Last is the id of the newest event, 0 before the first.
func (r *Ring) Last() uint64 {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.last
}

// Publish adds an event, and sets its id, and its time where it has none. It never waits for a reader. Of a kind that
// comes too often some are left out, which the next that is kept says in Omitted.
func (r *Ring) Publish(e Event) {
	e.tidy()
	r.mu.Lock()
	defer r.mu.Unlock()
	now := r.now()
	if e.Time.IsZero() {
		e.Time = now
	}
	b := r.bucket(e.Kind, now)
	if r.closed || b.tokens < 1 {
		b.omitted++
		return
	}
	b.tokens--
	e.Omitted, b.omitted = b.omitted, 0
	r.last++
	e.ID = r.last
	r.items[r.last%uint64(r.size)] = e
	if r.news != nil {
		close(r.news)
		r.news = nil
	}
}

// bucket is called with mu held.
func (r *Ring) bucket(k Kind, now time.Time) *bucket {
	b := r.buckets[k]
	if b == nil {
		b = &bucket{tokens: burst}
		r.buckets[k] = b
	} else {
		b.tokens = min(burst, b.tokens+perSec*now.Sub(b.filled).Seconds())
	}
	b.filled = now
	return b
}

// Close ends all subscriptions, once they have read what is there.
func (r *Ring) Close() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.closed = true
	if r.news != nil {
		close(r.news)
		r.news = nil
	}
}

// Subscription reads the events of a Ring. It costs nothing while it is not read.
type Subscription struct {
	ring *Ring
	last uint64 // id of the last event that was read
}

// Subscribe reads the events after the one with that id: 0 for all that are kept, Last() for those to come. An id that
// there has not been yet counts as Last().
func (r *Ring) Subscribe(after uint64) *Subscription {
	return &Subscription{r, min(after, r.Last())}
}

// Next waits for events and returns those that came, oldest first and not more than a Ring keeps, and how many before
// them were missed since they are not kept any more. It returns io.EOF when the ring is closed and nothing is left, and
// ctx's error when that ends first.
func (s *Subscription) Next(ctx context.Context) (fresh []Event, missed uint64, err error) {
	for {
		fresh, missed, news, closed := s.read()
		switch {
		case len(fresh) > 0:
			return fresh, missed, nil
		case closed:
			return nil, 0, io.EOF
		}
		select {
		case <-news:
		case <-ctx.Done():
			return nil, 0, ctx.Err()
		}
	}
}

func (s *Subscription) read() (fresh []Event, missed uint64, news <-chan struct{}, closed bool) {
	r := s.ring
	r.mu.Lock()
	defer r.mu.Unlock()
	if oldest := r.last - min(r.last, uint64(r.size)); s.last < oldest {
		missed = oldest - s.last
		s.last = oldest
	}
	for s.last < r.last {
		s.last++
		fresh = append(fresh, r.items[s.last%uint64(r.size)])
	}
	if r.news == nil && !r.closed {
		r.news = make(chan struct{})
	}
	return fresh, missed, r.news, r.closed
}
