package runtime_test

import (
	_ "embed"
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/executord/executord/sandbox/runtime/guesttest"
)

const allowlist = "testdata/allowlist"

// listGlobal is a program that returns a line for each own property of every object that can be reached from the
// global, prototypes included.
//
//go:embed testdata/allowlist.js
var listGlobal string

// TestAllowlist holds everything a program can reach without making it to a reviewed list, in both directions. What is
// new in it, by a change of the library or of the engine, is to be looked at before `-update` writes it down.
func TestAllowlist(t *testing.T) {
	o := guesttest.Execute(t, guesttest.Program{Code: listGlobal})
	if o.Err != nil {
		t.Fatal(o.Err)
	}
	var text string
	if err := json.Unmarshal([]byte(o.Value), &text); err != nil {
		t.Fatal(err)
	}
	if *update {
		if err := os.WriteFile(allowlist, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(allowlist)
	if err != nil {
		t.Fatal(err)
	}
	is, should := strings.Split(text, "\n"), strings.Split(string(want), "\n")
	report(t, "not on the list", is, should)
	report(t, "on the list but not there", should, is)
	if len(is) < 1000 {
		t.Errorf("only %d properties were seen", len(is))
	}
}

// member is a line of the allowlist for an operation or an attribute of an interface: these are enumerable, other than what
// the language has (Web IDL, 3.7).
var member = regexp.MustCompile(`(?m)^[\w.]*\b(\w+)  (?:[gets+]+ )?[w-]?ec  .*\bfunction ".*`)

// TestAllowlistMembersHaveCases: what a program may call or read of a web interface is named by a case that does more than
// print it. It goes by the name alone: of a second interface with a member of that name it sees nothing.
func TestAllowlistMembersHaveCases(t *testing.T) {
	text, err := os.ReadFile(allowlist)
	if err != nil {
		t.Fatal(err)
	}
	files, err := filepath.Glob("testdata/*.txt")
	if err != nil {
		t.Fatal(err)
	}
	used := map[string]bool{}
	for _, file := range files {
		for _, c := range readCases(t, file) {
			if filepath.Base(file) == "inspect.txt" || strings.Contains(c.name, "shape") {
				continue
			}
			for _, word := range regexp.MustCompile(`\w+`).FindAllString(c.code, -1) {
				used[word] = true
			}
		}
	}
	members := member.FindAllStringSubmatch(string(text), -1)
	for _, m := range members {
		if !used[m[1]] {
			t.Errorf("no case in testdata uses %s; on the list it is\n%s", m[1], m[0])
		}
	}
	if len(members) < 350 {
		t.Errorf("only %d members were seen", len(members))
	}
}

// report names the lines of a that b lacks.
func report(t *testing.T, what string, a, b []string) {
	t.Helper()
	sorted := slices.Sorted(slices.Values(b))
	for _, line := range a {
		if _, found := slices.BinarySearch(sorted, line); !found {
			t.Errorf("%s: %s", what, line)
		}
	}
}
