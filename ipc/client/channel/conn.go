package channel

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync"
	"sync/atomic"
	"time"
	"unicode/utf8"

	"github.com/gorilla/websocket"
)

// Close codes of RFC 6455, section 7.4.1, that the protocol uses, and its own, which section 7.4.2 leaves to it.
const (
	CloseNormal      = websocket.CloseNormalClosure
	CloseGoingAway   = websocket.CloseGoingAway
	CloseUnsupported = websocket.CloseUnsupportedData
	CloseLost        = websocket.CloseAbnormalClosure // never on the wire: the connection ended without a close frame
	CloseInvalidText = websocket.CloseInvalidFramePayloadData
	ClosePolicy      = websocket.ClosePolicyViolation
	CloseTooBig      = websocket.CloseMessageTooBig
	CloseRestarting  = websocket.CloseServiceRestart // of a proxy
	closeProtocol    = websocket.CloseProtocolError

	CloseTakenUp = 4001 // the session goes on on another connection
	CloseUnread  = 4002 // the peer leaves too much unread or unacknowledged
)

// ErrClosed is the error of Send once the connection is closing or gone.
var ErrClosed = errors.New("cannot send: the connection is closed")

// CloseError says how a connection ended.
type CloseError struct {
	Code   int
	Reason string
	Peer   bool // the peer sent the close frame
}

func (e *CloseError) Error() string {
	who := "this end"
	if e.Peer {
		who = "the peer"
	}
	if e.Code == CloseLost {
		return "connection lost: " + e.Reason
	}
	return fmt.Sprintf("connection closed by %s with status %d: %s", who, e.Code, e.Reason)
}

// Conn is one connection.
type Conn struct {
	cfg    Config
	ws     *websocket.Conn
	stream *stream
	out    atomic.Pointer[Outbox] // what it writes
	wake   chan struct{}          // capacity 1: there is something for the writer

	writing sync.Mutex // held by whoever writes to ws
	wrote   time.Time  // when a sender last did; guarded by writing

	pong       atomic.Pointer[string] // payload of the newest ping not yet answered
	note       atomic.Pointer[[]byte] // the newest note not yet written
	silent     int                    // ticks without a sign of life; of the writer
	farewell   atomic.Bool            // the peer's close frame has come
	discard    atomic.Bool            // what is queued is not to be written any more
	closing    chan struct{}          // closed with end set
	readerDone chan struct{}          // closed when Receive failed
	gone       chan struct{}          // closed when the socket is closed
	done       chan struct{}

	mu      sync.Mutex
	end     *CloseError // why closing is closed
	aborted bool
	timer   *time.Timer // aborts an end that takes too long
}

// start takes over an established WebSocket and starts the writer.
func start(ws *websocket.Conn, s *stream, cfg Config) *Conn {
	c := &Conn{
		cfg: cfg, ws: ws, stream: s, wake: make(chan struct{}, 1),
		closing: make(chan struct{}), readerDone: make(chan struct{}),
		gone: make(chan struct{}), done: make(chan struct{}),
	}
	c.out.Store(newOutbox(cfg.QueueBytes, c))
	// The limit of gorilla counts bytes on the wire. Receive counts those that come out of decompression.
	ws.SetReadLimit(cfg.MaxMessageBytes)
	// The default handlers answer from the reader. Here only the writer writes.
	ws.SetPingHandler(func(payload string) error {
		c.pong.Store(&payload)
		c.nudge()
		return nil
	})
	ws.SetCloseHandler(func(int, string) error { return nil })
	s.gather()
	go c.write()
	return c
}

// Outbox is what the connection writes.
func (c *Conn) Outbox() *Outbox { return c.out.Load() }

// Send is Outbox.Send.
func (c *Conn) Send(ctx context.Context, msg ...[]byte) error { return c.out.Load().Send(ctx, msg...) }

// TrySend is Outbox.TrySend.
func (c *Conn) TrySend(msg ...[]byte) bool { return c.out.Load().TrySend(msg...) }

// Note sends a message that supersedes the last one which was sent by Note: a newer one takes the place of one that has
// not left. It never waits, and is neither queued nor numbered. Unless now is set it leaves with the next message.
func (c *Conn) Note(text []byte, now bool) {
	c.note.Store(&text)
	if now {
		c.sendNow()
	}
}

// Receive returns the next message, which belongs to the caller. Its error is a *CloseError and final.
func (c *Conn) Receive() ([]byte, error) {
	msg, err := c.receive()
	if err != nil {
		select {
		case <-c.readerDone:
		default:
			close(c.readerDone)
		}
		return nil, c.Cause()
	}
	return msg, nil
}

