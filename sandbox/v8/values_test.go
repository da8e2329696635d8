package v8

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
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

// TestLimitIsExact: a value of as many bytes as are allowed leaves, one of a byte more does not. The pool takes a longer
// text for a worker that breaks its contract.
func TestLimitIsExact(t *testing.T) {
	iso := open(t, &recorder{})
	for _, v := range []struct{ name, js string }{
		{"string", `"abcdefgh"`},
		{"characters of two bytes", `"\u00e9\u00e9\u00e9"`},
		{"escapes", `"\u0001\u0001"`},
		{"lone surrogate", `"\ud800"`},
		{"number", `1234567`},
		{"boolean", `true`},
		{"undefined", `undefined`},
		{"not a number", `NaN`},
		{"BigInt", `123456789n`},
		{"date", `new Date(0)`},
		{"pattern", `/abc/g`},
		{"bytes", `new Uint8Array(4)`},
		{"array", `[1, 2, 3]`},
		{"holes", `[,,,]`},
		{"object", `({a: 1, b: "x"})`},
		{"object that looks like a tag", `({"@a": 1})`},
		{"map", `new Map([[1, 2]])`},
		{"set", `new Set([1, 2])`},
		{"shared reference", `(() => { const a = {}; return [a, a] })()`},
	} {
		t.Run(v.name, func(t *testing.T) {
			text, err := iso.RoundTrip(v.js, true, 1<<20)
			if err != nil {
				t.Fatal(err)
			}
			size := int64(len(text))
			if got, err := iso.RoundTrip(v.js, true, size); err != nil || !bytes.Equal(got, text) {
				t.Errorf("%d bytes: %s, %v", size, got, err)
			}
			_, err = iso.RoundTrip(v.js, true, size-1)
			if e := new(Error); !errors.As(err, &e) || e.Kind != KindTooLarge {
				t.Errorf("%d bytes for %s: %v", size-1, text, err)
			}
		})
	}
}
