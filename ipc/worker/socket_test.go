package worker

import (
	"errors"
	"io"
	"net"
	"os"
	"sync"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// sockets is a connected pair of Sockets.
func sockets(t testing.TB) (a, b *Socket) {
	t.Helper()
	fds, err := syscall.Socketpair(syscall.AF_UNIX, syscall.SOCK_STREAM|syscall.SOCK_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	var ends [2]*Socket
	for i, fd := range fds {
		if ends[i], err = NewSocket(fd); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { ends[i].Close() })
	}
	return ends[0], ends[1]
}

func TestConnOverSockets(t *testing.T) {
	a, b := sockets(t)
	parent, child := open(t, a, Options{Side: Parent}), open(t, b, Options{Side: Worker})
	go func() {
		for i := range 1000 {
			m := call
			m.Call, m.Args = uint64(i), make([]byte, i*100)
			if child.Send(m) != nil {
				return
			}
		}
	}()
	for i := range 1000 {
		m, err := parent.Receive()
		if err != nil {
			t.Fatal(err)
		}
		if got := m.(ToolCall); got.Call != uint64(i) || len(got.Args) != i*100 {
			t.Fatalf("message %d is call %d with %d bytes", i, got.Call, len(got.Args))
		}
	}
}

func TestSocketDeadlines(t *testing.T) {
	a, _ := sockets(t)
	a.SetDeadline(time.Now().Add(-time.Second))
	if _, err := a.Read(make([]byte, 1)); !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("read: %v", err)
	}
	if _, err := a.Write(make([]byte, 16<<20)); !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("write: %v", err)
	}
	a.SetDeadline(time.Time{})
	if n, err := a.Write([]byte{}); n != 0 || err != nil {
		t.Errorf("empty write: %d, %v", n, err)
	}
}

func TestSocketCloseWakes(t *testing.T) {
	a, b := sockets(t)
	var waiting sync.WaitGroup
	for name, do := range map[string]func() (int, error){
		"read":  func() (int, error) { return a.Read(make([]byte, 1)) },
		"write": func() (int, error) { return a.Write(make([]byte, 16<<20)) },
	} {
		waiting.Go(func() {
			if _, err := do(); !errors.Is(err, net.ErrClosed) && !errors.Is(err, syscall.EPIPE) {
				t.Errorf("%s: %v", name, err)
			}
		})
	}
	time.Sleep(10 * time.Millisecond) // for both to wait; sooner is right too
	if err := a.Close(); err != nil {
		t.Fatal(err)
	}
	waiting.Wait()
	if err := a.Close(); !errors.Is(err, net.ErrClosed) {
		t.Errorf("second close: %v", err)
	}
	if _, err := io.Copy(io.Discard, b); err != nil {
		t.Errorf("the peer: %v", err)
	}
}

func TestAwait(t *testing.T) {
	a, b := sockets(t)
	in := func(s *Socket) unix.PollFd { return PollFD(s.Descriptor(), unix.POLLIN) }
	if ready, err := Await(time.Now().Add(time.Millisecond), in(a), in(b)); ready != 0 || err != nil {
		t.Fatalf("%b, %v", ready, err)
	}
	a.Write([]byte("x"))
	if ready, err := Await(time.Time{}, in(a), in(b)); ready != 2 || err != nil {
		t.Fatalf("%b, %v", ready, err)
	}
}

func TestNewSocketWantsAStream(t *testing.T) {
	r, _, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	if _, err := NewSocket(int(r.Fd())); err == nil {
		t.Error("it took a pipe")
	}
}

func TestBuffered(t *testing.T) {
	a, b := socketpair(t)
	parent := open(t, a, Options{Side: Parent})
	small, big := Append(nil, call), call
	big.Args = make([]byte, 2*readBufferBytes)
	raw := append(append(append([]byte(nil), small...), small...), Append(nil, big)...)
	go b.Write(raw[:len(small)+len(small)/2]) // one and a half
	if _, err := parent.Receive(); err != nil || parent.Buffered() {
		t.Fatalf("half a frame counts as one, %v", err)
	}
	b.Write(raw[len(small)+len(small)/2 : len(raw)-1])
	if _, err := parent.Receive(); err != nil || !parent.Buffered() {
		t.Fatalf("a frame over the buffer does not count, %v", err)
	}
	b.Write(raw[len(raw)-1:])
	if _, err := parent.Receive(); err != nil || parent.Buffered() {
		t.Fatalf("nothing is left, %v", err)
	}
}
