package protocol

import (
	"bufio"
	"bytes"
	"encoding/json"
	"math/big"
	"os"
	"reflect"
	"slices"
	"testing"
)

type vector struct {
	Name    string
	JS      string
	Value   json.RawMessage
	Invalid *string
	Why     string
}

func vectors(t testing.TB) (list []vector) {
	text, err := os.ReadFile("testdata/values.jsonl")
	if err != nil {
		t.Fatal(err)
	}
	names := map[string]bool{}
	for lines := bufio.NewScanner(bytes.NewReader(text)); lines.Scan(); {
		d := json.NewDecoder(bytes.NewReader(lines.Bytes()))
		d.DisallowUnknownFields()
		var v vector
		if err := d.Decode(&v); err != nil {
			t.Fatalf("%s: %v", lines.Text(), err)
		}
		if v.Name == "" || names[v.Name] || (v.Value == nil) == (v.Invalid == nil) || (v.Invalid != nil) != (v.Why != "") {
			t.Fatalf("bad or repeated line: %s", lines.Text())
		}
		names[v.Name] = true
		list = append(list, v)
	}
	return list
}

func TestVectors(t *testing.T) {
	for _, v := range vectors(t) {
		t.Run(v.Name, func(t *testing.T) {
			if v.Invalid != nil {
				if got, err := Decode(Value(*v.Invalid), ValueBounds); err == nil {
					t.Errorf("Decode took %s as %#v", *v.Invalid, got)
				}
				var into any
				if err := Unmarshal(Value(*v.Invalid), &into); err == nil {
					t.Errorf("Unmarshal took %s as %#v", *v.Invalid, into)
				}
				return
			}
			graph, err := Decode(v.Value, ValueBounds)
			if err != nil {
				t.Fatal(err)
			}
			text, err := Encode(graph)
			if err != nil {
				t.Fatal(err)
			}
			if !sameJSON(t, text, v.Value) {
				t.Errorf("Encode∘Decode gives %s for %s", text, v.Value)
			}
			loose, err := Marshal(graph)
			if err != nil || !bytes.Equal(loose, text) {
				t.Errorf("Marshal gives %s, %v", loose, err)
			}
		})
	}
}

// sameJSON compares two texts by what encoding/json reads, and the order of their keys.
func sameJSON(t *testing.T, a, b []byte) bool {
	return reflect.DeepEqual(tokens(t, a), tokens(t, b))
}

func tokens(t *testing.T, text []byte) (list []any) {
	for d := json.NewDecoder(bytes.NewReader(text)); d.More() || d.InputOffset() < int64(len(bytes.TrimSpace(text))); {
		token, err := d.Token()
		if err != nil {
			t.Fatalf("%s: %v", text, err)
		}
		list = append(list, token)
	}
	return list
}

// TestVectorsKeepIdentity looks at graphs where the text alone would not show what is shared.
func TestVectorsKeepIdentity(t *testing.T) {
	decode := func(text string) any {
		v, err := Decode(Value(text), ValueBounds)
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
	a := decode(`[{"@ref":""}]`).(*Array)
	if a.Items[0] != any(a) {
		t.Error("an array does not hold itself")
	}
	o := decode(`{"a":{"@map":[["k",[]]]},"b":{"@ref":"/a/@map/0/1"}}`).(*Object)
	if o.Members[1].Value != o.Members[0].Value.(*Map).Entries[0].Value {
		t.Error("a reference into a map leads elsewhere")
	}
	d := decode(`[{"@date":-0},{"@date":5},{"@ref":"/1"},{"@date":5}]`).(*Array)
	if d.Items[1] != d.Items[2] || d.Items[1] == d.Items[3] {
		t.Error("dates are shared where they should not be, or not where they should")
	}
	if text, err := Encode(d); err != nil || string(text) != `[{"@date":0},{"@date":5},{"@ref":"/1"},{"@date":5}]` {
		t.Errorf("%s, %v", text, err)
	}
}

func TestDecodeKeepsBounds(t *testing.T) {
	if _, err := Decode(Value(`[[1]]`), Bounds{Bytes: 9, Depth: 1, Nodes: 9}); err == nil {
		t.Error("depth passed")
	}
	if _, err := Decode(Value(`[1,1]`), Bounds{Bytes: 9, Depth: 1, Nodes: 2}); err == nil {
		t.Error("nodes passed")
	}
}

func TestValueErrorsNameThePlace(t *testing.T) {
	tests := []struct{ name, text, path string }{
		{"root", `{"@nope":1}`, ""},
		{"nested", `{"a/b":[1,{"c":{"@nope":1}}]}`, "/a~1b/1/c"},
		{"in a map", `{"@map":[[1,{"@date":""}]]}`, "/@map/0/1"},
		{"error's field", `[{"@error":{"name":1}}]`, "/0/@error/name"},
		{"twice", `[{"a":1,"b":2,"a":3}]`, "/0"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			_, err := Decode(Value(tt.text), ValueBounds)
			if e, ok := err.(*ValueError); !ok || e.Path != tt.path {
				t.Errorf("got %v", err)
			}
		})
	}
}

