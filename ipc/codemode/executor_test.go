package codemode

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/executord/executord/ipc/executor"
	"github.com/executord/executord/ipc/protocol"
)

// recorder keeps what it is asked, and answers with outcome, or fails with err.
type recorder struct {
	asked   []executor.Request
	outcome *protocol.Outcome
	err     error
}

func (r *recorder) Execute(_ context.Context, q executor.Request) (*protocol.Outcome, error) {
	r.asked = append(r.asked, q)
	return r.outcome, r.err
}

func (r *recorder) Close() error { return nil }

func ended(value string) *protocol.Outcome {
	return &protocol.Outcome{Status: protocol.StatusOK, Value: protocol.Value(value)}
}

// refusalRow has providers as pairs of a name and names of tools.
type refusalRow struct {
	Providers  [][2]json.RawMessage
	Connectors []string
	Error      string
}

func TestNamesAreRefusedBeforeAnythingIsSent(t *testing.T) {
	stub := &recorder{outcome: ended(`{"value":1}`)}
	for _, row := range rows[refusalRow](t, "testdata/refusals.jsonl") {
		var providers []Provider
		for _, p := range row.Providers {
			var provider Provider
			var names []string
			if err := errors.Join(json.Unmarshal(p[0], &provider.Name), json.Unmarshal(p[1], &names)); err != nil {
				t.Fatal(err)
			}
			for _, n := range names {
				provider.Tools = append(provider.Tools, Tool{Name: n})
			}
			providers = append(providers, provider)
		}
		var o Options
		for _, name := range row.Connectors {
			o.Connectors = append(o.Connectors, Connector{Name: name})
		}
		if got := New(stub, Config{}).Execute(t.Context(), "1", providers, o); !reflect.DeepEqual(got, Result{Error: row.Error}) {
			t.Errorf("got %+v, want the error %s", got, row.Error)
		}
	}
	if stub.asked != nil {
		t.Errorf("%d requests were sent", len(stub.asked))
	}
}

func TestV11NoFailureIsASuccess(t *testing.T) {
	debug := []protocol.Log{
		{Level: protocol.LevelDebug, Text: "a line"},
		{Level: protocol.LevelWarn, Text: "1 call was still running"},
		{Truncated: &protocol.Truncated{Lines: 5}},
	}
	failure := func(kind protocol.Type, message string) *recorder {
		return &recorder{outcome: &protocol.Outcome{Status: protocol.StatusError, Error: &protocol.Error{Type: kind, Message: message}, Logs: debug}}
	}
	for _, tc := range []struct {
		native *recorder
		want   string
		fault  bool
	}{
		{failure(protocol.CPUTimeout, "x"), timedOut, true},
		{failure(protocol.WallTimeout, "x"), timedOut, true},
		{failure(protocol.TotalTimeout, "x"), timedOut, true},
		{failure(protocol.Deadlock, "x"), timedOut, true},
		{failure(protocol.MemoryLimit, "the heap is full"), "the heap is full", true},
		{failure(protocol.WorkerCrashed, ""), "the execution failed", true},
		{failure(protocol.Syntax, "odd"), "SyntaxError: odd", true},
		{failure(protocol.ResultUnserializable, "no (at result.value.f)"), "no (at result.f)", true},
		{&recorder{err: protocol.Errorf(protocol.Overloaded, "full")}, "full", true},
		{&recorder{err: errors.New("broken pipe")}, "broken pipe", true},
		{&recorder{outcome: ended(`{"error":"thrown"}`)}, "thrown", false},
		{&recorder{outcome: ended(`{"error":""}`)}, "the program failed", false},
		{&recorder{outcome: ended(`5`)}, "the program answered in no form of the dialect", true},
		{&recorder{outcome: ended(`{"@nope":1}`)}, `cannot read the result: cannot code value: unknown tag "@nope"`, true},
	} {
		got := New(tc.native, Config{}).Execute(t.Context(), "1", nil, Options{})
		if got.Error != tc.want || got.Value != nil || got.Logs == nil || (got.Fault != nil) != tc.fault {
			t.Errorf("got %+v, want the error %q", got, tc.want)
		}
		if tc.native.outcome != nil && tc.native.outcome.Error != nil && !reflect.DeepEqual(got.Logs, []string{"a line", "[5 lines are left out here]"}) {
			t.Errorf("lines %q", got.Logs)
		}
	}
}

