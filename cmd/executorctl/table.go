package main

import (
	"fmt"
	"strings"
	"unicode/utf8"
)

// cell is one field of a table, and its color on a terminal.
type cell struct{ text, color string }

func plain(text string) cell { return cell{text: text} }

// maxCell is how much of a field is shown where a table is for people.
const maxCell = 60

// table prints rows in columns. The last column is as long as it is.
func (w *world) table(head []string, rows [][]cell) {
	for _, line := range layOut(w.out, head, rows) {
		_, _ = fmt.Fprintln(w.out, line)
	}
}

func layOut(s stream, head []string, rows [][]cell) (lines []string) {
	titles := make([]cell, len(head))
	for i, h := range head {
		titles[i] = cell{h, dim}
	}
	rows = append([][]cell{titles}, rows...)
	widths := make([]int, len(head))
	for _, row := range rows {
		for i := range row {
			row[i].text = clean(row[i].text, s.terminal)
			widths[i] = max(widths[i], utf8.RuneCountInString(row[i].text))
		}
	}
	for _, row := range rows {
		var b strings.Builder
		for i, c := range row {
			text := c.text
			if c.color != "" {
				text = s.paint(c.color, text)
			}
			b.WriteString(text)
			if i < len(row)-1 {
				b.WriteString(strings.Repeat(" ", widths[i]-utf8.RuneCountInString(c.text)+2))
			}
		}
		lines = append(lines, strings.TrimRight(b.String(), " "))
	}
	return lines
}

// clean makes text fit for a field: one line, harmless, and on a terminal not too long.
func clean(text string, terminal bool) string {
	text = printable(oneLine(text), terminal)
	if terminal && utf8.RuneCountInString(text) > maxCell {
		text = string([]rune(text)[:maxCell-1]) + "…"
	}
	if text == "" {
		return "-"
	}
	return text
}

// oneLine replaces what would end a line or a column.
func oneLine(text string) string {
	return strings.Map(func(r rune) rune {
		switch r {
		case '\n', '\r', '\t', '\v', '\f', '\u2028', '\u2029', '\u0085':
			return ' '
		}
		return r
	}, text)
}
