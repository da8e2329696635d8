package runtime_test

import (
	"bufio"
	"bytes"
	"encoding/json"
	"os"
	"regexp"
	"testing"

	"github.com/executord/executord/ipc/protocol"
	"github.com/executord/executord/sandbox/runtime/guesttest"
)

var stack = regexp.MustCompile(`,"stack":"(?:[^"\\]|\\.)*"`)

// vector is one row of the file that all codecs are proven against.
type vector struct {
	Name    string          `json:"name"`
	JS      string          `json:"js"`
	Value   json.RawMessage `json:"value"`
	Invalid *string         `json:"invalid"`
}

func vectors(t *testing.T) (all []vector) {
	t.Helper()
	f, err := os.Open("../../ipc/protocol/testdata/values.jsonl")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	for lines := bufio.NewScanner(f); lines.Scan(); {
		var v vector
		if err := json.Unmarshal(lines.Bytes(), &v); err != nil {
			t.Fatal(err)
		}
		all = append(all, v)
	}
	if len(all) < 90 {
		t.Fatalf("only %d vectors", len(all))
	}
	return all
}

// sameValue compares two encoded values by what they mean: through the exact decoder and encoder of ipc/protocol.
func sameValue(t *testing.T, a, b []byte) bool {
	t.Helper()
	canon := func(v []byte) string {
		d, err := protocol.Decode(v, protocol.ValueBounds)
		if err != nil {
			t.Fatalf("%s: %v", v, err)
		}
		text, err := protocol.Encode(d)
		if err != nil {
			t.Fatalf("%s: %v", v, err)
		}
		return string(text)
	}
	return canon(a) == canon(b)
}

// TestVectors proves the codec of the engine, with the library's classes, against the vectors that are shared with Go.
func TestVectors(t *testing.T) {
	for _, v := range vectors(t) {
		t.Run(v.Name, func(t *testing.T) {
			if bytes.Contains(v.Value, []byte("@handle")) {
				t.Skip("no execution is retained")
			}
			roundTrip := guesttest.Codec(t)
			if v.Invalid != nil {
				if got, err := roundTrip(*v.Invalid, false); err == nil {
					t.Fatalf("%s was taken as %s", *v.Invalid, got)
				}
				return
			}
			// Errors get a stack of their own here; only a vector that gives one compares it.
			trim := func(b []byte) []byte {
				if bytes.Contains(v.Value, []byte(`"stack"`)) {
					return b
				}
				return stack.ReplaceAll(b, nil)
			}
			got, err := roundTrip("("+v.JS+"\n)", true)
			if err != nil || !sameValue(t, trim(got), v.Value) {
				t.Errorf("encoded %s as %s, %v; want %s", v.JS, got, err, v.Value)
			}
			got, err = guesttest.Codec(t)(string(v.Value), false)
			if err != nil || !sameValue(t, trim(got), v.Value) {
				t.Errorf("%s came back as %s, %v", v.Value, got, err)
			}
		})
	}
}
