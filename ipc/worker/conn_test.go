package worker

import (
	"bytes"
	"errors"
	"io"
	"net"
	"os"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"
)

// socketpair is a connected pair of unix stream sockets, as a worker and its parent have.
func socketpair(t testing.TB) (parent, child net.Conn) {
	t.Helper()
	fds, err := syscall.Socketpair(syscall.AF_UNIX, syscall.SOCK_STREAM|syscall.SOCK_CLOEXEC|syscall.SOCK_NONBLOCK, 0)
	if err != nil {
		t.Fatal(err)
	}
	var ends [2]net.Conn
	for i, fd := range fds {
		f := os.NewFile(uintptr(fd), "socketpair")
		if ends[i], err = net.FileConn(f); err != nil {
			t.Fatal(err)
		}
		f.Close()
	}
	t.Cleanup(func() { ends[0].Close(); ends[1].Close() })
	return ends[0], ends[1]
}

// open makes a Conn that is closed with the test.
func open(t testing.TB, nc net.Conn, o Options) *Conn {
	t.Helper()
	c, err := NewConn(nc, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	return c
}

func TestConnCarriesMessages(t *testing.T) {
	a, b := socketpair(t)
	parent, child := open(t, a, Options{Side: Parent}), open(t, b, Options{Side: Worker})
	for _, m := range samples {
		from, to := parent, child
		if m.kind().sender() == Worker {
			from, to = child, parent
		}
		if err := from.Send(m); err != nil {
			t.Fatal(err)
		}
		if got, err := to.Receive(); err != nil || !equal(got, m) {
			t.Errorf("got %+v, %v, want %+v", got, err, m)
		}
	}
}

func TestConnKeepsOrderAndBigFrames(t *testing.T) {
	a, b := socketpair(t)
	parent, child := open(t, a, Options{Side: Parent}), open(t, b, Options{Side: Worker, QueueBytes: 100})
	const calls = 2000
	big := bytes.Repeat([]byte("x"), 3<<20)
	go func() {
		for i := range calls {
			m := call
			m.Call = uint64(i)
			if i == calls/2 {
				m.Args = big
			}
			if child.Send(m) != nil {
				return
			}
		}
	}()
	for i := range calls {
		m, err := parent.Receive()
		if err != nil {
			t.Fatal(err)
		}
		got := m.(ToolCall)
		if got.Call != uint64(i) || (i == calls/2) != bytes.Equal(got.Args, big) {
			t.Fatalf("message %d is call %d with %d bytes", i, got.Call, len(got.Args))
		}
	}
}

// countedConn counts writes and holds them up until opened or closed.
type countedConn struct {
	net.Conn
	entered chan struct{} // has an item once the first write began
	gate    chan struct{}
	open    func()
	writes  atomic.Int64
}

func count(nc net.Conn) *countedConn {
	c := &countedConn{Conn: nc, entered: make(chan struct{}, 1), gate: make(chan struct{})}
	c.open = sync.OnceFunc(func() { close(c.gate) })
	return c
}

func (c *countedConn) Write(b []byte) (int, error) {
	if c.writes.Add(1) == 1 {
		c.entered <- struct{}{}
	}
	<-c.gate
	return c.Conn.Write(b)
}

func (c *countedConn) Close() error {
	c.open()
	return c.Conn.Close()
}

func TestConnWritesPendingFramesAtOnce(t *testing.T) {
	a, b := socketpair(t)
	held := count(b)
	parent, child := open(t, a, Options{Side: Parent}), open(t, held, Options{Side: Worker})
	const frames = 500
	for range frames {
		if err := child.Send(call); err != nil {
			t.Fatal(err)
		}
	}
	held.open()
	for range frames {
		if _, err := parent.Receive(); err != nil {
			t.Fatal(err)
		}
	}
	if n := held.writes.Load(); n > 2 {
		t.Errorf("%d writes for %d frames that waited together", n, frames)
	}
}

// TestGather: the first message leaves at once, the others together, in order, with the next Push, Send or Flush, or when
// they are many.
func TestGather(t *testing.T) {
	many := gatherBytes/len(appendCall(t)) + 2
	for name, c := range map[string]struct {
		later int // messages after the first
		leave func(*Conn) error
		sent  int // messages in all
	}{
		"push":  {3, func(c *Conn) error { c.Push(); return nil }, 4},
		"flush": {3, (*Conn).Flush, 4},
		"send":  {3, func(c *Conn) error { time.Sleep(2 * burst); return c.Send(call) }, 5},
		"many":  {many, func(*Conn) error { return nil }, many},
	} {
		t.Run(name, func(t *testing.T) {
			a, b := socketpair(t)
			parent, child := open(t, a, Options{Side: Parent}), open(t, b, Options{Side: Worker})
			next := func(n int) {
				t.Helper()
				for range n {
					if m, err := parent.Receive(); err != nil || !equal(m, call) {
						t.Fatalf("got %+v, %v", m, err)
					}
				}
			}
			for round := range 3 {
				if err := child.Gather(call); err != nil {
					t.Fatal(err)
				}
				next(1)
				for range c.later {
					if err := child.Gather(call); err != nil {
						t.Fatal(err)
					}
				}
				if name != "many" && (parent.r.Buffered() > 0 || readable(t, a)) {
					t.Fatalf("round %d: something left before it was to", round)
				}
				if err := c.leave(child); err != nil {
					t.Fatal(err)
				}
				next(c.sent - 1)
				child.Push()
				if name == "many" {
					next(c.later + 1 - c.sent)
				}
			}
		})
	}
}

// appendCall is the frame of a call.
func appendCall(t *testing.T) []byte {
	t.Helper()
	frame, _ := appendFrame(nil, call, true)
	return frame
}

// readable tells whether bytes wait in a socket.
func readable(t *testing.T, nc net.Conn) (is bool) {
	t.Helper()
	raw, err := nc.(syscall.Conn).SyscallConn()
	if err != nil {
		t.Fatal(err)
	}
	_ = raw.Control(func(fd uintptr) {
		var one [1]byte
		n, _, _ := syscall.Recvfrom(int(fd), one[:], syscall.MSG_PEEK|syscall.MSG_DONTWAIT)
		is = n > 0
	})
	return is
}

func TestSendBlocksWhenFull(t *testing.T) {
	_, b := socketpair(t)
	held := count(b)
	child := open(t, held, Options{Side: Worker, QueueBytes: 10})
	if err := child.Send(call); err != nil { // the writer takes this one
		t.Fatal(err)
	}
	<-held.entered
	if err := child.TrySend(call); err != nil { // and this one fills the queue
		t.Fatal(err)
	}
	if err := child.TrySend(call); !errors.Is(err, ErrQueueFull) {
		t.Fatalf("got %v", err)
	}
	sent := make(chan error, 1)
	go func() { sent <- child.Send(call) }()
	select {
	case err := <-sent:
		t.Fatalf("Send did not block, err %v", err)
	case <-time.After(20 * time.Millisecond):
	}
	held.open()
	if err := <-sent; err != nil {
		t.Error(err)
	}
	if err := child.Flush(); err != nil {
		t.Error(err)
	}
}

func TestCloseFreesBlockedCalls(t *testing.T) {
	_, b := socketpair(t)
	c, err := NewConn(b, Options{Side: Worker, QueueBytes: 1})
	if err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 2)
	go func() {
		var err error
		for err == nil {
			err = c.Send(Log{Text: string(make([]byte, 1<<20))}) // nobody reads: blocks in the end
		}
		ended <- err
	}()
	go func() { _, err := c.Receive(); ended <- err }()
	for c.TrySend(Ready{}) == nil {
		runtime.Gosched()
	}
	c.Close()
	for range 2 {
		if err := <-ended; !errors.Is(err, net.ErrClosed) {
			t.Errorf("got %v", err)
		}
	}
	if err := c.Close(); err != nil {
		t.Errorf("second Close: %v", err)
	}
}

