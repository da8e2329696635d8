// Package quiet has stream sockets between processes of one machine that wake their owner when something arrives, and for
// nothing else.
//
// The sockets of package net are watched for both directions at once. Of a TCP connection the kernel reports room to write
// only to whom it was refused; of a unix socket it reports it each time the peer has read something (unix_write_space in
// net/unix/af_unix.c, seen in 6.18), so that a request and its answer wake either side twice. Here an epoll descriptor of
// the socket's own stands between it and the poller of the runtime, and asks for arrivals only. Room to write is asked for
// while a Write waits for it.
package quiet

import (
	"errors"
	"io"
	"net"
	"os"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// Conn is a connected unix stream socket. Any goroutine may call its methods; a Read waits for another to end, and so does
// a Write.
type Conn struct {
	fd            int
	local, remote net.Addr
	closed        atomic.Bool
	using         sync.RWMutex // held for reading while fd is in use

	in      *gate // of arrivals
	reading sync.Mutex
	p       []byte // what a Read under way fills, and its result
	n       int
	err     error
	read    func(epoll uintptr) bool // made once: a function made for each Read is garbage

	out     *gate // of room to write; nil but while a Write waits
	writing sync.Mutex
	mu      sync.Mutex // of out and writeBy
	writeBy time.Time  // zero: never
}

// Of makes a Conn of a unix stream socket of package net, which must not be used any more. Other connections it returns as
// they are, and also such a socket where the process has no descriptor left for it.
func Of(c net.Conn) net.Conn {
	u, ok := c.(*net.UnixConn)
	if !ok || u.LocalAddr().Network() != "unix" {
		return c
	}
	raw, err := u.SyscallConn()
	if err != nil {
		return c
	}
	fd := -1
	if raw.Control(func(old uintptr) { fd, err = unix.FcntlInt(old, unix.F_DUPFD_CLOEXEC, 0) }) != nil || err != nil {
		return c
	}
	own, err := newConn(fd, c.LocalAddr(), c.RemoteAddr())
	if err != nil {
		return c
	}
	_ = c.Close()
	return own
}

// New makes a Conn of a descriptor, which must not be used any more, even after an error.
func New(fd int) (*Conn, error) {
	nameless := &net.UnixAddr{Net: "unix"}
	return newConn(fd, nameless, nameless)
}

func newConn(fd int, local, remote net.Addr) (*Conn, error) {
	c := &Conn{fd: fd, local: local, remote: remote}
	err := os.NewSyscallError("fcntl", unix.SetNonblock(fd, true))
	if err == nil {
		c.in, err = newGate(fd, unix.EPOLLIN|unix.EPOLLRDHUP, time.Time{})
	}
	if err != nil {
		_ = unix.Close(fd)
		return nil, err
	}
	c.read = func(uintptr) bool {
		c.n, c.err = transfer(syscall.Read, c.fd, c.p)
		return c.err != unix.EAGAIN
	}
	return c, nil
}

// transfer calls read or write, those of package syscall: the race detector takes what net and nowait write by them, and is read
// by them elsewhere, for ordered.
func transfer(do func(int, []byte) (int, error), fd int, p []byte) (int, error) {
	for {
		if n, err := do(fd, p); err != unix.EINTR {
			return max(n, 0), err
		}
	}
}

// Read waits for data. It returns io.EOF at the end of it.
func (c *Conn) Read(p []byte) (int, error) {
	c.using.RLock()
	defer c.using.RUnlock()
	c.reading.Lock()
	defer c.reading.Unlock()
	c.p = p
	err := c.in.raw.Read(c.read)
	c.p = nil
	switch {
	case err != nil:
		return 0, c.fault("read", err)
	case c.err != nil:
		return 0, c.fault("read", os.NewSyscallError("read", c.err))
	case c.n == 0 && len(p) > 0:
		return 0, io.EOF
	}
	return c.n, nil
}

// Write waits until all of p is with the kernel.
func (c *Conn) Write(p []byte) (int, error) {
	c.using.RLock()
	defer c.using.RUnlock()
	c.writing.Lock()
	defer c.writing.Unlock()
	if err := c.mayWrite(); err != nil {
		return 0, c.fault("write", err)
	}
	n, err := transfer(syscall.Write, c.fd, p)
	if err == unix.EAGAIN || err == nil && n < len(p) {
		var more int
		more, err = c.writeRest(p[n:])
		n += more
	}
	return n, c.fault("write", os.NewSyscallError("write", err))
}

func (c *Conn) mayWrite() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case c.closed.Load():
		return net.ErrClosed
	case !c.writeBy.IsZero() && !time.Now().Before(c.writeBy):
		return os.ErrDeadlineExceeded
	}
	return nil
}

