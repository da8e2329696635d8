package protocol

import (
	"encoding/json"
	"errors"
	"math"
	"math/big"
	"net/netip"
	"net/url"
	"strings"
	"testing"
	"time"
)

type inner struct {
	Shared string
	Deep   int `json:"deep"`
}

type named struct {
	inner
	*Position
	Plain   string
	Renamed int `json:"r"`
	Hidden  int `json:"-"`
	//lint:ignore SA5008 encoding/json calls this field "-"
	Dash   int                 `json:"-,"`
	Empty  []int               `json:"empty,omitempty"`
	Zero   time.Time           `json:"zero,omitzero"`
	Quoted int                 `json:",string"`
	Ref    *int                `json:"ref"`
	Any    any                 `json:"any"`
	Big    big.Float           `json:"big"` // its methods are those of the pointer
	Map    map[netip.Addr]bool `json:"map"`
	Deep   string              `json:"Deep"`
	//lint:ignore U1000 must be passed over
	private  int
	Callback func() `json:"callback,omitempty"`
}

type tagged string // text that is no tag, though its object looks like one

func (t tagged) MarshalJSON() ([]byte, error) {
	return []byte(`{"@` + string(t) + `":[{"@x":1},{"a":2}]}`), nil
}

type self struct{ Next any }

// handleOf has a handle.
type handleOf struct{ handle Handle }

func (h *handleOf) Handle() Handle { return h.handle }

func TestMarshal(t *testing.T) {
	five := 5
	where, _ := url.Parse("https://example.com/a?b=c")
	shared := &Array{}
	tests := []struct {
		name string
		v    any
		want string
	}{
		{"nil", nil, `null`},
		{"integers", []any{int8(-1), uint16(2), int64(1<<53 - 1), uintptr(3)}, `[-1,2,9007199254740991,3]`},
		{"floats", []any{1.5, float32(0.1), 1e21, 1e-7}, `[1.5,0.1,1e+21,1e-07]`},
		{"special floats", []float64{math.NaN(), math.Inf(-1), math.Copysign(0, -1)}, `[{"@number":"NaN"},{"@number":"-Infinity"},{"@number":"-0"}]`},
		{"string", "a\"\xff\u2028", `"a\"` + "\uFFFD" + `\u2028"`},
		{"bytes", []byte{1, 2}, `{"@bytes":"AQI="}`},
		{"array of bytes", [2]byte{1, 2}, `{"@bytes":"AQI="}`},
		{"nil bytes", []byte(nil), `{"@bytes":""}`},
		{"nil slice", []int(nil), `[]`},
		{"nil map", map[string]int(nil), `{}`},
		{"nil pointer", (*int)(nil), `null`},
		{"pointer", &five, `5`},
		{"time", time.UnixMilli(5), `{"@date":5}`},
		{"pointer to a time", new(time.Time), `{"@date":-62135596800000}`},
		{"big integer", big.NewInt(-7), `{"@bigint":"-7"}`},
		{"big integer by value", *big.NewInt(7), `{"@bigint":"7"}`},
		{"nil big integer", (*big.Int)(nil), `null`},
		{"URL", where, `{"@url":"https://example.com/a?b=c"}`},
		{"address", netip.MustParseAddr("::1"), `"::1"`},
		{"json.Number", json.Number("1.50"), `1.50`},
		{"error", errors.New("no"), `{"@error":{"name":"Error","message":"no"}}`},
		{"thrown error", &ThrownError{Name: "E", Message: "m", Code: "c"}, `{"@error":{"name":"E","message":"m","code":"c"}}`},
		{"undefined", []any{Undefined{}}, `[{"@undefined":true}]`},
		{"map", map[string]any{"b": 1, "a": []int{2}}, `{"a":[2],"b":1}`},
		{"map with numbers", map[int]bool{2: true, 10: false}, `{"10":false,"2":true}`},
		{"map like a tag", map[string]int{"@map": 1}, `{"@object":{"@map":1}}`},
		{"struct like a tag", struct {
			X int `json:"@x"`
		}{1}, `{"@object":{"@x":1}}`},
		{"raw", []any{Value(` {"@date":null} `), Value(nil)}, `[{"@date":null},{"@undefined":true}]`},
		{"raw with references", map[string]any{"a/b": Value(`[[],{"@ref":"/0"}]`)}, `{"a/b":[[],{"@ref":"/a~1b/0"}]}`},
		{"plain JSON like tags", []any{tagged("map")}, `[{"@object":{"@map":[{"@object":{"@x":1}},{"a":2}]}}]`},
		{"types of the codec", map[string]any{"a": &Map{Entries: []Entry{{1, shared}}}, "b": shared}, `{"a":{"@map":[[1,[]]]},"b":{"@ref":"/a/@map/0/1"}}`},
		{"codec by value", []any{Map{}, struct{ D Date }{Date{5}}, Handle{ID: "h"}, struct{ U Undefined }{}}, `[{"@map":[]},{"D":{"@date":5}},{"@handle":"h"},{"U":{"@undefined":true}}]`},
		{"nil of the codec", (*Map)(nil), `null`},
		{"of a handle", []any{&handleOf{Handle{"h", HandleStream}}, struct{ H *handleOf }{&handleOf{Handle{ID: "i"}}}}, `[{"@handle":["h","stream"]},{"H":{"@handle":"i"}}]`},
		{
			"struct", &named{inner: inner{"s", 1}, Ref: &five, Any: inner{Deep: 2}, Map: map[netip.Addr]bool{netip.MustParseAddr("1.2.3.4"): true}, Deep: "D"},
			`{"Shared":"s","deep":1,"Plain":"","r":0,"-":0,"Quoted":"0","ref":5,"any":{"Shared":"","deep":2},"big":"0","map":{"1.2.3.4":true},"Deep":"D"}`,
		},
		{
			"embedded pointer", struct{ *Position }{&Position{"f", 1, 2, ""}}, `{"file":"f","line":1,"column":2}`,
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got, err := Marshal(tt.v)
			if err != nil || string(got) != tt.want {
				t.Errorf("got  %s, %v\nwant %s", got, err, tt.want)
			}
			if _, err := Decode(got, ValueBounds); err != nil {
				t.Error(err)
			}
		})
	}
}

