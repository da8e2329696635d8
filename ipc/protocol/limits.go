package protocol

import (
	"encoding/json"
	"strconv"
)

// MaxLimit is the largest number that a limit may have: the largest integer that every JSON reader keeps exactly.
const MaxLimit = 1<<53 - 1

// field returns where the limit of that wire name is kept, nil when there is none.
func (l *Limits) field(name string) *int64 {
	switch name {
	case "cpuMs":
		return &l.CPUMs
	case "wallMs":
		return &l.WallMs
	case "totalMs":
		return &l.TotalMs
	case "heapMiB":
		return &l.HeapMiB
	case "bufferMiB":
		return &l.BufferMiB
	case "resultBytes":
		return &l.ResultBytes
	case "logBytes":
		return &l.LogBytes
	case "logLines":
		return &l.LogLines
	case "toolCalls":
		return &l.ToolCalls
	case "fetches":
		return &l.Fetches
	case "fetchBytes":
		return &l.FetchBytes
	}
	return nil
}

// limitNames are the wire names of all limits.
var limitNames = []string{
	"cpuMs", "wallMs", "totalMs", "heapMiB", "bufferMiB", "resultBytes", "logBytes", "logLines", "toolCalls",
	"fetches", "fetchBytes",
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
		p := into.field(name)
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
	for _, name := range limitNames {
		if n := *l.field(name); n < 0 || n > MaxLimit {
			return FieldError(path+"."+name, "must be from 1 to %d, not %d", int64(MaxLimit), n)
		}
	}
	return nil
}
