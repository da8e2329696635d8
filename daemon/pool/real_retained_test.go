package pool

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/executord/executord/ipc/executor"
	"github.com/executord/executord/ipc/protocol"
)

// realRetained is a pool over the real worker with something retained: its first handle is of a function that gets the
// others' work done.
func realRetained(t *testing.T, tune func(*Config), code string) (*bench, *protocol.Outcome) {
	t.Helper()
	c := retainConfig()
	if tune != nil {
		tune(&c)
	}
	b := realBench(t, c)
	r := program(code)
	r.Retain, r.Session, r.Identity = &protocol.Retain{}, "s", "me"
	out := b.run(r)
	if out.Error != nil || out.Retained == nil {
		t.Fatalf("got %+v, error %v", out, out.Error)
	}
	return b, out
}

// apply calls a handle with values.
func (b *bench) apply(handle string, args ...protocol.Value) *protocol.Outcome {
	b.t.Helper()
	i := lines("s", handle)
	i.Args = args
	i.Host.Call = func(_ context.Context, c executor.ToolCall) (protocol.Value, error) { return c.Args, nil }
	out, err := b.Invoke(b.t.Context(), i)
	if err != nil {
		b.t.Fatal(err)
	}
	return out
}

// TestRealRetained: the pool and the worker binary agree on what is retained.
func TestRealRetained(t *testing.T) {
	b, out := realRetained(t, nil, `
		let n = 40;
		async function* rows() { yield 1; yield 2 }
		return {
			add: (x) => (console.log('adds', x), n += x),
			echo: (...args) => tools.echo(...args),
			fail: () => { throw new RangeError('no') },
			make: () => [() => 'made', () => 'other'],
			big: () => 'x'.repeat(2 << 20),
			rows: rows(),
		}`)
	id := out.Retained.ID
	if out.Retained.Handles != 6 {
		t.Fatalf("value %s, retained %+v", out.Value, out.Retained)
	}
	if out := b.apply(id+".1", protocol.Value("2")); string(out.Value) != "42" || texts(out)[0] != "adds 2" || out.Retained == nil || out.Stats.WallMs > out.Stats.TotalMs {
		t.Errorf("got %+v, error %v", out, out.Error)
	}
	if out := b.apply(id+".2", protocol.Value(`"x"`)); string(out.Value) != `["x"]` || out.Stats.ToolCalls != 1 {
		t.Errorf("got %+v, error %v", out, out.Error)
	}
	out = b.apply(id + ".3")
	if want(t, out, protocol.Exception, ""); out.Retained == nil {
		t.Error("an exception is the end of it")
	}
	if out := b.apply(id + ".4"); out.Retained == nil || out.Retained.Handles != 2 {
		t.Errorf("value %s, retained %+v", out.Value, out.Retained)
	}
	if out := b.apply(id + ".8"); string(out.Value) != `"other"` {
		t.Errorf("got %s, error %v", out.Value, out.Error)
	}
	out = b.apply(id + ".5")
	if want(t, out, protocol.ResultTooLarge, ""); out.Retained == nil {
		t.Error("a value that is too large is the end of it")
	}
	i := lines("s", id+".6")
	i.Args, i.Method = nil, protocol.HandleNext
	if out, err := b.Invoke(t.Context(), i); err != nil || out.Error != nil || string(out.Value) != `{"done":false,"value":1}` && string(out.Value) != `{"value":1,"done":false}` {
		t.Errorf("got %+v, %v", out, err)
	}
	if _, err := b.Invoke(t.Context(), executor.Invocation{
		HandleInvoke: protocol.HandleInvoke{Handle: id + ".1", Args: []protocol.Value{protocol.Value(`{"@handle":"x.1"}`)}}, Host: executor.Request{Session: "s"},
	}); !errors.Is(err, protocol.InvalidParams) {
		t.Errorf("a handle of another: %v", err)
	}
	if n := b.Release("s", []string{id + ".3", id + ".5"}); n != 2 {
		t.Errorf("%d released", n)
	}
	if out := b.apply(id+".1", protocol.Value("0")); string(out.Value) != "42" {
		t.Errorf("got %s", out.Value)
	}
	b.quiet(1)
	b.Release("s", []string{id})
	b.quiet(0)
	if out := b.run(program("return 42")); string(out.Value) != "42" {
		t.Errorf("got %+v", out)
	}
	if s := b.Stats().Totals; s.Crashed != 0 || s.Stopped != 0 || s.Failed != 0 {
		t.Errorf("totals %+v", s)
	}
}

// TestRealRetainedStops: an invocation that is stopped ends the isolate, and those beside it.
func TestRealRetainedStops(t *testing.T) {
	b, out := realRetained(t, nil, "return [() => { for (;;); }, () => tools.echo(1)]")
	asked := make(chan struct{})
	other := lines("s", out.Retained.ID+".2")
	other.Args = nil
	other.Host.Call = func(ctx context.Context, _ executor.ToolCall) (protocol.Value, error) {
		close(asked)
		<-ctx.Done()
		return nil, ctx.Err()
	}
	done := make(chan *protocol.Outcome, 1)
	go func() {
		out, err := b.Invoke(t.Context(), other)
		if err != nil {
			t.Error(err)
		}
		done <- out
	}()
	<-asked
	i := lines("s", out.Retained.ID+".1")
	i.Args, i.Limits.CPUMs = nil, 200
	stopped, err := b.Invoke(t.Context(), i)
	if err != nil {
		t.Fatal(err)
	}
	want(t, stopped, protocol.CPUTimeout, "")
	want(t, <-done, protocol.Cancelled, "")
	b.quiet(0)
	b.unknown("s", out.Retained.ID+".1", "a call into it was stopped (cpu_timeout)")
}

// TestRealRetainedIdle: what nobody calls ends, and leaves room for others.
func TestRealRetainedIdle(t *testing.T) {
	b, out := realRetained(t, func(c *Config) { c.RetainIdle = 300 * time.Millisecond }, "return () => 1")
	b.quiet(0)
	b.unknown("s", out.Retained.ID+".1", "it was idle for 300ms")
	out = b.run(program("return typeof n"))
	if string(out.Value) != `"undefined"` {
		t.Errorf("got %+v", out)
	}
}