func TestMarshalRefuses(t *testing.T) {
	loop := &self{}
	loop.Next = loop
	list := make([]any, 1)
	list[0] = list
	m := map[string]any{}
	m["m"] = m
	var p any
	p = &p
	tests := []struct {
		name string
		v    any
		path string
	}{
		{"cycle of pointers", loop, ""},
		{"cycle of slices", list, ""},
		{"cycle of maps", m, ""},
		{"pointer to itself", p, ""},
		{"channel", map[string]any{"a": []any{make(chan int)}}, "/a/0"},
		{"function", func() {}, ""},
		{"complex", 1i, ""},
		{"large integer", map[string]int64{"id": 1 << 53}, "/id"},
		{"large unsigned", []uint64{math.MaxUint64}, "/0"},
		{"keys without text", map[[1]int]int{{1}: 1}, ""},
		{"time too far", time.Date(300000, 1, 1, 0, 0, 0, 0, time.UTC), ""},
		{"json.Number of text", json.Number("x"), ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got, err := Marshal(tt.v)
			if e, ok := err.(*ValueError); !ok || e.Path != tt.path {
				t.Errorf("got %.100s, %v", got, err)
			}
		})
	}
	for _, raw := range []string{``, `{`, `1 2`, "\"\xff\""} {
		if got, err := Marshal([]any{Value(raw)}); err == nil {
			t.Errorf("pasted %q: %s", raw, got)
		}
	}
}

func TestMarshalStopsInTime(t *testing.T) {
	var v any = "x"
	for range 100 { // 2 to the power of 100 strings
		v = []any{v, v}
	}
	if _, err := Marshal(v); err == nil || !strings.Contains(err.Error(), "larger than") {
		t.Errorf("got %v", err)
	}
}

func BenchmarkMarshal(b *testing.B) {
	rows := make([]map[string]any, 1000)
	for i := range rows {
		rows[i] = map[string]any{"id": i, "name": "Ada Lovelace", "tags": []string{"a", "b"}}
	}
	for b.Loop() {
		if _, err := Marshal(rows); err != nil {
			b.Fatal(err)
		}
	}
}
