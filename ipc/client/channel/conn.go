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

// Close codes of RFC 6455, section 7.4.1, that the protocol uses.
const (
	CloseNormal      = websocket.CloseNormalClosure
	CloseGoingAway   = websocket.CloseGoingAway
	CloseUnsupported = websocket.CloseUnsupportedData
	CloseLost        = websocket.CloseAbnormalClosure // never on the wire: the connection ended without a close frame
	CloseInvalidText = websocket.CloseInvalidFramePayloadData
	ClosePolicy      = websocket.ClosePolicyViolation
	CloseTooBig      = websocket.CloseMessageTooBig
	closeProtocol    = websocket.CloseProtocolError
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
	queue  *queue

	writing sync.Mutex // held by whoever writes to ws
	wrote   time.Time  // when a sender last did; guarded by writing

	pong       atomic.Pointer[string] // payload of the newest ping not yet answered
	silent     int                    // ticks without a sign of life; of the writer
	farewell   atomic.Bool            // the peer's close frame has come
	closing    chan struct{}          // closed with end set
	readerDone chan struct{}          // closed when Receive failed
	gone       chan struct{}          // closed when the socket is closed
	done       chan struct{}

	mu      sync.Mutex
	end     *CloseError // why closing is closed
	discard bool        // what is queued does not matter any more
	aborted bool
	timer   *time.Timer // aborts an end that takes too long
}

// start takes over an established WebSocket and starts the writer.
func start(ws *websocket.Conn, s *stream, cfg Config) *Conn {
	c := &Conn{
		cfg: cfg, ws: ws, stream: s, queue: newQueue(cfg.QueueBytes),
		closing: make(chan struct{}), readerDone: make(chan struct{}),
		gone: make(chan struct{}), done: make(chan struct{}),
	}
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

// Send queues one message, in one part or several, and takes it over. It blocks while the queue is full and fails with
// ErrClosed or the context's error.
func (c *Conn) Send(ctx context.Context, msg ...[]byte) error {
	w, ok := c.queue.push(msg, true)
	if !ok {
		return ErrClosed
	}
	if w == nil {
		c.sendNow()
		return nil
	}
	select {
	case <-w.settled:
	case <-ctx.Done():
		if c.queue.leave(w) {
			return context.Cause(ctx)
		}
	case <-c.gone:
		return ErrClosed
	}
	if w.refused {
		return ErrClosed
	}
	return nil
}

// TrySend is Send for messages that may be left out: it reports false instead of waiting.
func (c *Conn) TrySend(msg ...[]byte) bool {
	_, ok := c.queue.push(msg, false)
	if ok {
		c.sendNow()
	}
	return ok
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

// readBounded reads at most one byte more than limit. Memory grows with what came, not with what was announced.
func readBounded(r io.Reader, limit int64) ([]byte, error) {
	buf := make([]byte, 0, 1024)
	for {
		n, err := r.Read(buf[len(buf):min(int64(cap(buf)), limit+1)])
		buf = buf[:len(buf)+n]
		if errors.Is(err, io.EOF) || int64(len(buf)) > limit {
			return buf, nil
		}
		if err != nil {
			return nil, err
		}
		if len(buf) == cap(buf) {
			buf = append(make([]byte, 0, 2*cap(buf)), buf...)
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
	c.queue.close(discard)
	c.discard = c.discard || discard
	if c.discard && c.timer == nil && !c.aborted {
		c.timer = time.AfterFunc(2*c.cfg.CloseWait, func() { c.Abort("the peer does not read") })
	}
	if c.end == nil {
		c.end = e
		close(c.closing)
	}
}

// discarding tells the writer to leave a message unfinished.
func (c *Conn) discarding() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.discard
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

// Closing is closed as soon as the end of the connection has begun.
func (c *Conn) Closing() <-chan struct{} { return c.closing }

// Done is closed when the socket is closed and the writer has ended.
func (c *Conn) Done() <-chan struct{} { return c.done }

func (c *Conn) nudge() {
	select {
	case c.queue.wake <- struct{}{}:
	default:
	}
}
