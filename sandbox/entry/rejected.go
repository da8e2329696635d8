package entry

import (
	"fmt"
	"strings"

	"github.com/executord/executord/ipc/protocol"
)

// Rejected is the error of Plan for a text that cannot be read.
type Rejected struct {
	// Probe is a text for the engine to compile: the submitted text in the opening of its form, so that the engine finds
	// the error itself and the words and the place are its own. It never compiles, so it never runs. Nil where only the
	// analyzer can say what is wrong. Give what the engine says to Refine.
	Probe *Program

	fault *protocol.Error
	text  *text
	at    int // offset of what the analyzer objects to
	form  protocol.Form
	hint  protocol.Form
	typed bool // it can be read as TypeScript
}

func reject(p *Program, r *refusal) *Rejected {
	rejected := &Rejected{text: p.text, at: min(max(r.At, 0), p.text.units), form: p.Form, hint: r.Hint, typed: r.TypeScript}
	if r.Probe {
		rejected.Probe = p
	}
	line, column := p.text.position(r.At)
	rejected.fault = rejected.error(r.Message, line, column)
	return rejected
}

func (r *Rejected) Error() string { return r.fault.Error() }

// Unwrap returns the *protocol.Error of type syntax. Its Position has no File: the caller knows the name.
func (r *Rejected) Unwrap() error { return r.fault }

// Refine returns the error in the engine's words about Probe: its message, and its place as Probe.Map gives it. Where
// these cannot be trusted the error is the analyzer's.
func (r *Rejected) Refine(message string, line, column int) *protocol.Error {
	line, column = min(max(line, 1), len(r.text.lines)), max(column, 1)
	place := r.text.lines[line-1].unit + column - 1
	foundNone := strings.Contains(message, probeFault)
	switch {
	case r.closes() && (foundNone || place != r.at):
		// The text closes what it was put into, and the engine went on behind that.
		atLine, atColumn := r.text.position(r.at)
		return r.error("Unexpected token '"+r.text.unitAt(r.at)+"'", atLine, atColumn)
	case foundNone, strings.Contains(message, defaultFault):
		return r.fault
	case place >= r.text.units && strings.HasPrefix(stripName(message), "Unexpected token "):
		message = "Unexpected end of input" // the token is one that was put behind the text
	}
	return r.error(message, line, column)
}

const (
	probeFault   = "'executor:probe'" // the engine has read everything and found no fault but the probe's own
	defaultFault = "'.default'"       // a name inside the engine: two default exports
)

// closes tells whether the analyzer objects to a closing bracket.
func (r *Rejected) closes() bool {
	c := r.text.unitAt(r.at)
	return c == "}" || c == ")" || c == "]"
}

func (r *Rejected) error(message string, line, column int) *protocol.Error {
	note := "read as a " + string(r.form)
	switch {
	case fences.MatchString(r.text.code):
		note += fenceHint
	case r.hint != "":
		note += "; it can be read as a " + string(r.hint)
	case r.typed:
		note += `; it is TypeScript: send it with language "typescript"`
	default:
		note += mistaken(r.text.code)
	}
	return syntaxError(r.text, message, note, line, column)
}

// SyntaxError makes the error for what the engine says when it compiles Source: its message, and its place as Map gives
// it.
func (p *Program) SyntaxError(message string, line, column int) *protocol.Error {
	return syntaxError(p.text, message, "read as a "+string(p.Form), line, column)
}

func syntaxError(t *text, message, note string, line, column int) *protocol.Error {
	return &protocol.Error{
		Type: protocol.Syntax, Name: "SyntaxError", Message: fmt.Sprintf("%s (%s)", stripName(message), note),
		Position: &protocol.Position{Line: line, Column: column, SourceLine: t.sourceLine(line)},
	}
}

// stripName takes off what an engine may put before its message.
func stripName(message string) string {
	return strings.TrimPrefix(strings.TrimPrefix(message, "Uncaught "), "SyntaxError: ")
}
