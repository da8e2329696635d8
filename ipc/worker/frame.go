package worker

import (
	"encoding/binary"
	"fmt"
	"math"
)

// The wire format. A frame is the length of its body as 32 bits little-endian, then the body: the kind byte, then the
// message's fields in the order of its declaration. Integers, durations (nanoseconds) and list lengths are unsigned
// LEB128 in its shortest form; booleans are one byte, 0 or 1; text and bytes are a length and the bytes, text being
// valid UTF-8; bytes that may be nil (Execute.Input, Result.Value, Result.Error) carry their length plus one, and 0
// for nil. A list is its length and its items, a struct its fields. Nothing may follow the last field.

// headerBytes is the size of a frame's length.
const headerBytes = 4

// Side is one end of the channel.
type Side uint8

// The two ends.
const (
	Parent Side = iota + 1
	Worker
)

// String names the side.
func (s Side) String() string {
	switch s {
	case Parent:
		return "parent"
	case Worker:
		return "worker"
	}
	return fmt.Sprintf("side(%d)", uint8(s))
}

// sender is the side that sends frames of kind k.
func (k kind) sender() Side {
	if k < 0x80 {
		return Parent
	}
	return Worker
}

// FrameError says how the other side broke the wire format. The channel is of no use after it.
type FrameError struct {
	Reason string
}

func (e *FrameError) Error() string { return "cannot decode frame: " + e.Reason }

func frameErrorf(format string, args ...any) *FrameError {
	return &FrameError{Reason: fmt.Sprintf(format, args...)}
}

// Append appends m as one frame, length included. A negative number or duration is sent as 0, for none has a meaning
// below that. It panics on a pointer to a message (messages travel by value) and on a frame over 4 GiB.
func Append(dst []byte, m Message) []byte {
	dst, _ = appendFrame(dst, m, false)
	return dst
}

// directBytes is the size from which a payload is worth a write of its own instead of a copy.
const directBytes = 64 << 10

// appendFrame is Append. With apart a large last field is not appended but returned, to be written after the rest.
func appendFrame(dst []byte, m Message, apart bool) (buf, payload []byte) {
	start := len(dst)
	c := coder{buf: append(dst, 0, 0, 0, 0, byte(m.kind())), apart: apart}
	switch m := m.(type) {
	case Execute:
		m.fields(&c)
	case ToolResult:
		m.fields(&c)
	case Invoke:
		m.fields(&c)
	case Release:
		m.fields(&c)
	case Cancel:
		m.fields(&c)
	case Hello:
		m.fields(&c)
	case Ready:
		m.fields(&c)
	case Heartbeat:
		m.fields(&c)
	case ToolCall:
		m.fields(&c)
	case Fetch:
		m.fields(&c)
	case FetchRead:
		m.fields(&c)
	case FetchCancel:
		m.fields(&c)
	case Log:
		m.fields(&c)
	case Result:
		m.fields(&c)
	case LastWord:
		m.fields(&c)
	default:
		panic(fmt.Sprintf("worker: cannot send a %T: messages are sent by value", m))
	}
	body := len(c.buf) - start - headerBytes + len(c.payload)
	if uint64(body) > math.MaxUint32 {
		panic("worker: frame over 4 GiB")
	}
	binary.LittleEndian.PutUint32(c.buf[start:], uint32(body))
	return c.buf, c.payload
}

// Decode reads the body of one frame that came from side from, which is a frame without its length. The message keeps
// body: the caller must not touch it any more. An error is a *FrameError.
func Decode(from Side, body []byte) (Message, error) {
	if len(body) == 0 {
		return nil, frameErrorf("no kind")
	}
	k := kind(body[0])
	if k.sender() != from {
		return nil, frameErrorf("kind %#02x does not come from the %s", uint8(k), from)
	}
	c := coder{buf: body[1:], decoding: true}
	m := decodeKind(&c, k)
	if m == nil {
		return nil, frameErrorf("unknown kind %#02x", uint8(k))
	}
	if c.err == nil && len(c.buf) != 0 {
		c.fail("bytes after the last field")
	}
	if c.err != nil {
		return nil, frameErrorf("%T: %s", m, c.err.Reason)
	}
	return m, nil
}

// decodeKind reads the fields of kind k, nil for a kind that does not exist.
func decodeKind(c *coder, k kind) Message {
	switch k {
	case kindExecute:
		var m Execute
		m.fields(c)
		return m
	case kindToolResult:
		var m ToolResult
		m.fields(c)
		return m
	case kindCancel:
		var m Cancel
		m.fields(c)
		return m
	case kindInvoke:
		var m Invoke
		m.fields(c)
		return m
	case kindRelease:
		var m Release
		m.fields(c)
		return m
	case kindHello:
		var m Hello
		m.fields(c)
		return m
	case kindReady:
		var m Ready
		m.fields(c)
		return m
	case kindHeartbeat:
		var m Heartbeat
		m.fields(c)
		return m
	case kindToolCall:
		var m ToolCall
		m.fields(c)
		return m
	case kindFetch:
		var m Fetch
		m.fields(c)
		return m
	case kindFetchRead:
		var m FetchRead
		m.fields(c)
		return m
	case kindFetchCancel:
		var m FetchCancel
		m.fields(c)
		return m
	case kindLog:
		var m Log
		m.fields(c)
		return m
	case kindResult:
		var m Result
		m.fields(c)
		return m
	case kindLastWord:
		var m LastWord
		m.fields(c)
		return m
	}
	return nil
}
