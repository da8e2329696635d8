package protocol

import (
	"encoding/json"
	"fmt"
)

// MaxDepth is the deepest nesting that any Bounds can allow.
const MaxDepth = 4096

// Bounds limit a JSON text. Each must be positive: zero allows nothing.
type Bounds struct {
	Bytes int // length of the text
	Depth int // arrays and objects open at once; more than MaxDepth counts as MaxDepth
	Nodes int // values of every kind, containers included
}

// TextFault says what kind of fault a TextError is.
type TextFault uint8

// The faults of a JSON text.
const (
	Malformed TextFault = iota + 1 // not one JSON value in valid UTF-8
	OverBound                      // more than the Bounds allow
	Duplicate                      // a key twice in one object
	OtherKind                      // a JSON value of another kind than was asked for
)

// TextError tells why a JSON text was not accepted.
type TextError struct {
	Fault  TextFault
	Offset int // in bytes, near the fault
	Reason string
}

func (e *TextError) Error() string {
	return fmt.Sprintf("cannot accept JSON text: %s at byte %d", e.Reason, e.Offset)
}

// Check returns nil when text is exactly one JSON value (RFC 8259) in valid UTF-8, white space around it allowed, and
// within b; else a *TextError. It allocates nothing for a text that it accepts. An accepted text can be pasted into
// another JSON text as a value.
func Check(text []byte, b Bounds) error {
	s := scanner{text: text, b: b}
	if !s.fits() || !s.value() || !s.end() {
		return s.err
	}
	return nil
}

// Members checks text as Check does, asks that it be an object, and calls visit with each member while it goes: the
// key without quotes and escapes (a lone surrogate as the three bytes of its code point), and the value as a sub-slice
// of text. A key that comes twice is a fault. An error of visit ends the walk and is returned as it is. Members
// visited before a fault was met have been visited: act on them only when Members returned nil.
func Members(text []byte, b Bounds, visit func(key []byte, value json.RawMessage) error) error {
	s := scanner{text: text, b: b}
	if !s.enter('{', "not an object") {
		return s.err
	}
	var seen keySet
	for more := s.peek() != '}'; more; {
		key, ok := s.memberKey()
		if !ok {
			return s.err
		}
		if !seen.add(key) {
			s.fail(Duplicate, "a key that was there before")
			return s.err
		}
		value, ok := s.part()
		if !ok {
			return s.err
		}
		if err := visit(key, value); err != nil {
			return err
		}
		if more, ok = s.more('}'); !ok {
			return s.err
		}
	}
	return s.leave()
}

// Items is Members for an array: it calls visit with each item, in order.
func Items(text []byte, b Bounds, visit func(item json.RawMessage) error) error {
	s := scanner{text: text, b: b}
	if !s.enter('[', "not an array") {
		return s.err
	}
	for more := s.peek() != ']'; more; {
		item, ok := s.part()
		if !ok {
			return s.err
		}
		if err := visit(item); err != nil {
			return err
		}
		if more, ok = s.more(']'); !ok {
			return s.err
		}
	}
	return s.leave()
}
