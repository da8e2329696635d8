package protocol

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"math/big"
	"net/netip"
	"net/url"
	"reflect"
	"strings"
	"testing"
	"time"
)

// TestUnmarshalAny has what each tag becomes without a type to go by.
func TestUnmarshalAny(t *testing.T) {
	tests := []struct {
		name, text string
		want       any
	}{
		{"plain", `{"a":[1,"x",true,null]}`, map[string]any{"a": []any{1.0, "x", true, nil}}},
		{"undefined", `[{"@undefined":true}]`, []any{nil}},
		{"holes", `[1,{"@hole":2}]`, []any{1.0, nil, nil}},
		{"bigint", `{"@bigint":"5"}`, big.NewInt(5)},
		{"infinity", `{"@number":"Infinity"}`, math.Inf(1)},
		{"date", `{"@date":1500}`, time.UnixMilli(1500).UTC()},
		{"invalid date", `{"@date":null}`, time.Time{}},
		{"regexp", `{"@regexp":["a","g"]}`, &RegExp{"a", "g"}},
		{"url", `{"@url":"http://a/"}`, &URL{"http://a/"}},
		{"map", `{"@map":[[{"@bigint":"1"},[2]]]}`, &Map{[]Entry{{big.NewInt(1), []any{2.0}}}}},
		{"set", `{"@set":[{"a":1}]}`, &Set{[]any{map[string]any{"a": 1.0}}}},
		{"error", `{"@error":{"message":"m","cause":[]}}`, &ErrorValue{Name: "Error", Message: "m", Props: []Member{{"cause", []any{}}}}},
		{"bytes", `{"@bytes":"AQ=="}`, []byte{1}},
		{"buffer", `{"@buffer":["Int8Array","AQ=="]}`, &Buffer{"Int8Array", []byte{1}}},
		{"boxed", `{"@boxed":[{"@utf16":"ANg="}]}`, "\uFFFD"},
		{"handle", `{"@handle":"h"}`, Handle{ID: "h"}},
		{"object like a tag", `{"@object":{"@map":1}}`, map[string]any{"@map": 1.0}},
		{"lone surrogates", `{"\ud800":"\udfff"}`, map[string]any{"\uFFFD": "\uFFFD"}},
		{"reference", `[[1],{"@ref":"/0"}]`, []any{[]any{1.0}, []any{1.0}}},
		{"__proto__", `{"__proto__":1}`, map[string]any{"__proto__": 1.0}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			var got any
			if err := Unmarshal(Value(tt.text), &got); err != nil || !reflect.DeepEqual(got, tt.want) {
				t.Errorf("got %#v, %v", got, err)
			}
		})
	}
}

type target struct {
	When  time.Time
	Till  *time.Time `json:"till"`
	Count *big.Int
	Data  []byte
	Seen  map[string]bool
	Link  *url.URL
	Err   error
	Raw   Value
	Exact *Map
	F     float64
	I     int
	Any   any
	Set   []string
	Key   map[int]string
	Addr  netip.Addr
	H     Handle
	S     string
	Hash  [2]byte
}

func TestUnmarshalStruct(t *testing.T) {
	text := `{"When":{"@date":5},"till":{"@date":6},"count":{"@bigint":"12345678901234567890"},"Data":{"@bytes":"AQI="},
		"Seen":{"@map":[["a",true],["b",false]]},"Link":{"@url":"http://a/b?c"},"Err":{"@error":{"name":"E","message":"m"}},
		"Raw":[{"@bigint":"1"}],"Exact":{"@map":[[[],1]]},"F":{"@number":"-Infinity"},"I":{"@bigint":"7"},
		"Any":{"@set":[1]},"Set":{"@set":["x","y"]},"Key":{"5":"five"},"Addr":"1.2.3.4","H":{"@handle":"h"},
		"S":{"@url":"http://s/"},"Hash":{"@buffer":["ArrayBuffer","AQI="]},"unknown":{"@date":null}}`
	var got target
	if err := Unmarshal(Value(text), &got); err != nil {
		t.Fatal(err)
	}
	six := time.UnixMilli(6).UTC()
	count, _ := new(big.Int).SetString("12345678901234567890", 10)
	want := target{
		When: time.UnixMilli(5).UTC(), Till: &six, Count: count, Data: []byte{1, 2},
		Seen: map[string]bool{"a": true, "b": false}, Link: &url.URL{Scheme: "http", Host: "a", Path: "/b", RawQuery: "c"},
		Err: &ErrorValue{Name: "E", Message: "m"}, Raw: Value(`[{"@bigint":"1"}]`),
		Exact: &Map{[]Entry{{&Array{Items: []any{}}, 1.0}}}, F: math.Inf(-1), I: 7, Any: &Set{[]any{1.0}},
		Set: []string{"x", "y"}, Key: map[int]string{5: "five"}, Addr: netip.MustParseAddr("1.2.3.4"), H: Handle{ID: "h"},
		S: "http://s/", Hash: [2]byte{1, 2},
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got  %+v\nwant %+v", got, want)
	}
}