func TestEncodeRefuses(t *testing.T) {
	deep := any(nil)
	for range ValueBounds.Depth + 1 {
		deep = &Array{Items: []any{deep}}
	}
	tests := []struct {
		name string
		v    any
	}{
		{"Go int", 5},
		{"Go slice", []any{}},
		{"channel", &Array{Items: []any{make(chan int)}}},
		{"hole outside an array", Hole(1)},
		{"empty hole", &Array{Items: []any{Hole(0)}}},
		{"array too long", &Array{Items: []any{Hole(1 << 31), Hole(1 << 31)}}},
		{"key twice", &Object{Members: []Member{{"a", 1.0}, {"a", 2.0}}}},
		{"error with two messages", &ErrorValue{Props: []Member{{"message", "x"}}}},
		{"date fraction", &Date{1.5}},
		{"date too far", &Date{1e16}},
		{"flags", &RegExp{"a", "q"}},
		{"kind of buffer", &Buffer{"Blob", nil}},
		{"half an element", &Buffer{"Int16Array", []byte{1}}},
		{"boxed object", &Boxed{&Object{}}},
		{"too deep", deep},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			text, err := Encode(tt.v)
			if _, ok := err.(*ValueError); !ok {
				t.Errorf("got %.100s, %v", text, err)
			}
		})
	}
}

func TestParseBigIntLong(t *testing.T) {
	for _, n := range []int{1, 1999, 2000, 2001, 5000, 12345} {
		want := new(big.Int).Exp(big.NewInt(10), big.NewInt(int64(n)), nil)
		want.Sub(want, big.NewInt(3))
		if got, ok := parseBigInt(want.String()); !ok || got.Cmp(want) != 0 {
			t.Errorf("%d digits are read wrong", n)
		}
	}
}

// FuzzDecode: what Decode takes, Encode writes so that Decode takes it again and Encode writes the same.
func TestHandles(t *testing.T) {
	got, err := Handles(Value(`[{"@handle":"a"},{"@object":{"@handle":"no"}},{"@map":[["{\"@handle\":\"no\"}",{"@handle":["b","stream"]}]]},{"@handle":"a"},{"k":{"\u0040handle":"c"}}]`))
	want := []Handle{{"a", HandleFunction}, {"b", HandleStream}, {"c", HandleFunction}}
	if err != nil || !slices.Equal(got, want) {
		t.Errorf("got %v, %v, want %v", got, err, want)
	}
	for _, text := range []string{`{"@handle":1}`, `[{"@handle":"a"},{"@date":"x"}]`, `{`} {
		if got, err := Handles(Value(text)); err == nil {
			t.Errorf("%s: got %v", text, got)
		}
	}
}

func FuzzDecode(f *testing.F) {
	for _, v := range vectors(f) {
		if v.Invalid != nil {
			f.Add([]byte(*v.Invalid))
		} else {
			f.Add([]byte(v.Value))
		}
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		var plain any
		looseErr := Unmarshal(text, &plain)
		graph, err := Decode(text, wide)
		if err != nil {
			return
		}
		first, err := Encode(graph)
		if err != nil {
			t.Fatalf("%s cannot be encoded again: %v", text, err)
		}
		graph, err = Decode(first, ValueBounds)
		if err != nil {
			t.Fatalf("%s became %s: %v", text, first, err)
		}
		if second, err := Encode(graph); err != nil || !bytes.Equal(first, second) {
			t.Fatalf("%s, then %s, then %s, %v", text, first, second, err)
		}
		if looseErr == nil {
			if _, err := Marshal(plain); err != nil {
				t.Fatalf("%s is %#v, which cannot be encoded: %v", text, plain, err)
			}
		}
	})
}
