// Package entry turns a submitted text into the ES module that the engine runs, by the entry forms of the executor
// protocol, and turns places in that module back into places in the submitted text.
//
// Package sandbox calls it once per execution, before the guest's isolate is touched. It never runs the text: the
// analyzer of sandbox/runtime, which it is given as a function, only parses. It must never edit a text that was not
// parsed as a whole, for then the text could close what is put around it. Results are immutable; Plan and the methods
// of Program may be used by any goroutine as far as the Analyze function may.
package entry

import (
	"github.com/executord/executord/ipc/protocol"
)

// Analyze parses code and returns a plan as JSON text: what runtime.AnalyzerSource evaluates to, run where no guest
// code runs. An error means that the analyzer itself failed.
type Analyze func(code, form string) (planJSON string, err error)

// Program is a submitted text made ready to run: an ES module text whose lines are those of the submitted text. That of
// a TypeScript text is TypeScript still.
type Program struct {
	Form    protocol.Form // the form it was read in: never auto
	Source  string        // text of the ES module
	Imports []Import      // what it imports statically, in order

	text    *text
	inserts map[int][]insert // by line
}

// Import is one static import of a program.
type Import struct {
	Specifier    string
	Line, Column int // in the submitted text, from 1
}

// Call tells whether the module's default export was made by the form and must be called with the input. If not, the
// text is a module of the author's own, and only a function that it exports is called.
func (p *Program) Call() bool { return p.Form != protocol.FormModule }

// Plan reads code in the given form; the empty form is auto. What cannot be read is refused with a *Rejected, in which
// errors.As finds a *protocol.Error of type syntax. A form that does not exist is invalid_params, a failing analyzer
// internal.
func Plan(analyze Analyze, code string, form protocol.Form) (*Program, error) {
	return read(analyze, code, form, "")
}

// PlanTypeScript is Plan for a text in TypeScript.
func PlanTypeScript(analyze Analyze, code string, form protocol.Form) (*Program, error) {
	return read(analyze, code, form, ".ts")
}

func read(analyze Analyze, code string, form protocol.Form, suffix string) (*Program, error) {
	if form == "" {
		form = protocol.FormAuto
	}
	switch form {
	case protocol.FormAuto, protocol.FormModule, protocol.FormFunction, protocol.FormScript:
	default:
		return nil, protocol.FieldError("form", "cannot read the code as %q: forms are auto, module, function and script", form)
	}
	t := newText(code)
	if fenced.MatchString(t.code) {
		return nil, fence(t, form)
	}
	planJSON, err := analyze(t.code, string(form)+suffix)
	if err != nil {
		return nil, protocol.Errorf(protocol.Internal, "cannot analyze the code: %v", err)
	}
	pl, err := decodePlan(planJSON)
	if err != nil {
		return nil, protocol.Errorf(protocol.Internal, "cannot read the analyzer's plan: %v", err)
	}
	p, err := pl.apply(t)
	if err != nil {
		return nil, protocol.Errorf(protocol.Internal, "cannot carry out the analyzer's plan: %v", err)
	}
	if pl.Error != nil {
		return nil, reject(p, pl.Error)
	}
	return p, nil
}