func TestSendRefuses(t *testing.T) {
	a, b := socketpair(t)
	parent, child := open(t, a, Options{Side: Parent, MaxSend: 100}), open(t, b, Options{Side: Worker})
	if err := parent.Send(Ready{}); err == nil {
		t.Error("the parent sent a worker's message")
	}
	if err := parent.Send(Execute{ID: 1, Code: string(make([]byte, 101))}); !errors.Is(err, ErrTooLarge) {
		t.Errorf("got %v", err)
	}
	if err := parent.Send(Cancel{ID: 2}); err != nil {
		t.Error(err)
	}
	if m, err := child.Receive(); err != nil || m != (Cancel{ID: 2}) {
		t.Errorf("after a refused frame came %+v, %v", m, err)
	}
}

func TestReceiveBoundsFrames(t *testing.T) {
	cases := []struct {
		name  string
		bytes []byte
		want  func(error) bool
	}{
		{"over the limit", []byte{101, 0, 0, 0}, isFrameError},
		{"4 GiB", []byte{255, 255, 255, 255}, isFrameError},
		{"empty", []byte{0, 0, 0, 0}, isFrameError},
		{"end between frames", nil, func(err error) bool { return err == io.EOF }},
		{"end in the length", []byte{5, 0}, func(err error) bool { return err == io.ErrUnexpectedEOF }},
		{"end after the length", []byte{5, 0, 0, 0}, func(err error) bool { return err == io.ErrUnexpectedEOF }},
		{"end in the body", []byte{5, 0, 0, 0, 0x82}, func(err error) bool { return err == io.ErrUnexpectedEOF }},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			a, b := socketpair(t)
			parent := open(t, a, Options{Side: Parent, MaxReceive: 100})
			if _, err := b.Write(c.bytes); err != nil {
				t.Fatal(err)
			}
			b.Close()
			if m, err := parent.Receive(); !c.want(err) {
				t.Errorf("got %+v, %v", m, err)
			}
		})
	}
}

