package conformance

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/executord/executord/ipc/executor"
	"github.com/executord/executord/ipc/protocol"
)

// kept is a retained execution in a case.
type kept struct {
	t       *testing.T
	r       executor.Retainer
	session string
	outcome *protocol.Outcome
	handles []protocol.Handle
}

func retaining(r *executor.Request) { r.Retain = &protocol.Retain{} }

// keep runs code, whose value must have so many handles. What it retains ends with the case.
func keep(t *testing.T, e executor.Executor, handles int, code string, change ...func(*executor.Request)) *kept {
	t.Helper()
	r, is := e.(executor.Retainer)
	if !is {
		t.Fatalf("%T retains nothing", e)
	}
	k := &kept{t: t, r: r, session: t.Name()}
	q := program(code, append([]func(*executor.Request){retaining}, change...)...)
	q.Session = k.session
	k.outcome = run(t, e, q)
	t.Cleanup(func() { r.ReleaseSession(k.session) })
	if k.outcome.Retained == nil {
		t.Fatalf("nothing is retained of %s, %v", k.outcome.Value, k.outcome.Err())
	}
	k.handles = k.find(k.outcome, handles)
	return k
}

// find checks the handles in an outcome.
func (k *kept) find(o *protocol.Outcome, want int) []protocol.Handle {
	k.t.Helper()
	found, err := protocol.Handles(o.Value)
	if err != nil || len(found) != want || o.Retained == nil || o.Retained.Handles != uint64(want) {
		k.t.Fatalf("%s has %d handles, want %d; %+v, %v", o.Value, len(found), want, o.Retained, err)
	}
	for _, h := range found {
		if protocol.RetainedOf(h.ID) != o.Retained.ID || h.ID == o.Retained.ID {
			k.t.Errorf("%q is the id of a handle of %q", h.ID, o.Retained.ID)
		}
	}
	return found
}

// invoke calls handle n, counted from 0.
func (k *kept) invoke(n int, change ...func(*executor.Invocation)) (*protocol.Outcome, error) {
	i := executor.Invocation{HandleInvoke: protocol.HandleInvoke{Handle: k.handles[n].ID}, Host: executor.Request{Session: k.session}}
	for _, f := range change {
		f(&i)
	}
	begun := 0
	i.Begun = func() { begun++ }
	ctx, cancel := context.WithTimeoutCause(k.t.Context(), deadline, errors.New("the case takes too long"))
	defer cancel()
	o, err := k.r.Invoke(ctx, i)
	if err == nil && o.Error == nil && begun != 1 || begun > 1 {
		k.t.Errorf("%d times it was told that the call has begun", begun)
	}
	return o, err
}

func (k *kept) value(n int, want string, change ...func(*executor.Invocation)) *protocol.Outcome {
	k.t.Helper()
	o, err := k.invoke(n, change...)
	if err != nil || o.Err() != nil {
		k.t.Fatalf("%+v, %v, want %s", o, err, want)
	}
	wantSame(k.t, "value", o.Value, protocol.Value(want))
	return o
}

// ending asks for an error of that type. Whether the isolate stays is told.
func (k *kept) ending(n int, want protocol.Type, stays bool, change ...func(*executor.Invocation)) *protocol.Outcome {
	k.t.Helper()
	o, err := k.invoke(n, change...)
	if err != nil || !errors.Is(o.Err(), want) || (o.Retained != nil) != stays {
		k.t.Fatalf("%+v, %v, want %s", o, err, want)
	}
	return o
}

// unknown asks that handle n is not there any more, for that reason.
func (k *kept) unknown(n int, why string) {
	k.t.Helper()
	if o, err := k.invoke(n); o != nil || !errors.Is(err, protocol.HandleUnknown) || !strings.Contains(err.Error(), why) {
		k.t.Errorf("%+v, %v, want %s", o, err, why)
	}
}

// host is what answers the calls of k, for handles in Go.
func (k *kept) set(p ...executor.Provider) *executor.Handles {
	r := executor.Request{Session: k.session}
	r.Provide(p...)
	return executor.NewHandles(k.r, r)
}

