package protocol

import (
	"bytes"
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"
)

func TestDecodeExecute(t *testing.T) {
	params := ` { "execution": "a1", "code": "export default 1 \u00e9", "form": "module", "language": "javascript",
		"name": "job.js", "input": {"@undefined":true}, "network": "none", "logs": {"stream": true}, "retain": {"ttlMs": 5000},
		"providers": [{"name": "db"}, {"name": "fs", "tools": ["read", ["dir", "list"]]}, {"name": "no", "tools": []}],
		"modules": {"./lib.js": {"source": "export {}"}, "b": {"source": "AAE=", "type": "bytes"}},
		"limits": {"cpuMs": 50, "toolCalls": 1e3}, "trace": {"traceparent": "00-ab", "tracestate": "x=1"} } `
	got, err := DecodeExecute(json.RawMessage(params), wide)
	if err != nil {
		t.Fatal(err)
	}
	want := &Execute{
		Execution: "a1", Code: "export default 1 é", Form: FormModule, Language: JavaScript, Name: "job.js",
		Input: Value(`{"@undefined":true}`), Network: NetworkNone, Logs: LogOptions{Stream: true},
		Retain: &Retain{TTLMs: 5000},
		Providers: []Provider{
			{Name: "db", Tools: Tools{All: true}},
			{Name: "fs", Tools: Tools{Paths: [][]string{{"read"}, {"dir", "list"}}}},
			{Name: "no", Tools: Tools{Paths: [][]string{}}},
		},
		Modules: map[string]ModuleSource{"./lib.js": {Source: "export {}"}, "b": {Source: "AAE=", Type: ModuleBytes}},
		Limits:  Limits{CPUMs: 50, ToolCalls: 1000}, Trace: &Trace{Traceparent: "00-ab", Tracestate: "x=1"},
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got  %+v\nwant %+v", got, want)
	}
	if err := Validate(got); err != nil {
		t.Errorf("Validate refuses what DecodeExecute took: %v", err)
	}
}

