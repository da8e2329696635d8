package client

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/executord/executord/ipc/protocol"
)

// attempt is one try to reach the service that all executions wait for which have no session.
type attempt struct {
	done chan struct{}
	err  error // set before done is closed; nil when there is a session
}

// session returns the one for new executions, when it has a connection. The error is a *protocol.Error, or the cause of
// ctx.
func (c *Client) session(ctx context.Context) (*session, error) {
	for fresh := false; ; {
		c.mu.Lock()
		s, a := c.current, c.connecting
		switch {
		case s != nil && !fresh && s.old():
			c.mu.Unlock()
			c.retire(s)
			continue
		case s == nil && a == nil:
			a = &attempt{done: make(chan struct{})}
			c.connecting = a
			c.sessions.Go(func() { c.reconnect(a) })
		}
		c.mu.Unlock()
		if s != nil {
			up, err := s.wait(ctx)
			if up || err != nil {
				return s, err
			}
			continue // it has ended
		}
		select {
		case <-a.done:
			if a.err != nil {
				return nil, protocol.AsError(a.err)
			}
			fresh = true // old or not
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
	}
}

// reconnect opens a session, however often that takes, but for no longer than the option says.
func (c *Client) reconnect(a *attempt) {
	ctx, cancel := context.WithTimeout(c.ctx, cmp.Or(c.opts.reconnect, openTimeout))
	defer cancel()
	var pace backoff
	for {
		err := c.begin(ctx)
		a.err = telling(ctx, a.err, err)
		if err == nil || !temporary(err) || c.opts.reconnect == 0 || !pace.wait(ctx) {
			break
		}
	}
	c.mu.Lock()
	c.connecting = nil
	c.mu.Unlock()
	close(a.done)
}

// beginAfter is for a service that was stopping when it was asked for a session, and said so in refusal: it may be starting
// again, and callers may wait at its socket meanwhile. No attempt begins after the time that the option says; each lasts as
// long as that of a service that starts may.
func (c *Client) beginAfter(ctx context.Context, refusal error) error {
	patience, cancel := context.WithTimeout(ctx, c.opts.reconnect)
	defer cancel()
	var pace backoff
	for pace.wait(patience) {
		err := c.begin(ctx)
		if err == nil || !errors.Is(err, protocol.Draining) && protocol.AsError(err).Type != protocol.Internal {
			return err
		}
	}
	if ctx.Err() != nil {
		return fmt.Errorf("%w; %w", refusal, context.Cause(ctx))
	}
	return refusal
}

// telling is the error of several attempts within ctx: the last one, unless that only says that ctx has ended.
func telling(ctx context.Context, before, last error) error {
	by, bounded := ctx.Deadline()
	over := ctx.Err() != nil || bounded && !time.Now().Before(by) // sockets may notice first
	if last != nil && before != nil && over {
		return before
	}
	return last
}

// retire has new executions go to another session; what s has is finished there.
func (c *Client) retire(s *session) {
	c.mu.Lock()
	if c.current == s {
		c.current = nil
	}
	c.mu.Unlock()
	s.retire()
}

// temporary tells whether connecting may succeed later.
func temporary(err error) bool {
	var typed *protocol.Error
	return !errors.As(err, &typed) || typed.Retryable()
}

// backoff spreads attempts: each pause is about twice the one before, and no two clients keep the same pace.
type backoff struct{ failures int }

const (
	firstPause = 50 * time.Millisecond
	mostPause  = 5 * time.Second
)

// pause is the next one, between half of it and all.
func (b *backoff) pause() time.Duration {
	d := min(firstPause<<min(b.failures, 10), mostPause)
	b.failures++
	return d/2 + rand.N(d/2)
}

// wait pauses; false when ctx ends before.
func (b *backoff) wait(ctx context.Context) bool {
	return sleep(ctx, b.pause())
}

// fruitlessPause is how long to wait before a session is resumed, after so many connections that carried no message either
// way. On a bad line some do; what breaks every connection, as a message too large for a proxy, is met ever less often.
func fruitlessPause(connections int) time.Duration {
	const each, most = 2 * time.Millisecond, time.Second
	return min(time.Duration(connections)*each, most)
}

// sleep returns after d; false when ctx ends before.
func sleep(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}
