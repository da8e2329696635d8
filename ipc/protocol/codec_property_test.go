package protocol

import (
	"fmt"
	"math"
	"math/big"
	"reflect"
	"slices"
	"testing"

	"pgregory.net/rapid"
)

// grower makes random graphs. Every object that it has begun can come again, which makes shared ones and cycles.
type grower struct {
	t    *rapid.T
	made []any
	left int
}

func (g *grower) value() any {
	g.left--
	switch n := rapid.IntRange(0, 19).Draw(g.t, "kind"); {
	case g.left > 0 && n < 10:
		return g.object(n)
	case n < 12 && len(g.made) > 0:
		return rapid.SampledFrom(g.made).Draw(g.t, "again")
	case n < 14:
		return g.leaf()
	default:
		return g.primitive()
	}
}

func add[T any](g *grower, v T) T { g.made = append(g.made, v); return v }

func (g *grower) object(kind int) any {
	switch kind {
	case 0, 1:
		a := add(g, &Array{Items: []any{}})
		for range g.size() {
			if rapid.IntRange(0, 5).Draw(g.t, "hole") == 0 {
				a.Items = append(a.Items, Hole(rapid.Uint32Range(1, 1000).Draw(g.t, "holes")))
				continue
			}
			a.Items = append(a.Items, g.value())
		}
		return a
	case 2, 3:
		m := add(g, &Map{})
		for range g.size() {
			m.Entries = append(m.Entries, Entry{g.value(), g.value()})
		}
		return m
	case 4:
		s := add(g, &Set{})
		for range g.size() {
			s.Items = append(s.Items, g.value())
		}
		return s
	case 5, 6:
		e := add(g, &ErrorValue{Name: g.key(), Message: g.key(), Stack: g.key()})
		for _, m := range g.members() {
			if e.field(m.Key) == nil {
				e.Props = append(e.Props, m)
			}
		}
		return e
	}
	o := add(g, &Object{})
	o.Members = g.members()
	return o
}

func (g *grower) members() []Member {
	members := []Member{}
	for range g.size() {
		key := g.key()
		if !slices.ContainsFunc(members, func(m Member) bool { return m.Key == key }) {
			members = append(members, Member{key, g.value()})
		}
	}
	return members
}

func (g *grower) size() int { return rapid.IntRange(0, 4).Draw(g.t, "size") }

func (g *grower) key() string {
	special := []string{"", "@", "@ref", "@map", "@undefined", "__proto__", "a/b", "~", "~1", "0", "cause", "message", "\xed\xa0\x80", "x\xed\xbf\xbf"}
	if rapid.Bool().Draw(g.t, "special") {
		return rapid.SampledFrom(special).Draw(g.t, "key")
	}
	return rapid.String().Draw(g.t, "key")
}

func (g *grower) leaf() any {
	bytes := rapid.SliceOfN(rapid.Byte(), 8, 8).Draw(g.t, "bytes")
	switch rapid.IntRange(0, 5).Draw(g.t, "leaf") {
	case 0:
		return add(g, &Date{float64(rapid.Int64Range(-maxDateMs, maxDateMs).Draw(g.t, "ms"))})
	case 1:
		return add(g, &Date{math.NaN()})
	case 2:
		return add(g, &RegExp{g.key(), rapid.SampledFrom([]string{"", "g", "dgimsuy", "v"}).Draw(g.t, "flags")})
	case 3:
		return add(g, &URL{g.key()})
	case 4:
		kinds := []string{"ArrayBuffer", "DataView", "Uint8Array", "Float16Array", "Int32Array", "BigUint64Array"}
		return add(g, &Buffer{rapid.SampledFrom(kinds).Draw(g.t, "class"), bytes})
	}
	for {
		if p := g.primitive(); isBoxable(p) {
			return add(g, &Boxed{p})
		}
	}
}

