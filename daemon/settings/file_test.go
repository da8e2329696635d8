package settings

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"unicode/utf8"
)

func TestParseFile(t *testing.T) {
	for _, tc := range []struct {
		name, text string
		want       []assignment
		err        string
	}{
		{"nothing", "", nil, ""},
		{"comments and empty lines", "# a=b\n\n;c=d\n  # e=f\n", nil, ""},
		{"values", "A=1\nB_2 = two words \nC=\n", []assignment{{"A", "1", 1}, {"B_2", "two words", 2}, {"C", "", 3}}, ""},
		{"no end of the last line", "A=1", []assignment{{"A", "1", 1}}, ""},
		{"CR LF", "A=1\r\nB=2\r\n", []assignment{{"A", "1", 1}, {"B", "2", 2}}, ""},
		{"a hash in a value", "A=1 # one", []assignment{{"A", "1 # one", 1}}, ""},
		{"single quotes", `A='a b\n"$c '`, []assignment{{"A", `a b\n"$c `, 1}}, ""},
		{"double quotes", `A="a \"b\" \\ \$c \x"`, []assignment{{"A", `a "b" \ $c \x`, 1}}, ""},
		{"parts", `A="a" 'b'  c`, []assignment{{"A", "abc", 1}}, ""},
		{"a quote within a word", `A=it's`, []assignment{{"A", "it's", 1}}, ""},
		{"lines in quotes", "A='a\nb'\nB=2", []assignment{{"A", "a\nb", 1}, {"B", "2", 3}}, ""},
		{"a line that goes on", "A=a\\\nb\nB=\"c\\\nd\"\nC=3", []assignment{{"A", "ab", 1}, {"B", "cd", 3}, {"C", "3", 5}}, ""},
		{"escapes", `A=a\ \b\\`, []assignment{{"A", `a b\`, 1}}, ""},
		{"a space that stays", `A=a\ `, []assignment{{"A", "a ", 1}}, ""},
		{"a quote after an escape", `A=\x'y'`, []assignment{{"A", "x'y'", 1}}, ""},
		{"a backslash at the end", `A=a\`, []assignment{{"A", "a", 1}}, ""},
		{"an equals sign in a value", "A=b=c", []assignment{{"A", "b=c", 1}}, ""},
		{"twice", "A=1\nA=2", []assignment{{"A", "1", 1}, {"A", "2", 2}}, ""},
		{"no variable", "A=1\nsecret stuff", nil, "line 2: it is not a variable"},
		{"a shell's", "export A=1", nil, "line 1: it is not a variable"},
		{"a name that begins with a digit", "1A=1", nil, "line 1"},
		{"no name", "=1", nil, "line 1"},
		{"open single quote", "A=1\nB='x\ny", nil, "line 2: the value begins with ' and has no other"},
		{"open double quote", `A="x\"`, nil, `line 1: the value begins with " and has no other`},
		{"binary", "A=\xff", nil, "line 1: the value of A is no text"},
		{"zero", "A='\x00'", nil, "line 1: the value of A is no text"},
		{"too many", strings.Repeat("A=1\n", maxFileVariables+1), nil, fmt.Sprintf("line %d: there are more than", maxFileVariables+1)},
	} {
		t.Run(tc.name, func(t *testing.T) {
			got, err := parseFile(tc.text)
			if !slices.Equal(got, tc.want) || (err == nil) != (tc.err == "") || err != nil && !strings.HasPrefix(err.Error(), tc.err) {
				t.Errorf("got %#v, %v", got, err)
			}
			if err != nil && strings.Contains(err.Error(), "secret") {
				t.Errorf("the error tells the line: %v", err)
			}
		})
	}
}

// What cannot be read in bounds is refused at once.
func TestFilesThatAreNone(t *testing.T) {
	pipe := filepath.Join(t.TempDir(), "pipe")
	if err := syscall.Mkfifo(pipe, 0o600); err != nil {
		t.Fatal(err)
	}
	large := filepath.Join(t.TempDir(), "large")
	if err := os.WriteFile(large, make([]byte, maxSmallFileBytes+1), 0o600); err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string]string{pipe: "no regular file", large: "more than", "/dev/zero": "no regular file"} {
		if _, err := readFile(path); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", path, err)
		}
	}
}

// FuzzParseFile: whatever the file, it is read or refused, and what is read can be written and read again.
func FuzzParseFile(f *testing.F) {
	for _, seed := range []string{"A=1\n# c\nB='x y' \"z\"\n", "A=\\\n", "A=\"\\\"\n", ";\nA = b\\ c  \r\nB=", "=\n", "\x00=\xff"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		list, err := parseFile(text)
		if err != nil {
			return
		}
		var b strings.Builder
		lines := 1 + strings.Count(text, "\n")
		for i, a := range list {
			if !isVariable(a.name) || !utf8.ValidString(a.value) || a.line < 1 || a.line > lines || len(a.value) > len(text) ||
				i > 0 && a.line < list[i-1].line {
				t.Fatalf("got %+v of %q", a, text)
			}
			quoted := strings.NewReplacer(`\`, `\\`, `"`, `\"`, "$", `\$`, "`", "\\`").Replace(a.value)
			fmt.Fprintf(&b, "%s=\"%s\"\n", a.name, quoted)
		}
		again, err := parseFile(b.String())
		if err != nil || len(again) != len(list) {
			t.Fatalf("%+v is written as %q and reads %+v, %v", list, b.String(), again, err)
		}
		for i := range again {
			if again[i].name != list[i].name || again[i].value != list[i].value {
				t.Fatalf("%+v is written as %q and reads %+v", list[i], b.String(), again[i])
			}
		}
	})
}