// TestUnmarshalPlainIsJSON holds Unmarshal to encoding/json wherever that one succeeds.
func TestUnmarshalPlainIsJSON(t *testing.T) {
	texts := []string{
		`null`, `true`, `0`, `-1`, `1.5`, `300`, `1e2`, `"x"`, `"AQI="`, `"2024-01-02T03:04:05Z"`, `"5"`, `[]`, `[1,2,3]`, `["a"]`,
		`[null,1]`, `{}`, `{"a":1}`, `{"1":2}`, `{"Shared":"s","deep":3,"DEEP":4}`, `{"plain":"p","R":5,"Quoted":"7","any":{"x":[1]}}`,
		`{"file":"f","line":9}`, `{"ref":5,"big":"1.5"}`, `{"ref":null,"Dash":1,"-":2,"Hidden":3,"private":4}`, `{"map":{"::1":true}}`,
		`"\ud800"`, `18446744073709551615`, `9007199254740993`, `{"zero":"2024-01-02T03:04:05Z"}`,
	}
	targets := []any{
		new(any), new(bool), new(int), new(int8), new(uint), new(uint64), new(float32), new(float64), new(string), new(*int),
		new([]byte), new([]int), new([2]int), new([]any), new([]*int), new(map[string]any), new(map[int]int), new(map[string]int),
		new(time.Time), new(big.Int), new(*big.Int), new(json.Number), new(named), new(*named), new(struct{ inner }),
		new(Value), new(netip.Addr), new(map[netip.Addr]bool), new([]struct{ A int }),
	}
	for _, text := range texts {
		for _, target := range targets {
			typ := reflect.TypeOf(target).Elem()
			want, got := reflect.New(typ), reflect.New(typ)
			if json.Unmarshal([]byte(text), want.Interface()) != nil {
				continue
			}
			if err := Unmarshal(Value(text), got.Interface()); err != nil {
				t.Errorf("%s into %s: %v", text, typ, err)
			} else if !reflect.DeepEqual(got.Interface(), want.Interface()) {
				t.Errorf("%s into %s: %+v, not %+v", text, typ, got.Elem(), want.Elem())
			}
		}
	}
}

func TestUnmarshalRefuses(t *testing.T) {
	tests := []struct {
		name, text string
		into       any
	}{
		{"not JSON", `{`, new(any)},
		{"not a pointer", `1`, 5},
		{"nil pointer", `1`, (*int)(nil)},
		{"nothing", `1`, nil},
		{"string into int", `"1"`, new(int)},
		{"fraction into int", `1.5`, new(int)},
		{"overflow", `300`, new(int8)},
		{"overflow by exponent", `1e20`, new(int64)},
		{"negative into unsigned", `-1`, new(uint)},
		{"NaN into int", `{"@number":"NaN"}`, new(int)},
		{"float32 overflow", `1e300`, new(float32)},
		{"bigint into small", `{"@bigint":"300"}`, new(int8)},
		{"bigint into float", `{"@bigint":"3"}`, new(float64)},
		{"date into string", `{"@date":5}`, new(string)},
		{"map into struct", `{"@map":[]}`, new(inner)},
		{"set into map", `{"@set":[]}`, new(map[string]int)},
		{"unhashable key", `{"@map":[[[1],2]]}`, new(map[any]int)},
		{"bytes into numbers", `{"@bytes":"AQ=="}`, new([]int)},
		{"bytes into a longer array", `{"@bytes":"AQ=="}`, new([2]byte)},
		{"object into slice", `{}`, new([]int)},
		{"array into map", `[]`, new(map[string]int)},
		{"handle into string", `{"@handle":"h"}`, new(string)},
		{"object into error", `{}`, new(error)},
		{"interface with methods", `1`, new(fmt.Stringer)},
		{"object into Map", `{}`, new(Map)},
		{"undefined into Map", `{"@undefined":true}`, new(Map)},
		{"part with references to others as text", `[[],[{"@ref":"/0"}]]`, new([]Value)},
		{"part with a reference to the whole as text", `[[{"@ref":""}]]`, new([]Value)},
		{"tag into its own JSON", `{"@date":5}`, new(big.Float)},
		{"cycle", `[{"@ref":""}]`, new(any)},
		{"cycle into a type", `{"Next":{"@ref":""}}`, new(self)},
		{"unknown tag", `[{"@x":1}]`, new([]int)},
		{"too many holes", `[{"@hole":4294967295}]`, new([]int)},
		{"too many holes for any", `[{"@hole":4294967295}]`, new(any)},
		{"hole in a set", `{"@set":[{"@hole":1}]}`, new([]int)},
		{"key twice", `{"a":1,"a":2}`, new(map[string]int)},
		{"quoted without quotes", `{"Quoted":5}`, new(named)},
		{"quoted not JSON", `{"Quoted":"x"}`, new(named)},
		{"URL that Go cannot read", `{"@url":"http://a b/"}`, new(url.URL)},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if err := Unmarshal(Value(tt.text), tt.into); err == nil {
				t.Errorf("decoded to %+v", tt.into)
			}
		})
	}
}

