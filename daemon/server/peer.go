package server

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"os"

	"golang.org/x/sys/unix"
)

// ownUID is the user that the service runs as.
var ownUID = uint32(os.Getuid())

// peer is what the kernel says about the other end of a connection. It is found once, when the connection is accepted.
type peer struct {
	unix  bool
	uid   uint32     // with unix
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
	case *net.TCPConn:
		return peer{addr: addrOf(c.RemoteAddr()), local: addrOf(c.LocalAddr())}
	}
	return peer{err: fmt.Errorf("a %T has no peer that can be told", c)}
}

// unixPeer asks for the credentials that the kernel noted when the peer connected (SO_PEERCRED, unix(7)).
func unixPeer(c *net.UnixConn) peer {
	raw, err := c.SyscallConn()
	if err != nil {
		return peer{err: err}
	}
	var cred *unix.Ucred
	var optErr error
	err = raw.Control(func(fd uintptr) { cred, optErr = unix.GetsockoptUcred(int(fd), unix.SOL_SOCKET, unix.SO_PEERCRED) })
	if err := errors.Join(err, optErr); err != nil {
		return peer{err: err}
	}
	return peer{unix: true, uid: cred.Uid}
}

func addrOf(a net.Addr) netip.Addr {
	if tcp, ok := a.(*net.TCPAddr); ok {
		return tcp.AddrPort().Addr().Unmap()
	}
	return netip.Addr{}
}

func callerOf(r *http.Request) peer {
	if p, ok := r.Context().Value(peerKey{}).(peer); ok {
		return p
	}
	return peer{err: errors.New("the HTTP server does not tell")}
}
