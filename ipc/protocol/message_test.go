package protocol

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"reflect"
	"strings"
	"testing"
)

func TestParseMessage(t *testing.T) {
	tests := []struct {
		name, text string
		want       Message
	}{
		{
			"request", `{"jsonrpc":"2.0","id":7,"method":"execute","params":{"code":"1"}}`,
			Message{Kind: KindRequest, ID: raw(`7`), Method: "execute", Params: raw(`{"code":"1"}`)},
		},
		{
			"any order, unknown members", ` { "params" : [1] , "x": {"id":1}, "method":"\u0061", "id":"q", "jsonrpc":"2.0" } `,
			Message{Kind: KindRequest, ID: raw(`"q"`), Method: "a", Params: raw(`[1]`)},
		},
		{
			"null id", `{"jsonrpc":"2.0","id":null,"method":"m"}`,
			Message{Kind: KindRequest, ID: raw(`null`), Method: "m"},
		},
		{"notification", `{"jsonrpc":"2.0","method":"m"}`, Message{Kind: KindNotification, Method: "m"}},
		{
			"result", `{"jsonrpc":"2.0","id":-1.5e3,"result":null}`,
			Message{Kind: KindResponse, ID: raw(`-1.5e3`), Result: raw(`null`)},
		},
		{
			"error", `{"jsonrpc":"2.0","id":null,"error":{"code":-32000,"message":"no","data":{"name":"E"}}}`,
			Message{Kind: KindResponse, ID: raw(`null`), Error: &ErrorObject{Code: -32000, Message: "no", Data: raw(`{"name":"E"}`)}},
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got, err := ParseMessage([]byte(tt.text), wide)
			if err != nil || !reflect.DeepEqual(got, tt.want) {
				t.Errorf("got %+v, %v", got, err)
			}
		})
	}
}

func raw(s string) json.RawMessage { return json.RawMessage(s) }

func TestParseMessageRefuses(t *testing.T) {
	tests := []struct {
		name, text string
		typ        Type
		id         string
	}{
		{"nothing", ``, ParseError, ""},
		{"broken", `{"jsonrpc":"2.0","id":1,`, ParseError, ""},
		{"invalid UTF-8", "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"\xff\"}", ParseError, ""},
		{"broken array", `[1,`, ParseError, ""},
		{"batch", `[{"jsonrpc":"2.0","id":1,"method":"m"}]`, InvalidRequest, ""},
		{"string", `"hello"`, InvalidRequest, ""},
		{"empty object", `{}`, InvalidRequest, ""},
		{"no version", `{"id":1,"method":"m"}`, InvalidRequest, "1"},
		{"version 1", `{"jsonrpc":"1.0","id":1,"method":"m"}`, InvalidRequest, "1"},
		{"version a number", `{"jsonrpc":2.0,"id":1,"method":"m"}`, InvalidRequest, "1"},
		{"method a number, id later", `{"jsonrpc":"2.0","method":1,"id":"x"}`, InvalidRequest, `"x"`},
		{"method an object", `{"jsonrpc":"2.0","method":{"a":"\\"},"id":"x"}`, InvalidRequest, `"x"`},
		{"method empty", `{"jsonrpc":"2.0","method":"","id":1}`, InvalidRequest, "1"},
		{"method long", `{"jsonrpc":"2.0","method":"` + strings.Repeat("m", 129) + `","id":1}`, InvalidRequest, "1"},
		{"method lone surrogate", `{"jsonrpc":"2.0","method":"\ud800","id":1}`, InvalidRequest, "1"},
		{"params a string", `{"jsonrpc":"2.0","method":"m","params":"x","id":1}`, InvalidRequest, "1"},
		{"id an object", `{"jsonrpc":"2.0","method":"m","id":{}}`, InvalidRequest, ""},
		{"id true", `{"jsonrpc":"2.0","method":"m","id":true}`, InvalidRequest, ""},
		{"id long", `{"jsonrpc":"2.0","method":"m","id":"` + strings.Repeat("i", 129) + `"}`, InvalidRequest, ""},
		{"id twice", `{"jsonrpc":"2.0","method":"m","id":1,"id":2}`, InvalidRequest, "1"},
		{"method and result", `{"jsonrpc":"2.0","method":"m","id":1,"result":2}`, InvalidRequest, "1"},
		{"result and error", `{"jsonrpc":"2.0","id":1,"result":2,"error":{"code":1,"message":""}}`, InvalidRequest, "1"},
		{"response without id", `{"jsonrpc":"2.0","result":2}`, InvalidRequest, ""},
		{"response with params", `{"jsonrpc":"2.0","id":1,"result":2,"params":[]}`, InvalidRequest, "1"},
		{"error a string", `{"jsonrpc":"2.0","id":1,"error":"x"}`, InvalidRequest, "1"},
		{"error code a string", `{"jsonrpc":"2.0","id":1,"error":{"code":"x"}}`, InvalidRequest, "1"},
		{"too deep", `{"jsonrpc":"2.0","id":1,"method":"m","params":` + strings.Repeat("[", 99), InvalidRequest, "1"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			m, err := ParseMessage([]byte(tt.text), wide)
			if !errors.Is(err, tt.typ) || string(m.ID) != tt.id {
				t.Errorf("got %v, id %s", err, m.ID)
			}
		})
	}
}

