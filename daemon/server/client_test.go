package server

import (
	"context"
	"errors"
	"fmt"
	"net"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/executord/executord/ipc/client"
	"github.com/executord/executord/ipc/executor"
	"github.com/executord/executord/ipc/protocol"
)

// The tests of this file have the Go client at the other end.

func (r *running) dial(t *testing.T, tcp bool, opts ...client.Option) *client.Client {
	t.Helper()
	address := "unix:" + r.unix
	if tcp {
		address = "tcp://" + r.tcp
	}
	c, err := client.Dial(t.Context(), address, opts...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := c.Close(); err != nil {
			t.Error(err)
		}
	})
	return c
}

func code(text string) executor.Request {
	return executor.Request{Execute: protocol.Execute{Code: text}}
}

// toolUser is a program that calls tools.echo n times at once and returns the last answer.
func toolUser(n int) func(context.Context, executor.Request) (*protocol.Outcome, error) {
	return func(ctx context.Context, r executor.Request) (*protocol.Outcome, error) {
		var wg sync.WaitGroup
		var failure atomic.Pointer[error]
		var last atomic.Value
		for i := range n {
			wg.Go(func() {
				v, err := r.Ask(ctx, executor.ToolCall{
					Execution: r.Execution, Call: uint64(i + 1), Provider: "tools", Path: []string{"echo"},
					Args: protocol.Value(fmt.Sprintf(`[%d]`, i)),
				})
				if err != nil {
					failure.Store(&err)
					return
				}
				last.Store(v)
			})
		}
		wg.Wait()
		if err := failure.Load(); err != nil {
			return failed(protocol.Errorf(protocol.Exception, "%s", *err)), nil
		}
		v, _ := last.Load().(protocol.Value)
		return returned(v), nil
	}
}

var echo = executor.Provider{Name: "tools", Tools: map[string]executor.Tool{
	"echo": func(_ context.Context, args []protocol.Value) (protocol.Value, error) { return args[0], nil },
}}

func TestClientExecutes(t *testing.T) {
	exec := script{
		"full": func(context.Context, executor.Request) (*protocol.Outcome, error) {
			return nil, &protocol.Error{Type: protocol.Overloaded, Message: "full", RetryAfterMs: 20}
		},
		"throw": func(context.Context, executor.Request) (*protocol.Outcome, error) {
			return failed(&protocol.Error{Type: protocol.Exception, Name: "TypeError", Message: "no", Position: &protocol.Position{File: "main.js", Line: 2, Column: 3}}), nil
		},
		"tools": toolUser(1),
	}
	r := serve(t, exec, Config{Version: "9"})
	for _, tcp := range []bool{false, true} {
		t.Run(fmt.Sprintf("tcp=%t", tcp), func(t *testing.T) {
			c := r.dial(t, tcp)
			if c.Server().Server.Version != "9" {
				t.Errorf("the server told %+v", c.Server())
			}
			q := code("x")
			q.Input = protocol.Value(`{"@map":[[1,2]]}`)
			o, err := c.Execute(t.Context(), q)
			if err != nil || string(o.Value) != `{"@map":[[1,2]]}` {
				t.Errorf("value: %+v, %v", o, err)
			}
			o, err = c.Execute(t.Context(), code("throw"))
			if err != nil || !errors.Is(o.Err(), protocol.Exception) || o.Error.Position.Line != 2 {
				t.Errorf("exception: %+v, %v", o, err)
			}
			_, err = c.Execute(t.Context(), code("full"))
			var e *protocol.Error
			if !errors.Is(err, protocol.Overloaded) || !errors.As(err, &e) || e.RetryAfter() != 20*time.Millisecond {
				t.Errorf("overloaded: %v", err)
			}
			_, err = c.Execute(t.Context(), code(""))
			if !errors.Is(err, protocol.InvalidCode) {
				t.Errorf("no code: %v", err)
			}
			q = code("tools")
			q.Provide(echo)
			if o, err := c.Execute(t.Context(), q); err != nil || string(o.Value) != "0" {
				t.Errorf("tools: %+v, %v", o, err)
			}
		})
	}
}

