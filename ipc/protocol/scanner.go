package protocol

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"math/bits"
	"unicode/utf8"
)

// scanner goes over a text once. A method that returns false has set err.
type scanner struct {
	text  []byte
	pos   int
	b     Bounds
	nodes int
	keys  int
	depth int
	err   *TextError
	// objects has bit d set when the container at depth d is an object.
	objects [MaxDepth / 64]uint64
}

func (s *scanner) fail(f TextFault, reason string) bool {
	s.err = &TextError{Fault: f, Offset: s.pos, Reason: reason}
	return false
}

// fits compares the bounds with the text before anything is read.
func (s *scanner) fits() bool {
	s.b.Depth = min(s.b.Depth, MaxDepth)
	if len(s.text) > s.b.Bytes {
		return s.fail(OverBound, fmt.Sprintf("%d bytes, more than the limit of %d,", len(s.text), s.b.Bytes))
	}
	return true
}

// peek returns the next byte, 0 at the end; 0 is no byte of any JSON token.
func (s *scanner) peek() byte {
	if s.pos < len(s.text) {
		return s.text[s.pos]
	}
	return 0
}

func (s *scanner) space() {
	for s.pos < len(s.text) {
		switch s.text[s.pos] {
		case ' ', '\t', '\n', '\r':
			s.pos++
		default:
			return
		}
	}
}

func (s *scanner) expect(c byte) bool {
	if s.peek() != c {
		return s.unexpected()
	}
	s.pos++
	return true
}

func (s *scanner) unexpected() bool {
	if s.pos >= len(s.text) {
		return s.fail(Malformed, "the text ends too early")
	}
	return s.fail(Malformed, fmt.Sprintf("unexpected %q", s.text[s.pos]))
}

// end asks that nothing but white space follows.
func (s *scanner) end() bool {
	if s.space(); s.pos < len(s.text) {
		return s.unexpected()
	}
	return true
}

func (s *scanner) count() bool {
	if s.nodes++; s.nodes > s.b.Nodes {
		return s.fail(OverBound, fmt.Sprintf("more values than the limit of %d", s.b.Nodes))
	}
	return true
}

func (s *scanner) open(c byte) bool {
	if s.depth >= s.b.Depth {
		return s.fail(OverBound, fmt.Sprintf("nested deeper than the limit of %d", s.b.Depth))
	}
	word, bit := s.depth/64, uint64(1)<<(s.depth%64)
	s.objects[word] &^= bit
	if c == '{' {
		s.objects[word] |= bit
	}
	s.depth++
	s.pos++
	return true
}

func (s *scanner) close() {
	s.depth--
	s.pos++
}

func (s *scanner) inObject() bool {
	d := s.depth - 1
	return s.objects[d/64]>>(d%64)&1 != 0
}

// value reads one value with all that is in it. It does not recurse.
func (s *scanner) value() bool {
	base := s.depth
	for {
		s.space()
		if !s.count() {
			return false
		}
		entered, ok := s.begin()
		if !ok {
			return false
		}
		if entered {
			continue
		}
		if done, ok := s.finish(base); done || !ok {
			return ok
		}
	}
}

// begin reads a scalar, an empty container, or the start of a container up to its first value; then entered is true.
func (s *scanner) begin() (entered, ok bool) {
	switch c := s.peek(); c {
	case '"':
		return false, s.str()
	case '[', '{':
		if !s.open(c) {
			return false, false
		}
		s.space()
		if s.peek() == c+2 { // ']' and '}' follow their opening bracket by two
			s.close()
			return false, true
		}
		return true, c == '[' || s.key()
	case 't':
		return false, s.literal("true")
	case 'f':
		return false, s.literal("false")
	case 'n':
		return false, s.literal("null")
	default:
		return false, s.number()
	}
}

// finish follows a complete value: it closes containers, down to depth base at most, and stops before the next value.
func (s *scanner) finish(base int) (done, ok bool) {
	for s.depth > base {
		s.space()
		object := s.inObject()
		switch c := s.peek(); {
		case c == ',':
			s.pos++
			return false, !object || s.key()
		case c == '}' && object, c == ']' && !object:
			s.close()
		default:
			return false, s.unexpected()
		}
	}
	return true, true
}

// key reads a member's key and colon.
func (s *scanner) key() bool {
	s.keys++
	s.space()
	if !s.str() {
		return false
	}
	s.space()
	return s.expect(':')
}

func (s *scanner) literal(word string) bool {
	if len(s.text)-s.pos < len(word) || string(s.text[s.pos:s.pos+len(word)]) != word {
		return s.fail(Malformed, "a word that is no JSON value")
	}
	s.pos += len(word)
	return true
}

func (s *scanner) number() bool {
	if s.peek() == '-' {
		s.pos++
	}
	if s.peek() == '0' {
		s.pos++
	} else if !s.digits() {
		return false
	}
	if s.peek() == '.' {
		s.pos++
		if !s.digits() {
			return false
		}
	}
	if s.peek()|0x20 == 'e' {
		s.pos++
		if c := s.peek(); c == '+' || c == '-' {
			s.pos++
		}
		return s.digits()
	}
	return true
}

// digits reads one digit or more.
func (s *scanner) digits() bool {
	start := s.pos
	for s.pos < len(s.text) && s.text[s.pos]-'0' <= 9 {
		s.pos++
	}
	return s.pos > start || s.unexpected()
}

