package protocol

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
)

// Methods that the host calls.
const (
	MethodSessionOpen   = "session.open"
	MethodExecute       = "execute"
	MethodCancel        = "cancel"
	MethodHandleInvoke  = "handle.invoke"
	MethodHandleRelease = "handle.release"
)

// MethodSessionAck is a notification of either side: a Received.
const MethodSessionAck = "session.ack"

// Methods that the service calls on the host. ToolCancel and the ones below it are notifications.
const (
	MethodToolCall        = "tool.call"
	MethodFetch           = "fetch"
	MethodToolCancel      = "tool.cancel"
	MethodExecutionState  = "execution.state"
	MethodExecutionLog    = "execution.log"
	MethodSessionDraining = "session.draining"
)

// Party names a program that speaks the protocol.
type Party struct {
	Name    string `json:"name"`
	Version string `json:"version,omitempty"`
}

// SessionOpen is the params of session.open.
type SessionOpen struct {
	Client   Party   `json:"client"`
	Resume   string  `json:"resume,omitempty"`   // token of a lost session; only in the first message of a connection
	Received *uint64 `json:"received,omitempty"` // messages received in that session; 0 in a new one. Without it sessions end with their connection
}

// SessionOpened is the result of session.open.
type SessionOpened struct {
	Session  string  `json:"session"`
	Protocol string  `json:"protocol"` // Version
	Server   Party   `json:"server"`
	Limits   Limits  `json:"limits,omitzero"` // the service's maxima
	Resume   *Resume `json:"resume,omitempty"`
	Received uint64  `json:"received,omitempty"` // messages that the service received in the session that was resumed
}

// Resume lets a lost session be taken up again within WindowMs milliseconds. Whoever gets it numbers what it sends after
// session.open and its answer, from 1, but for session.ack, and keeps it until the other side has acknowledged it.
type Resume struct {
	Token    string `json:"token"` // for one use; another comes with the answer to it
	WindowMs int64  `json:"windowMs"`
}

// Received is the params of session.ack: so many messages of the session were received. Each side sends one when it has
// received 64 messages or 64 KiB since the last, or sooner.
type Received struct {
	Received uint64 `json:"received"`
}

// Cancel is the params of cancel.
type Cancel struct {
	Execution string `json:"execution"`
	Reason    string `json:"reason,omitempty"`
}

// CancelResult is the result of cancel; Cancelled is false when the execution was not there or had settled.
type CancelResult struct {
	Cancelled bool `json:"cancelled"`
}

// HandleInvoke is the params of handle.invoke, read by DecodeHandleInvoke. The result is an Outcome. Of the limits those of
// memory, values, messages and timers are the execution's, and may not be given.
type HandleInvoke struct {
	Execution string       `json:"execution,omitempty"` // caller's id of this invocation, as of an execution
	Handle    string       `json:"handle"`
	Method    HandleMethod `json:"method,omitempty"`
	Args      []Value      `json:"args,omitempty"`
	Limits    Limits       `json:"limits,omitzero"`
	Logs      LogOptions   `json:"logs,omitzero"`
	Trace     *Trace       `json:"trace,omitempty"`
}

// HandleMethod is what is done with a handle: the empty one calls a function, the others are an iterator's, whose outcomes
// have {done, value} as their value. A stream is an iterator over its chunks.
type HandleMethod string

// The methods of iterators and streams.
const (
	HandleNext   HandleMethod = "next"
	HandleReturn HandleMethod = "return"
	HandleThrow  HandleMethod = "throw"
)

// HandleRelease is the params of handle.release, read by DecodeHandleRelease: ids of handles, or of retained executions for all of theirs.
type HandleRelease struct {
	Handles []string `json:"handles"`
}

// Bounds of one message about handles.
const (
	MaxArgs     = 65_535 // arguments of one call; V8 takes about as many
	MaxReleased = 4096   // ids in one handle.release
)

// RetainedOf is the retained execution that the handle of that id belongs to; the id itself where it is that of one.
func RetainedOf(handle string) string {
	if dot := strings.LastIndexByte(handle, '.'); dot >= 0 {
		return handle[:dot]
	}
	return handle
}

