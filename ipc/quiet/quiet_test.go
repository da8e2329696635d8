package quiet

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/net/nettest"
	"golang.org/x/sys/unix"
)

// TestConn: what package net promises of a connection.
func TestConn(t *testing.T) {
	nettest.TestConn(t, func() (a, b net.Conn, stop func(), err error) {
		a, b, err = pair()
		if err != nil {
			return nil, nil, nil, err
		}
		return a, b, func() { _, _ = a.Close(), b.Close() }, nil
	})
}

func pair() (a, b *Conn, err error) {
	fds, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, nil, err
	}
	a, err = New(fds[0])
	b, otherErr := New(fds[1])
	return a, b, errors.Join(err, otherErr)
}

func open(t *testing.T) (a, b *Conn) {
	t.Helper()
	a, b, err := pair()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _, _ = a.Close(), b.Close() })
	return a, b
}

// watched has the events that the epoll descriptors of this process ask for of fd (proc(5), fdinfo).
func watched(t *testing.T, fd int) (events uint32) {
	t.Helper()
	infos, err := filepath.Glob("/proc/self/fdinfo/*")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range infos {
		info, err := os.ReadFile(name)
		if err != nil { // closed by now
			continue
		}
		for lines := bufio.NewScanner(bytes.NewReader(info)); lines.Scan(); {
			var target int
			var found uint32
			if n, _ := fmt.Sscanf(lines.Text(), "tfd: %d events: %x", &target, &found); n == 2 && target == fd {
				events |= found
			}
		}
	}
	return events
}

// TestRoomIsAskedForWhenItMatters: a connection of package net is always watched for room, one of this package while a Write
// waits for it.
func TestRoomIsAskedForWhenItMatters(t *testing.T) {
	l, err := net.Listen("unix", filepath.Join(t.TempDir(), "s"))
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	dialed, err := net.Dial("unix", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	raw, err := dialed.(*net.UnixConn).SyscallConn()
	if err != nil {
		t.Fatal(err)
	}
	old := -1
	if err := raw.Control(func(fd uintptr) { old = int(fd) }); err != nil {
		t.Fatal(err)
	}
	if events := watched(t, old); events&unix.EPOLLOUT == 0 {
		t.Skipf("package net watches for %x: there is no need for this one", events)
	}
	a := Of(dialed).(*Conn)
	defer a.Close()
	if _, err := dialed.Write([]byte("x")); !errors.Is(err, net.ErrClosed) {
		t.Errorf("the socket of package net is still open: %v", err)
	}
	b, err := l.Accept()
	if err != nil {
		t.Fatal(err)
	}
	defer b.Close()
	if events := watched(t, a.fd); events&unix.EPOLLOUT != 0 || events&unix.EPOLLIN == 0 {
		t.Errorf("watched for %x before anything happened", events)
	}
	if a.LocalAddr().Network() != "unix" || a.RemoteAddr().String() != l.Addr().String() {
		t.Errorf("addresses %v and %v", a.LocalAddr(), a.RemoteAddr())
	}
	before := descriptors(t)
	for round := range 3 {
		text := bytes.Repeat([]byte{byte('a' + round)}, 4<<20)
		wrote := make(chan error, 1)
		go func() {
			_, err := a.Write(text)
			wrote <- err
		}()
		for deadline := time.Now().Add(5 * time.Second); watched(t, a.fd)&unix.EPOLLOUT == 0; time.Sleep(time.Millisecond) {
			if time.Now().After(deadline) {
				t.Fatal("a Write that waits is not watched for")
			}
		}
		got := make([]byte, len(text))
		if _, err := io.ReadFull(b, got); err != nil || !bytes.Equal(got, text) {
			t.Fatalf("round %d: %v", round, err)
		}
		if err := <-wrote; err != nil {
			t.Fatal(err)
		}
		if events := watched(t, a.fd); events&unix.EPOLLOUT != 0 {
			t.Errorf("watched for %x after round %d", events, round)
		}
		if after := descriptors(t); after != before {
			t.Errorf("%d descriptors after round %d, %d before", after, round, before)
		}
	}
}

// TestClose: it ends what waits, once, and leaves no descriptor behind.
func TestClose(t *testing.T) {
	before := descriptors(t)
	for range 20 {
		a, b, err := pair()
		if err != nil {
			t.Fatal(err)
		}
		ended := make(chan error, 2)
		go func() { _, err := a.Read(make([]byte, 1)); ended <- err }()
		go func() { _, err := a.Write(make([]byte, 8<<20)); ended <- err }()
		for watched(t, a.fd)&unix.EPOLLOUT == 0 {
			time.Sleep(time.Millisecond)
		}
		if err := a.Close(); err != nil {
			t.Fatal(err)
		}
		for range 2 {
			var op *net.OpError
			if err := <-ended; !errors.Is(err, net.ErrClosed) || !errors.As(err, &op) {
				t.Errorf("ended with %v", err)
			}
		}
		raw, _ := a.SyscallConn()
		for what, err := range map[string]error{
			"close": a.Close(), "control": raw.Control(func(uintptr) { t.Error("a closed descriptor is used") }),
			"close write": a.CloseWrite(), "read deadline": a.SetReadDeadline(time.Now()), "write deadline": a.SetWriteDeadline(time.Now()),
		} {
			if !errors.Is(err, net.ErrClosed) {
				t.Errorf("%s: %v", what, err)
			}
		}
		if _, err := io.Copy(io.Discard, b); err != nil {
			t.Error(err)
		}
		if err := b.Close(); err != nil {
			t.Error(err)
		}
	}
	if after := descriptors(t); after > before {
		t.Errorf("%d descriptors, %d before", after, before)
	}
}

// descriptors counts those of this process, once the runtime has the two of its poller.
func descriptors(t *testing.T) int {
	t.Helper()
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	_, _ = r.Close(), w.Close()
	fds, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Fatal(err)
	}
	return len(fds)
}

