package server

import (
	"crypto/rand"
	"crypto/subtle"
	"encoding/json"
	"errors"
	"math"
	"slices"
	"time"

	"github.com/executord/executord/ipc/client/channel"
	"github.com/executord/executord/ipc/protocol"
)

// The part of a session that outlives its connection: docs/decisions/0012.

// lifeline is what a client needs to resume the session. Guarded by session.mu.
type lifeline struct {
	resumable bool   // set by session.open, before the session has executions
	token     string // resumes the session, once
	before    string // the token that was used last, until the client shows that it has the one that followed
	receipts  channel.Receipts
	window    *time.Timer // ends the session
	age       *time.Timer // has the client open another one
}

var (
	errMoved   = protocol.Errorf(protocol.Cancelled, "the connection went over to another session")
	errExpired = protocol.Errorf(protocol.Cancelled, "the session ended: its client did not come back in time")
	errCrowded = protocol.Errorf(protocol.Cancelled, "the session ended: its client was away, and there is no room for more such sessions")
)

// holds tells whether the token resumes the session, in a time that says nothing about the session's own. With mu.
func (l *lifeline) holds(token string) bool {
	same := func(mine string) bool {
		return mine != "" && subtle.ConstantTimeCompare([]byte(mine), []byte(token)) == 1
	}
	now, before := same(l.token), same(l.before)
	return l.resumable && (now || before)
}

// open answers session.open of a new session.
func (x *session) open(id json.RawMessage, p *protocol.SessionOpen) error {
	if x.guest != nil {
		return x.guest
	}
	x.mu.Lock()
	if p.Received != nil && x.srv.cfg.ResumeWindow > 0 {
		x.resumable, x.token = true, rand.Text()
	}
	answer, err := x.openedText(id)
	x.mu.Unlock()
	if err != nil {
		return err
	}
	x.srv.stats.began.Add(1)
	x.opened.Store(true) // before the client hears of it, and others may come
	switch {
	case x.resumable:
		x.out.Watch(x.kept)
		x.out.Begin(answer)
	default:
		x.send(answer)
	}
	x.mu.Lock()
	x.greeted = true
	x.mu.Unlock()
	x.grow()
	return nil
}

// openedText is the answer to session.open. With mu.
func (x *session) openedText(id json.RawMessage) ([]byte, error) {
	opened := protocol.SessionOpened{
		Session:  x.id,
		Protocol: protocol.Version,
		Server:   protocol.Party{Name: "executord", Version: x.srv.cfg.Version},
		Limits:   x.srv.config().Limits,
		Received: x.receipts.Received,
	}
	if x.resumable {
		opened.Resume = &protocol.Resume{Token: x.token, WindowMs: x.srv.cfg.ResumeWindow.Milliseconds()}
	}
	result, err := protocol.EncodeParams(opened)
	if err != nil {
		return nil, err
	}
	return protocol.AppendResult(nil, id, result), nil
}

