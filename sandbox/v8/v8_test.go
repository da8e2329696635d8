package v8

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"
)

// library is the least that the engine needs; the real one is tested in package sandbox.
const library = `(native => {
  const timers = new Map();
  globalThis.print = s => native.log("log", String(s));
  globalThis.call = (name, ...args) => native.call("host", [name], args);
  globalThis.later = (f, ms) => { const id = native.timerStart(ms, false); timers.set(id, f); return id; };
  globalThis.classOf = v => native.classOf(v);
  return {
    begin(config) { globalThis.config = config; },
    fire(id, last) { const f = timers.get(id); if (last) timers.delete(id); f(); },
    async settle(ns, mode, input) { const d = ns.default; return typeof d === "function" ? await d(input) : await d; },
    report(kind, reason) { native.log("error", kind + ": " + reason); },
    inspect(v) { return String(v); },
  };
})`

// TestMain doubles as the throw-away process that makes the snapshot.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == "make-snapshot" {
		blob, err := MakeSnapshot(library, "1+1")
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Stdout.Write(blob)
		os.Exit(0)
	}
	os.Exit(m.Run())
}

var snapshot = sync.OnceValue(func() *Snapshot {
	blob, err := exec.Command(os.Args[0], "make-snapshot").Output()
	if err != nil {
		panic(err)
	}
	return LoadSnapshot(blob)
})

// recorder is a Host that remembers.
type recorder struct {
	NoServices
	iso     *Isolate
	logs    []string
	calls   []string
	ids     []uint64
	timers  []uint32
	modules map[string]ModuleText
	refuse  bool
}

func (r *recorder) ToolCall(id uint64, provider string, path []string, args []byte) bool {
	if r.refuse {
		r.iso.Terminate()
		return false
	}
	r.calls = append(r.calls, provider+"."+strings.Join(path, ".")+string(args))
	r.ids = append(r.ids, id)
	return true
}
func (r *recorder) Log(level, text string) { r.logs = append(r.logs, level+" "+text) }
func (r *recorder) TimerStart(float64, bool) uint32 {
	r.timers = append(r.timers, uint32(len(r.timers)+1))
	return uint32(len(r.timers))
}
func (r *recorder) TimerStop(uint32) {}
func (r *recorder) ResolveModule(specifier, referrer, typ string) (ModuleText, error) {
	m, ok := r.modules[specifier]
	if !ok {
		return m, fmt.Errorf("cannot find module %q imported from %q", specifier, referrer)
	}
	return m, nil
}
func (r *recorder) MapPosition(_ string, line, column int) (int, int) { return line, column }

func open(t testing.TB, r *recorder) *Isolate {
	t.Helper()
	iso, err := New(Config{Snapshot: snapshot(), HeapBytes: 2 << 30, BufferBytes: 64 << 20, AllowEval: true, AllowWasm: true, Host: r})
	if err != nil {
		t.Fatal(err)
	}
	r.iso = iso
	t.Cleanup(func() { iso.Close() })
	if err := iso.Begin("{}", Limits{HeapBytes: 64 << 20, BufferBytes: 64 << 20, StackBytes: DefaultStackBytes, Depth: 200, Nodes: 100000, MessageBytes: 8 << 20}); err != nil {
		t.Fatal(err)
	}
	return iso
}

