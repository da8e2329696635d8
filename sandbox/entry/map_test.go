package entry_test

import (
	"strings"
	"testing"
	"unicode/utf16"

	"pgregory.net/rapid"

	"github.com/executord/executord/ipc/protocol"
	"github.com/executord/executord/sandbox/entry"
	"github.com/executord/executord/sandbox/runtime/guesttest"
)

// unitLines splits a text into lines of UTF-16 units, line ends included, as ECMAScript counts lines.
func unitLines(text string) [][]uint16 {
	lines := [][]uint16{nil}
	units := utf16.Encode([]rune(text))
	for i, u := range units {
		last := len(lines) - 1
		lines[last] = append(lines[last], u)
		ends := u == '\n' || u == 0x2028 || u == 0x2029 || (u == '\r' && (i+1 == len(units) || units[i+1] != '\n'))
		if ends {
			lines = append(lines, nil)
		}
	}
	return lines
}

// checkMap walks through all of Source: places never go back, never leave the submitted text, and each unit of the
// submitted text is found at its own place, unless it was blanked.
func checkMap(t interface{ Fatalf(string, ...any) }, p *entry.Program, code string) {
	submitted, generated := unitLines(code), unitLines(p.Source)
	type place struct{ line, column int }
	found := map[place]bool{}
	for l, units := range generated {
		for c, unit := range units {
			line, column := p.Map(l+1, c+1)
			if line < 1 || line > len(submitted) || column < 1 || column > len(submitted[line-1])+1 {
				t.Fatalf("%q: %d:%d maps to %d:%d, outside the text", code, l+1, c+1, line, column)
			}
			if column > len(submitted[line-1]) {
				continue
			}
			was := submitted[line-1][column-1]
			if line == l+1 && (unit == was || unit == ' ' || unit == ';' || unit == '/') {
				found[place{line, column}] = true
			}
		}
	}
	for l, units := range submitted {
		for c := range units {
			if !found[place{l + 1, c + 1}] {
				t.Fatalf("%q: no place of %q maps to %d:%d", code, p.Source, l+1, c+1)
			}
		}
	}
}

func TestMapEveryPlace(t *testing.T) {
	var texts []string
	for _, c := range readCases(t) {
		texts = append(texts, c.Code)
	}
	texts = append(texts,
		"const s = '😀😀'; s.length", "'😀'\r\n\r'é'\u2028'x'\u2029\n`😀\r\n${1}`", "\ufeff'😀';\r\nimport 'dep';\r\nreturn 1",
		"#!/usr/bin/env 😀\nimport {\r\n  two, // 😀\u2028} from 'dep'; const a = two; (a)", "import a from 'dep'; import b from 'dep'; a + b; // 😀",
		"/* 😀 */ import d, { two } from 'dep'; /* é */ d + two /* end */", "\n\n(async () => {\n  return '😀';\n})\n;\n", "x => '😀'", "1\n", "1\r", "1\u2028",
	)
	checked := 0
	for _, code := range texts {
		p, err := entry.Plan(guesttest.Analyze, code, protocol.FormAuto)
		if err != nil {
			continue
		}
		checked++
		checkMap(t, p, code)
	}
	if checked < 100 {
		t.Fatalf("only %d texts were read", checked)
	}
}

// TestMapAnyText puts random pieces together. What can be read must map back, whatever it is.
func TestMapAnyText(t *testing.T) {
	pieces := []string{
		"1", "'😀'", "a", "a = 1", "(b)", "import x1 from 'dep'", "import * as x2 from \"dep\"", "import { two as x3 } from 'dep'", "import 'dep'", "export const e1 = 1",
		"() => 1", "async () => { return '😀' }", "function f() {}", "return 2", "'use strict'", "/* 😀\r\n */", "// x", "await 1", "if (1) {}", "{", "}", ")", "`t\r\n${1}`", "/r/",
	}
	separators := []string{";", "\n", "\r\n", "\u2028", "\u2029", "\r", " ", ";;", "\t"}
	rapid.Check(t, func(t *rapid.T) {
		var b strings.Builder
		b.WriteString(rapid.SampledFrom([]string{"", "", "\ufeff", "#!/bin/😀\n", "#!\r\n"}).Draw(t, "head"))
		for range rapid.IntRange(0, 8).Draw(t, "pieces") {
			b.WriteString(rapid.SampledFrom(pieces).Draw(t, "piece"))
			b.WriteString(rapid.SampledFrom(separators).Draw(t, "separator"))
		}
		form := rapid.SampledFrom([]protocol.Form{protocol.FormAuto, protocol.FormScript, protocol.FormFunction, protocol.FormModule}).Draw(t, "form")
		p, err := entry.Plan(guesttest.Analyze, b.String(), form)
		if err == nil {
			checkMap(t, p, b.String())
		} else if protocol.AsError(err).Type != protocol.Syntax {
			t.Fatalf("%q: %v", b.String(), err)
		}
	})
}

func TestMapBounds(t *testing.T) {
	p, err := entry.Plan(guesttest.Analyze, "ab\ncd", protocol.FormScript)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ line, column, wantLine, wantColumn int }{
		{0, 0, 1, 1}, {-5, 3, 1, 1}, {1, 1, 1, 1}, {1, 28, 1, 1}, {1, 29, 1, 1}, {1, 30, 1, 2}, {1, 1000, 1, 4}, {2, 1, 2, 1}, {2, 9, 2, 1}, {2, 10, 2, 2}, {2, 12, 2, 3}, {2, 100, 2, 3}, {3, 1, 2, 3}, {99, 1, 2, 3},
	} {
		line, column := p.Map(c.line, c.column)
		if line != c.wantLine || column != c.wantColumn {
			t.Errorf("%d:%d maps to %d:%d, want %d:%d (%q)", c.line, c.column, line, column, c.wantLine, c.wantColumn, p.Source)
		}
	}
}
