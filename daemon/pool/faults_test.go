package pool

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/executord/executord/ipc/executor"
	"github.com/executord/executord/ipc/protocol"
	"github.com/executord/executord/ipc/testbin"
)

// The tests of this file are named after publicly reported faults of systems like this one, and run the real worker; see
// sandbox/testdata/faults.md.

// roomy are limits that nothing here passes by chance, on a machine however busy.
func roomy(l protocol.Limits) protocol.Limits {
	for p, v := range map[*int64]int64{&l.CPUMs: 30_000, &l.WallMs: 50_000, &l.TotalMs: 60_000, &l.ToolCalls: 10_000} {
		if *p == 0 {
			*p = v
		}
	}
	return l
}

// runReal runs real JavaScript within limits, and then a program that has to work.
func (b *bench) runReal(code string, l protocol.Limits) *protocol.Outcome {
	b.t.Helper()
	r := program(code)
	r.Limits = roomy(l)
	out := b.run(r)
	if next := b.run(program("return 42")); string(next.Value) != "42" {
		b.t.Errorf("after %.60q: %v", code, next.Error)
	}
	return out
}

// oneOf wants an error of one of the types.
func oneOf(t testing.TB, out *protocol.Outcome, types ...protocol.Type) {
	t.Helper()
	if out.Error == nil || !slices.Contains(types, out.Error.Type) {
		t.Errorf("got %.100s, %v, want one of %q", out.Value, out.Error, types)
	}
}

// M: memory.

// TestM1CopyOfALargeBuffer: it may succeed or pass the limit; whoever runs beside it does not notice.
func TestM1CopyOfALargeBuffer(t *testing.T) {
	if testing.Short() {
		t.Skip("it fills hundreds of MiB")
	}
	c := testConfig()
	c.Workers = 2
	b := realBench(t, c)
	slow := program("let n = 0; for (let i = 0; i < 50; i++) { n += (await tools.echo(i))[0]; await new Promise((r) => setTimeout(r, 2)) } return n")
	slow.Limits = roomy(protocol.Limits{})
	beside := b.start("beside", slow)
	beside.isRunning(t)
	out := b.runReal("const b = new Uint8Array(90 << 20); return Array.from(b).length", protocol.Limits{HeapMiB: 512, BufferMiB: 512})
	if string(out.Value) != fmt.Sprint(90<<20) {
		oneOf(t, out, protocol.MemoryLimit, protocol.Exception)
	}
	if <-beside.done; beside.err != nil || string(beside.out.Value) != "1225" {
		t.Errorf("beside it: %+v, %v", beside.out, beside.err)
	}
}

func TestM3ManyShortKeys(t *testing.T) {
	b := realBench(t, testConfig())
	oneOf(t, b.runReal("const o = {}; for (let i = 0; i < 2e6; i++) o['k' + i] = 'v'.repeat(40)", protocol.Limits{HeapMiB: 8}), protocol.MemoryLimit)
}

func TestM5SpreadOfAGiantString(t *testing.T) {
	b := realBench(t, testConfig())
	for _, n := range []string{"5e8", "2e8", "1e7"} {
		oneOf(t, b.runReal("return [...'ab'.repeat("+n+")].length", protocol.Limits{}), protocol.Exception, protocol.MemoryLimit)
	}
}

// TestM7MediumStringsInObjects: 200 MB pass through a heap of 128 MiB.
func TestM7MediumStringsInObjects(t *testing.T) {
	if testing.Short() {
		t.Skip("it is the engine's memory")
	}
	b := realBench(t, testConfig())
	out := b.runReal("let n = 0; for (let i = 0; i < 500; i++) n += (await tools.echo({t: 'x'.repeat(4e5)}))[0].t.length; return n", protocol.Limits{HeapMiB: 128})
	if string(out.Value) != "200000000" || out.Stats.ToolCalls != 500 || out.Stats.PeakHeapBytes > 128<<20 {
		t.Errorf("got %s, %v, %+v", out.Value, out.Error, out.Stats)
	}
}

