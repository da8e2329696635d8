package client

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
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

// connection is one that a scripted service got, and the session.open that came first.
type connection struct {
	*channel.Conn
	t    *testing.T
	open protocol.SessionOpen
	id   string

	early []protocol.Message // came before an acknowledgement that was waited for
}

// serveAll runs a service that plays one script on each connection, in their order; the last one on all that follow.
func serveAll(t *testing.T, scripts ...func(c *connection)) (address string) {
	t.Helper()
	var turn atomic.Int64
	var sessions sync.WaitGroup
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		sessions.Add(1)
		defer sessions.Done()
		conn, err := channel.Accept(w, r, protocol.Subprotocol, channel.Config{}, func(http.ResponseWriter, int, error) {})
		if err != nil {
			return
		}
		defer func() { conn.Abort("the script is over"); <-conn.Done() }()
		m := receive(conn)
		c := &connection{Conn: conn, t: t, id: string(m.ID)}
		if err := protocol.DecodeParams(m.Params, &c.open); err != nil {
			t.Errorf("the client opened with %s: %v", m.Params, err)
		}
		scripts[min(int(turn.Add(1)), len(scripts))-1](c)
	}))
	t.Cleanup(func() { srv.Close(); sessions.Wait() })
	return "tcp://" + srv.Listener.Addr().String()
}

// opened answers session.open; more are members of the result.
func (c *connection) opened(more string) {
	send(c.Conn, fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"result":{"session":"s","protocol":"1","server":{"name":"script"}%s}}`, c.id, more))
}

// resumable is opened with a token.
func (c *connection) resumable(token string, received int) {
	c.opened(fmt.Sprintf(`,"received":%d,"resume":{"token":%q,"windowMs":20000}`, received, token))
}

// wantResume checks what the client asked for.
func (c *connection) wantResume(token string, received uint64) {
	if c.open.Resume != token || c.open.Received == nil || *c.open.Received != received {
		c.t.Errorf("the client resumed with %+v, want token %q and %d messages", c.open, token, received)
	}
}

// next is the next message that is no acknowledgement.
func (c *connection) next() protocol.Message {
	if len(c.early) > 0 {
		m := c.early[0]
		c.early = c.early[1:]
		return m
	}
	for {
		if m := receive(c.Conn); m.Method != protocol.MethodSessionAck {
			return m
		}
	}
}

// wantAck checks the next acknowledgement, which may leave before or after what is sent again.
func (c *connection) wantAck(n int) {
	m := receive(c.Conn)
	for ; m.Kind != 0 && m.Method != protocol.MethodSessionAck; m = receive(c.Conn) {
		c.early = append(c.early, m)
	}
	if want := fmt.Sprintf(`{"received":%d}`, n); m.Method != protocol.MethodSessionAck || string(m.Params) != want {
		c.t.Errorf("got %s %s, want an acknowledgement of %d messages", m.Method, m.Params, n)
	}
}

func (c *connection) call(execution string, number int) {
	send(c.Conn, fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":"tool.call","params":{"execution":%q,"call":%d,"provider":"p","path":["t"],"args":[]}}`, number, execution, number))
}

// answering serves as a sound service does.
func answering(c *connection) {
	c.opened("")
	for {
		m := c.next()
		if m.Kind == 0 {
			return
		}
		if m.Method == protocol.MethodExecute {
			result(c.Conn, m)
		}
	}
}

func wantValue(t *testing.T, c *Client, q executor.Request) {
	t.Helper()
	if o, err := c.Execute(t.Context(), q); err != nil || string(o.Value) != "1" {
		t.Errorf("%+v, %v", o, err)
	}
}

