package client

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/executord/executord/ipc/client/channel"
	"github.com/executord/executord/ipc/protocol"
)

// Where nobody answers, the error is of one type and names the address, whichever step gets no answer.
func TestUnreachable(t *testing.T) {
	t.Parallel()
	for name, listen := range map[string]func(*testing.T) (address string){
		"refused":                 nowhere,
		"not accepted":            full,
		"handshake unanswered":    silent,
		"session.open unanswered": func(t *testing.T) string { return serveAll(t, func(c *connection) { untilEnd(c.Conn) }) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			address := listen(t)
			bare := strings.TrimPrefix(address, "tcp://")
			ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
			defer cancel()
			_, err := Dial(ctx, address)
			var typed *protocol.Error
			if err == nil || errors.As(err, &typed) || !strings.Contains(err.Error(), "cannot connect to "+bare) {
				t.Errorf("Dial: %v", err)
			}

			c := dial(t, serveAll(t, func(c *connection) { c.opened("") }), WithReconnect(200*time.Millisecond))
			c.lose()
			c.endpoint, err = parseAddress(address)
			if err != nil {
				t.Fatal(err)
			}
			_, err = c.Execute(t.Context(), code("x"))
			if !errors.Is(err, protocol.Internal) || !strings.Contains(err.Error(), "cannot connect to "+bare) {
				t.Errorf("Execute: %v", err)
			}
		})
	}
}

// What a service said last is told, and not that nobody answered afterwards until time was up.
func TestLastWordIsTold(t *testing.T) {
	t.Parallel()
	nobody, err := parseAddress(full(t))
	if err != nil {
		t.Fatal(err)
	}
	var c *Client
	c = dial(t, serveAll(t, func(c *connection) { c.opened("") }, func(s *connection) {
		c.endpoint = nobody // the one that connects waits for the answer
		send(s.Conn, `{"jsonrpc":"2.0","id":`+s.id+`,"error":{"code":-32046,"message":"later","data":{"type":"maintenance"}}}`)
		untilEnd(s.Conn)
	}), WithReconnect(300*time.Millisecond))
	c.lose()
	if _, err := c.Execute(t.Context(), code("x")); !errors.Is(err, protocol.Maintenance) {
		t.Errorf("got %v", err)
	}
}

// lose waits until the client has noticed that its session is gone.
func (c *Client) lose() {
	for gone := false; !gone; time.Sleep(time.Millisecond) {
		c.mu.Lock()
		gone = c.current == nil
		c.mu.Unlock()
	}
}

// nowhere is an address at which nobody listens.
func nowhere(t *testing.T) string {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = l.Close() }()
	return "tcp://" + l.Addr().String()
}

// silent is one of somebody who accepts connections, and no more.
func silent(t *testing.T) string {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	return "tcp://" + l.Addr().String()
}

// full is one whose queue of connections has no room: the kernel does not answer further ones.
func full(t *testing.T) string {
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = unix.Close(fd) })
	if err := errors.Join(unix.Bind(fd, &unix.SockaddrInet4{Addr: [4]byte{127, 0, 0, 1}}), unix.Listen(fd, 0)); err != nil {
		t.Fatal(err)
	}
	name, err := unix.Getsockname(fd)
	if err != nil {
		t.Fatal(err)
	}
	address := fmt.Sprintf("127.0.0.1:%d", name.(*unix.SockaddrInet4).Port)
	for range 10 {
		c, err := net.DialTimeout("tcp", address, 200*time.Millisecond)
		if err != nil {
			return "tcp://" + address
		}
		t.Cleanup(func() { _ = c.Close() })
	}
	t.Fatal("the queue has room for all")
	return ""
}