func TestM12PiecesAddUp(t *testing.T) {
	b := realBench(t, testConfig())
	code := "const a = []; for (let i = 0; i < 300; i++) a.push(new Array(1 << 17).fill(i)); return a.length"
	oneOf(t, b.runReal(code, protocol.Limits{HeapMiB: 8}), protocol.MemoryLimit)
	if out := b.runReal(code, protocol.Limits{HeapMiB: 256}); string(out.Value) != "300" {
		t.Errorf("with room for them: %v", out.Error)
	}
}

func TestM14BuffersAddUp(t *testing.T) {
	b := realBench(t, testConfig())
	code := "const m = new Map(); for (let i = 0; i < 300; i++) m.set(i, new Uint8Array(1 << 19).fill(1)); return m.size"
	oneOf(t, b.runReal(code, protocol.Limits{BufferMiB: 8}), protocol.MemoryLimit)
	if out := b.runReal(code, protocol.Limits{BufferMiB: 256}); string(out.Value) != "300" {
		t.Errorf("with room for them: %v", out.Error)
	}
}

// TestM16EveryBuildHasLimits: requests that name no limit have limits, whichever worker runs them.
func TestM16EveryBuildHasLimits(t *testing.T) {
	if testing.Short() {
		t.Skip("it fills hundreds of MiB")
	}
	for name, binary := range map[string]string{"of packages": testbin.Worker(t), "of tests": testbin.FaultyWorker(t)} {
		t.Run(name, func(t *testing.T) {
			c := testConfig()
			c.Launcher = launcherOf(t, binary)
			c.Limits.CPUMs, c.Limits.WallMs, c.Limits.TotalMs = 2_000, 50_000, 60_000
			b := newBench(t, c, realOutside())
			b.waitReady()
			oneOf(t, b.run(program("const a = []; for (;;) a.push(new Array(1e5).fill(1.5))")), protocol.MemoryLimit)
			oneOf(t, b.run(program("const a = []; for (;;) a.push(new Uint8Array(1 << 20).fill(1))")), protocol.MemoryLimit)
			oneOf(t, b.run(program("for (;;);")), protocol.CPUTimeout)
		})
	}
}

// TestM19LargeLimitsAreHonoured: up to the maximum, which the outcome names when more was asked for.
func TestM19LargeLimitsAreHonoured(t *testing.T) {
	if testing.Short() {
		t.Skip("it fills hundreds of MiB")
	}
	b := realBench(t, testConfig())
	code := "const a = []; for (let i = 0; i < 180; i++) a.push(new Array(1 << 18).fill(i)); return a.length" // 180 MiB
	for asked, effective := range map[int64]int64{256: 256, 1 << 20: 512} {
		out := b.runReal(code, protocol.Limits{HeapMiB: asked})
		if string(out.Value) != "180" || out.Stats.Limits.HeapMiB != effective {
			t.Errorf("%d MiB: got %s, %v, limits %+v", asked, out.Value, out.Error, out.Stats.Limits)
		}
	}
	c := Defaults()
	c.Launcher, c.Limits.HeapMiB = &inside{}, c.MaxLimits.HeapMiB+1
	if err := c.check(); err == nil || !strings.Contains(err.Error(), "default heapMiB is 513 MiB, must be from 1 to 512") {
		t.Errorf("a default over the maximum: %v", err)
	}
}

// T: clocks, loops, timers.

func TestT1WaitingCounts(t *testing.T) {
	b := realBench(t, testConfig())
	out := b.runReal("await new Promise(() => setInterval(() => {}, 10))", protocol.Limits{WallMs: 500})
	oneOf(t, out, protocol.WallTimeout)
	if out.Stats.WallMs < 500 {
		t.Errorf("ended after %v ms", out.Stats.WallMs)
	}
	oneOf(t, b.runReal("await new Promise(() => {})", protocol.Limits{WallMs: 500}), protocol.Deadlock) // which is sooner
}