// writeRest writes p when there is room.
func (c *Conn) writeRest(p []byte) (done int, err error) {
	try := func() bool {
		var n int
		for n, err = transfer(syscall.Write, c.fd, p[done:]); err == nil; n, err = transfer(syscall.Write, c.fd, p[done:]) {
			if done += n; done == len(p) {
				return true
			}
		}
		return err != unix.EAGAIN
	}
	out, failure := c.openOut()
	if failure != nil {
		return done, c.poll(try, &err)
	}
	waiting := out.raw.Read(func(uintptr) bool { return try() })
	c.closeOut()
	if waiting != nil {
		return done, waiting
	}
	return done, err
}

// openOut has the socket watched for room, which takes a descriptor until closeOut.
func (c *Conn) openOut() (*gate, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed.Load() {
		return nil, net.ErrClosed
	}
	g, err := newGate(c.fd, unix.EPOLLOUT, c.writeBy)
	if err == nil {
		c.out = g
	}
	return g, err
}

func (c *Conn) closeOut() {
	c.mu.Lock()
	defer c.mu.Unlock()
	_ = c.out.file.Close() // Close may have been first
	c.out = nil
}

// poll waits for room where there is no descriptor left to be woken by. It looks up now and then, for Close and the deadline.
func (c *Conn) poll(try func() bool, err *error) error {
	for !try() {
		if over := c.mayWrite(); over != nil {
			return over
		}
		if _, failure := unix.Poll([]unix.PollFd{{Fd: int32(c.fd), Events: unix.POLLOUT}}, 20); failure != nil && failure != unix.EINTR {
			return failure
		}
	}
	return *err
}

func (c *Conn) fault(op string, err error) error {
	if err == nil {
		return nil
	}
	if c.closed.Load() {
		err = net.ErrClosed
	}
	return &net.OpError{Op: op, Net: c.local.Network(), Source: c.local, Addr: c.remote, Err: err}
}

// Close makes every other method fail, also those under way.
func (c *Conn) Close() error {
	if c.closed.Swap(true) {
		return c.fault("close", net.ErrClosed)
	}
	err := c.in.file.Close()
	c.mu.Lock()
	if c.out != nil {
		err = errors.Join(err, c.out.file.Close())
	}
	c.mu.Unlock()
	c.using.Lock()
	defer c.using.Unlock()
	return errors.Join(err, os.NewSyscallError("close", unix.Close(c.fd)))
}

// CloseWrite lets the peer see the end of what was written.
func (c *Conn) CloseWrite() error {
	var err error
	return c.fault("shutdown", errors.Join(descriptor{c}.Control(func(fd uintptr) { err = unix.Shutdown(int(fd), unix.SHUT_WR) }), err))
}

// LocalAddr implements net.Conn.
func (c *Conn) LocalAddr() net.Addr { return c.local }

// RemoteAddr implements net.Conn.
func (c *Conn) RemoteAddr() net.Addr { return c.remote }

// SetDeadline implements net.Conn.
func (c *Conn) SetDeadline(t time.Time) error {
	return errors.Join(c.SetReadDeadline(t), c.SetWriteDeadline(t))
}

// SetReadDeadline implements net.Conn.
func (c *Conn) SetReadDeadline(t time.Time) error {
	return c.fault("set deadline", c.in.file.SetReadDeadline(t))
}

// SetWriteDeadline implements net.Conn.
func (c *Conn) SetWriteDeadline(t time.Time) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.writeBy = t
	switch {
	case c.closed.Load():
		return c.fault("set deadline", net.ErrClosed)
	case c.out == nil:
		return nil
	}
	return c.fault("set deadline", c.out.file.SetReadDeadline(t))
}

// SyscallConn gives the descriptor for operations that do not wait: a function that returns false is not called again.
func (c *Conn) SyscallConn() (syscall.RawConn, error) { return descriptor{c}, nil }

type descriptor struct{ c *Conn }

func (d descriptor) Control(f func(fd uintptr)) error {
	d.c.using.RLock()
	defer d.c.using.RUnlock()
	if d.c.closed.Load() {
		return d.c.fault("control", net.ErrClosed)
	}
	f(uintptr(d.c.fd))
	return nil
}

func (d descriptor) Read(f func(fd uintptr) bool) error {
	return d.Control(func(fd uintptr) { f(fd) })
}

func (d descriptor) Write(f func(fd uintptr) bool) error {
	return d.Control(func(fd uintptr) { f(fd) })
}