func with(args ...string) func(*executor.Invocation) {
	return func(i *executor.Invocation) {
		for _, a := range args {
			i.Args = append(i.Args, protocol.Value(a))
		}
	}
}

func by(m protocol.HandleMethod) func(*executor.Invocation) {
	return func(i *executor.Invocation) { i.Method = m }
}

func bounded(l protocol.Limits) func(*executor.Invocation) {
	return func(i *executor.Invocation) { i.Limits = l }
}

func answeredBy(p ...executor.Provider) func(*executor.Invocation) {
	return func(i *executor.Invocation) { i.Host.Provide(p...) }
}

func retained(t *testing.T, e executor.Executor) {
	t.Run("values", func(t *testing.T) { retainedValues(t, e) })
	t.Run("calls", func(t *testing.T) { retainedCalls(t, e) })
	t.Run("iterators", func(t *testing.T) { retainedIterators(t, e) })
	t.Run("endings", func(t *testing.T) { retainedEndings(t, e) })
	t.Run("release", func(t *testing.T) { releases(t, e) })
	t.Run("side by side", func(t *testing.T) { sideBySide(t, e) })
	wantValue(t, e, program("1"), "1")
}

func retainedValues(t *testing.T, e executor.Executor) {
	t.Run("kinds", func(t *testing.T) {
		k := keep(t, e, 3, "const f = () => 1; return {f, list: [f], gen: (async function* () {})(), stream: new Blob(['a']).stream()}")
		want := []protocol.HandleKind{protocol.HandleFunction, protocol.HandleIterator, protocol.HandleStream}
		for n, h := range k.handles {
			if h.Kind != want[n] {
				t.Errorf("handle %d is a %q", n, h.Kind)
			}
		}
		if about := k.outcome.Retained; about.IdleMs <= 0 || about.TTLMs <= 0 {
			t.Errorf("%+v", about)
		}
	})
	t.Run("without any", func(t *testing.T) {
		for _, code := range []string{"[1]", "throw new Error('no')", "return [() => 1, Symbol()]"} {
			if o := run(t, e, program(code, retaining)); o.Retained != nil {
				t.Errorf("%s: retained %+v", code, o.Retained)
			}
		}
	})
	t.Run("not asked for", func(t *testing.T) {
		wantEnding(t, e, program("return () => 1"), protocol.ResultUnserializable)
	})
	t.Run("in those of calls", func(t *testing.T) {
		k := keep(t, e, 1, "return (n) => Array.from({length: n}, (_, i) => () => i)")
		o := k.value(0, "[]", with("0"))
		if o.Retained == nil || o.Retained.Handles != 0 || o.Retained.ID != k.outcome.Retained.ID {
			t.Errorf("%+v", o.Retained)
		}
		o, err := k.invoke(0, with("3"))
		if err != nil {
			t.Fatal(err)
		}
		k.handles = append(k.handles, k.find(o, 3)...)
		k.value(3, "2")
	})
	t.Run("for a time", func(t *testing.T) {
		k := keep(t, e, 1, "return () => 1", func(r *executor.Request) { r.Retain.TTLMs = 1 })
		if about := k.outcome.Retained; about.TTLMs > 1 {
			t.Errorf("%+v", about)
		}
		for end := time.Now().Add(deadline); ; time.Sleep(time.Millisecond) {
			if _, err := k.invoke(0); err != nil {
				k.unknown(0, "")
				return
			}
			if time.Now().After(end) {
				t.Fatal("it is still there")
			}
		}
	})
}

