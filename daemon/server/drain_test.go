package server

import (
	"context"
	"net"
	"net/http"
	"os"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/gorilla/websocket"

	"github.com/executord/executord/ipc/executor"
	"github.com/executord/executord/ipc/protocol"
)

func TestDrainLetsWorkFinish(t *testing.T) {
	release := make(chan struct{})
	work, begun := started(func(context.Context, executor.Request) (*protocol.Outcome, error) {
		<-release
		return returned(protocol.Value(`"done"`)), nil
	})
	r := serve(t, script{"work": work}, Config{DrainGrace: time.Minute})
	busy, idle := r.open(t), r.open(t)
	busy.execute("1", "work", "")
	<-begun
	r.stop()
	idle.want(`"method":"session.draining","params":{"deadlineMs":`)
	idle.wantClose(websocket.CloseGoingAway)
	busy.want(`"method":"session.draining"`)
	busy.execute("2", "work", "")
	busy.want(`"id":"2"`, `"type":"draining"`)
	status, body, _ := r.ask(t, false, r.request(t, "GET", "/readyz", ""))
	if status != 503 || !strings.Contains(body, "draining") {
		t.Errorf("readyz says %d %s", status, body)
	}
	status, body, _ = r.ask(t, false, r.request(t, "POST", "/v1/execute", `{"code":"x"}`))
	if status != 503 {
		t.Errorf("a new request got %d", status)
	}
	wantFault(t, body, protocol.Draining)
	_, resp, err := (&websocket.Dialer{Subprotocols: []string{protocol.Subprotocol}}).Dial("ws://"+r.tcp+"/v1/session", nil)
	if err == nil || resp.StatusCode != http.StatusServiceUnavailable {
		t.Errorf("a new session: %v", err)
	}
	close(release)
	busy.want(`"id":"1","result":{"status":"ok","value":"done"`)
	busy.wantClose(websocket.CloseGoingAway)
	if err := r.wait(); err != nil {
		t.Fatal(err)
	}
}

func TestDrainCancelsWhatDoesNotFinish(t *testing.T) {
	wait, begun := started(untilCancelled)
	r := serve(t, script{"wait": wait}, Config{DrainGrace: 50 * time.Millisecond})
	h := r.open(t)
	h.execute("1", "wait", "")
	<-begun
	r.stop()
	h.want(`"method":"session.draining"`)
	h.want(`"id":"1","result":{"status":"error","error":{"type":"cancelled","message":"the service is stopping"`)
	h.wantClose(websocket.CloseGoingAway)
	if err := r.wait(); err != nil {
		t.Fatal(err)
	}
}

func TestDrainDropsWhoDoesNotRead(t *testing.T) {
	wait, begun := started(func(ctx context.Context, r executor.Request) (*protocol.Outcome, error) {
		_, _ = untilCancelled(ctx, r)
		return returned(protocol.Value(`"` + strings.Repeat("x", 8<<20) + `"`)), nil
	})
	r := serve(t, script{"wait": wait}, Config{DrainGrace: 50 * time.Millisecond})
	h := r.open(t)
	h.execute("1", "wait", "")
	<-begun
	began := time.Now()
	if err := r.wait(); err != nil {
		t.Fatal(err)
	}
	if took := time.Since(began); took > closeGrace+5*time.Second {
		t.Errorf("the end took %v", took)
	}
}

func TestServeEndsWhenAListenerFails(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s, _ := New(script{}, Config{})
	_ = l.Close()
	if err := s.Serve(t.Context(), l); err == nil {
		t.Error("Serve on a closed listener returned no error")
	}
}

// After clients of every kind came and went, no goroutine and no descriptor is left.
func TestNothingLeaks(t *testing.T) {
	wait, begun := started(untilCancelled)
	exec := script{"wait": wait}
	goroutines, fds := runtime.NumGoroutine(), openFiles(t)
	r := serve(t, exec, Config{MaxMessageBytes: 1 << 20})
	for i := range 60 {
		h := r.open(t)
		h.execute("1", "wait", "")
		<-begun
		switch i % 5 {
		case 0:
			_ = h.ws.UnderlyingConn().Close()
		case 1:
			_ = h.ws.WriteControl(websocket.CloseMessage, websocket.FormatCloseMessage(1000, ""), time.Now().Add(time.Second))
			h.wantClose(1000)
		case 2:
			_ = h.ws.WriteMessage(websocket.BinaryMessage, nil)
			h.wantClose(1003)
		case 3:
			_ = h.ws.WriteMessage(websocket.TextMessage, make([]byte, 2<<20))
			_ = h.ws.Close()
		case 4:
			h.send(`{"jsonrpc":"2.0","method":"cancel","params":{"execution":"1"}}`)
			h.want(`"type":"cancelled"`)
		}
		_ = h.ws.Close()
	}
	if err := r.wait(); err != nil {
		t.Fatal(err)
	}
	for deadline := time.Now().Add(10 * time.Second); ; runtime.Gosched() {
		g, f := runtime.NumGoroutine(), openFiles(t)
		if g <= goroutines && f <= fds {
			return
		}
		if time.Now().After(deadline) {
			buf := make([]byte, 1<<20)
			t.Fatalf("%d goroutines and %d files, at first %d and %d\n%s", g, f, goroutines, fds, buf[:runtime.Stack(buf, true)])
		}
	}
}

func openFiles(t *testing.T) int {
	t.Helper()
	list, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Fatal(err)
	}
	return len(list)
}
