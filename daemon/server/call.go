package server

import (
	"cmp"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"slices"

	"github.com/executord/executord/ipc/executor"
	"github.com/executord/executord/ipc/protocol"
)

// call is a tool.call or a fetch that waits for the host's response.
type call struct {
	id     uint64 // of the request, unique in the session
	number uint64 // unique in the execution
	run    *execution
	answer func(protocol.Message, error) // the response, or why there is none
	sent   bool                          // guarded by run.order
}

var errSettled = errors.New("cannot call a tool: the execution has ended")

// startCall asks the host. The answer comes by resolve; after the end of the execution nobody waits for it any more.
func (r *execution) startCall(_ context.Context, c executor.ToolCall, answer func(protocol.Value, error)) {
	waiting := r.session.register(r, c.Call, func(m protocol.Message, err error) {
		if err != nil {
			answer(nil, err)
			return
		}
		answer(toolAnswer(m, r.session.srv.cfg.bounds()))
	})
	text := protocol.ToolCallRequest(protocol.NumberID(waiting.id), &protocol.ToolCallParams{
		Execution: r.id, Call: c.Call, Provider: c.Provider, Path: c.Path, Args: c.Args,
	})
	if r.sendCall(waiting, text) {
		return
	}
	// The host reads slowly. Waiting for it holds up this call only; the execution that ends meanwhile takes it back.
	go func() {
		if err := r.waitSend(waiting, text); err != nil {
			r.session.forget(waiting)
			answer(nil, err)
		}
	}()
}

// sendCall queues the request if there is room. The lock keeps it from following the outcome.
func (r *execution) sendCall(waiting *call, text protocol.Text) bool {
	r.order.Lock()
	defer r.order.Unlock()
	if r.settled { // takeBack may be reading it
		return false
	}
	waiting.sent = r.session.out.TrySend(text...)
	return waiting.sent
}

func (r *execution) waitSend(waiting *call, text protocol.Text) error {
	r.order.Lock()
	defer r.order.Unlock()
	if r.settled {
		return errSettled
	}
	if err := r.session.out.Send(r.ctx, text...); err != nil {
		return err
	}
	waiting.sent = true
	return nil
}

func toolAnswer(m protocol.Message, b protocol.Bounds) (protocol.Value, error) {
	if m.Error != nil {
		return nil, m.Error.Thrown()
	}
	value, err := protocol.DecodeToolResult(m.Result, b)
	if err != nil {
		return nil, &protocol.ThrownError{Name: "TypeError", Message: "the host's answer is not a tool result"}
	}
	return value, nil
}

func (x *session) register(r *execution, number uint64, answer func(protocol.Message, error)) *call {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.lastCall++
	c := &call{id: x.lastCall, number: number, run: r, answer: answer}
	x.calls[c.id] = c
	r.open[c.id] = c
	return c
}

func (x *session) forget(c *call) {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.drop(c)
}

func (x *session) drop(c *call) {
	delete(x.calls, c.id)
	delete(c.run.open, c.id)
}

// takeBack forgets the calls of r and returns those that the host knows of.
func (x *session) takeBack(r *execution) (sent []*call) {
	x.mu.Lock()
	defer x.mu.Unlock()
	for _, c := range r.open {
		x.drop(c)
		if c.sent {
			sent = append(sent, c)
		}
	}
	slices.SortFunc(sent, func(a, b *call) int { return cmp.Compare(a.id, b.id) })
	return sent
}

// resolve gives a response to the call that waits for it. One that comes late, twice, or for nothing is counted and
// otherwise ignored.
func (x *session) resolve(m protocol.Message) {
	c := x.take(m.ID)
	if c == nil {
		x.srv.stats.ignored.Add(1)
		return
	}
	c.answer(m, nil)
}

// take returns the call that waits for the response of that id, if there is one. Nobody else gets it again.
func (x *session) take(id json.RawMessage) *call {
	n, ok := protocol.ParseNumberID(id)
	x.mu.Lock()
	defer x.mu.Unlock()
	c := x.calls[n]
	if !ok || c == nil {
		return nil
	}
	x.drop(c)
	return c
}

func randomID() string { return rand.Text() }

// recentIDs remembers the last ids of ended executions, so that a request sent twice does not run twice.
type recentIDs struct {
	set  map[string]struct{}
	ring []string
	next int
}

// maxRecentIDs bounds what one session remembers.
const maxRecentIDs = 1024

func (r *recentIDs) has(id string) bool {
	_, ok := r.set[id]
	return ok
}

func (r *recentIDs) add(id string) {
	if r.set == nil {
		r.set = map[string]struct{}{}
	}
	if len(r.ring) < maxRecentIDs {
		r.ring = append(r.ring, id)
	} else {
		delete(r.set, r.ring[r.next])
		r.ring[r.next] = id
		r.next = (r.next + 1) % maxRecentIDs
	}
	r.set[id] = struct{}{}
}
