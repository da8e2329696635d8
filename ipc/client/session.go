package client

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/executord/executord/ipc/client/channel"
	"github.com/executord/executord/ipc/protocol"
)

// session is what is under way between this client and the service. It goes on on another connection when one is lost,
// where the service allows.
type session struct {
	client *Client
	opts   *options
	out    *channel.Outbox
	bounds protocol.Bounds
	tools  *tools
	ended  chan struct{}   // closed when there is no connection any more and will be none
	ctx    context.Context // of attempts to resume
	stop   context.CancelFunc

	// Of run.
	resume    protocol.Resume // no token: the session ends with its connection
	receipts  channel.Receipts
	acked     uint64 // messages that the service has
	fruitless int    // connections that broke since a message came or arrived there
	end       error  // why it ended, like refused set before ended is closed
	refused   bool   // what was not answered was not accepted either

	mu         sync.Mutex
	conn       *channel.Conn // nil while there is none
	up         chan struct{} // closed while there is one
	expires    time.Time     // zero for never
	retired    bool          // it gets no new executions, and ends with the last, and with what is retained
	draining   bool          // the service has said so
	late       int           // answers of the reader that wait for room
	lastID     uint64
	pending    map[uint64]chan protocol.Message // requests without a response
	executions map[string]*execution
	retained   map[string]*retained
}

func newSession(c *Client, conn *channel.Conn, opened protocol.SessionOpened) *session {
	s := &session{
		client: c, opts: &c.opts, bounds: c.opts.bounds(), out: conn.Outbox(), tools: newTools(c.opts.maxTools),
		ended: make(chan struct{}), up: make(chan struct{}),
		pending: map[uint64]chan protocol.Message{}, executions: map[string]*execution{}, retained: map[string]*retained{},
	}
	s.ctx, s.stop = context.WithCancel(c.ctx)
	if opened.Resume != nil {
		s.resume = *opened.Resume
		s.out.Watch(s.kept)
		s.out.Begin()
	}
	if age := c.opts.maxAge; age > 0 {
		s.expires = time.Now().Add(age - rand.N(age/10+1)) // clients that began together do not end together
	}
	return s
}

// run is the reader's goroutine, on the first connection and on those that follow it, until the session ends.
func (s *session) run(conn *channel.Conn) {
	for conn != nil {
		s.connected(conn)
		s.read(conn)
		<-conn.Done()
		conn = s.reconnect(conn)
	}
	s.stop()
	close(s.ended)
	s.out.Close()
	s.client.retire(s)
	s.over()
	s.tools.wait()
}

func (s *session) connected(conn *channel.Conn) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.conn = conn
	close(s.up)
	s.endIfDone()
}

// reconnect has the session go on on another connection; nil when it has ended.
func (s *session) reconnect(broken *channel.Conn) *channel.Conn {
	s.mu.Lock()
	s.conn, s.up = nil, make(chan struct{})
	draining := s.draining
	s.mu.Unlock()
	s.end = lost(broken)
	var end *channel.CloseError
	switch {
	case !errors.As(broken.Cause(), &end):
		return nil
	case end.Peer && end.Code == channel.CloseGoingAway && draining:
		s.refused = true
		return nil
	case end.Code != channel.CloseLost && !(end.Peer && (end.Code == channel.CloseGoingAway || end.Code == channel.CloseRestarting)):
		return nil
	case s.resume.Token == "":
		return nil
	}
	ctx, cancel := context.WithTimeout(s.ctx, time.Duration(s.resume.WindowMs)*time.Millisecond)
	defer cancel()
	sleep(ctx, fruitlessPause(s.fruitless))
	s.fruitless++
	var pace backoff
	var why error
	for {
		conn, err := s.again(ctx)
		if err == nil {
			return conn
		}
		why = telling(ctx, why, err)
		if !temporary(err) || !pace.wait(ctx) {
			s.end = protocol.Errorf(protocol.Internal, "%s, and the session cannot be resumed: %s", lostText(broken), why)
			return nil
		}
	}
}

// again resumes the session on a new connection.
func (s *session) again(ctx context.Context) (*channel.Conn, error) {
	received := s.receipts.Received
	conn, opened, err := s.client.connect(ctx, protocol.SessionOpen{Client: s.opts.party, Resume: s.resume.Token, Received: &received})
	if err != nil {
		return nil, err
	}
	if err := s.out.MoveTo(conn, opened.Received); err != nil {
		conn.Drop(channel.ClosePolicy, err.Error())
		s.client.sessions.Go(func() { discard(conn) })
		return nil, protocol.Errorf(protocol.SessionUnknown, "the service has lost count: %s", err)
	}
	s.arrived(opened.Received)
	s.resume = protocol.Resume{}
	if opened.Resume != nil {
		s.resume = *opened.Resume
	}
	s.receipts = channel.Receipts{Received: received}
	conn.Note(protocol.AppendAck(nil, received), true) // so that the service knows that the token has come
	return conn, nil
}

