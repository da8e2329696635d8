package server

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"time"

	"github.com/executord/executord/ipc/executor"
	"github.com/executord/executord/ipc/protocol"
)

// executeOnce is POST /v1/execute: one execution without tools. A client that leaves cancels it.
func (s *Server) executeOnce(w http.ResponseWriter, r *http.Request, who caller) {
	if e := s.beginRequest(who.identity); e != nil {
		s.turnAway(w, e)
		return
	}
	defer s.endRequest(who.identity)
	body, status, e := s.readBody(w, r)
	if e != nil {
		s.stats.notRun.add(e)
		answerFault(w, status, e, nil)
		return
	}
	s.traffic.Received.Count(len(body))
	outcome, e := s.runOnce(r.Context(), body, who.identity)
	if e != nil {
		s.turnAway(w, e)
		return
	}
	text := append(protocol.AppendOutcome(nil, outcome), '\n')
	s.traffic.Sent.Count(len(text))
	answerText(w, http.StatusOK, text, s.config().WriteStall)
}

func (s *Server) runOnce(ctx context.Context, body []byte, identity string) (*protocol.Outcome, *protocol.Error) {
	p, err := protocol.DecodeExecute(body, s.cfg.bounds())
	if err != nil {
		return nil, protocol.AsError(err)
	}
	switch {
	case len(p.Providers) > 0:
		return nil, protocol.FieldError("providers", "need a session: a single request has nobody to answer tool calls")
	case p.Network == protocol.NetworkHost:
		return nil, protocol.FieldError("network", "host needs a session: a single request has nobody to answer fetch calls")
	case p.Retain != nil:
		return nil, protocol.FieldError("retain", "needs a session: the handles of a single request would be nobody's")
	case p.Logs.Stream:
		return nil, protocol.FieldError("logs.stream", "needs a session: a single request has one answer")
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	stop := context.AfterFunc(s.halt, func() { cancel(context.Cause(s.halt)) })
	defer stop()
	if p.Execution == "" {
		p.Execution = "x-" + randomID()
	}
	outcome, err := s.exec.Execute(ctx, executor.Request{Execute: *p, Identity: identity})
	logEnd(s.log.With("identity", identity), p.Execution, outcome, err)
	if err != nil {
		return nil, protocol.AsError(err)
	}
	return outcome, nil
}

func (s *Server) beginRequest(identity string) *protocol.Error {
	now := s.config()
	if e := s.cfg.Admit(); e != nil {
		return e
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.draining:
		return errDraining()
	case s.requests >= now.MaxRequests:
		e := protocol.Errorf(protocol.Overloaded, "%d requests are under way, which is the limit", s.requests)
		e.RetryAfterMs = 1000
		return e
	case !s.runsOf.take(identity, now.MaxCallerExecutions):
		return errCallerExecutions(now)
	}
	s.requests++
	return nil
}

func (s *Server) endRequest(identity string) {
	s.runsOf.give(identity)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.requests--
	s.checkIdle()
}

func errCallerExecutions(now *Config) *protocol.Error {
	return protocol.Errorf(protocol.SessionLimit, "this caller has %d executions under way, which is the limit", now.MaxCallerExecutions)
}

// readBody reads a bounded body from a client that may be slow, as long as some of it keeps coming.
func (s *Server) readBody(w http.ResponseWriter, r *http.Request) (body []byte, status int, e *protocol.Error) {
	control := http.NewResponseController(w)
	in := &steadyReader{http.MaxBytesReader(w, r.Body, s.cfg.MaxMessageBytes), control}
	var buf bytes.Buffer
	_, err := io.Copy(&buf, in)
	if err == nil { // else what is left of the body would hold up the answer
		_ = control.SetReadDeadline(time.Time{}) // or the server would take its end for the client's leaving
	}
	var large *http.MaxBytesError
	switch {
	case err == nil:
		return buf.Bytes(), http.StatusOK, nil
	case errors.As(err, &large):
		return nil, http.StatusRequestEntityTooLarge,
			protocol.FieldError("", "the body has more than %d bytes", s.cfg.MaxMessageBytes)
	}
	return nil, http.StatusRequestTimeout, protocol.Errorf(protocol.InvalidRequest, "the body did not come: %s", err)
}

// steadyReader gives every read a deadline of its own.
type steadyReader struct {
	io.Reader
	control *http.ResponseController
}

func (r *steadyReader) Read(p []byte) (int, error) {
	_ = r.control.SetReadDeadline(time.Now().Add(headerTimeout))
	return r.Reader.Read(p)
}
