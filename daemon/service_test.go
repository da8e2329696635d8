package daemon

import (
	"context"
	"encoding/json"
	"io"
	"log/slog"
	"net"
	"net/http"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/gorilla/websocket"

	"github.com/executord/executord/daemon/lifecycle"
	"github.com/executord/executord/daemon/settings"
	"github.com/executord/executord/ipc/client"
	"github.com/executord/executord/ipc/executor"
	"github.com/executord/executord/ipc/protocol"
	"github.com/executord/executord/ipc/testbin"
	"github.com/executord/executord/ipc/testlog"
)

// service is a Daemon that runs.
type service struct {
	*Daemon
	t      *testing.T
	socket string
	log    *testlog.Buffer
	ended  chan struct{}
	err    error // of Run; once ended is closed
	mu     sync.Mutex
	went   []lifecycle.Transition
}

// create makes a Daemon with one worker on a unix socket; flags come last.
func create(t *testing.T, flags []string, more ...Option) *service {
	t.Helper()
	socket := filepath.Join(t.TempDir(), "s")
	args := append([]string{"--listen=unix:" + socket, "--workers=1", "--queue=64", "--worker-binary=" + testbin.Worker(t)}, flags...)
	loaded, err := settings.Load(args, nil)
	if err != nil {
		t.Fatal(err)
	}
	log := &testlog.Buffer{}
	level := &slog.LevelVar{}
	all := append([]Option{
		WithLogger(slog.New(slog.NewTextHandler(log, &slog.HandlerOptions{Level: level}))), WithLevel(level), WithLoaded(loaded, args, nil),
	}, more...)
	d, err := New(loaded.Settings(), all...)
	if err != nil {
		t.Fatal(err)
	}
	s := &service{Daemon: d, t: t, socket: socket, log: log, ended: make(chan struct{})}
	d.Subscribe(func(tr lifecycle.Transition) {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.went = append(s.went, tr)
	})
	return s
}

// run has it run until the test ends.
func (s *service) run() {
	go func() {
		s.err = s.Run(context.Background())
		close(s.ended)
	}()
	s.t.Cleanup(func() {
		s.Stop()
		s.Stop()
		s.wait()
		if s.t.Failed() {
			s.t.Log(s.log.String())
		}
	})
}

// start creates a Daemon and waits until it serves.
func start(t *testing.T, flags []string, more ...Option) *service {
	t.Helper()
	s := create(t, flags, more...)
	s.run()
	if err := s.WaitReady(t.Context()); err != nil {
		t.Fatalf("%v\n%s", err, s.log)
	}
	return s
}

// wait waits for the end of Run and returns its error.
func (s *service) wait() error {
	s.t.Helper()
	select {
	case <-s.ended:
		return s.err
	case <-time.After(time.Minute):
		s.t.Fatalf("does not end\n%s", s.log)
		return nil
	}
}

// become waits for a state.
func (s *service) become(want lifecycle.State) {
	s.t.Helper()
	ctx, cancel := context.WithTimeout(s.t.Context(), time.Minute)
	defer cancel()
	got, err := s.machine.Wait(ctx, func(st lifecycle.State) bool { return st == want || st.Final() })
	if err != nil || got != want {
		s.t.Fatalf("is %s, want %s, %v\n%s", got, want, err, s.log)
	}
}

// events are those so far.
func (s *service) path() (list []string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, tr := range s.went {
		list = append(list, string(tr.Event)+">"+string(tr.To))
	}
	return list
}

func (s *service) client() *client.Client {
	s.t.Helper()
	c, err := client.Dial(s.t.Context(), "unix:"+s.socket, client.WithReconnect(0)) // what is refused is not asked for again
	if err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(func() { _ = c.Close() })
	return c
}

// dial connects to the socket.
func (s *service) dial(context.Context, string, string) (net.Conn, error) {
	return net.Dial("unix", s.socket)
}