// TestCloseWrite: the peer sees the end of what was written, and can still answer.
func TestCloseWrite(t *testing.T) {
	a, b := open(t)
	if _, err := a.Write([]byte("question")); err != nil {
		t.Fatal(err)
	}
	if err := a.CloseWrite(); err != nil {
		t.Fatal(err)
	}
	if got, err := io.ReadAll(b); err != nil || string(got) != "question" {
		t.Fatalf("%q, %v", got, err)
	}
	if _, err := io.Copy(b, strings.NewReader("answer")); err != nil {
		t.Fatal(err)
	}
	got := make([]byte, 10)
	if n, err := a.Read(got); err != nil || string(got[:n]) != "answer" {
		t.Errorf("%q, %v", got[:n], err)
	}
	if _, err := a.Write([]byte("more")); !errors.Is(err, unix.EPIPE) {
		t.Errorf("write after the end: %v", err)
	}
}

// TestReadsAllocateNothing: it is the way of every message.
func TestReadsAllocateNothing(t *testing.T) {
	a, b := open(t)
	text, got := []byte("text"), make([]byte, 8)
	if n := testing.AllocsPerRun(100, func() {
		if _, err := b.Write(text); err != nil {
			t.Fatal(err)
		}
		if _, err := a.Read(got); err != nil {
			t.Fatal(err)
		}
	}); n > 1 { // what Write tries is a function
		t.Errorf("%v allocations for a message", n)
	}
}

// exhaust takes all descriptors that are left, until the test ends or they are closed.
func exhaust(t *testing.T) (full []*os.File) {
	t.Helper()
	var limit unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_NOFILE, &limit); err != nil {
		t.Fatal(err)
	}
	low := limit
	low.Cur = 256
	if err := unix.Setrlimit(unix.RLIMIT_NOFILE, &low); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		for _, f := range full {
			_ = f.Close()
		}
		if err := unix.Setrlimit(unix.RLIMIT_NOFILE, &limit); err != nil {
			t.Error(err)
		}
	})
	for {
		f, err := os.Open("/dev/null")
		if err != nil {
			return full
		}
		full = append(full, f)
	}
}

