package protocol

import (
	"encoding/json"
	"strconv"
)

// MaxLimit is the largest number that a limit may have: the largest integer that every JSON reader keeps exactly.
const MaxLimit = 1<<53 - 1

// limit is one field of Limits.
type limit struct {
	name string // on the wire
	at   func(*Limits) *int64
}

// limits are all fields of Limits, in their order.
var limits = []limit{
	{"cpuMs", func(l *Limits) *int64 { return &l.CPUMs }},
	{"wallMs", func(l *Limits) *int64 { return &l.WallMs }},
	{"totalMs", func(l *Limits) *int64 { return &l.TotalMs }},
	{"heapMiB", func(l *Limits) *int64 { return &l.HeapMiB }},
	{"bufferMiB", func(l *Limits) *int64 { return &l.BufferMiB }},
	{"slackMiB", func(l *Limits) *int64 { return &l.SlackMiB }},
	{"stackKiB", func(l *Limits) *int64 { return &l.StackKiB }},
	{"resultBytes", func(l *Limits) *int64 { return &l.ResultBytes }},
	{"messageBytes", func(l *Limits) *int64 { return &l.MessageBytes }},
	{"moduleBytes", func(l *Limits) *int64 { return &l.ModuleBytes }},
	{"valueDepth", func(l *Limits) *int64 { return &l.ValueDepth }},
	{"valueParts", func(l *Limits) *int64 { return &l.ValueParts }},
	{"logBytes", func(l *Limits) *int64 { return &l.LogBytes }},
	{"logLines", func(l *Limits) *int64 { return &l.LogLines }},
	{"toolCalls", func(l *Limits) *int64 { return &l.ToolCalls }},
	{"toolCallsInFlight", func(l *Limits) *int64 { return &l.ToolCallsInFlight }},
	{"fetches", func(l *Limits) *int64 { return &l.Fetches }},
	{"fetchBytes", func(l *Limits) *int64 { return &l.FetchBytes }},
	{"timers", func(l *Limits) *int64 { return &l.Timers }},
}

// Field returns where the limit of that wire name is kept, nil when there is none.
func (l *Limits) Field(name string) *int64 {
	for _, f := range limits {
		if f.name == name {
			return f.at(l)
		}
	}
	return nil
}

// LimitNames are the wire names of all limits, in the order of the fields.
func LimitNames() []string {
	names := make([]string, len(limits))
	for i, f := range limits {
		names[i] = f.name
	}
	return names
}

// UnmarshalJSON refuses a limit that is zero, negative, fractional or over MaxLimit with an *Error of type
// invalid_params. It passes over limits that it does not know, because the service reports its limits to clients older
// than itself; in the params of a request they are refused.
func (l *Limits) UnmarshalJSON(text []byte) error {
	return paramReader{ValueBounds}.limits("", text, l, false)
}

// limits reads the field at path; strict refuses unknown limits.
func (r paramReader) limits(path string, raw json.RawMessage, into *Limits, strict bool) error {
	*into = Limits{}
	return r.object(path, raw, func(name, path string, v json.RawMessage) error {
		p := into.Field(name)
		if p == nil {
			if strict {
				return unknownField(path)
			}
			return nil
		}
		return r.positive(path, v, p)
	})
}

// positive reads a whole number from 1 to MaxLimit, in any of the ways that JSON can write it.
func (r paramReader) positive(path string, raw json.RawMessage, into *int64) error {
	if raw[0] != '-' && raw[0]-'0' > 9 {
		return FieldError(path, "must be a number")
	}
	n, err := strconv.ParseInt(string(raw), 10, 64)
	if err != nil {
		f, _ := strconv.ParseFloat(string(raw), 64)
		if n = int64(f); float64(n) != f {
			return FieldError(path, "must be a whole number, not %.40s", raw)
		}
	}
	if n < 1 || n > MaxLimit {
		return FieldError(path, "must be from 1 to %d, not %.40s", int64(MaxLimit), raw)
	}
	*into = n
	return nil
}

func (l *Limits) validate(path string) error {
	for _, f := range limits {
		if n := *f.at(l); n < 0 || n > MaxLimit {
			return FieldError(path+"."+f.name, "must be from 1 to %d, not %d", int64(MaxLimit), n)
		}
	}
	return nil
}