// str reads a string with its quotes.
func (s *scanner) str() bool {
	if !s.expect('"') {
		return false
	}
	start, high := s.pos, uint64(0)
	for {
		high |= s.skipPlain()
		switch c := s.peek(); {
		case s.pos >= len(s.text):
			return s.unexpected()
		case c == '"':
			if high&swarHigh != 0 && !utf8.Valid(s.text[start:s.pos]) {
				s.pos = start
				return s.fail(Malformed, "invalid UTF-8 in the string")
			}
			s.pos++
			return true
		case c == '\\':
			if !s.escape() {
				return false
			}
		default:
			return s.fail(Malformed, "a control character in a string")
		}
	}
}

const (
	swarOnes = 0x0101010101010101
	swarHigh = 0x8080808080808080
)

// skipPlain goes to the next quote, backslash or control character, or to the end. It returns the bytes that it
// passed, combined by or, in any order, perhaps with some that follow: whether a high bit is set is all they tell.
func (s *scanner) skipPlain() (seen uint64) {
	text, i := s.text, s.pos
	for begin := i; len(text)-i >= 8; i += 8 {
		w := binary.LittleEndian.Uint64(text[i:])
		seen |= w
		if hit := swarStops(w); hit != 0 {
			s.pos = i + bits.TrailingZeros64(hit)/8
			return seen
		}
		if i-begin == longString {
			n, high := plainRun(text[i+8:])
			i += n
			seen |= high
		}
	}
	for i < len(text) && text[i] >= ' ' && text[i] != '"' && text[i] != '\\' {
		seen |= uint64(text[i])
		i++
	}
	s.pos = i
	return seen
}

const (
	// longString is how much of a string is plain before it is taken for a long one, as those of bytes are.
	longString = 256
	// plainStep is how far the ends of a long string are looked for at a time. It bounds what a string with few plain
	// bytes between its escapes costs.
	plainStep = 4 << 10
)

// plainRun is how many bytes of text, a multiple of eight, certainly neither end nor interrupt a string; combined by or
// in the second result.
func plainRun(text []byte) (n int, seen uint64) {
	for len(text)-n >= plainStep {
		step := text[n : n+plainStep]
		if bytes.IndexByte(step, '"') >= 0 || bytes.IndexByte(step, '\\') >= 0 {
			return n, seen
		}
		var control, high uint64
		for ; len(step) >= 32; step = step[32:] {
			a, b := binary.LittleEndian.Uint64(step), binary.LittleEndian.Uint64(step[8:])
			c, d := binary.LittleEndian.Uint64(step[16:]), binary.LittleEndian.Uint64(step[24:])
			control |= swarControl(a) | swarControl(b) | swarControl(c) | swarControl(d)
			high |= a | b | c | d
		}
		if control&swarHigh != 0 {
			return n, seen
		}
		seen |= high
		n += plainStep
	}
	return n, seen
}

// swarControl has the high bit set of each byte that is a control character; above one, others may be wrong.
func swarControl(w uint64) uint64 { return (w - swarOnes*' ') &^ w }

// swarStops looks at eight bytes at once. The lowest bit that is set in the result marks the first byte that is a
// quote, a backslash or a control character; bits above it may be wrong.
func swarStops(w uint64) uint64 {
	quote, slash := w^swarOnes*'"', w^swarOnes*'\\'
	return (swarControl(w) | (quote-swarOnes)&^quote | (slash-swarOnes)&^slash) & swarHigh
}

// escape reads one escape sequence (RFC 8259, section 7).
func (s *scanner) escape() bool {
	s.pos++
	switch s.peek() {
	case '"', '\\', '/', 'b', 'f', 'n', 'r', 't':
		s.pos++
		return true
	case 'u':
		s.pos++
		for range 4 {
			if hexDigit(s.peek()) < 0 {
				return s.unexpected()
			}
			s.pos++
		}
		return true
	}
	return s.unexpected()
}

// hexDigit is the value of a hexadecimal digit, -1 for any other byte.
func hexDigit(c byte) int {
	switch {
	case c-'0' <= 9:
		return int(c - '0')
	case c|0x20 >= 'a' && c|0x20 <= 'f':
		return int(c|0x20-'a') + 10
	}
	return -1
}

// enter opens the container that the whole text must be.
func (s *scanner) enter(c byte, otherwise string) bool {
	if !s.fits() {
		return false
	}
	if s.space(); s.peek() == c {
		ok := s.count() && s.open(c)
		s.space()
		return ok
	}
	return s.value() && s.end() && s.fail(OtherKind, otherwise)
}

// leave closes that container and asks that nothing follows.
func (s *scanner) leave() error {
	if s.close(); !s.end() {
		return s.err
	}
	return nil
}

// more reads the comma between two parts, or sees the closing bracket.
func (s *scanner) more(closing byte) (more, ok bool) {
	if s.space(); s.peek() == closing {
		return false, true
	}
	return true, s.expect(',')
}

// part reads one value and returns its text, without white space around it.
func (s *scanner) part() (json.RawMessage, bool) {
	s.space()
	start := s.pos
	if !s.value() {
		return nil, false
	}
	return s.text[start:s.pos:s.pos], true
}

// memberKey reads a key and its colon.
func (s *scanner) memberKey() (key []byte, ok bool) {
	s.space()
	start := s.pos + 1
	if !s.str() {
		return nil, false
	}
	key, _ = unescape(s.text[start : s.pos-1])
	s.space()
	return key, s.expect(':')
}
