package server

import (
	"bufio"
	"fmt"
	"net"
	"net/http"
	"path/filepath"
	"testing"
	"time"
)

// Once a server has left a listener that somebody else holds too, callers wait there for the next server, and are served
// by it; who was taken before is still answered.
func TestLeaveToASuccessor(t *testing.T) {
	first, err := net.ListenUnix("unix", &net.UnixAddr{Name: filepath.Join(t.TempDir(), "s"), Net: "unix"})
	if err != nil {
		t.Fatal(err)
	}
	first.SetUnlinkOnClose(false)
	held, err := first.File()
	if err != nil {
		t.Fatal(err)
	}
	defer held.Close()
	start := func(l net.Listener) *Front {
		t.Helper()
		s, err := New(script{}, Config{})
		if err != nil {
			t.Fatal(err)
		}
		f, err := s.Start(l)
		if err != nil {
			t.Fatal(err)
		}
		return f
	}
	call := func() net.Conn {
		t.Helper()
		c, err := net.Dial("unix", first.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = c.Close() })
		return c
	}
	ask := func(c net.Conn) {
		t.Helper()
		if _, err := fmt.Fprint(c, "GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n"); err != nil {
			t.Fatal(err)
		}
	}
	answered := func(c net.Conn) {
		t.Helper()
		_ = c.SetReadDeadline(time.Now().Add(10 * time.Second))
		r, err := http.ReadResponse(bufio.NewReader(c), nil)
		if err != nil || r.StatusCode != http.StatusOK {
			t.Errorf("got %v, %v", r, err)
		}
	}
	f := start(first)
	early := call()
	ask(early)
	answered(early)
	f.Leave()
	late := call()
	ask(late)
	ask(early)
	answered(early)
	f.Close()
	select {
	case err := <-f.Failed():
		t.Errorf("leaving is a failure: %v", err)
	default:
	}
	second, err := net.FileListener(held)
	if err != nil {
		t.Fatal(err)
	}
	g := start(second)
	defer g.Close()
	answered(late)
}
