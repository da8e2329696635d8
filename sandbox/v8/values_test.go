package v8

import (
	"bytes"
	"errors"
	"testing"
)

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