func isFrameError(err error) bool {
	var f *FrameError
	return errors.As(err, &f)
}

func TestRaiseMaxReceive(t *testing.T) {
	a, b := socketpair(t)
	parent := open(t, a, Options{Side: Parent, MaxReceive: 100})
	peer := open(t, b, Options{Side: Worker})
	parent.RaiseMaxReceive(50) // does not lower it
	for _, size := range []int{50, 150} {
		if err := peer.Send(Log{ID: 1, Level: "log", Text: strings.Repeat("x", size)}); err != nil {
			t.Fatal(err)
		}
		if m, err := parent.Receive(); err != nil || len(m.(Log).Text) != size {
			t.Errorf("%d bytes: got %+v, %v", size, m, err)
		}
		parent.RaiseMaxReceive(200)
	}
	if err := peer.Send(Log{ID: 1, Level: "log", Text: strings.Repeat("x", 250)}); err != nil {
		t.Fatal(err)
	}
	if m, err := parent.Receive(); !isFrameError(err) {
		t.Errorf("250 bytes: got %+v, %v", m, err)
	}
}

// TestHeaderAloneCostsLittle: a frame that is announced at the limit and never comes takes no such memory.
func TestHeaderAloneCostsLittle(t *testing.T) {
	a, b := socketpair(t)
	parent := open(t, a, Options{Side: Parent, MaxReceive: 1 << 30})
	if _, err := b.Write([]byte{0, 0, 0, 0x30, 0x82}); err != nil {
		t.Fatal(err)
	}
	b.Close()
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	if _, err := parent.Receive(); err != io.ErrUnexpectedEOF {
		t.Errorf("got %v", err)
	}
	runtime.ReadMemStats(&after)
	if got := after.TotalAlloc - before.TotalAlloc; got > 2*eagerBytes+64<<10 { // twice, as the race detector has it
		t.Errorf("allocated %d bytes", got)
	}
}

func TestReadDeadline(t *testing.T) {
	a, _ := socketpair(t)
	parent := open(t, a, Options{Side: Parent})
	if err := parent.SetReadDeadline(time.Now().Add(-time.Second)); err != nil {
		t.Fatal(err)
	}
	if _, err := parent.Receive(); !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("got %v", err)
	}
}

func TestStuckWriteFails(t *testing.T) {
	a, _ := socketpair(t)
	parent := open(t, a, Options{Side: Parent, WriteTimeout: 10 * time.Millisecond})
	if err := parent.Send(Execute{ID: 1, Code: string(make([]byte, 4<<20))}); err != nil {
		t.Fatal(err)
	}
	if _, err := parent.Receive(); !errors.Is(err, net.ErrClosed) {
		t.Errorf("Receive got %v, want the socket closed", err)
	}
	if err := parent.Send(Cancel{ID: 1}); !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("Send got %v", err)
	}
}