// refused are params that must name this type and field.
var refused = []struct {
	name, params string
	typ          Type
	field        string
}{
	{"not an object", `[]`, InvalidParams, ""},
	{"not JSON", `{"code":`, ParseError, ""},
	{"unknown field", `{"code":"1","cpuMs":5}`, InvalidParams, "cpuMs"},
	{"other case", `{"Code":"1"}`, InvalidParams, "Code"},
	{"twice", `{"code":"1","code":"2"}`, InvalidParams, ""},
	{"no code", `{}`, InvalidCode, "code"},
	{"empty code", `{"code":""}`, InvalidCode, "code"},
	{"blank code", `{"code":" \n\ufeff\u2028"}`, InvalidCode, "code"},
	{"lone surrogate in the code", `{"code":"'\ud800'"}`, InvalidParams, "code"},
	{"code is a number", `{"code":1}`, InvalidParams, "code"},
	{"code is null", `{"code":null}`, InvalidParams, "code"},
	{"unknown form", `{"code":"1","form":"esm"}`, InvalidParams, "form"},
	{"unknown language", `{"code":"1","language":"ruby"}`, InvalidParams, "language"},
	{"fetches that are not positive", `{"code":"1","limits":{"fetches":0}}`, InvalidParams, "limits.fetches"},
	{"bytes of fetches that are not whole", `{"code":"1","limits":{"fetchBytes":1.5}}`, InvalidParams, "limits.fetchBytes"},
	{"retain for no time", `{"code":"1","retain":{"ttlMs":0}}`, InvalidParams, "retain.ttlMs"},
	{"retain misspelt", `{"code":"1","retain":{"ttl":5}}`, InvalidParams, "retain.ttl"},
	{"retain is a string", `{"code":"1","retain":"yes"}`, InvalidParams, "retain"},
	{"name with a newline", `{"code":"1","name":"a\nb"}`, InvalidParams, "name"},
	{"name with a line separator", `{"code":"1","name":"a\u2028b"}`, InvalidParams, "name"},
	{"id with a bell", `{"code":"1","execution":"\u0007"}`, InvalidParams, "execution"},
	{"id not printable", `{"code":"1","execution":"a\u00adb"}`, InvalidParams, "execution"},
	{"zero limit", `{"code":"1","limits":{"cpuMs":0}}`, InvalidParams, "limits.cpuMs"},
	{"negative limit", `{"code":"1","limits":{"wallMs":-1}}`, InvalidParams, "limits.wallMs"},
	{"fractional limit", `{"code":"1","limits":{"heapMiB":1.5}}`, InvalidParams, "limits.heapMiB"},
	{"huge limit", `{"code":"1","limits":{"logBytes":9007199254740992}}`, InvalidParams, "limits.logBytes"},
	{"infinite limit", `{"code":"1","limits":{"logBytes":1e999}}`, InvalidParams, "limits.logBytes"},
	{"limit in quotes", `{"code":"1","limits":{"cpuMs":"5"}}`, InvalidParams, "limits.cpuMs"},
	{"limit misspelt", `{"code":"1","limits":{"cpums":5}}`, InvalidParams, "limits.cpums"},
	{"limits not an object", `{"code":"1","limits":5}`, InvalidParams, "limits"},
	{"logs misspelt", `{"code":"1","logs":{"streaming":true}}`, InvalidParams, "logs.streaming"},
	{"stream not boolean", `{"code":"1","logs":{"stream":1}}`, InvalidParams, "logs.stream"},
	{"providers not an array", `{"code":"1","providers":{}}`, InvalidParams, "providers"},
	{"provider not an object", `{"code":"1","providers":["a"]}`, InvalidParams, "providers[0]"},
	{"provider field", `{"code":"1","providers":[{"name":"a","prelude":""}]}`, InvalidParams, "providers[0].prelude"},
	{"provider name type", `{"code":"1","providers":[{"name":"a"},{"name":5}]}`, InvalidParams, "providers[1].name"},
	{"provider without name", `{"code":"1","providers":[{}]}`, InvalidProvider, "providers[0].name"},
	{"provider reserved", `{"code":"1","providers":[{"name":"fetch"}]}`, InvalidProvider, "providers[0].name"},
	{"provider twice", `{"code":"1","providers":[{"name":"a"},{"name":"\u0061"}]}`, InvalidProvider, "providers[1].name"},
	{"tools a word", `{"code":"1","providers":[{"name":"a","tools":"all"}]}`, InvalidParams, "providers[0].tools"},
	{"tools an object", `{"code":"1","providers":[{"name":"a","tools":{}}]}`, InvalidParams, "providers[0].tools"},
	{"tool a number", `{"code":"1","providers":[{"name":"a","tools":["x",1]}]}`, InvalidParams, "providers[0].tools[1]"},
	{"tool empty", `{"code":"1","providers":[{"name":"a","tools":[""]}]}`, InvalidProvider, "providers[0].tools[0]"},
	{"tool path empty", `{"code":"1","providers":[{"name":"a","tools":[[]]}]}`, InvalidProvider, "providers[0].tools[0]"},
	{"tool path item", `{"code":"1","providers":[{"name":"a","tools":[["x",null]]}]}`, InvalidParams, "providers[0].tools[0][1]"},
	{"tool twice", `{"code":"1","providers":[{"name":"a","tools":["x",["x"]]}]}`, InvalidProvider, "providers[0].tools[1]"},
	{"module type", `{"code":"1","modules":{"m":{"source":"","type":"wasm"}}}`, InvalidParams, `modules["m"].type`},
	{"module field", `{"code":"1","modules":{"m":{"text":""}}}`, InvalidParams, `modules["m"].text`},
	{"module base64", `{"code":"1","modules":{"m":{"source":"A","type":"bytes"}}}`, InvalidParams, `modules["m"].source`},
	{"module base64 in lines", `{"code":"1","modules":{"m":{"source":"AA\nE=","type":"bytes"}}}`, InvalidParams, `modules["m"].source`},
	{"module without specifier", `{"code":"1","modules":{"":{"source":""}}}`, InvalidParams, "modules"},
	{"module lone surrogate", `{"code":"1","modules":{"\ud800":{"source":""}}}`, InvalidParams, "modules"},
	{"module twice", `{"code":"1","modules":{"a":{"source":""},"\u0061":{"source":""}}}`, InvalidParams, "modules"},
	{"trace field", `{"code":"1","trace":{"baggage":""}}`, InvalidParams, "trace.baggage"},
	{"trace with a newline", `{"code":"1","trace":{"tracestate":"a\r\nb"}}`, InvalidParams, "trace.tracestate"},
}

