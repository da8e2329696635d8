package client

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/executord/executord/ipc/client/channel"
	"github.com/executord/executord/ipc/executor"
	"github.com/executord/executord/ipc/protocol"
)

// The services of these tests are scripts that misbehave as no real one does. What the client does with a real one is
// tested beside the server.

// serve runs a service whose sessions are f. It answers session.open itself.
func serve(t *testing.T, f func(c *channel.Conn)) (address string) {
	t.Helper()
	var sessions sync.WaitGroup
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		sessions.Add(1)
		defer sessions.Done()
		c, err := channel.Accept(w, r, protocol.Subprotocol, channel.Config{}, func(http.ResponseWriter, int, error) {})
		if err != nil {
			return
		}
		defer func() { c.Abort("the script is over"); <-c.Done() }()
		m := receive(c)
		send(c, fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"result":{"session":"s","protocol":"1","server":{"name":"script"}}}`, m.ID))
		f(c)
	}))
	t.Cleanup(func() { srv.Close(); sessions.Wait() })
	return "tcp://" + srv.Listener.Addr().String()
}

// receive returns the next message; a zero one at the end.
func receive(c *channel.Conn) protocol.Message {
	text, err := c.Receive()
	if err != nil {
		return protocol.Message{}
	}
	m, _ := protocol.ParseMessage(text, protocol.ValueBounds)
	return m
}

func untilEnd(c *channel.Conn) {
	for {
		if _, err := c.Receive(); err != nil {
			return
		}
	}
}

func send(c *channel.Conn, text string) { _ = c.Send(context.Background(), []byte(text)) }

func dial(t *testing.T, address string, opts ...Option) *Client {
	t.Helper()
	c, err := Dial(t.Context(), address, opts...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	return c
}

func code(text string) executor.Request {
	return executor.Request{Execute: protocol.Execute{Code: text}}
}

// result answers an execute request with 1.
func result(c *channel.Conn, m protocol.Message) {
	send(c, fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"result":{"status":"ok","value":1,"logs":[],"stats":{}}}`, m.ID))
}

func executionOf(t *testing.T, m protocol.Message) string {
	t.Helper()
	p, err := protocol.DecodeExecute(m.Params, protocol.ValueBounds)
	if err != nil {
		t.Error(err)
		return ""
	}
	return p.Execution
}

// None of these reaches an execution, and none disturbs the connection.
func TestMessagesThatNobodyExpects(t *testing.T) {
	address := serve(t, func(c *channel.Conn) {
		m := receive(c)
		id := executionOf(t, m)
		for _, text := range []string{
			`{"jsonrpc":"2.0","id":999,"result":{}}`,
			`{"jsonrpc":"2.0","id":"x","error":{"code":1,"message":"x"}}`,
			`{"jsonrpc":"2.0","id":null,"error":{"code":-32700,"message":"x"}}`,
			`{"jsonrpc":"2.0","method":"execution.log","params":{"execution":"other","level":"log","time":1,"text":"x"}}`,
			`{"jsonrpc":"2.0","method":"execution.log","params":[1]}`,
			`{"jsonrpc":"2.0","method":"execution.state","params":{"execution":5}}`,
			`{"jsonrpc":"2.0","method":"tool.cancel","params":{"execution":"` + id + `","call":77}}`,
			`{"jsonrpc":"2.0","method":"tool.cancel","params":{}}`,
			`{"jsonrpc":"2.0","method":"tool.call","params":{}}`,
			`{"jsonrpc":"2.0","method":"session.draining","params":{"deadlineMs":5}}`,
			`{"jsonrpc":"2.0","method":"no.such"}`,
		} {
			send(c, text)
		}
		result(c, m)
		untilEnd(c)
	})
	c := dial(t, address)
	q := code("x")
	q.OnLog = func(l protocol.Log) { t.Errorf("heard %q", l.Text) }
	q.OnState = func(s protocol.State) { t.Errorf("heard %+v", s) }
	if o, err := c.Execute(t.Context(), q); err != nil || string(o.Value) != "1" {
		t.Errorf("%+v, %v", o, err)
	}
}

