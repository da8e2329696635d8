package server

import (
	"container/list"
	"sync"
	"time"
)

// A peer that is refused uses up one of its attempts, which come back one by one.
const (
	throttleAttempts = 10
	throttleEvery    = 6 * time.Second
	maxOffenders     = 4096 // remembered; beyond them the one whose last failure is the longest ago is forgotten
)

// throttle counts refusals for each peer, and says who has had too many of late.
type throttle struct {
	now func() time.Time

	mu    sync.Mutex
	peers map[string]*list.Element
	order list.List // of *offender, longest ago first
}

// offender is a peer that was refused. At the time debt all its attempts are back.
type offender struct {
	peer string
	debt time.Time
}

func newThrottle(now func() time.Time) *throttle {
	return &throttle{now: now, peers: map[string]*list.Element{}}
}

// failed counts a refusal. It returns how long the peer has to wait; 0 while it has attempts left.
func (t *throttle) failed(peer string) time.Duration {
	t.mu.Lock()
	defer t.mu.Unlock()
	now := t.now()
	e := t.peers[peer]
	if e == nil {
		t.makeRoom()
		e = t.order.PushBack(&offender{peer, now})
		t.peers[peer] = e
	}
	t.order.MoveToBack(e)
	o := e.Value.(*offender)
	if o.debt.Before(now) {
		o.debt = now
	}
	wait := o.wait(now)
	if wait == 0 { // more failures do not make it longer, or a peer that keeps coming would never be heard again
		o.debt = o.debt.Add(throttleEvery)
	}
	return wait
}

// wait is how long the peer has to wait; 0 where it need not.
func (t *throttle) wait(peer string) time.Duration {
	t.mu.Lock()
	defer t.mu.Unlock()
	if e := t.peers[peer]; e != nil {
		return e.Value.(*offender).wait(t.now())
	}
	return 0
}

func (o *offender) wait(now time.Time) time.Duration {
	return max(0, o.debt.Sub(now)-(throttleAttempts-1)*throttleEvery)
}

// makeRoom is called with mu held.
func (t *throttle) makeRoom() {
	if t.order.Len() < maxOffenders {
		return
	}
	oldest := t.order.Front()
	delete(t.peers, oldest.Value.(*offender).peer)
	t.order.Remove(oldest)
}
