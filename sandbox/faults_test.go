package sandbox_test

import (
	"encoding/json"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/executord/executord/ipc/protocol"
	"github.com/executord/executord/ipc/testbin"
	"github.com/executord/executord/ipc/worker"
)

// The tests of this file are named after publicly reported faults of systems like this one; see testdata/faults.md.

// TestReportedFaults: every row of the list has a test whose name starts with its id, here or in another package.
func TestReportedFaults(t *testing.T) {
	list, err := os.ReadFile("testdata/faults.md")
	if err != nil {
		t.Fatal(err)
	}
	tests := map[string]bool{}
	named := regexp.MustCompile(`(?m)^func Test([A-Z]\d+)[A-Z]\w*\(t \*testing\.T\)`)
	err = filepath.WalkDir("..", func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.Name() == "node_modules":
			return filepath.SkipDir
		case !strings.HasSuffix(path, "_test.go"):
			return nil
		}
		text, err := os.ReadFile(path)
		for _, m := range named.FindAllStringSubmatch(string(text), -1) {
			tests[m[1]] = true
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	rows := regexp.MustCompile(`(?m)^\| ([A-Z]\d+) \|`).FindAllStringSubmatch(string(list), -1)
	if len(rows) < 50 {
		t.Fatalf("only %d rows", len(rows))
	}
	for _, row := range rows {
		if !tests[row[1]] {
			t.Errorf("no test is named after %s", row[1])
		}
	}
}

// P: promises and late work.

func TestP1DetachedRejection(t *testing.T) {
	p := ready(t, testbin.Worker(t))
	a := p.run(job{code: "Promise.reject(new Error('late')); return 1"})
	if a.value != "1" || len(a.logs) != 1 || !strings.HasPrefix(a.logs[0], "error Unhandled rejection: Error: late\n    at main.js:1:16") {
		t.Errorf("%s, %v, logs %q", a.value, a.err, a.logs)
	}
	if b := p.run(job{code: "return 2"}); b.value != "2" || len(b.logs) != 0 {
		t.Errorf("%s, %v, logs %q", b.value, b.err, b.logs)
	}
}

func TestP3CallsThatNobodyAwaits(t *testing.T) {
	p := ready(t, testbin.Worker(t))
	fail := func(worker.ToolCall) (worker.ToolResult, bool) {
		return worker.ToolResult{Value: []byte(`{"message":"no"}`)}, true
	}
	for _, c := range []struct {
		name string
		job  job
		want string // last log line
	}{
		{"fails later", job{code: "tools.fail(); return 1", answer: fail}, "warn 1 tool call was still running when the program ended: tools.fail (await each call)"},
		{"never answers", job{code: "tools.a(); listed.users.get(1); return 1"}, "warn 2 tool calls were still running when the program ended: tools.a, listed.users.get (await each call)"},
		{"many", job{code: "for (let i = 0; i < 13; i++) tools['t' + i](); return 1"}, "warn 13 tool calls were still running when the program ended: tools.t0, tools.t1, tools.t2, tools.t3, tools.t4, tools.t5, tools.t6, tools.t7, tools.t8, tools.t9, and 3 more (await each call)"},
		{"a long name", job{code: "tools['x'.repeat(256)](); return 1"}, "warn 1 tool call was still running when the program ended: tools." + strings.Repeat("x", 94) + "… (await each call)"},
	} {
		t.Run(c.name, func(t *testing.T) {
			e := p.run(c.job)
			if e.value != "1" || len(e.logs) == 0 || e.logs[len(e.logs)-1] != c.want {
				t.Errorf("%s, %v, logs %q", e.value, e.err, e.logs)
			}
		})
	}
	t.Run("a program that throws", func(t *testing.T) {
		e := p.run(job{code: "tools.a(); throw new Error('x')"})
		if e.err == nil || e.err.Type != protocol.Exception || len(e.logs) != 1 || !strings.Contains(e.logs[0], "tools.a") {
			t.Errorf("%v, logs %q", e.err, e.logs)
		}
	})
	t.Run("awaited calls are not named", func(t *testing.T) {
		if e := p.run(job{code: "await tools.a(1); return 1", answer: echo}); e.value != "1" || len(e.logs) != 0 {
			t.Errorf("%v, logs %q", e.err, e.logs)
		}
	})
}

func TestP5RacingPlainValues(t *testing.T) {
	p := ready(t, testbin.Worker(t))
	if e := p.run(job{code: "return await Promise.race([3,4])"}); e.value != "3" {
		t.Error(textOf(e))
	}
}

func TestP7HandlerInTheSameTurn(t *testing.T) {
	p := ready(t, testbin.Worker(t))
	for _, code := range []string{
		"const p=Promise.reject(1); await 0; p.catch(()=>{})",
		"const p = Promise.reject(1); for (let i = 0; i < 50; i++) await 0; try { await p } catch {}",
		"const all = [1, 2, 3].map(async (x) => { throw x }); await Promise.allSettled(all)",
		"const f = async () => { throw 1 }; await Promise.all([f(), f(), f()]).catch(() => {})",
	} {
		if e := p.run(job{code: code}); e.err != nil || len(e.logs) != 0 {
			t.Errorf("%s: %v, logs %q", code, e.err, e.logs)
		}
	}
}

// TestP10StatsDuringABusyRun: figures of a run come while it is busy, at their pace.
func TestP10StatsDuringABusyRun(t *testing.T) {
	p := ready(t, testbin.Worker(t))
	p.run(job{code: "for(;;);", limits: func(l *worker.Limits) { l.CPU, l.Wall, l.Total = 3*time.Second, 3*time.Second, 3*time.Second }, started: func(id uint64) {
		var last time.Time
		for range 4 {
			h := p.await(func(m worker.Message) bool { h, ok := m.(worker.Heartbeat); return ok && h.ID == id }).(worker.Heartbeat)
			now := time.Now()
			if late := now.Sub(last) - worker.HeartbeatInterval; !last.IsZero() && late > 100*time.Millisecond {
				t.Logf("a heartbeat came %v late", late) // the machine may be busy: only silence is a fault
			}
			if h.RSSBytes == 0 || h.Wall == 0 {
				t.Errorf("%+v", h)
			}
			last = now
		}
	}})
}

// V: values and the tool bridge.

func TestV1Bytes(t *testing.T) {
	p := ready(t, testbin.Worker(t))
	var got string
	e := p.run(job{code: "const b = await tools.put(new Uint8Array([0,255,128])); return [b instanceof Uint8Array, b.length, b]", answer: func(c worker.ToolCall) (worker.ToolResult, bool) {
		got = string(c.Args)
		return echo(c)
	}})
	if got != `[{"@bytes":"AP+A"}]` || e.value != `[true,3,{"@bytes":"AP+A"}]` {
		t.Errorf("host got %s, program %s %v", got, e.value, e.err)
	}
}

func TestV3PositionalArguments(t *testing.T) {
	p := ready(t, testbin.Worker(t))
	sum := func(c worker.ToolCall) (worker.ToolResult, bool) {
		var args []int
		if err := json.Unmarshal(c.Args, &args); err != nil || len(args) != 2 {
			return worker.ToolResult{Value: []byte(`{"message":"bad arguments"}`)}, true
		}
		return worker.ToolResult{OK: true, Value: fmt.Append(nil, args[0]+args[1])}, true
	}
	if e := p.run(job{code: "return tools.add(2,3)", answer: sum}); e.value != "5" {
		t.Error(textOf(e))
	}
}

func TestV5WrongArgumentsAreRefusedBeforeTheCall(t *testing.T) {
	p := ready(t, testbin.Worker(t))
	for code, want := range map[string]string{
		"tools.sum(1, {a: [() => 1]})":                  "(at argument 2 of tools.sum.a[0])",
		"tools.sum({a: Symbol('x')})":                   "(at argument 1 of tools.sum.a)",
		"tools.sum({get a() { throw new Error('x') }})": "(at argument 1 of tools.sum.a)",
		"tools.sum({a: new WeakMap()})":                 "(at argument 1 of tools.sum.a)",
	} {
		e := p.run(job{code: "await " + code, answer: echo})
		if e.err == nil || e.err.Type != protocol.Exception || !strings.Contains(e.err.Message, want) || e.calls != 0 {
			t.Errorf("%s: %s, %d calls", code, textOf(e), e.calls)
		}
	}
}

func TestV7TheGuestGetsTheValue(t *testing.T) {
	p := ready(t, testbin.Worker(t))
	for _, value := range []string{`"text"`, `{"content":[{"type":"text","text":"x"}]}`, `{"result":1}`, `null`, `[1,{"value":2}]`, `{"@undefined":true}`} {
		e := p.run(job{code: "return tools.get()", answer: func(worker.ToolCall) (worker.ToolResult, bool) {
			return worker.ToolResult{OK: true, Value: []byte(value)}, true
		}})
		if e.value != value {
			t.Errorf("%s became %s", value, textOf(e))
		}
	}
}

func TestV9NestedCalls(t *testing.T) {
	p := ready(t, testbin.Worker(t))
	code := `const out = [];
await tools.a(1).then(async (x) => { const [y, z] = await Promise.all([tools.b(x + 1), tools.c(x + 2)]); out.push(x, y, z, await tools.d(await tools.e(9))); });
return out`
	if e := p.run(job{code: code, answer: echo}); e.value != "[1,2,3,9]" {
		t.Error(textOf(e))
	}
}

func TestV11ThrowingAnythingIsAFailure(t *testing.T) {
	p := ready(t, testbin.Worker(t))
	for thrown, want := range map[string]struct{ thrown, message string }{
		"''":            {`""`, ""},
		"'text'":        {`"text"`, "text"},
		"undefined":     {`{"@undefined":true}`, "undefined"},
		"null":          {"null", "null"},
		"0":             {"0", "0"},
		"false":         {"false", "false"},
		"{ code: 1 }":   {`{"code":1}`, "{ code: 1 }"},
		"new Error('')": {"", ""},
		"new Error()":   {"", ""},
		"Object.assign(new Error('m'), { message: 5 })": {"", ""},
		"{ get message() { throw 1 } }":                 {"", "{ message: [Getter] }"},
		"Symbol('s')":                                   {"", "Symbol(s)"},
		"new Proxy({}, { get() { throw 2 } })":          {"", ""},
	} {
		for _, code := range []string{"throw " + thrown, "async () => { throw " + thrown + " }", "return Promise.reject(" + thrown + ")", "export default () => { throw " + thrown + " }"} {
			e := p.run(job{code: code})
			if e.err == nil || e.err.Type != protocol.Exception {
				t.Errorf("%s: %s", code, textOf(e))
				continue
			}
			if want.thrown != "" && string(e.err.Thrown) != want.thrown || want.message != "" && e.err.Message != want.message {
				t.Errorf("%s: thrown %s, message %q", code, e.err.Thrown, e.err.Message)
			}
		}
	}
}

// E: errors and console.

func TestE1DifferentFaultsHaveDifferentTypes(t *testing.T) {
	p := ready(t, testbin.Worker(t))
	short := func(l *worker.Limits) {
		l.CPU, l.Wall, l.Total, l.ToolCalls, l.ResultBytes = 200*time.Millisecond, 2*time.Second, 3*time.Second, 3, 1000
	}
	seen := map[protocol.Type]bool{}
	for _, code := range []string{
		"throw new Error('x')", "let = ;", "import 'gone'", "for(;;);", "await new Promise(r => setTimeout(r, 1e5))", "await tools.never()",
		"const a = []; for(;;) a.push(new Uint8Array(1 << 20))", "return 'x'.repeat(1e5)", "return () => 1", "for(;;) await tools.a()", "await new Promise(() => {})",
	} {
		j := job{code: code, limits: short}
		if strings.Contains(code, "tools.a") {
			j.answer = echo
		}
		e := p.run(j)
		if e.err == nil || e.err.Type == protocol.Internal || seen[e.err.Type] {
			t.Errorf("%s: %s", code, textOf(e))
			continue
		}
		seen[e.err.Type] = true
	}
}

func TestE5OutputBeforeATimeout(t *testing.T) {
	p := ready(t, testbin.Worker(t))
	e := p.run(job{code: "console.log('a'); for(;;);", limits: func(l *worker.Limits) { l.CPU = 200 * time.Millisecond }})
	if e.err == nil || e.err.Type != protocol.CPUTimeout || len(e.logs) != 1 || e.logs[0] != "log a" {
		t.Errorf("%s, logs %q", textOf(e), e.logs)
	}
}

// TestE7RanAndNeverRan: how an execution ended says whether it ran, and what it called is known without its output.
func TestE7RanAndNeverRan(t *testing.T) {
	p := ready(t, testbin.Worker(t))
	ran := p.run(job{code: "await tools.a(1); await tools.b(2); for(;;);", answer: echo, limits: func(l *worker.Limits) { l.CPU = 200 * time.Millisecond }})
	never := p.run(job{code: "tools.a(1); let = ;", answer: echo})
	if ran.err == nil || ran.err.Type != protocol.CPUTimeout || ran.calls != 2 || ran.result.ToolCalls != 2 {
		t.Errorf("%s, %d calls", textOf(ran), ran.calls)
	}
	if never.err == nil || never.err.Type != protocol.Syntax || never.calls != 0 || never.result.ToolCalls != 0 {
		t.Errorf("%s, %d calls", textOf(never), never.calls)
	}
}

func TestE9StacksHaveNoPathsOfTheHost(t *testing.T) {
	p := ready(t, testbin.Worker(t))
	fail := func(worker.ToolCall) (worker.ToolResult, bool) {
		return worker.ToolResult{Value: []byte(`{"name":"TypeError","message":"bad","stack":"TypeError: bad\n    at /home/host/secret.js:1:1"}`)}, true
	}
	for _, code := range []string{
		"await tools.fail()", "null.x", "new (class A { #p; static f(o) { return o.#p } }).constructor.f({})", "[1].map(() => { throw new Error('x') })",
		"console.log.call(null, { get a() { throw 1 } }); setTimeout(1n); throw new Error('x')", "await Promise.all([tools.fail()])", "JSON.parse('{')", "new Function('throw new Error(1)')()", "eval('null.x')",
	} {
		e := p.run(job{code: "try {\n" + code + "\n} catch (e) { console.log(e.stack); throw e }", answer: fail})
		if e.err == nil {
			t.Errorf("%s: %s", code, e.value)
			continue
		}
		for _, text := range append(e.logs, e.err.Stack) {
			if strings.Contains(text, "/home") || strings.Contains(text, "executor:") || strings.Contains(text, "native") || strings.Contains(text, "/work") || strings.Contains(text, ".go:") {
				t.Errorf("%s: %s", code, text)
			}
		}
	}
}

func TestE11TimeoutsHaveOneShape(t *testing.T) {
	p := ready(t, testbin.Worker(t))
	limit := func(l *worker.Limits) { l.CPU = 200 * time.Millisecond }
	quiet := p.run(job{code: "for(;;);", limits: limit})
	loud := p.run(job{code: "console.log('a'); for(;;);", limits: limit})
	if textOf(quiet) != textOf(loud) || quiet.err == nil || quiet.err.Message != "the program used more than its 200ms of CPU time" {
		t.Errorf("%s\n%s", textOf(quiet), textOf(loud))
	}
}

func TestE13WhatIsNotJavaScript(t *testing.T) {
	p := ready(t, testbin.Worker(t))
	for _, c := range []struct{ name, code, hint string }{
		{"shell pipe", "ls -la | grep x", "it looks like a shell command"},
		{"shell command", "npm install lodash", "it looks like a shell command"},
		{"curl", "curl -s https://example.com | jq .", "it looks like a shell command"},
		{"prompt", "$ echo 1 2", "it looks like a shell command"},
		{"fence", "```js\nreturn 1\n```", "it has Markdown fences in it"},
		{"prose and fence", "Here is the code:\n\n```javascript\nreturn 1\n```", "it has Markdown fences in it"},
		{"python", "def f(x):\n    return x", "it looks like Python"},
		{"python import", "from os import path\nprint(path)", "it looks like Python"},
		{"html", "<!DOCTYPE html>\n<p>x</p>", "it looks like HTML"},
	} {
		t.Run(c.name, func(t *testing.T) {
			e := p.run(job{code: c.code})
			if e.err == nil || e.err.Type != protocol.Syntax || !strings.Contains(e.err.Message, c.hint) {
				t.Error(textOf(e))
			}
		})
	}
	t.Run("plain mistakes get no hint", func(t *testing.T) {
		for _, code := range []string{"const a = ;", "let grep = (;", "for (const x in y) {", "if (x) {"} {
			if e := p.run(job{code: code}); e.err == nil || strings.Contains(e.err.Message, "looks like") {
				t.Error(code, textOf(e))
			}
		}
	})
}

// I: state leaks and escapes.

func TestI1GlobalsOfTwoCallers(t *testing.T) {
	p := ready(t, testbin.Worker(t))
	p.run(job{code: "globalThis.s='secret'; Object.prototype.s2 = 1; (await import('m')).o.s = 2", modules: mods("m", "module", "export const o = {}")})
	if e := p.run(job{code: "return [globalThis.s, ({}).s2, (await import('m')).o.s]", modules: mods("m", "module", "export const o = {}")}); e.value != `[{"@undefined":true},{"@undefined":true},{"@undefined":true}]` {
		t.Error(textOf(e))
	}
}

// TestI3NothingPrivilegedCanBeReached walks from every global, and from what throws inside the library, along
// prototypes and properties, and looks for functions that the library keeps to itself.
func TestI3NothingPrivilegedCanBeReached(t *testing.T) {
	p := ready(t, testbin.Worker(t))
	code := `const seen = new Set(), found = [];
const banned = ["call", "log", "load", "op", "wake", "need", "settle", "report", "timerStart", "timerStop", "brand", "utf8Encode", "monotonicNow", "promiseState", "proxyTarget"];
const queue = [["globalThis", globalThis], ["tools", tools], ["tools.x", tools.x], ["listed", listed], ["f", (() => {}).constructor]];
try { console.log.call(1, Symbol()); structuredClone(() => {}); } catch (e) { queue.push(["error", e]); }
while (queue.length > 0 && seen.size < 20000) {
  const [path, o] = queue.pop();
  if (o === null || (typeof o !== "object" && typeof o !== "function") || seen.has(o)) continue;
  seen.add(o);
  let proto = null; try { proto = Object.getPrototypeOf(o); } catch {}
  queue.push([path + ".__proto__", proto]);
  let keys = []; try { keys = Reflect.ownKeys(o); } catch {}
  for (const k of keys) {
    let d; try { d = Object.getOwnPropertyDescriptor(o, k); } catch { continue; }
    if (!d) continue;
    const at = path + "." + String(k);
    if (typeof d.value === "function" && banned.includes(k) && /native code/.test(Function.prototype.toString.call(d.value)) && d.value !== Function.prototype.call && d.value !== Reflect.call && o !== Math && o !== console && o !== Atomics) found.push(at);
    queue.push([at, d.value], [at + ".get", d.get], [at + ".set", d.set]);
  }
}
return [seen.size > 300, found]`
	if e := p.run(job{code: code}); e.value != "[true,[]]" {
		t.Error(textOf(e))
	}
}

// TestI9ConstructorChain: the way out of an in-process sandbox leads to the program's own global.
func TestI9ConstructorChain(t *testing.T) {
	p := ready(t, testbin.Worker(t))
	code := `const chains = [console.log, tools.x, listed.add, setTimeout, (async () => {}), import.meta.resolve, Promise.resolve];
const out = [];
for (const f of chains) {
  const G = f.constructor.constructor("return globalThis")();
  out.push(G === globalThis, typeof f.constructor.constructor("return typeof process + typeof require + typeof Deno")());
}
let err; try { tools.x(() => {}); await tools.x(Symbol()) } catch (e) { err = e }
out.push(err.constructor.constructor("return globalThis")() === globalThis, err instanceof TypeError);
return out.every((x) => x === true || x === "string")`
	if e := p.run(job{code: code}); e.value != "true" {
		t.Error(textOf(e))
	}
}
