package executor_test

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

// keeper is a Retainer whose handles answer as answer says.
type keeper struct {
	executor.Executor
	answer func(i executor.Invocation) (*protocol.Outcome, error)

	mu       sync.Mutex
	invoked  []executor.Invocation
	released []string
	releases int
}

func (k *keeper) Invoke(_ context.Context, i executor.Invocation) (*protocol.Outcome, error) {
	k.mu.Lock()
	k.invoked = append(k.invoked, i)
	k.mu.Unlock()
	return k.answer(i)
}

func (k *keeper) Release(session string, handles []string) int {
	k.mu.Lock()
	defer k.mu.Unlock()
	if session != "s" || len(handles) > protocol.MaxReleased {
		panic(fmt.Sprintf("%d handles of session %q are released", len(handles), session))
	}
	k.releases++
	k.released = append(k.released, handles...)
	return len(handles)
}

func (k *keeper) ReleaseSession(string) {}

func (k *keeper) gone() []string {
	k.mu.Lock()
	defer k.mu.Unlock()
	return slices.Sorted(slices.Values(k.released))
}

func value(text string) (*protocol.Outcome, error) {
	return &protocol.Outcome{Status: protocol.StatusOK, Value: protocol.Value(text)}, nil
}

var host = executor.Request{Session: "s", Identity: "i"}

func TestHandleCalls(t *testing.T) {
	k := &keeper{answer: func(i executor.Invocation) (*protocol.Outcome, error) {
		switch i.Handle {
		case "k.2":
			return &protocol.Outcome{Status: protocol.StatusError, Error: protocol.Errorf(protocol.Exception, "thrown")}, nil
		case "k.3":
			return nil, protocol.Errorf(protocol.HandleUnknown, "gone")
		}
		return value(`[1,{"@date":5}]`)
	}}
	set := executor.NewHandles(k, host)
	hs, err := set.In(protocol.Value(`{"a":{"@handle":"k.1"},"b":[{"@handle":"k.2"},{"@handle":["k.3","iterator"]}]}`))
	if err != nil || len(hs) != 3 || hs[2].Handle() != (protocol.Handle{ID: "k.3", Kind: protocol.HandleIterator}) {
		t.Fatalf("%v, %v", hs, err)
	}
	v, err := hs[0].Call(t.Context(), 1, map[string]any{"f": hs[1]}, nil)
	if err != nil || string(v) != `[1,{"@date":5}]` {
		t.Errorf("%s, %v", v, err)
	}
	i := k.invoked[0]
	args := ""
	for _, a := range i.Args {
		args += string(a) + " "
	}
	if i.Handle != "k.1" || i.Method != "" || args != `1 {"f":{"@handle":"k.2"}} null ` || i.Host.Session != "s" || i.Host.Identity != "i" {
		t.Errorf("asked for %+v with %s", i, args)
	}
	var pair struct{}
	if err := hs[0].CallInto(t.Context(), &pair); err == nil {
		t.Error("an array fits a struct")
	}
	var list []any
	if err := hs[0].CallInto(t.Context(), &list); err != nil || len(list) != 2 || list[1] != time.UnixMilli(5).UTC() {
		t.Errorf("%v, %v", list, err)
	}
	var fault *protocol.Error
	if _, err := hs[1].Call(t.Context()); !errors.As(err, &fault) || fault.Type != protocol.Exception || fault.Message != "thrown" {
		t.Errorf("%v", err)
	}
	if _, err := hs[2].Call(t.Context()); !errors.Is(err, protocol.HandleUnknown) {
		t.Errorf("%v", err)
	}
	before := len(k.invoked)
	if _, err := hs[0].Call(t.Context(), 1, func() {}); !errors.Is(err, protocol.InvalidParams) || !strings.Contains(err.Error(), "argument 2") {
		t.Errorf("%v", err)
	}
	if len(k.invoked) != before {
		t.Error("a call without its arguments was made")
	}
	if _, err := set.In(protocol.Value(`{`)); err == nil {
		t.Error("half a value has handles")
	}
}

// counter is an iterator over so many numbers, which returns "end" after them.
func counter(n int) func(executor.Invocation) (*protocol.Outcome, error) {
	next, over := 0, false
	return func(i executor.Invocation) (*protocol.Outcome, error) {
		switch {
		case i.Method == protocol.HandleReturn:
			over = true
			return value(`{"done":true,"value":{"@undefined":true}}`)
		case over:
			return value(`{"done":true}`)
		case next == n:
			return value(`{"done":true,"value":"end"}`)
		}
		next++
		return value(fmt.Sprintf(`{"done":false,"value":[%d,{"@ref":"/value"}]}`, next-1))
	}
}