func TestClientRunsManyToolsAtOnce(t *testing.T) {
	r := serve(t, script{"tools": toolUser(500)}, Config{})
	c := r.dial(t, false, client.WithMaxTools(8))
	var now, most atomic.Int64
	slow := executor.Provider{Name: "tools", Tools: map[string]executor.Tool{
		"echo": func(_ context.Context, args []protocol.Value) (protocol.Value, error) {
			for n := now.Add(1); ; {
				m := most.Load()
				if n <= m || most.CompareAndSwap(m, n) {
					break
				}
			}
			defer now.Add(-1)
			return args[0], nil
		},
	}}
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			q := code("tools")
			q.Provide(slow)
			if o, err := c.Execute(t.Context(), q); err != nil || o.Err() != nil {
				t.Errorf("%+v, %v", o, err)
			}
		})
	}
	wg.Wait()
	if most.Load() > 8 {
		t.Errorf("%d tools ran at once", most.Load())
	}
}

func TestClientToolFailures(t *testing.T) {
	got := make(chan error, 1)
	exec := script{"tools": func(ctx context.Context, r executor.Request) (*protocol.Outcome, error) {
		_, err := r.Ask(ctx, executor.ToolCall{Call: 1, Provider: "p", Path: []string{"t"}})
		got <- err
		return returned(protocol.Value("1")), nil
	}}
	r := serve(t, exec, Config{})
	c := r.dial(t, false, client.WithMaxMessageBytes(1<<20))
	cases := []struct {
		name string
		call func(context.Context, executor.ToolCall) (protocol.Value, error)
		want string
	}{
		{"thrown", func(context.Context, executor.ToolCall) (protocol.Value, error) {
			return nil, &protocol.ThrownError{Name: "RangeError", Message: "no", Code: "E"}
		}, "RangeError: no"},
		{"plain", func(context.Context, executor.ToolCall) (protocol.Value, error) { return nil, errors.New("odd") }, "odd"},
		{"panic", func(context.Context, executor.ToolCall) (protocol.Value, error) { panic("secret") }, "the tool failed"},
		{"no JSON", func(context.Context, executor.ToolCall) (protocol.Value, error) { return protocol.Value(`{"a":`), nil }, "TypeError: the tool's result is not an encoded value"},
		{"too large", func(context.Context, executor.ToolCall) (protocol.Value, error) {
			return protocol.Value(`"` + strings.Repeat("x", 2<<20) + `"`), nil
		}, "RangeError: the tool's result is too large"},
		{"no tools at all", nil, "the host has no tools"},
	}
	for _, tc := range cases {
		t.Run(tc.name, func(t *testing.T) {
			q := code("tools")
			q.Providers = []protocol.Provider{{Name: "p", Tools: protocol.Tools{All: true}}}
			q.Call = tc.call
			if o, err := c.Execute(t.Context(), q); err != nil || o.Err() != nil {
				t.Fatalf("%+v, %v", o, err)
			}
			if err := <-got; err == nil || err.Error() != tc.want {
				t.Errorf("the program saw %v, want %s", err, tc.want)
			}
		})
	}
}

func TestClientCancels(t *testing.T) {
	wait, begun := started(untilCancelled)
	r := serve(t, script{"wait": wait}, Config{})
	c := r.dial(t, false)
	ctx, cancel := context.WithCancelCause(t.Context())
	go func() { <-begun; cancel(errors.New("enough")) }()
	o, err := c.Execute(ctx, code("wait"))
	if err != nil || !errors.Is(o.Err(), protocol.Cancelled) || o.Error.Message != "cancelled by the caller" {
		t.Errorf("%+v, %v", o, err)
	}
	o, err = c.Execute(ctx, code("wait")) // before it began
	if err != nil || !errors.Is(o.Err(), protocol.Cancelled) {
		t.Errorf("%+v, %v", o, err)
	}
	o, err = c.Execute(t.Context(), code("x")) // the connection goes on
	if err != nil || o.Err() != nil {
		t.Errorf("%+v, %v", o, err)
	}
}

