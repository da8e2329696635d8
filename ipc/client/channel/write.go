package channel

import (
	"errors"
	"io"
	"time"

	"github.com/gorilla/websocket"
)

const (
	// inlineBytes is how much a sender writes itself.
	inlineBytes = 8 << 10
	// burst is how soon after a sender's own write another message is left to the writer, which gathers what comes.
	burst = 20 * time.Microsecond
)

// sendNow writes what is queued on the caller's goroutine, if it is little and the socket takes it at once: waking the
// writer would cost more. A note goes along. All else is the writer's.
func (c *Conn) sendNow() {
	if c.stream.once != nil && c.writing.TryLock() {
		done := c.writeInline()
		c.writing.Unlock()
		if done {
			return
		}
	}
	c.nudge()
}

// writeInline reports whether nothing is left to do for what is queued. With writing held.
func (c *Conn) writeInline() bool {
	now := time.Now()
	if now.Sub(c.wrote) < burst || c.stream.gathered() > 0 || c.discard.Load() { // what did not leave comes first, and may have to wait
		return false
	}
	out := c.out.Load()
	msg, ok := out.popSmall(c, inlineBytes)
	if !ok && c.note.Load() == nil {
		return false
	}
	c.wrote = now
	err := c.writeNote()
	for left := inlineBytes - msg.size(); ok && err == nil; left -= msg.size() {
		err = c.writeMessage(msg, nil)
		out.written(c, msg)
		if err == nil {
			msg, ok = out.popSmall(c, left)
		}
	}
	if err == nil {
		var left bool
		if left, err = c.stream.TryFlush(); left {
			return false
		}
	}
	switch {
	case err == nil:
		return out.empty()
	case !errors.Is(err, websocket.ErrCloseSent):
		c.Abort(err.Error())
	}
	return true
}

// write is the writer's goroutine. It ends when the connection does, and leaves writing locked then.
func (c *Conn) write() {
	defer close(c.done)
	c.writing.Lock()
	tick := time.NewTicker(c.cfg.PingInterval)
	defer tick.Stop()
	defer c.stopTimer()
	switch err := c.writeQueue(tick.C); {
	case errors.Is(err, websocket.ErrCloseSent):
		<-c.closing // the reader found a fault of the peer, has said so to it, and is about to say so here
	case err != nil:
		c.Abort(err.Error())
		return
	}
	c.finish()
}

// writeQueue writes messages until the connection is closing and nothing is left to be written.
func (c *Conn) writeQueue(tick <-chan time.Time) error {
	for !c.discard.Load() {
		out := c.out.Load()
		msg, ok := out.pop(c)
		if ok {
			if err := c.writeMessage(msg, tick); err != nil {
				return err
			}
			out.written(c, msg)
			continue
		}
		if err := c.writeNote(); err != nil {
			return err
		}
		if err := c.control(nil); err != nil {
			return err
		}
		if err := c.stream.Flush(); err != nil {
			return err
		}
		if now, ok := c.rest(tick); ok {
			if err := c.control(&now); err != nil {
				return err
			}
		}
		select {
		case <-c.closing:
			if c.out.Load().empty() { // it may have changed meanwhile
				return nil
			}
		default:
		}
	}
	return nil
}

// writeNote writes the note, if there is one.
func (c *Conn) writeNote() error {
	text := c.note.Swap(nil)
	if text == nil {
		return nil
	}
	return c.writeMessage(message{*text}, nil)
}

// rest lets senders write until there is something for the writer. ok says that it was a tick.
func (c *Conn) rest(tick <-chan time.Time) (now time.Time, ok bool) {
	c.writing.Unlock()
	defer c.writing.Lock()
	select {
	case <-c.wake:
	case <-c.closing:
	case now = <-tick:
		return now, true
	}
	return now, false
}

// writeMessage writes one message; a long one in fragments, with control frames between them.
func (c *Conn) writeMessage(msg message, tick <-chan time.Time) error {
	size := msg.size()
	c.cfg.Traffic.sent(size)
	c.ws.EnableWriteCompression(size >= compressFrom)
	if len(msg) == 1 && size <= fragmentBytes {
		return c.ws.WriteMessage(websocket.TextMessage, msg[0])
	}
	w, err := c.ws.NextWriter(websocket.TextMessage)
	if err != nil {
		return err
	}
	for _, part := range msg {
		for len(part) > 0 {
			n := min(len(part), fragmentBytes)
			if _, err := w.Write(part[:n]); err != nil {
				return err
			}
			part = part[n:]
			if err := c.between(tick); err != nil {
				return err
			}
			if c.discard.Load() {
				return nil // the close frame may follow a fragment
			}
		}
	}
	return w.Close()
}

// between gives control frames their turn inside a long message.
func (c *Conn) between(tick <-chan time.Time) error {
	select {
	case now := <-tick:
		return c.control(&now)
	default:
		return c.control(nil)
	}
}

// control writes the control frames that are due; with a tick also the ping, unless the peer is gone.
func (c *Conn) control(tick *time.Time) error {
	if p := c.pong.Swap(nil); p != nil {
		if err := c.ws.WriteControl(websocket.PongMessage, []byte(*p), time.Time{}); err != nil {
			return err
		}
	}
	if tick == nil {
		return nil
	}
	// Ticks are counted and not time, so that a process that was frozen itself does not take its peers for dead.
	c.silent++
	if c.stream.signed() {
		c.silent = 0
	}
	if c.silent >= 2 {
		return errors.New("the peer is silent")
	}
	return c.ws.WriteControl(websocket.PingMessage, nil, time.Time{})
}

func (c *Conn) stopTimer() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.timer != nil {
		c.timer.Stop()
	}
}

// finish says goodbye and closes the socket.
func (c *Conn) finish() {
	end, _ := c.Cause().(*CloseError)
	if end.Code != CloseLost {
		// Fails when the WebSocket layer has itself sent the close frame for a fault that it found; flushed all the same.
		_ = c.ws.WriteControl(websocket.CloseMessage, closeFrame(end), time.Time{})
		if c.stream.Flush() == nil && !end.Peer {
			c.linger()
		}
	}
	c.Abort("")
}

// linger waits for the peer's close frame. After a fault of the peer nobody reads any more: its bytes are then thrown
// away for a moment, because closing a socket with unread bytes may destroy the close frame on its way out.
func (c *Conn) linger() {
	deadline := time.Now().Add(c.cfg.CloseWait)
	timer := time.NewTimer(c.cfg.CloseWait)
	defer timer.Stop()
	select {
	case <-c.readerDone:
		if c.farewell.Load() {
			return
		}
		_ = c.stream.Conn.SetReadDeadline(deadline)
		_, _ = io.Copy(io.Discard, c.stream.Conn)
	case <-c.gone:
	case <-timer.C:
	}
}

func closeFrame(e *CloseError) []byte {
	if e.Code == websocket.CloseNoStatusReceived {
		return nil
	}
	reason := e.Reason
	if len(reason) > 120 { // a control frame holds 125 bytes, two of them the code
		reason = ""
	}
	return websocket.FormatCloseMessage(e.Code, reason)
}