func TestHandleIterates(t *testing.T) {
	h := func(n int) (*keeper, *executor.Handle) {
		k := &keeper{answer: counter(n)}
		return k, executor.NewHandles(k, host).Of(protocol.Handle{ID: "k.1", Kind: protocol.HandleIterator})
	}
	methods := func(k *keeper) (list string) {
		for _, i := range k.invoked {
			list += string(i.Method) + " "
		}
		return list
	}
	t.Run("to its end", func(t *testing.T) {
		k, h := h(2)
		got := ""
		for v, err := range h.All(t.Context()) {
			if err != nil {
				t.Fatal(err)
			}
			got += string(v) + " "
		}
		if want := `[0,{"@ref":""}] [1,{"@ref":""}] `; got != want || methods(k) != "next next next " {
			t.Errorf("got %s by %s", got, methods(k))
		}
	})
	t.Run("left early", func(t *testing.T) {
		k, h := h(5)
		for v := range h.All(t.Context()) {
			if string(v)[1] == '1' {
				break
			}
		}
		if got := methods(k); got != "next next return " {
			t.Errorf("called %s", got)
		}
	})
	t.Run("by a panic", func(t *testing.T) {
		k, h := h(5)
		func() {
			defer func() { _ = recover() }()
			for range h.All(t.Context()) {
				panic("enough")
			}
		}()
		if got := methods(k); got != "next return " {
			t.Errorf("called %s", got)
		}
	})
	t.Run("to an error", func(t *testing.T) {
		k, h := h(5)
		k.answer = func(executor.Invocation) (*protocol.Outcome, error) {
			return nil, protocol.Errorf(protocol.HandleUnknown, "gone")
		}
		var errs []error
		for v, err := range h.All(t.Context()) {
			if errs = append(errs, err); v != nil {
				t.Errorf("a value %s with an error", v)
			}
		}
		if len(errs) != 1 || !errors.Is(errs[0], protocol.HandleUnknown) || methods(k) != "next " {
			t.Errorf("got %v by %s", errs, methods(k))
		}
	})
	t.Run("by hand", func(t *testing.T) {
		k, h := h(1)
		if v, done, err := h.Next(t.Context()); string(v) != `[0,{"@ref":""}]` || done || err != nil {
			t.Errorf("%s, %v, %v", v, done, err)
		}
		if v, done, err := h.Next(t.Context()); string(v) != `"end"` || !done || err != nil {
			t.Errorf("%s, %v, %v", v, done, err)
		}
		if err := h.Return(t.Context()); err != nil {
			t.Error(err)
		}
		if v, done, err := h.Next(t.Context()); string(v) != string(protocol.UndefinedValue) || !done || err != nil {
			t.Errorf("%s, %v, %v", v, done, err)
		}
		k.answer = func(executor.Invocation) (*protocol.Outcome, error) { return value(`5`) }
		if _, _, err := h.Next(t.Context()); err == nil {
			t.Error("5 is the result of an iterator")
		}
	})
}

func TestHandleRelease(t *testing.T) {
	k := &keeper{}
	set := executor.NewHandles(k, host)
	a, b := set.Of(protocol.Handle{ID: "k.1"}), set.Of(protocol.Handle{ID: "k.2"})
	if set.Of(protocol.Handle{ID: "k.1"}) != a {
		t.Error("one handle is two")
	}
	a.Release()
	if got := k.gone(); !slices.Equal(got, []string{"k.1"}) {
		t.Errorf("released %v", got)
	}
	set.Close()
	if got := k.gone(); !slices.Equal(got, []string{"k.1", "k.2"}) {
		t.Errorf("released %v", got)
	}
	runtime.KeepAlive(b)
	set.Close()
}

// TestHandlesAreCollected: what nobody refers to is released, once and by many at a time, and nothing is left of it here.
func TestHandlesAreCollected(t *testing.T) {
	const many = 10_000
	k := &keeper{}
	set := executor.NewHandles(k, host)
	kept := set.Of(protocol.Handle{ID: "kept"})
	for i := range many {
		h := set.Of(protocol.Handle{ID: fmt.Sprint("k.", i)})
		if i%100 == 0 {
			h.Release()
		}
	}
	before := runtime.NumGoroutine()
	for end := time.Now().Add(20 * time.Second); len(k.gone()) < many; runtime.GC() {
		if time.Now().After(end) {
			t.Fatalf("only %d of %d handles were released", len(k.gone()), many)
		}
	}
	got := k.gone()
	if n := len(slices.Compact(slices.Clone(got))); n != many || len(got) != many || slices.Contains(got, "kept") {
		t.Errorf("%d handles were released by %d ids", n, len(got))
	}
	if k.releases > many/2 {
		t.Errorf("%d handles were released in %d messages", many, k.releases)
	}
	for end := time.Now().Add(20 * time.Second); runtime.NumGoroutine() > before; runtime.Gosched() {
		if time.Now().After(end) {
			t.Fatalf("%d goroutines, %d before", runtime.NumGoroutine(), before)
		}
	}
	set.Close()
	if got := k.gone(); len(got) != many+1 {
		t.Errorf("%d ids were released in the end", len(got))
	}
	runtime.KeepAlive(kept)
}