func retainedCalls(t *testing.T, e executor.Executor) {
	t.Run("state", func(t *testing.T) {
		k := keep(t, e, 2, "let n = 0; const counter = {value: 0, up(by) { return this.value += by }}; return {next: async (step = 1) => n += step, counter}")
		k.value(0, "1")
		k.value(0, "3", with("2"))
		k.value(1, "5", with("5"))
		k.value(1, "10", with("5")) // this is the object that had it
	})
	t.Run("arguments", func(t *testing.T) {
		k := keep(t, e, 2, "const f = () => 1; return {f, same: (...l) => l.map((x) => x === f ? 'f' : x)}")
		k.value(1, `["f",{"@map":[]},{"@undefined":true}]`, with(`{"@handle":"`+k.handles[0].ID+`"}`, `{"@map":[]}`, `{"@undefined":true}`))
		for _, other := range []string{"other.1", k.handles[0].ID + "9", k.outcome.Retained.ID} {
			if o, err := k.invoke(1, with(`{"@handle":"`+other+`"}`)); !errors.Is(err, protocol.InvalidParams) || protocol.AsError(err).Field != "args" {
				t.Errorf("%s: %+v, %v", other, o, err)
			}
		}
	})
	t.Run("tools and lines", func(t *testing.T) {
		k := keep(t, e, 1, "console.log('before'); return async (x) => { console.log('in', x); const got = await tools.echo(x); console.warn('out'); return got }", using(echo))
		if got := lines(k.outcome.Logs); !slices.Equal(got, []string{"log before"}) {
			t.Errorf("lines %q", got)
		}
		for i := range 2 {
			var heard []protocol.Log
			o := k.value(0, fmt.Sprint(i), with(fmt.Sprint(i)), answeredBy(echo), func(i *executor.Invocation) {
				i.Logs.Stream, i.Host.OnLog = true, func(l protocol.Log) { heard = append(heard, l) }
			})
			want := []string{fmt.Sprint("log in ", i), "warn out"}
			if got := lines(o.Logs); !slices.Equal(got, want) || !slices.Equal(lines(heard), want) {
				t.Errorf("lines %q, streamed %q", got, lines(heard))
			}
			if s := o.Stats; s.ToolCalls != 1 || s.TotalMs <= 0 || s.CPUMs <= 0 || s.Worker == "" {
				t.Errorf("%+v", s)
			}
		}
		o := k.ending(0, protocol.Exception, true, with("1")) // a host without tools
		if len(o.Calls) != 1 || o.Calls[0].Status != protocol.CallError {
			t.Errorf("%+v", o.Calls)
		}
	})
	t.Run("network", func(t *testing.T) {
		k := keep(t, e, 1, "return async (url) => (await fetch(url)).text()", hosting(mirror))
		k.value(0, `"GET http://host.test/\n"`, with(`"http://host.test/"`), func(i *executor.Invocation) { i.Host.Fetch = mirror })
	})
	t.Run("limits", func(t *testing.T) {
		first := protocol.Limits{CPUMs: 1000, HeapMiB: 20, ResultBytes: 5000, ToolCalls: 3}
		k := keep(t, e, 1, "return (n) => 'x'.repeat(n)", within(first))
		o := k.value(0, `"x"`, with("1"))
		if l := o.Stats.Limits; l == nil || l.CPUMs != 1000 || l.HeapMiB != 20 || l.ResultBytes != 5000 || l.ToolCalls != 3 {
			t.Errorf("in force is %+v", l)
		}
		o = k.value(0, `"xx"`, with("2"), bounded(protocol.Limits{CPUMs: 2000, ToolCalls: 4}))
		if l := o.Stats.Limits; l == nil || l.CPUMs != 2000 || l.HeapMiB != 20 || l.ResultBytes != 5000 || l.ToolCalls != 4 {
			t.Errorf("in force is %+v", l)
		}
		if _, err := k.invoke(0, bounded(protocol.Limits{HeapMiB: 30})); !errors.Is(err, protocol.InvalidParams) || protocol.AsError(err).Field != "limits.heapMiB" {
			t.Errorf("%v", err)
		}
	})
	t.Run("nothing runs in between", func(t *testing.T) {
		k := keep(t, e, 2, "let n = 0; return [() => { setInterval(() => n++, 1) }, () => n]")
		k.value(0, `{"@undefined":true}`)
		time.Sleep(50 * time.Millisecond) // long enough for many ticks
		k.value(1, "0")
	})
	t.Run("in Go", func(t *testing.T) {
		k := keep(t, e, 2, "const double = (x) => 2 * x; return {apply: async (f, ...l) => [await tools.echo(l.map(f)), new Date(0)], double}", using(echo))
		set := k.set(echo)
		hs, err := set.In(k.outcome.Value)
		if err != nil {
			t.Fatal(err)
		}
		var got struct{}
		var list []any
		if err := hs[0].CallInto(t.Context(), &list, hs[1], 1, 2.5); err != nil || fmt.Sprint(list) != "[[2 5] 1970-01-01 00:00:00 +0000 UTC]" {
			t.Errorf("%v, %v", list, err)
		}
		if err := hs[0].CallInto(t.Context(), &got, 5); !errors.Is(err, protocol.Exception) {
			t.Errorf("%v", err)
		}
		set.Close()
		k.unknown(0, "its handles were released")
	})
}