func TestDecodeExecuteRefuses(t *testing.T) {
	for _, tt := range refused {
		t.Run(tt.name, func(t *testing.T) {
			e, err := DecodeExecute(json.RawMessage(tt.params), wide)
			if err == nil {
				t.Fatalf("accepted: %+v", e)
			}
			if got := AsError(err); got.Type != tt.typ || got.Field != tt.field || got.Message == "" {
				t.Errorf("got %s field %q: %v", got.Type, got.Field, err)
			}
		})
	}
}

func TestValidateGoCallers(t *testing.T) {
	many := make([]Provider, MaxProviders+1)
	for i := range many {
		many[i].Name = fmt.Sprintf("p%d", i)
	}
	tests := []struct {
		name  string
		e     Execute
		typ   Type // empty when accepted
		field string
	}{
		{"least", Execute{Code: "1"}, "", ""},
		{"zero tools", Execute{Code: "1", Providers: []Provider{{Name: "a"}}}, "", ""},
		{"code not UTF-8", Execute{Code: "\xff"}, InvalidCode, "code"},
		{"code too large", Execute{Code: strings.Repeat("a", MaxCodeBytes+1)}, InvalidCode, "code"},
		{"input not JSON", Execute{Code: "1", Input: Value(`1}`)}, InvalidParams, "input"},
		{"input empty", Execute{Code: "1", Input: Value{}}, InvalidParams, "input"},
		{"retain", Execute{Code: "1", Retain: &Retain{}}, "", ""},
		{"retain for less than no time", Execute{Code: "1", Retain: &Retain{TTLMs: -1}}, InvalidParams, "retain.ttlMs"},
		{"negative limit", Execute{Code: "1", Limits: Limits{LogLines: -1}}, InvalidParams, "limits.logLines"},
		{"huge limit", Execute{Code: "1", Limits: Limits{LogLines: MaxLimit + 1}}, InvalidParams, "limits.logLines"},
		{"too many providers", Execute{Code: "1", Providers: many}, InvalidParams, "providers"},
		{"long id", Execute{Code: "1", Execution: strings.Repeat("i", MaxExecutionBytes+1)}, InvalidParams, "execution"},
		{"long name", Execute{Code: "1", Name: strings.Repeat("n", MaxNameBytes+1)}, InvalidParams, "name"},
		{"name not UTF-8", Execute{Code: "1", Name: "\xff"}, InvalidParams, "name"},
		{
			"all tools and a list",
			Execute{Code: "1", Providers: []Provider{{Name: "a", Tools: Tools{true, [][]string{}}}}},
			InvalidParams, "providers[0].tools",
		},
		{
			"module not UTF-8",
			Execute{Code: "1", Modules: map[string]ModuleSource{"m": {Source: "\xff"}}},
			InvalidParams, `modules["m"].source`,
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			err := Validate(&tt.e)
			if tt.typ == "" && err != nil {
				t.Fatalf("refused: %v", err)
			}
			if e := AsError(err); tt.typ != "" && (e == nil || e.Type != tt.typ || e.Field != tt.field) {
				t.Errorf("got %v", err)
			}
		})
	}
}

func TestToolsJSON(t *testing.T) {
	tests := []struct {
		name, text string
		tools      Tools
	}{
		{"all", `"*"`, Tools{All: true}},
		{"none", `[]`, Tools{Paths: [][]string{}}},
		{"names and paths", `["a",["b","c"],"\"\u2028"]`, Tools{Paths: [][]string{{"a"}, {"b", "c"}, {"\"\u2028"}}}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			var got Tools
			if err := json.Unmarshal([]byte(tt.text), &got); err != nil || !reflect.DeepEqual(got, tt.tools) {
				t.Errorf("read %+v, %v", got, err)
			}
			if text, err := json.Marshal(tt.tools); err != nil || string(text) != tt.text {
				t.Errorf("wrote %s, %v", text, err)
			}
		})
	}
	text, err := json.Marshal(Provider{Name: "a"})
	if err != nil || string(text) != `{"name":"a"}` {
		t.Errorf("provider without tools: %s, %v", text, err)
	}
	if err := new(Tools).UnmarshalJSON(nil); err == nil {
		t.Error("accepted no text")
	}
}

