package quiet

import (
	"os"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// gate is an epoll descriptor that watches one other, and is itself watched by the poller of the runtime. Whoever waits for
// an event reads the gate.
type gate struct {
	file *os.File
	raw  syscall.RawConn
}

// newGate watches fd for events of epoll_ctl(2). Nobody waits for them longer than until by; the zero time is no deadline.
func newGate(fd int, events uint32, by time.Time) (*gate, error) {
	epoll, err := unix.EpollCreate1(unix.EPOLL_CLOEXEC)
	if err != nil {
		return nil, os.NewSyscallError("epoll_create1", err)
	}
	err = os.NewSyscallError("epoll_ctl", unix.EpollCtl(epoll, unix.EPOLL_CTL_ADD, fd, &unix.EpollEvent{Events: events}))
	if err == nil {
		err = os.NewSyscallError("fcntl", unix.SetNonblock(epoll, true)) // tells NewFile that it can be polled
	}
	if err != nil {
		_ = unix.Close(epoll)
		return nil, err
	}
	g := &gate{file: os.NewFile(uintptr(epoll), "epoll")}
	if g.raw, err = g.file.SyscallConn(); err == nil {
		err = g.file.SetReadDeadline(by) // which tells, too, whether the poller took it
	}
	if err != nil {
		_ = g.file.Close()
		return nil, err
	}
	return g, nil
}
