package protocol

import (
	"encoding/json"
	"math"
	"strconv"
)

// The functions of this file append JSON text to a buffer and paste raw fields as they are, without looking at them:
// whoever filled those has passed them through Check. Strings become valid UTF-8 whatever they hold.

// UndefinedValue is the encoding of undefined. Treat it as read-only.
var UndefinedValue = Value(`{"@undefined":true}`)

// codeThrown is the JSON-RPC code of a tool's failure; what matters is in its data.
const codeThrown = -32000

// AppendRequest appends a request. Nil params are left out.
func AppendRequest(dst []byte, id json.RawMessage, method string, params json.RawMessage) []byte {
	dst = append(append(dst, `{"jsonrpc":"2.0","id":`...), id...)
	return appendCall(append(dst, ','), method, params)
}

// AppendNotification appends a notification. Nil params are left out.
func AppendNotification(dst []byte, method string, params json.RawMessage) []byte {
	return appendCall(append(dst, `{"jsonrpc":"2.0",`...), method, params)
}

func appendCall(dst []byte, method string, params json.RawMessage) []byte {
	dst = appendString(append(dst, `"method":`...), method)
	dst = appendRaw(dst, `,"params":`, params)
	return append(dst, '}')
}

// AppendResult appends a response that succeeded.
func AppendResult(dst []byte, id, result json.RawMessage) []byte {
	dst = append(appendResultHead(dst, id), orNull(result)...)
	return append(dst, '}')
}

func appendResultHead(dst []byte, id json.RawMessage) []byte {
	dst = append(append(dst, `{"jsonrpc":"2.0","id":`...), orNull(id)...)
	return append(dst, `,"result":`...)
}

func orNull(raw json.RawMessage) json.RawMessage {
	if raw == nil {
		return json.RawMessage("null")
	}
	return raw
}

// AppendOutcomeResult appends a response whose result is o.
func AppendOutcomeResult(dst []byte, id json.RawMessage, o *Outcome) []byte {
	return append(AppendOutcome(appendResultHead(dst, id), o), '}')
}

// Text is a message in parts, which follow one another. A large value is a part of its own, to be sent from where it is.
type Text [][]byte

// apartBytes is the size from which a value is a part of its own.
const apartBytes = 32 << 10

// Len is the number of bytes of all parts.
func (t Text) Len() (n int) {
	for _, part := range t {
		n += len(part)
	}
	return n
}

// OutcomeResult is AppendOutcomeResult in parts.
func OutcomeResult(id json.RawMessage, o *Outcome) Text {
	if o.Status != StatusOK || len(o.Value) < apartBytes {
		return Text{AppendOutcomeResult(nil, id, o)}
	}
	return Text{appendOutcomeHead(appendResultHead(nil, id), o), o.Value, append(appendOutcomeRest(nil, o), '}')}
}

// AppendToolResult appends the answer to a tool.call; a nil value is undefined.
func AppendToolResult(dst []byte, id json.RawMessage, value Value) []byte {
	dst = append(appendResultHead(dst, id), `{"value":`...)
	return append(append(dst, orUndefined(value)...), '}', '}')
}

func orUndefined(v Value) Value {
	if v == nil {
		return UndefinedValue
	}
	return v
}

// AppendError appends a response that failed. The id is null where nil, for a request whose id is not known.
func AppendError(dst []byte, id json.RawMessage, e *Error) []byte {
	info, ok := e.Type.Info()
	if !ok {
		info, _ = Internal.Info()
	}
	dst = appendErrorHead(dst, id, info.Code, e.Message)
	dst = appendString(append(dst, `{"type":`...), string(info.Type))
	dst = strconv.AppendBool(append(dst, `,"retryable":`...), info.Retryable)
	return append(appendErrorFields(dst, e), '}', '}', '}')
}

// AppendThrown appends the answer to a tool.call that failed.
func AppendThrown(dst []byte, id json.RawMessage, t *ThrownError) []byte {
	dst = appendErrorHead(dst, id, codeThrown, t.Message)
	return append(AppendThrownError(dst, t), '}', '}')
}

// AppendThrownError appends t by itself.
func AppendThrownError(dst []byte, t *ThrownError) []byte {
	dst = appendString(append(dst, `{"message":`...), t.Message)
	dst = appendField(dst, `,"name":`, t.Name)
	dst = appendField(dst, `,"code":`, t.Code)
	dst = appendRaw(dst, `,"thrown":`, t.Thrown)
	return append(dst, '}')
}

