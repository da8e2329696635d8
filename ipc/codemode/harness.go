package codemode

import (
	"crypto/rand"
	_ "embed" // the harness
	"encoding/hex"
	"encoding/json"
	"strings"
)

// hostName is the name of the provider that the harness calls.
const hostName = "codemodeHost"

// harness is the text that runs in the sandbox around the code of a model, a function of the mark. It is made of
// packaging/npm/harness/program.js, which says how it works. A test holds it and that of the npm package together.
//
//go:embed harness.js
var harness string

// newMark is a name that nobody can guess.
func newMark() string {
	var b [16]byte
	_, _ = rand.Read(b[:]) // never fails
	return hex.EncodeToString(b[:])
}

// moduleOf is the module that runs code, a normalized text, with namespaces as constants around it. mark is a name that nobody
// can guess, and the harness gives [namespace, compile, run]. The constants are in a scope of their own: a namespace may have
// the name of whatever the harness uses.
func moduleOf(code string, providers []Provider, connectors []Connector, mark string) string {
	run := "$" + mark
	var b strings.Builder
	b.WriteString("const " + run + " = (" + harness + `)("` + mark + "\");\nexport default () => " + run + "[2](async () => {\n")
	var names []string
	for _, p := range providers {
		names = append(names, p.Name)
		b.WriteString("const " + p.Name + " = " + run + "[0](" + quoted(p.Name) + ", true);\n")
	}
	for _, c := range connectors {
		names = append(names, c.Name)
		b.WriteString("const " + c.Name + " = " + run + "[0](" + quoted(c.Name) + ", false);\n")
	}
	for _, p := range providers {
		if p.Prelude != "" {
			b.WriteString(p.Prelude + "\n")
		}
	}
	b.WriteString("return (\n")
	if statements, ok := unreadable(code); ok {
		list := strings.Join(names, ",")
		b.WriteString("() => " + run + "[1](" + quoted(statements) + ", " + quoted(list) + ")(" + list + ")")
	} else {
		b.WriteString(code)
	}
	b.WriteString("\n);\n});\n")
	return b.String()
}

// quoted is a string literal of JavaScript. Its escapes for lone surrogates are JSON's: a text in Go has none.
func quoted(s string) string {
	text, _ := json.Marshal(s) // strings always can be
	return string(text)
}
