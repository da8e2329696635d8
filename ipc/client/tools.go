package client

import (
	"context"
	"encoding/json"
	"errors"
	"runtime/debug"
	"strings"
	"sync"
	"time"

	"github.com/executord/executord/ipc/executor"
	"github.com/executord/executord/ipc/protocol"
)

// maxWaitingTools bounds the tool calls that wait for their turn on one connection.
const maxWaitingTools = 16 << 10

// tools runs tool calls, some at once and the others in order.
type tools struct {
	max int

	mu      sync.Mutex
	running int
	waiting []func()
	all     sync.WaitGroup
}

func newTools(limit int) *tools { return &tools{max: limit} }

// run calls f on its own goroutine, now or when there is room. It reports false when too many wait.
func (t *tools) run(f func()) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.running >= t.max {
		if len(t.waiting) >= maxWaitingTools {
			return false
		}
		t.waiting = append(t.waiting, f)
		return true
	}
	t.running++
	t.all.Go(func() {
		for f != nil {
			f()
			f = t.next()
		}
	})
	return true
}

// next returns the call that waits longest, nil when the goroutine is not needed any more.
func (t *tools) next() (f func()) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if len(t.waiting) == 0 {
		t.running--
		return nil
	}
	f, t.waiting[0] = t.waiting[0], nil
	t.waiting = t.waiting[1:]
	return f
}

// wait returns when all calls have ended. No run may follow.
func (t *tools) wait() { t.all.Wait() }

// toolCall takes a tool.call of the service.
func (s *session) toolCall(m protocol.Message) {
	if m.Kind != protocol.KindRequest {
		return
	}
	c, err := protocol.DecodeToolCall(m.Params, s.bounds)
	if err != nil {
		s.refuse(m.ID, protocol.AsError(err))
		return
	}
	s.answerLater(m.ID, c.Execution, c.Call, func(ctx context.Context, x *execution) []byte { return s.answerCall(ctx, x, m.ID, c) })
}

// answerLater runs answer on a goroutine of its own, when there is room, and sends what it returns unless nobody waits
// for it any more. The program may have ended without waiting for this call, but it did make it: it is begun all the same.
func (s *session) answerLater(id json.RawMessage, execution string, call uint64, answer func(context.Context, *execution) []byte) {
	x, ctx := s.beginCall(execution, call)
	if x == nil {
		s.throw(id, &protocol.ThrownError{Message: "the execution has ended"})
		return
	}
	ok := s.tools.run(func() {
		defer s.endCall(x, call)
		if !s.enter(x) {
			return
		}
		if text := answer(ctx, x); ctx.Err() == nil {
			s.reply(text)
		}
	})
	if !ok {
		s.enter(x)
		s.endCall(x, call)
		s.throw(id, &protocol.ThrownError{Message: "too many calls wait on this connection", Code: "TOO_MANY_CALLS"})
	}
}

// beginCall finds the execution of a call and gives the call a context; nil when there is none.
func (s *session) beginCall(name string, call uint64) (*execution, context.Context) {
	s.mu.Lock()
	defer s.mu.Unlock()
	x := s.executions[name]
	if x == nil || x.calls[call] != nil {
		return nil, nil
	}
	ctx, cancel := context.WithCancelCause(x.ctx)
	x.calls[call] = cancel
	x.starting++
	return x, ctx
}

// enter takes a call out of those that have not begun, and reports whether it may still begin.
func (s *session) enter(x *execution) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	x.starting--
	if x.starting == 0 && x.started != nil {
		close(x.started)
		x.started = nil
	}
	return !x.over
}

// awaitStarted waits until all calls of x have begun: a program may call a tool and end at once. Tools of others that
// hold all places bound it.
func (s *session) awaitStarted(x *execution) {
	x.cancel(errEnded)
	s.mu.Lock()
	if x.starting == 0 {
		s.mu.Unlock()
		return
	}
	started := make(chan struct{})
	x.started = started
	s.mu.Unlock()
	timer := time.NewTimer(s.opts.cancelGrace)
	defer timer.Stop()
	select {
	case <-started:
	case <-timer.C:
	}
}

func (s *session) endCall(x *execution, number uint64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if cancel := x.calls[number]; cancel != nil {
		cancel(nil)
		delete(x.calls, number)
	}
}

// toolCancel takes a tool.cancel: nobody waits for the answer any more.
func (s *session) toolCancel(m protocol.Message) {
	var p protocol.ToolCancel
	if json.Unmarshal(m.Params, &p) != nil {
		return
	}
	if x := s.execution(p.Execution); x != nil {
		s.mu.Lock()
		defer s.mu.Unlock()
		if cancel := x.calls[p.Call]; cancel != nil {
			cancel(errEnded)
		}
	}
}

// answerCall runs the tool and gives its answer.
func (s *session) answerCall(ctx context.Context, x *execution, id json.RawMessage, c *protocol.ToolCallParams) []byte {
	value, err := s.call(ctx, x.req, c)
	if err != nil {
		return s.thrownText(id, thrown(err))
	}
	text := protocol.AppendToolResult(nil, id, value)
	if int64(len(text)) > s.opts.maxMessage {
		return s.thrownText(id, &protocol.ThrownError{Name: "RangeError", Message: "the tool's result is too large"})
	}
	return text
}

// call runs the tool. What it returns is checked here: a value that is not JSON would break the message it travels in.
func (s *session) call(ctx context.Context, r *executor.Request, c *protocol.ToolCallParams) (v protocol.Value, err error) {
	defer func() {
		if p := recover(); p != nil {
			s.opts.log.Error("a tool panicked", "provider", c.Provider, "tool", strings.Join(c.Path, "."),
				"panic", p, "stack", string(debug.Stack()))
			v, err = nil, &protocol.ThrownError{Message: "the tool failed"}
		}
	}()
	if r.Call == nil {
		return nil, &protocol.ThrownError{Message: "the host has no tools"}
	}
	v, err = r.Call(ctx, executor.ToolCall{
		Execution: c.Execution, Call: c.Call, Provider: c.Provider, Path: c.Path, Args: c.Args,
	})
	if err != nil || v == nil {
		return nil, err
	}
	if protocol.Check(v, protocol.ValueBounds) != nil {
		return nil, &protocol.ThrownError{Name: "TypeError", Message: "the tool's result is not an encoded value"}
	}
	return v, nil
}

// thrown is what the program sees of a tool's error.
func thrown(err error) *protocol.ThrownError {
	var t *protocol.ThrownError
	if !errors.As(err, &t) {
		return &protocol.ThrownError{Message: err.Error()}
	}
	if t.Thrown != nil && protocol.Check(t.Thrown, protocol.ValueBounds) != nil {
		return &protocol.ThrownError{Name: t.Name, Message: t.Message, Code: t.Code}
	}
	return t
}

// reply sends a response. When the session has ended nobody waits for it.
func (s *session) reply(text []byte) { _ = s.out.Send(context.Background(), text) }

func (s *session) throw(id json.RawMessage, t *protocol.ThrownError) {
	s.answerNow(s.thrownText(id, t))
}

func (s *session) thrownText(id json.RawMessage, t *protocol.ThrownError) []byte {
	text := protocol.AppendThrown(nil, id, t)
	if int64(len(text)) > s.opts.maxMessage {
		text = protocol.AppendThrown(nil, id, &protocol.ThrownError{Name: "RangeError", Message: "the tool's error is too large"})
	}
	return text
}
