package entry

import (
	"sort"
	"strings"
	"unicode/utf16"
	"unicode/utf8"
)

// text is a submitted text with an index of its lines. Lines end as in ECMAScript (ECMA-262, 12.3): LF, CR, CR LF,
// U+2028 and U+2029; the engine counts them so.
type text struct {
	code  string // valid UTF-8
	units int    // length in UTF-16 units
	lines []lineStart
}

// lineStart is where a line begins.
type lineStart struct {
	unit, byte int
}

// newText indexes code. Bytes that are not UTF-8 become U+FFFD, one for each, so that all parts see the same text.
func newText(code string) *text {
	if !utf8.ValidString(code) {
		code = string([]rune(code))
	}
	t := &text{code: code, lines: []lineStart{{}}}
	for i, r := range code {
		t.units += unitLen(r)
		next := i + utf8.RuneLen(r)
		if isLineEnd(r) && !(r == '\r' && strings.HasPrefix(code[next:], "\n")) {
			t.lines = append(t.lines, lineStart{t.units, next})
		}
	}
	return t
}

func isLineEnd(r rune) bool { return r == '\n' || r == '\r' || r == '\u2028' || r == '\u2029' }

// unitLen is the number of UTF-16 units of r.
func unitLen(r rune) int { return max(utf16.RuneLen(r), 1) }

func unitsOf(s string) int {
	n := 0
	for _, r := range s {
		n += unitLen(r)
	}
	return n
}

// position returns line and column, from 1, of an offset; one out of bounds is brought to the nearest end.
func (t *text) position(unit int) (lineNumber, column int) {
	unit = min(max(unit, 0), t.units)
	n := sort.Search(len(t.lines), func(i int) bool { return t.lines[i].unit > unit })
	return n, unit - t.lines[n-1].unit + 1
}

// lineUnits is the length of a line (from 1) in units, its end included.
func (t *text) lineUnits(n int) int {
	if n == len(t.lines) {
		return t.units - t.lines[n-1].unit
	}
	return t.lines[n].unit - t.lines[n-1].unit
}

// maxSourceLine is how much of a line SourceLine returns, in runes.
const maxSourceLine = 240

// sourceLine returns a line without its end, cut to maxSourceLine; "" when there is no such line.
func (t *text) sourceLine(n int) string {
	if n < 1 || n > len(t.lines) {
		return ""
	}
	end := len(t.code)
	if n < len(t.lines) {
		end = t.lines[n].byte
	}
	s := strings.TrimRightFunc(t.code[t.lines[n-1].byte:end], isLineEnd)
	count := 0
	for i := range s {
		if count == maxSourceLine {
			return s[:i] + "…"
		}
		count++
	}
	return s
}

// SourceLine returns line n (from 1) of any text, as Program.SourceLine does of its own.
func SourceLine(code string, n int) string { return newText(code).sourceLine(n) }

// cursor walks through a text, units and bytes in step.
type cursor struct {
	text        *text
	units, byte int
}

// advance moves to an offset that is not before the cursor and returns what lies between. An offset inside a surrogate
// pair is taken to be after it.
func (c *cursor) advance(to int) string {
	from := c.byte
	for c.units < to && c.byte < len(c.text.code) {
		r, size := utf8.DecodeRuneInString(c.text.code[c.byte:])
		c.units += unitLen(r)
		c.byte += size
	}
	return c.text.code[from:c.byte]
}

// unitAt returns the character at an offset, "" at the end.
func (t *text) unitAt(unit int) string {
	c := cursor{text: t}
	c.advance(unit)
	_, size := utf8.DecodeRuneInString(t.code[c.byte:])
	return t.code[c.byte : c.byte+size]
}