// TestT3NothingOutlivesTheTimeout: what a program left behind neither calls nor prints while the next one runs.
func TestT3NothingOutlivesTheTimeout(t *testing.T) {
	b := realBench(t, testConfig())
	pid := b.Workers()[0].PID
	var over atomic.Bool
	r := program(`setTimeout(() => tools.late(), 400); setInterval(() => { console.log("tick"); tools.tick() }, 20);
(async () => { for (;;) { await new Promise((r) => setTimeout(r, 5)); globalThis.n = (globalThis.n ?? 0) + 1 } })();
await new Promise((r) => setTimeout(r, 9e3))`)
	r.Limits = roomy(protocol.Limits{WallMs: 200})
	r.Call = func(context.Context, executor.ToolCall) (protocol.Value, error) {
		if over.Load() {
			t.Error("a call after the end")
		}
		return nil, nil
	}
	r.OnLog = func(protocol.Log) {
		if over.Load() {
			t.Error("a line after the end")
		}
	}
	oneOf(t, b.run(r), protocol.WallTimeout)
	over.Store(true)
	out := b.run(program("await new Promise((r) => setTimeout(r, 600)); return typeof n"))
	if string(out.Value) != `"undefined"` || len(out.Logs) != 0 || out.Stats.ToolCalls != 0 || b.Workers()[0].PID != pid {
		t.Errorf("the next program: %s, %v, logs %q, %+v", out.Value, out.Error, texts(out), out.Stats)
	}
}

// TestT5SlowTools: neither CPU nor wall clock of the program runs while it waits for a tool.
func TestT5SlowTools(t *testing.T) {
	b := realBench(t, testConfig())
	r := program("const a = await tools.slow(1); return a")
	r.Limits = protocol.Limits{CPUMs: 500, WallMs: 800, TotalMs: 60_000}
	r.Call = func(ctx context.Context, c executor.ToolCall) (protocol.Value, error) {
		select {
		case <-time.After(1500 * time.Millisecond):
		case <-ctx.Done():
		}
		return c.Args, nil
	}
	if out := b.run(r); string(out.Value) != "[1]" || out.Stats.TotalMs < 1500 {
		t.Errorf("got %s, %v, %+v", out.Value, out.Error, out.Stats)
	}
	r.Limits.TotalMs = 700
	oneOf(t, b.run(r), protocol.TotalTimeout)
}

// TestT9TinyLimits: each clock at a millisecond, each time.
func TestT9TinyLimits(t *testing.T) {
	b := realBench(t, testConfig())
	for typ, l := range map[protocol.Type]protocol.Limits{
		protocol.CPUTimeout: {CPUMs: 1}, protocol.WallTimeout: {WallMs: 1}, protocol.TotalTimeout: {WallMs: 60_000, TotalMs: 1},
	} {
		for range 10 {
			r := program("for (;;);")
			r.Limits = roomy(l)
			oneOf(t, b.run(r), typ)
		}
	}
	if out := b.runReal("return 1", protocol.Limits{}); string(out.Value) != "1" {
		t.Errorf("at the end: %v", out.Error)
	}
}

func TestT11EndlessLoops(t *testing.T) {
	b := realBench(t, testConfig())
	for _, form := range []protocol.Form{protocol.FormScript, protocol.FormModule} {
		for _, code := range []string{"for(;;);", "while (true) { try { for (;;); } catch {} finally { continue } }", "for (;;) await null"} {
			r := program(code)
			r.Form, r.Limits = form, roomy(protocol.Limits{CPUMs: 200})
			oneOf(t, b.run(r), protocol.CPUTimeout)
		}
	}
}