func retainedIterators(t *testing.T, e executor.Executor) {
	code := `const log = [];
		async function* count(n) { try { for (let i = 0; i < n; i++) { log.push(i); yield {i, again: log} } return 'end' } finally { log.push('over') } }
		return {numbers: count(3), stream: ReadableStream.from(['a', new Uint8Array([1])]), log: () => log}`
	t.Run("pulled", func(t *testing.T) {
		k := keep(t, e, 3, code)
		k.value(0, `{"done":false,"value":{"i":0,"again":[0]}}`, by(protocol.HandleNext))
		k.value(2, "[0]") // no further than it was asked
		k.value(0, `{"done":true,"value":"stop"}`, by(protocol.HandleReturn), with(`"stop"`))
		k.value(2, `[0,"over"]`)
		k.value(0, `{"done":true,"value":{"@undefined":true}}`, by(protocol.HandleNext))
		k.value(1, `{"done":false,"value":"a"}`, by(protocol.HandleNext))
		k.value(1, `{"done":true,"value":{"@undefined":true}}`, by(protocol.HandleReturn))
		k.value(1, `{"done":true,"value":{"@undefined":true}}`, by(protocol.HandleNext))
	})
	t.Run("thrown into", func(t *testing.T) {
		k := keep(t, e, 3, code)
		k.value(0, `{"done":false,"value":{"i":0,"again":[0]}}`, by(protocol.HandleNext))
		if o := k.ending(0, protocol.Exception, true, by(protocol.HandleThrow), with(`{"@error":{"name":"RangeError","message":"m"}}`)); o.Error.Name != "RangeError" {
			t.Errorf("%+v", o.Error)
		}
		k.value(2, `[0,"over"]`)
	})
	t.Run("what is none", func(t *testing.T) {
		k := keep(t, e, 3, code)
		k.ending(2, protocol.Exception, true, by(protocol.HandleNext))
		k.ending(0, protocol.Exception, true)
	})
	t.Run("in Go", func(t *testing.T) {
		k := keep(t, e, 3, code)
		hs, err := k.set().In(k.outcome.Value)
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for v, err := range hs[1].All(t.Context()) {
			if err != nil {
				t.Fatal(err)
			}
			got = append(got, string(v))
		}
		if !slices.Equal(got, []string{`"a"`, `{"@bytes":"AQ=="}`}) {
			t.Errorf("chunks %q", got)
		}
		for v := range hs[0].All(t.Context()) {
			if strings.Contains(string(v), `"i":1`) {
				break
			}
		}
		k.value(2, `[0,1,"over"]`)
		runtime.KeepAlive(hs) // garbage is released
	})
}

