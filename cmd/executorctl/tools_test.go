package main

import (
	"errors"
	"strings"
	"testing"

	"github.com/executord/executord/ipc/protocol"
)

func TestParseToolsRefuses(t *testing.T) {
	for _, tc := range []struct{ name, file, want string }{
		{"no JSON", `{`, "unexpected end"},
		{"array", `[]`, "object of objects"},
		{"tool that is no object", `{"p":{"t":1}}`, "p.t: a tool is"},
		{"unknown key", `{"p":{"t":{"comand":["x"]}}}`, `unknown field "comand"`},
		{"nothing", `{"p":{"t":{}}}`, "exactly one"},
		{"two answers", `{"p":{"t":{"value":1,"error":"x"}}}`, "exactly one"},
		{"empty command", `{"p":{"t":{"command":[]}}}`, "command is empty"},
		{"command that is a string", `{"p":{"t":{"command":"ls"}}}`, "p.t: a tool is"},
		{"value with an unknown tag", `{"p":{"t":{"value":{"@nope":1}}}}`, "p.t:"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			if _, err := parseTools([]byte(tc.file)); err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("got %v, want %s in it", err, tc.want)
			}
		})
	}
}

func TestTools(t *testing.T) {
	for _, tc := range []struct{ name, spec, args, want, thrown string }{
		{"value", `{"value":{"@date":5}}`, `1`, `{"@date":5}`, ""},
		{"null", `{"value":null}`, `1`, `null`, ""},
		{"error", `{"error":"no"}`, `1`, "", "no"},
		{"command gets its arguments", `{"command":["cat"]}`, `{"a":[1]}`, `[{"a":[1]}]`, ""},
		{"command that prints nothing", `{"command":["true"]}`, `1`, `{"@undefined":true}`, ""},
		{"command that prints no JSON", `{"command":["echo","hello"]}`, `1`, "", "did not print one JSON value"},
		{"command that fails", `{"command":["sh","-c","echo why >&2; exit 3"]}`, `1`, "", "sh failed: exit status 3: why"},
		{"command that is not there", `{"command":["/nowhere/none"]}`, `1`, "", "/nowhere/none failed"},
		{"command that prints too much", `{"command":["yes"]}`, `1`, "", "printed more than 8388608 bytes"},
		{"command that talks too much", `{"command":["sh","-c","yes error | head -c 100000 >&2; exit 1"]}`, `1`, "", "sh failed: exit status 1"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			tool, err := parseTool([]byte(tc.spec))
			if err != nil {
				t.Fatal(err)
			}
			v, err := tool(t.Context(), []protocol.Value{protocol.Value(tc.args)})
			var thrown *protocol.ThrownError
			switch {
			case tc.thrown == "" && (err != nil || string(v) != tc.want):
				t.Errorf("value %s, %v", v, err)
			case tc.thrown != "" && (!errors.As(err, &thrown) || !strings.Contains(thrown.Message, tc.thrown)):
				t.Errorf("value %s, error %v", v, err)
			case thrown != nil && len(thrown.Message) > maxToolErrorBytes+200:
				t.Errorf("the message has %d bytes", len(thrown.Message))
			}
		})
	}
}

func TestShow(t *testing.T) {
	for _, tc := range []struct{ value, want string }{
		{`1e21`, "1e+21"},
		{`"a\"b"`, `"a\"b"`},
		{`[1,null,true,{"@undefined":true}]`, "[1, null, true, undefined]"},
		{`{}`, "{}"},
		{`{"a":1,"b-c":2,"":3}`, `{ a: 1, "b-c": 2, "": 3 }`},
		{`{"@map":[["k",{"@set":[1]}]]}`, `Map(1) { "k" => Set(1) { 1 } }`},
		{`{"@date":0}`, "1970-01-01T00:00:00.000Z"},
		{`{"@date":null}`, "Invalid Date"},
		{`{"@regexp":["a+","g"]}`, "/a+/g"},
		{`{"@bytes":"AQI="}`, "Uint8Array(2 bytes) <01 02>"},
		{`{"@error":{"name":"TypeError","message":"m","code":"E"}}`, `TypeError: m { code: "E" }`},
		{`[{"@hole":3},1]`, "[<3 empty>, 1]"},
		{`{"self":{"@ref":""}}`, "{ self: [Circular] }"},
		{`[{"@number":"NaN"},{"@number":"-0"}]`, "[NaN, -0]"},
		{`{"@blob":{"type":"text/plain","data":{"@bytes":"aGk="}}}`, "Blob text/plain(2 bytes) <68 69>"},
		{`{"@file":{"name":"a b","type":"","lastModified":0,"data":{"@bytes":""}}}`, `File "a b"(0 bytes) <>`},
		{`{"@headers":[["content-type","text/html"]]}`, `Headers { "content-type": "text/html" }`},
		{`{"@formdata":[["a","1"]]}`, `FormData { a: "1" }`},
		{`{"@request":{"method":"GET","url":"http://a/","headers":[],"body":null}}`, `Request GET "http://a/" {}`},
		{`{"@response":{"status":404,"statusText":"Not Found","url":"","headers":[],"body":{"@bytes":"aGk="}}}`, "Response 404 Not Found {} (2 bytes) <68 69>"},
	} {
		if got := show(protocol.Value(tc.value)); got != tc.want {
			t.Errorf("%s is shown as %s, want %s", tc.value, got, tc.want)
		}
	}
	deep := strings.Repeat("[", 1000) + strings.Repeat("]", 1000)
	if got := show(protocol.Value(deep)); !strings.Contains(got, "[…]") {
		t.Errorf("a deep value is shown in %d bytes", len(got))
	}
	long := "[" + strings.TrimSuffix(strings.Repeat("1,", 5000), ",") + "]"
	if got := show(protocol.Value(long)); !strings.Contains(got, "… 4000 more") {
		t.Errorf("a long value is shown in %d bytes", len(got))
	}
}

func TestPrintable(t *testing.T) {
	for _, tc := range []struct{ text, want string }{
		{"plain\ttext\n", "plain\ttext\n"},
		{"\x1b[31mred\x07", `\x1b[31mred\x07`},
		{"\u009b1m", `\x9b1m`},
		{"a\u202eb", `a\u202eb`},
		{"\r", `\x0d`},
		{"é\u2028", `é\u2028`},
	} {
		if got := printable(tc.text, true); got != tc.want {
			t.Errorf("%q is printed as %q, want %q", tc.text, got, tc.want)
		}
		if got := printable(tc.text, false); got != tc.text {
			t.Errorf("%q is changed where there is no terminal", tc.text)
		}
	}
}

func TestCaret(t *testing.T) {
	for _, tc := range []struct {
		source string
		column int
		want   string
	}{
		{"foo()", 1, "foo()\n^\n"},
		{"\tfoo()", 2, "\tfoo()\n\t^\n"},
		{`"😀" + x`, 8, "\"😀\" + x\n      ^\n"},
		{"ab", 99, "ab\n  ^\n"},
	} {
		var b strings.Builder
		printCaret(stream{Writer: &b}, &protocol.Position{Line: 1, Column: tc.column, SourceLine: tc.source})
		if b.String() != tc.want {
			t.Errorf("%q at %d gives\n%s", tc.source, tc.column, b.String())
		}
	}
	var b strings.Builder
	printCaret(stream{Writer: &b}, &protocol.Position{Column: 5000, SourceLine: strings.Repeat("x", 10000)})
	if line, _, _ := strings.Cut(b.String(), "\n"); len(line) != maxSourceColumns {
		t.Errorf("a long line is shown with %d columns", len(line))
	}
}
