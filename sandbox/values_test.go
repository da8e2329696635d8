package sandbox_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/executord/executord/ipc/protocol"
	"github.com/executord/executord/ipc/testbin"
	"github.com/executord/executord/ipc/worker"
)

// TestInputThatIsNoValue: a tag that cannot be decoded is the caller's fault, and nothing runs.
func TestInputThatIsNoValue(t *testing.T) {
	p := ready(t, testbin.Worker(t))
	for _, c := range []struct{ name, input, want string }{
		{"unknown tag", `{"@nope":1}`, `cannot decode input: unknown tag "@nope"`},
		{"unknown tag inside", `{"a":[{"@nope":1}]}`, `cannot decode input: unknown tag "@nope"`},
		{"malformed tag", `{"@date":"x"}`, `cannot decode input: a malformed @date`},
		{"key twice", `{"a":{"@date":0},"a":1}`, `cannot decode input: the key "a" comes twice`},
		{"tag twice", `{"@date":0,"@date":0}`, `cannot decode input: the key "@date" comes twice`},
		{"URL that is none", `{"@url":"nope"}`, `cannot decode input: in @url: Failed to construct 'URL': Invalid URL: 'nope'`},
		{"BigInt too long", `{"@bigint":"` + strings.Repeat("9", 19730) + `"}`, "cannot decode input: a BigInt has more than 65536 bits"},
		{"BigInt far too long", `{"@bigint":"` + strings.Repeat("9", 100_000) + `"}`, "cannot decode input: a BigInt has more than 65536 bits"},
		{"reference to nothing", `[{"@ref":"/7"}]`, "cannot decode input: a reference to nothing"},
		{"pattern that is none", `{"@regexp":["(",""]}`, "cannot decode input: an invalid regular expression"},
	} {
		t.Run(c.name, func(t *testing.T) {
			e := p.run(job{code: "console.log('ran'); return 1", input: c.input})
			if e.err == nil || e.err.Type != protocol.InvalidParams || e.err.Field != "input" || e.err.Message != c.want || len(e.logs) != 0 {
				t.Errorf("%s, %+v, logs %q", textOf(e), e.err, e.logs)
			}
		})
	}
}

// TestToolResultThatIsNoValue: the program gets an error that names the tool.
func TestToolResultThatIsNoValue(t *testing.T) {
	p := ready(t, testbin.Worker(t))
	answer := func(c worker.ToolCall) (worker.ToolResult, bool) {
		return worker.ToolResult{OK: c.Path[0] == "good", Value: []byte(`{"@nope":1}`)}, true
	}
	for code, want := range map[string]string{
		"tools.good()": `exception TypeError: cannot decode the result of tools.good: unknown tag "@nope"`,
		"tools.bad()":  `exception TypeError: cannot decode the error of tools.bad: unknown tag "@nope"`,
	} {
		if got := textOf(p.run(job{code: "await " + code, answer: answer})); !strings.HasPrefix(got, want) {
			t.Errorf("%s: %s", code, got)
		}
	}
}

// TestDepthOfValues: what may come in may go out, to a tool and as a result, to the level.
func TestDepthOfValues(t *testing.T) {
	p := ready(t, testbin.Worker(t))
	const most = protocol.MaxValueDepth
	nested := func(open, in, end string, n int) string { return strings.Repeat(open, n) + in + strings.Repeat(end, n) }
	for _, c := range []struct{ name, value string }{
		{"arrays", nested("[", "0", "]", most)},
		{"objects", nested(`{"a":`, "0", "}", most)},
		{"a tag inside", nested("[", `{"@undefined":true}`, "]", most-1)},
		{"maps", nested("[", nested(`{"@map":[[1,`, "0", "]]}", most/3), "]", most%3)},
		{"sets", nested(`{"@set":[`, "0", "]}", most/2)},
		{"objects like tags", nested(`{"@object":{"@a":`, "0", "}}", most/2)},
	} {
		t.Run(c.name, func(t *testing.T) {
			if e := p.run(job{code: "(input) => input", input: c.value}); e.value != c.value {
				t.Errorf("as a result: %.200s", textOf(e))
			}
			var got string
			e := p.run(job{code: "async (input) => { await tools.take(input) }", input: c.value, answer: func(c worker.ToolCall) (worker.ToolResult, bool) {
				got = string(c.Args)
				return worker.ToolResult{OK: true, Value: []byte("1")}, true
			}})
			if got != "["+c.value+"]" {
				t.Errorf("as an argument: %.200s", textOf(e))
			}
			e = p.run(job{code: "(input) => [input, 1, 2]", input: c.value})
			if e.err == nil || e.err.Type != protocol.ResultUnserializable || !strings.HasPrefix(e.err.Message, fmt.Sprintf("the value is nested deeper than %d (at result[0]", most)) {
				t.Errorf("one deeper: %.200s", textOf(e))
			}
		})
	}
	t.Run("near the end of the stack", func(t *testing.T) {
		code := `let deep = 0; for (let i = 0; i < 1990; i++) deep = [deep];
let calls = 0; const f = () => { try { f() } catch {} if (calls++ < 3) tools.take(deep); }; f(); return 1`
		if e := p.run(job{code: code, answer: echo}); e.value != "1" {
			t.Error(textOf(e))
		}
	})
}

