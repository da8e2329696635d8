package codemode

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
)

func TestTypesAreThoseOfTheReference(t *testing.T) {
	for _, row := range rows[struct {
		Tools []ToolType
		Want  string
	}](t, "testdata/types.jsonl") {
		got := Types("codemode", "", row.Tools)
		if strip(got) != strip(row.Want) {
			t.Errorf("%s\ngives\n%s\nwant\n%s", row.Tools, got, row.Want)
		}
	}
}

// strip leaves out empty lines.
func strip(s string) string {
	var b strings.Builder
	for line := range strings.Lines(s) {
		if strings.TrimSpace(line) != "" {
			b.WriteString(strings.TrimRight(line, "\n") + "\n")
		}
	}
	return b.String()
}

func TestTypesOfEveryNamespaceHaveTheirOwnNames(t *testing.T) {
	got := Types("files", "Files", []ToolType{{Name: "read_file"}, {Name: "read__file"}, {Name: "readFile"}})
	for _, want := range []string{"type FilesReadFileInput = unknown", "type FilesReadFile_Input =", "readFile: (input: FilesReadFile_Input)", "declare const files: {"} {
		if !strings.Contains(got, want) {
			t.Errorf("%s\nhas no %s", got, want)
		}
	}
}

// Schemas come from servers that nobody knows: neither time, nor memory, nor the text around their types is theirs.
func TestI2HostileSchemasGiveSmallTypes(t *testing.T) {
	laughs := `{"$ref":"#/$defs/l0","$defs":{"l20":{}`
	for i := range 20 {
		laughs += fmt.Sprintf(`,"l%d":{"properties":{"a":{"$ref":"#/$defs/l%d"},"b":{"$ref":"#/$defs/l%d"}}}`, i, i+1, i+1)
	}
	var many strings.Builder
	many.WriteString(`{"properties":{"a":{}`)
	for i := range 20_000 {
		fmt.Fprintf(&many, `,"p%d":{"type":"string"}`, i)
	}
	for name, schema := range map[string]string{
		"references that multiply": laughs + "}}",
		"too many properties":      many.String() + "}}",
		"deep":                     strings.Repeat(`{"items":`, 5000) + "1" + strings.Repeat("}", 5000),
		"long name":                `{"properties":{"` + strings.Repeat("x", 100_000) + `":{}}}`,
		"no JSON":                  `{"a"`,
		"a number":                 `5`,
		"a reference to itself":    `{"$ref":"#"}`,
		"odd members":              `{"type":5,"properties":[],"required":5,"anyOf":{}}`,
	} {
		got := Types("codemode", "", []ToolType{{Name: "tool", Input: json.RawMessage(schema)}})
		if !strings.Contains(got, "type ToolInput = unknown\n") {
			t.Errorf("%s gives %d bytes: %.200s", name, len(got), got)
		}
	}
	for _, odd := range []string{`{"type":"object","properties":5}`, `{"type":"array","items":5}`, `{"enum":5}`, `{"$ref":"#/a/b","a":[1]}`, `{"$ref":"#/a/0","a":[true]}`, `{"anyOf":[]}`, `{"enum":["\ud800"]}`, `{"properties":{"\ud800":{"description":5}}}`} {
		if got := Types("codemode", "", []ToolType{{Name: "tool", Input: json.RawMessage(odd)}}); !strings.Contains(got, "type ToolInput = ") {
			t.Errorf("%s gives %s", odd, got)
		}
	}
	out := Types("codemode", "", []ToolType{{
		Name: "__proto__", Description: "*/ } evil();\u2028 evil(); /*",
		Input: json.RawMessage(`{"type":"object","properties":{"a":{"description":"*/\u2029evil()"},"*/ evil":{"description":"x"}}}`),
	}})
	for line := range strings.Lines(out) {
		if before, _, _ := strings.Cut(line, "evil"); before != line && !strings.Contains(before, "* ") && !strings.Contains(before, `"`) {
			t.Errorf("out of its comment: %s", line)
		}
	}
	if strings.Contains(strings.ReplaceAll(out, ` */`, ""), "*/ }") {
		t.Errorf("a comment ends early: %s", out)
	}
}

func FuzzTypes(f *testing.F) {
	for _, row := range rows[struct{ Tools []ToolType }](f, "testdata/types.jsonl") {
		for _, t := range row.Tools {
			f.Add(t.Name, t.Description, []byte(t.Input))
		}
	}
	f.Fuzz(func(t *testing.T, name, description string, schema []byte) {
		got := Types("codemode", "", []ToolType{{Name: name, Description: description, Input: schema, Output: schema}})
		if len(got) > 4*(maxTypeBytes+len(name)+len(description)+len(schema))+1000 {
			t.Fatalf("%d bytes", len(got))
		}
		if strings.ContainsAny(got, "\r\u2028\u2029") {
			t.Fatalf("a line ends where none should: %q", got)
		}
	})
}