func (c *Conn) receive() ([]byte, error) {
	kind, r, err := c.ws.NextReader()
	if err != nil {
		return nil, c.readFailed(err)
	}
	if kind != websocket.TextMessage {
		return nil, c.fail(CloseUnsupported, "messages are text frames")
	}
	msg, err := readBounded(r, c.cfg.MaxMessageBytes)
	if err != nil {
		return nil, c.readFailed(err)
	}
	if int64(len(msg)) > c.cfg.MaxMessageBytes {
		return nil, c.fail(CloseTooBig, "")
	}
	if !utf8.Valid(msg) {
		return nil, c.fail(CloseInvalidText, "text is not UTF-8")
	}
	c.cfg.Traffic.received(len(msg))
	return msg, nil
}

// arriving holds the buffers that messages are read into. Memory that a process touches first costs far more than a copy.
var arriving = sync.Pool{New: func() any { b := make([]byte, 1024); return &b }}

// readBounded reads at most one byte more than limit. Memory grows with what came, not with what was announced.
func readBounded(r io.Reader, limit int64) ([]byte, error) {
	b := arriving.Get().(*[]byte)
	buf := *b
	defer func() {
		if len(buf) <= keptBytes {
			*b = buf
		}
		arriving.Put(b)
	}()
	size := 0
	for {
		n, err := r.Read(buf[size:min(int64(len(buf)), limit+1)])
		size += n
		if errors.Is(err, io.EOF) || int64(size) > limit {
			return append([]byte(nil), buf[:size]...), nil
		}
		if err != nil {
			return nil, err
		}
		if size == len(buf) {
			buf = append(make([]byte, 0, 2*size), buf...)[:2*size]
		}
	}
}

// readFailed settles the end of the connection by what the WebSocket layer says.
func (c *Conn) readFailed(err error) error {
	var peer *websocket.CloseError
	switch {
	case errors.As(err, &peer) && peer.Code != CloseLost:
		c.farewell.Store(true)
		c.settle(&CloseError{Code: peer.Code, Reason: peer.Text, Peer: true}, true)
	case errors.Is(err, websocket.ErrReadLimit):
		c.settle(&CloseError{Code: CloseTooBig}, true)
	case c.stream.readOK.Load():
		// The socket is sound, so the WebSocket layer found a fault of the peer and has queued a close frame itself.
		c.settle(&CloseError{Code: closeProtocol, Reason: err.Error()}, true)
	default:
		c.Abort(err.Error())
	}
	return err
}

func (c *Conn) fail(code int, reason string) error {
	e := &CloseError{Code: code, Reason: reason}
	c.settle(e, true)
	return e
}

// Close ends the connection in order: what is queued leaves first, then a close frame; the peer then has
// Config.CloseWait to answer. It does not wait for any of that; Done does. Only the first call counts.
func (c *Conn) Close(code int, reason string) {
	c.settle(&CloseError{Code: code, Reason: reason}, false)
}

// Drop ends the connection as Close does, but what is queued is not written first.
func (c *Conn) Drop(code int, reason string) {
	c.settle(&CloseError{Code: code, Reason: reason}, true)
}

// Farewell tells whether the peer has sent its close frame: it then has all that was sent before this end's own.
func (c *Conn) Farewell() bool { return c.farewell.Load() }

// Abort closes the socket at once. What is queued is lost.
func (c *Conn) Abort(reason string) {
	c.settle(&CloseError{Code: CloseLost, Reason: reason}, true)
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.aborted {
		c.aborted = true
		close(c.gone)
		_ = c.stream.Close()
	}
}

func (c *Conn) settle(e *CloseError, discard bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.out.Load().connEnds(c, discard)
	if discard {
		c.discard.Store(true)
		c.nudge()
	}
	if discard && c.timer == nil && !c.aborted {
		c.timer = time.AfterFunc(2*c.cfg.CloseWait, func() { c.Abort("the peer does not read") })
	}
	if c.end == nil {
		c.end = e
		close(c.closing)
	}
}

// Cause says how the connection ended; nil while it lives.
func (c *Conn) Cause() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.end == nil {
		return nil
	}
	return c.end
}

// Done is closed when the socket is closed and the writer has ended.
func (c *Conn) Done() <-chan struct{} { return c.done }

func (c *Conn) nudge() {
	select {
	case c.wake <- struct{}{}:
	default:
	}
}
