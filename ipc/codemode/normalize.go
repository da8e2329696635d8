package codemode

import (
	"regexp"
	"strings"
)

// fence is a text that is one block of Markdown. White space of JavaScript is more than that of regexp.
var fence = regexp.MustCompile("(?s)^```(?:js|javascript|typescript|ts|tsx|jsx)?" + jsSpace + "*\n(.*)```" + jsSpace + "*$")

const jsSpace = `[\t\n\v\f\r \x{a0}\x{1680}\x{2000}-\x{200a}\x{2028}\x{2029}\x{202f}\x{205f}\x{3000}\x{feff}]`

const (
	bodyBegin = "async () => {\n"
	bodyEnd   = "\n}"
)

// NormalizeCode makes of what a model wrote the text of one function without parameters that does what it says. It does
// not change its own output, unless nothing of it can be read. Any text is taken; time and memory are bounded by its length.
func NormalizeCode(code string) string {
	// Each default export that is taken off makes the text shorter.
	for {
		text, again := normalizeOnce(code)
		if !again {
			return text
		}
		code = text
	}
}

func trim(s string) string { return strings.TrimFunc(s, isSpace) }

// normalizeOnce gives the function, or what is to be normalized in its place.
func normalizeOnce(code string) (text string, again bool) {
	source := trim(code)
	if inside := fence.FindStringSubmatch(source); inside != nil {
		source = trim(inside[1])
	}
	if source == "" {
		return "async () => {}", false
	}
	list, ok := statementsOf(source)
	if !ok || len(list) == 0 {
		// No module: statements with a return at the top, another language, or nothing that runs.
		return bodyOf(source), false
	}
	last := list[len(list)-1]
	if len(list) == 1 {
		switch {
		case last.sort == expressionStatement && last.value.sort == arrowFunction:
			return trim(without(source, last.semicolon)), false
		case last.sort == defaultExport:
			return exported(source, last.value)
		case last.sort == functionDeclaration:
			return bodyOf(source + "\nreturn " + last.name + "();"), false
		}
	}
	if last.sort != expressionStatement {
		return bodyOf(source), false
	}
	return bodyOf(source[:last.start] + "return (" + source[last.value.start:last.value.end] + ")"), false
}

func exported(source string, value span) (text string, again bool) {
	text = source[value.start:value.end]
	switch {
	case value.name == "" && value.sort == functionDeclaration:
		return bodyOf("return (" + text + ")();"), false
	case value.name == "" && value.sort == classDeclaration:
		return bodyOf("return (" + text + ");"), false
	}
	return text, true
}

func bodyOf(text string) string { return bodyBegin + text + bodyEnd }

// without leaves out the semicolon after an arrow function, where it would end the function too early.
func without(text string, at int) string {
	if at < 0 {
		return text
	}
	return text[:at] + text[at+1:]
}

// unreadable gives the statements in a normalized text that is not a function and no more: they may be broken, or close
// what is written around them, or be of a newer language than this package knows. ok is false where it is a function.
func unreadable(text string) (statements string, ok bool) {
	list, read := statementsOf(text)
	if read && len(list) == 1 && list[0].sort == expressionStatement && list[0].value.sort == arrowFunction {
		return "", false
	}
	return strings.TrimSuffix(strings.TrimPrefix(text, bodyBegin), bodyEnd), true
}