func (g *grower) primitive() any {
	switch rapid.IntRange(0, 8).Draw(g.t, "primitive") {
	case 0:
		return nil
	case 1:
		return Undefined{}
	case 2:
		return rapid.Bool().Draw(g.t, "bool")
	case 3:
		return rapid.Float64().Draw(g.t, "number")
	case 4:
		return rapid.SampledFrom([]float64{math.NaN(), math.Inf(1), math.Inf(-1), math.Copysign(0, -1), 5e-324}).Draw(g.t, "special")
	case 5:
		return big.NewInt(rapid.Int64().Draw(g.t, "bigint"))
	case 6:
		units := rapid.SliceOfN(rapid.Uint16Range(0xD700, 0xE0FF), 0, 5).Draw(g.t, "units")
		return UTF16(append(units, 0xDBFF))
	case 7:
		return Handle{rapid.String().Draw(g.t, "handle"), rapid.SampledFrom([]HandleKind{HandleFunction, HandleIterator, HandleStream}).Draw(g.t, "kind")}
	}
	return rapid.String().Draw(g.t, "string")
}

// TestGraphsSurvive: Decode∘Encode gives a graph of the same shape, identities included, and Encode is stable.
func TestGraphsSurvive(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		g := grower{t: t, left: 30}
		graph := g.value()
		text, err := Encode(graph)
		if err != nil {
			t.Fatal(err)
		}
		back, err := Decode(text, ValueBounds)
		if err != nil {
			t.Fatalf("%s: %v", text, err)
		}
		if diff := (isomorphism{}).differs(reflect.ValueOf(&graph).Elem(), reflect.ValueOf(&back).Elem()); diff != "" {
			t.Fatalf("%s: %s", text, diff)
		}
		if again, err := Encode(back); err != nil || string(again) != string(text) {
			t.Fatalf("%s became %s, %v", text, again, err)
		}
	})
}

// isomorphism remembers which pointer of one graph is which of the other.
type isomorphism map[any]any

// differs says where two graphs differ, nothing when they do not.
func (iso isomorphism) differs(a, b reflect.Value) string {
	if a.Kind() == reflect.Interface {
		a, b = a.Elem(), b.Elem()
	}
	if a.IsValid() != b.IsValid() || a.IsValid() && a.Type() != b.Type() {
		return fmt.Sprintf("%v is not %v", a, b)
	}
	if !a.IsValid() {
		return ""
	}
	if i, ok := a.Interface().(*big.Int); ok {
		if i.Cmp(b.Interface().(*big.Int)) != 0 {
			return fmt.Sprintf("%v is not %v", a, b)
		}
		return ""
	}
	switch a.Kind() {
	case reflect.Pointer:
		return iso.pointers(a, b)
	case reflect.Struct:
		for i := range a.NumField() {
			if diff := iso.differs(a.Field(i), b.Field(i)); diff != "" {
				return a.Type().Field(i).Name + ": " + diff
			}
		}
	case reflect.Slice:
		if a.Len() != b.Len() {
			return fmt.Sprintf("%d items are not %d", a.Len(), b.Len())
		}
		for i := range a.Len() {
			if diff := iso.differs(a.Index(i), b.Index(i)); diff != "" {
				return fmt.Sprintf("[%d] %s", i, diff)
			}
		}
	case reflect.Float64:
		if x, y := a.Float(), b.Float(); math.Float64bits(x) != math.Float64bits(y) && !(math.IsNaN(x) && math.IsNaN(y)) {
			return fmt.Sprintf("%v is not %v", x, y)
		}
	default:
		if !a.Equal(b) {
			return fmt.Sprintf("%v is not %v", a, b)
		}
	}
	return ""
}

func (iso isomorphism) pointers(a, b reflect.Value) string {
	pa, pb := a.Interface(), b.Interface()
	ka, kb := [2]any{"a", pa}, [2]any{"b", pb}
	if other, seen := iso[ka]; seen || iso[kb] != nil {
		if other != pb || iso[kb] != pa {
			return "another object is shared"
		}
		return ""
	}
	iso[ka], iso[kb] = pb, pa
	return iso.differs(a.Elem(), b.Elem())
}