// A session goes on on another connection; the answer of a tool that was lost is sent again, and the tool not run again.
func TestLostAnswerIsSentAgain(t *testing.T) {
	requests := make(chan protocol.Message, 1) // the one, handed on
	address := serveAll(t, func(c *connection) {
		c.resumable("first", 0)
		request := c.next()
		requests <- request
		c.call(executionOf(t, request), 1)
		if m := c.next(); string(m.ID) != "1" || m.Result == nil {
			t.Errorf("the call was answered with %s", m.ID)
		}
	}, func(c *connection) {
		c.wantResume("first", 1)
		// As if the service had been cut off here: the client did not learn the second token.
	}, func(c *connection) {
		c.wantResume("first", 1)
		c.resumable("third", 1) // the execution came, the answer did not
		c.wantAck(1)
		if m := c.next(); string(m.ID) != "1" || m.Result == nil {
			t.Errorf("after the break came %s %s", m.Method, m.ID)
		}
		request := <-requests
		requests <- request
		c.call(executionOf(t, request), 2)
		if m := c.next(); string(m.ID) != "2" {
			t.Errorf("the second call was answered with %s", m.ID)
		}
	}, func(c *connection) {
		c.wantResume("third", 2)
		c.resumable("fourth", 3)
		c.wantAck(2)
		result(c.Conn, <-requests)
		untilEnd(c.Conn)
	})
	c := dial(t, address)
	q := code("x")
	var runs atomic.Int64
	q.Call = func(context.Context, executor.ToolCall) (protocol.Value, error) { runs.Add(1); return nil, nil }
	wantValue(t, c, q)
	if n := runs.Load(); n != 2 {
		t.Errorf("tools ran %d times for 2 calls", n)
	}
}

// What cannot be resumed fails, and what comes then has another session.
func TestSessionThatCannotBeResumed(t *testing.T) {
	refuse := func(c *connection) {
		send(c.Conn, `{"jsonrpc":"2.0","id":`+c.id+`,"error":{"code":-32051,"message":"gone","data":{"type":"session_unknown"}}}`)
		untilEnd(c.Conn)
	}
	for _, tc := range []struct {
		name   string
		resume func(c *connection)
		want   string
	}{
		{"unknown", refuse, "gone"},
		{"miscounted", func(c *connection) { c.resumable("next", 7); untilEnd(c.Conn) }, "lost count"},
		{"no longer", func(c *connection) { c.opened(`,"received":1`) }, "connection lost"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			var runs atomic.Int64
			address := serveAll(t, func(c *connection) {
				c.resumable("first", 0)
				c.next()
				runs.Add(1)
			}, tc.resume, answering)
			c := dial(t, address)
			_, err := c.Execute(t.Context(), code("x"))
			if !errors.Is(err, protocol.Internal) || !strings.Contains(err.Error(), tc.want) || runs.Load() != 1 {
				t.Errorf("got %v", err)
			}
			wantValue(t, c, code("x"))
		})
	}
}

// Faults of the service end the session, and it is not resumed.
func TestAcknowledgementsThatCannotBe(t *testing.T) {
	for _, params := range []string{`{"received":9}`, `{"received":-1}`, `{"received":"x"}`, `[]`} {
		ended := make(chan error, 1)
		address := serveAll(t, func(c *connection) {
			c.resumable("first", 0)
			c.next()
			send(c.Conn, `{"jsonrpc":"2.0","method":"session.ack","params":`+params+`}`)
			for {
				if _, err := c.Receive(); err != nil {
					ended <- err
					return
				}
			}
		}, answering)
		c := dial(t, address)
		if _, err := c.Execute(t.Context(), code("x")); !errors.Is(err, protocol.Internal) {
			t.Errorf("%s: %v", params, err)
		}
		var end *channel.CloseError
		if err := <-ended; !errors.As(err, &end) || end.Code != channel.ClosePolicy {
			t.Errorf("%s: ended with %v", params, err)
		}
		wantValue(t, c, code("x"))
	}
}

// TestClientAcknowledges: seldom, and without being asked.
func TestClientAcknowledges(t *testing.T) {
	const lines = 500
	acks := make(chan int, lines)
	address := serveAll(t, func(c *connection) {
		c.resumable("first", 0)
		m := c.next()
		for i := range lines {
			send(c.Conn, fmt.Sprintf(`{"jsonrpc":"2.0","method":"execution.log","params":{"execution":%q,"level":"log","time":1,"text":"%d"}}`, executionOf(t, m), i))
		}
		for {
			ack, last := receive(c.Conn), 0
			if _, err := fmt.Sscanf(string(ack.Params), `{"received":%d}`, &last); err != nil || last > lines {
				t.Errorf("got %s %s", ack.Method, ack.Params)
				break
			}
			acks <- last
			if last > lines-64 {
				break
			}
		}
		result(c.Conn, m)
		untilEnd(c.Conn)
	})
	wantValue(t, dial(t, address), code("x"))
	if n := len(acks); n > lines/16 {
		t.Errorf("%d messages were acknowledged %d times", lines, n)
	}
}