// get asks for a path; a body makes it a POST.
func (s *service) get(path, body string) (int, string) {
	s.t.Helper()
	method := http.MethodGet
	if body != "" {
		method = http.MethodPost
	}
	req, err := http.NewRequestWithContext(s.t.Context(), method, "http://localhost"+path, strings.NewReader(body))
	if err != nil {
		s.t.Fatal(err)
	}
	tr := &http.Transport{DialContext: s.dial, DisableKeepAlives: true}
	resp, err := tr.RoundTrip(req)
	if err != nil {
		s.t.Fatal(err)
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		s.t.Fatal(err)
	}
	return resp.StatusCode, string(text)
}

// faultOf is the type of the error in an answer.
func faultOf(body string) protocol.Type {
	var f struct{ Error protocol.Error }
	_ = json.Unmarshal([]byte(body), &f)
	return f.Error.Type
}

// held is a program that waits in a tool for the test.
type held struct {
	running chan struct{} // closed when it is in the tool
	release chan struct{} // closed by the test
	done    chan struct{}
	outcome *protocol.Outcome
	err     error
}

// hold runs one through c.
func hold(c executor.Executor) *held {
	h := &held{running: make(chan struct{}), release: make(chan struct{}), done: make(chan struct{})}
	r := executor.Request{Execute: protocol.Execute{Code: `console.log("began"); await test.wait()`}}
	r.Provide(executor.Provider{Name: "test", Tools: map[string]executor.Tool{"wait": executor.Func(func(ctx context.Context) string {
		close(h.running)
		select {
		case <-h.release:
			return "released"
		case <-ctx.Done():
			return "cancelled"
		}
	})}})
	go func() {
		defer close(h.done)
		h.outcome, h.err = c.Execute(context.Background(), r)
	}()
	return h
}

// queued starts a program that waits for a worker.
func queued(t *testing.T, c executor.Executor) *held {
	t.Helper()
	h := &held{running: make(chan struct{}), done: make(chan struct{})}
	waits := make(chan struct{}, 1)
	r := executor.Request{Execute: protocol.Execute{Code: `1`}, OnState: func(s protocol.State) {
		if s.State == protocol.StateQueued {
			waits <- struct{}{}
		}
	}}
	go func() {
		defer close(h.done)
		h.outcome, h.err = c.Execute(context.Background(), r)
	}()
	select {
	case <-waits:
	case <-h.done:
		t.Fatalf("does not wait: %+v, %v", h.outcome, h.err)
	}
	return h
}

// host is a client that speaks by hand, to see what comes in which order.
func (s *service) host() *websocket.Conn {
	s.t.Helper()
	d := websocket.Dialer{Subprotocols: []string{protocol.Subprotocol}, NetDialContext: s.dial}
	ws, _, err := d.Dial("ws://localhost/v1/session", nil)
	if err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(func() { _ = ws.Close() })
	say(s.t, ws, `{"jsonrpc":"2.0","id":0,"method":"session.open","params":{"client":{"name":"test"}}}`)
	hear(s.t, ws, `"protocol":"1"`)
	return ws
}

func say(t *testing.T, ws *websocket.Conn, text string) {
	t.Helper()
	if err := ws.WriteMessage(websocket.TextMessage, []byte(text)); err != nil {
		t.Fatal(err)
	}
}

// hear reads one message that has all parts.
func hear(t *testing.T, ws *websocket.Conn, parts ...string) {
	t.Helper()
	_ = ws.SetReadDeadline(time.Now().Add(30 * time.Second))
	_, text, err := ws.ReadMessage()
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range parts {
		if !strings.Contains(string(text), p) {
			t.Fatalf("got %s, want %s in it", text, p)
		}
	}
}

// hearClose reads the close frame, before which nothing may come.
func hearClose(t *testing.T, ws *websocket.Conn, code int) {
	t.Helper()
	_ = ws.SetReadDeadline(time.Now().Add(30 * time.Second))
	_, text, err := ws.ReadMessage()
	if !websocket.IsCloseError(err, code) {
		t.Fatalf("got %s, %v, want close status %d", text, err, code)
	}
}