// run runs a module to its value; tool calls are answered by the text that answer gives.
func run(t testing.TB, r *recorder, source string, answer func(call string) (bool, string)) (string, error) {
	t.Helper()
	iso := open(t, r)
	if err := iso.Run("main.js", source, false, nil); err != nil {
		return "", err
	}
	var seen uint64 // what had begun in the background before the last Drain
	for {
		state, err := iso.Drain()
		if err != nil {
			t.Fatal(err)
		}
		if state != Pending {
			break
		}
		if begun, busy := Background(); busy || begun != seen {
			if !busy {
				seen = begun
			}
			runtime.Gosched()
			continue
		}
		if len(r.ids) > 0 {
			ok, text := answer(r.calls[len(r.calls)-len(r.ids)])
			if err := iso.Resolve(r.ids[0], ok, []byte(text)); err != nil {
				return "", err
			}
			r.ids = r.ids[1:]
			continue
		}
		if len(r.timers) > 0 {
			iso.Fire(r.timers[0], true, 0)
			r.timers = r.timers[1:]
			continue
		}
		if at := iso.Stalled(); at != nil {
			return "", fmt.Errorf("stalled at %d:%d", at.Line, at.Column)
		}
		return "", errors.New("pending")
	}
	v, err := iso.Value(8 << 20)
	return string(v), err
}

// TestInfo prints what this build of V8 is, for the operator and for bug reports.
func TestInfo(t *testing.T) {
	Init(-1)
	t.Logf("V8 %s, tag %#x, flags %v", Version(), VersionTag(), Flags)
	if !strings.HasPrefix(Version(), "13.6.") {
		t.Errorf("V8 %s is not the version that the flags were chosen for: run the hostile programs again", Version())
	}
}

func TestRunGivesTheValue(t *testing.T) {
	for _, c := range []struct{ name, source, want string }{
		{"number", "export default 1+1", "2"},
		{"function", "export default () => [1,'a',null]", `[1,"a",null]`},
		{"top-level await", "const x = await 5; export default x", "5"},
		{"nothing", "1", `{"@undefined":true}`},
		{"import.meta", "export default import.meta.url", `"executor:///main.js"`},
		{"shared reference", "const o={n:1}; export default {a:o,b:o}", `{"a":{"n":1},"b":{"@ref":"/a"}}`},
		{"cycle", "const o={}; o.self=o; export default o", `{"self":{"@ref":""}}`},
		{"holes", "export default [1,,,2]", `[1,{"@hole":2},2]`},
		{"huge hole", "const a=[]; a[4e9]=1; export default a", `[{"@hole":4000000000},1]`},
		{"timer", "export default () => new Promise(r => later(() => r('t'), 5))", `"t"`},
		{"classOf", "export default [1n,'',new Date,new Map,class A{},()=>1,async()=>1,new Proxy({}, {})].map(classOf)", `["bigint","string","Date","Map","Class","Function","AsyncFunction","Proxy"]`},
		{"eval", "export default eval('2*21')", "42"},
		{"wasm compile off the main thread", "export default WebAssembly.compile(new Uint8Array([0,97,115,109,1,0,0,0])).then(() => 'ok')", `"ok"`},
		{"dynamic import failing", "export default import('no').catch(e => e.message)", `"cannot find module \"no\" imported from \"main.js\""`},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := &recorder{}
			got, err := run(t, r, c.source, nil)
			for tries := 0; err != nil && err.Error() == "pending" && tries < 200; tries++ {
				time.Sleep(5 * time.Millisecond) // background work posts no wake-up; the sandbox polls too
				r.iso.Drain()
				var v []byte
				v, err = r.iso.Value(1 << 20)
				got = string(v)
			}
			if err != nil || got != c.want {
				t.Fatalf("got %s, %v; want %s", got, err, c.want)
			}
		})
	}
}