// TestT13BuiltinsThatDoNotYield end with their process.
func TestT13BuiltinsThatDoNotYield(t *testing.T) {
	b := realBench(t, testConfig())
	if out := b.runReal("return String(new Array(5e8)).length", protocol.Limits{CPUMs: 300}); string(out.Value) != "499999999" { // V8 joins holes fast
		oneOf(t, out, protocol.CPUTimeout, protocol.MemoryLimit)
	}
	oneOf(t, b.runReal("return Array.prototype.indexOf.call({length: 2 ** 53 - 1}, 1)", protocol.Limits{CPUMs: 300}), protocol.CPUTimeout)
	if b.lastDeath().Type != protocol.CPUTimeout {
		t.Errorf("the last worker to end: %+v", b.lastDeath())
	}
}

func TestT16TimersAfterLongWork(t *testing.T) {
	b := realBench(t, testConfig())
	out := b.runReal(`const seen = [];
setTimeout(() => seen.push("f"), 1);
for (const end = Date.now() + 200; Date.now() < end;);
seen.push("busy");
await new Promise((r) => setTimeout(r, 50));
return seen`, protocol.Limits{})
	if string(out.Value) != `["busy","f"]` {
		t.Errorf("got %s, %v", out.Value, out.Error)
	}
}

func TestT18Timers(t *testing.T) {
	b := realBench(t, testConfig())
	if out := b.runReal("await new Promise((r) => setTimeout(r, 5)); return 1", protocol.Limits{}); string(out.Value) != "1" {
		t.Errorf("got %v", out.Error)
	}
}

// TestT20LeavingStopsTheEngine: the worker is free long before the program's own limits.
func TestT20LeavingStopsTheEngine(t *testing.T) {
	b := realBench(t, testConfig())
	for _, code := range []string{"for (;;);", "return [].indexOf.call({length: 2 ** 53 - 1}, 1)", "await new Promise((r) => setTimeout(r, 1e6))"} {
		r := program(code)
		r.Limits = protocol.Limits{CPUMs: 60_000, WallMs: 300_000, TotalMs: 300_000}
		j := b.start("a", r)
		j.isRunning(t)
		j.end()
		want(t, j.out, protocol.Cancelled, "")
		if next := b.run(program("return 42")); string(next.Value) != "42" || next.Stats.QueueMs > 30_000 {
			t.Errorf("after %s: %v, %+v", code, next.Error, next.Stats)
		}
	}
}

func TestT22LimitsThatAreNotReached(t *testing.T) {
	b := realBench(t, testConfig())
	for _, l := range []protocol.Limits{{WallMs: 10_000}, {CPUMs: 10_000}, {TotalMs: 10_000}, {HeapMiB: 64}, {BufferMiB: 1}, {LogLines: 1}, {ToolCalls: 1}} {
		if out := b.run(executor.Request{Execute: protocol.Execute{Code: "return 200", Limits: l}}); string(out.Value) != "200" {
			t.Errorf("%+v: %v", l, out.Error)
		}
	}
}

// C: crashes and lifecycle.

// TestC1CancelDuringACall: the worker lives on.
func TestC1CancelDuringACall(t *testing.T) {
	b := realBench(t, testConfig())
	pid := b.Workers()[0].PID
	for range 20 {
		called, ctx, release := make(chan struct{}), t.Context(), make(chan struct{})
		ctx, cancel := context.WithCancel(ctx)
		r := program("await tools.slow()")
		r.Limits = roomy(protocol.Limits{})
		r.Call = func(context.Context, executor.ToolCall) (protocol.Value, error) {
			close(called)
			<-release
			return protocol.Value("1"), nil
		}
		go func() {
			<-called
			cancel()
		}()
		out, err := b.Execute(ctx, r)
		close(release) // its answer comes to a worker that has other work
		if err != nil {
			t.Fatal(err)
		}
		want(t, out, protocol.Cancelled, "")
	}
	if out := b.run(program("return await tools.echo(7)")); string(out.Value) != "[7]" || b.Workers()[0].PID != pid {
		t.Errorf("at the end: %s, %v, worker %d, was %d", out.Value, out.Error, b.Workers()[0].PID, pid)
	}
}

