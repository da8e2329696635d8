package sandbox

import (
	"encoding/json"
	"fmt"
	"os"
	"time"

	"github.com/executord/executord/ipc/protocol"
	"github.com/executord/executord/ipc/worker"
	"github.com/executord/executord/sandbox/v8"
)

// invocation is a call of a handle that was heard.
type invocation struct {
	worker.Invoke
	task *task
}

// invoke takes a call of a handle, on whichever thread reads. Its clocks run from here on.
func (s *server) invoke(e *execution, m worker.Invoke) {
	if e == nil || !e.retained.Load() || e.find(m.ID) != nil { // the parent broke the contract
		s.exit(worker.ExitProtocol)
	}
	t := s.newTask(e, m.ID, m.Limits)
	e.add(t)
	e.inbox.ask(ask{invocation: invocation{m, t}})
}

// keep answers invocations until the parent has released all handles, or one of them was stopped. Between them nothing of the
// program runs.
func (s *server) keep(e *execution) {
	for !e.over && !e.broken {
		s.lookout.arm(0)
		e.listen(time.Time{}, e.inbox.asked)
		s.lookout.arm(tick)
		s.answer(e)
	}
}

// answer does what was asked, and runs the isolate until no invocation is under way, or it cannot be used any more.
func (s *server) answer(e *execution) {
	for {
		fault := e.loop(func() (v8.State, error) { return s.turn(e) })
		switch {
		case e.broken:
			return
		case fault != nil:
			s.fail(fault)
		case len(e.active()) == 0:
			return
		}
		// It was stopped: by an invocation's limits, by its memory or the parent.
		t := e.culprit()
		if t == nil {
			continue // one came just now
		}
		_, err := e.iso.InvocationValue(t.id, 0)
		s.finish(e, t, nil, e.outcome(err))
		return
	}
}

// culprit is the task that the isolate was stopped for: of those that were stopped the first, else, where memory ran out, the
// one that ran last as far as is known. Nil where none has begun.
func (e *execution) culprit() *task {
	if t := e.stopped(); t != nil {
		return t
	}
	var oldest *task
	for _, t := range e.active() {
		if t == e.task && t.begun {
			return t
		}
		if oldest == nil && t.begun {
			oldest = t
		}
	}
	return oldest
}

// fail ends the process over a fault that is no program's.
func (s *server) fail(err error) {
	fmt.Fprintf(os.Stderr, "executor-worker: %v\n", err)
	s.exit(worker.ExitFatal)
}

// turn does what was asked in its order, has the isolate go on, and answers invocations that have settled.
func (s *server) turn(e *execution) (v8.State, error) {
	for _, a := range e.inbox.takeAsks() {
		switch {
		case a.task == nil && len(a.released) == 0:
			e.over = true
		case a.task == nil:
			_ = e.iso.Release(a.released)
		case s.begin(e, a.invocation) != nil:
			return v8.Stopped, nil
		}
	}
	if len(e.active()) == 0 { // nothing of the program may run: it would belong to nobody
		return v8.Settled, nil
	}
	if state, err := e.iso.Drain(); err != nil || state == v8.Stopped {
		return state, err
	}
	for _, t := range e.active() {
		if !t.begun {
			continue
		}
		state, err := e.iso.Invoked(t.id)
		if err != nil || state == v8.Stopped {
			return state, err
		}
		if state == v8.Pending {
			continue
		}
		e.task = t
		e.nameLateCalls()
		value, err := e.iso.InvocationValue(t.id, resultBytes(e.request, t.limits))
		if v, ok := err.(*v8.Error); t.stopped() || ok && v.Kind == v8.KindTerminated {
			return v8.Stopped, nil
		}
		var fault *protocol.Error
		if err != nil {
			fault = e.outcome(err)
		}
		if !s.finish(e, t, value, fault) {
			return v8.Stopped, nil
		}
	}
	if len(e.active()) == 0 {
		return v8.Settled, nil
	}
	return v8.Pending, nil
}

// begin calls the handle of an invocation. An error says that the isolate was stopped.
func (s *server) begin(e *execution, i invocation) error {
	e.task = i.task
	e.begun = true
	v8.SetExecution(e.soleID())
	var args [][]byte
	err := protocol.Items(i.Args, protocol.Bounds{Bytes: len(i.Args), Depth: protocol.MaxValueDepth + 1, Nodes: 4*protocol.MaxValueParts + 1}, func(arg json.RawMessage) error {
		args = append(args, arg)
		return nil
	})
	if err != nil { // more of them than one value may have parts
		s.finish(e, i.task, nil, protocol.FieldError("args", "%s", err))
		return nil
	}
	err = e.iso.Invoke(i.ID, i.Handle, i.Method, args)
	v, _ := err.(*v8.Error)
	switch {
	case err == nil:
	case v != nil && v.Kind == v8.KindInput:
		s.finish(e, i.task, nil, protocol.FieldError("args", "%s", v.Message))
	case v != nil && v.Kind == v8.KindHandle: // the release crossed the call
		s.finish(e, i.task, nil, protocol.Errorf(protocol.HandleUnknown, "the handle was released"))
	case v != nil && (v.Kind == v8.KindTerminated || v.Kind == v8.KindMemory):
		return err
	default:
		s.fail(err)
	}
	return nil
}

// soleID is the number for the last words of a process: of the one task under way, 0 where there are several.
func (e *execution) soleID() uint64 {
	if list := e.active(); len(list) == 1 {
		return list[0].id
	}
	return 0
}

// finish answers an invocation. False means that it was stopped, and with it the isolate.
func (s *server) finish(e *execution, t *task, value []byte, fault *protocol.Error) bool {
	t.dog.finish()
	reason, detail := t.dog.why()
	if reason != "" {
		value, fault = nil, stopError(t.limits, reason, detail)
	}
	r := worker.Result{ID: t.id, Handles: e.iso.Handles()}
	r.Retained = reason == "" && (fault == nil || fault.Type != protocol.MemoryLimit)
	if fault != nil {
		if fault.Type == protocol.Internal {
			s.fail(fault)
		}
		r.Error = marshalError(fault)
	} else {
		r.Value = value
	}
	e.broken = !r.Retained
	e.remove(t)
	e.giveUp(t)
	s.report(e, t, r)
	v8.SetExecution(e.soleID())
	return r.Retained
}

// giveUp rejects what a task that has ended still waits for: the parent does not answer any more.
func (e *execution) giveUp(t *task) {
	t.turns = nil
	for call, p := range e.pending {
		if p.task == t || p.fetch != 0 && e.exchanges[p.fetch] == t { // another may read a body that it asked for
			fault := `{"message":"the call was given up, since what made it has ended"}`
			if p.fetch != 0 {
				fault = exchangeEnded
			}
			e.iso.Hush(call) // what did not wait for it has been warned of
			e.inbox.put(worker.ToolResult{ID: t.id, Call: call, Value: []byte(fault)})
		}
	}
	for number, owner := range e.exchanges {
		if owner == t {
			delete(e.exchanges, number)
		}
	}
}