// TestLastWordSurvivesWriteError: what a dying worker said is still read after a write to it failed.
func TestLastWordSurvivesWriteError(t *testing.T) {
	a, b := socketpair(t)
	parent := open(t, a, Options{Side: Parent})
	word := LastWord{ID: 1, Type: "memory_limit"}
	if _, err := b.Write(Append(nil, word)); err != nil {
		t.Fatal(err)
	}
	b.Close()
	for parent.Send(Cancel{ID: 1}) == nil {
		runtime.Gosched()
	}
	if m, err := parent.Receive(); err != nil || m != Message(word) {
		t.Errorf("got %+v, %v", m, err)
	}
}

// TestWriteLock: while somebody else holds the lock nothing is written, and the frame of the holder stands whole before
// the others.
func TestWriteLock(t *testing.T) {
	a, b := socketpair(t)
	var lock sync.Mutex
	parent, child := open(t, a, Options{Side: Parent}), open(t, b, Options{Side: Worker, WriteLock: &lock})
	lock.Lock()
	sent := make(chan error)
	go func() {
		for range 10 {
			sent <- child.Send(Ready{})
		}
	}()
	word := LastWord{ID: 3, Type: "worker_crashed"}
	if _, err := b.Write(Append(nil, word)); err != nil {
		t.Fatal(err)
	}
	if m, err := parent.Receive(); err != nil || m != Message(word) {
		t.Errorf("got %+v, %v before the lock was free", m, err)
	}
	lock.Unlock()
	for range 10 {
		if err := <-sent; err != nil {
			t.Fatal(err)
		}
		if m, err := parent.Receive(); err != nil || m != (Ready{}) {
			t.Errorf("got %+v, %v", m, err)
		}
	}
}

// TestUnwritten: frames that wait are told of, and that they are written.
func TestUnwritten(t *testing.T) {
	a, b := socketpair(t)
	var lock sync.Mutex
	var waiting atomic.Bool
	parent := open(t, a, Options{Side: Parent})
	child := open(t, b, Options{Side: Worker, WriteLock: &lock, Unwritten: waiting.Store})
	for range 3 {
		lock.Lock()
		if waiting.Load() {
			t.Error("something waits before anything was sent")
		}
		if err := child.Send(Log{ID: 1, Level: "log", Text: "x"}); err != nil {
			t.Fatal(err)
		}
		if !waiting.Load() {
			t.Error("nothing waits although nothing can be written")
		}
		lock.Unlock()
		if err := child.Flush(); err != nil {
			t.Fatal(err)
		}
		if waiting.Load() {
			t.Error("something waits although all is written")
		}
		if _, err := parent.Receive(); err != nil {
			t.Fatal(err)
		}
	}
	parent.Close()
	for child.Send(Log{ID: 1, Level: "log"}) == nil {
		runtime.Gosched()
	}
	if waiting.Load() {
		t.Error("something waits although nothing can be sent any more")
	}
}

func TestNewConnChecksOptions(t *testing.T) {
	for name, o := range map[string]Options{
		"no side":  {},
		"negative": {Side: Parent, MaxReceive: -1},
	} {
		a, _ := socketpair(t)
		if _, err := NewConn(a, o); err == nil {
			t.Errorf("%s: accepted", name)
		}
	}
}

func BenchmarkToolCallRoundTrip(b *testing.B) {
	x, y := socketpair(b)
	parent, child := open(b, x, Options{Side: Parent}), open(b, y, Options{Side: Worker})
	go func() {
		for {
			m, err := parent.Receive()
			if err != nil {
				return
			}
			c := m.(ToolCall)
			parent.Send(ToolResult{ID: c.ID, Call: c.Call, OK: true, Value: c.Args})
		}
	}()
	b.ReportAllocs()
	for b.Loop() {
		child.Send(call)
		if _, err := child.Receive(); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkToolCallStream(b *testing.B) {
	x, y := socketpair(b)
	parent, child := open(b, x, Options{Side: Parent}), open(b, y, Options{Side: Worker})
	b.ReportAllocs()
	done := make(chan error)
	n := b.N
	go func() {
		for range n {
			if _, err := parent.Receive(); err != nil {
				done <- err
				return
			}
		}
		done <- nil
	}()
	for range n {
		child.Send(call)
	}
	if err := <-done; err != nil {
		b.Fatal(err)
	}
}
