// Package peercred asks the kernel who is at the other end of a unix socket. The listeners of the service call it, for what
// a peer says of itself is not to be believed. It must never decide anything.
//
// Any goroutine may call.
package peercred

import (
	"errors"
	"os"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

// Credentials are those of the process that connected, at that time.
type Credentials struct {
	UID    uint32
	Groups []uint32 // its group and its supplementary groups
	PID    int32
}

// Of returns the credentials that the kernel noted when the peer of c connected (SO_PEERCRED and SO_PEERGROUPS, unix(7)
// and socket(7); the latter since Linux 4.13).
func Of(c syscall.Conn) (Credentials, error) {
	raw, err := c.SyscallConn()
	if err != nil {
		return Credentials{}, err
	}
	var found Credentials
	var failure error
	err = raw.Control(func(fd uintptr) { found, failure = ask(int(fd)) })
	return found, errors.Join(err, failure)
}

func ask(fd int) (Credentials, error) {
	cred, err := unix.GetsockoptUcred(fd, unix.SOL_SOCKET, unix.SO_PEERCRED)
	if err != nil {
		return Credentials{}, os.NewSyscallError("getsockopt SO_PEERCRED", err)
	}
	more, err := groups(fd)
	if err != nil {
		return Credentials{}, os.NewSyscallError("getsockopt SO_PEERGROUPS", err)
	}
	return Credentials{UID: cred.Uid, Groups: append(more, cred.Gid), PID: cred.Pid}, nil
}

// groups are the supplementary groups. The kernel answers ERANGE, and how much room it needs, where they are more.
func groups(fd int) ([]uint32, error) {
	groups := make([]uint32, 16)
	for {
		size := uint32(len(groups)) * uint32(unsafe.Sizeof(groups[0]))
		_, _, errno := unix.Syscall6(unix.SYS_GETSOCKOPT, uintptr(fd), unix.SOL_SOCKET, unix.SO_PEERGROUPS,
			uintptr(unsafe.Pointer(&groups[0])), uintptr(unsafe.Pointer(&size)), 0)
		n := int(size / uint32(unsafe.Sizeof(groups[0])))
		switch {
		case errno == unix.ERANGE && n > len(groups):
			groups = make([]uint32, n)
		case errno != 0:
			return nil, errno
		default:
			return groups[:n], nil
		}
	}
}
