package conformance

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/executord/executord/ipc/executor"
	"github.com/executord/executord/ipc/protocol"
)

// Factory makes a fresh executor over real workers: at least two, and room for sixty-four requests to wait. Run closes
// it.
type Factory func(t *testing.T) executor.Executor

// deadline bounds one case; a hang must name itself.
const deadline = 60 * time.Second

// Run holds the executors of one kind to the contract.
func Run(t *testing.T, fresh Factory) {
	shared := fresh(t)
	t.Cleanup(func() { closeIt(t, shared) })
	for _, group := range []struct {
		name string
		run  func(t *testing.T, e executor.Executor)
	}{
		{"values", values},
		{"forms", forms},
		{"endings", endings},
		{"refusals", refusals},
		{"tools", tools},
		{"network", network},
		{"console", console},
		{"limits", limits},
		{"cancel", cancellation},
		{"concurrency", concurrency},
		{"retained", retained},
	} {
		t.Run(group.name, func(t *testing.T) { group.run(t, shared) })
	}
	t.Run("close", func(t *testing.T) { closing(t, fresh) })
}

func closeIt(t *testing.T, e executor.Executor) {
	t.Helper()
	if err := e.Close(); err != nil {
		t.Errorf("cannot close the executor: %v", err)
	}
}

// program makes a request of code.
func program(code string, change ...func(*executor.Request)) executor.Request {
	r := executor.Request{Execute: protocol.Execute{Code: code}}
	for _, f := range change {
		f(&r)
	}
	return r
}

func within(l protocol.Limits) func(*executor.Request) {
	return func(r *executor.Request) { r.Limits = l }
}

func as(f protocol.Form) func(*executor.Request) {
	return func(r *executor.Request) { r.Form = f }
}

func input(v string) func(*executor.Request) {
	return func(r *executor.Request) { r.Input = protocol.Value(v) }
}

func using(p ...executor.Provider) func(*executor.Request) {
	return func(r *executor.Request) { r.Provide(p...) }
}

// run executes r, which must run.
func run(t *testing.T, e executor.Executor, r executor.Request) *protocol.Outcome {
	t.Helper()
	ctx, cancel := context.WithTimeoutCause(t.Context(), deadline, errors.New("the case takes too long"))
	defer cancel()
	o, err := e.Execute(ctx, r)
	if err != nil {
		t.Fatalf("the program was refused: %v", err)
	}
	if o.Logs == nil {
		t.Error("the outcome has nil logs")
	}
	return o
}

// wantValue executes r and asks for a value.
func wantValue(t *testing.T, e executor.Executor, r executor.Request, want string) {
	t.Helper()
	o := run(t, e, r)
	if o.Status != protocol.StatusOK {
		t.Fatalf("ended with %v, want %s", o.Err(), want)
	}
	wantSame(t, "value", o.Value, protocol.Value(want))
}

// wantEnding executes r and asks for an error of that type.
func wantEnding(t *testing.T, e executor.Executor, r executor.Request, want protocol.Type) *protocol.Error {
	t.Helper()
	o := run(t, e, r)
	if !errors.Is(o.Err(), want) {
		t.Fatalf("ended with value %.80s and error %v, want %s", o.Value, o.Err(), want)
	}
	if o.Value != nil || o.Status != protocol.StatusError {
		t.Errorf("status %q and value %s beside an error", o.Status, o.Value)
	}
	return o.Error
}

// wantSame compares two encodings of a value: numbers and strings may be written in several ways, and stacks differ.
func wantSame(t *testing.T, what string, got, want protocol.Value) {
	t.Helper()
	if a, b := canonical(t, got), canonical(t, want); a != b {
		t.Errorf("%s %s, want %s", what, got, want)
	}
}

func canonical(t *testing.T, v protocol.Value) string {
	t.Helper()
	graph, err := protocol.Decode(v, protocol.ValueBounds)
	if err != nil {
		t.Errorf("%s is not an encoded value: %v", v, err)
		return ""
	}
	dropStacks(graph, map[any]bool{})
	text, err := protocol.Encode(graph)
	if err != nil {
		t.Errorf("cannot encode %s again: %v", v, err)
	}
	return string(text)
}

// dropStacks removes the stack of every error in a decoded value.
func dropStacks(v any, seen map[any]bool) {
	members := func(list []protocol.Member) {
		for _, m := range list {
			dropStacks(m.Value, seen)
		}
	}
	items := func(list []any) {
		for _, item := range list {
			dropStacks(item, seen)
		}
	}
	switch v.(type) {
	case *protocol.Object, *protocol.Array, *protocol.Map, *protocol.Set, *protocol.ErrorValue:
		if seen[v] {
			return
		}
		seen[v] = true
	}
	switch v := v.(type) {
	case *protocol.Object:
		members(v.Members)
	case *protocol.Array:
		items(v.Items)
	case *protocol.Set:
		items(v.Items)
	case *protocol.Map:
		for _, e := range v.Entries {
			items([]any{e.Key, e.Value})
		}
	case *protocol.ErrorValue:
		v.Stack = ""
		members(v.Props)
	}
}