func TestErrorsKeepTheirPlace(t *testing.T) {
	for _, c := range []struct {
		name, source string
		want         Error
	}{
		{"syntax", "let x = 1;\nlet y = ;", Error{Kind: KindSyntax, Name: "SyntaxError", Message: "Unexpected token ';'", File: "main.js", Line: 2, Column: 9}},
		{"throw", "const f = () => {\n  null.x;\n};\nf();", Error{Kind: KindException, Name: "TypeError", Message: "Cannot read properties of null (reading 'x')", File: "main.js", Line: 2, Column: 8}},
		{"async throw", "export default async () => { await 0;\n throw new RangeError('r') }", Error{Kind: KindException, Name: "RangeError", Message: "r", File: "main.js", Line: 2, Column: 8}},
		{"missing export", "import {x} from 'dep';", Error{Kind: KindModule, Name: "SyntaxError", Message: "The requested module 'dep' does not provide an export named 'x'", File: "main.js", Line: 1, Column: 9}},
		{"missing module", "import 'none';", Error{Kind: KindModule, Name: "TypeError", Message: `cannot find module "none" imported from "main.js"`}},
		{"throw a string", "throw ''", Error{Kind: KindException}},
		{"function result", "export default {a:[()=>1]}", Error{Kind: KindUnserializable, Message: "a function cannot leave the sandbox (at result.a[0])"}},
		{"getter throws", "export default {get a(){throw new Error('no')}}", Error{Kind: KindUnserializable, Message: "a getter threw: Error: no (at result.a)"}},
		{"proxy", "export default {p: new Proxy({}, {get(){throw 1}})}", Error{Kind: KindUnserializable, Message: "a Proxy cannot leave the sandbox (at result.p)"}},
		{"deep", "let a=[]; for(let i=0;i<5000;i++) a=[a]; export default a", Error{Kind: KindUnserializable}},
		{"large", "export default 'x'.repeat(9<<20)", Error{Kind: KindTooLarge, Message: "result is larger than 8388608 bytes"}},
		{"buffer over the limit", "export default new ArrayBuffer(65<<20)", Error{Kind: KindMemory, Name: "RangeError", Message: "Array buffer allocation failed", File: "main.js", Line: 1, Column: 16}},
		{"stalled", "1;\nawait new Promise(()=>{});", Error{}},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := &recorder{modules: map[string]ModuleText{"dep": {Kind: ModuleESM, Key: "dep", Source: "export const y = 1"}}}
			_, err := run(t, r, c.source, nil)
			if c.name == "stalled" {
				if err == nil || err.Error() != "stalled at 2:1" {
					t.Fatal(err)
				}
				return
			}
			var e *Error
			if !errors.As(err, &e) {
				t.Fatalf("got %v", err)
			}
			w := c.want
			if e.Kind != w.Kind || e.Name != w.Name || (w.Message != "" && e.Message != w.Message) || (w.Line != 0 && (e.Line != w.Line || e.Column != w.Column || e.File != w.File)) {
				t.Fatalf("got %+v\nwant %+v", *e, w)
			}
		})
	}
}

func TestStackHasOnlyTheProgramsFrames(t *testing.T) {
	r := &recorder{}
	_, err := run(t, r, "function a() { throw new Error('x') }\nconst b = () => a();\nexport default async function main() { await null; b() }", nil)
	var e *Error
	if !errors.As(err, &e) {
		t.Fatal(err)
	}
	want := "Error: x\n    at a (main.js:1:22)\n    at b (main.js:2:17)\n    at main (main.js:3:52)"
	if e.Stack != want {
		t.Fatalf("got %q", e.Stack)
	}
}

func TestToolCalls(t *testing.T) {
	r := &recorder{}
	got, err := run(t, r, `const a = await call('echo', {x: new Uint8Array([1,2])}, undefined);
		let m; try { await call('bad') } catch (e) { m = [e.constructor.name, e.name, e.message, e.code, e.stack.split('\n').slice(1)] }
		let thrown = 1; try { await call('throws') } catch (e) { thrown = e }
		let refused; try { await call('f', () => 1) } catch (e) { refused = String(e) }
		export default [a, m, thrown, refused]`, func(call string) (bool, string) {
		switch call {
		case `host.echo[{"x":{"@bytes":"AQI="}},{"@undefined":true}]`:
			return true, `{"@map":[["k",{"@date":0}]]}`
		case "host.bad[]":
			return false, `{"name":"TypeError","message":"no","code":"E_NO"}`
		case "host.throws[]":
			return false, `{"message":"","thrown":{"@undefined":true}}`
		}
		return false, `{"message":"unexpected ` + strings.ReplaceAll(call, `"`, `'`) + `"}`
	})
	want := `[{"@map":[["k",{"@date":0}]]},["TypeError","TypeError","no","E_NO",["    at host.bad","    at main.js:2:22"]],{"@undefined":true},"TypeError: a function cannot leave the sandbox (at argument 1 of host.f)"]`
	if err != nil || got != want {
		t.Fatalf("got %s, %v", got, err)
	}
}