// TestC9LimitsOfOne: no limit is divided by another, and the least of each ends in a type.
func TestC9LimitsOfOne(t *testing.T) {
	b := realBench(t, testConfig())
	all := protocol.Limits{CPUMs: 1, WallMs: 1, TotalMs: 1, HeapMiB: 1, BufferMiB: 1, ResultBytes: 1, LogBytes: 1, LogLines: 1, ToolCalls: 1, Fetches: 1, FetchBytes: 1}
	for _, l := range []protocol.Limits{all, {HeapMiB: 1, BufferMiB: 1}, {ResultBytes: 1}, {LogBytes: 1, LogLines: 1}} {
		r := program("console.log('abc'); console.log('def'); await tools.echo(1); return 1")
		r.Limits = l
		if l != all {
			r.Limits = roomy(l)
		}
		out := b.run(r)
		if out.Error != nil {
			oneOf(t, out, protocol.CPUTimeout, protocol.WallTimeout, protocol.TotalTimeout, protocol.MemoryLimit, protocol.ResultTooLarge)
		}
		if out.Stats.Limits.HeapMiB < 1 {
			t.Errorf("effective limits %+v", out.Stats.Limits)
		}
	}
	for _, l := range []protocol.Limits{{CPUMs: -1}, {HeapMiB: -1}, {LogLines: -1}} {
		r := program("return 1")
		r.Limits = l
		if _, err := b.Execute(t.Context(), r); protocol.AsError(err).Type != protocol.InvalidParams {
			t.Errorf("%+v: %v", l, err)
		}
	}
}

func TestC13StackOverflowInACall(t *testing.T) {
	b := realBench(t, testConfig())
	out := b.runReal("const f = () => tools.echo(f()); f()", protocol.Limits{})
	oneOf(t, out, protocol.Exception)
	if out.Error.Name != "RangeError" || out.Stats.ToolCalls != 0 {
		t.Errorf("got %v, %+v", out.Error, out.Stats)
	}
}

// TestC15AStoppedProgramHasNoValue, however it tries to return one, and whoever stops it.
func TestC15AStoppedProgramHasNoValue(t *testing.T) {
	b := realBench(t, testConfig())
	for _, code := range []string{
		"try { for (;;); } catch {} return 1",
		"try { for (;;); } finally { return 1 }",
		"function* g() { try { for (;;) yield 1 } finally { return 1 } } for (const x of g()); return 1",
		"await (async () => { try { for (;;); } catch {} finally { return 1 } })(); return 1",
		"await Promise.resolve().then(() => { for (;;); }).catch(() => 1).finally(() => 1); return 1",
		"[1].map(() => { try { for (;;); } catch { } }); return 1",
	} {
		oneOf(t, b.runReal(code, protocol.Limits{CPUMs: 150}), protocol.CPUTimeout)
	}
	// Killed about when it returns: a value only where the kill came too late.
	kills := 30
	if testing.Short() {
		kills = 10
	}
	for i := range kills {
		r := program("console.log('now'); for (let i = 0; i < 3e6; i++); return 1")
		var once sync.Once
		r.OnLog = func(protocol.Log) {
			once.Do(func() {
				time.Sleep(time.Duration(i%10) * time.Millisecond)
				for _, w := range b.Workers() {
					_ = syscall.Kill(w.PID, syscall.SIGKILL)
				}
			})
		}
		if out := b.run(r); out.Error != nil {
			want(t, out, protocol.WorkerCrashed, "signal:SIGKILL")
		} else if string(out.Value) != "1" || out.Status != protocol.StatusOK {
			t.Errorf("got %+v", out)
		}
	}
	out := b.run(program("return 42"))
	if out.Error != nil && out.Error.Type == protocol.WorkerCrashed { // the last kill was about to reach it
		out = b.run(program("return 42"))
	}
	if string(out.Value) != "42" {
		t.Errorf("at the end: %v", out.Error)
	}
}
