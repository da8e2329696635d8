package conformance

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/executord/executord/ipc/executor"
	"github.com/executord/executord/ipc/protocol"
)

// onRunning calls f when the program runs.
func onRunning(f func()) func(*executor.Request) {
	return func(r *executor.Request) {
		r.OnState = func(s protocol.State) {
			if s.State == protocol.StateRunning {
				f()
			}
		}
	}
}

func cancellation(t *testing.T, e executor.Executor) {
	for _, tc := range []struct{ name, code string }{
		{"in a loop", "for (;;);"},
		{"in a timer", "await new Promise(r => setTimeout(r, 60000))"},
		{"in a tool call", "await tools.wait()"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			began := time.Now()
			o, err := e.Execute(ctx, program(tc.code, using(waiting), onRunning(cancel)))
			if err != nil || !errors.Is(o.Err(), protocol.Cancelled) {
				t.Fatalf("%+v, %v", o, err)
			}
			if took := time.Since(began); took > 10*time.Second {
				t.Errorf("cancelling took %v", took)
			}
		})
	}
	t.Run("before it began", func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		o, err := e.Execute(ctx, program("1"))
		if err != nil || !errors.Is(o.Err(), protocol.Cancelled) {
			t.Errorf("%+v, %v", o, err)
		}
	})
	t.Run("after it ended", func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		o, err := e.Execute(ctx, program("1"))
		cancel()
		if err != nil || o.Err() != nil {
			t.Errorf("%+v, %v", o, err)
		}
	})
	t.Run("deadline of the context", func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
		defer cancel()
		o, err := e.Execute(ctx, program("for (;;);"))
		if err != nil || !errors.Is(o.Err(), protocol.Cancelled) {
			t.Errorf("%+v, %v", o, err)
		}
	})
	wantValue(t, e, program("1"), "1")
}

// concurrency runs many programs at once, more than there are workers, and asks that each gets its own answers.
func concurrency(t *testing.T, e executor.Executor) {
	var wg sync.WaitGroup
	for i := range 12 {
		wg.Go(func() {
			for j := range 5 {
				tag := fmt.Sprintf("%d.%d", i, j)
				mine := executor.Provider{Name: "tools", Tools: map[string]executor.Tool{
					"tag": func(context.Context, []protocol.Value) (protocol.Value, error) { return protocol.Marshal(tag) },
				}}
				o, err := e.Execute(t.Context(), program("console.log(input); (input) => tools.tag().then(t => [t, input])",
					func(r *executor.Request) {
						r.Code = "async (input) => { console.log(input); return [await tools.tag(), input] }"
					},
					input(`"`+tag+`"`), using(mine)))
				switch {
				case err != nil:
					t.Errorf("%s: %v", tag, err)
				case string(o.Value) != fmt.Sprintf(`["%s","%s"]`, tag, tag):
					t.Errorf("%s: got %s, %v", tag, o.Value, o.Err())
				case len(o.Logs) != 1 || o.Logs[0].Text != tag:
					t.Errorf("%s: lines %+v", tag, o.Logs)
				}
			}
		})
	}
	wg.Wait()
}

func closing(t *testing.T, fresh Factory) {
	e := fresh(t)
	running, ended := make(chan struct{}), make(chan error, 1)
	go func() {
		o, err := e.Execute(t.Context(), program("for (;;);", onRunning(func() { close(running) })))
		if err == nil {
			err = o.Err()
		}
		ended <- err
	}()
	<-running
	closeIt(t, e)
	if err := <-ended; !errors.Is(err, protocol.Cancelled) {
		t.Errorf("what ran ended with %v", err)
	}
	if o, err := e.Execute(t.Context(), program("1")); o != nil || !errors.Is(err, protocol.Draining) {
		t.Errorf("after Close: %+v, %v", o, err)
	}
	closeIt(t, e) // again
}