// TestArgumentsFillTheirLimit: all arguments of a call share one limit, brackets and commas included.
func TestArgumentsFillTheirLimit(t *testing.T) {
	const limit = 8 << 20 // of open
	room := limit - len(`["",1]`)
	for _, c := range []struct {
		name string
		size int
		want string
	}{
		{"fits", room, "true"},
		{"a byte more", room + 1, fmt.Sprintf(`"TypeError: the arguments of host.f are larger than %d bytes"`, limit)},
	} {
		t.Run(c.name, func(t *testing.T) {
			source := fmt.Sprintf("let r; try { r = await call('f', 'x'.repeat(%d), 1) } catch (e) { r = String(e) } export default r", c.size)
			got, err := run(t, &recorder{}, source, func(call string) (bool, string) {
				return len(call) == len("host.f")+limit, "true"
			})
			if err != nil || got != c.want {
				t.Fatalf("got %s, %v; want %s", got, err, c.want)
			}
		})
	}
}

func TestRefusedToolCallStopsTheProgram(t *testing.T) {
	_, err := run(t, &recorder{refuse: true}, "try { await call('x') } finally { for(;;); }", nil)
	if e := new(Error); !errors.As(err, &e) || e.Kind != KindTerminated {
		t.Fatal(err)
	}
}

func TestModules(t *testing.T) {
	r := &recorder{modules: map[string]ModuleText{
		"a": {Kind: ModuleESM, Key: "a", Source: "import {b} from 'b'; export let n = 0; export const inc = () => { n++ }; export const viaB = () => b()"},
		"b": {Kind: ModuleESM, Key: "b", Source: "import {n} from 'a'; export const b = () => n"},
		"j": {Kind: ModuleJSON, Key: "j", Source: `{"x":[1]}`},
		"t": {Kind: ModulePlain, Key: "t", Source: "text"},
		"y": {Kind: ModuleBytes, Key: "y", Source: "\x00\xff"},
	}}
	got, err := run(t, r, `import {n, inc, viaB} from 'a'; import j from 'j' with {type:'json'}; import t from 't'; import y from 'y';
		inc(); const again = await import('a'); again.inc();
		export default [n, viaB(), again.n, j, t, y]`, nil)
	if want := `[2,2,2,{"x":[1]},"text",{"@bytes":"AP8="}]`; err != nil || got != want {
		t.Fatalf("got %s, %v", got, err)
	}
}

func TestManyModulesDoNotRecurseNatively(t *testing.T) {
	r := &recorder{modules: map[string]ModuleText{}}
	for i := range 3000 {
		k := fmt.Sprint("m", i)
		r.modules[k] = ModuleText{Kind: ModuleESM, Key: k, Source: fmt.Sprintf("import 'm%d'", i+1)}
	}
	r.modules["m3000"] = ModuleText{Kind: ModuleESM, Key: "m3000", Source: ""}
	if _, err := run(t, r, "import 'm0'; export default 1", nil); err != nil {
		t.Log(err) // V8 itself recurses while it links; a RangeError is as good an end as a value
	}
}

func TestUnhandledRejectionsAreLogLines(t *testing.T) {
	r := &recorder{}
	got, err := run(t, r, "Promise.reject('late'); const p = Promise.reject(2); await 0; p.catch(()=>{}); export default 1", nil)
	if err != nil || got != "1" || strings.Join(r.logs, "|") != "error unhandledrejection: late" {
		t.Fatalf("%s, %v, %q", got, err, r.logs)
	}
}