func TestLimitsJSON(t *testing.T) {
	var l Limits
	if err := json.Unmarshal([]byte(`{"cpuMs":5,"futureLimit":{"a":1}}`), &l); err != nil || l != (Limits{CPUMs: 5}) {
		t.Errorf("got %+v, %v", l, err)
	}
	for _, text := range []string{`{"cpuMs":0}`, `{"cpuMs":-5}`, `{"cpuMs":0.5}`, `{"cpuMs":null}`, `{"cpuMs":1e300}`, `[]`, `null`} {
		if err := l.UnmarshalJSON([]byte(text)); err == nil {
			t.Errorf("accepted %s", text)
		}
	}
}

func TestLimitNamesAreAllFields(t *testing.T) {
	typ := reflect.TypeFor[Limits]()
	names := LimitNames()
	if typ.NumField() != len(names) {
		t.Fatalf("%d fields, %d names", typ.NumField(), len(names))
	}
	var l Limits
	for i, name := range names {
		if tag, _, _ := strings.Cut(typ.Field(i).Tag.Get("json"), ","); tag != name {
			t.Errorf("field %d is %s, not %s", i, tag, name)
		}
		if l.Field(name) != reflect.ValueOf(&l).Elem().Field(i).Addr().Interface() {
			t.Errorf("%s is kept in another field", name)
		}
	}
	if l.Field("cpu") != nil {
		t.Error("there is a limit cpu")
	}
}

// FuzzExecute: whatever is accepted survives its own encoding and every later check.
func FuzzExecute(f *testing.F) {
	f.Add([]byte(`{"code":"1","limits":{"cpuMs":5},"providers":[{"name":"a","tools":["b",["c","d"]]}],"retain":{"ttlMs":7}}`))
	f.Add([]byte(`{"code":"1","modules":{"a":{"source":"x","type":"text"}},"input":[{"@date":null}]}`))
	for _, tt := range refused {
		f.Add([]byte(tt.params))
	}
	f.Fuzz(func(t *testing.T, params []byte) {
		e, err := DecodeExecute(params, wide)
		if err != nil {
			if _, ok := err.(*Error); !ok {
				t.Fatalf("untyped error %v", err)
			}
			return
		}
		if err := Validate(e); err != nil {
			t.Fatalf("Validate: %v", err)
		}
		text, err := EncodeParams(e)
		if err != nil {
			t.Fatal(err)
		}
		again, err := DecodeExecute(text, Bounds{1 << 22, 64, 1 << 16})
		if err != nil {
			t.Fatalf("%s: %v", text, err)
		}
		if e.Code != again.Code || !reflect.DeepEqual(e.Providers, again.Providers) || e.Limits != again.Limits {
			t.Fatalf("%s: not the same", text)
		}
	})
}

