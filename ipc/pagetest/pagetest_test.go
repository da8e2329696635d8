package pagetest

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// recorder is a test that may fail.
type recorder struct {
	testing.TB
	failed bool
}

func (r *recorder) Helper()               {}
func (r *recorder) Errorf(string, ...any) { r.failed = true }

func TestPart(t *testing.T) {
	path := filepath.Join(t.TempDir(), "page.md")
	if err := os.WriteFile(path, []byte("before\n<!-- a: made by b -->\nold\n<!-- end -->\nafter\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	r := &recorder{TB: t}
	if Part(r, path, "a", "new\n", false); !r.failed {
		t.Error("a stale part is taken")
	}
	Part(t, path, "a", "new\n", true)
	Part(t, path, "a", "new\n", false)
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if string(text) != "before\n<!-- a: made by b -->\n\nnew\n\n<!-- end -->\nafter\n" {
		t.Errorf("the page is\n%s", text)
	}
}

func TestFirstDifference(t *testing.T) {
	for _, c := range []struct{ got, want, says string }{
		{"a\nb\n", "a\nb\n", ""},
		{"a\nb\nc", "a\nx\ny", "line 2 is  b\nmust be x"},
		{"a\nb", "a", "line 2 is  b\nmust not be there"},
		{"a", "a\nb\nc", "line 2 is not there\nmust be b"},
	} {
		if got := FirstDifference(c.got, c.want); got != c.says {
			t.Errorf("of %q and %q it says %q, must say %q", c.got, c.want, got, c.says)
		}
	}
}

func TestTable(t *testing.T) {
	got := Table([]string{"a", "b"}, [][]string{{"1|2", "3"}})
	if want := "| a | b |\n| --- | --- |\n| 1\\|2 | 3 |\n"; got != want {
		t.Errorf("got %q, want %s", got, strings.TrimSpace(want))
	}
}
