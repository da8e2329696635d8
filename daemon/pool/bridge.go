package pool

import (
	"bytes"
	"errors"
	"fmt"
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
	if err := protocol.Check(c.Args, bounds(r.pool.config.MessageBytes)); err != nil {
		return violationf("arguments of a tool call: %v", err)
	}
	if args := bytes.TrimLeft(c.Args, " \t\r\n"); args[0] != '[' {
		return violationf("arguments of a tool call that are no array")
	}
	accepted, err := r.admitCall(c)
	switch {
	case err != nil:
		return err
	case accepted == callIgnored:
	case accepted == callRefused:
		// Not on this goroutine, for sending may have to wait.
		go r.answer(c, nil, &protocol.ThrownError{
			Name:    "RangeError",
			Message: fmt.Sprintf("the arguments of all tool calls under way would have more than %d bytes", r.pool.config.InFlightBytes),
		})
	case r.req.Start != nil:
		r.start(c)
	default:
		r.starting.Add(1)
		go r.call(c)
	}
	return nil
}

// start hands a call to a host that answers later.
func (r *run) start(c worker.ToolCall) {
	defer func() {
		if p := recover(); p != nil {
			r.pool.log.Error("tool callback panicked", "execution", r.execution, "panic", p, "stack", string(debug.Stack()))
			r.answer(c, nil, &protocol.ThrownError{Message: "the host could not answer the call"})
		}
	}()
	var once sync.Once
	r.req.Start(r.ctx, r.executorCall(c), func(value protocol.Value, err error) {
		once.Do(func() {
			value, thrown := r.judge(value, err)
			r.answer(c, value, thrown)
		})
	})
}

func (r *run) executorCall(c worker.ToolCall) executor.ToolCall {
	return executor.ToolCall{Execution: r.execution, Call: c.Call, Provider: c.Provider, Path: c.Path, Args: c.Args}
}

// admission of a tool call.
type admission uint8

const (
	callIgnored  admission = iota // the run ended
	callRefused                   // too much under way; answered with an error
	callAccepted                  // to be answered by the host
)

// admitCall accounts for a call.
func (r *run) admitCall(c worker.ToolCall) (admission, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.ended || r.verdict != nil {
		return callIgnored, nil
	}
	if r.tools == nil {
		r.tools = newToolset(r.req.Providers)
	}
	switch {
	case c.Call <= r.lastCall:
		return 0, violationf("tool call %d after %d", c.Call, r.lastCall)
	case r.calls >= r.limits.ToolCalls:
		return 0, violationf("more than %d tool calls", r.limits.ToolCalls)
	case !r.tools.has(c.Provider, c.Path):
		return 0, violationf("a call of a tool that the request does not announce")
	}
	r.lastCall = c.Call
	r.calls++
	r.await(int64(len(c.Args)))
	if r.inFlight > r.pool.config.InFlightBytes {
		return callRefused, nil
	}
	return callAccepted, nil
}

// call asks the host and answers the worker.
func (r *run) call(c worker.ToolCall) {
	value, thrown := r.ask(c)
	r.answer(c, value, thrown)
}

// over tells that the run ended: nothing may be asked or answered any more.
func (r *run) over() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.ended
}

// ask calls the host's callback. A callback that panics is the host's fault, and fails the call only.
func (r *run) ask(c worker.ToolCall) (value protocol.Value, thrown *protocol.ThrownError) {
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
	return r.judge(r.req.Call(r.ctx, r.executorCall(c)))
}

// judge checks what the host answered.
func (r *run) judge(value protocol.Value, err error) (protocol.Value, *protocol.ThrownError) {
	if err != nil {
		return nil, r.thrown(err)
	}
	if value == nil {
		return protocol.UndefinedValue, nil
	}
	if err := protocol.Check(value, bounds(r.pool.config.MessageBytes)); err != nil {
		return nil, &protocol.ThrownError{Name: "RangeError", Message: "the host's answer cannot be passed on: " + err.Error()}
	}
	return value, nil
}

// thrown is err as the program gets it, bounded.
func (r *run) thrown(err error) *protocol.ThrownError {
	var t *protocol.ThrownError
	if !errors.As(err, &t) || t == nil {
		return &protocol.ThrownError{Message: clip(err.Error(), maxThrownText)}
	}
	own := protocol.ThrownError{Name: clip(t.Name, maxDetail), Message: clip(t.Message, maxThrownText), Code: clip(t.Code, maxDetail)}
	if t.Thrown != nil && protocol.Check(t.Thrown, bounds(r.pool.config.MessageBytes)) == nil {
		own.Thrown = t.Thrown
	}
	return &own
}

// await counts a call of size bytes that the program waits for: its clock stands. r.mu is held.
func (r *run) await(size int64) {
	if r.waiting++; r.waiting == 1 {
		r.guest.pause(r.pool.outside.now())
	}
	r.inFlight += size
}

// answered undoes await. r.mu is held.
func (r *run) answered(size int64) {
	r.inFlight -= size
	if r.waiting--; r.waiting == 0 {
		r.guest.start(r.pool.outside.now())
	}
}

// answer sends the result of a call unless the run ended, and gives the guest's clock back its time.
func (r *run) answer(c worker.ToolCall, value protocol.Value, thrown *protocol.ThrownError) {
	if r.over() {
		return
	}
	r.reply(c.Call, value, thrown)
	r.mu.Lock()
	defer r.mu.Unlock()
	r.answered(int64(len(c.Args)))
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
		go func() { _ = r.m.conn.Send(m) }()
	default: // a channel that broke ends the run through its reader
	}
}
