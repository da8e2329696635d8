package protocol

import (
	"errors"
	"fmt"
	"time"
)

// Type names one way in which an execution ended badly, or one reason why it was never run. The set is closed
// and append-only: it is the `type` on the wire, the metric label, the sentinel in Go and the exit status of
// executorctl. Callers decide by type, never by text.
type Type string

// Endings of a program that ran. They travel inside an Outcome.
const (
	Exception            Type = "exception"
	Syntax               Type = "syntax"
	Module               Type = "module"
	CPUTimeout           Type = "cpu_timeout"
	WallTimeout          Type = "wall_timeout"
	TotalTimeout         Type = "total_timeout"
	MemoryLimit          Type = "memory_limit"
	ResultTooLarge       Type = "result_too_large"
	ResultUnserializable Type = "result_unserializable"
	ToolLimit            Type = "tool_limit"
	Cancelled            Type = "cancelled"
	WorkerCrashed        Type = "worker_crashed"
	Deadlock             Type = "deadlock"
)

// Reasons why nothing ran. They travel as JSON-RPC errors.
const (
	InvalidParams       Type = "invalid_params"
	InvalidCode         Type = "invalid_code"
	InvalidProvider     Type = "invalid_provider"
	Overloaded          Type = "overloaded"
	QueueTimeout        Type = "queue_timeout"
	Draining            Type = "draining"
	Maintenance         Type = "maintenance"
	Unauthorized        Type = "unauthorized"
	UnsupportedProtocol Type = "unsupported_protocol"
	SessionLimit        Type = "session_limit"
	HandleUnknown       Type = "handle_unknown"
	SessionUnknown      Type = "session_unknown"
	Internal            Type = "internal"
)

// Faults of the JSON-RPC layer itself (JSON-RPC 2.0, section 5.1).
const (
	ParseError     Type = "parse_error"
	InvalidRequest Type = "invalid_request"
	UnknownMethod  Type = "unknown_method"
)

// TypeInfo is what the taxonomy fixes for a Type.
type TypeInfo struct {
	Type      Type
	Code      int  // JSON-RPC error code
	Ran       bool // the program started: the error travels in an Outcome
	Retryable bool // the same request may succeed later, unchanged
	Exit      int  // exit status of executorctl run
}

// taxonomy lists every Type once. Codes and exit statuses are never reused.
var taxonomy = []TypeInfo{
	{Exception, -32010, true, false, 10},
	{Syntax, -32011, true, false, 11},
	{Module, -32012, true, false, 12},
	{CPUTimeout, -32013, true, false, 13},
	{WallTimeout, -32014, true, false, 14},
	{TotalTimeout, -32015, true, false, 15},
	{MemoryLimit, -32016, true, false, 16},
	{ResultTooLarge, -32017, true, false, 17},
	{ResultUnserializable, -32018, true, false, 18},
	{ToolLimit, -32019, true, false, 19},
	{Cancelled, -32020, true, false, 20},
	{WorkerCrashed, -32021, true, true, 21},
	{Deadlock, -32022, true, false, 22},
	{InvalidParams, -32602, false, false, 40},
	{InvalidCode, -32041, false, false, 41},
	{InvalidProvider, -32042, false, false, 42},
	{Overloaded, -32043, false, true, 43},
	{QueueTimeout, -32044, false, true, 44},
	{Draining, -32045, false, true, 45},
	{Maintenance, -32046, false, true, 46},
	{Unauthorized, -32047, false, false, 47},
	{UnsupportedProtocol, -32048, false, false, 48},
	{SessionLimit, -32049, false, true, 49},
	{HandleUnknown, -32050, false, false, 50},
	{SessionUnknown, -32051, false, false, 55},
	{Internal, -32603, false, true, 51},
	{ParseError, -32700, false, false, 52},
	{InvalidRequest, -32600, false, false, 53},
	{UnknownMethod, -32601, false, false, 54},
}

// Types returns the whole taxonomy, in the order of the specification.
func Types() []TypeInfo { return append([]TypeInfo(nil), taxonomy...) }

// Info returns what the taxonomy fixes for t; ok is false when t is not in it.
func (t Type) Info() (info TypeInfo, ok bool) {
	for _, i := range taxonomy {
		if i.Type == t {
			return i, true
		}
	}
	return TypeInfo{}, false
}

// TypeOf returns the Type that a JSON-RPC error code stands for, Internal for an unknown code.
func TypeOf(code int) Type {
	for _, i := range taxonomy {
		if i.Code == code {
			return i.Type
		}
	}
	return Internal
}

// Error is a typed fault: inside an Outcome when the program ran, by itself when it did not. Use errors.As to
// reach it and errors.Is with the Type (which is itself an error) to tell its kind.
type Error struct {
	Type     Type      `json:"type"`
	Name     string    `json:"name,omitempty"`     // name of what the program threw, as "TypeError"
	Message  string    `json:"message"`            // for people; never decide on it
	Stack    string    `json:"stack,omitempty"`    // frames of the submitted text only
	Cause    Value     `json:"cause,omitempty"`    // `cause` of what was thrown
	Thrown   Value     `json:"thrown,omitempty"`   // what was thrown, where it was not an Error
	Position *Position `json:"position,omitempty"` // where in the submitted text
	Reason   string    `json:"reason,omitempty"`   // worker_crashed: "signal:SIGSEGV", "exit:3", "unresponsive", "protocol"
	Field    string    `json:"field,omitempty"`    // invalid_params: path of the parameter, as "limits.cpuMs"

	// RetryAfterMs is a hint in milliseconds with overloaded and its kin; 0 means none.
	RetryAfterMs int64 `json:"retryAfterMs,omitempty"`
}

// Position is a place in the submitted text; Line and Column count from 1, Column in UTF-16 code units.
type Position struct {
	File       string `json:"file"`
	Line       int    `json:"line"`
	Column     int    `json:"column"`
	SourceLine string `json:"sourceLine,omitempty"`
}

// Error gives type and message on one line.
func (e *Error) Error() string {
	msg := e.Message
	if e.Name != "" {
		msg = e.Name + ": " + msg
	}
	if e.Position != nil {
		msg = fmt.Sprintf("%s (%s:%d:%d)", msg, e.Position.File, e.Position.Line, e.Position.Column)
	}
	return string(e.Type) + ": " + msg
}

// Is makes errors.Is(err, protocol.Overloaded) true for every *Error of that type.
func (e *Error) Is(target error) bool {
	t, ok := target.(Type)
	return ok && t == e.Type
}

// RetryAfter is RetryAfterMs as a duration.
func (e *Error) RetryAfter() time.Duration { return time.Duration(e.RetryAfterMs) * time.Millisecond }

// Retryable tells whether the same request may succeed later, unchanged.
func (e *Error) Retryable() bool {
	info, _ := e.Type.Info()
	return info.Retryable
}

// Error makes a Type a sentinel for errors.Is.
func (t Type) Error() string { return string(t) }

// Errorf makes an *Error of type t.
func Errorf(t Type, format string, args ...any) *Error {
	return &Error{Type: t, Message: fmt.Sprintf(format, args...)}
}

// FieldError makes the invalid_params error for one parameter, named by its path.
func FieldError(field, format string, args ...any) *Error {
	e := Errorf(InvalidParams, format, args...)
	e.Field = field
	return e
}

// AsError returns err as a typed error; one that is not typed becomes Internal. Nil stays nil.
func AsError(err error) *Error {
	if err == nil {
		return nil
	}
	var e *Error
	if errors.As(err, &e) {
		return e
	}
	return &Error{Type: Internal, Message: err.Error()}
}