// lost is the error of everything that was under way when the connection ended.
func lost(conn *channel.Conn) error { return protocol.Errorf(protocol.Internal, "%s", lostText(conn)) }

func lostText(conn *channel.Conn) string {
	var end *channel.CloseError
	if !errors.As(conn.Cause(), &end) {
		return "connection lost"
	}
	if end.Code == channel.CloseLost {
		return end.Error()
	}
	return fmt.Sprintf("connection lost: %s", end)
}

// wait returns when there is a connection; false when there will be none. Its error is the cause of ctx.
func (s *session) wait(ctx context.Context) (bool, error) {
	s.mu.Lock()
	up := s.up
	s.mu.Unlock()
	select {
	case <-up:
		return true, nil
	case <-s.ended:
		return false, nil
	case <-ctx.Done():
		return false, context.Cause(ctx)
	}
}

// old tells whether the session is past its age.
func (s *session) old() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return !s.expires.IsZero() && time.Now().After(s.expires)
}

// retire lets the session end with its last execution.
func (s *session) retire() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.retired = true
	s.endIfDone()
}

// endIfDone is called with mu held.
func (s *session) endIfDone() {
	if !s.retired || len(s.executions) > 0 || len(s.retained) > 0 {
		return
	}
	s.stop()
	if s.conn != nil {
		s.conn.Close(channel.CloseNormal, "")
	}
}

// kept hears of what the service has not acknowledged.
func (s *session) kept(int64) {
	const inFlight = 64 << 20
	if s.out.Unread() > inFlight+2*s.opts.maxMessage {
		s.mu.Lock()
		defer s.mu.Unlock()
		if s.conn != nil {
			s.conn.Drop(channel.ClosePolicy, "the service acknowledges nothing")
		}
	}
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

// read hands messages on until the connection ends. It never waits for a callback, a tool, or room to answer.
func (s *session) read(conn *channel.Conn) {
	for {
		text, err := conn.Receive()
		if err != nil {
			return
		}
		m, err := protocol.ParseMessage(text, s.bounds)
		if err == nil && m.Method == protocol.MethodSessionAck && m.Kind == protocol.KindNotification {
			if err = s.acknowledged(m); err == nil {
				continue
			}
		}
		if err != nil {
			s.opts.log.Warn("the service sent what is no message", "error", err.Error())
			conn.Close(channel.ClosePolicy, "that was no message of the protocol")
			continue // until the service closes too
		}
		s.fruitless = 0
		if due, now := s.receipts.Count(len(text)); due && s.resume.Token != "" {
			conn.Note(protocol.AppendAck(nil, s.receipts.Received), now)
		}
		s.handle(m)
	}
}

// acknowledged takes a session.ack.
func (s *session) acknowledged(m protocol.Message) error {
	var p protocol.Received
	if s.resume.Token == "" {
		return nil
	}
	if err := protocol.DecodeParams(m.Params, &p); err != nil {
		return err
	}
	if err := s.out.Ack(p.Received); err != nil {
		return err
	}
	s.arrived(p.Received)
	return nil
}

// arrived notes what the service has of this end's messages.
func (s *session) arrived(received uint64) {
	if received > s.acked {
		s.acked, s.fruitless = received, 0
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
	case m.Method == protocol.MethodSessionDraining:
		s.mu.Lock()
		s.draining = true
		s.mu.Unlock()
		s.client.retire(s)
	case m.Kind == protocol.KindRequest:
		s.refuse(m.ID, protocol.Errorf(protocol.UnknownMethod, "this client has no method %.100q", m.Method))
	}
}

// maxLate bounds the answers of the reader that wait for room.
const maxLate = 1024

// answerNow sends an answer of the reader, which must not wait.
func (s *session) answerNow(text []byte) {
	if s.out.TrySend(text) {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.late == maxLate {
		if s.conn != nil {
			s.conn.Drop(channel.ClosePolicy, "the service reads nothing and asks for more")
		}
		return
	}
	s.late++
	s.tools.all.Go(func() {
		s.reply(text)
		s.mu.Lock()
		defer s.mu.Unlock()
		s.late--
	})
}

func (s *session) refuse(id json.RawMessage, e *protocol.Error) {
	s.answerNow(protocol.AppendError(nil, id, e))
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