func TestErrorCrossesTheWire(t *testing.T) {
	for _, e := range []*Error{
		{Type: Overloaded, Message: "full", RetryAfterMs: 120},
		{Type: InvalidParams, Message: "must be a \"number\"\n", Field: "limits.cpuMs"},
		{
			Type: Exception, Name: "TypeError", Message: "x", Stack: "at main.js:1:2", Cause: raw(`{"@undefined":true}`),
			Thrown: raw(`[1]`), Position: &Position{"main.js", 1, 2, "x()"}, Reason: "r",
		},
	} {
		m, err := ParseMessage(AppendError(nil, raw(`"a"`), e), wide)
		if err != nil || m.Kind != KindResponse {
			t.Fatal(m, err)
		}
		if got := m.Error.Typed(); !reflect.DeepEqual(got, e) {
			t.Errorf("got %+v, want %+v", got, e)
		}
		info, _ := e.Type.Info()
		var data struct{ Retryable bool }
		if json.Unmarshal(m.Error.Data, &data); data.Retryable != info.Retryable || m.Error.Code != info.Code {
			t.Errorf("code %d, data %s", m.Error.Code, m.Error.Data)
		}
	}
}

func TestTypedOfStrangers(t *testing.T) {
	tests := []struct {
		name string
		e    ErrorObject
		want Type
	}{
		{"no data", ErrorObject{Code: -32601, Message: "no such"}, UnknownMethod},
		{"unknown type", ErrorObject{Code: -32043, Data: raw(`{"type":"brand_new"}`)}, Overloaded},
		{"unknown both", ErrorObject{Code: 5, Data: raw(`{"type":"brand_new"}`)}, Internal},
		{"data of another kind", ErrorObject{Code: -32043, Data: raw(`"text"`)}, Overloaded},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if got := tt.e.Typed(); got.Type != tt.want || got.Message != tt.e.Message {
				t.Errorf("got %v", got)
			}
		})
	}
	if got := (&ErrorObject{Code: -32043, Data: raw(`{"type":"overloaded","retryAfterMs":-5}`)}).Typed(); got.RetryAfterMs != 0 {
		t.Errorf("it is to be tried again in %d ms", got.RetryAfterMs)
	}
	if got := AppendError(nil, nil, &Error{Type: "brand_new"}); !strings.Contains(string(got), `"id":null,"error":{"code":-32603`) {
		t.Errorf("an unknown type went out: %s", got)
	}
}

func TestThrownCrossesTheWire(t *testing.T) {
	for _, want := range []*ThrownError{
		{Name: "NotFound", Message: "no user \u2028 7", Code: "E404"},
		{Message: "thrown", Thrown: raw(`{"@bigint":"1"}`)},
		{},
	} {
		m, err := ParseMessage(AppendThrown(nil, NumberID(3), want), wide)
		if err != nil || !reflect.DeepEqual(m.Error.Thrown(), want) {
			t.Errorf("got %+v, %v", m.Error, err)
		}
	}
	stranger := &ErrorObject{Code: 1, Message: "boom"}
	if got := stranger.Thrown(); got.Message != "boom" {
		t.Errorf("got %+v", got)
	}
}