func retainedEndings(t *testing.T, e executor.Executor) {
	t.Run("that keep the isolate", func(t *testing.T) {
		k := keep(t, e, 5, "return {fail: () => { throw new TypeError('no') }, odd: () => Symbol(), late: async () => { throw 5 }, big: () => 'x'.repeat(1e4), good: () => 1}")
		o := k.ending(0, protocol.Exception, true)
		if o.Error.Name != "TypeError" || o.Error.Message != "no" || o.Error.Position == nil {
			t.Errorf("%+v", o.Error)
		}
		k.ending(1, protocol.ResultUnserializable, true)
		if o := k.ending(2, protocol.Exception, true); string(o.Error.Thrown) != "5" {
			t.Errorf("%+v", o.Error)
		}
		k.ending(3, protocol.ResultTooLarge, true, bounded(protocol.Limits{ResultBytes: 1000}))
		k.value(4, "1")
	})
	for _, tc := range []struct {
		name, code string
		limits     protocol.Limits
		want       protocol.Type
	}{
		{"cpu", "for (;;);", protocol.Limits{CPUMs: 50}, protocol.CPUTimeout},
		{"wall", "return new Promise((r) => setTimeout(r, 60000))", protocol.Limits{WallMs: 50}, protocol.WallTimeout},
		{"total", "return new Promise(() => {})", protocol.Limits{TotalMs: 50}, protocol.TotalTimeout},
		{"memory", "const l = []; for (;;) l.push(new Array(1e5).fill(1.5))", protocol.Limits{}, protocol.MemoryLimit},
		{"tools", "for (let i = 0; i < 3; i++) tools.echo(1)", protocol.Limits{ToolCalls: 2}, protocol.ToolLimit},
	} {
		t.Run(tc.name, func(t *testing.T) {
			k := keep(t, e, 1, "return async () => { "+tc.code+" }", within(protocol.Limits{HeapMiB: 20}), using(echo))
			k.ending(0, tc.want, false, bounded(tc.limits), answeredBy(echo))
			k.unknown(0, "")
		})
	}
	t.Run("cancelled", func(t *testing.T) {
		k := keep(t, e, 1, "return () => tools.wait()", using(waiting))
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		ended := make(chan *protocol.Outcome, 2)
		call := func(ctx context.Context) (began chan struct{}) {
			began = make(chan struct{})
			mine := executor.Provider{Name: "tools", Tools: map[string]executor.Tool{"wait": func(ctx context.Context, args []protocol.Value) (protocol.Value, error) {
				close(began)
				return waiting.Tools["wait"](ctx, args)
			}}}
			i := executor.Invocation{HandleInvoke: protocol.HandleInvoke{Handle: k.handles[0].ID}, Host: executor.Request{Session: k.session}}
			answeredBy(mine)(&i)
			go func() {
				o, err := k.r.Invoke(ctx, i)
				if err != nil {
					t.Error(err)
				}
				ended <- o
			}()
			return began
		}
		<-call(t.Context())
		<-call(ctx)
		cancel()
		for range 2 { // who was cancelled, and who was called beside
			if o := <-ended; o == nil || !errors.Is(o.Err(), protocol.Cancelled) || o.Retained != nil {
				t.Errorf("ended with %+v", o)
			}
		}
		k.unknown(0, "")
	})
	t.Run("cancelled before it began", func(t *testing.T) {
		k := keep(t, e, 1, "return () => 1")
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		i := executor.Invocation{HandleInvoke: protocol.HandleInvoke{Handle: k.handles[0].ID}, Host: executor.Request{Session: k.session}}
		if o, err := k.r.Invoke(ctx, i); err != nil || !errors.Is(o.Err(), protocol.Cancelled) || o.Retained == nil {
			t.Errorf("%+v, %v", o, err)
		}
		k.value(0, "1")
	})
	t.Run("of the session", func(t *testing.T) {
		k := keep(t, e, 2, "return [() => tools.wait(), () => 1]", using(waiting))
		began := waiting
		began.Tools = map[string]executor.Tool{"wait": func(ctx context.Context, args []protocol.Value) (protocol.Value, error) {
			go k.r.ReleaseSession(k.session)
			return waiting.Tools["wait"](ctx, args)
		}}
		k.ending(0, protocol.Cancelled, false, answeredBy(began))
		k.unknown(1, "")
		k.r.ReleaseSession(k.session) // again
	})
}

