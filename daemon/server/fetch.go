package server

import (
	"bytes"
	"context"
	"io"

	"github.com/executord/executord/ipc/executor"
	"github.com/executord/executord/ipc/protocol"
)

// fetch has the host perform an HTTP exchange; it is an executor.Fetch. The response comes whole, in one message.
func (r *execution) fetch(ctx context.Context, f executor.FetchCall) (*executor.FetchResponse, error) {
	type answer struct {
		m   protocol.Message
		err error
	}
	answered := make(chan answer, 1)
	waiting := r.session.register(r, f.Call, func(m protocol.Message, err error) { answered <- answer{m, err} })
	text := protocol.Text{protocol.AppendFetch(nil, protocol.NumberID(waiting.id), &protocol.FetchParams{
		Execution: r.id, Call: f.Call, Request: f.FetchRequest,
	})}
	if !r.sendCall(waiting, text) {
		if err := r.waitSend(waiting, text); err != nil {
			r.session.forget(waiting)
			return nil, err
		}
	}
	select {
	case a := <-answered:
		if a.err != nil {
			return nil, a.err
		}
		return fetchAnswer(a.m, r.session.srv.cfg.bounds())
	case <-ctx.Done():
		r.giveUp(waiting)
		return nil, context.Cause(ctx)
	}
}

func fetchAnswer(m protocol.Message, b protocol.Bounds) (*executor.FetchResponse, error) {
	if m.Error != nil {
		return nil, m.Error.Thrown()
	}
	response, err := protocol.DecodeFetchResult(m.Result, b)
	if err != nil {
		return nil, &protocol.ThrownError{Name: "TypeError", Message: "fetch: the host's answer is not a response: " + err.Error()}
	}
	answer := &executor.FetchResponse{FetchHead: response.FetchHead}
	if response.Body != nil {
		answer.Body = io.NopCloser(bytes.NewReader(response.Body))
	}
	return answer, nil
}

// giveUp tells the host that nobody waits for the answer any more. Where the host does not read, settle does so.
func (r *execution) giveUp(c *call) {
	r.order.Lock()
	defer r.order.Unlock()
	if !r.settled && r.session.out.TrySend(r.cancelText(c)) {
		r.session.forget(c)
	}
}
