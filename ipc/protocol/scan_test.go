package protocol

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"unicode/utf8"
)

// wide are bounds that no test text reaches.
var wide = Bounds{Bytes: 1 << 20, Depth: 64, Nodes: 1 << 16}

func TestCheck(t *testing.T) {
	tests := []struct {
		name, text string
		fault      TextFault // 0 when accepted
	}{
		{"null", `null`, 0},
		{"white space", " \t\r\n{ \"a\" : [ 1 , 2 ] } \n", 0},
		{"every escape", `"\"\\\/\b\f\n\r\t\u00e9\uD83d\ude00"`, 0},
		{"lone surrogate escape", `"\ud800"`, 0},
		{"long string", `"` + strings.Repeat("añ☃😀", 100) + `"`, 0},
		{"numbers", `[0,-0,10,1.5,-1.25e+10,1E-7,1e400]`, 0},
		{"nested empties", `[[],{},[{}],{"a":[]}]`, 0},
		{"empty", ``, Malformed},
		{"white space only", "  ", Malformed},
		{"two values", `1 2`, Malformed},
		{"value then comma", `1,`, Malformed},
		{"frame break-out", `1},"x":{"a":1`, Malformed},
		{"trailing comma", `[1,]`, Malformed},
		{"trailing comma in an object", `{"a":1,}`, Malformed},
		{"missing comma", `[1 2]`, Malformed},
		{"missing colon", `{"a" 1}`, Malformed},
		{"key not a string", `{1:2}`, Malformed},
		{"bracket for brace", `{"a":1]`, Malformed},
		{"brace for bracket", `[1}`, Malformed},
		{"open array", `[`, Malformed},
		{"open string", `"abc`, Malformed},
		{"open escape", `"abc\`, Malformed},
		{"short unicode escape", `"\u12"`, Malformed},
		{"unknown escape", `"\x41"`, Malformed},
		{"raw newline in a string", "\"a\nb\"", Malformed},
		{"raw NUL in a long string", `"0123456789` + "\x00" + `"`, Malformed},
		{"NUL after the value", "1\x00", Malformed},
		{"NUL as the value", "\x00", Malformed},
		{"invalid UTF-8", "\"abcdefgh\xff\"", Malformed},
		{"invalid UTF-8 in a key", "{\"\xc3\":1}", Malformed},
		{"UTF-8 cut by an escape", "\"\xc3\\n\xa9\"", Malformed},
		{"surrogate in UTF-8", "\"\xed\xa0\x80\"", Malformed},
		{"overlong UTF-8", "\"\xc0\x80\"", Malformed},
		{"byte order mark", "\ufeff1", Malformed},
		{"leading zero", `01`, Malformed},
		{"plus", `+1`, Malformed},
		{"bare minus", `-`, Malformed},
		{"bare point", `1.`, Malformed},
		{"bare exponent", `1e`, Malformed},
		{"NaN", `NaN`, Malformed},
		{"cut word", `tru`, Malformed},
		{"word with a tail", `nullx`, Malformed},
		{"comment", `1 // one`, Malformed},
		{"single quotes", `'a'`, Malformed},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) { wantFault(t, Check([]byte(tt.text), wide), tt.fault) })
	}
}

func wantFault(t *testing.T, err error, want TextFault) {
	t.Helper()
	var fault *TextError
	if errors.As(err, &fault); want == 0 && err != nil {
		t.Errorf("refused: %v", err)
	} else if want != 0 && (fault == nil || fault.Fault != want) {
		t.Errorf("got %v, want fault %d", err, want)
	}
}

func TestCheckBounds(t *testing.T) {
	tests := []struct {
		name, text string
		b          Bounds
		fault      TextFault
	}{
		{"bytes reached", `[1]`, Bounds{3, 1, 2}, 0},
		{"bytes passed", `[1] `, Bounds{3, 1, 2}, OverBound},
		{"depth reached", `[[]]`, Bounds{9, 2, 9}, 0},
		{"depth passed", `[{}]`, Bounds{9, 1, 9}, OverBound},
		{"depth zero", `[]`, Bounds{9, 0, 9}, OverBound},
		{"nodes reached", `{"a":[1,2]}`, Bounds{99, 9, 4}, 0},
		{"nodes passed", `{"a":[1,2,3]}`, Bounds{99, 9, 4}, OverBound},
		{"nodes zero", `1`, Bounds{9, 9, 0}, OverBound},
		{"negative", `1`, Bounds{-1, -1, -1}, OverBound},
		{"depth of the scanner", strings.Repeat("[", MaxDepth) + strings.Repeat("]", MaxDepth), Bounds{1 << 20, 1 << 30, 1 << 20}, 0},
		{"depth over the scanner", strings.Repeat("[", 1<<16), Bounds{1 << 20, 1 << 30, 1 << 20}, OverBound},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) { wantFault(t, Check([]byte(tt.text), tt.b), tt.fault) })
	}
}

