package worker

import (
	"encoding/binary"
	"math"
	"time"
	"unicode/utf8"
	"unsafe"
)

// coder encodes or decodes fields one after the other. The first error sticks and makes the rest do nothing.
type coder struct {
	buf      []byte // encoding: what was made so far; decoding: what is left
	decoding bool
	err      *FrameError
	apart    bool   // encoding: a payload of directBytes or more stays out of buf
	payload  []byte // with apart: what stayed out, which follows buf
}

func (c *coder) fail(reason string) {
	if c.err == nil {
		c.err = &FrameError{Reason: reason}
	}
}

func (c *coder) uint(p *uint64) {
	if c.decoding {
		*p = c.take(math.MaxUint64)
		return
	}
	c.put(*p)
}

func (c *coder) uint32(p *uint32) {
	if c.decoding {
		*p = uint32(c.take(math.MaxUint32))
		return
	}
	c.put(uint64(*p))
}

func (c *coder) int(p *int64) {
	if c.decoding {
		*p = int64(c.take(math.MaxInt64))
		return
	}
	c.put(uint64(max(*p, 0)))
}

func (c *coder) duration(p *time.Duration) {
	if c.decoding {
		*p = time.Duration(c.take(math.MaxInt64))
		return
	}
	c.put(uint64(max(*p, 0)))
}

func (c *coder) bool(p *bool) {
	if c.decoding {
		*p = c.take(1) == 1
		return
	}
	if *p {
		c.put(1)
	} else {
		c.put(0)
	}
}

// text codes valid UTF-8. A decoded string shares the memory of the frame, which nobody writes to any more.
func (c *coder) text(p *string) {
	if !c.decoding {
		c.put(uint64(len(*p)))
		c.buf = append(c.buf, *p...)
		return
	}
	b := c.cut(c.take(math.MaxUint64))
	if len(b) == 0 {
		*p = ""
		return
	}
	if !utf8.Valid(b) {
		c.fail("text is not UTF-8")
		return
	}
	*p = unsafe.String(&b[0], len(b))
}

func (c *coder) texts(p *[]string, most int) {
	for i := range resize(c, p, 1, most) {
		c.text(&(*p)[i])
	}
}

// bytes codes bytes that are never nil: a decoded field of length 0 is empty, not nil.
func (c *coder) bytes(p *[]byte) {
	if !c.decoding {
		c.put(uint64(len(*p)))
		c.buf = append(c.buf, *p...)
		return
	}
	*p = c.cut(c.take(math.MaxUint64))
}

// last codes bytes that are the last field of their message.
func (c *coder) last(p *[]byte) {
	if !c.decoding && c.apart && len(*p) >= directBytes {
		c.put(uint64(len(*p)))
		c.payload = *p
		return
	}
	c.bytes(p)
}

// lastOptional is last for bytes where nil and empty differ.
func (c *coder) lastOptional(p *[]byte) {
	if !c.decoding && c.apart && len(*p) >= directBytes {
		c.put(uint64(len(*p)) + 1)
		c.payload = *p
		return
	}
	c.optional(p)
}

// optional codes bytes where nil and empty differ.
func (c *coder) optional(p *[]byte) {
	if !c.decoding {
		if *p == nil {
			c.put(0)
			return
		}
		c.put(uint64(len(*p)) + 1)
		c.buf = append(c.buf, *p...)
		return
	}
	if n := c.take(math.MaxUint64); n > 0 {
		*p = c.cut(n - 1)
	}
}

// resize codes the length of a list and returns the list to go through. When decoding it makes the list: at most most
// items, and no more than fit into what is left when an item takes at least min bytes.
func resize[T any](c *coder, p *[]T, min, most int) []T {
	if !c.decoding {
		c.put(uint64(len(*p)))
		return *p
	}
	n := c.take(math.MaxUint64)
	if c.err != nil || n == 0 {
		return nil
	}
	if n > uint64(most) || n > uint64(len(c.buf)/min) {
		c.fail("list is too long")
		return nil
	}
	*p = make([]T, n)
	return *p
}

func (c *coder) put(n uint64) { c.buf = binary.AppendUvarint(c.buf, n) }

// take reads an unsigned LEB128 number in its shortest form, at most limit.
func (c *coder) take(limit uint64) uint64 {
	if c.err != nil {
		return 0
	}
	n, size := binary.Uvarint(c.buf)
	switch {
	case size == 0:
		c.fail("number is cut off")
	case size < 0:
		c.fail("number is over 64 bits")
	case size > 1 && c.buf[size-1] == 0:
		c.fail("number is not in its shortest form")
	case n > limit:
		c.fail("number is out of range")
	default:
		c.buf = c.buf[size:]
		return n
	}
	return 0
}

// cut takes the next n bytes, without room behind them, so that appending to a field never reaches the next one.
func (c *coder) cut(n uint64) []byte {
	if c.err != nil {
		return nil
	}
	if n > uint64(len(c.buf)) {
		c.fail("field is longer than the frame")
		return nil
	}
	b := c.buf[:n:n]
	c.buf = c.buf[n:]
	return b
}
