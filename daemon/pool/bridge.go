package pool

import (
	"bytes"
	"context"
	"errors"
	"math"
	"runtime/debug"
	"sync"

	"github.com/executord/executord/ipc/executor"
	"github.com/executord/executord/ipc/protocol"
	"github.com/executord/executord/ipc/worker"
)

// maxThrownText bounds the texts of a host's error that is thrown in the program.
const maxThrownText = 64 << 10

// toolCall checks one call of the program's and lets it be answered on a goroutine of its own. The error is a
// violation.
func (r *run) toolCall(c worker.ToolCall) error {
	tooMuch, err := r.checkArguments(c.Args)
	if err != nil {
		return err
	}
	if args := bytes.TrimLeft(c.Args, " \t\r\n"); args[0] != '[' {
		return violationf("arguments of a tool call that are no array")
	}
	call, refused, err := r.admitCall(c)
	if err != nil || call == nil {
		return err
	}
	if refused == nil {
		refused = tooMuch
	}
	ctx := r.trace.tool(r.ctx, call)
	switch {
	case refused != nil:
		r.answer(call, nil, refused)
	case r.req.Start != nil:
		r.start(ctx, c, call)
	default:
		r.starting.Add(1)
		go r.call(ctx, c, call)
	}
	return nil
}

// checkArguments lets the call fail, as the worker should have, where the limits on values are passed. The error is a
// violation.
func (r *run) checkArguments(args []byte) (tooMuch *protocol.ThrownError, violation error) {
	err := protocol.Check(args, bounds(math.MaxInt, 1, r.limits)) // the frame bounds its length
	switch {
	case overBound(err):
		return throw("TypeError", "the arguments are nested deeper than %d levels, or have more than %d parts", r.limits.ValueDepth, r.limits.ValueParts), nil
	case err != nil:
		return nil, violationf("arguments of a tool call: %v", err)
	}
	return nil, nil
}

// start hands a call to a host that answers later.
func (r *run) start(ctx context.Context, c worker.ToolCall, call *hostCall) {
	defer func() {
		if p := recover(); p != nil {
			r.pool.log.Error("tool callback panicked", "execution", r.execution, "panic", p, "stack", string(debug.Stack()))
			r.answer(call, nil, &protocol.ThrownError{Message: "the host could not answer the call"})
		}
	}()
	var once sync.Once
	r.req.Start(ctx, r.executorCall(c), func(value protocol.Value, err error) {
		once.Do(func() {
			value, thrown := r.judge(value, err)
			r.answer(call, value, thrown)
		})
	})
}

func (r *run) executorCall(c worker.ToolCall) executor.ToolCall {
	return executor.ToolCall{Execution: r.execution, Call: c.Call, Provider: c.Provider, Path: c.Path, Args: c.Args}
}

// admitCall accounts for a call; nil when the run ended. A refusal is thrown in the program.
func (r *run) admitCall(c worker.ToolCall) (call *hostCall, refused *protocol.ThrownError, violation error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.ended || r.verdict != nil {
		return nil, nil, nil
	}
	if r.tools == nil {
		r.tools = newToolset(r.req.Providers)
	}
	switch {
	case c.Call <= r.lastTool:
		return nil, nil, violationf("tool call %d after %d", c.Call, r.lastTool)
	case !r.tools.has(c.Provider, c.Path):
		return nil, nil, violationf("a call of a tool that the request does not announce")
	}
	r.lastTool = c.Call
	now := r.pool.outside.now()
	call = &hostCall{kind: toolKind, number: c.Call, asked: now, size: int64(len(c.Args)), provider: c.Provider, path: c.Path}
	refused, violation = r.govern.hostCall(now, call)
	return call, refused, violation
}

// call asks the host and answers the worker.
func (r *run) call(ctx context.Context, c worker.ToolCall, call *hostCall) {
	value, thrown := r.ask(ctx, c)
	r.answer(call, value, thrown)
}

// over tells that the run ended: nothing may be asked or answered any more.
func (r *run) over() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.ended
}

// ask calls the host's callback. A callback that panics is the host's fault, and fails the call only.
func (r *run) ask(ctx context.Context, c worker.ToolCall) (value protocol.Value, thrown *protocol.ThrownError) {
	r.starting.Done()
	defer func() {
		if p := recover(); p != nil {
			r.pool.log.Error("tool callback panicked", "execution", r.execution, "panic", p, "stack", string(debug.Stack()))
			value, thrown = nil, &protocol.ThrownError{Message: "the host could not answer the call"}
		}
	}()
	if r.req.Call == nil {
		return nil, &protocol.ThrownError{Message: "the host answers no tool calls"}
	}
	return r.judge(r.req.Call(ctx, r.executorCall(c)))
}

// judge checks what the host answered.
func (r *run) judge(value protocol.Value, err error) (protocol.Value, *protocol.ThrownError) {
	if err != nil {
		return nil, r.thrown(err)
	}
	if value == nil {
		return protocol.UndefinedValue, nil
	}
	if err := protocol.Check(value, r.valueBounds()); err != nil {
		return nil, &protocol.ThrownError{Name: "RangeError", Message: "the host's answer cannot be passed on: " + err.Error()}
	}
	return value, nil
}

// valueBounds are those of one value that the host hands to the program.
func (r *run) valueBounds() protocol.Bounds { return bounds(r.limits.MessageBytes, 1, r.limits) }

// thrown is err as the program gets it, bounded.
func (r *run) thrown(err error) *protocol.ThrownError {
	var t *protocol.ThrownError
	if !errors.As(err, &t) || t == nil {
		return &protocol.ThrownError{Message: Clip(err.Error(), maxThrownText)}
	}
	own := protocol.ThrownError{Name: Clip(t.Name, maxDetail), Message: Clip(t.Message, maxThrownText), Code: Clip(t.Code, maxDetail)}
	if t.Thrown != nil && protocol.Check(t.Thrown, r.valueBounds()) == nil {
		own.Thrown = t.Thrown
	}
	return &own
}

// answer gives the guest's clock back its time and sends the result of a call, unless the run ended. The books come first:
// the worker may act on the answer at once.
func (r *run) answer(c *hostCall, value protocol.Value, thrown *protocol.ThrownError) {
	if r.over() {
		return
	}
	r.answered(c, thrown == nil)
	r.reply(c.number, value, thrown)
}

// answered closes the books on a call.
func (r *run) answered(c *hostCall, ok bool) {
	now := r.pool.outside.now()
	r.govern.answered(now, c, ok)
	r.pool.measure.answered(r.ctx, c.kind, now.Sub(c.asked), ok)
	r.trace.answered(c, ok)
}

// reply sends the result of a call to the worker.
func (r *run) reply(call uint64, value protocol.Value, thrown *protocol.ThrownError) {
	if r.ctx.Err() != nil { // a callback that gave up with its caller is no failure that the program may catch
		r.halt(cause(r.ctx))
	}
	m := worker.ToolResult{ID: r.id, Call: call, OK: thrown == nil, Value: value}
	if thrown != nil {
		m.Value = protocol.AppendThrownError(nil, thrown)
	}
	switch err := r.m.conn.TrySend(m); {
	case errors.Is(err, worker.ErrQueueFull): // the worker reads slowly; whoever answers has others to serve
		n := int64(len(m.Value))
		if r.unread.Add(n) > r.config.InFlightBytes {
			r.condemn(unresponsive("the worker does not read its channel"))
		}
		go func() {
			_ = r.m.conn.Send(m)
			r.unread.Add(-n)
		}()
	default: // a channel that broke ends the run through its reader
	}
}
