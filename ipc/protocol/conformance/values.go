package conformance

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"testing"

	"github.com/executord/executord/ipc/executor"
	"github.com/executord/executord/ipc/protocol"
)

// vector is one line of the shared file of encoded values.
type vector struct {
	Name  string         `json:"name"`
	JS    string         `json:"js"` // an expression that makes the value
	Value protocol.Value `json:"value"`
}

func vectors(t *testing.T) (list []vector) {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(sourceDir(t, "ipc/protocol"), "testdata", "values.jsonl"))
	if err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewScanner(bytes.NewReader(text))
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		var v vector
		if err := json.Unmarshal(lines.Bytes(), &v); err != nil {
			t.Fatal(err)
		}
		if v.JS != "" && v.Value != nil {
			list = append(list, v)
		}
	}
	if len(list) < 50 {
		t.Fatalf("only %d vectors", len(list))
	}
	return list
}

// values crosses the boundary with every kind of value, in each direction.
func values(t *testing.T, e executor.Executor) {
	for _, v := range vectors(t) {
		t.Run(v.Name, func(t *testing.T) {
			wantValue(t, e, program("return ("+v.JS+");", as(protocol.FormScript)), string(v.Value))
			wantValue(t, e, program("(input) => input", input(string(v.Value))), string(v.Value))
			var got protocol.Value
			keep := executor.Provider{Name: "tools", Tools: map[string]executor.Tool{
				"echo": func(_ context.Context, args []protocol.Value) (protocol.Value, error) {
					got = args[0]
					return args[0], nil
				},
			}}
			wantValue(t, e, program("return tools.echo("+v.JS+");", as(protocol.FormScript), using(keep)), string(v.Value))
			wantSame(t, "the tool got", got, v.Value)
		})
	}
}

// forms reads text in each of its forms.
func forms(t *testing.T, e executor.Executor) {
	cases := []struct {
		name, code string
		form       protocol.Form
		want       string
	}{
		{"expression", "1 + 2", "", "3"},
		{"statements", "let a = 1; a + 1", "", "2"},
		{"await", "await 5", "", "5"},
		{"return", "if (true) return 'r'", "", `"r"`},
		{"arrow", "async (x) => x.n", "", "7"},
		{"named function", "function f(x) { return x.n }", "", "7"},
		{"module with a value", "export default [1]", "", "[1]"},
		{"module with a function", "export default ({n}) => n", "", "7"},
		{"module without a default", "export const a = 1", "", `{"@undefined":true}`},
		{"form given", "(x) => x.n", protocol.FormFunction, "7"},
		{"nothing returned", "let a = 1", "", `{"@undefined":true}`},
		{"promise returned", "Promise.resolve(4)", "", "4"},
	}
	for _, tc := range cases {
		t.Run(tc.name, func(t *testing.T) {
			wantValue(t, e, program(tc.code, as(tc.form), input(`{"n":7}`)), tc.want)
		})
	}
	t.Run("modules", func(t *testing.T) {
		r := program(`import {two} from "lib"; import data from "./data.json"; export default () => two + data.n;`)
		r.Modules = map[string]protocol.ModuleSource{
			"lib":         {Source: "export const two = 2;"},
			"./data.json": {Source: `{"n":40}`, Type: protocol.ModuleJSON},
		}
		wantValue(t, e, r, "42")
	})
}
