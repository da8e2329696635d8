package codemode

import (
	"encoding/json"
	"flag"
	"os"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "write what is kept from elsewhere anew")

// The harness is the npm package's. -update copies it.
func TestHarnessIsThatOfTheJavaScriptTwin(t *testing.T) {
	text, err := os.ReadFile("../../packaging/npm/src/codemode/harness-text.js")
	if err != nil {
		t.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(text), "export const harness = ")
	var want string
	if err := json.Unmarshal([]byte(strings.TrimSuffix(rest, ";\n")), &want); err != nil {
		t.Fatalf("the harness is not where it was: %v", err)
	}
	if *update {
		if err := os.WriteFile("harness.js", []byte(want), 0o644); err != nil {
			t.Fatal(err)
		}
	} else if harness != want {
		t.Error("the harness differs; go test ./ipc/codemode -run Harness -update copies it")
	}
}
