package server

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"log/slog"
	"net/http"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/gorilla/websocket"

	"github.com/executord/executord/ipc/client/channel"
	"github.com/executord/executord/ipc/protocol"
)

// session is one connection of a host: its executions, and the calls that they make to it.
type session struct {
	srv      *Server
	conn     *channel.Conn
	id       string
	caller   caller
	identity string // the caller's
	log      *slog.Logger
	opened   atomic.Bool // session.open was answered; set by the reader
	came     time.Time
	arrival  uint64 // the order of sessions; guarded by srv.mu, like turned
	turned   bool   // it was turned out to make room

	ctx    context.Context // of the executions; ends with the connection
	cancel context.CancelCauseFunc
	work   sync.WaitGroup // executions until their answer is queued

	mu       sync.Mutex
	running  map[string]*execution
	live     int // like work
	ended    recentIDs
	draining bool
	revoked  bool             // its caller is not let in any more
	calls    map[uint64]*call // waiting for the host's response
	lastCall uint64
}

// openSession is GET /v1/session. It returns when the session has ended.
func (s *Server) openSession(w http.ResponseWriter, r *http.Request, who caller) {
	if !slices.Contains(websocket.Subprotocols(r), protocol.Subprotocol) {
		answerFault(w, http.StatusBadRequest, protocol.Errorf(protocol.UnsupportedProtocol,
			"the Sec-WebSocket-Protocol header must offer a supported subprotocol"), []string{protocol.Subprotocol})
		return
	}
	x := s.newSession(who)
	if e := s.admit(x); e != nil {
		s.turnAway(w, e)
		return
	}
	defer s.leave(x)
	conn, err := channel.Accept(w, r, protocol.Subprotocol, s.config().channel(who.peer), badHandshake)
	if err != nil {
		s.log.Debug("cannot open a session", "error", err.Error(), "identity", who.identity)
		return
	}
	x.start(conn)
	x.serve()
}

func badHandshake(w http.ResponseWriter, status int, reason error) {
	answerFault(w, status, protocol.Errorf(protocol.InvalidRequest, "%s", reason), nil)
}

func (s *Server) newSession(who caller) *session {
	id := rand.Text()
	x := &session{
		srv: s, id: id, caller: who, identity: who.identity, log: s.log.With("session", id, "identity", who.identity),
		came: time.Now(), running: map[string]*execution{}, calls: map[uint64]*call{},
	}
	x.ctx, x.cancel = context.WithCancelCause(s.halt)
	return x
}

// admit counts a session before its handshake is answered, so that no more than the limit are ever open. One that has
// not been opened by its client makes way.
func (s *Server) admit(x *session) *protocol.Error {
	if e := s.cfg.Admit(); e != nil {
		return e
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	now := s.config()
	switch {
	case s.draining:
		return errDraining()
	case !now.Policy.holds(x.caller): // it changed since the request came
		return errRevoked()
	case s.sessionsOf.count(x.identity) >= now.MaxCallerSessions:
		return protocol.Errorf(protocol.SessionLimit, "this caller has %d sessions open, which is the limit", now.MaxCallerSessions)
	case len(s.sessions)-s.turned >= now.MaxSessions && !s.turnOutSession():
		return protocol.Errorf(protocol.SessionLimit, "%d sessions are open, which is the limit", len(s.sessions)-s.turned)
	}
	s.sessionsOf.take(x.identity, now.MaxCallerSessions) // nobody else takes: mu is held
	s.arrivals++
	x.arrival = s.arrivals
	s.sessions[x] = struct{}{}
	return nil
}

// turnOutSession ends a session that waits for its session.open; false when there is none. With mu.
func (s *Server) turnOutSession() bool {
	unopened := func(yield func(*session) bool) {
		for x := range s.sessions {
			if !x.turned && !x.opened.Load() && x.connected() && !yield(x) {
				return
			}
		}
	}
	x, ok := turnOut(unopened, func(x *session) string { return x.identity }, func(x *session) uint64 { return x.arrival })
	if ok {
		x.turned = true
		s.turned++
		x.abort("session.open did not come, and others are waiting")
	}
	return ok
}

func (s *Server) leave(x *session) {
	x.cancel(nil)
	s.sessionsOf.give(x.identity)
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.sessions, x)
	if x.turned {
		s.turned--
	}
	s.checkIdle()
}

// start gives the session its connection; a drain that began meanwhile is caught up with.
func (x *session) start(conn *channel.Conn) {
	x.mu.Lock()
	x.conn = conn
	late := x.draining
	x.closeIfDrained() // revoked meanwhile
	x.mu.Unlock()
	if late {
		x.drain(0)
	}
}

// serve reads messages until the connection ends, and then ends the session's executions.
func (x *session) serve() {
	x.log.Debug("session connected")
	open := time.AfterFunc(x.srv.config().OpenTimeout, func() {
		x.conn.Close(channel.ClosePolicy, "session.open did not come in time")
	})
	defer open.Stop()
	for {
		text, err := x.conn.Receive()
		if err != nil {
			x.end(err)
			return
		}
		x.handle(text)
		if x.opened.Load() {
			open.Stop()
		}
	}
}

// end cancels what runs and waits for it and for the writer.
func (x *session) end(err error) {
	x.log.Debug("session ended", "reason", err.Error())
	x.cancel(protocol.Errorf(protocol.Cancelled, "the session ended: %s", err))
	x.work.Wait()
	<-x.conn.Done()
}