func TestLimitsFollowFromTheTimeout(t *testing.T) {
	for _, tc := range []struct {
		config    Config
		ms, total int64
		heap      int64
	}{
		{Config{}, 60_000, 60_000, 128},
		{Config{Timeout: 1500*time.Millisecond + 1, Limits: protocol.Limits{HeapMiB: 32, TotalMs: 9}}, 1501, 9, 32},
		{Config{Timeout: 1}, 1, 1, 128},
	} {
		stub := &recorder{outcome: ended(`{"value":1}`)}
		New(stub, tc.config).Execute(t.Context(), "1", nil, Options{})
		l := stub.asked[0].Limits
		if l.CPUMs != tc.ms || l.WallMs != tc.ms || l.TotalMs != tc.total || l.HeapMiB != tc.heap {
			t.Errorf("%+v gives %+v", tc.config, l)
		}
		if err := protocol.Validate(&stub.asked[0].Execute); err != nil {
			t.Error(err)
		}
	}
}

// A worker that lies is answered, and nothing more.
func TestI2CallsInNoFormOfTheHarness(t *testing.T) {
	stub := &recorder{outcome: ended(`{"value":1}`)}
	tool := Tool{Name: "tool", Call: func(_ context.Context, args []protocol.Value) (protocol.Value, error) {
		return protocol.Marshal(fmt.Sprintf("%s", args))
	}}
	New(stub, Config{}).Execute(t.Context(), "1", []Provider{{Name: "p", Tools: []Tool{tool, {Name: "none"}}}}, Options{Connectors: []Connector{{Name: "c"}}})
	r := stub.asked[0]
	for _, tc := range []struct{ tool, args, want string }{
		{"call", `["p","tool","[1,{\"@a\":\"\\ud800\"}]",[]]`, `["[1 {\"@object\":{\"@a\":{\"@utf16\":\"ANg=\"}}}]"]`},
		{"call", `["p","tool","[1e999]",[]]`, `["[null]"]`},
		{"call", `["p","tool","[",[]]`, `["cannot read the arguments: cannot accept JSON text: the text ends too early at byte 1",null,true]`},
		{"call", `["p","tool","{}",[]]`, `["cannot read the arguments: they are no array",null,true]`},
		{"call", `["p","tool",5,[]]`, `["cannot read the arguments: cannot code value: the number 5 does not fit Go type string",null,true]`},
		{"call", `["p","tool","[]",{"@nope":1}]`, `["cannot read the arguments: cannot code value: unknown tag \"@nope\"",null,true]`},
		{"call", `["p","none","[]",[]]`, `["Tool \"none\" not found",null,true]`},
		{"call", `["p","__proto__","[]",[]]`, `["Tool \"__proto__\" not found",null,true]`},
		{"call", `["x","tool","[]",[]]`, `["Tool \"tool\" not found",null,true]`},
		{"call", `["p"]`, "the host is called with four arguments"},
		{"call", `[1,2,3,4]`, "cannot code value: the number 1 does not fit Go type string\ncannot code value: the number 2 does not fit Go type string"},
		{"call", `["c","m",1,[]]`, `["Connector \"c\" not found",null,true]`},
		{"other", `[]`, `Tool "other" not found`},
	} {
		v, err := r.Call(t.Context(), executor.ToolCall{Provider: hostName, Path: []string{tc.tool}, Args: protocol.Value(tc.args)})
		got := string(v)
		if err != nil {
			got = err.Error()
		}
		if got != tc.want {
			t.Errorf("%s(%s) gives %s, want %s", tc.tool, tc.args, got, tc.want)
		}
	}
}

