package server

import (
	"crypto/sha256"
	"crypto/subtle"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"slices"
	"strings"

	"github.com/executord/executord/ipc/protocol"
)

// Policy says who may talk to the service. The zero value admits the service's own user and root on unix sockets, and
// everybody on this machine on TCP, where only loopback addresses may be listened on. No browser is admitted.
type Policy struct {
	UIDs    []uint32 // further users on unix sockets
	Hosts   []string // further values of the Host header on TCP, without port
	Origins []string // values of the Origin header that are not refused
	Tokens  []Token  // bearer tokens; when there are any, every request on TCP needs one
}

// Token is one named bearer token (RFC 6750).
type Token struct {
	Name   string // becomes the caller's identity
	Secret string
}

// minSecretBytes keeps a forgotten placeholder from becoming a credential.
const minSecretBytes = 16

// Check refuses tokens that are none, and TCP addresses that others than this machine can reach unless callers need a
// token.
func (p Policy) Check(listen ...net.Addr) error {
	for _, t := range p.Tokens {
		if t.Name == "" || len(t.Secret) < minSecretBytes {
			return fmt.Errorf("cannot accept token %q: it needs a name and a secret of at least %d bytes", t.Name, minSecretBytes)
		}
	}
	for _, a := range listen {
		if tcp, ok := a.(*net.TCPAddr); ok && !tcp.IP.IsLoopback() && len(p.Tokens) == 0 {
			return fmt.Errorf("cannot listen on %s: without tokens only loopback addresses are allowed on TCP", tcp)
		}
	}
	return nil
}

// identify returns the caller's identity, or why the request is refused.
func (p Policy) identify(r *http.Request, caller peer) (string, *protocol.Error) {
	if origins := r.Header["Origin"]; len(origins) > 0 && !(len(origins) == 1 && slices.Contains(p.Origins, origins[0])) {
		return "", protocol.Errorf(protocol.Unauthorized, "requests of web pages are not taken: the Origin header is not on the list")
	}
	if caller.err != nil {
		return "", protocol.Errorf(protocol.Unauthorized, "cannot tell who is calling: %s", caller.err)
	}
	if caller.unix {
		return p.identifyUser(caller)
	}
	if !p.hostAllowed(r.Host, caller.local) {
		return "", protocol.Errorf(protocol.Unauthorized, "the Host header is not a name of this service")
	}
	if len(p.Tokens) > 0 {
		return p.identifyToken(r)
	}
	if !caller.addr.IsLoopback() {
		return "", protocol.Errorf(protocol.Unauthorized, "only callers on this machine are taken without a token")
	}
	return caller.name(), nil
}

func (p Policy) identifyUser(caller peer) (string, *protocol.Error) {
	if caller.uid != 0 && caller.uid != ownUID && !slices.Contains(p.UIDs, caller.uid) {
		return "", protocol.Errorf(protocol.Unauthorized, "user %d may not use this service", caller.uid)
	}
	return caller.name(), nil
}

// identifyToken compares in a time that tells nothing of the secrets.
func (p Policy) identifyToken(r *http.Request) (string, *protocol.Error) {
	scheme, secret, _ := strings.Cut(r.Header.Get("Authorization"), " ")
	if !strings.EqualFold(scheme, "Bearer") {
		return "", protocol.Errorf(protocol.Unauthorized, "a bearer token is needed")
	}
	got, name := sha256.Sum256([]byte(strings.TrimSpace(secret))), ""
	for _, t := range p.Tokens {
		want := sha256.Sum256([]byte(t.Secret))
		if subtle.ConstantTimeCompare(got[:], want[:]) == 1 {
			name = t.Name
		}
	}
	if name == "" {
		return "", protocol.Errorf(protocol.Unauthorized, "the bearer token is not known")
	}
	return "token:" + name, nil
}

// hostAllowed keeps a web page from reaching the service under a name that its owner points here (DNS rebinding).
func (p Policy) hostAllowed(hostport string, local netip.Addr) bool {
	host, err := hostOnly(hostport)
	if err != nil {
		return false
	}
	if slices.ContainsFunc(p.Hosts, func(h string) bool { return strings.EqualFold(h, host) }) {
		return true
	}
	if strings.EqualFold(host, "localhost") {
		return true
	}
	addr, err := netip.ParseAddr(host)
	return err == nil && (addr.IsLoopback() || addr.Unmap() == local)
}

func hostOnly(hostport string) (string, error) {
	if hostport == "" {
		return "", errors.New("cannot take an empty host")
	}
	if host, _, err := net.SplitHostPort(hostport); err == nil {
		return host, nil
	}
	return strings.Trim(hostport, "[]"), nil
}