func TestAppendMessages(t *testing.T) {
	tests := []struct {
		name, got, want string
	}{
		{
			"request", string(AppendRequest(nil, NumberID(1), "session.open", raw(`{}`))),
			`{"jsonrpc":"2.0","id":1,"method":"session.open","params":{}}`,
		},
		{"request without params", string(AppendRequest(nil, raw(`"x"`), "m", nil)), `{"jsonrpc":"2.0","id":"x","method":"m"}`},
		{"notification", string(AppendNotification(nil, "m", raw(`[1]`))), `{"jsonrpc":"2.0","method":"m","params":[1]}`},
		{"result", string(AppendResult([]byte("x"), NumberID(1), raw(`5`))), `x{"jsonrpc":"2.0","id":1,"result":5}`},
		{"no result", string(AppendResult(nil, nil, nil)), `{"jsonrpc":"2.0","id":null,"result":null}`},
		{"tool result", string(AppendToolResult(nil, NumberID(1), raw(`[]`))), `{"jsonrpc":"2.0","id":1,"result":{"value":[]}}`},
		{
			"tool result undefined", string(AppendToolResult(nil, NumberID(1), nil)),
			`{"jsonrpc":"2.0","id":1,"result":{"value":{"@undefined":true}}}`,
		},
		{
			"tool call", string(AppendToolCall(nil, NumberID(9), &ToolCallParams{"e", 2, "db", []string{"a", "b\""}, raw(`[1]`)})),
			`{"jsonrpc":"2.0","id":9,"method":"tool.call","params":{"execution":"e","call":2,"provider":"db","path":["a","b\""],"args":[1]}}`,
		},
		{
			"log", string(AppendLogNotification(nil, &LogParams{"e", Log{Level: LevelWarn, Time: 1.5, Text: "a\xffb\x00"}})),
			`{"jsonrpc":"2.0","method":"execution.log","params":{"execution":"e","level":"warn","time":1.5,"text":"a` + "\uFFFD" + `b\u0000"}}`,
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if tt.got != tt.want {
				t.Errorf("got  %s\nwant %s", tt.got, tt.want)
			}
			if _, err := ParseMessage([]byte(strings.TrimPrefix(tt.got, "x")), wide); err != nil {
				t.Error(err)
			}
		})
	}
}

var outcomes = []*Outcome{
	{Status: StatusOK, Value: raw(`{"@map":[]}`), Logs: []Log{}},
	{
		Status: StatusOK, Value: raw(`1`),
		Logs: []Log{
			{Level: LevelLog, Time: 0.25, Text: "tab\t\"quoted\" \\ </script> \u2028 é", Args: []Value{raw(`[1]`), raw(`"x"`)}},
			{Level: LevelWarn, Truncated: &Truncated{Lines: 3, Bytes: 900}},
		},
		Stats: Stats{1.5, 2, 3e-7, 4, 5, 6, 0, "w1", &Limits{CPUMs: 7, ToolCalls: 8}},
	},
	{
		Status: StatusError, Logs: []Log{},
		Error: &Error{
			Type: Syntax, Name: "SyntaxError", Message: "Unexpected }", Stack: "s", Cause: raw(`null`), Thrown: raw(`"t"`),
			Position: &Position{"main.js", 3, 4, "}"}, Reason: "r", Field: "f", RetryAfterMs: 5,
		},
		Calls: []Call{
			{Call: 1, Provider: "db", Path: []string{"users", "\"get\""}, Status: CallOK, Ms: 1.5},
			{Omitted: 7},
			{Call: 9, Provider: "db", Path: []string{"x"}, Status: CallPending},
		},
	},
}

func TestAppendOutcome(t *testing.T) {
	for _, o := range outcomes {
		got := AppendOutcome(nil, o)
		want, err := json.Marshal(o)
		if err != nil {
			t.Fatal(err)
		}
		var a, b any
		if json.Unmarshal(got, &a) != nil || json.Unmarshal(want, &b) != nil || !reflect.DeepEqual(a, b) {
			t.Errorf("got  %s\nwant %s", got, want)
		}
		back, err := DecodeOutcome(got, wide)
		if err != nil || !reflect.DeepEqual(back, o) {
			t.Errorf("back %+v, %v", back, err)
		}
		m, err := ParseMessage(AppendOutcomeResult(nil, NumberID(1), o), wide)
		if err != nil || !bytes.Equal(m.Result, got) {
			t.Errorf("result %s, %v", m.Result, err)
		}
	}
}

// fill sets every field of a struct, and those of what is in it, to something.
func fill(v reflect.Value) {
	switch v.Kind() {
	case reflect.Struct:
		for i := range v.NumField() {
			fill(v.Field(i))
		}
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		fill(v.Elem())
	case reflect.Slice:
		if v.Type() == rawType {
			v.SetBytes([]byte(`{"a":1}`))
			return
		}
		v.Set(reflect.MakeSlice(v.Type(), 1, 1))
		fill(v.Index(0))
	case reflect.String:
		v.SetString("x")
	case reflect.Float64:
		v.SetFloat(0.5)
	case reflect.Uint64:
		v.SetUint(7)
	default:
		v.SetInt(7)
	}
}