func releases(t *testing.T, e executor.Executor) {
	t.Run("one by one", func(t *testing.T) {
		k := keep(t, e, 2, "return [() => 1, () => 2]")
		if n := k.r.Release(k.session, []string{k.handles[0].ID, k.handles[0].ID, "other.1", ""}); n != 1 {
			t.Errorf("%d handles were released", n)
		}
		k.unknown(0, "")
		k.value(1, "2")
		if n := k.r.Release(k.session, []string{k.handles[1].ID}); n != 1 {
			t.Errorf("%d handles were released", n)
		}
		k.unknown(1, "its handles were released")
	})
	t.Run("all", func(t *testing.T) {
		k := keep(t, e, 2, "return [() => 1, () => 2]")
		if n := k.r.Release(k.session, []string{k.outcome.Retained.ID}); n != 2 {
			t.Errorf("%d handles were released", n)
		}
		k.unknown(0, "its handles were released")
		if n := k.r.Release(k.session, []string{k.outcome.Retained.ID, k.handles[0].ID}); n != 0 {
			t.Errorf("%d handles were released again", n)
		}
	})
	t.Run("unknown", func(t *testing.T) {
		k := keep(t, e, 1, "return () => 1")
		for _, id := range []string{"other.1", "nothing", k.outcome.Retained.ID, k.outcome.Retained.ID + ".2", k.outcome.Retained.ID + ".01"} {
			k.handles = append(k.handles[:1], protocol.Handle{ID: id})
			k.unknown(1, "")
		}
		k.value(0, "1")
	})
	t.Run("places are given back", func(t *testing.T) {
		for range 30 {
			k := keep(t, e, 1, "return () => 1")
			k.r.Release(k.session, []string{k.handles[0].ID})
		}
	})
}

// sideBySide has calls interleave, and each gets its own lines, tool calls and value.
func sideBySide(t *testing.T, e executor.Executor) {
	k := keep(t, e, 1, `return async (name) => {
		console.log(name, 1);
		const first = await tools.tag(name);
		console.log(name, 2);
		await new Promise((r) => setTimeout(r, 1));
		console.log(name, 3);
		return [name, first, await tools.tag(name)];
	}`, using(executor.Provider{Name: "tools", Tools: map[string]executor.Tool{"tag": nil}}))
	const calls = 8
	arrived := make(chan struct{}, calls)
	all := make(chan struct{})
	go func() {
		for range calls {
			<-arrived
		}
		close(all)
	}()
	var wg sync.WaitGroup
	for i := range calls {
		wg.Go(func() {
			tag, rounds := fmt.Sprintf("%q", fmt.Sprint("call ", i)), 0
			mine := executor.Provider{Name: "tools", Tools: map[string]executor.Tool{
				"tag": func(ctx context.Context, args []protocol.Value) (protocol.Value, error) {
					if string(args[0]) != tag {
						t.Errorf("%s is asked for %s", tag, args[0])
					}
					if rounds++; rounds == 1 { // nobody goes on before all have come so far
						arrived <- struct{}{}
						select {
						case <-all:
						case <-ctx.Done():
						}
					}
					return args[0], nil
				},
			}}
			o, err := k.invoke(0, with(tag), answeredBy(mine))
			switch {
			case err != nil || o.Err() != nil:
				t.Errorf("%s: %+v, %v", tag, o, err)
				for len(arrived) < cap(arrived) { // let the others end
					arrived <- struct{}{}
				}
			case string(o.Value) != "["+tag+","+tag+","+tag+"]":
				t.Errorf("%s: got %s", tag, o.Value)
			case len(o.Logs) != 3 || o.Stats.ToolCalls != 2:
				t.Errorf("%s: %q, %d tool calls", tag, lines(o.Logs), o.Stats.ToolCalls)
			default:
				for n, l := range o.Logs {
					if want := fmt.Sprint("call ", i, " ", n+1); l.Text != want {
						t.Errorf("%s printed %q, want %q", tag, l.Text, want)
					}
				}
			}
		})
	}
	wg.Wait()
}