// A part that is taken out as text counts its references from its own root.
func TestUnmarshalPartsAsText(t *testing.T) {
	var got struct {
		Done  bool  `json:"done"`
		Value Value `json:"value"`
	}
	err := Unmarshal(Value(`{"done":true,"value":[[1],{"@ref":"/value/0"},{"@map":[[{"@ref":"/value"},2]]}]}`), &got)
	if want := `[[1],{"@ref":"/0"},{"@map":[[{"@ref":""},2]]}]`; err != nil || !got.Done || string(got.Value) != want {
		t.Errorf("got %s, %v, want %s", got.Value, err, want)
	}
}

func TestUnmarshalKeepsIdentityOfExactTypes(t *testing.T) {
	var got struct{ A, B *Array }
	err := Unmarshal(Value(`{"C":{"@map":[[1,[2]]]},"A":{"@ref":"/C/@map/0/1"},"B":{"@ref":"/C/@map/0/1"}}`), &got)
	if err != nil || got.A == nil || got.A != got.B || len(got.A.Items) != 1 {
		t.Errorf("got %+v, %v", got, err)
	}
	var loop *Array
	if err := Unmarshal(Value(`[{"@ref":""}]`), &loop); err != nil || loop.Items[0] != any(loop) {
		t.Errorf("got %v", err)
	}
}

// TestUnmarshalStopsInTime has small texts whose copies would be endless or nest too deep.
func TestUnmarshalStopsInTime(t *testing.T) {
	text := func(first string, n int, item func(i int) string) string {
		items := []string{first}
		for i := range n {
			items = append(items, item(i))
		}
		return "[" + strings.Join(items, ",") + "]"
	}
	laughs := text("[]", 100, func(i int) string { return fmt.Sprintf(`[{"@ref":"/%d"},{"@ref":"/%d"}]`, i, i) })
	ladder := text("[]", 100000, func(i int) string { return fmt.Sprintf(`[{"@ref":"/%d"}]`, i) })
	for _, text := range []string{laughs, ladder} {
		var plain any
		var typed []any
		for _, into := range []any{&plain, &typed} {
			var bad *ValueError
			if err := Unmarshal(Value(text), into); !errors.As(err, &bad) {
				t.Errorf("%.60s: got %v", text, err)
			}
		}
		if _, err := Decode(Value(text), ValueBounds); err != nil {
			t.Errorf("%.60s: %v", text, err)
		}
	}
	wide := text("[]", 100000, func(int) string { return `{"@ref":"/0"}` })
	if v, err := Decode(Value(wide), ValueBounds); err != nil || len(v.(*Array).Items) != 100001 {
		t.Error(err)
	}
}

func TestMarshalUnmarshalRoundTrip(t *testing.T) {
	six := time.UnixMilli(6).UTC()
	want := target{
		When: time.UnixMilli(5).UTC(), Till: &six, Count: big.NewInt(3), Data: []byte{1}, Seen: map[string]bool{"@a": true},
		Link: &url.URL{Scheme: "http", Host: "a"}, Raw: Value(`1`), Exact: &Map{}, F: math.Copysign(0, -1), Any: "x",
		Set: []string{"a"}, Key: map[int]string{1: "b"}, Addr: netip.MustParseAddr("::1"), H: Handle{ID: "h"},
	}
	text, err := Marshal(want)
	if err != nil {
		t.Fatal(err)
	}
	var got target
	if err := Unmarshal(text, &got); err != nil || !reflect.DeepEqual(got, want) || !math.Signbit(got.F) {
		t.Errorf("%s\ngot  %+v, %v\nwant %+v", text, got, err, want)
	}
}

func BenchmarkUnmarshal(b *testing.B) {
	text := Value(`[` + strings.Repeat(`{"id":12345,"name":"Ada Lovelace","tags":["a","b"],"when":{"@date":5}},`, 1000) + `{}]`)
	b.SetBytes(int64(len(text)))
	b.Run("any", func(b *testing.B) {
		for b.Loop() {
			var v any
			if err := Unmarshal(text, &v); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("exact", func(b *testing.B) {
		for b.Loop() {
			if _, err := Decode(text, ValueBounds); err != nil {
				b.Fatal(err)
			}
		}
	})
}