func appendErrorHead(dst []byte, id json.RawMessage, code int, message string) []byte {
	dst = append(append(dst, `{"jsonrpc":"2.0","id":`...), orNull(id)...)
	dst = strconv.AppendInt(append(dst, `,"error":{"code":`...), int64(code), 10)
	dst = appendString(append(dst, `,"message":`...), message)
	return append(dst, `,"data":`...)
}

// appendErrorFields appends all fields of e but its type and message, each after a comma.
func appendErrorFields(dst []byte, e *Error) []byte {
	dst = appendField(dst, `,"name":`, e.Name)
	dst = appendField(dst, `,"stack":`, e.Stack)
	dst = appendRaw(dst, `,"cause":`, e.Cause)
	dst = appendRaw(dst, `,"thrown":`, e.Thrown)
	if p := e.Position; p != nil {
		dst = appendString(append(dst, `,"position":{"file":`...), p.File)
		dst = strconv.AppendInt(append(dst, `,"line":`...), int64(p.Line), 10)
		dst = strconv.AppendInt(append(dst, `,"column":`...), int64(p.Column), 10)
		dst = append(appendField(dst, `,"sourceLine":`, p.SourceLine), '}')
	}
	dst = appendField(dst, `,"reason":`, e.Reason)
	dst = appendField(dst, `,"field":`, e.Field)
	if e.RetryAfterMs != 0 {
		dst = strconv.AppendInt(append(dst, `,"retryAfterMs":`...), e.RetryAfterMs, 10)
	}
	return dst
}

// appendField appends a string unless it is empty.
func appendField(dst []byte, name, s string) []byte {
	if s == "" {
		return dst
	}
	return appendString(append(dst, name...), s)
}

// appendRaw appends a raw value unless it is nil.
func appendRaw(dst []byte, name string, raw json.RawMessage) []byte {
	if raw == nil {
		return dst
	}
	return append(append(dst, name...), raw...)
}

// AppendOutcome appends the JSON text of o. A nil Value with StatusOK is undefined.
func AppendOutcome(dst []byte, o *Outcome) []byte {
	dst = appendOutcomeHead(dst, o)
	if o.Status == StatusOK {
		dst = append(dst, orUndefined(o.Value)...)
	}
	return appendOutcomeRest(dst, o)
}

// appendOutcomeHead appends what comes before the value.
func appendOutcomeHead(dst []byte, o *Outcome) []byte {
	dst = appendString(append(dst, `{"status":`...), string(o.Status))
	if o.Status == StatusOK {
		dst = append(dst, `,"value":`...)
	}
	return dst
}

func appendOutcomeRest(dst []byte, o *Outcome) []byte {
	if e := o.Error; e != nil {
		dst = appendString(append(dst, `,"error":{"type":`...), string(e.Type))
		dst = appendString(append(dst, `,"message":`...), e.Message)
		dst = append(appendErrorFields(dst, e), '}')
	}
	dst = append(dst, `,"logs":[`...)
	for i := range o.Logs {
		dst = append(appendLog(append(comma(dst, i), '{'), &o.Logs[i]), '}')
	}
	dst = append(dst, ']')
	if len(o.Calls) > 0 {
		dst = append(dst, `,"calls":[`...)
		for i := range o.Calls {
			dst = appendToolCall(comma(dst, i), &o.Calls[i])
		}
		dst = append(dst, ']')
	}
	dst = appendStats(dst, &o.Stats)
	if r := o.Retained; r != nil {
		dst = appendString(append(dst, `,"retained":{"id":`...), r.ID)
		dst = strconv.AppendUint(append(dst, `,"handles":`...), r.Handles, 10)
		dst = strconv.AppendInt(append(dst, `,"idleMs":`...), r.IdleMs, 10)
		dst = append(strconv.AppendInt(append(dst, `,"ttlMs":`...), r.TTLMs, 10), '}')
	}
	return append(dst, '}')
}

func appendToolCall(dst []byte, c *Call) []byte {
	if c.Omitted != 0 {
		return append(strconv.AppendInt(append(dst, `{"omitted":`...), c.Omitted, 10), '}')
	}
	dst = strconv.AppendUint(append(dst, `{"call":`...), c.Call, 10)
	dst = appendString(append(dst, `,"provider":`...), c.Provider)
	dst = appendStrings(append(dst, `,"path":`...), c.Path)
	dst = appendField(dst, `,"status":`, string(c.Status))
	if c.Ms != 0 {
		dst = appendFloat(append(dst, `,"ms":`...), c.Ms)
	}
	return append(dst, '}')
}