// HandleReleased is the result of handle.release: how many handles were there and are not any more.
type HandleReleased struct {
	Released int `json:"released"`
}

// ToolCallParams is the params of tool.call; the result is a ToolResult.
type ToolCallParams struct {
	Execution string   `json:"execution"`
	Call      uint64   `json:"call"` // unique in the execution
	Provider  string   `json:"provider"`
	Path      []string `json:"path"`
	Args      Value    `json:"args"` // JSON array of Values
}

// ToolResult is the result of tool.call.
type ToolResult struct {
	Value Value `json:"value"`
}

// ToolCancel is the params of tool.cancel: nobody waits for the answer of a tool.call or a fetch any more. The execution
// has settled, or the program gave up the fetch.
type ToolCancel struct {
	Execution string `json:"execution"`
	Call      uint64 `json:"call"`
}

// LogParams is the params of execution.log.
type LogParams struct {
	Execution string `json:"execution"`
	Log
}

// SessionDraining is the params of session.draining: calls are answered for DeadlineMs milliseconds more.
type SessionDraining struct {
	DeadlineMs int64 `json:"deadlineMs"`
}

// DecodeParams reads params of a method other than execute into a pointer to its struct. Nil params are an empty
// object. Unknown fields are refused; the fault is an *Error of type invalid_params that names the field.
func DecodeParams(params json.RawMessage, into any) error {
	if params == nil {
		params = json.RawMessage(`{}`)
	}
	if trimmed := trimSpace(params); len(trimmed) == 0 || trimmed[0] != '{' {
		return FieldError("", "params must be an object")
	}
	d := json.NewDecoder(bytes.NewReader(params))
	d.DisallowUnknownFields()
	err := d.Decode(into)
	var typed *Error
	var kind *json.UnmarshalTypeError
	switch {
	case err == nil, errors.As(err, &typed):
		return err
	case errors.As(err, &kind):
		return FieldError(kind.Field, "must not be %s %s", article(kind.Value), kind.Value)
	}
	if field, ok := strings.CutPrefix(err.Error(), `json: unknown field "`); ok {
		return unknownField(strings.TrimSuffix(field, `"`))
	}
	return FieldError("", "%s", err)
}

func article(noun string) string {
	if noun != "" && strings.ContainsRune("aeiou", rune(noun[0])) {
		return "an"
	}
	return "a"
}

// EncodeParams is JSON text of a params or result struct. It fails only where a raw field is not JSON.
func EncodeParams(v any) (json.RawMessage, error) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		return nil, fmt.Errorf("cannot encode %T: %w", v, err)
	}
	return bytes.TrimSuffix(b.Bytes(), []byte("\n")), nil
}

// DecodeHandleInvoke reads the params of handle.invoke. Args are sub-slices of params.
func DecodeHandleInvoke(params json.RawMessage, b Bounds) (*HandleInvoke, error) {
	h, r := &HandleInvoke{}, paramReader{b}
	err := r.object("", params, func(name, path string, v json.RawMessage) error {
		switch name {
		case "execution":
			return r.text(path, v, &h.Execution)
		case "handle":
			return r.text(path, v, &h.Handle)
		case "method":
			return r.text(path, v, (*string)(&h.Method))
		case "logs":
			return r.logs(path, v, &h.Logs)
		case "trace":
			h.Trace = &Trace{}
			return r.trace(path, v, h.Trace)
		case "args":
			return r.items(path, v, MaxArgs, func(v json.RawMessage) error {
				h.Args = append(h.Args, v)
				return nil
			})
		case "limits":
			return r.limits(path, v, &h.Limits, true)
		}
		return unknownField(path)
	})
	if err == nil {
		err = h.validate()
	}
	if err != nil {
		return nil, err
	}
	return h, nil
}