// TestAppendOutcomeLeavesNothingOut: what has been added to an Outcome, or to what is in it, is on the wire.
func TestAppendOutcomeLeavesNothingOut(t *testing.T) {
	var whole Outcome
	fill(reflect.ValueOf(&whole).Elem())
	listed, omitted := whole.Calls[0], Call{Omitted: 7}
	listed.Omitted = 0
	whole.Calls = []Call{listed, omitted}
	good, bad := whole, whole
	good.Status, good.Error = StatusOK, nil
	bad.Status, bad.Value = StatusError, nil
	for _, o := range []*Outcome{&good, &bad} {
		got, err := DecodeOutcome(AppendOutcome(nil, o), wide)
		if err != nil || !reflect.DeepEqual(got, o) {
			t.Errorf("%s comes back as %+v, %v", AppendOutcome(nil, o), got, err)
		}
	}
}

func TestAppendOutcomeIsAlwaysJSON(t *testing.T) {
	o := &Outcome{
		Status: StatusOK, Error: &Error{Type: "\xff", Message: "\xed\xa0\x80", Position: &Position{File: "\xc3"}},
		Logs: []Log{{Level: "\x00", Time: math.NaN(), Text: "\xf0\x9f", Args: []Value{nil}}}, Stats: Stats{CPUMs: math.Inf(1)},
	}
	if got := AppendOutcome(nil, o); Check(got, wide) != nil || !bytes.Contains(got, []byte(`"value":{"@undefined":true}`)) {
		t.Errorf("got %s", got)
	}
}

func TestDecodeOutcomeRefuses(t *testing.T) {
	for _, text := range []string{
		`[]`, `{}`, `{"status":"ok"}`, `{"status":"error"}`, `{"status":"error","error":null}`, `{"status":"fine","value":1}`,
		`{"status":"ok","value":1,"logs":{}}`, `{"status":"ok","value":1,"stats":[]}`, `{"status":1}`,
		`{"status":"ok","value":1,"error":{"type":"syntax"}}`, `{"status":"ok","value":1`,
	} {
		if o, err := DecodeOutcome(raw(text), wide); err == nil {
			t.Errorf("accepted %s as %+v", text, o)
		}
	}
}

func TestDecodeParams(t *testing.T) {
	var open SessionOpen
	if err := DecodeParams(raw(`{"client":{"name":"c","version":"1"},"resume":"t"}`), &open); err != nil || open.Client.Name != "c" {
		t.Errorf("got %+v, %v", open, err)
	}
	if err := DecodeParams(nil, &SessionOpen{}); err != nil {
		t.Errorf("no params: %v", err)
	}
	tests := []struct{ name, text, field string }{
		{"unknown", `{"clinet":{}}`, "clinet"},
		{"kind", `{"client":{"name":5}}`, "client.name"},
		{"array", `[]`, ""},
		{"null", `null`, ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			err := DecodeParams(raw(tt.text), &SessionOpen{})
			if e := AsError(err); e == nil || e.Type != InvalidParams || e.Field != tt.field {
				t.Errorf("got %v", err)
			}
		})
	}
}

func TestDecodeHandleInvoke(t *testing.T) {
	h, err := DecodeHandleInvoke(raw(`{"handle":"h1","args":[1,{"@map":[]}],"limits":{"cpuMs":5},"execution":"e","method":"next","logs":{"stream":true}}`), wide)
	want := &HandleInvoke{
		Execution: "e", Handle: "h1", Method: HandleNext, Args: []Value{raw(`1`), raw(`{"@map":[]}`)}, Limits: Limits{CPUMs: 5}, Logs: LogOptions{Stream: true},
	}
	if err != nil || !reflect.DeepEqual(h, want) {
		t.Errorf("got %+v, %v", h, err)
	}
	for text, field := range map[string]string{
		`{}`: "handle", `{"handle":"h","limits":{"cpums":5}}`: "limits.cpums", `{"handle":"h","args":{}}`: "args",
		`{"handle":5}`: "handle", `{"handle":"h","x":1}`: "x", `{"handle":"h","method":"call"}`: "method",
		`{"handle":"h","limits":{"heapMiB":5}}`: "limits.heapMiB", `{"handle":"h","execution":"\u0007"}`: "execution",
	} {
		if _, err := DecodeHandleInvoke(raw(text), wide); err == nil || AsError(err).Field != field {
			t.Errorf("%s: got %v", text, err)
		}
	}
}

