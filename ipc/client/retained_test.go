package client

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/executord/executord/ipc/client/channel"
	"github.com/executord/executord/ipc/executor"
	"github.com/executord/executord/ipc/protocol"
)

// keeping is a service that retains what it runs: the first of session N as "N", the others as "N-2" and so on. What is
// invoked says the number of its session.
type keeping struct {
	idle, ttl time.Duration
	sessions  atomic.Int64
	ended     chan int64 // sessions
	released  atomic.Int64
	told      func(c *connection, m protocol.Message) bool // answers a message in the place of serve; may be nil
}

func newKeeping() *keeping {
	return &keeping{idle: time.Hour, ttl: time.Hour, ended: make(chan int64, 10)}
}

func (k *keeping) retained(id string, handles int) string {
	return fmt.Sprintf(`"logs":[],"stats":{},"retained":{"id":%q,"handles":%d,"idleMs":%d,"ttlMs":%d}`, id, handles, k.idle.Milliseconds(), k.ttl.Milliseconds())
}

func (k *keeping) serve(c *connection) {
	n, runs := k.sessions.Add(1), 0
	defer func() { k.ended <- n }()
	c.opened("")
	for {
		m := c.next()
		id := fmt.Sprint(n)
		switch {
		case m.Kind == 0:
			return
		case k.told != nil && k.told(c, m):
		case m.Method == protocol.MethodExecute:
			if runs++; runs > 1 {
				id += fmt.Sprint("-", runs)
			}
			send(c.Conn, fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"result":{"status":"ok","value":{"@handle":"%s.1"},%s}}`, m.ID, id, k.retained(id, 1)))
		case m.Method == protocol.MethodHandleInvoke:
			h, _ := protocol.DecodeHandleInvoke(m.Params, protocol.ValueBounds)
			send(c.Conn, fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"result":{"status":"ok","value":%d,%s}}`, m.ID, n, k.retained(protocol.RetainedOf(h.Handle), 0)))
		case m.Method == protocol.MethodHandleRelease:
			var p protocol.HandleRelease
			_ = json.Unmarshal(m.Params, &p)
			k.released.Add(int64(len(p.Handles)))
			send(c.Conn, fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"result":{"released":%d,"more":1}}`, m.ID, len(p.Handles)))
		}
	}
}

// wantEnd waits for the end of a session.
func (k *keeping) wantEnd(t *testing.T, n int64) {
	t.Helper()
	select {
	case got := <-k.ended:
		if got != n {
			t.Fatalf("session %d ended, want %d", got, n)
		}
	case <-time.After(20 * time.Second):
		t.Fatalf("session %d did not end", n)
	}
}

// keep runs a program and returns its handle.
func keep(t *testing.T, c *Client) protocol.Handle {
	t.Helper()
	q := code("x")
	q.Retain = &protocol.Retain{}
	o, err := c.Execute(t.Context(), q)
	if err != nil {
		t.Fatal(err)
	}
	handles, err := protocol.Handles(o.Value)
	if err != nil || len(handles) != 1 || o.Retained == nil {
		t.Fatalf("got %+v, %v", o, err)
	}
	return handles[0]
}

func call(t *testing.T, c *Client, handle string) (string, error) {
	t.Helper()
	o, err := c.Invoke(t.Context(), executor.Invocation{HandleInvoke: protocol.HandleInvoke{Handle: handle}})
	if err == nil {
		err = o.Err()
	}
	if err != nil {
		return "", err
	}
	return string(o.Value), nil
}

func wantUnknown(t *testing.T, c *Client, handle, why string) {
	t.Helper()
	if v, err := call(t, c, handle); !errors.Is(err, protocol.HandleUnknown) || !strings.Contains(err.Error(), why) {
		t.Errorf("got %q, %v, want %s", v, err, why)
	}
}

// New executions go to another session, and what is retained is called in its own, which ends with it.
func TestRetainedOutlivesRotation(t *testing.T) {
	k := newKeeping()
	c := dial(t, serveAll(t, k.serve), WithMaxSessionAge(1))
	h := keep(t, c)
	other := keep(t, c)
	k.wantEnd(t, 1) // which was opened by Dial; each execution has one of its own
	for range 2 {
		if v, err := call(t, c, h.ID); v != "2" || err != nil {
			t.Errorf("got %s, %v", v, err)
		}
		if v, err := call(t, c, other.ID); v != "3" || err != nil {
			t.Errorf("got %s, %v", v, err)
		}
	}
	if n := c.Release("", []string{h.ID, "nobody.1"}); n != 1 {
		t.Errorf("%d handles were released", n)
	}
	k.wantEnd(t, 2)
	wantUnknown(t, c, h.ID, "its handles were released")
	wantUnknown(t, c, "nobody.1", "no such handle in a session of this client")
	if n := c.Release("", []string{h.ID}); n != 0 {
		t.Errorf("%d handles were released", n)
	}
	c.ReleaseSession("any")
	wantUnknown(t, c, other.ID, "its handles were released")
	if n := k.released.Load(); n != 2 {
		t.Errorf("the service was told of %d handles", n)
	}
}

// A service that says that a session drains ends it when it wants; until then what is retained there is called.
func TestRetainedOutlivesDrainNotice(t *testing.T) {
	k := newKeeping()
	drained := make(chan struct{})
	k.told = func(c *connection, m protocol.Message) bool {
		if m.Method == protocol.MethodHandleInvoke {
			select {
			case <-drained:
				c.Close(channel.CloseGoingAway, "drained") // what it has not answered it has not accepted
				return true
			default:
			}
		}
		return false
	}
	c := dial(t, serveAll(t, k.serve))
	h := keep(t, c)
	s := c.memory.find("1").session
	s.handle(protocol.Message{Kind: protocol.KindNotification, Method: protocol.MethodSessionDraining, Params: protocol.Value(`{"deadlineMs":5}`)})
	if v, err := call(t, c, h.ID); v != "1" || err != nil {
		t.Errorf("got %s, %v", v, err)
	}
	other := keep(t, c)
	if v, err := call(t, c, other.ID); v != "2" || err != nil {
		t.Errorf("got %s, %v", v, err)
	}
	close(drained)
	wantUnknown(t, c, h.ID, "its session ended")
	wantUnknown(t, c, h.ID, "its session ended")
	k.wantEnd(t, 1)
}

// What expires at the service keeps no session here.
func TestRetainedExpires(t *testing.T) {
	for name, set := range map[string]func(k *keeping){
		"idle":     func(k *keeping) { k.idle = 30 * time.Millisecond },
		"lifetime": func(k *keeping) { k.ttl = 30 * time.Millisecond },
	} {
		t.Run(name, func(t *testing.T) {
			k := newKeeping()
			set(k)
			c := dial(t, serveAll(t, k.serve), WithMaxSessionAge(1))
			h := keep(t, c)
			k.wantEnd(t, 1) // which was opened by Dial
			_ = keep(t, c)
			k.wantEnd(t, 2)
			wantUnknown(t, c, h.ID, "nobody called it in time")
		})
	}
}

// While something is under way neither clock ends what it runs in.
func TestRetainedDoesNotExpireUnderWay(t *testing.T) {
	k := newKeeping()
	k.idle, k.ttl = 20*time.Millisecond, 20*time.Millisecond
	begun, answer := make(chan struct{}), make(chan struct{})
	k.told = func(_ *connection, m protocol.Message) bool {
		if m.Method == protocol.MethodHandleInvoke {
			close(begun)
			<-answer
		}
		return false
	}
	c := dial(t, serveAll(t, k.serve), WithMaxSessionAge(1))
	h := keep(t, c)
	ended := make(chan error, 1)
	go func() {
		_, err := call(t, c, h.ID)
		ended <- err
	}()
	select {
	case <-begun:
	case err := <-ended: // it had expired before it was called, on a slow machine
		t.Skip(err)
	}
	time.Sleep(100 * time.Millisecond) // the time that is not to count
	if c.memory.find(protocol.RetainedOf(h.ID)) == nil {
		t.Error("it is forgotten")
	}
	close(answer)
	if err := <-ended; err != nil {
		t.Error(err)
	}
}

// An outcome that says nothing of what is retained tells that it is not any more.
func TestRetainedEndsWithACall(t *testing.T) {
	k := newKeeping()
	k.told = func(c *connection, m protocol.Message) bool {
		if m.Method != protocol.MethodHandleInvoke {
			return false
		}
		send(c.Conn, fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"result":{"status":"error","error":{"type":"cpu_timeout","message":"m"},"logs":[],"stats":{}}}`, m.ID))
		return true
	}
	c := dial(t, serveAll(t, k.serve))
	h := keep(t, c)
	if _, err := call(t, c, h.ID); !errors.Is(err, protocol.CPUTimeout) {
		t.Errorf("got %v", err)
	}
	wantUnknown(t, c, h.ID, "a call ended it")
}