func TestClientGivesUpOnAServiceThatDoesNotCancel(t *testing.T) {
	release := make(chan struct{})
	stuck, begun := started(func(context.Context, executor.Request) (*protocol.Outcome, error) {
		<-release
		return returned(protocol.Value("1")), nil
	})
	r := serve(t, script{"stuck": stuck}, Config{})
	c := r.dial(t, false, client.WithCancelGrace(20*time.Millisecond))
	ctx, cancel := context.WithCancel(t.Context())
	go func() { <-begun; cancel() }()
	o, err := c.Execute(ctx, code("stuck"))
	if err != nil || !errors.Is(o.Err(), protocol.Cancelled) {
		t.Errorf("%+v, %v", o, err)
	}
	close(release)
}

func TestClientCloseCancels(t *testing.T) {
	wait, begun := started(untilCancelled)
	r := serve(t, script{"wait": wait}, Config{})
	c := r.dial(t, false)
	ended := make(chan error, 3)
	for range 3 {
		go func() {
			o, err := c.Execute(t.Context(), code("wait"))
			if err == nil {
				err = o.Err()
			}
			ended <- err
		}()
		<-begun
	}
	if err := c.Close(); err != nil {
		t.Error(err)
	}
	for range 3 {
		if err := <-ended; !errors.Is(err, protocol.Cancelled) {
			t.Error(err)
		}
	}
	if _, err := c.Execute(t.Context(), code("x")); !errors.Is(err, protocol.Draining) {
		t.Errorf("after Close: %v", err)
	}
}

func TestClientHearsOfALostConnection(t *testing.T) {
	wait, begun := started(untilCancelled)
	r := serve(t, script{"wait": wait}, Config{})
	c := r.dial(t, false)
	ended := make(chan error, 1)
	go func() {
		_, err := c.Execute(t.Context(), code("wait"))
		ended <- err
	}()
	<-begun
	r.abortSessions()
	err := <-ended
	var e *protocol.Error
	if !errors.Is(err, protocol.Internal) || !errors.As(err, &e) || !e.Retryable() || !strings.Contains(e.Message, "connection lost") {
		t.Errorf("got %v", err)
	}
	if o, err := c.Execute(t.Context(), code("x")); err != nil || o.Err() != nil { // on another connection
		t.Errorf("afterwards: %+v, %v", o, err)
	}
}

func TestClientCallbacks(t *testing.T) {
	exec := script{"talk": func(_ context.Context, r executor.Request) (*protocol.Outcome, error) {
		r.OnState(protocol.State{State: protocol.StateRunning})
		for i := range 100 {
			r.OnLog(protocol.Log{Level: protocol.LevelLog, Time: float64(i), Text: fmt.Sprint(i)})
		}
		return returned(protocol.Value("1")), nil
	}}
	r := serve(t, exec, Config{})
	c := r.dial(t, false)
	q := code("talk")
	q.Logs.Stream = true
	var heard []string
	q.OnState = func(s protocol.State) { heard = append(heard, s.State) }
	q.OnLog = func(l protocol.Log) { heard = append(heard, l.Text) }
	if _, err := c.Execute(t.Context(), q); err != nil {
		t.Fatal(err)
	}
	if len(heard) != 101 || heard[0] != "running" || heard[100] != "99" {
		t.Errorf("heard %v", heard)
	}
}

func TestClientRefusals(t *testing.T) {
	r := serve(t, script{}, Config{MaxSessions: 1, Policy: Policy{Tokens: []Token{{"a", "0123456789abcdef"}}}})
	if _, err := client.Dial(t.Context(), "tcp://"+r.tcp); !errors.Is(err, protocol.Unauthorized) {
		t.Errorf("without a token: %v", err)
	}
	_ = r.dial(t, true, client.WithToken("0123456789abcdef"))
	if _, err := client.Dial(t.Context(), "unix:"+r.unix); !errors.Is(err, protocol.SessionLimit) {
		t.Errorf("one too many: %v", err)
	}
	_, err := client.Dial(t.Context(), "unix:"+filepath.Join(t.TempDir(), "none"))
	var op *net.OpError
	if !errors.As(err, &op) {
		t.Errorf("nobody listens: %v", err)
	}
}