// handle takes one message. It must not wait for an execution.
func (x *session) handle(text []byte) {
	m, err := protocol.ParseMessage(text, x.srv.cfg.bounds())
	switch {
	case err != nil:
		x.refuse(m, protocol.AsError(err))
	case m.Kind == protocol.KindResponse:
		x.resolve(m)
	default:
		x.dispatch(m)
	}
}

// refuse answers what is no message. Without a method, and with the id of a tool call that waits, it was meant to be the
// call's response: the program is told too, and the host gets its answer without an id, since that one is not its own.
func (x *session) refuse(m protocol.Message, e *protocol.Error) {
	var c *call
	if m.Method == "" {
		c = x.take(m.ID)
	}
	if c == nil {
		x.answerError(m.ID, e)
		return
	}
	x.answerError(nil, e)
	c.answer(m, &protocol.ThrownError{Name: "TypeError", Message: "the host's answer is not a response: " + e.Message})
}

// method is one call of the host. A nil result with a nil error means that the answer comes later.
type method func(x *session, m protocol.Message) (result json.RawMessage, err error)

var methods = map[string]method{
	protocol.MethodSessionOpen:   (*session).open,
	protocol.MethodExecute:       (*session).execute,
	protocol.MethodCancel:        (*session).cancelExecution,
	protocol.MethodHandleInvoke:  (*session).noHandle,
	protocol.MethodHandleRelease: (*session).noHandle,
}

func (x *session) dispatch(m protocol.Message) {
	call, known := methods[m.Method]
	var result json.RawMessage
	var err error
	switch {
	case !known:
		err = protocol.Errorf(protocol.UnknownMethod, "there is no method %.100q", m.Method)
	case !x.opened.Load() && m.Method != protocol.MethodSessionOpen:
		err = protocol.Errorf(protocol.InvalidRequest, "session.open must come first")
	case m.Kind == protocol.KindNotification && m.Method != protocol.MethodCancel:
		return // nobody would hear the answer, and an execution without one is of no use
	default:
		result, err = call(x, m)
	}
	switch {
	case m.Kind == protocol.KindNotification:
	case err != nil:
		x.answerError(m.ID, protocol.AsError(err))
	case result != nil:
		x.send(protocol.AppendResult(nil, m.ID, result))
	}
}

func (x *session) open(m protocol.Message) (json.RawMessage, error) {
	if x.opened.Load() {
		return nil, protocol.Errorf(protocol.InvalidRequest, "the session is open already")
	}
	var p protocol.SessionOpen
	if err := protocol.DecodeParams(m.Params, &p); err != nil {
		return nil, err
	}
	if p.Resume != "" {
		return nil, protocol.FieldError("resume", "sessions cannot be taken up again: open a new one")
	}
	x.opened.Store(true)
	return protocol.EncodeParams(protocol.SessionOpened{
		Session:  x.id,
		Protocol: protocol.Version,
		Server:   protocol.Party{Name: "executord", Version: x.srv.cfg.Version},
		Limits:   x.srv.config().Limits,
	})
}

func (x *session) noHandle(protocol.Message) (json.RawMessage, error) {
	return nil, protocol.Errorf(protocol.HandleUnknown, "there is no such handle in this session")
}

// drain tells the host, refuses new executions, and has the connection closed once the last outcome is queued.
func (x *session) drain(left time.Duration) {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.draining = true
	if x.conn == nil {
		return // the handshake is under way; start comes back here
	}
	if params, err := protocol.EncodeParams(protocol.SessionDraining{DeadlineMs: left.Milliseconds()}); err == nil {
		x.conn.TrySend(protocol.AppendNotification(nil, protocol.MethodSessionDraining, params))
	}
	x.closeIfDrained()
}

// closeIfDrained is called with mu held.
func (x *session) closeIfDrained() {
	switch {
	case x.conn == nil || x.live > 0:
	case x.revoked:
		x.conn.Close(channel.ClosePolicy, revokedText)
	case x.draining:
		x.conn.Close(channel.CloseGoingAway, "the service is stopping")
	}
}

const revokedText = "this caller is not let in any more"

func errRevoked() *protocol.Error { return protocol.Errorf(protocol.Unauthorized, revokedText) }

// revoke cancels what runs, refuses what comes, and has the connection closed once the last outcome is queued.
func (x *session) revoke() {
	x.log.Warn("session ends: its caller is not let in any more")
	x.cancel(protocol.Errorf(protocol.Cancelled, revokedText))
	x.mu.Lock()
	defer x.mu.Unlock()
	x.revoked = true
	x.closeIfDrained()
}

func (x *session) abort(reason string) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.conn != nil {
		x.conn.Abort(reason)
	}
}

// connected tells that the handshake is through.
func (x *session) connected() bool {
	x.mu.Lock()
	defer x.mu.Unlock()
	return x.conn != nil
}

// send queues a message. It waits while the host does not read; when the connection is gone the message is of no use.
func (x *session) send(text ...[]byte) {
	_ = x.conn.Send(context.Background(), text...)
}

func (x *session) answerError(id json.RawMessage, e *protocol.Error) {
	x.srv.stats.notRun.add(e)
	x.send(protocol.AppendError(nil, id, e))
}
