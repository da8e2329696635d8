package main

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf16"
	"unicode/utf8"

	"github.com/executord/executord/ipc/protocol"
)

// Sequences of ECMA-48.
const (
	dim    = "\x1b[2m"
	red    = "\x1b[31m"
	green  = "\x1b[32m"
	yellow = "\x1b[33m"
	reset  = "\x1b[0m"
)

func (s stream) paint(color, text string) string {
	if !s.color || color == "" {
		return text
	}
	return color + text + reset
}

// printable makes text of a program harmless for a terminal, which would obey control characters and let directional
// ones reorder what is shown. Elsewhere the text stays as it is.
func printable(text string, terminal bool) string {
	if !terminal || strings.IndexFunc(text, hostile) < 0 {
		return text
	}
	var b strings.Builder
	for i, r := range text {
		switch {
		case r == utf8.RuneError && !strings.HasPrefix(text[i:], "\uFFFD"), !hostile(r):
			b.WriteRune(r)
		case r < 0x100:
			fmt.Fprintf(&b, `\x%02x`, r)
		default:
			fmt.Fprintf(&b, `\u%04x`, r)
		}
	}
	return b.String()
}

func hostile(r rune) bool {
	return unicode.IsControl(r) && r != '\n' && r != '\t' || unicode.Is(unicode.Bidi_Control, r) || r == '\u2028' || r == '\u2029'
}

// printLog prints one console line.
func printLog(s stream, l protocol.Log) {
	text := l.Text
	if t := l.Truncated; t != nil {
		text = strings.TrimSpace(fmt.Sprintf("%s (%d lines, %d bytes left out)", text, t.Lines, t.Bytes))
	}
	_, _ = fmt.Fprintf(s, "%s %s\n", s.paint(dim, string(l.Level)+":"), printable(text, s.terminal))
}

// printError prints how a program failed, and where.
func printError(s stream, e *protocol.Error) {
	head := e.Message
	if e.Name != "" {
		head = e.Name + ": " + head
	}
	where := ""
	if p := e.Position; p != nil {
		where = fmt.Sprintf("%s:%d:%d: ", p.File, p.Line, p.Column)
	}
	_, _ = fmt.Fprintf(s, "%s%s %s\n", printable(where, s.terminal), s.paint(red, string(e.Type)+":"), printable(head, s.terminal))
	if e.Reason != "" {
		_, _ = fmt.Fprintf(s, "reason: %s\n", printable(e.Reason, s.terminal))
	}
	if e.Position != nil && e.Position.SourceLine != "" {
		printCaret(s, e.Position)
	}
	if frames := framesOf(e); frames != "" {
		_, _ = fmt.Fprintln(s, s.paint(dim, printable(frames, s.terminal)))
	}
	if e.Thrown != nil {
		_, _ = fmt.Fprintf(s, "thrown: %s\n", printable(show(e.Thrown), s.terminal))
	}
	if e.Cause != nil {
		_, _ = fmt.Fprintf(s, "cause: %s\n", printable(show(e.Cause), s.terminal))
	}
}

// framesOf is the stack without the message that it begins with.
func framesOf(e *protocol.Error) string {
	at := strings.Index(e.Stack, "    at ")
	if at < 0 {
		return ""
	}
	return strings.TrimRight(e.Stack[at:], "\n")
}

// maxSourceColumns is how much of a source line is shown.
const maxSourceColumns = 160

// printCaret prints the source line with a mark below the column, which counts UTF-16 code units.
func printCaret(s stream, p *protocol.Position) {
	before, units := 0, 1
	runes := []rune(p.SourceLine)
	for before < len(runes) && units < p.Column {
		units += utf16.RuneLen(runes[before])
		before++
	}
	from := max(0, before-maxSourceColumns/2)
	to := min(len(runes), from+maxSourceColumns)
	margin := strings.Map(func(r rune) rune {
		if r == '\t' {
			return r
		}
		return ' '
	}, printable(string(runes[from:before]), s.terminal))
	_, _ = fmt.Fprintf(s, "%s\n%s^\n", printable(string(runes[from:to]), s.terminal), margin)
}
