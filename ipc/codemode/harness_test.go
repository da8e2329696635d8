package codemode

import (
	"flag"
	"os"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "write what is kept from elsewhere anew")

// The harness is the npm package's. -update copies it.
func TestHarnessIsThatOfTheJavaScriptTwin(t *testing.T) {
	text, err := os.ReadFile("../../packaging/npm/src/codemode/harness.js")
	if err != nil {
		t.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(text), "const harness = String.raw`")
	want, _, found := strings.Cut(rest, "`;\n")
	if !found {
		t.Fatal("the harness is not where it was")
	}
	want = strings.ReplaceAll(want, "${hostName}", hostName)
	if *update {
		if err := os.WriteFile("harness.js", []byte(want), 0o644); err != nil {
			t.Fatal(err)
		}
	} else if harness != want {
		t.Error("the harness differs; go test ./ipc/codemode -run Harness -update copies it")
	}
}
