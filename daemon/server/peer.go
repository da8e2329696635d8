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
	"syscall"

	"github.com/executord/executord/daemon/peercred"
	"github.com/executord/executord/ipc/quiet"
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
	case *quiet.Conn:
		return unixPeer(c)
	case *tls.Conn:
		return peerOf(c.NetConn())
	case *net.TCPConn:
		return peer{addr: addrOf(c.RemoteAddr()), local: addrOf(c.LocalAddr())}
	}
	return peer{err: fmt.Errorf("a %T has no peer that can be told", c)}
}

func unixPeer(c syscall.Conn) peer {
	cred, err := peercred.Of(c)
	if err != nil {
		return peer{err: err}
	}
	return peer{unix: true, uid: cred.UID, gids: cred.Groups}
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
