package conformance

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/executord/executord/ipc/executor"
	"github.com/executord/executord/ipc/protocol"
)

func limits(t *testing.T, e executor.Executor) {
	t.Run("in force", func(t *testing.T) {
		asked := protocol.Limits{CPUMs: 1234, WallMs: 2345, TotalMs: 3456, HeapMiB: 20, BufferMiB: 10, SlackMiB: 150, StackKiB: 512, ResultBytes: 5000, MessageBytes: 7000, ModuleBytes: 8000, ValueDepth: 100, ValueParts: 2000, LogBytes: 600, LogLines: 70, ToolCalls: 8, ToolCallsInFlight: 3, Fetches: 9, FetchBytes: 10_000, Timers: 4}
		o := run(t, e, program("1", within(asked)))
		if o.Stats.Limits == nil || *o.Stats.Limits != asked {
			t.Errorf("in force is %+v", o.Stats.Limits)
		}
	})
	t.Run("defaults", func(t *testing.T) {
		l := run(t, e, program("1")).Stats.Limits
		for _, name := range protocol.LimitNames() {
			if l == nil || *l.Field(name) <= 0 {
				t.Errorf("%s in force is not said: %+v", name, l)
			}
		}
	})
	t.Run("lowered to the maximum", func(t *testing.T) {
		const asked = 1 << 40
		o := run(t, e, program("1", within(protocol.Limits{CPUMs: asked, HeapMiB: asked, ToolCalls: asked})))
		if l := o.Stats.Limits; l == nil || l.CPUMs >= asked || l.HeapMiB >= asked || l.ToolCalls >= asked || l.CPUMs <= 0 {
			t.Errorf("in force is %+v", l)
		}
	})
	t.Run("stats", func(t *testing.T) {
		s := run(t, e, program("let n = 0; for (let i = 0; i < 1e6; i++) n += i; await tools.echo(n); await tools.echo(n)", using(echo))).Stats
		if s.ToolCalls != 2 || s.CPUMs <= 0 || s.TotalMs <= 0 || s.WallMs <= 0 || s.PeakHeapBytes <= 0 || s.QueueMs < 0 {
			t.Errorf("%+v", s)
		}
	})
	t.Run("tool calls at once", func(t *testing.T) {
		var now, most atomic.Int64
		slow := executor.Provider{Name: "tools", Tools: map[string]executor.Tool{
			"slow": func(_ context.Context, args []protocol.Value) (protocol.Value, error) {
				n := now.Add(1)
				for old := most.Load(); n > old && !most.CompareAndSwap(old, n); old = most.Load() {
				}
				time.Sleep(time.Millisecond) // long enough for others to be let in by mistake
				now.Add(-1)
				return args[0], nil
			},
		}}
		code := "(await Promise.all(Array.from({length: 40}, (_, i) => tools.slow(i)))).reduce((a, b) => a + b)"
		wantValue(t, e, program(code, using(slow), within(protocol.Limits{ToolCallsInFlight: 3})), "780")
		if n := most.Load(); n < 2 || n > 3 {
			t.Errorf("%d calls at once", n)
		}
	})
	t.Run("timers", func(t *testing.T) {
		code := "let n = 0; try { for (;;) { setTimeout(() => {}, 1); n++ } } catch (e) { return [n, e.name] }"
		wantValue(t, e, program(code, within(protocol.Limits{Timers: 7})), `[7,"RangeError"]`)
	})
	t.Run("stack", func(t *testing.T) {
		depth := func(l protocol.Limits) (n int) {
			o := run(t, e, program("let n = 0; const f = () => { n++; f() }; try { f() } catch (e) { return [n, e.name] }", within(l)))
			if _, err := fmt.Sscanf(string(o.Value), `[%d,"RangeError"]`, &n); err != nil {
				t.Errorf("got %s, %v", o.Value, o.Error)
			}
			return n
		}
		if little, usual := depth(protocol.Limits{StackKiB: 200}), depth(protocol.Limits{}); little < 100 || usual < 3*little {
			t.Errorf("%d calls in 200 KiB, %d in the usual stack", little, usual)
		}
	})
	t.Run("messages", func(t *testing.T) {
		small := within(protocol.Limits{MessageBytes: 1000})
		wantValue(t, e, program("try { await tools.echo('x'.repeat(2000)) } catch (e) { return e.name }", small, using(echo)), `"TypeError"`)
		big := executor.Provider{Name: "tools", Tools: map[string]executor.Tool{"big": executor.Func(func() string { return strings.Repeat("x", 2000) })}}
		wantValue(t, e, program("try { await tools.big() } catch (e) { return e.name }", small, using(big)), `"RangeError"`)
	})
	t.Run("modules", func(t *testing.T) {
		r := program("import 'a'; export default 1", within(protocol.Limits{ModuleBytes: 1000}))
		r.Modules = map[string]protocol.ModuleSource{"a": {Source: strings.Repeat("//", 600)}}
		_, err := e.Execute(t.Context(), r)
		if fault := protocol.AsError(err); err == nil || fault.Type != protocol.InvalidParams || fault.Field != "modules" {
			t.Errorf("got %v", err)
		}
	})
	t.Run("values", func(t *testing.T) {
		deep := "let v = 0; for (let i = 0; i < 40; i++) v = [v];"
		wantEnding(t, e, program(deep+" return v", within(protocol.Limits{ValueDepth: 20})), protocol.ResultUnserializable)
		wantEnding(t, e, program("return new Array(3000).fill(1)", within(protocol.Limits{ValueParts: 2000})), protocol.ResultUnserializable)
		wantValue(t, e, program(deep+" try { await tools.echo(v) } catch (e) { return e.name }", using(echo), within(protocol.Limits{ValueDepth: 20})), `"TypeError"`)
		// What fits exactly is no breach of contract of anybody's.
		wantValue(t, e, program("let v = 0; for (let i = 0; i < 2000; i++) v = [v]; await tools.echo(v); return 1", using(echo)), "1")
		wantValue(t, e, program("const v = new Array(300000).fill(1); await tools.echo(v, v, v); return 1", using(echo)), "1")
	})
	t.Run("one run's end does not touch the next", func(t *testing.T) {
		for range 3 {
			o := run(t, e, program("globalThis.left = (globalThis.left ?? 0) + 1; for (;;);", within(protocol.Limits{CPUMs: 50})))
			if !errors.Is(o.Err(), protocol.CPUTimeout) {
				t.Errorf("ended with %v", o.Err())
			}
			wantValue(t, e, program("globalThis.left ?? 'fresh'"), `"fresh"`)
		}
	})
}