// TestArgsOfAnInvocation: so many are taken, and not one more, whoever asks; what the last is worth is named.
func TestArgsOfAnInvocation(t *testing.T) {
	bounds := Bounds{1 << 20, 8, 1 << 18}
	for n, ok := range map[int]bool{MaxArgs: true, MaxArgs + 1: false} {
		text := raw(`{"handle":"h","args":[` + strings.TrimSuffix(strings.Repeat(`1,`, n), ",") + `]}`)
		_, decoded := DecodeHandleInvoke(text, bounds)
		h := &HandleInvoke{Handle: "h", Args: make([]Value, n)}
		for _, err := range []error{decoded, ValidateInvoke(h)} {
			if ok != (err == nil) || !ok && AsError(err).Field != "args" {
				t.Errorf("%d: got %v", n, err)
			}
		}
		if h.Args[n-1] = raw(`{`); ok && AsError(ValidateInvoke(h)).Field != fmt.Sprintf("args[%d]", n-1) {
			t.Errorf("the last is none: %v", ValidateInvoke(h))
		}
	}
}

func TestDecodeHandleRelease(t *testing.T) {
	long := strings.Repeat("x", MaxHandleBytes+1)
	ids := func(n int) string { return `{"handles":[` + strings.TrimSuffix(strings.Repeat(`"a",`, n), ",") + `]}` }
	for _, tt := range []struct {
		params string
		n      int
		field  string
	}{
		{``, 0, "handles"},
		{`{}`, 0, "handles"},
		{`{"handles":null}`, 0, "handles"},
		{`{"handles":{}}`, 0, "handles"},
		{`{"handles":[]}`, 0, ""},
		{`{"handles":["a.1","a"]}`, 2, ""},
		{`{"handles":["a",""]}`, 0, "handles[1]"},
		{`{"handles":["a",1]}`, 0, "handles[1]"},
		{`{"handles":["` + long + `"]}`, 0, "handles[0]"},
		{`{"handles":["` + long[1:] + `"]}`, 1, ""},
		{`{"handles":["a\n"]}`, 0, "handles[0]"},
		{`{"handles":[],"x":1}`, 0, "x"},
		{ids(MaxReleased), MaxReleased, ""},
		{ids(MaxReleased + 1), 0, "handles"},
	} {
		var params json.RawMessage
		if tt.params != "" {
			params = raw(tt.params)
		}
		h, err := DecodeHandleRelease(params, Bounds{1 << 20, 8, 1 << 14})
		switch {
		case tt.field == "" && (err != nil || len(h.Handles) != tt.n):
			t.Errorf("%.100s: got %v, %v", tt.params, h, err)
		case tt.field != "" && (err == nil || AsError(err).Type != InvalidParams || AsError(err).Field != tt.field):
			t.Errorf("%.100s: got %v", tt.params, err)
		}
	}
}

func TestRetainedOf(t *testing.T) {
	for id, want := range map[string]string{"a.1": "a", "a.b.12": "a.b", "a": "a", "": "", ".1": ""} {
		if got := RetainedOf(id); got != want {
			t.Errorf("%q belongs to %q", id, got)
		}
	}
}

func TestDecodeToolCall(t *testing.T) {
	want := &ToolCallParams{"e", 1 << 60, "db", []string{"users", "get"}, raw(`[{"@undefined":true}]`)}
	m, err := ParseMessage(AppendToolCall(nil, NumberID(1), want), wide)
	if err != nil {
		t.Fatal(err)
	}
	if got, err := DecodeToolCall(m.Params, wide); err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("got %+v, %v", got, err)
	}
	for _, text := range []string{
		`{}`, `{"provider":"a"}`, `{"provider":"a","path":[]}`, `{"provider":"a","path":["x"],"args":{}}`,
		`{"provider":"a","path":["x"],"call":-1}`, `{"provider":1,"path":["x"]}`, `[]`,
	} {
		if got, err := DecodeToolCall(raw(text), wide); err == nil {
			t.Errorf("accepted %s as %+v", text, got)
		}
	}
}