func TestAnswersOfToolsHaveTheValuesOfJSON(t *testing.T) {
	for _, tc := range []struct{ value, want string }{
		{`{"@undefined":true}`, `{"@undefined":true}`},
		{`[{"@undefined":true},{"@hole":2},{"@handle":"h"}]`, `[null,null,null,null]`},
		{`{"a":{"@undefined":true},"b":1}`, `{"b":1}`},
		{`{"@date":-62198755200000}`, `"-000001-01-01T00:00:00.000Z"`},
		{`{"@date":253402300800000}`, `"+010000-01-01T00:00:00.000Z"`},
		{`{"@date":null}`, `null`},
		{`{"@boxed":["x"]}`, `"x"`},
		{`{"@url":"http://a/"}`, `"http://a/"`},
		{`{"@buffer":["Uint16Array","AQI="]}`, `{"@bytes":"AQI="}`},
		{`{"@buffer":["ArrayBuffer","AQI="]}`, `{"@buffer":["ArrayBuffer","AQI="]}`},
		{`{"@error":{"name":"E","message":"m","code":5,"cause":1}}`, `{"code":5}`},
		{`{"@headers":[["a","b"]]}`, `{}`},
		{`{"@number":"-0"}`, `0`},
		{`[[1],{"@ref":"/0"}]`, `[[1],[1]]`},
		{`{"a":{"@ref":""}}`, "Converting circular structure to JSON"},
		{`[{"@bigint":"5"}]`, "Do not know how to serialize a BigInt"},
		{`{"a":{"@bigint":"5"}}`, "Do not know how to serialize a BigInt"},
		{`[{"@hole":4294967295}]`, "the answer of the tool has too many values"},
		{`{"@nope":1}`, `cannot code value: unknown tag "@nope"`},
	} {
		value, err := asJSON(protocol.Value(tc.value))
		got := ""
		if err != nil {
			got = err.Error()
		} else if v, err := protocol.Encode(value); err != nil {
			got = err.Error()
		} else {
			got = string(v)
		}
		if got != tc.want {
			t.Errorf("%s gives %s, want %s", tc.value, got, tc.want)
		}
	}
	// What refers to itself again and again is made again and again.
	laughs := `[[1,1,1,1,1,1,1,1,1,1]`
	for i := range 9 {
		laughs += `,[` + strings.TrimSuffix(strings.Repeat(fmt.Sprintf(`{"@ref":"/%d"},`, i), 10), ",") + `]`
	}
	if _, err := asJSON(protocol.Value(laughs + "]")); err == nil || !strings.Contains(err.Error(), "too many values") {
		t.Errorf("ten to the tenth values: %v", err)
	}
}

func TestTextsOfWhatIsThrown(t *testing.T) {
	for _, tc := range []struct{ thrown, want string }{
		{`null`, "null"},
		{`{"@undefined":true}`, "undefined"},
		{`true`, "true"},
		{`1e21`, "1e+21"},
		{`1e-7`, "1e-7"},
		{`123456.5`, "123456.5"},
		{`{"@number":"NaN"}`, "NaN"},
		{`{"@number":"-Infinity"}`, "-Infinity"},
		{`{"@number":"Infinity"}`, "Infinity"},
		{`{"@number":"-0"}`, "0"},
		{`{"@bigint":"7"}`, "7"},
		{`"x"`, "x"},
		{`{"@utf16":"ANg="}`, "\ufffd"},
		{`{"@error":{"name":"E","message":"m"}}`, "m"},
		{`{"@boxed":[1]}`, "1"},
		{`[1]`, ""},
		{`{}`, "[object Object]"},
		{`{"@nope":1}`, "message"},
	} {
		if got := messageOf(&protocol.ThrownError{Message: "message", Thrown: protocol.Value(tc.thrown)}); got != tc.want {
			t.Errorf("%s gives %q, want %q", tc.thrown, got, tc.want)
		}
	}
}

