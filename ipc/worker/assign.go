package worker

import (
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"time"

	"golang.org/x/sys/unix"
)

// Task is what a worker is for that the parent did not start itself, but met on a socket which a service manager
// accepted for it. Both sides are one process each, and the first frame comes after it.
type Task byte

// The tasks. A worker that does not know its task ends.
const (
	TaskServe    Task = 'r' // serve; the startup snapshot comes along as a descriptor
	TaskSnapshot Task = 's' // write a startup snapshot to the socket, without frames, and end
)

// introduction is what such a worker says first, so that the kernel tells the parent who it is.
const introduction = "executor-worker 1\n"

// Peer is the process at the other end of a socket, by the kernel's word (SCM_CREDENTIALS, unix(7)).
type Peer struct{ PID, UID, GID int }

// ListenForPeer has the kernel tell the sender of each message on a socket. It must be called before the worker can have
// spoken, that is before the socket is connected.
func ListenForPeer(fd uintptr) error {
	return os.NewSyscallError("setsockopt", unix.SetsockoptInt(int(fd), unix.SOL_SOCKET, unix.SO_PASSCRED, 1))
}

// Meet waits until deadline for the worker to introduce itself. The connection must have been prepared by ListenForPeer.
func Meet(c *net.UnixConn, deadline time.Time) (Peer, error) {
	_ = c.SetReadDeadline(deadline)
	defer func() { _ = c.SetReadDeadline(time.Time{}) }()
	var p Peer
	text, oob := make([]byte, len(introduction)), make([]byte, unix.CmsgSpace(unix.SizeofUcred))
	for got := 0; got < len(text); {
		n, oobn, flags, _, err := c.ReadMsgUnix(text[got:], oob)
		switch {
		case err != nil:
			return Peer{}, fmt.Errorf("worker did not introduce itself: %w", err)
		case n == 0:
			return Peer{}, fmt.Errorf("worker did not introduce itself: %w", io.ErrUnexpectedEOF)
		case flags&unix.MSG_CTRUNC != 0:
			return Peer{}, errors.New("worker sent descriptors to introduce itself")
		}
		from, err := sender(oob[:oobn])
		if err != nil {
			return Peer{}, err
		}
		if got > 0 && from != p {
			return Peer{}, errors.New("two processes introduced themselves as one worker")
		}
		p, got = from, got+n
	}
	if string(text) != introduction {
		return Peer{}, fmt.Errorf("worker introduced itself as %q, not as %q", text, introduction)
	}
	if p.PID <= 0 {
		return Peer{}, errors.New("worker is in another namespace of processes, and cannot be watched")
	}
	return p, nil
}

func sender(oob []byte) (Peer, error) {
	messages, err := unix.ParseSocketControlMessage(oob)
	if err != nil {
		return Peer{}, fmt.Errorf("cannot tell who the worker is: %w", err)
	}
	for _, m := range messages {
		if c, err := unix.ParseUnixCredentials(&m); err == nil {
			return Peer{PID: int(c.Pid), UID: int(c.Uid), GID: int(c.Gid)}, nil
		}
	}
	return Peer{}, errors.New("cannot tell who the worker is: the kernel does not say")
}

// Assign gives the worker its task. The snapshot is for TaskServe; nil has it start without one.
func Assign(c *net.UnixConn, t Task, snapshot *os.File) error {
	var rights []byte
	if snapshot != nil {
		rights = unix.UnixRights(int(snapshot.Fd()))
	}
	if _, _, err := c.WriteMsgUnix([]byte{byte(t)}, rights, nil); err != nil {
		return fmt.Errorf("cannot tell the worker its task: %w", err)
	}
	return nil
}

// Introduce is the worker's side of Meet and Assign, on an inherited socket in blocking mode. Snapshot is a descriptor,
// -1 where there is none. It waits for the parent as long as there is one.
func Introduce(fd int) (t Task, snapshot int, err error) {
	if err := unix.SetNonblock(fd, false); err != nil {
		return 0, -1, os.NewSyscallError("fcntl", err)
	}
	if _, err := unix.Write(fd, []byte(introduction)); err != nil {
		return 0, -1, os.NewSyscallError("write", err)
	}
	text, oob := make([]byte, 1), make([]byte, unix.CmsgSpace(4))
	for {
		n, oobn, _, _, err := unix.Recvmsg(fd, text, oob, unix.MSG_CMSG_CLOEXEC)
		switch {
		case err == unix.EINTR:
			continue
		case err != nil:
			return 0, -1, os.NewSyscallError("recvmsg", err)
		case n == 0:
			return 0, -1, io.ErrUnexpectedEOF
		}
		snapshot, err = descriptor(oob[:oobn])
		return Task(text[0]), snapshot, err
	}
}

func descriptor(oob []byte) (int, error) {
	messages, err := unix.ParseSocketControlMessage(oob)
	if err != nil || len(messages) == 0 {
		return -1, err
	}
	fds, err := unix.ParseUnixRights(&messages[0])
	if err != nil || len(fds) != 1 {
		return -1, errors.Join(errors.New("the parent sent something else than one snapshot"), err)
	}
	return fds[0], nil
}
