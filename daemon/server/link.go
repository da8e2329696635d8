package server

import (
	"encoding/json"
	"net/http"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/gorilla/websocket"

	"github.com/executord/executord/ipc/client/channel"
	"github.com/executord/executord/ipc/protocol"
)

// link is one connection of a host, and the session that goes on on it: at first one of its own, then maybe one that is
// resumed. Its goroutine reads messages; that of the HTTP server waits for its end, which must be noticed also while the
// reader waits for room to answer.
type link struct {
	srv     *Server
	conn    *channel.Conn
	session atomic.Pointer[session]
	begun   bool // a message has come; of the reader
}

// openSession is GET /v1/session. It returns when the connection has ended.
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
	conn, err := channel.Accept(w, r, protocol.Subprotocol, s.config().channel(who.peer), badHandshake)
	if err != nil {
		s.log.Debug("cannot open a session", "error", err.Error(), "identity", who.identity)
		s.leave(x)
		return
	}
	l := &link{srv: s, conn: conn}
	l.session.Store(x)
	x.start(conn)
	var reader sync.WaitGroup
	reader.Go(l.read)
	<-conn.Done()
	l.session.Load().disconnected(conn)
	reader.Wait()
}

func badHandshake(w http.ResponseWriter, status int, reason error) {
	answerFault(w, status, protocol.Errorf(protocol.InvalidRequest, "%s", reason), nil)
}

// read takes messages until the connection ends.
func (l *link) read() {
	open := time.AfterFunc(l.srv.config().OpenTimeout, func() {
		l.conn.Close(channel.ClosePolicy, "session.open did not come in time")
	})
	defer open.Stop()
	for {
		text, err := l.conn.Receive()
		if err != nil {
			<-l.conn.Done()
			l.session.Load().disconnected(l.conn)
			return
		}
		l.handle(text)
		if l.session.Load().opened.Load() {
			open.Stop()
		}
	}
}

// handle takes one message. It must not wait for an execution.
func (l *link) handle(text []byte) {
	m, err := protocol.ParseMessage(text, l.srv.cfg.bounds())
	first := !l.begun
	l.begun = true
	x := l.session.Load()
	switch {
	case err == nil && m.Method == protocol.MethodSessionOpen && m.Kind == protocol.KindRequest && !x.opened.Load():
		l.open(m, first)
	case err == nil && m.Method == protocol.MethodSessionAck && m.Kind == protocol.KindNotification:
		x.acknowledged(l.conn, m)
	case x.count(l.conn, len(text)):
		x.handle(m, err)
	}
}

// open is the method session.open. A session is resumed by the first message only, so that nothing of the connection's
// own session is lost.
func (l *link) open(m protocol.Message, first bool) {
	x := l.session.Load()
	var p protocol.SessionOpen
	err := protocol.DecodeParams(m.Params, &p)
	switch {
	case err != nil:
	case p.Resume != "" && p.Received == nil:
		err = protocol.FieldError("received", "is missing: how many messages of the session have come")
	case p.Resume != "" && !first:
		err = protocol.FieldError("resume", "must come in the first message of a connection")
	case p.Resume == "" && p.Received != nil && *p.Received != 0:
		err = protocol.FieldError("received", "must be 0 in a new session")
	case p.Resume != "":
		err = l.resume(m.ID, &p)
	default:
		err = x.open(m.ID, &p)
	}
	if err != nil {
		x.answerError(m.ID, protocol.AsError(err))
		if x.guest != nil {
			l.conn.Close(channel.CloseGoingAway, x.guest.Message)
		}
	}
}

// resume has a session go on on this connection.
func (l *link) resume(id json.RawMessage, p *protocol.SessionOpen) error {
	own := l.session.Load()
	x, err := l.srv.attach(own, l.conn, id, p)
	if err != nil {
		return err
	}
	l.session.Store(x)
	own.end(errMoved)
	return nil
}
