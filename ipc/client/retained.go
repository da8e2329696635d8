package client

import (
	"context"
	"encoding/json"
	"math"
	"slices"
	"time"

	"github.com/executord/executord/ipc/executor"
	"github.com/executord/executord/ipc/protocol"
)

// retained is an execution whose isolate the service retains, as far as this client knows. Its session goes on for it,
// also where new executions go to another.
type retained struct {
	id      string
	session *session

	// Guarded by session.mu, under which it is in session.retained as long as it is there.
	handles int64 // that came in values and were not released
	calls   int   // that are under way
	idle    time.Duration
	until   time.Time
	timer   *time.Timer // ends it, as the service does: sooner by what news of it take
}

// Invoke calls a handle of an execution that this client had retained; see executor.Retainer. The session of the Host is
// ignored. It is sent to where its execution ran, and only there: when that session has ended the handle is unknown. For
// the rest it is like Execute.
func (c *Client) Invoke(ctx context.Context, i executor.Invocation) (*protocol.Outcome, error) {
	if err := protocol.ValidateInvoke(&i.HandleInvoke); err != nil {
		return nil, err
	}
	ctx, leave, err := c.enter(ctx)
	if err != nil {
		return nil, err
	}
	defer leave()
	if i.Execution == "" {
		i.Execution = newID()
	}
	host := i.Host
	host.Execution = i.Execution
	id := protocol.RetainedOf(i.Handle)
	k := c.memory.find(id)
	if k == nil {
		return nil, c.memory.unknown(id)
	}
	s := k.session
	switch _, err := s.wait(ctx); {
	case err != nil || ctx.Err() != nil:
		return s.unsent(ctx, k), nil
	case s.over():
		return nil, c.memory.unknown(id)
	}
	o, refused, err := s.execute(ctx, protocol.MethodHandleInvoke, &i.HandleInvoke, &host, k, i.Begun)
	if refused && s.over() { // what it did not answer it did not accept
		return nil, c.memory.unknown(id)
	}
	return o, err
}

// unsent is the outcome of what never left this client. It has changed nothing in k, which is nil for a program.
func (s *session) unsent(ctx context.Context, k *retained) *protocol.Outcome {
	o := cancelled(ctx)
	s.mu.Lock()
	defer s.mu.Unlock()
	if k != nil && s.retained[k.id] == k {
		o.Retained = &protocol.Retained{ID: k.id, IdleMs: k.idle.Milliseconds(), TTLMs: max(0, time.Until(k.until)).Milliseconds()}
	}
	return o
}

// Release gives up handles; see executor.Retainer. The session is ignored: handles are the client's. It waits for the
// service's answer, but no longer than WithCancelGrace says, and counts what has no answer by then as not released.
func (c *Client) Release(_ string, handles []string) (released int) {
	of := map[*retained][]string{}
	for _, h := range handles {
		if k := c.memory.find(protocol.RetainedOf(h)); k != nil {
			of[k] = append(of[k], h)
		}
	}
	ctx, cancel := context.WithTimeout(c.ctx, c.opts.cancelGrace)
	defer cancel()
	for k, handles := range of {
		for len(handles) > 0 {
			n := min(len(handles), protocol.MaxReleased)
			released += k.session.release(ctx, k, handles[:n])
			handles = handles[n:]
		}
	}
	return released
}

// ReleaseSession ends all that the service retains for this client, and what is under way in it. The session is ignored.
func (c *Client) ReleaseSession(string) {
	for _, k := range c.memory.live() {
		for _, x := range k.session.callsOf(k) {
			k.session.sendCancel(x, errReleased)
		}
		c.Release("", []string{k.id})
	}
}

var errReleased = protocol.Errorf(protocol.Cancelled, "the session was released")

// callsOf lists what is under way in k.
func (s *session) callsOf(k *retained) (calls []*execution) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, x := range s.executions {
		if x.of == k {
			calls = append(calls, x)
		}
	}
	return calls
}

// release sends handle.release and waits for its answer.
func (s *session) release(ctx context.Context, k *retained, handles []string) int {
	params, err := protocol.EncodeParams(protocol.HandleRelease{Handles: handles})
	if err != nil {
		return 0
	}
	id, reply := s.request()
	defer s.forget(id)
	if s.out.Send(ctx, protocol.AppendRequest(nil, protocol.NumberID(id), protocol.MethodHandleRelease, params)) != nil {
		return 0
	}
	var answer protocol.HandleReleased
	select {
	case m := <-reply:
		if m.Error != nil || json.Unmarshal(m.Result, &answer) != nil {
			return 0
		}
	case <-s.ended:
		return 0
	case <-ctx.Done():
		return 0
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	k.handles -= int64(answer.Released)
	if k.handles <= 0 && k.calls == 0 || slices.Contains(handles, k.id) {
		s.drop(k, whyReleased)
	}
	s.endIfDone()
	return answer.Released
}

const whyReleased = "its handles were released"

// learn takes what the outcome of x says of what is retained; nil where nothing is, or not any more.
func (s *session) learn(x *execution, told *protocol.Retained) {
	s.mu.Lock()
	defer s.mu.Unlock()
	k := x.of
	if told == nil {
		if k != nil {
			s.drop(k, "a call ended it, or its time or its session was over meanwhile")
		}
		return
	}
	if k == nil || s.retained[k.id] != k {
		k = &retained{id: told.ID, session: s}
		s.retained[k.id] = k
		s.client.memory.add(k)
	}
	k.handles += int64(told.Handles)
	k.idle, k.until = millis(told.IdleMs), time.Now().Add(millis(told.TTLMs))
	s.watch(k)
	select {
	case <-s.ended: // the outcome was the last that came
		s.drop(k, s.whyEnded())
	default:
	}
}

// invoked is called when a call of k has ended; nil for a program's end. With mu.
func (s *session) invoked(k *retained) {
	if k == nil {
		return
	}
	if k.calls--; k.calls == 0 && k.handles <= 0 {
		s.drop(k, whyReleased)
	}
	s.watch(k)
}

// due is when k ends if nothing is called. With mu.
func (k *retained) due(now time.Time) time.Duration { return min(k.idle, k.until.Sub(now)) }

// watch has k end in time; not while something is under way. With mu.
func (s *session) watch(k *retained) {
	if k.timer != nil {
		k.timer.Stop()
	}
	if k.calls > 0 || s.retained[k.id] != k {
		return
	}
	var timer *time.Timer
	timer = time.AfterFunc(k.due(time.Now()), func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		if k.timer == timer && k.calls == 0 {
			s.drop(k, "nobody called it in time, or its own time was over")
			s.endIfDone()
		}
	})
	k.timer = timer
}

// drop makes the handles of k unknown. With mu.
func (s *session) drop(k *retained, why string) {
	if s.retained[k.id] != k {
		return
	}
	delete(s.retained, k.id)
	if k.timer != nil {
		k.timer.Stop()
	}
	s.client.memory.bury(k.id, why)
}

// abandon drops all that is retained in the session, which ends if it went on for that only.
func (s *session) abandon(why string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, k := range s.retained {
		s.drop(k, why)
	}
	s.endIfDone()
}

// over tells whether the session has ended. What was retained in it is known to have ended then.
func (s *session) over() bool {
	select {
	case <-s.ended:
		s.abandon(s.whyEnded())
		return true
	default:
		return false
	}
}

// whyEnded is called once the session has.
func (s *session) whyEnded() string { return "its session ended: " + protocol.AsError(s.end).Message }

func millis(n int64) time.Duration {
	return time.Duration(min(n, math.MaxInt64/int64(time.Millisecond))) * time.Millisecond
}