func TestCheckAllocatesNothing(t *testing.T) {
	text := []byte(`{"a":[1,true,null,"é\n"],"b":{"c":{}}}`)
	if n := testing.AllocsPerRun(100, func() { _ = Check(text, wide) }); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

func TestMembers(t *testing.T) {
	text := []byte(" {\"a\": [1, {\"x\":2}] , \"\\u0062\":\"s\",\"\":null, \"\\ud800\":{} } ")
	got := ""
	err := Members(text, wide, func(key []byte, value json.RawMessage) error {
		got += string(key) + "=" + string(value) + ";"
		return nil
	})
	if want := "a=[1, {\"x\":2}];b=\"s\";=null;\xed\xa0\x80={};"; err != nil || got != want {
		t.Errorf("got %q, %v", got, err)
	}
}

func TestMembersRefuses(t *testing.T) {
	many := strings.Builder{}
	for i := range 40 {
		many.WriteString(`"k` + string(rune('0'+i)) + `":1,`)
	}
	tests := []struct {
		name, text string
		fault      TextFault
	}{
		{"array", `[1]`, OtherKind},
		{"null", `null`, OtherKind},
		{"malformed scalar", `nul`, Malformed},
		{"scalar and more", `1 1`, Malformed},
		{"twice", `{"a":1,"b":2,"a":3}`, Duplicate},
		{"twice by escape", `{"a":1,"\u0061":3}`, Duplicate},
		{"twice among many", `{` + many.String() + `"k0":1}`, Duplicate},
		{"tail", `{"a":1}x`, Malformed},
		{"empty with tail", `{}{}`, Malformed},
		{"broken member", `{"a":1,"b":[}`, Malformed},
		{"empty member", `{"a":}`, Malformed},
		{"trailing comma", `{"a":1,}`, Malformed},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			wantFault(t, Members([]byte(tt.text), wide, func([]byte, json.RawMessage) error { return nil }), tt.fault)
		})
	}
}

func TestItems(t *testing.T) {
	tests := []struct {
		name, text, want string
		fault            TextFault
	}{
		{"empty", ` [ ] `, "", 0},
		{"several", `[1 , [2,3],{"a":4}, "x"]`, `1;[2,3];{"a":4};"x";`, 0},
		{"object", `{}`, "", OtherKind},
		{"trailing comma", `[1,]`, "1;", Malformed},
		{"tail", `[1]]`, "1;", Malformed},
		{"open", `[1`, "1;", Malformed},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got := ""
			wantFault(t, Items([]byte(tt.text), wide, func(item json.RawMessage) error {
				got += string(item) + ";"
				return nil
			}), tt.fault)
			if got != tt.want {
				t.Errorf("got %s", got)
			}
		})
	}
}

func TestMembersStopsAtVisitorsError(t *testing.T) {
	stop, calls := errors.New("stop"), 0
	err := Members([]byte(`{"a":1,"b":2,!`), wide, func([]byte, json.RawMessage) error { calls++; return stop })
	if err != stop || calls != 1 {
		t.Errorf("got %v after %d calls", err, calls)
	}
}

// agrees is what the two fuzz targets hold the scanner to: encoding/json and unicode/utf8 accept exactly what it
// accepts inside the bounds.
func agrees(t *testing.T, text []byte) error {
	err := Check(text, wide)
	var fault *TextError
	if errors.As(err, &fault) && fault.Fault == OverBound {
		return err
	}
	if want := json.Valid(text) && utf8.Valid(text); (err == nil) != want {
		t.Fatalf("Check(%q) = %v, encoding/json says %v", text, err, want)
	}
	return err
}

func FuzzCheck(f *testing.F) {
	for _, s := range []string{`{"a":[1,2e3,"\u0041"]}`, "\"é\xff\"", `[[[{}]]]`, `-0.5e-7`, `tru`, `{"a":1,"a":2}`, " 1 "} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, text []byte) { agrees(t, text) })
}

func FuzzMembers(f *testing.F) {
	for _, s := range []string{`{"a":1,"\u0061":2}`, `{"a":{"b":[]},"c":"d"}`, `[]`, `{"\ud800":0,"\ud801":1}`} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		checked := agrees(t, text)
		n := 0
		err := Members(text, wide, func(_ []byte, value json.RawMessage) error {
			n++
			if Check(value, wide) != nil {
				t.Fatalf("member %q of %q is no value", value, text)
			}
			return nil
		})
		if err == nil {
			var m map[string]json.RawMessage
			if checked != nil || json.Unmarshal(text, &m) != nil || len(m) > n {
				t.Fatalf("Members accepted %q with %d members", text, n)
			}
		}
	})
}

func BenchmarkCheck(b *testing.B) {
	texts := map[string]string{
		"ascii string": `"` + strings.Repeat("The quick brown fox jumps over the lazy dog. ", 20000) + `"`,
		"cjk string":   `"` + strings.Repeat("可用的执行环境", 20000) + `"`,
		"records":      `[` + strings.Repeat(`{"id":12345,"name":"Ada Lovelace","tags":["a","b"],"score":1.5},`, 10000) + `0]`,
	}
	for name, text := range texts {
		b.Run(name, func(b *testing.B) {
			raw := []byte(text)
			b.SetBytes(int64(len(raw)))
			for b.Loop() {
				if err := Check(raw, Bounds{1 << 30, 10, 1 << 30}); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// TestLongStrings: what ends, interrupts or spoils a long string is seen wherever it is.
func TestLongStrings(t *testing.T) {
	const size = 3*plainStep + longString
	b := wide
	for _, at := range []int{0, 7, longString - 1, longString, longString + 8, plainStep, longString + plainStep + 7, 2*plainStep + 100, size - 1} {
		for odd, valid := range map[string]bool{"\x00": false, "\x1f": false, "\xff": false, "\xc3\xa9": true, `\n`: true, `\x`: false, `"`: false, "\x7f": true} {
			text := `"` + strings.Repeat("x", at) + odd + strings.Repeat("y", size-at) + `"`
			if err := Check([]byte(text), b); (err == nil) != valid {
				t.Errorf("%q at %d: %v", odd, at, err)
			}
			if json.Valid([]byte(text)) != valid && odd != "\xff" { // which encoding/json lets pass
				t.Errorf("%q at %d: the test is wrong", odd, at)
			}
		}
	}
}