// Requests that the client cannot serve are answered by errors.
func TestRequestsThatAreRefused(t *testing.T) {
	answers := make(chan protocol.Message, 10)
	address := serve(t, func(c *channel.Conn) {
		m := receive(c)
		for i, request := range []string{
			`"method":"no.such","params":{}`,
			`"method":"fetch","params":{}`,
			`"method":"fetch","params":{"execution":"other","call":1,"request":{"method":"GET","url":"http://x/"}}`,
			`"method":"tool.call","params":{"execution":"other","call":1,"provider":"p","path":["t"],"args":[]}`,
			`"method":"tool.call","params":{"execution":"x"}`,
			`"method":"tool.call","params":[]`,
		} {
			send(c, fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,%s}`, i, request))
			answers <- receive(c)
		}
		result(c, m)
		untilEnd(c)
	})
	c := dial(t, address)
	if _, err := c.Execute(t.Context(), code("x")); err != nil {
		t.Fatal(err)
	}
	for i, code := range []int{-32601, -32602, -32000, -32000, -32602, -32602} {
		if m := <-answers; m.Error == nil || m.Error.Code != code {
			t.Errorf("answer %d: %+v", i, m.Error)
		}
	}
}

// A call with the number of one that runs is no second call.
func TestToolCallTwice(t *testing.T) {
	address := serve(t, func(c *channel.Conn) {
		m := receive(c)
		call := `"method":"tool.call","params":{"execution":"` + executionOf(t, m) + `","call":1,"provider":"p","path":["t"],"args":[]}`
		send(c, `{"jsonrpc":"2.0","id":1,`+call+`}`)
		send(c, `{"jsonrpc":"2.0","id":2,`+call+`}`)
		if a := receive(c); string(a.ID) != "2" || a.Error == nil {
			t.Errorf("the second call was answered with %s %s", a.ID, a.Result)
		}
		result(c, m)
		untilEnd(c)
	})
	c := dial(t, address)
	begun := make(chan struct{}, 2)
	q := code("x")
	q.Call = func(ctx context.Context, _ executor.ToolCall) (protocol.Value, error) {
		begun <- struct{}{}
		<-ctx.Done()
		return nil, ctx.Err()
	}
	if _, err := c.Execute(t.Context(), q); err != nil {
		t.Fatal(err)
	}
	select { // its goroutine may have its first step before it
	case <-begun:
	case <-time.After(10 * time.Second):
		t.Fatal("the tool was never called")
	}
	if n := len(begun); n != 0 {
		t.Errorf("the tool was called %d times more", n)
	}
}

// A call that the program made just before its end is begun, and begun before Execute returns.
func TestCallsBeforeTheEndAreBegun(t *testing.T) {
	c := dial(t, serve(t, func(c *channel.Conn) {
		for {
			m := receive(c)
			if m.Kind == 0 {
				return
			}
			if m.Method != protocol.MethodExecute {
				continue
			}
			id := executionOf(t, m)
			for i := range 20 {
				send(c, fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":"tool.call","params":{"execution":%q,"call":%d,"provider":"p","path":["t"],"args":[]}}`, i, id, i))
			}
			for i := range 20 {
				send(c, fmt.Sprintf(`{"jsonrpc":"2.0","method":"tool.cancel","params":{"execution":%q,"call":%d}}`, id, i))
			}
			result(c, m)
		}
	}), WithMaxTools(3))
	for range 50 {
		var begun atomic.Int64
		q := code("x")
		q.Call = func(context.Context, executor.ToolCall) (protocol.Value, error) {
			begun.Add(1)
			return nil, nil
		}
		if _, err := c.Execute(t.Context(), q); err != nil {
			t.Fatal(err)
		}
		for stop := time.Now().Add(5 * time.Second); begun.Load() < 20; runtime.Gosched() {
			if time.Now().After(stop) {
				t.Fatalf("%d of 20 calls have begun", begun.Load())
			}
		}
	}
}

func TestToolCancelEndsTheCall(t *testing.T) {
	ended := make(chan struct{})
	begun := make(chan struct{})
	address := serve(t, func(c *channel.Conn) {
		m := receive(c)
		id := executionOf(t, m)
		send(c, `{"jsonrpc":"2.0","id":1,"method":"tool.call","params":{"execution":"`+id+`","call":1,"provider":"p","path":["t"],"args":[]}}`)
		<-begun
		send(c, `{"jsonrpc":"2.0","method":"tool.cancel","params":{"execution":"`+id+`","call":1}}`)
		<-ended
		result(c, m)
		untilEnd(c)
	})
	c := dial(t, address)
	q := code("x")
	q.Call = func(ctx context.Context, _ executor.ToolCall) (protocol.Value, error) {
		close(begun)
		<-ctx.Done()
		close(ended)
		return nil, ctx.Err()
	}
	if _, err := c.Execute(t.Context(), q); err != nil {
		t.Fatal(err)
	}
}