func TestTerminateFromOutside(t *testing.T) {
	for name, source := range map[string]string{
		"loop":                    "for(;;);",
		"allocation loop":         "let a; for(;;) a = new Array(1000).fill(1)",
		"push loop":               "for(;;) { const a = new Array(1000); a.push(1) }",
		"catch and go on":         "for(;;) try { for(;;); } catch {}",
		"microtasks":              "const f = () => Promise.resolve().then(f); f(); await new Promise(()=>{})",
		"regular expression":      "/(a+)+$/.test('a'.repeat(50) + 'b')",
		"getter while serialized": "export default {get a() { for(;;); }}",
		"atomics":                 "const m = new WebAssembly.Memory({initial:1,maximum:1,shared:true}); for(;;) try { Atomics.wait(new Int32Array(m.buffer),0,0) } catch {}",
	} {
		t.Run(name, func(t *testing.T) {
			r := &recorder{}
			iso := open(t, r)
			timer := time.AfterFunc(100*time.Millisecond, iso.Terminate)
			defer timer.Stop()
			if err := iso.Run("main.js", source, false, nil); err == nil {
				iso.Drain()
			}
			_, err := iso.Value(1 << 20)
			if e := new(Error); !errors.As(err, &e) || e.Kind != KindTerminated && e.Kind != KindInternal {
				t.Fatalf("got %v", err)
			}
		})
	}
}

func TestHeapLimitEndsCleanly(t *testing.T) {
	for name, source := range map[string]string{
		"objects": "const a = []; for(;;) a.push({x: a.length})",
		"strings": "const a = []; for(let i = 0;; i++) a.push('x'.repeat(1000) + i)",
		"map":     "const m = new Map(); for(let i = 0;; i++) m.set(i, [i])",
		"caught":  "const a = []; for(;;) try { for(;;) a.push(new Array(100).fill(0)) } catch {}",
		// The text is flattened only when the error is described.
		"what was thrown is not the cause": "throw new Error('x'.repeat(3e7))",
	} {
		t.Run(name, func(t *testing.T) {
			_, err := run(t, &recorder{}, source, nil)
			if e := new(Error); !errors.As(err, &e) || e.Kind != KindMemory || e.Name != "" || e.Message != "" {
				t.Fatalf("got %.200v", err)
			}
		})
	}
}

func TestRecursionIsARangeError(t *testing.T) {
	for name, source := range map[string]string{
		"function": "const f = () => f() + 1; f()",
		"getter":   "const o = {get a() { return o.a }}; o.a",
		"json":     "let s = []; for (let i = 0; i < 1e5; i++) s = [s]; JSON.stringify(s)",
		"host":     "const f = () => call('x', f()); f()",
	} {
		t.Run(name, func(t *testing.T) {
			_, err := run(t, &recorder{}, source, nil)
			if e := new(Error); !errors.As(err, &e) || e.Name != "RangeError" {
				t.Fatalf("got %v", err)
			}
		})
	}
}

// TestG1GoKeepsItsFaults: V8 takes no signal from Go. A nil dereference stays a panic that can be recovered from, also after
// WebAssembly ran.
func TestG1GoKeepsItsFaults(t *testing.T) {
	module := "new Uint8Array([0,97,115,109,1,0,0,0,1,4,1,96,0,0,3,2,1,0,7,5,1,1,102,0,0,10,4,1,2,0,11])"
	if got, err := run(t, &recorder{}, "export default (new WebAssembly.Instance(new WebAssembly.Module("+module+")).exports.f(), 1)", nil); got != "1" {
		t.Fatalf("got %s, %v", got, err)
	}
	for range 3 {
		func() {
			defer func() {
				if fault, ok := recover().(runtime.Error); !ok || !strings.Contains(fault.Error(), "nil pointer") {
					t.Errorf("recovered %v", fault)
				}
			}()
			var nobody fmt.Stringer
			_ = nobody.String()
			t.Error("a call of nobody returned")
		}()
	}
}