func TestDecodeToolResult(t *testing.T) {
	tests := []struct{ name, text, want string }{
		{"value", `{"value":[1,2]}`, `[1,2]`},
		{"null", `{"value":null}`, `null`},
		{"absent", `{}`, `{"@undefined":true}`},
		{"not an object", `5`, ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got, err := DecodeToolResult(raw(tt.text), wide)
			if string(got) != tt.want || (err == nil) != (tt.want != "") {
				t.Errorf("got %s, %v", got, err)
			}
		})
	}
}

func TestDecodeError(t *testing.T) {
	e, err := DecodeError([]byte(` {"type":"syntax","message":"m","position":{"line":1}} `), wide)
	if err != nil || e.Type != Syntax || e.Position.Line != 1 {
		t.Errorf("got %+v, %v", e, err)
	}
	for _, text := range []string{``, `{}`, `null`, `{"type":"nonsense"}`, `{"type":"syntax","message":5}`, `{"type":"syntax"}}`} {
		if e, err := DecodeError([]byte(text), wide); err == nil {
			t.Errorf("accepted %q as %+v", text, e)
		}
	}
}

func TestNumberID(t *testing.T) {
	if n, ok := ParseNumberID(NumberID(math.MaxUint64)); !ok || n != math.MaxUint64 {
		t.Errorf("got %d, %v", n, ok)
	}
	for _, id := range []string{``, `null`, `"1"`, `01`, `1.0`, `-1`, `1e3`, `+1`} {
		if n, ok := ParseNumberID(raw(id)); ok {
			t.Errorf("%s is %d", id, n)
		}
	}
}

// FuzzMessage: an accepted message says the same after its parts were pasted into a new one.
func FuzzMessage(f *testing.F) {
	for _, s := range []string{
		`{"jsonrpc":"2.0","id":7,"method":"execute","params":{"code":"1"}}`, `{"jsonrpc":"2.0","method":"m"}`,
		`{"jsonrpc":"2.0","id":"\u0000","result":[{}]}`, `{"jsonrpc":"2.0","id":1,"error":{"code":-32700,"message":"x"}}`, `[]`,
	} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		m, err := ParseMessage(text, wide)
		if err != nil {
			if !errors.Is(err, ParseError) && !errors.Is(err, InvalidRequest) {
				t.Fatalf("untyped: %v", err)
			}
			return
		}
		var again []byte
		switch {
		case m.Kind == KindRequest:
			again = AppendRequest(nil, m.ID, m.Method, m.Params)
		case m.Kind == KindNotification:
			again = AppendNotification(nil, m.Method, m.Params)
		case m.Error != nil:
			_, _ = m.Error.Typed(), m.Error.Thrown()
			return
		default:
			again = AppendResult(nil, m.ID, m.Result)
		}
		if back, err := ParseMessage(again, wide); err != nil || !reflect.DeepEqual(back, m) {
			t.Fatalf("%s became %s: %+v, %v", text, again, back, err)
		}
	})
}

func BenchmarkAppendOutcome(b *testing.B) {
	dst := make([]byte, 0, 1<<20)
	for b.Loop() {
		dst = AppendOutcome(dst[:0], outcomes[1])
	}
}

// TestTexts: a message in parts is the message.
func TestTexts(t *testing.T) {
	for _, size := range []int{0, 10, apartBytes - 2, apartBytes, 1 << 20} {
		value := Value(`"` + strings.Repeat("x", size) + `"`)
		o := &Outcome{Status: StatusOK, Value: value, Logs: []Log{{Level: LevelInfo, Text: "a"}}, Stats: Stats{ToolCalls: 1}}
		c := &ToolCallParams{Execution: "e", Call: 2, Provider: "db", Path: []string{"a"}, Args: Value("[" + string(value) + "]")}
		for _, tc := range []struct {
			parts Text
			whole []byte
		}{
			{OutcomeResult(NumberID(7), o), AppendOutcomeResult(nil, NumberID(7), o)},
			{ToolCallRequest(NumberID(7), c), AppendToolCall(nil, NumberID(7), c)},
		} {
			if got := bytes.Join(tc.parts, nil); !bytes.Equal(got, tc.whole) || tc.parts.Len() != len(got) {
				t.Errorf("size %d: parts of %d bytes, want %.100q", size, tc.parts.Len(), tc.whole)
			}
		}
		if large := len(value) >= apartBytes; large != (len(OutcomeResult(NumberID(7), o)) > 1) {
			t.Errorf("size %d: %d parts", size, len(OutcomeResult(NumberID(7), o)))
		}
	}
}