// TestWithAService shows what the corpus cannot say.
func TestWithAService(t *testing.T) {
	native := service(t)
	e := New(native, Config{Timeout: 20 * time.Second})
	tool := func(name string, f any) Tool { return Tool{name, executor.Func(f)} }
	codemode := func(tools ...Tool) []Provider { return []Provider{{Name: "codemode", Tools: tools}} }
	want := func(t *testing.T, r Result, value string) {
		t.Helper()
		if r.Error != "" || string(r.Value) != value {
			t.Errorf("got %s, %q, want %s", r.Value, r.Error, value)
		}
	}
	t.Run("executions run from within the tools of each other", func(t *testing.T) {
		inner := func(ctx context.Context, n float64) (protocol.Value, error) {
			r := e.Execute(ctx, fmt.Sprintf("async () => codemode.twice(%v)", n), codemode(tool("twice", func(x float64) float64 { return 2 * x })), Options{})
			return r.Value, nil
		}
		var all sync.WaitGroup
		for range 2 {
			all.Go(func() {
				want(t, e.Execute(t.Context(), "async () => [1, await codemode.run(4)]", codemode(tool("run", inner)), Options{}), "[1,8]")
			})
		}
		all.Wait()
	})
	t.Run("a tool that is late is not waited for", func(t *testing.T) {
		begun := make(chan error, 1)
		late := func(ctx context.Context) error { <-ctx.Done(); begun <- ctx.Err(); return nil }
		want(t, e.Execute(t.Context(), "async () => { codemode.late(); return 'done'; }", codemode(tool("late", late)), Options{}), `"done"`)
		if err := <-begun; !errors.Is(err, context.Canceled) {
			t.Error(err)
		}
	})
	t.Run("lines are heard as they come", func(t *testing.T) {
		heard := make(chan string, 10)
		hold := func() string { return <-heard }
		r := e.Execute(t.Context(), "console.log('first'); const line = await codemode.hold(); console.error('second', {}); return line", codemode(tool("hold", hold)), Options{OnLog: func(line string) { heard <- line }})
		want(t, r, `"first"`)
		if line := <-heard; line != "[error] second [object Object]" || len(r.Logs) != 2 {
			t.Errorf("heard %q, and %q in the end", line, r.Logs)
		}
	})
	t.Run("a tool that panics throws", func(t *testing.T) {
		boom := Tool{"boom", func(context.Context, []protocol.Value) (protocol.Value, error) { panic("oh") }}
		want(t, e.Execute(t.Context(), "codemode.boom().catch((e) => e.message)", codemode(boom), Options{}), `"Tool \"boom\" panicked: oh"`)
	})
	t.Run("cancelling stops it", func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		r := e.Execute(ctx, "console.log('a'); await codemode.stop(); for (;;);", codemode(tool("stop", func() { cancel() })), Options{})
		if r.Fault == nil || r.Fault.Type != protocol.Cancelled || len(r.Logs) != 1 {
			t.Errorf("got %+v", r)
		}
	})
	t.Run("I3: what a program can reach", func(t *testing.T) {
		for code, value := range map[string]string{
			"typeof codemodeHost": `"undefined"`,
			"Object.getOwnPropertyNames(globalThis).filter((name) => /codemode|host/i.test(name))":  `[]`,
			"/[0-9a-f]{32}/.test(codemode.add.toString() + new Error().stack)":                      `false`,
			"import('program.js').then(Object.keys, () => 'no')":                                    `"no"`,
			"['constructor', '__proto__', 'toString'].map((n) => typeof codemode[n]).join()":        `"function,function,function"`,
			"codemode.__proto__().catch((e) => e.message)":                                          `"Tool \"__proto__\" not found"`,
			"Array.prototype.push = String = Reflect.apply = () => { throw 1 }; codemode.add(1, 2)": `3`,
		} {
			want(t, e.Execute(t.Context(), code, codemode(tool("add", func(a, b float64) float64 { return a + b })), Options{}), value)
		}
		for _, code := range []string{"1)(), (async () => 42", "}); throw 1; (() => {", "42 /*", "*/ 42", "});\n}\nexport default 1; (() => {", "}, console.log('out'), () => {", "}; console.log('out'); {"} {
			if r := e.Execute(t.Context(), code, nil, Options{}); !strings.HasPrefix(r.Error, "SyntaxError: ") || len(r.Logs) != 0 {
				t.Errorf("%s: %+v", code, r)
			}
		}
	})
}

func FuzzArguments(f *testing.F) {
	f.Add(`[1,{"a":[null,"\ud800",{"mark":0}]}]`, `[{"@bytes":"AQI="}]`)
	f.Add(`[{"@object":{}},{"@ref":""},-0.5e3,true]`, `[]`)
	f.Add(` [ { "mark" : 1 } ] `, `{"a":1}`)
	f.Fuzz(func(t *testing.T, text, bytes string) {
		quoted, err := protocol.Marshal(text)
		if err != nil {
			return
		}
		values, err := arguments(quoted, protocol.Value(bytes), "mark")
		if err != nil {
			return
		}
		for _, v := range values {
			if _, err := protocol.Decode(v, protocol.ValueBounds); err != nil && !strings.Contains(err.Error(), "comes twice") {
				t.Fatalf("%q, %q give %s: %v", text, bytes, v, err)
			}
		}
	})
}
