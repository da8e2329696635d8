package client

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"time"

	"github.com/executord/executord/ipc/client/channel"
	"github.com/executord/executord/ipc/executor"
	"github.com/executord/executord/ipc/protocol"
)

// execution is one call of Execute or Invoke.
type execution struct {
	id     string
	req    *executor.Request
	of     *retained       // what is called; nil for a program
	ctx    context.Context // of its tool calls
	cancel context.CancelCauseFunc
	events events

	// Guarded by session.mu.
	calls    map[uint64]context.CancelCauseFunc // tool calls and fetches that wait or run
	starting int                                // calls that have not begun
	started  chan struct{}                      // closed when there are none any more
	over     bool                               // no call may begin
}

// Execute runs one program on the service; see executor.Executor. While the service cannot be reached it waits as long as
// WithReconnect says. The program is sent once, and again only where the service is known not to have accepted it. When a
// connection is lost and the session with it, the error is of type protocol.Internal: the program may or may not have run.
func (c *Client) Execute(ctx context.Context, r executor.Request) (*protocol.Outcome, error) {
	if err := protocol.Validate(&r.Execute); err != nil {
		return nil, err
	}
	if r.Network == protocol.NetworkHost && r.Fetch == nil {
		return nil, protocol.FieldError("network", "host needs a caller that answers fetch calls")
	}
	ctx, leave, err := c.enter(ctx)
	if err != nil {
		return nil, err
	}
	defer leave()
	if r.Execution == "" {
		r.Execution = newID()
	}
	patience := time.Now().Add(c.opts.reconnect)
	var pace backoff
	var refusal error // what the last session said, which is better than that there was no other
	for again := false; ; again = true {
		s, err := c.session(ctx)
		switch {
		case ctx.Err() != nil:
			return cancelled(ctx), nil
		case err != nil:
			return nil, cmp.Or(refusal, err)
		}
		o, refused, err := s.execute(ctx, protocol.MethodExecute, &r.Execute, &r, nil, nil)
		if !refused || again && time.Now().After(patience) {
			return o, err
		}
		if errors.Is(err, protocol.Draining) {
			refusal = err
		}
		c.retire(s)
		if again {
			pace.wait(ctx)
		}
	}
}

func newID() string { return "x-" + rand.Text() }

// execute asks for an outcome in this session, by a method with these params: that of the program r, or of a call of what
// is retained as k, with r as its host. With refused the service has not accepted it, and another session may.
func (s *session) execute(ctx context.Context, method string, params any, r *executor.Request, k *retained, begun func()) (o *protocol.Outcome, refused bool, err error) {
	body, err := protocol.EncodeParams(params)
	if err != nil {
		return nil, false, protocol.Errorf(protocol.InvalidParams, "%s", err)
	}
	id, reply := s.request()
	defer s.forget(id)
	text := protocol.AppendRequest(nil, protocol.NumberID(id), method, body)
	if int64(len(text)) > s.opts.maxMessage {
		return nil, false, protocol.FieldError("", "the request has %d bytes, more than %d", len(text), s.opts.maxMessage)
	}
	x, refused, err := s.begin(ctx, r, k)
	if err != nil {
		return nil, refused, err
	}
	defer s.finish(x)
	switch err := s.out.Send(ctx, text); {
	case errors.Is(err, channel.ErrClosed):
		<-s.ended
		return nil, true, s.end
	case err != nil:
		return s.unsent(ctx, k), false, nil
	}
	if begun != nil {
		begun()
	}
	return s.await(ctx, x, reply)
}

// await hands out events until the answer is there.
func (s *session) await(ctx context.Context, x *execution, reply <-chan protocol.Message) (o *protocol.Outcome, refused bool, err error) {
	leave := ctx.Done()
	var grace <-chan time.Time
	for {
		select {
		case <-x.events.wake:
			x.events.deliver(x.req)
		case m := <-reply:
			x.events.deliver(x.req)
			s.awaitStarted(x)
			o, err = s.answer(x, m)
			return o, errors.Is(err, protocol.Draining), err
		case <-leave:
			leave = nil
			timer := time.NewTimer(s.opts.cancelGrace) // what sending takes is part of it
			defer timer.Stop()
			grace = timer.C
			s.sendCancel(x, context.Cause(ctx))
		case <-grace:
			return cancelled(ctx), false, nil
		case <-s.ended:
			return s.lastAnswer(x, reply)
		}
	}
}

// lastAnswer takes an answer that came just before the session ended.
func (s *session) lastAnswer(x *execution, reply <-chan protocol.Message) (o *protocol.Outcome, refused bool, err error) {
	select {
	case m := <-reply:
		x.events.deliver(x.req)
		o, err = s.answer(x, m)
		return o, errors.Is(err, protocol.Draining), err
	default:
		return nil, s.refused, s.end
	}
}

func (s *session) answer(x *execution, m protocol.Message) (*protocol.Outcome, error) {
	if m.Error != nil {
		return nil, m.Error.Typed()
	}
	o, err := protocol.DecodeOutcome(m.Result, s.bounds)
	if err != nil {
		return nil, protocol.Errorf(protocol.Internal, "the service sent an outcome that cannot be read: %s", err)
	}
	s.learn(x, o.Retained)
	return o, nil
}

// begin makes the execution known to the reader. It is refused by a session that takes none any more.
func (s *session) begin(ctx context.Context, r *executor.Request, k *retained) (x *execution, refused bool, err error) {
	x = &execution{id: r.Execution, req: r, of: k, calls: map[uint64]context.CancelCauseFunc{}}
	x.events.wake = make(chan struct{}, 1)
	// Tools end with the execution, not with the caller's patience: a program that is being cancelled may still end well.
	x.ctx, x.cancel = context.WithCancelCause(context.WithoutCancel(ctx))
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case k != nil && s.retained[k.id] != k:
		x.cancel(nil)
		return nil, false, s.client.memory.unknown(k.id)
	case k == nil && s.retired:
		x.cancel(nil)
		return nil, true, protocol.Errorf(protocol.Draining, "the session takes no new executions")
	case s.executions[x.id] != nil:
		x.cancel(nil)
		return nil, false, protocol.FieldError("execution", "%q is running", x.id)
	}
	s.executions[x.id] = x
	if k != nil {
		k.calls++
		s.watch(k)
	}
	return x, false, nil
}

func (s *session) finish(x *execution) {
	x.cancel(errEnded)
	s.mu.Lock()
	defer s.mu.Unlock()
	x.over = true
	delete(s.executions, x.id)
	s.invoked(x.of)
	s.endIfDone()
}

var errEnded = errors.New("the execution has ended")

// sendCancel asks the service to stop x. The outcome then says how it really ended.
func (s *session) sendCancel(x *execution, cause error) {
	reason := "cancelled by the caller"
	var typed *protocol.Error
	if errors.As(cause, &typed) {
		reason = typed.Message
	}
	params, err := protocol.EncodeParams(protocol.Cancel{Execution: x.id, Reason: reason})
	if err != nil {
		return
	}
	ctx, stop := context.WithTimeout(context.Background(), s.opts.cancelGrace)
	defer stop()
	_ = s.out.Send(ctx, protocol.AppendNotification(nil, protocol.MethodCancel, params))
}

// cancelled is the outcome of an execution that the caller gave up without hearing from the service.
func cancelled(ctx context.Context) *protocol.Outcome {
	return &protocol.Outcome{
		Status: protocol.StatusError,
		Error:  protocol.Errorf(protocol.Cancelled, "cancelled by the caller: %s", context.Cause(ctx)),
		Logs:   []protocol.Log{},
	}
}