// Two clients, many executions each, with tools; nothing gets mixed up.
func TestManyAtOnce(t *testing.T) {
	r := serve(t, script{"tools": toolUser(3)}, Config{PingInterval: 500 * time.Millisecond})
	var wg sync.WaitGroup
	for i := range 4 {
		c := r.dial(t, i%2 == 0, client.WithPingInterval(500*time.Millisecond))
		for j := range 16 {
			wg.Go(func() {
				for k := range 10 {
					want := fmt.Sprintf(`"%d %d %d"`, i, j, k)
					q := code("x")
					q.Input = protocol.Value(want)
					if k%2 == 0 {
						q = code("tools")
						q.Provide(executor.Provider{Name: "tools", Tools: map[string]executor.Tool{
							"echo": func(context.Context, []protocol.Value) (protocol.Value, error) { return protocol.Value(want), nil },
						}})
					}
					o, err := c.Execute(t.Context(), q)
					if err != nil || string(o.Value) != want {
						t.Errorf("%+v, %v, want %s", o, err, want)
					}
				}
			})
		}
	}
	wg.Wait()
}

// TestClientCallsHandles has handles of the Go client called at a real service, and collected there.
func TestClientCallsHandles(t *testing.T) {
	const many = 10_000
	wait, begun := started(untilCancelled)
	keeps := func(o *protocol.Outcome, handles int) (*protocol.Outcome, error) {
		o.Retained = &protocol.Retained{ID: "k", Handles: uint64(handles), IdleMs: 60_000, TTLMs: 60_000}
		return o, nil
	}
	exec := &keeper{
		script: script{"keep": func(context.Context, executor.Request) (*protocol.Outcome, error) {
			return keeps(returned(protocol.Value(`[{"@handle":"k.1"},{"@handle":"k.2"},{"@handle":"k.3"}]`)), 3)
		}},
		handles: map[string]func(context.Context, executor.Invocation) (*protocol.Outcome, error){
			"k.1": func(ctx context.Context, i executor.Invocation) (*protocol.Outcome, error) {
				o, _ := asExecution(callsTwice)(ctx, i)
				return keeps(o, 0)
			},
			"k.2": asExecution(wait),
			"k.3": func(ctx context.Context, i executor.Invocation) (*protocol.Outcome, error) {
				o, _ := sayArgs(ctx, i)
				return keeps(o, len(i.Args))
			},
		},
	}
	r := serve(t, exec, Config{})
	c := r.dial(t, true)
	q := code("keep")
	q.Retain = &protocol.Retain{}
	o, err := c.Execute(t.Context(), q)
	if err != nil {
		t.Fatal(err)
	}
	set := executor.NewHandles(c, executor.Request{Call: func(_ context.Context, call executor.ToolCall) (protocol.Value, error) {
		return protocol.Marshal(call.Call * 10)
	}})
	hs, err := set.In(o.Value)
	if err != nil {
		t.Fatal(err)
	}
	args := make([]any, many)
	for i := range args {
		args[i] = protocol.Handle{ID: fmt.Sprint("k.", i+10)}
	}
	v, err := hs[2].Call(t.Context(), args...)
	if err != nil {
		t.Fatal(err)
	}
	if made, err := set.In(v); err != nil || len(made) != many {
		t.Fatalf("%d handles, %v", len(made), err)
	}
	for end := time.Now().Add(30 * time.Second); ; runtime.GC() {
		exec.mu.Lock()
		n := len(exec.released)
		exec.mu.Unlock()
		if n == many {
			break
		}
		if time.Now().After(end) {
			t.Fatalf("%d of %d handles were released", n, many)
		}
	}
	o, err = hs[0].Invoke(t.Context(), protocol.HandleInvoke{})
	if err != nil || string(o.Value) != "[10,20]" {
		t.Errorf("%+v, %v", o, err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	go func() { <-begun; cancel() }()
	if _, err := hs[1].Call(ctx); !errors.Is(err, protocol.Cancelled) {
		t.Errorf("cancelled with %v", err)
	}
	if _, err := hs[0].Call(t.Context()); !errors.Is(err, protocol.HandleUnknown) {
		t.Errorf("after what ended it: %v", err)
	}
}