// When the service drains, what runs is finished where it is, and what comes goes elsewhere.
func TestDrainingSessionIsLeft(t *testing.T) {
	drained, ended := make(chan struct{}), make(chan error, 1)
	address := serveAll(t, func(c *connection) {
		c.resumable("first", 0)
		m := c.next()
		send(c.Conn, `{"jsonrpc":"2.0","method":"session.draining","params":{"deadlineMs":1000}}`)
		c.call(executionOf(t, m), 1) // answered after session.draining was read
		c.next()
		drained <- struct{}{}
		<-drained
		result(c.Conn, m)
		for {
			if _, err := c.Receive(); err != nil {
				ended <- err
				return
			}
		}
	}, answering)
	c := dial(t, address)
	first := make(chan error, 1)
	go func() {
		o, err := c.Execute(t.Context(), code("x"))
		if err == nil && string(o.Value) != "1" {
			err = o.Err()
		}
		first <- err
	}()
	<-drained
	wantValue(t, c, code("x"))
	drained <- struct{}{}
	if err := <-first; err != nil {
		t.Error(err)
	}
	var end *channel.CloseError
	if err := <-ended; !errors.As(err, &end) || end.Code != channel.CloseNormal {
		t.Errorf("the session was left with %v", err)
	}
}

// An execution goes to another session exactly when this one is known not to have accepted it.
func TestExecutionIsSentElsewhereOnlyIfRefused(t *testing.T) {
	for _, tc := range []struct {
		name string
		end  func(c *connection, m protocol.Message)
		want bool
	}{
		{"answered draining", func(c *connection, m protocol.Message) {
			send(c.Conn, fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"error":{"code":-32045,"message":"stopping","data":{"type":"draining"}}}`, m.ID))
			untilEnd(c.Conn)
		}, true},
		{"drained", func(c *connection, _ protocol.Message) {
			send(c.Conn, `{"jsonrpc":"2.0","method":"session.draining","params":{"deadlineMs":1000}}`)
			c.Close(channel.CloseGoingAway, "")
			untilEnd(c.Conn)
		}, true},
		{"going away without draining", func(c *connection, _ protocol.Message) { c.Close(channel.CloseGoingAway, ""); untilEnd(c.Conn) }, false},
		{"lost", func(*connection, protocol.Message) {}, false},
		{"overloaded", func(c *connection, m protocol.Message) {
			send(c.Conn, fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"error":{"code":-32043,"message":"full","data":{"type":"overloaded"}}}`, m.ID))
			untilEnd(c.Conn)
		}, false}, // the caller's to decide
	} {
		t.Run(tc.name, func(t *testing.T) {
			address := serveAll(t, func(c *connection) { c.opened(""); tc.end(c, c.next()) }, answering)
			_, err := dial(t, address).Execute(t.Context(), code("x"))
			if (err == nil) != tc.want {
				t.Errorf("got %v", err)
			}
		})
	}
}

func TestSessionsOfAnAgeAreReplaced(t *testing.T) {
	var sessions atomic.Int64
	address := serveAll(t, func(c *connection) { sessions.Add(1); answering(c) })
	c := dial(t, address, WithMaxSessionAge(time.Nanosecond))
	for range 5 {
		wantValue(t, c, code("x"))
	}
	if n := sessions.Load(); n != 6 {
		t.Errorf("%d sessions for 5 executions that each found an old one", n)
	}
}

// A service that is gone is waited for, and not for ever.
func TestReconnectGivesUp(t *testing.T) {
	address := serveAll(t, func(c *connection) { c.opened(""); c.next() }, func(c *connection) {
		send(c.Conn, `{"jsonrpc":"2.0","id":`+c.id+`,"error":{"code":-32046,"message":"later","data":{"type":"maintenance"}}}`)
		untilEnd(c.Conn)
	})
	c := dial(t, address, WithReconnect(300*time.Millisecond))
	if _, err := c.Execute(t.Context(), code("x")); !errors.Is(err, protocol.Internal) {
		t.Errorf("got %v", err)
	}
	began := time.Now()
	if _, err := c.Execute(t.Context(), code("x")); !errors.Is(err, protocol.Maintenance) {
		t.Errorf("got %v", err)
	}
	if took := time.Since(began); took < 150*time.Millisecond {
		t.Errorf("gave up after %v", took)
	}
	ctx, cancel := context.WithCancel(t.Context())
	go cancel()
	if o, err := c.Execute(ctx, code("x")); err != nil || !errors.Is(o.Err(), protocol.Cancelled) {
		t.Errorf("a caller that left: %+v, %v", o, err)
	}
}

