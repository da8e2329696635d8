package server

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/executord/executord/ipc/client/channel"
	"github.com/executord/executord/ipc/protocol"
)

// session is what a host has under way: its executions, and the calls that they make to it. It begins with a connection,
// and where the client resumes it goes on on others.
type session struct {
	srv      *Server
	out      *channel.Outbox // what is on its way to the host; set by start
	id       string
	caller   caller
	identity string // the caller's
	log      *slog.Logger
	opened   atomic.Bool // session.open was answered; set by the reader
	parted   atomic.Bool // it waits for its client; set with srv.mu
	came     time.Time

	// Guarded by srv.mu.
	arrival uint64          // the order of sessions
	since   uint64          // the order in which sessions were parted from their clients
	turned  bool            // it was turned out to make room
	counted bool            // it is one of its identity's sessions
	guest   *protocol.Error // why it may only resume another session, nil where it may do more; not changed after admit

	ctx    context.Context // of the executions; ends with the session
	cancel context.CancelCauseFunc
	work   sync.WaitGroup // executions until their answer is queued

	lingering sync.Mutex // held while linger counts what is retained and acts on it; taken before all others

	mu sync.Mutex // taken after srv.mu
	lifeline
	conn     *channel.Conn // nil while there is none
	doomed   bool          // it is to end, and not to be resumed
	over     bool          // it has ended
	running  map[string]*execution
	live     int // like work
	ended    recentIDs
	greeted  bool // the answer to session.open is on its way
	draining bool
	lingers  bool             // it has reached its age, and goes on for what it retains
	revoked  bool             // its caller is not let in any more
	reason   string           // of draining
	calls    map[uint64]*call // waiting for the host's response
	lastCall uint64
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
// not been opened by its client makes way. Where there is no place for a new one, but the caller may have come to resume
// one, it is a guest.
func (s *Server) admit(x *session) *protocol.Error {
	refusal := s.cfg.Admit()
	s.mu.Lock()
	defer s.mu.Unlock()
	now := s.config()
	if !now.Policy.holds(x.caller) { // it changed since the request came
		return errRevoked()
	}
	if refusal == nil {
		refusal = s.noPlace(x.identity, now)
	}
	switch {
	case refusal == nil:
		x.counted = s.sessionsOf.take(x.identity, now.MaxCallerSessions) // nobody else takes: mu is held
	case !s.awaits(x.identity) || s.guests >= s.cfg.ResumeSessions:
		return refusal
	default:
		x.guest = refusal
		s.guests++
	}
	s.arrivals++
	x.arrival = s.arrivals
	s.sessions[x] = struct{}{}
	return nil
}

// noPlace says why there is no place for a session; nil when there is one. With mu.
func (s *Server) noPlace(identity string, now *Config) *protocol.Error {
	switch {
	case s.draining:
		return errDraining()
	case s.sessionsOf.count(identity) >= now.MaxCallerSessions:
		return protocol.Errorf(protocol.SessionLimit, "this caller has %d sessions open, which is the limit", now.MaxCallerSessions)
	case s.open() >= now.MaxSessions && !s.turnOutSession():
		return protocol.Errorf(protocol.SessionLimit, "%d sessions are open, which is the limit", s.open())
	}
	return nil
}

// open is the number of sessions that have a connection and a place. With mu.
func (s *Server) open() int { return len(s.sessions) - s.turned - s.away - s.guests }

// awaits tells whether a session of that identity may be resumed. With mu.
func (s *Server) awaits(identity string) bool {
	for x := range s.sessions {
		x.mu.Lock()
		resumable := x.identity == identity && x.resumable
		x.mu.Unlock()
		if resumable {
			return true
		}
	}
	return false
}

// turnOutSession ends a session that waits for its session.open; false when there is none. With mu.
func (s *Server) turnOutSession() bool {
	unopened := func(yield func(*session) bool) {
		for x := range s.sessions {
			if !x.turned && x.guest == nil && !x.opened.Load() && x.connected() && !yield(x) {
				return
			}
		}
	}
	x, ok := turnOut(unopened, func(x *session) string { return x.identity }, func(x *session) uint64 { return x.arrival })
	if ok {
		x.turned = true
		s.turned++
		x.kill(channel.ClosePolicy, "session.open did not come, and others are waiting")
	}
	return ok
}

func (s *Server) leave(x *session) {
	x.cancel(nil)
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.sessions, x)
	if x.counted {
		s.sessionsOf.give(x.identity)
	}
	if x.turned {
		s.turned--
	}
	if x.guest != nil {
		s.guests--
	}
	s.checkIdle()
}

