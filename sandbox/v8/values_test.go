package v8

import (
	"bufio"
	"bytes"
	"encoding/json"
	"os"
	"regexp"
	"testing"

	"github.com/executord/executord/ipc/protocol"
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

// same compares two encoded values by what they mean: through the exact decoder and encoder of ipc/protocol.
func same(t *testing.T, a, b []byte) bool {
	t.Helper()
	canon := func(v []byte) string {
		d, err := protocol.Decode(v, protocol.Bounds{Bytes: 1 << 20, Depth: 1000, Nodes: 1 << 20})
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

func TestVectors(t *testing.T) {
	iso := open(t, &recorder{})
	for _, v := range vectors(t) {
		t.Run(v.Name, func(t *testing.T) {
			if bytes.Contains(v.Value, []byte("@url")) || bytes.Contains(v.Value, []byte("@handle")) {
				t.Skip("the global has no URL yet, and no execution is retained")
			}
			if v.Invalid != nil {
				if got, err := iso.RoundTrip(*v.Invalid, false, 1<<20); err == nil {
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
			got, err := iso.RoundTrip("("+v.JS+"\n)", true, 1<<20)
			if err != nil || !same(t, trim(got), v.Value) {
				t.Errorf("encoded %s as %s, %v; want %s", v.JS, got, err, v.Value)
			}
			got, err = iso.RoundTrip(string(v.Value), false, 1<<20)
			if err != nil || !same(t, trim(got), v.Value) {
				t.Errorf("%s came back as %s, %v", v.Value, got, err)
			}
		})
	}
}
