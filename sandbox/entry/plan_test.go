package entry

import (
	"errors"
	"strings"
	"testing"

	"github.com/executord/executord/ipc/protocol"
)

// answer is an analyzer that says always the same.
func answer(plan string) Analyze {
	return func(string, string) (string, error) { return plan, nil }
}

func TestPlanCarriesOutEdits(t *testing.T) {
	for _, c := range []struct{ name, code, plan, want string }{
		{"nothing", "a\nb", `{"form":"module"}`, "a\nb"},
		{"insertions at one place keep their order", "ab", `{"form":"script","edits":[{"at":1,"text":"1"},{"at":1,"text":"2"}]}`, "a12b"},
		{"astral characters count two", "😀b", `{"form":"script","edits":[{"at":2,"text":"|"}]}`, "😀|b"},
		{"blanks keep line ends and length", "x😀\r\ny\u2028z!", `{"form":"script","edits":[{"at":0,"end":7,"fill":";"}]}`, ";  \r\n \u2028z!"},
		{"fill is no longer than its range", "abc", `{"form":"script","edits":[{"at":0,"end":1,"fill":"//"}]}`, "/bc"},
		{"tail", "a", `{"form":"script","tail":"\n}"}`, "a\n}"},
		{"bytes that are not UTF-8", "a\xff\xfeb", `{"form":"script","edits":[{"at":3,"text":"|"}]}`, "a\ufffd\ufffd|b"},
	} {
		t.Run(c.name, func(t *testing.T) {
			p, err := Plan(answer(c.plan), c.code, "")
			if err != nil || p.Source != c.want {
				t.Errorf("%v, %q, want %q", err, p.Source, c.want)
			}
		})
	}
}

func TestPlanRefuses(t *testing.T) {
	for _, c := range []struct {
		name, plan string
		form       protocol.Form
		want       protocol.Type
	}{
		{"a form that does not exist", `{"form":"module"}`, "commonjs", protocol.InvalidParams},
		{"no JSON", `{`, "", protocol.Internal},
		{"no form", `{}`, "", protocol.Internal},
		{"an edit beyond the end", `{"form":"script","edits":[{"at":9,"text":"x"}]}`, "", protocol.Internal},
		{"an edit that ends before it begins", `{"form":"script","edits":[{"at":1,"end":0}]}`, "", protocol.Internal},
		{"edits out of order", `{"form":"script","edits":[{"at":2,"text":"x"},{"at":1,"text":"y"}]}`, "", protocol.Internal},
		{"an insertion with a line end", `{"form":"script","edits":[{"at":0,"text":"x\n"}]}`, "", protocol.Internal},
		{"a negative place", `{"form":"script","edits":[{"at":-1,"text":"x"}]}`, "", protocol.Internal},
		{"a syntax error", `{"form":"script","error":{"message":"m","at":99}}`, "", protocol.Syntax},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, err := Plan(answer(c.plan), "abc", c.form)
			if !errors.Is(err, c.want) {
				t.Errorf("%v, want %s", err, c.want)
			}
		})
	}
	_, err := Plan(func(string, string) (string, error) { return "", errors.New("stopped") }, "", "")
	if !errors.Is(err, protocol.Internal) {
		t.Error(err)
	}
}

func TestRefineTrustsTheEngineWithinReason(t *testing.T) {
	const edits = `"edits":[{"at":0,"text":"export default async () => {"}],"tail":"\n}"`
	reject := func(t *testing.T, code, fault string) *Rejected {
		t.Helper()
		_, err := Plan(answer(`{"form":"script",`+edits+`,"error":`+fault+`}`), code, "")
		var r *Rejected
		if !errors.As(err, &r) || r.Probe == nil {
			t.Fatal(err)
		}
		return r
	}
	for _, c := range []struct {
		name, code, fault, message string
		line, column               int
		want                       string
		wantLine, wantColumn       int
	}{
		{"its own words", "let y = ;", `{"message":"m","at":8,"probe":true}`, "SyntaxError: Unexpected token ';'", 1, 9, "Unexpected token ';' (read as a script)", 1, 9},
		{"with a hint", "let y = ;", `{"message":"m","at":8,"probe":true,"hint":"module"}`, "x", 1, 9, "x (read as a script; it can be read as a module)", 1, 9},
		{"behind a closed form", "a }; b(", `{"message":"m","at":2,"probe":true}`, "Unexpected end of input", 1, 8, "Unexpected token '}' (read as a script)", 1, 3},
		{"nothing found", "let x", `{"message":"m","at":4,"probe":true}`, "Duplicate export of 'executor:probe'", 1, 1, "m (read as a script)", 1, 5},
		{"the token behind the text", "[1,", `{"message":"m","at":3,"probe":true}`, "Unexpected token '}'", 1, 4, "Unexpected end of input (read as a script)", 1, 4},
		{"no place", "let x", `{"message":"m","at":4,"probe":true}`, "x", 0, 0, "x (read as a script)", 1, 1},
	} {
		t.Run(c.name, func(t *testing.T) {
			e := reject(t, c.code, c.fault).Refine(c.message, c.line, c.column)
			if e.Message != c.want || e.Position.Line != c.wantLine || e.Position.Column != c.wantColumn {
				t.Errorf("%s at %+v", e.Message, e.Position)
			}
		})
	}
}

func TestSourceLine(t *testing.T) {
	long := strings.Repeat("é", maxSourceLine+1)
	p, err := Plan(answer(`{"form":"module"}`), "one\r\n\ntwo\u2028"+long, "")
	if err != nil {
		t.Fatal(err)
	}
	for line, want := range map[int]string{-1: "", 0: "", 1: "one", 2: "", 3: "two", 4: strings.Repeat("é", maxSourceLine) + "…", 5: ""} {
		if got := p.SourceLine(line); got != want {
			t.Errorf("line %d is %q", line, got)
		}
	}
}
