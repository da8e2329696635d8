package pool

import (
	"bytes"
	"encoding/json"
	"errors"

	"github.com/executord/executord/ipc/protocol"
	"github.com/executord/executord/ipc/worker"
)

// errorBytes is what the JSON text of an error may have beyond the values in it, which count as a result.
const errorBytes = 1 << 20

// claims are the error types that a result may have. Cancelled needs a cancellation besides, and only the input can be
// found invalid so late: what is in its tags is not looked at before.
var claims = map[protocol.Type]bool{
	protocol.Exception: true, protocol.Syntax: true, protocol.Module: true,
	protocol.CPUTimeout: true, protocol.WallTimeout: true, protocol.TotalTimeout: true, protocol.MemoryLimit: true,
	protocol.ResultTooLarge: true, protocol.ResultUnserializable: true, protocol.ToolLimit: true,
	protocol.Deadlock: true, protocol.Cancelled: true, protocol.InvalidParams: true,
}

// The one parameter of a request, and of an invocation, that a worker may find fault with.
const (
	inputField = "input"
	argsField  = "args"
)

// blamed tells whether an error names a parameter as it may: one that is invalid, and no other.
func blamed(e *protocol.Error, invoked bool) bool {
	switch {
	case e.Type != protocol.InvalidParams:
		return e.Field == ""
	case invoked:
		return e.Field == argsField
	}
	return e.Field == inputField
}

// jsonPerPart is how many JSON values one part of a value has at most; see protocol.ValueBounds.
const jsonPerPart = 4

// bounds are those of n values in one text of so many bytes, in an array or an object around them.
func bounds(bytes int64, n int, l protocol.Limits) protocol.Bounds {
	const around = 64
	return protocol.Bounds{Bytes: int(bytes), Depth: int(l.ValueDepth) + 2, Nodes: n*jsonPerPart*int(l.ValueParts) + around}
}

// checkResult reads what a worker says an execution, or an invocation, came to: a value, or an error. The error returned is
// a violation.
func checkResult(m worker.Result, l protocol.Limits, cancelled, invoked bool) (protocol.Value, *protocol.Error, error) {
	switch {
	case (m.Value == nil) == (m.Error == nil):
		return nil, nil, violationf("a result that has not either a value or an error")
	case m.Value != nil:
		if int64(len(m.Value)) > l.ResultBytes {
			return nil, nil, overLimit(protocol.ResultTooLarge, "result of %d bytes", len(m.Value))
		}
		err := protocol.Check(m.Value, bounds(l.ResultBytes, 1, l))
		switch {
		case overBound(err):
			return nil, nil, overLimit(protocol.ResultUnserializable, "result: %v", err)
		case err != nil:
			return nil, nil, violationf("result: %v", err)
		}
		return m.Value, nil, nil
	}
	fault, err := readError(m.Error, bounds(l.ResultBytes+errorBytes, 2, l))
	switch {
	case err != nil:
		return nil, nil, violationf("error of a result: %v", err)
	case !claims[fault.Type] && !(invoked && fault.Type == protocol.HandleUnknown):
		return nil, nil, violationf("a result may not say %.40q", string(fault.Type))
	case fault.Type == protocol.Cancelled && !cancelled:
		return nil, nil, violationf("a result says cancelled, but nobody cancelled")
	case !blamed(fault, invoked):
		return nil, nil, violationf("a result may not say %.40q of %.40q", string(fault.Type), fault.Field)
	case fault.Reason != "" || fault.RetryAfterMs != 0:
		return nil, nil, violationf("an error of a result has fields that are not the worker's to fill")
	}
	return nil, fault, nil
}

// overBound tells that a text is more than its bounds allow, as far as it was read.
func overBound(err error) bool {
	var fault *protocol.TextError
	return errors.As(err, &fault) && fault.Fault == protocol.OverBound
}

// readError reads an error that has only known fields.
func readError(text []byte, b protocol.Bounds) (*protocol.Error, error) {
	if err := protocol.Check(text, b); err != nil {
		return nil, err
	}
	d := json.NewDecoder(bytes.NewReader(text))
	d.DisallowUnknownFields()
	e := &protocol.Error{}
	return e, d.Decode(e)
}
