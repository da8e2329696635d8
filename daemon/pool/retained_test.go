package pool

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/executord/executord/ipc/executor"
	"github.com/executord/executord/ipc/protocol"
	"github.com/executord/executord/ipc/worker"
)

// retainConfig is testConfig with two places for what is retained.
func retainConfig() Config {
	c := testConfig()
	c.Retained, c.RetainedPerIdentity = 2, 2
	return c
}

// retaining is a request of a session that retains so many handles.
func retaining(session string, handles int) executor.Request {
	r := script(fmt.Sprintf("retain %d []", handles))
	r.Retain, r.Session, r.Identity = &protocol.Retain{}, session, "me"
	return r
}

// retain runs a program that retains handles, and returns what its outcome says.
func (b *bench) retain(session string, handles int) *protocol.Retained {
	b.t.Helper()
	out := b.run(retaining(session, handles))
	if out.Error != nil || out.Retained == nil || out.Retained.Handles != uint64(handles) {
		b.t.Fatalf("got %+v, error %v, retained %+v", out, out.Error, out.Retained)
	}
	return out.Retained
}

// lines are an invocation that makes a fake play them.
func lines(session, handle string, list ...string) executor.Invocation {
	text, _ := json.Marshal(strings.Join(list, "\n"))
	i := executor.Invocation{HandleInvoke: protocol.HandleInvoke{Handle: handle, Args: []protocol.Value{text}}}
	i.Host.Session, i.Host.Identity = session, "me"
	i.Host.Call = func(context.Context, executor.ToolCall) (protocol.Value, error) {
		return protocol.Value(`"answer"`), nil
	}
	return i
}

func (b *bench) invoke(session, handle string, list ...string) *protocol.Outcome {
	b.t.Helper()
	out, err := b.Invoke(b.t.Context(), lines(session, handle, list...))
	if err != nil {
		b.t.Fatalf("Invoke: %v", err)
	}
	return out
}

// unknown wants that a handle is, with a message that has text in it.
func (b *bench) unknown(session, handle, text string) {
	b.t.Helper()
	_, err := b.Invoke(b.t.Context(), lines(session, handle, "return 1"))
	if !errors.Is(err, protocol.HandleUnknown) || !strings.Contains(err.Error(), text) {
		b.t.Errorf("handle %q: got %v, want %s with %q", handle, err, protocol.HandleUnknown, text)
	}
}

// settles waits until the counters of the pool are as they should be.
func (b *bench) settles(what string, want func(Stats) bool) {
	b.t.Helper()
	for deadline := time.Now().Add(20 * time.Second); !want(b.Stats()); time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			b.t.Fatalf("%s: stats %+v", what, b.Stats())
		}
	}
}

// quiet is a pool at rest in which so much is retained.
func (b *bench) quiet(retained int) {
	b.t.Helper()
	b.settles(fmt.Sprintf("want %d retained and all else idle", retained), func(s Stats) bool {
		p := b.Pool
		p.mu.Lock()
		defer p.mu.Unlock()
		return s.Retained == retained && s.Retaining == retained && s.Idle == p.config().processes() && s.Running == 0 && s.Due == 0 &&
			s.Starting+s.Restoring+s.Leaving == 0 && len(s.Identities) == 0 && p.places == retained && len(p.reserved) == 0
	})
}

func TestRetained(t *testing.T) {
	b := insideBench(t, retainConfig())
	k := b.retain("s", 2)
	if k.IdleMs != 300_000 || k.TTLMs != 3_600_000 || strings.Contains(k.ID, ".") || len(k.ID) < 20 {
		t.Errorf("retained %+v", k)
	}
	b.quiet(1)
	b.works() // another worker took the place

	if out := b.invoke("s", k.ID+".2", "log hello", "handle"); string(out.Value) != `"2"` || texts(out)[0] != "hello" || out.Retained.ID != k.ID || out.Retained.Handles != 0 {
		t.Errorf("got %+v, retained %+v", out, out.Retained)
	}
	i := lines("s", k.ID+".1", "handle")
	i.Method = protocol.HandleNext
	if out, err := b.Invoke(t.Context(), i); err != nil || string(out.Value) != `"next1"` {
		t.Errorf("got %+v, %v", out, err)
	}
	if out := b.invoke("s", k.ID+".1", "call gate"); string(out.Value) != `"answer"` || out.Stats.ToolCalls != 1 {
		t.Errorf("got %+v", out)
	}
	if out := b.invoke("s", k.ID+".1", `throw {"type":"exception","message":"no"}`); out.Error.Type != protocol.Exception || out.Retained == nil {
		t.Errorf("got %+v", out)
	}
	b.unknown("s", k.ID+".3", "no such handle")
	if out := b.invoke("s", k.ID+".1", "more 3"); out.Retained.Handles != 3 {
		t.Errorf("new handles: %+v", out.Retained)
	}
	b.invoke("s", k.ID+".5", "return 1")

	if n := b.Release("s", []string{k.ID + ".1", k.ID + ".1", k.ID + ".9", "x", k.ID + ".2"}); n != 2 {
		t.Errorf("%d released", n)
	}
	b.unknown("s", k.ID+".1", "was released")
	if out := b.invoke("s", k.ID+".4", "released"); string(out.Value) != "2" {
		t.Errorf("the worker heard of %s that were released", out.Value)
	}
	if n := b.Release("s", []string{k.ID}); n != 3 {
		t.Errorf("%d released", n)
	}
	b.unknown("s", k.ID+".4", "its handles were released")
	b.quiet(0)
	b.works()
	s := b.Stats().Totals
	if s.Retained != 1 || s.RetainedEnds[EndReleased] != 1 || s.Invocations != 7 || s.Executions != 3+7 {
		t.Errorf("totals %+v", s)
	}
}