// grow starts the clock of the session's age.
func (x *session) grow() {
	if x.srv.config().MaxSessionAge <= 0 {
		return
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	if !x.over {
		rest := time.Duration(x.srv.config().Limits.TotalMs) * time.Millisecond
		x.age = time.AfterFunc(x.srv.config().MaxSessionAge, func() {
			x.linger()
			x.drain(rest, "the session has reached its age")
		})
	}
}

// lingerEvery is how often a session that has reached its age looks whether it still retains something.
const lingerEvery = time.Second

// linger has a session that has reached its age wait for what it retains, which ends in its time. The timer and executions that
// end call it, maybe at once: the latest count stands, and one timer is set.
func (x *session) linger() {
	x.lingering.Lock()
	defer x.lingering.Unlock()
	n := x.srv.retained(x.id)
	x.mu.Lock()
	defer x.mu.Unlock()
	x.lingers = n > 0 && !x.over && x.reason != stopping
	if x.age != nil {
		x.age.Stop()
	}
	if x.lingers {
		x.age = time.AfterFunc(lingerEvery, x.linger)
	}
	x.closeIfDrained()
}

// count counts a message of the client and acknowledges now and then. It reports false for one of a connection on which
// the session does not go on any more: the client sends it again on the new one.
func (x *session) count(conn *channel.Conn, bytes int) bool {
	if !x.opened.Load() || !x.resumable {
		return true
	}
	x.mu.Lock()
	if x.conn != conn {
		x.mu.Unlock()
		return false
	}
	x.before = ""
	due, now := x.receipts.Count(bytes)
	received := x.receipts.Received
	x.mu.Unlock()
	if due {
		conn.Note(protocol.AppendAck(nil, received), now)
	}
	return true
}

// acknowledged is the notification session.ack.
func (x *session) acknowledged(conn *channel.Conn, m protocol.Message) {
	if !x.opened.Load() || !x.resumable {
		return
	}
	x.mu.Lock()
	current := x.conn == conn
	if current {
		x.before = ""
	}
	x.mu.Unlock()
	if !current {
		return
	}
	var p protocol.Received
	err := protocol.DecodeParams(m.Params, &p)
	if err == nil {
		err = x.out.Ack(p.Received)
	}
	if err != nil {
		x.kill(channel.ClosePolicy, "session.ack: "+err.Error())
	}
}

// kept hears of the bytes that the client has not acknowledged. Where they become fewer it takes no lock of a session.
func (x *session) kept(change int64) {
	writtenOff := x.srv.debts.keep(x, change)
	if change > 0 && x.out.Unread() > 2*x.srv.cfg.OwedBytes {
		writtenOff = append(writtenOff, x)
	}
	writeOff(writtenOff)
}

// attach has the client's session go on on conn, also where its old connection is not known to be lost. The answer to
// session.open and all that the client has not got are on their way then, and own, the session that the connection came
// with, has it no more.
func (s *Server) attach(own *session, conn *channel.Conn, id json.RawMessage, p *protocol.SessionOpen) (*session, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for x := range s.sessions {
		if x.identity != own.identity {
			continue
		}
		x.mu.Lock()
		if x.holds(p.Resume) && x.lasts() {
			defer x.mu.Unlock()
			err := s.reattach(x, conn, id, p)
			if err == nil {
				own.mu.Lock() // nobody else holds two
				own.conn = nil
				own.mu.Unlock()
			}
			return x, err
		}
		x.mu.Unlock()
	}
	return nil, errUnknown()
}

func errUnknown() *protocol.Error {
	return protocol.Errorf(protocol.SessionUnknown, "there is no session for this token: it has ended, or the token was used")
}

// reattach is called with both locks.
func (s *Server) reattach(x *session, conn *channel.Conn, id json.RawMessage, p *protocol.SessionOpen) error {
	token, before := x.token, x.before
	x.token, x.before = rand.Text(), p.Resume
	answer, err := x.openedText(id)
	if err == nil {
		err = x.out.MoveTo(conn, *p.Received, answer)
	}
	if err != nil {
		x.token, x.before = token, before
		if errors.Is(err, channel.ErrAck) {
			return protocol.FieldError("received", "cannot be %d in this session", *p.Received)
		}
		return errUnknown()
	}
	if x.conn != nil {
		x.conn.Drop(channel.CloseTakenUp, "the session goes on on another connection")
	}
	x.conn = conn
	x.receipts = channel.Receipts{Received: x.receipts.Received}
	s.back(x)
	if !x.counted {
		x.counted = s.sessionsOf.take(x.identity, math.MaxInt)
	}
	x.log.Debug("session resumed")
	x.closeIfDrained()
	return nil
}

// disconnected is called when a connection has ended. The session ends too, unless the client may come back.
func (x *session) disconnected(conn *channel.Conn) {
	cause := conn.Cause()
	if x.srv.detach(x, conn) {
		writeOff(x.srv.debts.check())
		x.log.Debug("session waits for its client", "reason", cause.Error())
		return
	}
	x.mu.Lock()
	mine := x.conn == conn
	x.mu.Unlock()
	if mine {
		x.log.Debug("session ended", "reason", cause.Error())
		x.end(protocol.Errorf(protocol.Cancelled, "the session ended: %s", cause))
	}
}

// detach keeps a session whose connection was lost, for a while.
func (s *Server) detach(x *session, conn *channel.Conn) (kept bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	x.mu.Lock()
	if x.conn != conn || !x.mayReturn(conn) {
		x.mu.Unlock()
		return false
	}
	x.conn = nil
	s.arrivals++
	x.since = s.arrivals
	x.parted.Store(true)
	s.away++
	s.sessionsOf.give(x.identity)
	x.counted = false
	since := x.since
	x.window = time.AfterFunc(s.cfg.ResumeWindow, func() { x.expire(since) })
	x.closeIfDrained()
	x.mu.Unlock()
	s.limitAway(x.identity)
	return true
}

// lasts tells whether the session can be resumed, also where its connection is ending this moment. With mu.
func (x *session) lasts() bool {
	if x.conn != nil && x.conn.Cause() != nil {
		return x.mayReturn(x.conn)
	}
	return !x.doomed && !x.over && !x.revoked
}

// mayReturn tells whether the client may resume the session: the connection broke, and nobody ended it. With mu.
func (x *session) mayReturn(conn *channel.Conn) bool {
	if !x.resumable || x.doomed || x.over || x.revoked {
		return false
	}
	end, ok := conn.Cause().(*channel.CloseError)
	switch {
	case !ok:
		return false
	case end.Code == channel.CloseLost:
		return true
	case end.Peer: // a client that leaves for good says 1000; proxies say these
		return end.Code == channel.CloseGoingAway || end.Code == channel.CloseRestarting
	}
	// Drained: the client has all if it has answered the close frame.
	return end.Code == channel.CloseGoingAway && !conn.Farewell() && x.out.Unacknowledged()
}

// back ends a session's absence. With both locks.
func (s *Server) back(x *session) {
	if x.parted.Swap(false) {
		s.away--
		x.window.Stop()
	}
}

// limitAway ends sessions without a client beyond what may be kept of one identity, and in all. With mu.
func (s *Server) limitAway(identity string) {
	for {
		mine, all := []*session{}, []*session{}
		for x := range s.sessions {
			if x.parted.Load() {
				all = append(all, x)
				if x.identity == identity {
					mine = append(mine, x)
				}
			}
		}
		switch {
		case len(mine) > max(1, s.cfg.ResumeSessions/2):
			all = mine
		case len(all) <= s.cfg.ResumeSessions:
			return
		}
		x, _ := turnOut(slices.Values(all), func(x *session) string { return x.identity }, func(x *session) uint64 { return x.since })
		x.log.Warn("session ended: too many wait for their clients")
		x.mu.Lock()
		s.back(x)
		x.doomed = true
		x.mu.Unlock()
		go x.end(errCrowded)
	}
}

// expire ends a session that was not resumed since it was detached.
func (x *session) expire(since uint64) {
	x.srv.mu.Lock()
	x.mu.Lock()
	still := x.parted.Load() && x.since == since
	if still {
		x.doomed = true
	}
	x.mu.Unlock()
	x.srv.mu.Unlock()
	if still {
		x.log.Debug("session ended: its client did not come back in time")
		x.end(errExpired)
	}
}

// kill ends the session at once, whatever its connection does. It does not wait.
func (x *session) kill(code int, reason string) {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.doomed = true
	if x.out != nil {
		x.out.Close()
	}
	switch {
	case x.conn != nil:
		x.conn.Drop(code, reason)
	case x.parted.Load():
		go x.end(protocol.Errorf(protocol.Cancelled, "the session ended: %s", reason))
	}
}
