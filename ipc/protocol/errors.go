package protocol

import (
	"errors"
	"fmt"
	"time"
)

// Type names one way in which an execution ended badly, or one reason why it was never run. The set is closed
// and append-only: it is the `type` on the wire, the metric label, the sentinel in Go and the exit status of
// executorctl. Callers decide by type, never by text. The comments below are the words of the table in docs/protocol.md.
type Type string

// Endings of a program that ran. They travel inside an Outcome.
const (
	Exception            Type = "exception"             // the program threw, or the promise that it gave was rejected
	Syntax               Type = "syntax"                // its text, or a module's, cannot be parsed
	Module               Type = "module"                // a module is not there, or cannot be linked
	CPUTimeout           Type = "cpu_timeout"           // limit cpuMs
	WallTimeout          Type = "wall_timeout"          // limit wallMs
	TotalTimeout         Type = "total_timeout"         // limit totalMs
	MemoryLimit          Type = "memory_limit"          // limit heapMiB, bufferMiB or slackMiB
	ResultTooLarge       Type = "result_too_large"      // limit resultBytes
	ResultUnserializable Type = "result_unserializable" // the value cannot be encoded; the message has the path
	ToolLimit            Type = "tool_limit"            // limit toolCalls, toolCallsInFlight or fetches
	Cancelled            Type = "cancelled"             // by the host, by the operator, by the end of its session, or by that of the service
	WorkerCrashed        Type = "worker_crashed"        // its process ended by itself; reason says how
	Deadlock             Type = "deadlock"              // nothing that is pending can settle the value any more
)

// Reasons why nothing ran. They travel as JSON-RPC errors.
const (
	InvalidParams       Type = "invalid_params"       // field names the one that is wrong
	InvalidCode         Type = "invalid_code"         // the text is empty, too long or no valid Unicode
	InvalidProvider     Type = "invalid_provider"     // a name of a provider or a tool that cannot be one
	Overloaded          Type = "overloaded"           // there is no room, not even to wait; retryAfterMs says when to try again
	QueueTimeout        Type = "queue_timeout"        // no worker was free in time
	Draining            Type = "draining"             // the service is stopping, or this session is; another one may take it
	Maintenance         Type = "maintenance"          // the operator has the service turn callers away
	Unauthorized        Type = "unauthorized"         // the policy does not let this caller in
	UnsupportedProtocol Type = "unsupported_protocol" // no common subprotocol, or another version of it
	SessionLimit        Type = "session_limit"        // too many sessions, or executions of a session or a caller
	HandleUnknown       Type = "handle_unknown"       // there is no such handle in this session
	SessionUnknown      Type = "session_unknown"      // the token resumes no session: it has ended, or the token was used
	Internal            Type = "internal"             // a fault of the service, or of a connection; the program may or may not have run
)

// Faults of the JSON-RPC layer itself (JSON-RPC 2.0, section 5.1).
const (
	ParseError     Type = "parse_error"     // the message is no JSON
	InvalidRequest Type = "invalid_request" // the message is JSON, but no message of JSON-RPC, or not in its turn
	UnknownMethod  Type = "unknown_method"  // there is no such method, or path of the HTTP API
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
