package client

import (
	"context"
	"encoding/json"
	"errors"
	"sync"

	"github.com/executord/executord/ipc/client/channel"
	"github.com/executord/executord/ipc/protocol"
)

// session is one connection and what is under way on it.
type session struct {
	opts   *options
	conn   *channel.Conn
	bounds protocol.Bounds
	opened protocol.SessionOpened
	tools  *tools
	ended  chan struct{} // closed when the reader has ended

	mu         sync.Mutex
	lastID     uint64
	pending    map[uint64]chan protocol.Message // requests without a response
	executions map[string]*execution
}

func newSession(conn *channel.Conn, o *options) *session {
	s := &session{
		opts: o, conn: conn, ended: make(chan struct{}),
		bounds: protocol.Bounds{
			Bytes: int(o.channel.MaxMessageBytes),
			Depth: protocol.MaxDepth,
			Nodes: protocol.ValueBounds.Nodes,
		},
		pending: map[uint64]chan protocol.Message{}, executions: map[string]*execution{},
	}
	s.tools = newTools(o.maxTools)
	go s.read()
	return s
}

// open sends session.open.
func (s *session) open(ctx context.Context) error {
	params, err := protocol.EncodeParams(protocol.SessionOpen{Client: s.opts.party})
	if err != nil {
		return err
	}
	id, reply := s.request()
	defer s.forget(id)
	if err := s.conn.Send(ctx, protocol.AppendRequest(nil, protocol.NumberID(id), protocol.MethodSessionOpen, params)); err != nil {
		return s.turnedAway()
	}
	select {
	case m := <-reply:
		return s.takeOpened(m)
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-s.ended:
		return s.turnedAway()
	}
}

// turnedAway is the error of a connection that ended before the session was open, so that nothing can have run.
func (s *session) turnedAway() error {
	var end *channel.CloseError
	if errors.As(s.conn.Cause(), &end) && end.Code == channel.CloseGoingAway {
		return protocol.Errorf(protocol.Draining, "the service is stopping")
	}
	return s.lost()
}

func (s *session) takeOpened(m protocol.Message) error {
	if m.Error != nil {
		return m.Error.Typed()
	}
	if err := json.Unmarshal(m.Result, &s.opened); err != nil {
		return protocol.Errorf(protocol.Internal, "the service opened the session in a way that cannot be read: %s", err)
	}
	if s.opened.Protocol != protocol.Version {
		return protocol.Errorf(protocol.UnsupportedProtocol,
			"the service speaks version %.20q of the protocol, this client version %q", s.opened.Protocol, protocol.Version)
	}
	return nil
}

// close ends the connection and waits until nothing of the session is left.
func (s *session) close(code int, reason string) {
	s.conn.Close(code, reason)
	<-s.ended
	<-s.conn.Done()
	s.tools.wait()
}

// lost is the error of everything that was under way when the connection ended.
func (s *session) lost() error {
	var end *channel.CloseError
	if !errors.As(s.conn.Cause(), &end) {
		return protocol.Errorf(protocol.Internal, "connection lost")
	}
	if end.Code == channel.CloseLost {
		return protocol.Errorf(protocol.Internal, "%s", end)
	}
	return protocol.Errorf(protocol.Internal, "connection lost: %s", end)
}

// request reserves an id for a request.
func (s *session) request() (id uint64, reply chan protocol.Message) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.lastID++
	reply = make(chan protocol.Message, 1)
	s.pending[s.lastID] = reply
	return s.lastID, reply
}

func (s *session) forget(id uint64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.pending, id)
}

// read is the reader's goroutine. It hands messages on and never waits for a callback or a tool.
func (s *session) read() {
	defer close(s.ended)
	for {
		text, err := s.conn.Receive()
		if err != nil {
			return
		}
		m, err := protocol.ParseMessage(text, s.bounds)
		if err != nil {
			s.opts.log.Warn("the service sent what is no message", "error", err.Error())
			s.conn.Close(channel.ClosePolicy, "that was no message of the protocol")
			continue // until the service closes too
		}
		s.handle(m)
	}
}

func (s *session) handle(m protocol.Message) {
	switch {
	case m.Kind == protocol.KindResponse:
		s.resolve(m)
	case m.Method == protocol.MethodToolCall:
		s.toolCall(m)
	case m.Method == protocol.MethodFetch:
		s.fetchCall(m)
	case m.Method == protocol.MethodToolCancel:
		s.toolCancel(m)
	case m.Method == protocol.MethodExecutionLog:
		s.executionLog(m)
	case m.Method == protocol.MethodExecutionState:
		s.executionState(m)
	case m.Kind == protocol.KindRequest:
		e := protocol.Errorf(protocol.UnknownMethod, "this client has no method %.100q", m.Method)
		_ = s.conn.Send(context.Background(), protocol.AppendError(nil, m.ID, e))
	}
}

// resolve gives a response to its request. One that nobody waits for is ignored.
func (s *session) resolve(m protocol.Message) {
	id, ok := protocol.ParseNumberID(m.ID)
	if !ok {
		return
	}
	s.mu.Lock()
	reply := s.pending[id]
	delete(s.pending, id)
	s.mu.Unlock()
	if reply != nil {
		reply <- m
	}
}

func (s *session) execution(id string) *execution {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.executions[id]
}

func (s *session) executionLog(m protocol.Message) {
	var p protocol.LogParams
	if json.Unmarshal(m.Params, &p) != nil {
		return
	}
	if x := s.execution(p.Execution); x != nil && x.req.OnLog != nil {
		x.events.add(event{log: &p.Log})
	}
}

func (s *session) executionState(m protocol.Message) {
	var p protocol.State
	if json.Unmarshal(m.Params, &p) != nil {
		return
	}
	if x := s.execution(p.Execution); x != nil && x.req.OnState != nil {
		x.events.add(event{state: &p})
	}
}