// TestWhatCannotLeave: the message names the kind of thing and its place, whatever a program or a minifier calls it.
func TestWhatCannotLeave(t *testing.T) {
	p := ready(t, testbin.Worker(t))
	for code, want := range map[string]string{
		"(function* g() {})()":                 "a generator",
		"(async function* g() {})()":           "a generator",
		"new (class X extends WeakMap {})()":   "a WeakMap",
		"new WeakRef({})":                      "a WeakRef",
		"new Map().keys()":                     "a Map iterator",
		"Object(Symbol())":                     "a Symbol object",
		"Promise.resolve()":                    "a Promise",
		"() => 1":                              "a function",
		"new Proxy({}, {})":                    "a Proxy",
		"new WebAssembly.Memory({initial: 1})": "a WebAssembly.Memory",
		"new AbortController().signal":         "an AbortSignal",
		"new AbortController()":                "an AbortController",
		"new (class A extends Event {})('x')":  "an Event",
		"new EventTarget()":                    "an EventTarget",
		"new URLSearchParams('a=1')":           "a URLSearchParams",
		"new URLSearchParams('a=1').entries()": "an object of the library",
		"new ReadableStream()":                 "a ReadableStream",
		"new TextEncoder()":                    "a TextEncoder",
		"new TextDecoder()":                    "a TextDecoder",
		"crypto.subtle":                        "a SubtleCrypto",
		"performance":                          "a Performance",
		"new MessageChannel().port1":           "a MessagePort",
		"Object.create(Blob.prototype)":        "a Blob",
		"new Response(new ReadableStream())":   "a Response whose body is a stream",
		"new Request('http://a/', {method: 'POST', duplex: 'half', body: new ReadableStream()})":                          "a Request whose body is a stream",
		"(() => { const r = new Response('x'); r.text(); return r })()":                                                   "a Response whose body was used",
		"(() => { const u = new URLSearchParams(); Object.setPrototypeOf(u, null); return u })()":                         "an object of the library",
		"(() => { const s = new AbortController().signal; s.constructor = class Mine {}; return s })()":                   "an AbortSignal",
		"(() => { Object.defineProperty(Headers.prototype, Symbol.toStringTag, {value: 'x'}); return new Event('x') })()": "an Event",
	} {
		e := p.run(job{code: "return {a: " + code + "}"})
		if e.err == nil || e.err.Type != protocol.ResultUnserializable || !strings.HasPrefix(e.err.Message, want) || !strings.HasSuffix(e.err.Message, " (at result.a)") {
			t.Errorf("%s: %s", code, textOf(e))
		}
	}
	for code, want := range map[string]string{
		"(() => { const u = new URL('http://a/'); Object.setPrototypeOf(u, null); return u })()":                                                           `{"@url":"http://a/"}`,
		"new (class Mine extends Headers {})({a: 1})":                                                                                                      `{"@headers":[["a","1"]]}`,
		"(() => { URL.prototype.toString = () => 'x'; Object.defineProperty(URL.prototype, 'href', {get() { throw 1 }}); return new URL('http://a/') })()": `{"@url":"http://a/"}`,
		"(() => { Array.prototype[Symbol.iterator] = null; Object.prototype.get = 1; return new Headers({a: 1}) })()":                                      `{"@headers":[["a","1"]]}`,
	} {
		if e := p.run(job{code: "return " + code}); e.value != want {
			t.Errorf("%s: %s", code, textOf(e))
		}
	}
}

// TestClassesShowTheirNames: the names that the bundler gave classes are nowhere to be seen.
func TestClassesShowTheirNames(t *testing.T) {
	p := ready(t, testbin.Worker(t))
	code := `const other = ["Array", "Boolean", "BigInt", "Date", "Error", "Function", "Number", "Object", "RegExp", "String", "Symbol", "AggregateError",
  "EvalError", "RangeError", "ReferenceError", "SuppressedError", "SyntaxError", "TypeError", "URIError"];
const wrong = []; let classes = 0;
for (const name of Object.getOwnPropertyNames(globalThis)) {
  const C = globalThis[name];
  if (!/^[A-Z]/.test(name) || typeof C !== "function" || other.includes(name)) continue;
  classes++;
  let message = ""; try { C(); } catch (e) { message = e.message; }
  const shown = [message.includes(name), C.name === name, Function.prototype.toString.call(C).length > 0, C.prototype?.[Symbol.toStringTag] ?? name];
  if (!shown[0] || !shown[1] || !(name.endsWith(shown[3]) || shown[3] === name)) wrong.push([name, message, ...shown]);
}
return [classes > 60, wrong]`
	if e := p.run(job{code: code}); e.value != "[true,[]]" {
		t.Error(textOf(e), e.value)
	}
}
