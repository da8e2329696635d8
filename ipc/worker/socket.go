package worker

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

// Socket is a stream socket whose Read and Write block the thread that calls them. A message then costs its receiver
// one wake-up by the kernel, where the connections of package net take a poller's thread, a scheduler's decision and
// often a third thread. It suits a process with one peer, as a worker has.
//
// Read belongs to one goroutine at a time, and so does Write; Close and the deadlines may come from any. A deadline that
// is set while a Read or Write waits counts from the next one on.
type Socket struct {
	fd              int
	name            *net.UnixAddr
	closed          atomic.Bool
	using           sync.RWMutex // held for reading while the descriptor is in use
	readBy, writeBy atomic.Int64 // unix nanoseconds, 0 for never
}

// NewSocket takes over a connected stream socket.
func NewSocket(fd int) (*Socket, error) {
	if kind, err := unix.GetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_TYPE); err != nil {
		return nil, os.NewSyscallError("getsockopt", err)
	} else if kind != unix.SOCK_STREAM {
		return nil, errors.New("cannot use descriptor: it is no stream socket")
	}
	if err := unix.SetNonblock(fd, true); err != nil { // what waits does so in poll(2), with its deadline
		return nil, os.NewSyscallError("fcntl", err)
	}
	return &Socket{fd: fd, name: &net.UnixAddr{Net: "unix"}}, nil
}

// Read waits for data.
func (s *Socket) Read(p []byte) (int, error) {
	if len(p) == 0 {
		return 0, nil
	}
	return s.attempt("read", unix.POLLIN, &s.readBy, func() (int, error) {
		n, err := unix.Read(s.fd, p)
		if n == 0 && err == nil {
			err = io.EOF
		}
		return n, err
	})
}

// Write waits until all of p is with the kernel.
func (s *Socket) Write(p []byte) (int, error) {
	done := 0
	for done < len(p) {
		n, err := s.attempt("write", unix.POLLOUT, &s.writeBy, func() (int, error) { return unix.Write(s.fd, p[done:]) })
		if err != nil {
			return done, err
		}
		done += n
	}
	return done, nil
}

// attempt repeats do while the kernel asks to wait.
func (s *Socket) attempt(op string, events int16, by *atomic.Int64, do func() (int, error)) (int, error) {
	s.using.RLock()
	defer s.using.RUnlock()
	for {
		if s.closed.Load() {
			return 0, s.fault(op, net.ErrClosed)
		}
		n, err := do()
		switch err {
		case nil:
			return n, nil
		case io.EOF:
			if s.closed.Load() {
				err = s.fault(op, net.ErrClosed)
			}
			return 0, err
		case unix.EINTR:
		case unix.EAGAIN:
			if err := s.poll(events, by); err != nil {
				return 0, s.fault(op, err)
			}
		default:
			return 0, s.fault(op, err)
		}
	}
}

func (s *Socket) fault(op string, err error) error {
	return &net.OpError{Op: op, Net: s.name.Net, Addr: s.name, Err: err}
}

// poll waits for events, until the deadline.
func (s *Socket) poll(events int16, by *atomic.Int64) error {
	var until time.Time
	if t := by.Load(); t != 0 {
		until = time.Unix(0, t)
	}
	ready, err := Await(until, PollFD(s.fd, events))
	if err == nil && ready == 0 {
		err = os.ErrDeadlineExceeded
	}
	return err
}

// PollFD is one descriptor to wait for.
func PollFD(fd int, events int16) unix.PollFd { return unix.PollFd{Fd: int32(fd), Events: events} }

// Await blocks the calling thread until one of the descriptors is ready, and returns a bit for each that is, by its
// place. Zero means that the time until came; the zero time never does.
func Await(until time.Time, fds ...unix.PollFd) (ready uint, err error) {
	for {
		var timeout *unix.Timespec
		if !until.IsZero() {
			t := unix.NsecToTimespec(max(time.Until(until), 0).Nanoseconds())
			timeout = &t
		}
		n, err := unix.Ppoll(fds, timeout, nil)
		switch {
		case err == unix.EINTR:
			continue
		case err != nil:
			return 0, os.NewSyscallError("ppoll", err)
		case n == 0:
			return 0, nil
		}
		for i, f := range fds {
			if f.Revents != 0 {
				ready |= 1 << i
			}
		}
		return ready, nil
	}
}

// Descriptor is the socket's, to wait for in Await.
func (s *Socket) Descriptor() int { return s.fd }

// Close wakes whoever reads or writes and closes the descriptor once they are gone.
func (s *Socket) Close() error {
	if s.closed.Swap(true) {
		return s.fault("close", net.ErrClosed)
	}
	_ = unix.Shutdown(s.fd, unix.SHUT_RDWR)
	s.using.Lock()
	defer s.using.Unlock()
	return os.NewSyscallError("close", unix.Close(s.fd))
}

// SyscallConn gives the descriptor for operations that do not wait.
func (s *Socket) SyscallConn() (syscall.RawConn, error) { return rawSocket{s}, nil }

type rawSocket struct{ s *Socket }

func (r rawSocket) Control(f func(fd uintptr)) error {
	return r.Write(func(fd uintptr) bool { f(fd); return true })
}
func (r rawSocket) Read(f func(fd uintptr) bool) error { return r.Write(f) }

func (r rawSocket) Write(f func(fd uintptr) bool) error {
	r.s.using.RLock()
	defer r.s.using.RUnlock()
	if r.s.closed.Load() {
		return r.s.fault("raw", net.ErrClosed)
	}
	f(uintptr(r.s.fd))
	return nil
}

// LocalAddr implements net.Conn; the ends of a socket pair have no names.
func (s *Socket) LocalAddr() net.Addr { return s.name }

// RemoteAddr is like LocalAddr.
func (s *Socket) RemoteAddr() net.Addr { return s.name }

// SetDeadline sets both deadlines.
func (s *Socket) SetDeadline(t time.Time) error {
	return errors.Join(s.SetReadDeadline(t), s.SetWriteDeadline(t))
}

// SetReadDeadline counts from the next Read on.
func (s *Socket) SetReadDeadline(t time.Time) error { return setDeadline(&s.readBy, t) }

// SetWriteDeadline counts from the next Write on.
func (s *Socket) SetWriteDeadline(t time.Time) error { return setDeadline(&s.writeBy, t) }

func setDeadline(by *atomic.Int64, t time.Time) error {
	if t.IsZero() {
		by.Store(0)
	} else {
		by.Store(t.UnixNano())
	}
	return nil
}