func TestPausesGrowAndDiffer(t *testing.T) {
	different := map[time.Duration]bool{}
	for range 20 {
		var b backoff
		most := firstPause
		for range 30 {
			d := b.pause()
			if d < most/2 || d > most {
				t.Fatalf("a pause of %v, want from %v to %v", d, most/2, most)
			}
			different[d] = true
			most = min(2*most, mostPause)
		}
	}
	if len(different) < 100 {
		t.Errorf("%d different pauses", len(different))
	}
}

// What breaks each connection at once is met ever less often; where a message arrives there is no pause.
func TestFruitlessConnectionsAreMadeWithPauses(t *testing.T) {
	var fruitless atomic.Int64
	c := dial(t, serveAll(t, func(c *connection) {
		fruitless.Add(1)
		c.resumable("next", 0)
		c.next()
	}), func(o *options) { o.cancelGrace = time.Millisecond })
	ctx, cancel := context.WithTimeout(t.Context(), time.Second)
	defer cancel()
	if o, err := c.Execute(ctx, code("x")); err != nil || !errors.Is(o.Err(), protocol.Cancelled) {
		t.Errorf("%+v, %v", o, err)
	}
	if n := fruitless.Load(); n < 5 || n > 50 { // pauses of 2, 4, 6 ms and so on: 32 come to a second
		t.Errorf("%d connections in a second", n)
	}

	const programs = 300 // after which pauses would come to 90 s
	var connections atomic.Int64
	requests := make(chan protocol.Message, programs)
	c = dial(t, serveAll(t, func(c *connection) {
		c.resumable("next", int(connections.Add(1))-1)
		if requests <- c.next(); len(requests) < programs {
			return
		}
		for range programs {
			result(c.Conn, <-requests)
		}
		untilEnd(c.Conn)
	}))
	ctx, cancel = context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	var callers sync.WaitGroup
	for range programs {
		callers.Go(func() {
			if o, err := c.Execute(ctx, code("x")); err != nil || o.Err() != nil {
				t.Errorf("over connections that carry a message each: %+v, %v", o, err)
			}
		})
	}
	callers.Wait()
}

// A service that asks for more and more and reads no answers is left, and holds up nothing.
func TestServiceThatReadsNothing(t *testing.T) {
	ended := make(chan error, 1)
	address := serveAll(t, func(c *connection) {
		c.resumable("first", 0)
		c.next() // or what is executed goes to another session
		request := []byte(`{"jsonrpc":"2.0","id":"` + strings.Repeat("i", 120) + `","method":"no.such"}`)
		for {
			if err := c.Send(context.Background(), request); err != nil {
				ended <- err
				return
			}
		}
	}, answering)
	c := dial(t, address, func(o *options) { o.channel.QueueBytes = 64 << 10 })
	if _, err := c.Execute(t.Context(), code("x")); !errors.Is(err, protocol.Internal) {
		t.Errorf("got %v", err)
	}
	<-ended
	wantValue(t, c, code("x"))
}

// After sessions went on over several connections, no goroutine and no descriptor is left.
func TestNothingLeaksOverManyConnections(t *testing.T) {
	requests := make(chan protocol.Message, 1)
	var turn atomic.Int64
	address := serveAll(t, func(c *connection) {
		switch {
		case c.open.Resume == "":
			c.resumable("first", 0)
			requests <- c.next()
		case turn.Add(1)%3 > 0:
			c.resumable("next", 1)
		default:
			c.resumable("last", 1)
			result(c.Conn, <-requests)
			untilEnd(c.Conn)
		}
	})
	goroutines, fds := runtime.NumGoroutine(), openFiles(t)
	for range 10 {
		c, err := Dial(t.Context(), address)
		if err != nil {
			t.Fatal(err)
		}
		wantValue(t, c, code("x"))
		if err := c.Close(); err != nil {
			t.Error(err)
		}
	}
	nothingMore(t, goroutines, fds)
}
