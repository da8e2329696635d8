// Package pagetest keeps the parts of documentation pages that are made from code as the code says, and says where a text
// differs from what it must be. Only tests import it.
//
// A part stands between two comments, of which the first names it and the command that writes it:
//
//	<!-- errors: made by go test ./ipc/protocol -run ProtocolPage -update -->
//	<!-- end -->
//
// It writes nothing but that part, and only when it is told to. Tests of one package that write the same page must not
// run at once.
package pagetest

import (
	"fmt"
	"os"
	"strings"
	"testing"
)

const end = "<!-- end -->\n"

// Part fails the test unless the part of that name in the page at path is want; with update it writes it.
func Part(tb testing.TB, path, name, want string, update bool) {
	tb.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		tb.Fatal(err)
	}
	head, rest, found := strings.Cut(string(text), "<!-- "+name+": ")
	command, rest, ended := strings.Cut(rest, "-->\n")
	got, tail, closed := strings.Cut(rest, end)
	if !found || !ended || !closed {
		tb.Fatalf("%s has no part %s", path, name)
	}
	if want = "\n" + want + "\n"; got == want {
		return
	}
	if !update {
		tb.Errorf("%s: the part %s is not what the code says; %s\n%s", path, name, strings.TrimSpace(command), FirstDifference(got, want))
		return
	}
	text = []byte(head + "<!-- " + name + ": " + command + "-->\n" + want + end + tail)
	if err := os.WriteFile(path, text, 0o644); err != nil {
		tb.Fatal(err)
	}
}

// FirstDifference says in two lines where two texts begin to differ, counting lines from 1: whoever changed one thing shall
// not have to look for it in a page. It is empty where they are the same.
func FirstDifference(got, want string) string {
	if got == want {
		return ""
	}
	g, w := strings.Split(got, "\n"), strings.Split(want, "\n")
	for i := range min(len(g), len(w)) {
		if g[i] != w[i] {
			return fmt.Sprintf("line %d is  %s\nmust be %s", i+1, g[i], w[i])
		}
	}
	if len(g) > len(w) {
		return fmt.Sprintf("line %d is  %s\nmust not be there", len(w)+1, g[len(w)])
	}
	return fmt.Sprintf("line %d is not there\nmust be %s", len(g)+1, w[len(g)])
}

// Table is a table in Markdown. A row has as many cells as the head.
func Table(head []string, rows [][]string) string {
	var b strings.Builder
	line := func(cells []string) {
		for _, c := range cells {
			b.WriteString("| ")
			b.WriteString(strings.ReplaceAll(c, "|", `\|`))
			b.WriteByte(' ')
		}
		b.WriteString("|\n")
	}
	line(head)
	b.WriteString(strings.Repeat("| --- ", len(head)) + "|\n")
	for _, r := range rows {
		line(r)
	}
	return b.String()
}
