package client

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"runtime/debug"

	"github.com/executord/executord/ipc/executor"
	"github.com/executord/executord/ipc/protocol"
)

// fetchCall takes a fetch of the service.
func (s *session) fetchCall(m protocol.Message) {
	if m.Kind != protocol.KindRequest {
		return
	}
	f, err := protocol.DecodeFetch(m.Params, s.bounds)
	if err != nil {
		s.refuse(m.ID, protocol.AsError(err))
		return
	}
	s.answerLater(m.ID, f.Execution, f.Call, func(ctx context.Context, x *execution) []byte { return s.answerFetch(ctx, x, m.ID, f) })
}

// answerFetch performs the exchange and gives its answer, which has the whole body.
func (s *session) answerFetch(ctx context.Context, x *execution, id json.RawMessage, f *protocol.FetchParams) []byte {
	response, err := s.fetch(ctx, x.req, f)
	if err != nil {
		return s.thrownText(id, thrown(err))
	}
	text := protocol.AppendFetchResult(nil, id, response)
	if int64(len(text)) > s.opts.maxMessage {
		return s.thrownText(id, s.tooLarge())
	}
	return text
}

func (s *session) tooLarge() *protocol.ThrownError {
	return &protocol.ThrownError{Name: "RangeError", Message: fmt.Sprintf("fetch: the response is larger than a message of %d bytes may hold", s.opts.maxMessage)}
}

// fetch calls the host's callback and reads the body. A callback that panics fails the exchange only.
func (s *session) fetch(ctx context.Context, r *executor.Request, f *protocol.FetchParams) (whole *protocol.FetchResponse, err error) {
	defer func() {
		if p := recover(); p != nil {
			s.opts.log.Error("a fetch callback panicked", "panic", p, "stack", string(debug.Stack()))
			whole, err = nil, errNoAnswer
		}
	}()
	if r.Fetch == nil {
		return nil, errNoAnswer
	}
	response, err := r.Fetch(ctx, executor.FetchCall{Execution: f.Execution, Call: f.Call, FetchRequest: f.Request})
	if err != nil || response == nil {
		return nil, orNoAnswer(err)
	}
	whole = &protocol.FetchResponse{FetchHead: response.FetchHead}
	if response.Body != nil {
		defer response.Body.Close()
		stop := context.AfterFunc(ctx, func() { _ = response.Body.Close() })
		defer stop()
		if whole.Body, err = io.ReadAll(io.LimitReader(response.Body, s.opts.maxMessage)); err != nil {
			return nil, err
		}
	}
	return whole, response.Check()
}

var errNoAnswer = &protocol.ThrownError{Name: "TypeError", Message: "fetch: the host could not answer the call"}

func orNoAnswer(err error) error {
	if err == nil {
		return errNoAnswer
	}
	return err
}
