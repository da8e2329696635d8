package protocol

import (
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
)

// MaxIDBytes bounds the id of a JSON-RPC request; MaxMethodBytes its method.
const (
	MaxIDBytes     = 128
	MaxMethodBytes = 128
)

// Kind tells the three messages of JSON-RPC 2.0 apart.
type Kind uint8

// The kinds of a Message.
const (
	KindRequest Kind = iota + 1
	KindNotification
	KindResponse
)

// Message is one parsed JSON-RPC 2.0 message. Its raw fields are sub-slices of the frame.
type Message struct {
	Kind   Kind
	ID     json.RawMessage // string, number or null; nil in a notification
	Method string          // of a request or notification
	Params json.RawMessage // object or array, nil when absent
	Result json.RawMessage // of a response that succeeded
	Error  *ErrorObject    // of a response that failed
}

// ErrorObject is the error of a response (JSON-RPC 2.0, section 5.1).
type ErrorObject struct {
	Code    int             `json:"code"`
	Message string          `json:"message"`
	Data    json.RawMessage `json:"data,omitempty"`
}

func (e *ErrorObject) Error() string { return fmt.Sprintf("%s (%d)", e.Message, e.Code) }

// Typed is the *Error that the service sent. An unknown type becomes that of the code.
func (e *ErrorObject) Typed() *Error {
	var t Error
	if json.Unmarshal(e.Data, &t) != nil {
		t = Error{}
	}
	if _, known := t.Type.Info(); !known {
		t.Type = TypeOf(e.Code)
	}
	t.Message = e.Message
	t.RetryAfterMs = max(t.RetryAfterMs, 0)
	return &t
}

// Thrown is what a host wants thrown in the program as the answer to a tool call.
func (e *ErrorObject) Thrown() *ThrownError {
	var t ThrownError
	if json.Unmarshal(e.Data, &t) != nil {
		t = ThrownError{}
	}
	if t.Message == "" {
		t.Message = e.Message
	}
	return &t
}

// ParseMessage reads one text frame. The fault is an *Error: parse_error when the text is not JSON, invalid_request when
// it is JSON and not one JSON-RPC 2.0 message (batches are none) or passes b. With invalid_request the Message holds
// the ID and the Method when they were found, for the answer.
func ParseMessage(text []byte, b Bounds) (Message, error) {
	var p envelope
	err := Members(text, b, p.member)
	var fault *TextError
	switch {
	case errors.As(err, &fault) && fault.Fault == Malformed:
		return Message{}, Errorf(ParseError, "%s", fault)
	case errors.As(err, &fault) && fault.Fault == OtherKind:
		return Message{}, Errorf(InvalidRequest, "a message is one JSON object, and batches are not taken")
	case err != nil:
		return Message{ID: p.m.ID, Method: p.m.Method}, Errorf(InvalidRequest, "%s", err)
	}
	if reason := p.judge(); reason != "" {
		return Message{ID: p.m.ID, Method: p.m.Method}, Errorf(InvalidRequest, "%s", reason)
	}
	return p.m, nil
}

// envelope collects the members of a message. It goes on after a fault, so that the id is found wherever it stands.
type envelope struct {
	m       Message
	version bool
	fault   string // the first
}

func (p *envelope) bad(reason string) {
	if p.fault == "" {
		p.fault = reason
	}
}

func (p *envelope) member(key []byte, v json.RawMessage) error {
	switch string(key) {
	case "jsonrpc":
		p.version = string(v) == `"2.0"`
	case "id":
		p.id(v)
	case "method":
		err := paramReader{}.text("method", v, &p.m.Method)
		if err != nil || p.m.Method == "" || len(p.m.Method) > MaxMethodBytes {
			p.bad(fmt.Sprintf("method must be a string of 1 to %d bytes", MaxMethodBytes))
		}
	case "params":
		if v[0] != '{' && v[0] != '[' {
			p.bad("params must be an object or an array")
		}
		p.m.Params = v
	case "result":
		p.m.Result = v
	case "error":
		p.m.Error = new(ErrorObject)
		if v[0] != '{' || json.Unmarshal(v, p.m.Error) != nil {
			p.bad("error must be an error object")
		}
	}
	return nil
}

func (p *envelope) id(v json.RawMessage) {
	switch {
	case v[0] != '"' && v[0] != 'n' && v[0] != '-' && v[0]-'0' > 9:
		p.bad("id must be a string, a number or null")
	case len(v) > MaxIDBytes+len(`""`):
		p.bad(fmt.Sprintf("id has more than %d bytes", MaxIDBytes))
	default:
		p.m.ID = v
	}
}

// judge finds the kind, or says why it is none.
func (p *envelope) judge() string {
	m := &p.m
	switch {
	case p.fault != "":
		return p.fault
	case !p.version:
		return `jsonrpc must be "2.0"`
	case m.Method != "" && (m.Result != nil || m.Error != nil):
		return "a message is a request or a response, not both"
	case m.Method != "" && m.ID != nil:
		m.Kind = KindRequest
	case m.Method != "":
		m.Kind = KindNotification
	case m.Result != nil && m.Error != nil:
		return "a response has a result or an error, not both"
	case m.Result == nil && m.Error == nil:
		return "a message has a method, a result or an error"
	case m.ID == nil:
		return "a response has an id"
	case m.Params != nil:
		return "a response has no params"
	default:
		m.Kind = KindResponse
	}
	return ""
}

// NumberID is the raw id of a request that its sender numbers.
func NumberID(n uint64) json.RawMessage { return strconv.AppendUint(nil, n, 10) }

// ParseNumberID is the inverse of NumberID; ok is false for an id that NumberID does not make.
func ParseNumberID(id json.RawMessage) (n uint64, ok bool) {
	n, err := strconv.ParseUint(string(id), 10, 64)
	return n, err == nil && string(NumberID(n)) == string(id)
}
