package server

import (
	"context"
	"encoding/json"
	"fmt"
	"net"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/gorilla/websocket"

	"github.com/executord/executord/ipc/executor"
	"github.com/executord/executord/ipc/protocol"
)

// script is an Executor whose programs are Go functions, chosen by the code of the request.
type script map[string]func(ctx context.Context, r executor.Request) (*protocol.Outcome, error)

func (s script) Execute(ctx context.Context, r executor.Request) (*protocol.Outcome, error) {
	f, ok := s[r.Code]
	if !ok {
		return returned(r.Input), nil
	}
	return f(ctx, r)
}

func (s script) Close() error { return nil }

// returned is the outcome of a program that returned v.
func returned(v protocol.Value) *protocol.Outcome {
	return &protocol.Outcome{Status: protocol.StatusOK, Value: v, Logs: []protocol.Log{}}
}

func failed(e *protocol.Error) *protocol.Outcome {
	return &protocol.Outcome{Status: protocol.StatusError, Error: e, Logs: []protocol.Log{}}
}

// untilCancelled is the program that waits for its cancellation.
func untilCancelled(ctx context.Context, _ executor.Request) (*protocol.Outcome, error) {
	<-ctx.Done()
	e := protocol.AsError(context.Cause(ctx))
	return failed(protocol.Errorf(protocol.Cancelled, "%s", e.Message)), nil
}

// started wraps a program and tells when it has begun.
func started(f func(context.Context, executor.Request) (*protocol.Outcome, error)) (
	func(context.Context, executor.Request) (*protocol.Outcome, error), <-chan struct{},
) {
	begun := make(chan struct{}, 1000)
	return func(ctx context.Context, r executor.Request) (*protocol.Outcome, error) {
		begun <- struct{}{}
		return f(ctx, r)
	}, begun
}

// running is a Server that serves.
type running struct {
	*Server
	unix, tcp string // addresses
	stop      context.CancelFunc
	stopped   chan error
}

// serve runs a Server on a unix socket and on TCP until the test ends.
func serve(t *testing.T, exec executor.Executor, cfg Config) *running {
	t.Helper()
	s, err := New(exec, cfg)
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "s")
	u, err := net.Listen("unix", path)
	if err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	r := &running{Server: s, unix: path, tcp: l.Addr().String(), stop: stop, stopped: make(chan error, 1)}
	go func() { r.stopped <- s.Serve(ctx, u, l) }()
	t.Cleanup(func() {
		stop()
		if err := <-r.stopped; err != nil {
			t.Error(err)
		}
	})
	return r
}

// wait returns what Serve returned after stop.
func (r *running) wait() error {
	r.stop()
	err := <-r.stopped
	r.stopped <- err
	return err
}

// host is a client that speaks by hand.
type host struct {
	t  *testing.T
	ws *websocket.Conn
	mu sync.Mutex
}

// connect opens a WebSocket; over TCP when tcp is set.
func (r *running) connect(t *testing.T, tcp bool) *host {
	t.Helper()
	d := websocket.Dialer{Subprotocols: []string{protocol.Subprotocol}}
	if !tcp {
		d.NetDial = func(string, string) (net.Conn, error) { return net.Dial("unix", r.unix) }
	}
	ws, _, err := d.Dial("ws://"+r.tcp+"/v1/session", nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = ws.Close() })
	return &host{t: t, ws: ws}
}

// open is connect and session.open.
func (r *running) open(t *testing.T) *host {
	t.Helper()
	h := r.connect(t, false)
	h.send(`{"jsonrpc":"2.0","id":"open","method":"session.open","params":{"client":{"name":"test"}}}`)
	h.want(`"protocol":"1"`)
	return h
}

func (h *host) send(text string) {
	h.t.Helper()
	h.mu.Lock()
	defer h.mu.Unlock()
	if err := h.ws.WriteMessage(websocket.TextMessage, []byte(text)); err != nil {
		h.t.Fatal(err)
	}
}

// execute sends an execute request whose id is that of the execution.
func (h *host) execute(id, code, more string) {
	h.t.Helper()
	h.send(fmt.Sprintf(`{"jsonrpc":"2.0","id":%q,"method":"execute","params":{"execution":%q,"code":%q%s}}`, id, id, code, more))
}

// next returns the next message.
func (h *host) next() string {
	h.t.Helper()
	_ = h.ws.SetReadDeadline(time.Now().Add(20 * time.Second))
	_, text, err := h.ws.ReadMessage()
	if err != nil {
		h.t.Fatal(err)
	}
	return string(text)
}

// want reads one message and asks that it holds all parts.
func (h *host) want(parts ...string) string {
	h.t.Helper()
	text := h.next()
	for _, p := range parts {
		if !strings.Contains(text, p) {
			h.t.Fatalf("got %s, want %s in it", text, p)
		}
	}
	return text
}

// wantClose reads until the close frame.
func (h *host) wantClose(code int) {
	h.t.Helper()
	_ = h.ws.SetReadDeadline(time.Now().Add(20 * time.Second))
	for {
		if _, _, err := h.ws.ReadMessage(); err != nil {
			if !websocket.IsCloseError(err, code) {
				h.t.Fatalf("ended with %v, want close status %d", err, code)
			}
			return
		}
	}
}

// requestID is the id of a message of the service.
func requestID(t *testing.T, text string) string {
	t.Helper()
	var m struct{ ID json.RawMessage }
	if err := json.Unmarshal([]byte(text), &m); err != nil || m.ID == nil {
		t.Fatalf("no id in %s", text)
	}
	return string(m.ID)
}
