// Package roff words man pages for troff. Only tests import it: they make the pages from what the programs declare, and
// compare them with the files. Any goroutine may call.
package roff

import (
	"bytes"
	"os"
	"os/exec"
	"strings"
	"testing"
)

// Unbroken begins a word that is not hyphenated.
const Unbroken = "\u200b"

var escapes = strings.NewReplacer(`\`, `\e`, "-", `\-`, `"`, `\(dq`, "'", `\(aq`, "`", `\(ga`, "^", `\(ha`, "~", `\(ti`, Unbroken, `\%`)

// Text is text that troff prints as it is, with hyphens that can be copied.
func Text(s string) string { return escapes.Replace(s) }

// Paragraph is text in lines of 70 bytes at most, none of which is a request.
func Paragraph(s string) string {
	lines := strings.Split(Wrap("", 70, s), "\n")
	for i, line := range lines {
		if lines[i] = Text(line); strings.HasPrefix(line, ".") {
			lines[i] = `\&` + lines[i]
		}
	}
	return strings.Join(lines, "\n")
}

// Wrap breaks s between words into lines of width bytes at most, each behind prefix.
func Wrap(prefix string, width int, s string) string {
	var lines []string
	line := ""
	for word := range strings.FieldsSeq(s) {
		if line != "" && len(prefix)+len(line)+1+len(word) > width {
			lines, line = append(lines, prefix+line), ""
		}
		line = strings.TrimPrefix(line+" "+word, " ")
	}
	return strings.Join(append(lines, prefix+line), "\n")
}

// Check has mandoc and man read a page, as far as they are installed, and fails where one complains.
func Check(t *testing.T, file string) {
	t.Helper()
	for _, check := range [][]string{
		{"mandoc", "-T", "lint", file},
		{"man", "--warnings", "-E", "UTF-8", "-Tutf8", "-Z", "-l", file},
	} {
		t.Run(check[0], func(t *testing.T) {
			if _, err := exec.LookPath(check[0]); err != nil {
				t.Skipf("%s is not installed", check[0])
			}
			cmd := exec.Command(check[0], check[1:]...)
			cmd.Env = append(os.Environ(), "LC_ALL=C.UTF-8", "MANWIDTH=80")
			var complaints bytes.Buffer
			cmd.Stderr = &complaints
			out, err := cmd.Output()
			if check[0] == "mandoc" {
				complaints.Write(out)
			}
			if err != nil || complaints.Len() > 0 {
				t.Errorf("%v\n%s", err, complaints.String())
			}
		})
	}
}
