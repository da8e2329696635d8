package sandbox

import (
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/executord/executord/ipc/protocol"
	"github.com/executord/executord/ipc/worker"
	"github.com/executord/executord/sandbox/entry"
	"github.com/executord/executord/sandbox/v8"
)

// outcome turns a failure of the engine, or of reading the entry, into the error that the caller gets.
func (e *execution) outcome(err error) *protocol.Error {
	var v *v8.Error
	if !errors.As(err, &v) {
		p := protocol.AsError(err)
		if p.Position != nil && p.Position.File == "" {
			p.Position.File = e.request.Name
		}
		return p
	}
	if v.Kind == v8.KindMemory && v.Message == "" {
		return e.memoryError()
	}
	if v.Kind == v8.KindInput {
		return protocol.FieldError("input", "%s", v.Message)
	}
	if v.Kind == v8.KindSyntax && e.program != nil && v.File == e.request.Name {
		return e.outcome(e.program.SyntaxError(v.Message, v.Line, v.Column))
	}
	if f, ok := e.modules.fault.(*fault); ok && v.Kind == v8.KindModule && v.Message == f.Error() {
		f.typed.Position.SourceLine = e.sourceLine(f.typed.Position.File, f.typed.Position.Line)
		return f.typed
	}
	p := &protocol.Error{Type: typeOf(v), Name: v.Name, Message: v.Message, Stack: v.Stack, Cause: v.Cause, Thrown: v.Thrown}
	if v.Line > 0 {
		p.Position = &protocol.Position{File: v.File, Line: v.Line, Column: v.Column, SourceLine: e.sourceLine(v.File, v.Line)}
	}
	return p
}

// rejected words the ending of a text that cannot be read. Where it can, V8 says what is wrong with it.
func (e *execution) rejected(err error) *protocol.Error {
	var r *entry.Rejected
	if !errors.As(err, &r) || r.Probe == nil {
		return e.outcome(err)
	}
	e.program = r.Probe
	var v *v8.Error
	if !errors.As(e.iso.Compile(e.request.Name, r.Probe.Source), &v) || v.Kind != v8.KindSyntax {
		return e.outcome(err)
	}
	return e.outcome(r.Refine(v.Message, v.Line, v.Column))
}

func typeOf(v *v8.Error) protocol.Type {
	switch v.Kind {
	case v8.KindSyntax:
		return protocol.Syntax
	case v8.KindModule:
		return protocol.Module
	case v8.KindMemory:
		return protocol.MemoryLimit
	case v8.KindUnserializable:
		return protocol.ResultUnserializable
	case v8.KindTooLarge:
		return protocol.ResultTooLarge
	case v8.KindException:
		return protocol.Exception
	}
	return protocol.Internal
}

func (e *execution) sourceLine(file string, line int) string {
	if e.program != nil && file == e.request.Name {
		return e.program.SourceLine(line)
	}
	return entry.SourceLine(e.modules.sources[file], line)
}

func (e *execution) memoryError() *protocol.Error {
	return protocol.Errorf(protocol.MemoryLimit, "the program needed more memory than its %d MiB of heap and %d MiB of buffers",
		e.request.Limits.HeapBytes>>20, e.request.Limits.BufferBytes>>20)
}

// stopError words the ending of a task that was stopped.
func stopError(l worker.Limits, reason protocol.Type, detail string) *protocol.Error {
	return &protocol.Error{Type: reason, Message: stopMessage(l, reason, detail)}
}

func stopMessage(l worker.Limits, reason protocol.Type, detail string) string {
	switch reason {
	case protocol.CPUTimeout:
		return fmt.Sprintf("the program used more than its %s of CPU time", short(l.CPU))
	case protocol.WallTimeout:
		return fmt.Sprintf("the program took longer than its %s, not counting waits for tools", short(l.Wall))
	case protocol.TotalTimeout:
		return fmt.Sprintf("the program took longer than its %s in all", short(l.Total))
	case protocol.ToolLimit:
		if detail != "" {
			return detail
		}
		return fmt.Sprintf("the program made more than its %d tool calls", l.ToolCalls)
	case protocol.Cancelled:
		if detail == "" {
			return "cancelled"
		}
		return detail
	}
	return detail
}

func tooManyFetches(l worker.Limits) string {
	return fmt.Sprintf("the program made more than its %d fetches", l.Fetches)
}

func short(d time.Duration) string { return d.Round(time.Millisecond).String() }

// deadlock is the ending of a program that waits for what cannot happen.
func (e *execution) deadlock() *protocol.Error {
	p := protocol.Errorf(protocol.Deadlock, "the program waits for a promise that nothing can settle: no timer, tool call or other work is pending")
	if at := e.iso.Stalled(); at != nil && at.Line > 0 {
		p.Position = &protocol.Position{File: at.File, Line: at.Line, Column: at.Column, SourceLine: e.sourceLine(at.File, at.Line)}
	}
	return p
}

func marshalError(p *protocol.Error) []byte {
	text, err := json.Marshal(p)
	if err != nil { // a cause that is not JSON: it came from the engine, so this is our fault
		text, _ = json.Marshal(&protocol.Error{Type: p.Type, Name: p.Name, Message: p.Message, Stack: p.Stack, Position: p.Position})
	}
	return text
}