// Whatever ends the connection, an Execute that waits returns a typed error.
func TestConnectionEnds(t *testing.T) {
	for _, tc := range []struct {
		name string
		end  func(c *channel.Conn)
		want string
	}{
		{"abruptly", func(c *channel.Conn) { c.Abort("gone") }, "connection lost"},
		{"in order", func(c *channel.Conn) { c.Close(channel.CloseGoingAway, "restarting"); untilEnd(c) }, "restarting"},
		{"with nonsense", func(c *channel.Conn) { send(c, `{"no":"message"}`); untilEnd(c) }, "no message of the protocol"},
		{"with a huge message", func(c *channel.Conn) { send(c, `"`+strings.Repeat("x", 3<<20)+`"`); untilEnd(c) }, "1009"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			c := dial(t, serve(t, func(c *channel.Conn) { receive(c); tc.end(c) }), WithMaxMessageBytes(1<<20))
			_, err := c.Execute(t.Context(), code("x"))
			var e *protocol.Error
			if !errors.As(err, &e) || e.Type != protocol.Internal || !e.Retryable() || !strings.Contains(e.Message, tc.want) || !strings.HasPrefix(e.Message, "connection lost") {
				t.Errorf("got %v", err)
			}
		})
	}
}

func TestOutcomesThatCannotBeRead(t *testing.T) {
	for _, body := range []string{
		`"result":null`, `"result":{}`, `"result":{"status":"ok"}`, `"result":{"status":"maybe","value":1}`,
		`"result":{"status":"ok","value":1,"error":{"type":"exception","message":"x"}}`, `"result":{"status":"ok","value":1,"logs":5}`,
	} {
		t.Run(body, func(t *testing.T) {
			c := dial(t, serve(t, func(c *channel.Conn) {
				m := receive(c)
				send(c, fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,%s}`, m.ID, body))
				untilEnd(c)
			}))
			if o, err := c.Execute(t.Context(), code("x")); o != nil || !errors.Is(err, protocol.Internal) {
				t.Errorf("%+v, %v", o, err)
			}
		})
	}
}

func TestErrorsOfAnUnknownTypeKeepTheirCode(t *testing.T) {
	c := dial(t, serve(t, func(c *channel.Conn) {
		m := receive(c)
		send(c, fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"error":{"code":-32043,"message":"full","data":{"type":"brand_new"}}}`, m.ID))
		untilEnd(c)
	}))
	if _, err := c.Execute(t.Context(), code("x")); !errors.Is(err, protocol.Overloaded) {
		t.Errorf("got %v", err)
	}
}

// Lines that find a callback too slow are left out and counted; the reader never waits.
func TestSlowCallbackIsBounded(t *testing.T) {
	const lines = 400
	sent := make(chan struct{})
	c := dial(t, serve(t, func(c *channel.Conn) {
		m := receive(c)
		id := executionOf(t, m)
		for range lines {
			send(c, `{"jsonrpc":"2.0","method":"execution.log","params":{"execution":"`+id+`","level":"log","time":1,"text":"`+strings.Repeat("x", 100_000)+`"}}`)
		}
		// An answered request shows that the reader has taken them all.
		send(c, `{"jsonrpc":"2.0","id":1,"method":"fetch"}`)
		receive(c)
		close(sent)
		result(c, m)
		untilEnd(c)
	}))
	q := code("x")
	q.Logs.Stream = true
	got, lost := 0, int64(0)
	q.OnLog = func(l protocol.Log) {
		<-sent
		if l.Truncated != nil {
			lost += l.Truncated.Lines
			return
		}
		got++
	}
	if _, err := c.Execute(t.Context(), q); err != nil {
		t.Fatal(err)
	}
	if lost == 0 || int64(got)+lost != lines {
		t.Errorf("%d lines were heard and %d counted as lost, of %d", got, lost, lines)
	}
}

func TestSameExecutionTwice(t *testing.T) {
	received, release := make(chan struct{}), make(chan struct{})
	c := dial(t, serve(t, func(c *channel.Conn) {
		m := receive(c)
		close(received)
		<-release
		result(c, m)
		untilEnd(c)
	}))
	q := code("x")
	q.Execution = "mine"
	ended := make(chan error, 1)
	go func() {
		_, err := c.Execute(t.Context(), q)
		ended <- err
	}()
	<-received
	_, err := c.Execute(t.Context(), q)
	var e *protocol.Error
	if !errors.As(err, &e) || e.Field != "execution" {
		t.Errorf("got %v", err)
	}
	close(release)
	if err := <-ended; err != nil {
		t.Error(err)
	}
}

func TestDialRefuses(t *testing.T) {
	plain := httptest.NewServer(http.NotFoundHandler())
	defer plain.Close()
	old := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		c, err := channel.Accept(w, r, protocol.Subprotocol, channel.Config{}, func(http.ResponseWriter, int, error) {})
		if err != nil {
			return
		}
		m := receive(c)
		send(c, fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"result":{"protocol":"0"}}`, m.ID))
		untilEnd(c)
		<-c.Done()
	}))
	defer old.Close()
	for _, tc := range []struct {
		name, address string
		want          protocol.Type
	}{
		{"a web server", "tcp://" + plain.Listener.Addr().String(), protocol.Internal},
		{"another version", "ws://" + old.Listener.Addr().String(), protocol.UnsupportedProtocol},
	} {
		t.Run(tc.name, func(t *testing.T) {
			if _, err := Dial(t.Context(), tc.address); !errors.Is(err, tc.want) {
				t.Errorf("got %v", err)
			}
		})
	}
	for _, set := range []Option{WithMaxTools(0), WithMaxMessageBytes(-1), WithMaxMessageBytes(1 << 40), WithCancelGrace(0)} {
		if _, err := Dial(t.Context(), "unix:/x", set); err == nil || !strings.Contains(err.Error(), "limit") {
			t.Errorf("a bad limit: %v", err)
		}
	}
}

func TestAddresses(t *testing.T) {
	for _, tc := range []struct {
		address string
		want    endpoint // zero: refused
	}{
		{"unix:/run/x", endpoint{"unix", "/run/x", "ws://localhost/v1/session", false}},
		{"unix:///run/x", endpoint{"unix", "/run/x", "ws://localhost/v1/session", false}},
		{"tcp://127.0.0.1:7410", endpoint{"tcp", "127.0.0.1:7410", "ws://127.0.0.1:7410/v1/session", false}},
		{"tcp://[::1]:7410/", endpoint{"tcp", "[::1]:7410", "ws://[::1]:7410/v1/session", false}},
		{"ws://host:1/base", endpoint{"tcp", "host:1", "ws://host:1/base/v1/session", false}},
		{"ws://host:1/v1/session", endpoint{"tcp", "host:1", "ws://host:1/v1/session", false}},
		{"tls://host:1", endpoint{"tcp", "host:1", "ws://host:1/v1/session", true}},
		{"wss://host:1/base", endpoint{"tcp", "host:1", "ws://host:1/base/v1/session", true}},
		{"tls://host:1/path", endpoint{}},
		{"https://host:1", endpoint{}},
		{"unix:relative", endpoint{}},
		{"unix:", endpoint{}},
		{"/run/x", endpoint{}},
		{"tcp://host", endpoint{}},
		{"tcp://:80", endpoint{}},
		{"tcp://host:1/path", endpoint{}},
		{"ws://user@host:1", endpoint{}},
		{"http://host:1", endpoint{}},
		{"tcp://host:port", endpoint{}},
		{"", endpoint{}},
	} {
		got, err := parseAddress(tc.address)
		if got != tc.want || (err == nil) == (tc.want == endpoint{}) {
			t.Errorf("%q: %+v, %v", tc.address, got, err)
		}
	}
}

// After connections of every kind came and went, no goroutine and no descriptor is left.
func TestNothingLeaks(t *testing.T) {
	var turn atomic.Int64
	address := serve(t, func(c *channel.Conn) {
		m := receive(c)
		if turn.Add(1)%2 == 0 {
			c.Abort("gone")
			return
		}
		result(c, m)
		untilEnd(c)
	})
	goroutines, fds := runtime.NumGoroutine(), openFiles(t)
	for range 30 {
		c, err := Dial(t.Context(), address)
		if err != nil {
			t.Fatal(err)
		}
		_, _ = c.Execute(t.Context(), code("x"))
		if err := c.Close(); err != nil {
			t.Error(err)
		}
	}
	nothingMore(t, goroutines, fds)
}

func openFiles(t *testing.T) int {
	t.Helper()
	list, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Fatal(err)
	}
	return len(list)
}

// nothingMore waits until there are no more goroutines and open files than before.
func nothingMore(t *testing.T, goroutines, fds int) {
	t.Helper()
	for stop := time.Now().Add(10 * time.Second); runtime.NumGoroutine() > goroutines || openFiles(t) > fds; runtime.Gosched() {
		if time.Now().After(stop) {
			buf := make([]byte, 1<<20)
			t.Fatalf("%d goroutines and %d files, at first %d and %d\n%s", runtime.NumGoroutine(), openFiles(t), goroutines, fds, buf[:runtime.Stack(buf, true)])
		}
	}
}