// FuzzHandleInvoke: whatever is accepted survives its own encoding and every later check.
func FuzzHandleInvoke(f *testing.F) {
	for _, s := range []string{
		`{"handle":"h.1","args":[1,{"@map":[]},{"@handle":"h.2"}],"limits":{"cpuMs":5},"execution":"e","method":"next","logs":{"stream":true}}`,
		`{"handle":"h","trace":{"traceparent":"00-1-2-01","tracestate":"a=b"}}`, `{"handle":"","args":[]}`, `{"handle":"h","limits":{"heapMiB":1}}`,
		`{"handle":"h","method":"call"}`, `{"handle":"h","handle":"i"}`, `{"handle":"\ud800"}`, `{"args":{}}`,
	} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, params []byte) {
		h, err := DecodeHandleInvoke(params, wide)
		if err != nil {
			if _, ok := err.(*Error); !ok {
				t.Fatalf("untyped error %v", err)
			}
			return
		}
		if err := ValidateInvoke(h); err != nil {
			t.Fatalf("ValidateInvoke: %v", err)
		}
		if len(h.Args) > MaxArgs {
			t.Fatalf("%d arguments", len(h.Args))
		}
		if n := len(h.Handle); n == 0 || n > MaxHandleBytes || len(h.Execution) > MaxExecutionBytes {
			t.Fatalf("a handle of %d bytes, and an execution of %d", n, len(h.Execution))
		}
		text, err := EncodeParams(h)
		if err != nil {
			t.Fatal(err)
		}
		again, err := DecodeHandleInvoke(text, Bounds{1 << 22, 64, 1 << 16})
		if err != nil || again.Handle != h.Handle || again.Method != h.Method || again.Limits != h.Limits || len(again.Args) != len(h.Args) {
			t.Fatalf("%s: %+v, %v", text, again, err)
		}
		for i := range h.Args {
			var arg bytes.Buffer
			if json.Compact(&arg, h.Args[i]) != nil || arg.String() != string(again.Args[i]) {
				t.Fatalf("argument %d of %s became %s", i, params, again.Args[i])
			}
		}
	})
}

// FuzzHandleRelease: whatever is accepted is within bounds, and survives its own encoding.
func FuzzHandleRelease(f *testing.F) {
	for _, s := range []string{
		`{"handles":["a.1","a"]}`, `{"handles":[]}`, `{"handles":[""]}`, `{"handles":null}`, `{"handles":["\ud800"]}`, `{"handles":["a"],"handles":["b"]}`, `[]`, ``,
	} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, params []byte) {
		h, err := DecodeHandleRelease(params, wide)
		if err != nil {
			if _, ok := err.(*Error); !ok {
				t.Fatalf("untyped error %v", err)
			}
			return
		}
		if len(h.Handles) > MaxReleased {
			t.Fatalf("%d ids", len(h.Handles))
		}
		for _, id := range h.Handles {
			if len(id) == 0 || len(id) > MaxHandleBytes {
				t.Fatalf("an id of %d bytes", len(id))
			}
		}
		text, err := EncodeParams(h)
		if err != nil {
			t.Fatal(err)
		}
		again, err := DecodeHandleRelease(text, Bounds{1 << 22, 64, 1 << 16})
		if err != nil || !slices.Equal(again.Handles, h.Handles) {
			t.Fatalf("%s: %v, %v", text, again, err)
		}
	})
}

// FuzzSession: what opens, resumes and acknowledges a session is refused with a type, or survives its own encoding.
func FuzzSession(f *testing.F) {
	f.Add([]byte(`{"client":{"name":"a","version":"1"},"received":0}`))
	f.Add([]byte(`{"client":{"name":"a"},"resume":"token","received":18446744073709551615}`))
	f.Add([]byte(`{"received":1}`))
	f.Add([]byte(`{"received":1e3}`))
	f.Fuzz(func(t *testing.T, params []byte) {
		survives(t, params, new(SessionOpen), new(SessionOpen))
		survives(t, params, new(Received), new(Received))
		var ack Received
		if DecodeParams(params, &ack) == nil {
			m, err := ParseMessage(AppendAck(nil, ack.Received), wide)
			var again Received
			if err != nil || m.Method != MethodSessionAck || DecodeParams(m.Params, &again) != nil || again != ack {
				t.Fatalf("acknowledging %d gives %+v, %v", ack.Received, m, err)
			}
		}
	})
}

func survives(t *testing.T, params []byte, first, second any) {
	t.Helper()
	if err := DecodeParams(params, first); err != nil {
		if _, ok := err.(*Error); !ok {
			t.Fatalf("untyped error %v", err)
		}
		return
	}
	text, err := EncodeParams(first)
	if err != nil {
		t.Fatal(err)
	}
	if err := DecodeParams(text, second); err != nil || !reflect.DeepEqual(first, second) {
		t.Fatalf("%s became %s, %v", params, text, err)
	}
}
