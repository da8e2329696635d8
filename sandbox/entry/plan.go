package entry

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/executord/executord/ipc/protocol"
)

// plan is what the analyzer says. Offsets are UTF-16 units of the submitted text. sandbox/runtime/analyze/forms.js
// describes it.
type plan struct {
	Form    protocol.Form `json:"form"`
	Imports []struct {
		Specifier string `json:"specifier"`
		At        int    `json:"at"`
	} `json:"imports"`
	Edits []edit   `json:"edits"`
	Tail  string   `json:"tail"`
	Error *refusal `json:"error"`
}

// edit inserts Text at At, or, where End is set, puts Fill and then spaces over what is there, line ends kept.
type edit struct {
	At   int    `json:"at"`
	Text string `json:"text"`
	From *int   `json:"from"` // place that an inserted text stands for; nil: At
	End  *int   `json:"end"`
	Fill string `json:"fill"`
}

// refusal says that the text cannot be read in the form, and why.
type refusal struct {
	Message string        `json:"message"`
	At      int           `json:"at"`
	Hint    protocol.Form `json:"hint"`  // another form in which it can be read
	Probe   bool          `json:"probe"` // the edits make a text in which the engine will find the same error

	TypeScript bool `json:"typescript"` // the text, sent as JavaScript, can be read as TypeScript
}

func decodePlan(planJSON string) (*plan, error) {
	var p plan
	if err := json.Unmarshal([]byte(planJSON), &p); err != nil {
		return nil, err
	}
	switch p.Form {
	case protocol.FormModule, protocol.FormFunction, protocol.FormScript:
		return &p, nil
	}
	return nil, fmt.Errorf("form %q", p.Form)
}

// insert is a text that was put into a line of the submitted text.
type insert struct {
	column int // in the submitted line, units from 0
	length int // units
	from   int // offset of the place it stands for
}

// apply makes the program: the text with the edits carried out.
func (pl *plan) apply(t *text) (*Program, error) {
	p := &Program{Form: pl.Form, text: t, inserts: map[int][]insert{}}
	var out strings.Builder
	out.Grow(len(t.code) + 256)
	at := cursor{text: t}
	for _, e := range pl.Edits {
		if err := e.check(at.units, t.units); err != nil {
			return nil, err
		}
		out.WriteString(at.advance(e.At))
		if e.End != nil {
			writeBlank(&out, at.advance(*e.End), e.Fill)
			continue
		}
		out.WriteString(e.Text)
		p.note(e)
	}
	out.WriteString(at.advance(t.units))
	out.WriteString(pl.Tail)
	p.Source = out.String()
	for _, i := range pl.Imports {
		line, column := t.position(i.At)
		p.Imports = append(p.Imports, Import{i.Specifier, line, column})
	}
	return p, nil
}

// note remembers an insertion for Map.
func (p *Program) note(e edit) {
	line, column := p.text.position(e.At)
	from := e.At
	if e.From != nil {
		from = *e.From
	}
	p.inserts[line] = append(p.inserts[line], insert{column - 1, unitsOf(e.Text), from})
}

var errEdit = errors.New("an edit is out of order or out of bounds")

func (e edit) check(done, end int) error {
	if e.At < done || e.At > end || (e.End != nil && (*e.End < e.At || *e.End > end)) {
		return errEdit
	}
	// A line end would move every line below it.
	if strings.ContainsAny(e.Text+e.Fill, "\n\r\u2028\u2029") {
		return errors.New("an edit has a line end in it")
	}
	return nil
}

// writeBlank writes as many units as text has: fill (ASCII), then spaces; line ends stay.
func writeBlank(out *strings.Builder, text, fill string) {
	for _, r := range text {
		if isLineEnd(r) {
			out.WriteRune(r)
			continue
		}
		for range unitLen(r) {
			c := byte(' ')
			if fill != "" {
				c, fill = fill[0], fill[1:]
			}
			out.WriteByte(c)
		}
	}
}
