package server

import (
	"fmt"
	"testing"
	"time"
)

// clock is a time that the test moves.
type clock struct{ at time.Time }

func newClock() *clock                      { return &clock{time.Unix(1_000_000, 0)} }
func (c *clock) now() time.Time             { return c.at }
func (c *clock) forward(d time.Duration)    { c.at = c.at.Add(d) }
func (c *clock) throttle() *throttle        { return newThrottle(c.now) }
func exhaust(th *throttle, peer string) int { return failures(th, peer, 1000) }

// failures counts how many of n are answered before the peer has to wait.
func failures(th *throttle, peer string, n int) int {
	for i := range n {
		if th.failed(peer) > 0 {
			return i
		}
	}
	return n
}

func TestThrottleStopsWhoKeepsFailing(t *testing.T) {
	c := newClock()
	th := c.throttle()
	if n := exhaust(th, "a"); n != throttleAttempts {
		t.Errorf("%d attempts", n)
	}
	if wait := th.wait("a"); wait != throttleEvery {
		t.Errorf("has to wait %s", wait)
	}
	if wait := th.wait("b"); wait != 0 {
		t.Errorf("another peer has to wait %s", wait)
	}
	c.forward(throttleEvery)
	if th.wait("a") != 0 || exhaust(th, "a") != 1 {
		t.Error("an attempt did not come back")
	}
	c.forward(time.Hour)
	if n := exhaust(th, "a"); n != throttleAttempts {
		t.Errorf("%d attempts came back", n)
	}
}

// However long a peer hammers, the wait does not grow.
func TestThrottleDoesNotLockOutForGood(t *testing.T) {
	c := newClock()
	th := c.throttle()
	exhaust(th, "a")
	for range 10_000 {
		th.failed("a")
	}
	if wait := th.wait("a"); wait > throttleEvery {
		t.Errorf("has to wait %s", wait)
	}
}

func TestThrottleIsBounded(t *testing.T) {
	th := newClock().throttle()
	exhaust(th, "first")
	exhaust(th, "kept")
	for i := range maxOffenders - 1 {
		th.failed(fmt.Sprint(i))
		if i%100 == 0 {
			th.failed("kept")
		}
	}
	if len(th.peers) != maxOffenders || th.order.Len() != maxOffenders {
		t.Errorf("%d peers, %d in order", len(th.peers), th.order.Len())
	}
	if th.wait("first") != 0 || th.wait("kept") == 0 {
		t.Error("not the one whose last failure is the longest ago was forgotten")
	}
}

func TestQuota(t *testing.T) {
	var q quota
	for range 2 {
		if !q.take("a", 2) {
			t.Fatal("refused below the limit")
		}
	}
	if q.take("a", 2) || !q.take("b", 1) || q.count("a") != 2 {
		t.Errorf("held %v", q.held)
	}
	q.give("a")
	if !q.take("a", 2) {
		t.Error("what was given back cannot be taken")
	}
	for range 2 {
		q.give("a")
	}
	q.give("b")
	if len(q.held) != 0 {
		t.Errorf("nobody holds anything, and %v is left", q.held)
	}
}