// A session that is lost takes what it retained with it: whether a call that was under way was made is not known.
func TestRetainedEndsWithItsSession(t *testing.T) {
	k := newKeeping()
	k.told = func(c *connection, m protocol.Message) bool {
		if m.Method == protocol.MethodHandleInvoke {
			c.Abort("")
			return true
		}
		return false
	}
	c := dial(t, serveAll(t, k.serve))
	h := keep(t, c)
	if _, err := call(t, c, h.ID); !errors.Is(err, protocol.Internal) {
		t.Errorf("got %v", err)
	}
	wantUnknown(t, c, h.ID, "its session ended: connection lost")
	if v, err := call(t, c, keep(t, c).ID); !errors.Is(err, protocol.Internal) { // of another session
		t.Errorf("got %s, %v", v, err)
	}
}

// A call goes on on another connection.
func TestInvokeIsResumed(t *testing.T) {
	c := dial(t, serveAll(t, func(c *connection) {
		c.resumable("first", 0)
		m := c.next()
		send(c.Conn, fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"result":{"status":"ok","value":{"@handle":"k.1"},"logs":[],"stats":{},"retained":{"id":"k","handles":1,"idleMs":9000,"ttlMs":9000}}}`, m.ID))
		_ = c.next()
		c.Abort("")
	}, func(c *connection) {
		c.wantResume("first", 1)
		c.resumable("second", 1)
		c.wantAck(1)
		m := c.next()
		h, err := protocol.DecodeHandleInvoke(m.Params, protocol.ValueBounds)
		if err != nil || h.Handle != "k.1" || h.Execution == "" {
			t.Errorf("the client sent %s again, %v", m.Params, err)
		} else {
			c.call(h.Execution, 1)
			answer := c.next()
			send(c.Conn, fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"result":{"status":"ok","value":%s,"logs":[],"stats":{}}}`, m.ID, answer.Result))
		}
		untilEnd(c.Conn)
	}))
	h := keep(t, c)
	i := executor.Invocation{HandleInvoke: protocol.HandleInvoke{Handle: h.ID}}
	i.Host.Call = func(context.Context, executor.ToolCall) (protocol.Value, error) { return protocol.Value(`7`), nil }
	o, err := c.Invoke(t.Context(), i)
	if err != nil || string(o.Value) != `{"value":7}` {
		t.Errorf("got %+v, %v", o, err)
	}
}

