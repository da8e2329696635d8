package codemode

import (
	"bufio"
	"encoding/json"
	"os"
	"strings"
	"testing"
	"testing/quick"
)

// rows reads a file of JSON objects, one a line.
func rows[T any](t testing.TB, file string) (list []T) {
	t.Helper()
	f, err := os.Open(file)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	lines := bufio.NewScanner(f)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		var row T
		if err := json.Unmarshal(lines.Bytes(), &row); err != nil {
			t.Fatal(err)
		}
		list = append(list, row)
	}
	if lines.Err() != nil || len(list) == 0 {
		t.Fatalf("%s: %d rows, %v", file, len(list), lines.Err())
	}
	return list
}

// programRow is a program and what it becomes. Of one that is broken the reference's text does not compile; then any that
// does not is as good, and the reference's own is wanted of most.
type programRow struct {
	Code   string
	Want   string
	Broken bool
}

func TestProgramsBecomeWhatTheReferenceMakesOfThem(t *testing.T) {
	same, broken := 0, 0
	for _, row := range rows[programRow](t, "testdata/normalize.jsonl") {
		got := NormalizeCode(row.Code)
		switch {
		case row.Broken:
			if broken++; got == row.Want {
				same++
			}
		case got != row.Want:
			t.Errorf("%s\nbecomes\n%s\nwant\n%s", row.Code, got, row.Want)
		}
	}
	if float64(same) < 0.9*float64(broken) {
		t.Errorf("of %d broken programs %d become the reference's text", broken, same)
	}
}

// Normalizing twice is normalizing once, unless nothing of it parses.
func TestNormalizingIsIdempotent(t *testing.T) {
	for _, row := range rows[programRow](t, "testdata/normalize.jsonl") {
		once := NormalizeCode(row.Code)
		if _, ok := statementsOf(once); ok && NormalizeCode(once) != once {
			t.Errorf("%s\nbecomes\n%s\nand then\n%s", row.Code, once, NormalizeCode(once))
		}
	}
}

func TestToolNamesAreThoseOfTheReference(t *testing.T) {
	for _, row := range rows[struct{ Name, Want string }](t, "testdata/names.jsonl") {
		if got := SanitizeToolName(row.Name); got != row.Want {
			t.Errorf("%q becomes %q, want %q", row.Name, got, row.Want)
		}
	}
	if err := quick.Check(func(name string) bool {
		safe := SanitizeToolName(name)
		return isIdentifier(safe) && !reservedWords[safe]
	}, nil); err != nil {
		t.Error(err)
	}
}

// A model writes the code, and the host reads it: neither time nor stack may run away.
func TestI2HostileCodeIsReadWithinBounds(t *testing.T) {
	r := strings.Repeat
	for _, code := range []string{
		r("(", 3000) + r(")", 3000), r("(", 1_000_000), r("(a = ", 25) + "1" + r(")", 25), r("({[", 28) + "1" + r("]: 1})", 28), r("[", 1_000_000),
		r("`${", 500) + r("}`", 500), r("async (a = ", 25) + "1" + r(")", 25), r("a => ", 5000) + "1", r("{", 1_000_000), r("/*", 500_000), r("/*a/;", 200_000), r("\n", 1_000_000),
		r("a;", 200_000), `"` + r(`\n`, 300_000) + `"`, "/" + r("[a]", 100_000) + "/", r("class A { [", 25) + "x" + r("] }", 25), r("x ? ", 3000) + "1" + r(" : 2", 3000),
		r(`\u0061`, 300_000), r("!", 1_000_000), r("new ", 1_000_000), r("1+", 500_000), r("a**", 100_000), r("if(a)", 100_000), r("[", 100_000) + "=", r("async ", 100_000), r("a\n", 300_000),
		r("1", 1_000_000), "`" + r("${a}", 100_000) + "`", r("(a,", 200_000), r("let[", 100_000), "\xff\xfe", "a\xed\xa0\x80b", r("export default ", 1000), "```js\n" + r("```\n", 100_000) + "```",
	} {
		if got := NormalizeCode(code); len(got) > len(code)+100 {
			t.Errorf("%.40q becomes %d bytes", code, len(got))
		}
	}
}

func FuzzNormalizeCode(f *testing.F) {
	for i, row := range rows[programRow](f, "testdata/normalize.jsonl") {
		if i%10 == 0 {
			f.Add(row.Code)
		}
	}
	f.Fuzz(func(t *testing.T, code string) {
		text := NormalizeCode(code)
		statements, ok := unreadable(text)
		switch {
		case ok && bodyOf(statements) != text:
			t.Fatalf("%q: its statements are %q", text, statements)
		case !ok && NormalizeCode(text) != text:
			t.Fatalf("%q becomes %q, and then %q", code, text, NormalizeCode(text))
		}
		list, _ := statementsOf(text)
		for i, s := range list {
			if s.start > s.end || s.end > len(text) || i > 0 && s.start < list[i-1].end {
				t.Fatalf("%q: statement %d is %+v", text, i, s)
			}
		}
	})
}