// start gives the session its connection; a drain that began meanwhile is caught up with.
func (x *session) start(conn *channel.Conn) {
	x.mu.Lock()
	x.conn, x.out = conn, conn.Outbox()
	late, reason := x.draining, x.reason
	x.closeIfDrained() // revoked meanwhile
	x.mu.Unlock()
	x.log.Debug("session connected")
	if late {
		x.drain(0, reason)
	}
}

// end cancels what runs, waits for it, ends what is retained and frees the session. Only the first call does.
func (x *session) end(cause error) {
	x.srv.mu.Lock()
	x.mu.Lock()
	first := !x.over
	x.over, x.doomed = true, true
	x.srv.back(x)
	if x.age != nil {
		x.age.Stop()
	}
	x.mu.Unlock()
	x.srv.mu.Unlock()
	if !first {
		return
	}
	x.cancel(cause)
	x.out.Close()
	x.work.Wait()
	if r := x.srv.retainer; r != nil { // nothing of the session retains anything any more
		r.ReleaseSession(x.id)
	}
	x.srv.leave(x)
}

// handle takes one message, or what is none. It must not wait for an execution.
func (x *session) handle(m protocol.Message, err error) {
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
	protocol.MethodSessionOpen:   (*session).openAgain,
	protocol.MethodExecute:       (*session).execute,
	protocol.MethodCancel:        (*session).cancelExecution,
	protocol.MethodHandleInvoke:  (*session).invoke,
	protocol.MethodHandleRelease: (*session).release,
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

func (x *session) openAgain(protocol.Message) (json.RawMessage, error) {
	return nil, protocol.Errorf(protocol.InvalidRequest, "the session is open already")
}

// drain tells the host, refuses new executions, and has the connection closed once the last outcome is queued, and nothing
// is retained any more where only its age is the reason. All that was accepted has been answered then.
func (x *session) drain(left time.Duration, reason string) {
	x.mu.Lock()
	x.draining, x.reason = true, reason
	x.lingers = x.lingers && reason != stopping
	out, greeted := x.out, x.greeted
	x.mu.Unlock()
	if out == nil {
		return // the handshake is under way; start comes back here
	}
	// A client that has not opened the session waits for that answer first; the close of the connection tells it.
	if params, err := protocol.EncodeParams(protocol.SessionDraining{DeadlineMs: left.Milliseconds()}); err == nil && greeted {
		out.TrySend(protocol.AppendNotification(nil, protocol.MethodSessionDraining, params))
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	x.closeIfDrained()
}

// closeIfDrained is called with mu held.
func (x *session) closeIfDrained() {
	switch {
	case !x.draining && !x.revoked || x.live > 0 || x.lingers && !x.revoked:
	case x.conn != nil && x.revoked:
		x.conn.Close(channel.ClosePolicy, revokedText)
	case x.conn != nil:
		x.conn.Close(channel.CloseGoingAway, x.reason)
	case x.parted.Load() && (x.revoked || !x.out.Unacknowledged()):
		go x.end(protocol.Errorf(protocol.Cancelled, "the session ended: %s", x.reason))
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
	x.revoked, x.reason = true, revokedText
	x.closeIfDrained()
}

// abort ends the session, and its connection at once.
func (x *session) abort(reason string) {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.doomed = true
	switch {
	case x.conn != nil:
		x.conn.Abort(reason)
	case x.parted.Load():
		go x.end(protocol.Errorf(protocol.Cancelled, "the session ended: %s", reason))
	}
}

// connected tells that the handshake is through.
func (x *session) connected() bool {
	x.mu.Lock()
	defer x.mu.Unlock()
	return x.conn != nil
}

// send queues a message. It waits while the host does not read; when the session has ended the message is of no use.
func (x *session) send(text ...[]byte) {
	_ = x.out.Send(context.Background(), text...)
}

func (x *session) answerError(id json.RawMessage, e *protocol.Error) {
	x.srv.stats.notRun.add(e)
	x.send(protocol.AppendError(nil, id, e))
}