// stoppingWays are those in which a service that stops turns a caller away that has just connected.
var stoppingWays = map[string]func(w http.ResponseWriter, r *http.Request){
	"at the handshake": func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusServiceUnavailable)
		_, _ = w.Write([]byte(`{"error":{"type":"draining","message":"the service is stopping"}}`))
	},
	"at session.open": onSession(func(c *channel.Conn) {
		send(c, fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"error":{"code":-32045,"message":"stopping","data":{"type":"draining"}}}`, receive(c).ID))
	}),
	"without an answer": onSession(func(c *channel.Conn) { c.Close(channel.CloseGoingAway, "the service is stopping") }),
}

func onSession(f func(c *channel.Conn)) func(w http.ResponseWriter, r *http.Request) {
	return func(w http.ResponseWriter, r *http.Request) {
		c, err := channel.Accept(w, r, protocol.Subprotocol, channel.Config{}, func(http.ResponseWriter, int, error) {})
		if err != nil {
			return
		}
		f(c)
		untilEnd(c)
		<-c.Done()
	}
}

// on serves on the socket until the test or the returned function ends it; the socket stays.
func on(t *testing.T, l *net.UnixListener, handler http.HandlerFunc) (end func()) {
	t.Helper()
	f, err := l.File()
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = f.Close() }()
	same, err := net.FileListener(f)
	if err != nil {
		t.Fatal(err)
	}
	srv := &http.Server{Handler: handler, ReadHeaderTimeout: time.Minute}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_ = srv.Serve(same)
	}()
	end = func() { _ = srv.Close(); <-ended }
	t.Cleanup(end)
	return end
}

// unixListener listens until the test ends.
func unixListener(t *testing.T) *net.UnixListener {
	t.Helper()
	l, err := net.ListenUnix("unix", &net.UnixAddr{Name: filepath.Join(t.TempDir(), "s"), Net: "unix"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	return l
}

// Whoever comes as the service stops gets to the one that takes its place at the socket.
func TestDialWhileTheServiceRestarts(t *testing.T) {
	t.Parallel()
	for name, turnAway := range stoppingWays {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l := unixListener(t)
			came := make(chan struct{}, 100)
			end := on(t, l, func(w http.ResponseWriter, r *http.Request) { came <- struct{}{}; turnAway(w, r) })
			served := make(chan struct{})
			go func() {
				defer close(served)
				<-came
				<-came
				end()
				on(t, l, onSession(func(c *channel.Conn) {
					send(c, fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"result":{"session":"s","protocol":"1","server":{"name":"next"}}}`, receive(c).ID))
					result(c, receive(c))
				}))
			}()
			c := dial(t, "unix:"+l.Addr().String())
			<-served
			if name := c.Server().Server.Name; name != "next" {
				t.Errorf("served by %q", name)
			}
			wantValue(t, c, code("x"))
		})
	}
}

// One that goes on stopping is not asked for ever, and one that says something else not again.
func TestDialGivesUp(t *testing.T) {
	t.Parallel()
	for name, turnAway := range stoppingWays {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l := unixListener(t)
			var asked, then atomic.Int64
			on(t, l, func(w http.ResponseWriter, r *http.Request) {
				if asked.Add(1) == then.Load() {
					http.Error(w, `{"error":{"type":"maintenance","message":"later"}}`, http.StatusServiceUnavailable)
					return
				}
				turnAway(w, r)
			})
			address := "unix:" + l.Addr().String()
			if _, err := Dial(t.Context(), address, WithReconnect(0)); !errors.Is(err, protocol.Draining) || asked.Load() != 1 {
				t.Errorf("got %v, asked %d times", err, asked.Load())
			}
			if _, err := Dial(t.Context(), address, WithReconnect(time.Second)); !errors.Is(err, protocol.Draining) || asked.Load() < 3 || asked.Load() > 9 {
				t.Errorf("got %v, asked %d times", err, asked.Load())
			}
			ctx, cancel := context.WithTimeout(t.Context(), 500*time.Millisecond)
			defer cancel()
			if _, err := Dial(ctx, address); !errors.Is(err, protocol.Draining) || !errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("got %v", err)
			}
			asked.Store(0)
			then.Store(2)
			if _, err := Dial(t.Context(), address); !errors.Is(err, protocol.Maintenance) || asked.Load() != 2 {
				t.Errorf("got %v, asked %d times", err, asked.Load())
			}
		})
	}
}