// appendLog appends the members of l.
func appendLog(dst []byte, l *Log) []byte {
	dst = appendString(append(dst, `"level":`...), string(l.Level))
	dst = appendFloat(append(dst, `,"time":`...), l.Time)
	dst = appendString(append(dst, `,"text":`...), l.Text)
	if len(l.Args) > 0 {
		dst = append(dst, `,"args":[`...)
		for i, arg := range l.Args {
			dst = append(comma(dst, i), orUndefined(arg)...)
		}
		dst = append(dst, ']')
	}
	if t := l.Truncated; t != nil {
		dst = strconv.AppendInt(append(dst, `,"truncated":{"lines":`...), t.Lines, 10)
		dst = strconv.AppendInt(append(dst, `,"bytes":`...), t.Bytes, 10)
		dst = append(dst, '}')
	}
	return dst
}

func appendStats(dst []byte, s *Stats) []byte {
	dst = appendFloat(append(dst, `,"stats":{"queueMs":`...), s.QueueMs)
	dst = appendFloat(append(dst, `,"wallMs":`...), s.WallMs)
	dst = appendFloat(append(dst, `,"totalMs":`...), s.TotalMs)
	dst = appendFloat(append(dst, `,"cpuMs":`...), s.CPUMs)
	dst = strconv.AppendInt(append(dst, `,"peakHeapBytes":`...), s.PeakHeapBytes, 10)
	dst = strconv.AppendInt(append(dst, `,"toolCalls":`...), s.ToolCalls, 10)
	dst = strconv.AppendInt(append(dst, `,"fetches":`...), s.Fetches, 10)
	dst = appendField(dst, `,"worker":`, s.Worker)
	if s.Limits != nil {
		dst = appendLimits(append(dst, `,"limits":`...), s.Limits)
	}
	return append(dst, '}')
}

func appendLimits(dst []byte, l *Limits) []byte {
	dst = append(dst, '{')
	n := 0
	for _, f := range limits {
		if v := *f.at(l); v != 0 {
			dst = append(append(append(comma(dst, n), '"'), f.name...), `":`...)
			dst = strconv.AppendInt(dst, v, 10)
			n++
		}
	}
	return append(dst, '}')
}

// appendFloat appends f; what JSON cannot say becomes 0.
func appendFloat(dst []byte, f float64) []byte {
	if math.IsNaN(f) || math.IsInf(f, 0) {
		f = 0
	}
	return strconv.AppendFloat(dst, f, 'g', -1, 64)
}

// AppendToolCall appends the tool.call request c.
func AppendToolCall(dst []byte, id json.RawMessage, c *ToolCallParams) []byte {
	dst = appendToolCallHead(dst, id, c)
	if c.Args == nil {
		dst = append(dst, `[]`...)
	}
	return append(append(dst, c.Args...), '}', '}')
}

// ToolCallRequest is AppendToolCall in parts.
func ToolCallRequest(id json.RawMessage, c *ToolCallParams) Text {
	if len(c.Args) < apartBytes {
		return Text{AppendToolCall(nil, id, c)}
	}
	return Text{appendToolCallHead(nil, id, c), c.Args, []byte(`}}`)}
}

// appendToolCallHead appends what comes before the arguments.
func appendToolCallHead(dst []byte, id json.RawMessage, c *ToolCallParams) []byte {
	dst = append(append(dst, `{"jsonrpc":"2.0","id":`...), id...)
	dst = appendString(append(dst, `,"method":"`+MethodToolCall+`","params":{"execution":`...), c.Execution)
	dst = strconv.AppendUint(append(dst, `,"call":`...), c.Call, 10)
	dst = appendString(append(dst, `,"provider":`...), c.Provider)
	dst = appendStrings(append(dst, `,"path":`...), c.Path)
	return append(dst, `,"args":`...)
}

// AppendLogNotification appends an execution.log notification.
func AppendLogNotification(dst []byte, l *LogParams) []byte {
	dst = append(dst, `{"jsonrpc":"2.0","method":"`+MethodExecutionLog+`","params":{"execution":`...)
	dst = append(appendString(dst, l.Execution), ',')
	return append(appendLog(dst, &l.Log), '}', '}')
}

// AppendAck appends the notification session.ack.
func AppendAck(dst []byte, received uint64) []byte {
	dst = append(dst, `{"jsonrpc":"2.0","method":"session.ack","params":{"received":`...)
	return append(strconv.AppendUint(dst, received, 10), '}', '}')
}