// DecodeHandleRelease reads the params of handle.release, and no more of them than there may be.
func DecodeHandleRelease(params json.RawMessage, b Bounds) (*HandleRelease, error) {
	if params == nil {
		params = json.RawMessage(`{}`)
	}
	h, r := &HandleRelease{}, paramReader{b}
	err := r.object("", params, func(name, path string, v json.RawMessage) error {
		if name != "handles" {
			return unknownField(path)
		}
		h.Handles = []string{}
		return r.items(path, v, MaxReleased, func(v json.RawMessage) error {
			var id string
			err := r.text("", v, &id)
			if err == nil {
				err = validHandle("", id)
			}
			if err != nil {
				return at(err, itemPath(path, len(h.Handles)))
			}
			h.Handles = append(h.Handles, id)
			return nil
		})
	})
	switch {
	case err != nil:
		return nil, err
	case h.Handles == nil:
		return nil, FieldError("handles", "is missing")
	}
	return h, nil
}

// DecodeToolCall reads the params of tool.call. Args is a sub-slice of params.
func DecodeToolCall(params json.RawMessage, b Bounds) (*ToolCallParams, error) {
	c, r := &ToolCallParams{}, paramReader{b}
	err := r.object("", params, func(name, path string, v json.RawMessage) error {
		switch name {
		case "execution":
			return r.text(path, v, &c.Execution)
		case "call":
			return r.wrapped(path, v, &c.Call)
		case "provider":
			return r.text(path, v, &c.Provider)
		case "path":
			var err error
			c.Path, err = r.toolPath(path, v)
			return err
		case "args":
			if v[0] != '[' {
				return FieldError(path, "must be an array")
			}
			c.Args = v
		}
		return nil
	})
	switch {
	case err != nil:
		return nil, err
	case c.Provider == "" || len(c.Path) == 0:
		return nil, FieldError("path", "provider and path must not be empty")
	case c.Args == nil:
		c.Args = Value(`[]`)
	}
	return c, nil
}

// wrapped reads any value of Go's own types.
func (r paramReader) wrapped(path string, raw json.RawMessage, into any) error {
	if json.Unmarshal(raw, into) != nil {
		return FieldError(path, "must be another kind of value than %.40s", raw)
	}
	return nil
}

// DecodeToolResult reads the result of tool.call; an absent value is undefined. The Value is a sub-slice of result.
func DecodeToolResult(result json.RawMessage, b Bounds) (Value, error) {
	value := UndefinedValue
	err := paramReader{b}.object("", result, func(name, _ string, v json.RawMessage) error {
		if name == "value" {
			value = v
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	return value, nil
}

// DecodeOutcome reads an Outcome. Its Value is a sub-slice of text. Fields that it does not know are passed over, since
// the service may be newer.
func DecodeOutcome(text json.RawMessage, b Bounds) (*Outcome, error) {
	o, r := &Outcome{Logs: []Log{}}, paramReader{b}
	err := r.object("outcome", text, func(name, path string, v json.RawMessage) error {
		switch name {
		case "status":
			return r.text(path, v, (*string)(&o.Status))
		case "value":
			o.Value = v
		case "error":
			return r.wrapped(path, v, &o.Error)
		case "logs":
			return r.wrapped(path, v, &o.Logs)
		case "calls":
			return r.wrapped(path, v, &o.Calls)
		case "stats":
			return r.wrapped(path, v, &o.Stats)
		case "retained":
			return r.wrapped(path, v, &o.Retained)
		}
		return nil
	})
	switch {
	case err != nil:
		return nil, err
	case o.Status == StatusOK && o.Value != nil && o.Error == nil, o.Status == StatusError && o.Error != nil && o.Value == nil:
		return o, nil
	}
	return nil, FieldError("outcome", "must have a value with status ok, or an error with status error")
}

// DecodeError reads the JSON text of an *Error that crossed a process boundary. A type that the taxonomy does not have
// is a fault.
func DecodeError(text []byte, b Bounds) (*Error, error) {
	e := &Error{}
	if err := Check(text, b); err != nil {
		return nil, err
	}
	if err := (paramReader{b}).wrapped("error", text, e); err != nil {
		return nil, err
	}
	if _, known := e.Type.Info(); !known {
		return nil, FieldError("error.type", "is no type of error: %.80q", string(e.Type))
	}
	return e, nil
}