func TestRetainedHandleIDs(t *testing.T) {
	b := insideBench(t, retainConfig())
	k := b.retain("s", 1)
	for _, id := range []string{
		k.ID, k.ID + ".", k.ID + ".0", k.ID + ".01", k.ID + ".+1", k.ID + ".1.", k.ID + ".1 ", k.ID + ".-1", k.ID + ".18446744073709551617", k.ID + ".2",
		strings.ToLower(k.ID) + ".1", ".1", "1", k.ID + "x.1", k.ID + ".1e0", k.ID + ".١",
	} {
		b.unknown("s", id, "there is no such handle in this session")
	}
	for _, session := range []string{"", "other", "S"} {
		b.unknown(session, k.ID+".1", "there is no such handle in this session")
		if n := b.Release(session, []string{k.ID, k.ID + ".1"}); n != 0 {
			t.Errorf("session %q released %d", session, n)
		}
	}
	b.invoke("s", k.ID+".1", "return 1")
	b.ReleaseSession("other")
	b.invoke("s", k.ID+".1", "return 1")
	b.ReleaseSession("s")
	b.unknown("s", k.ID+".1", "its session ended")
	b.unknown("other", k.ID+".1", "there is no such handle in this session")
}

func TestRetainedPlaces(t *testing.T) {
	c := retainConfig()
	c.Retained, c.RetainedPerIdentity = 2, 1
	b := insideBench(t, c)
	refused := func(identity string, typ protocol.Type) {
		t.Helper()
		r := retaining("s", 1)
		r.Identity = identity
		_, err := b.Execute(t.Context(), r)
		if !errors.Is(err, typ) || typ == protocol.Overloaded && protocol.AsError(err).RetryAfterMs == 0 {
			t.Errorf("%s: got %v, want %s", identity, err, typ)
		}
	}
	k := b.retain("s", 1)
	refused("me", protocol.SessionLimit)
	if out := b.run(script("return 1")); out.Error != nil {
		t.Errorf("got %v", out.Error)
	}
	r := retaining("s", 1) // retains nothing, and gives its place back
	r.Identity, r.Code = "you", "return 1"
	if out := b.run(r); out.Error != nil || out.Retained != nil {
		t.Errorf("got %+v", out)
	}
	r.Code = "wait"
	j := b.start("you", r)
	<-j.running
	refused("they", protocol.Overloaded)
	j.cancel(nil)
	<-j.done
	b.Release("s", []string{k.ID})
	b.quiet(0)
	b.retain("s", 1)
	if s := b.Stats().Totals; s.Unplaced != 1 || s.Overloaded != 1 {
		t.Errorf("totals %+v", s)
	}
}

func TestRetainedSwitchedOff(t *testing.T) {
	off := retainConfig()
	off.Retained, off.RetainedPerIdentity = 0, 0
	_, err := insideBench(t, off).Execute(t.Context(), retaining("s", 1))
	if e := protocol.AsError(err); e == nil || e.Type != protocol.InvalidParams || e.Field != "retain" {
		t.Errorf("got %v", err)
	}
}

func TestRetainedLimits(t *testing.T) {
	b := insideBench(t, retainConfig())
	r := retaining("s", 1)
	r.Limits = protocol.Limits{CPUMs: 111, HeapMiB: 77, ToolCalls: 3}
	out := b.run(r)
	i := lines("s", out.Retained.ID+".1", "limits")
	i.Limits = protocol.Limits{CPUMs: 222, ToolCalls: 1 << 40, WallMs: 1}
	out, err := b.Invoke(t.Context(), i)
	if err != nil {
		t.Fatal(err)
	}
	var got worker.Limits
	if err := json.Unmarshal(out.Value, &got); err != nil {
		t.Fatal(err)
	}
	most := b.config().MaxLimits
	if got.CPU != 222*time.Millisecond || got.HeapBytes != 77<<20 || got.ToolCalls != most.ToolCalls || got.Wall != time.Millisecond {
		t.Errorf("limits %+v", got)
	}
	if l := out.Stats.Limits; l.CPUMs != 222 || l.HeapMiB != 77 {
		t.Errorf("limits in the outcome: %+v", l)
	}
	i.Limits = protocol.Limits{HeapMiB: 1}
	if _, err := b.Invoke(t.Context(), i); protocol.AsError(err).Field != "limits.heapMiB" {
		t.Errorf("got %v", err)
	}
}

