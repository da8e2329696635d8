package entry_test

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"flag"
	"os"
	"strings"
	"testing"

	"github.com/executord/executord/ipc/protocol"
	"github.com/executord/executord/sandbox/entry"
	"github.com/executord/executord/sandbox/runtime/guesttest"
)

var update = flag.Bool("update", false, "write what the programs of testdata come to now into testdata")

func TestMain(m *testing.M) { guesttest.Main(m) }

// entryCase is one line of testdata/cases.jsonl.
type entryCase struct {
	Name   string        `json:"name"`
	Form   protocol.Form `json:"form,omitempty"` // asked for; auto when empty
	Code   string        `json:"code"`
	Expect expectation   `json:"expect"`
}

// expectation is what comes of a case: a value, a syntax error, or an error of the run.
type expectation struct {
	Form   protocol.Form   `json:"form,omitempty"`   // in which it was read
	Value  json.RawMessage `json:"value,omitempty"`  // encoded
	Syntax string          `json:"syntax,omitempty"` // message of a syntax error
	Error  string          `json:"error,omitempty"`  // message of any other error
	Line   int             `json:"line,omitempty"`
	Column int             `json:"column,omitempty"`
}

const casesFile = "testdata/cases.jsonl"

// modules that the programs of the cases may import.
var modules = map[string]string{"dep": "export const two = 2; export default 5;", "data": "export default { k: 1 };"}

// TestCases runs each program in the real engine, through the real analyzer.
func TestCases(t *testing.T) {
	cases := readCases(t)
	if len(cases) < 60 {
		t.Fatalf("%d cases", len(cases))
	}
	for i, c := range cases {
		t.Run(c.Name, func(t *testing.T) {
			got := expectationOf(guesttest.Execute(t, guesttest.Program{Code: c.Code, Form: c.Form, Input: `{"n":7}`, Modules: modules}))
			cases[i].Expect = got
			a, b := encode(t, got), encode(t, c.Expect)
			if !*update && a != b {
				t.Errorf("%q comes to\n%s\nwant\n%s", c.Code, a, b)
			}
		})
	}
	if *update {
		writeCases(t, cases)
	}
}

func expectationOf(o *guesttest.Outcome) expectation {
	if s := o.Syntax(); s != nil {
		return expectation{Syntax: s.Message, Line: s.Position.Line, Column: s.Position.Column}
	}
	if o.Err != nil {
		x := expectation{Form: o.Form, Error: o.Err.Error()}
		x.Line, x.Column = guesttest.Place(o.Err)
		return x
	}
	return expectation{Form: o.Form, Value: json.RawMessage(o.Value)}
}

func encode(t *testing.T, v any) string {
	t.Helper()
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		t.Fatal(err)
	}
	return strings.TrimSuffix(b.String(), "\n")
}

func readCases(t *testing.T) []entryCase {
	t.Helper()
	f, err := os.Open(casesFile)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	var cases []entryCase
	seen := map[string]bool{}
	for lines := bufio.NewScanner(f); lines.Scan(); {
		var c entryCase
		d := json.NewDecoder(bytes.NewReader(lines.Bytes()))
		d.DisallowUnknownFields()
		if err := d.Decode(&c); err != nil {
			t.Fatalf("%s: %v", lines.Text(), err)
		}
		if seen[c.Name] {
			t.Fatalf("%s is there twice", c.Name)
		}
		seen[c.Name] = true
		cases = append(cases, c)
	}
	return cases
}

func writeCases(t *testing.T, cases []entryCase) {
	t.Helper()
	var out strings.Builder
	for _, c := range cases {
		out.WriteString(encode(t, c) + "\n")
	}
	if err := os.WriteFile(casesFile, []byte(out.String()), 0o644); err != nil {
		t.Fatal(err)
	}
}

// TestImportsAreNamedWithTheirPlaces looks at what a program says about its imports.
func TestImportsAreNamedWithTheirPlaces(t *testing.T) {
	for _, c := range []struct {
		name, code string
		want       []entry.Import
	}{
		{"script", "1;\nimport a from 'x';  import 'y'\n", []entry.Import{{Specifier: "x", Line: 2, Column: 15}, {Specifier: "y", Line: 2, Column: 28}}},
		{"function", "/* 😀 */ import 'x'; () => 1", []entry.Import{{Specifier: "x", Line: 1, Column: 17}}},
		{"module", "import 'x';\nexport * from \"y\";\nexport const z = 1;", []entry.Import{{Specifier: "x", Line: 1, Column: 8}, {Specifier: "y", Line: 2, Column: 15}}},
		{"none", "import('x')", nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			p, err := entry.Plan(guesttest.Analyze, c.code, protocol.FormAuto)
			if err != nil {
				t.Fatal(err)
			}
			if a, b := encode(t, p.Imports), encode(t, c.want); a != b {
				t.Errorf("got %s, want %s", a, b)
			}
		})
	}
}

// TestProbesNeverRun compiles texts that close what they are put into: none of them may come to run.
func TestProbesNeverRun(t *testing.T) {
	for _, form := range []protocol.Form{protocol.FormAuto, protocol.FormModule, protocol.FormFunction, protocol.FormScript} {
		for _, code := range []string{
			"}; console.log('ran'); {", "}; console.log('ran'); (() => {", "0); console.log('ran'); (0", "0); console.log('ran'); //", "}\nconsole.log('ran')\n{",
			"() => 1); console.log('ran')", "() => {}\n}\nconsole.log('ran')", "}; await console.log('ran'); export const a = {", "return }; console.log('ran'); if (1) {",
		} {
			o := guesttest.Execute(t, guesttest.Program{Code: code, Form: form})
			if len(o.Logs) > 0 || o.Syntax() == nil {
				t.Errorf("%s %q: %v, printed %q", form, code, o.Err, o.Logs)
			}
		}
	}
}

func TestRejectedIsATypedError(t *testing.T) {
	_, err := entry.Plan(guesttest.Analyze, "const a = ;", protocol.FormScript)
	var e *protocol.Error
	if !errors.As(err, &e) || !errors.Is(err, protocol.Syntax) || e.Position == nil || e.Position.SourceLine != "const a = ;" || e.Name != "SyntaxError" {
		t.Fatalf("%#v", err)
	}
}
