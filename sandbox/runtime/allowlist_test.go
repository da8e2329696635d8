package runtime_test

import (
	_ "embed"
	"encoding/json"
	"os"
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