// Cancelling asks the service to stop, and Close does not wait for what is retained.
func TestInvokeIsCancelled(t *testing.T) {
	k := newKeeping()
	begun := make(chan struct{}, 1)
	var invoked protocol.Message
	k.told = func(c *connection, m protocol.Message) bool {
		switch m.Method {
		case protocol.MethodHandleInvoke:
			invoked = m
			begun <- struct{}{}
			return true
		case protocol.MethodCancel:
			send(c.Conn, fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"result":{"status":"error","error":{"type":"cancelled","message":"by you"},"logs":[],"stats":{}}}`, invoked.ID))
			return true
		}
		return false
	}
	before := runtime.NumGoroutine()
	c := dial(t, serveAll(t, k.serve), WithMaxSessionAge(1))
	h, other := keep(t, c), keep(t, c)
	ctx, cancel := context.WithCancel(t.Context())
	go func() { <-begun; cancel() }()
	o, err := c.Invoke(ctx, executor.Invocation{HandleInvoke: protocol.HandleInvoke{Handle: h.ID}})
	if err != nil || !errors.Is(o.Err(), protocol.Cancelled) || o.Error.Message != "by you" {
		t.Errorf("got %+v, %v", o, err)
	}
	o, err = c.Invoke(ctx, executor.Invocation{HandleInvoke: protocol.HandleInvoke{Handle: other.ID}}) // before it was sent
	if err != nil || !errors.Is(o.Err(), protocol.Cancelled) {
		t.Errorf("got %+v, %v", o, err)
	}
	if c.memory.find(protocol.RetainedOf(other.ID)) == nil {
		t.Error("a call that was not sent ended what it would have called")
	}
	ended := make(chan error, 1)
	go func() {
		_, err := call(t, c, other.ID)
		ended <- err
	}()
	<-begun
	c.ReleaseSession("")
	if err := <-ended; !errors.Is(err, protocol.Cancelled) {
		t.Errorf("got %v", err)
	}
	last := keep(t, c)
	if err := c.Close(); err != nil {
		t.Error(err)
	}
	if _, err := call(t, c, last.ID); !errors.Is(err, protocol.Draining) {
		t.Errorf("after Close: %v", err)
	}
	if n := c.Release("", []string{last.ID}); n != 0 {
		t.Errorf("after Close %d handles were released", n)
	}
	for end := time.Now().Add(20 * time.Second); runtime.NumGoroutine() > before+4; runtime.Gosched() { // those of the scripted service
		if time.Now().After(end) {
			buf := make([]byte, 1<<20)
			t.Fatalf("%d goroutines, %d before\n%s", runtime.NumGoroutine(), before, buf[:runtime.Stack(buf, true)])
		}
	}
}

// What has ended is remembered for a while only.
func TestMemoryIsBounded(t *testing.T) {
	var m memory
	for i := range 3 * maxEnds {
		k := &retained{id: fmt.Sprint(i)}
		m.add(k)
		m.bury(k.id, "why "+k.id)
	}
	if len(m.of) != 0 || len(m.ends) != maxEnds || len(m.order) != maxEnds {
		t.Errorf("%d live, %d ends, %d in order", len(m.of), len(m.ends), len(m.order))
	}
	if text := m.unknown(fmt.Sprint(3*maxEnds - 1)).Message; !strings.Contains(text, "why") {
		t.Error(text)
	}
	if text := m.unknown("0").Message; strings.Contains(text, "why") {
		t.Error(text)
	}
}