// TestWriteWithoutDescriptors: a Write that must wait does so also where no descriptor is left for it, within its deadline.
func TestWriteWithoutDescriptors(t *testing.T) {
	a, b := open(t)
	exhaust(t)
	text := bytes.Repeat([]byte("text"), 1<<20)
	wrote := make(chan error, 1)
	go func() {
		_, err := a.Write(text)
		wrote <- err
	}()
	got := make([]byte, len(text))
	if _, err := io.ReadFull(b, got); err != nil || !bytes.Equal(got, text) {
		t.Fatal(err)
	}
	if err := <-wrote; err != nil {
		t.Fatal(err)
	}
	if err := a.SetWriteDeadline(time.Now().Add(50 * time.Millisecond)); err != nil {
		t.Fatal(err)
	}
	if _, err := a.Write(text); !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("past its deadline: %v", err)
	}
	if err := a.SetWriteDeadline(time.Time{}); err != nil {
		t.Fatal(err)
	}
	time.AfterFunc(50*time.Millisecond, func() { _ = a.Close() })
	if _, err := a.Write(text); !errors.Is(err, net.ErrClosed) {
		t.Errorf("closed: %v", err)
	}
}

// TestOthersStayAsTheyAre: what cannot be made one of these goes on as it was.
func TestOthersStayAsTheyAre(t *testing.T) {
	here, there := net.Pipe()
	defer here.Close()
	defer there.Close()
	if Of(here) != here {
		t.Error("a pipe is a socket")
	}
	fds, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	file := os.NewFile(uintptr(fds[0]), "")
	defer file.Close()
	defer unix.Close(fds[1])
	c, err := net.FileConn(file)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	full := exhaust(t)
	for left := range 2 { // for the socket, and for what watches it
		if Of(c) != c {
			t.Errorf("a Conn was made with %d descriptors left", left)
		}
		full[left].Close()
	}
	own, ok := Of(c).(*Conn)
	if !ok {
		t.Fatal("no Conn was made with enough descriptors left")
	}
	_ = own.Close()
}

// TestNoSocket: a descriptor that cannot be used is an error, and closed.
func TestNoSocket(t *testing.T) {
	before := descriptors(t)
	file, err := unix.Open("/proc/self/status", unix.O_RDONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	if c, err := New(file); err == nil {
		t.Errorf("a file is a connection: %v", c)
	}
	if after := descriptors(t); after > before {
		t.Errorf("%d descriptors, %d before", after, before)
	}
}

// TestManyAtOnce: with deadlines that pass all the time, half of the connections closed under way and their descriptors taken by
// others, each peer gets what was written to it, and the counts that come with errors are right.
func TestManyAtOnce(t *testing.T) {
	before := descriptors(t)
	var all sync.WaitGroup
	for lane := range 16 {
		all.Go(func() {
			for round := range 8 {
				number := lane*8 + round
				if err := converse(number, number%2 == 1); err != nil {
					t.Errorf("connection %d: %v", number, err)
				}
			}
		})
	}
	all.Wait()
	if after := descriptors(t); after > before {
		t.Errorf("%d descriptors, %d before", after, before)
	}
}

// converse writes a text of its own over a new connection, and may close both ends under way.
func converse(number int, cut bool) error {
	a, b, err := pair()
	if err != nil {
		return err
	}
	text := bytes.Repeat(fmt.Appendf(nil, "text %d,", number), 64<<10)
	const soon = 500 * time.Microsecond
	var ends sync.WaitGroup
	var sent, got int
	var writing, reading error
	ends.Go(func() {
		for sent < len(text) && (writing == nil || errors.Is(writing, os.ErrDeadlineExceeded)) {
			var n int
			_ = a.SetWriteDeadline(time.Now().Add(soon))
			n, writing = a.Write(text[sent:])
			sent += n
		}
		_ = a.CloseWrite()
	})
	ends.Go(func() {
		for part := make([]byte, 3001); reading == nil || errors.Is(reading, os.ErrDeadlineExceeded); {
			var n int
			_ = b.SetReadDeadline(time.Now().Add(soon))
			n, reading = b.Read(part)
			if got+n > len(text) || !bytes.Equal(part[:n], text[got:got+n]) {
				reading = fmt.Errorf("after %d bytes comes what was not written", got)
			}
			got += n
			if got > len(text)/2 && cut {
				ends.Go(func() { _ = a.Close() })
				ends.Go(func() { _ = b.Close() })
			}
		}
		_ = b.Close() // or a would wait for good where something is wrong
	})
	ends.Wait()
	_ = a.Close()
	switch {
	case cut && (reading == io.EOF || errors.Is(reading, net.ErrClosed)):
		return nil
	case reading != io.EOF || writing != nil || got != len(text) || sent != len(text):
		return fmt.Errorf("%d bytes sent and %d received of %d: %w", sent, got, len(text), errors.Join(writing, reading))
	}
	return nil
}