// TestRetainedSideBySide has as many invocations at once as there may be.
func TestRetainedSideBySide(t *testing.T) {
	b := insideBench(t, retainConfig())
	k := b.retain("s", 1)
	gate, asked := make(chan struct{}), make(chan struct{}, 100)
	var all sync.WaitGroup
	for n := range invocationsAtOnce {
		all.Go(func() {
			i := lines("s", k.ID+".1", "call gate")
			i.Host.Call = func(_ context.Context, c executor.ToolCall) (protocol.Value, error) {
				asked <- struct{}{}
				<-gate
				return protocol.Value(fmt.Sprintf("%q", c.Execution)), nil
			}
			i.Execution = fmt.Sprint("call ", n)
			out, err := b.Invoke(t.Context(), i)
			if err != nil || string(out.Value) != fmt.Sprintf("%q", i.Execution) {
				t.Errorf("got %+v, %v, want its own answer", out, err)
			}
		})
	}
	for range invocationsAtOnce {
		<-asked
	}
	_, err := b.Invoke(t.Context(), lines("s", k.ID+".1", "return 1"))
	if e := protocol.AsError(err); e == nil || e.Type != protocol.Overloaded || e.RetryAfterMs == 0 {
		t.Errorf("one more: %v", err)
	}
	if s := b.Stats(); s.Running != 1 || s.Retaining != 0 || s.Retained != 1 {
		t.Errorf("stats %+v", s)
	}
	live := 0
	for _, x := range b.Executions() {
		switch x.Phase {
		case Running:
			live++
			if x.Of != b.nameOf(1) {
				t.Errorf("invocation of %q", x.Of)
			}
		case Retained:
			if x.ID != b.nameOf(1) || x.Kept.Calls != invocationsAtOnce || x.Kept.Handles != 1 {
				t.Errorf("retained %+v", x)
			}
		}
	}
	if live != invocationsAtOnce {
		t.Errorf("%d invocations are listed", live)
	}
	close(gate)
	all.Wait()
	b.quiet(1)
}

// TestInvocationsLeaveRoom: others get in, one after the other, while a caller has invocations on every worker that overlap
// without end.
func TestInvocationsLeaveRoom(t *testing.T) {
	c := retainConfig()
	c.Workers, c.Queue, c.QueuePerIdentity = 2, 1, 1
	b := insideBench(t, c)
	ids := []string{b.retain("s", 1).ID, b.retain("s", 1).ID}
	b.quiet(2)
	var all sync.WaitGroup
	call := func(id string) (answer func()) { // begins one
		asked, gate := make(chan struct{}), make(chan struct{})
		i := lines("s", id+".1", "call gate")
		i.Host.Call = func(context.Context, executor.ToolCall) (protocol.Value, error) {
			close(asked)
			<-gate
			return protocol.Value("1"), nil
		}
		all.Go(func() {
			if out, err := b.Invoke(t.Context(), i); err != nil || string(out.Value) != "1" {
				t.Errorf("got %+v, %v", out, err)
			}
		})
		<-asked
		return func() { close(gate) }
	}
	under := []func(){call(ids[0])}
	one := b.start("you", script("wait"))
	one.isRunning(t)
	two := b.start("you", script("wait"))
	if place := two.isQueued(t); place != 1 {
		t.Errorf("place %d where an execution and an invocation run on 2 workers", place)
	}
	under = append(under, call(ids[1])) // which takes no room from what runs
	one.end()
	two.isRunning(t)
	three := b.start("they", script("return 3"))
	three.isQueued(t)
	if _, err := b.Execute(t.Context(), script("return 4")); !errors.Is(err, protocol.Overloaded) {
		t.Errorf("beyond the queue: %v", err)
	}
	for range 5 {
		for i, id := range ids {
			next := call(id)
			under[i]()
			under[i] = next
		}
	}
	two.end()
	if out := three.ended(t); string(out.Value) != "3" {
		t.Errorf("got %+v", out)
	}
	for range 5 {
		b.works()
	}
	if s := b.Stats(); s.Running != 2 || s.Queued != 0 {
		t.Errorf("stats %+v", s)
	}
	for _, answer := range under {
		answer()
	}
	all.Wait()
	b.quiet(2)
}
