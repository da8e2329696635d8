package server

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"os"
	"unsafe"

	"golang.org/x/sys/unix"
)

// ownUID is the user that the service runs as.
var ownUID = uint32(os.Getuid())

// peer is what the kernel says about the other end of a connection. It is found once, when the connection is accepted.
type peer struct {
	unix  bool
	uid   uint32     // with unix
	gids  []uint32   // with unix: its group and supplementary groups
	addr  netip.Addr // with TCP: the other end, and this one
	local netip.Addr
	err   error // nothing is known
}

// name tells peers apart; it is the identity of a caller without a token.
func (p peer) name() string {
	switch {
	case p.err != nil:
		return ""
	case p.unix:
		return fmt.Sprintf("uid:%d", p.uid)
	}
	return "addr:" + p.addr.String()
}

// network is whom refusals are counted for: the user, or the address. A host with IPv6 has 2^64 of them at the least.
func (p peer) network() string {
	if p.addr.Is6() {
		if prefix, err := p.addr.Prefix(64); err == nil {
			return "addr:" + prefix.String()
		}
	}
	return p.name()
}

// here tells that the peer is on this machine.
func (p peer) here() bool { return p.unix || p.addr.IsLoopback() }

type peerKey struct{}

// ConnContext remembers who is at the other end of a connection. An http.Server that is given a Server as its handler
// needs it as its ConnContext; Server.Serve has it already.
func (s *Server) ConnContext(ctx context.Context, c net.Conn) context.Context {
	return context.WithValue(ctx, peerKey{}, peerOf(c))
}

func peerOf(c net.Conn) peer {
	switch c := c.(type) {
	case *net.UnixConn:
		return unixPeer(c)
	case *tls.Conn:
		return peerOf(c.NetConn())
	case *net.TCPConn:
		return peer{addr: addrOf(c.RemoteAddr()), local: addrOf(c.LocalAddr())}
	}
	return peer{err: fmt.Errorf("a %T has no peer that can be told", c)}
}

// unixPeer asks for the credentials that the kernel noted when the peer connected (SO_PEERCRED and SO_PEERGROUPS, unix(7)
// and socket(7); the latter since Linux 4.13).
func unixPeer(c *net.UnixConn) peer {
	raw, err := c.SyscallConn()
	if err != nil {
		return peer{err: err}
	}
	p := peer{unix: true}
	var failure error
	err = raw.Control(func(fd uintptr) { failure = p.ask(int(fd)) })
	if err := errors.Join(err, failure); err != nil {
		return peer{err: err}
	}
	return p
}

func (p *peer) ask(fd int) error {
	cred, err := unix.GetsockoptUcred(fd, unix.SOL_SOCKET, unix.SO_PEERCRED)
	if err != nil {
		return os.NewSyscallError("getsockopt SO_PEERCRED", err)
	}
	more, err := peerGroups(fd)
	if err != nil {
		return os.NewSyscallError("getsockopt SO_PEERGROUPS", err)
	}
	p.uid, p.gids = cred.Uid, append(more, cred.Gid)
	return nil
}

// peerGroups are the supplementary groups. The kernel answers ERANGE, and how much room it needs, where they are more.
func peerGroups(fd int) ([]uint32, error) {
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

func addrOf(a net.Addr) netip.Addr {
	if tcp, ok := a.(*net.TCPAddr); ok {
		return tcp.AddrPort().Addr().Unmap()
	}
	return netip.Addr{}
}

func peerOfRequest(r *http.Request) peer {
	if p, ok := r.Context().Value(peerKey{}).(peer); ok {
		return p
	}
	return peer{err: errors.New("the HTTP server does not tell")}
}