func TestUseAfterCloseIsRefused(t *testing.T) {
	r := &recorder{}
	iso := open(t, r)
	if err := iso.Close(); err != nil {
		t.Fatal(err)
	}
	iso.Terminate()
	iso.HeapBytes()
	if err := iso.Close(); err != nil {
		t.Fatal(err)
	}
	_, err := iso.Drain()
	_, err2 := iso.Value(1)
	for _, err := range []error{err, err2, iso.Run("a", "1", false, nil), iso.Fire(1, true, 0), iso.Resolve(1, true, nil), iso.Begin("{}", Limits{})} {
		if !errors.Is(err, ErrClosed) {
			t.Fatalf("got %v", err)
		}
	}
}

// TestG5SecondGoroutineIsRefused: one isolate is never touched by two goroutines at once.
func TestG5SecondGoroutineIsRefused(t *testing.T) {
	r := &recorder{}
	iso := open(t, r)
	entered := make(chan struct{})
	done := make(chan struct{})
	go func() {
		defer close(done)
		runtime.LockOSThread()
		close(entered)
		iso.Run("main.js", "for(;;);", false, nil)
	}()
	<-entered
	var err error
	for deadline := time.Now().Add(5 * time.Second); time.Now().Before(deadline); runtime.Gosched() {
		if err = iso.Resolve(99, true, nil); err != nil {
			break
		}
	}
	if !errors.Is(err, ErrBusy) {
		t.Errorf("got %v", err)
	}
	iso.Terminate()
	<-done
}

func TestIsolatesDoNotLeak(t *testing.T) {
	if testing.Short() {
		t.Skip("a thousand isolates")
	}
	anchor := open(t, &recorder{})
	once := func() {
		r := &recorder{}
		iso, err := New(Config{Snapshot: snapshot(), HeapBytes: 64 << 20, BufferBytes: 64 << 20, Host: r})
		if err != nil {
			t.Fatal(err)
		}
		iso.Begin("{}", Limits{HeapBytes: 64 << 20, BufferBytes: 64 << 20, StackBytes: DefaultStackBytes, Depth: 100, Nodes: 1000, MessageBytes: 1 << 20})
		iso.Run("main.js", "globalThis.keep = new Uint8Array(1e6).fill(1); export default async () => { await call('x') }", false, nil)
		iso.Drain()
		if err := iso.Close(); err != nil {
			t.Fatal(err)
		}
	}
	for range 100 {
		once()
	}
	before := rss(t)
	for range 1000 {
		once()
	}
	grown := rss(t) - before
	t.Logf("resident memory after 1000 more isolates: %+d KiB", grown>>10)
	if grown > 60<<20 {
		t.Fatalf("1000 isolates left %d MiB behind", grown>>20)
	}
	_ = anchor
}

func rss(t *testing.T) int64 {
	t.Helper()
	runtime.GC()
	b, err := os.ReadFile("/proc/self/statm")
	if err != nil {
		t.Fatal(err)
	}
	var size, resident int64
	fmt.Sscan(string(b), &size, &resident)
	return resident * int64(os.Getpagesize())
}

func BenchmarkRestoreAndRun(b *testing.B) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	anchor := open(b, &recorder{})
	_ = anchor
	for b.Loop() {
		iso, err := New(Config{Snapshot: snapshot(), HeapBytes: 64 << 20, BufferBytes: 64 << 20, Host: &recorder{}})
		if err != nil {
			b.Fatal(err)
		}
		iso.Run("main.js", "export default 1+1", false, nil)
		iso.Drain()
		iso.Value(100)
		iso.Close()
	}
}
