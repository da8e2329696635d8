package server

import (
	"crypto/sha256"
	"crypto/subtle"
	"crypto/x509"
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
//
// On TCP everything that is set has to be satisfied: with ClientCAs and Tokens a caller needs a certificate and a token.
type Policy struct {
	UIDs      []uint32       // further users on unix sockets
	GIDs      []uint32       // groups whose members are admitted there, supplementary groups included
	Hosts     []string       // further values of the Host header on TCP, without port
	Origins   []string       // values of the Origin header that are not refused
	Tokens    []Token        // bearer tokens; when there are any, every request on TCP needs one
	ClientCAs *x509.CertPool // when set, every caller on TCP needs a certificate of one of these; needs Config.Certificate
	Proxies   []netip.Prefix // addresses with many callers behind them, besides those of this machine

	own *x509.Certificate // of the service: the names in it are taken as Host
}

// Token is one named bearer token (RFC 6750).
type Token struct {
	Name   string // becomes the caller's identity
	Secret string
}

// minSecretBytes keeps a forgotten placeholder from becoming a credential.
const minSecretBytes = 16

// Check refuses tokens that are none, and TCP addresses that others than this machine can reach unless callers need a
// token or a certificate.
func (p Policy) Check(listen ...net.Addr) error {
	for _, t := range p.Tokens {
		if t.Name == "" || len(t.Secret) < minSecretBytes {
			return fmt.Errorf("cannot accept token %q: it needs a name and a secret of at least %d bytes", t.Name, minSecretBytes)
		}
	}
	for _, a := range listen {
		if tcp, ok := a.(*net.TCPAddr); ok && !tcp.IP.IsLoopback() && len(p.Tokens) == 0 && p.ClientCAs == nil {
			return fmt.Errorf("cannot listen on %s: without tokens or client certificates only loopback addresses are allowed on TCP", tcp)
		}
	}
	return nil
}

// Reason says why the Policy refused a request. The set is closed and append-only.
type Reason string

// The reasons.
const (
	BadOrigin      Reason = "origin"      // a web page that is not on the list
	BadHost        Reason = "host"        // not a name of this service
	UnknownPeer    Reason = "peer"        // the kernel does not tell who is at the other end
	ForeignUser    Reason = "user"        // neither user nor groups are on the lists
	ForeignAddress Reason = "address"     // another machine, where nobody needs to say who he is
	NoToken        Reason = "no_token"    // none was shown
	BadToken       Reason = "token"       // it is not on the list
	BadCertificate Reason = "certificate" // none, or of nobody on the list
	Throttled      Reason = "throttled"   // not looked at: this peer was refused too often of late
)

// Reasons are all of them.
func Reasons() []Reason {
	return []Reason{BadOrigin, BadHost, UnknownPeer, ForeignUser, ForeignAddress, NoToken, BadToken, BadCertificate, Throttled}
}

// refusal is why a request is refused, for the operator and for the caller.
type refusal struct {
	reason Reason
	err    *protocol.Error
}

func refuse(reason Reason, format string, args ...any) *refusal {
	return &refusal{reason, protocol.Errorf(protocol.Unauthorized, format, args...)}
}

// caller is who sends a request: what the kernel and the caller showed, and the identity that follows from it.
type caller struct {
	identity string
	peer     peer
	secret   *[sha256.Size]byte  // hash of the bearer token, nil without
	chain    []*x509.Certificate // the caller's own first; of the TLS connection, which knows that it has the key
}

// identify says who sends r, or why it is refused.
func (p Policy) identify(r *http.Request, from peer) (who caller, no *refusal) {
	if origins := r.Header["Origin"]; len(origins) > 0 && !(len(origins) == 1 && slices.Contains(p.Origins, origins[0])) {
		return who, refuse(BadOrigin, "requests of web pages are not taken: the Origin header is not on the list")
	}
	if from.err == nil && !from.unix && !p.hostAllowed(r.Host, from.local) {
		return who, refuse(BadHost, "the Host header is not a name of this service")
	}
	who = caller{peer: from}
	if scheme, secret, _ := strings.Cut(r.Header.Get("Authorization"), " "); strings.EqualFold(scheme, "Bearer") {
		hash := sha256.Sum256([]byte(strings.TrimSpace(secret)))
		who.secret = &hash
	}
	if r.TLS != nil {
		who.chain = r.TLS.PeerCertificates
	}
	who.identity, no = p.recognise(who)
	return who, no
}

// recognise gives the identity of a caller by what it showed once. It is asked again when the policy changed.
func (p Policy) recognise(who caller) (identity string, no *refusal) {
	switch {
	case who.peer.err != nil:
		return "", refuse(UnknownPeer, "cannot tell who is calling: %s", who.peer.err)
	case who.peer.unix:
		return p.recogniseUser(who.peer)
	case len(p.Tokens) == 0 && p.ClientCAs == nil && !who.peer.addr.IsLoopback():
		return "", refuse(ForeignAddress, "only callers on this machine are taken without a token")
	}
	identity = who.peer.name()
	if p.ClientCAs != nil {
		if identity, no = p.recogniseCertificate(who.chain); no != nil {
			return "", no
		}
	}
	if len(p.Tokens) > 0 {
		identity, no = p.recogniseToken(who.secret)
	}
	return identity, no
}

// holds tells whether a caller that was identified once would be again, as the same.
func (p Policy) holds(who caller) bool {
	identity, no := p.recognise(who)
	return no == nil && identity == who.identity
}

func (p Policy) recogniseUser(from peer) (string, *refusal) {
	if from.uid == 0 || from.uid == ownUID || slices.Contains(p.UIDs, from.uid) {
		return from.name(), nil
	}
	for _, gid := range from.gids {
		if slices.Contains(p.GIDs, gid) {
			return from.name(), nil
		}
	}
	return "", refuse(ForeignUser, "user %d may not use this service", from.uid)
}

// recogniseToken compares in a time that tells nothing of the secrets.
func (p Policy) recogniseToken(got *[sha256.Size]byte) (string, *refusal) {
	if got == nil {
		return "", refuse(NoToken, "a bearer token is needed")
	}
	name := ""
	for _, t := range p.Tokens {
		want := sha256.Sum256([]byte(t.Secret))
		if subtle.ConstantTimeCompare(got[:], want[:]) == 1 {
			name = t.Name
		}
	}
	if name == "" {
		return "", refuse(BadToken, "the bearer token is not known")
	}
	return "token:" + name, nil
}

// shared tells that behind a peer there may be a proxy and many callers: one that keeps being refused must not lock out
// the others.
func (p Policy) shared(from peer) bool {
	return from.here() || slices.ContainsFunc(p.Proxies, func(n netip.Prefix) bool { return n.Contains(from.addr) })
}

// hostAllowed keeps a web page from reaching the service under a name that its owner points here (DNS rebinding).
func (p Policy) hostAllowed(hostport string, local netip.Addr) bool {
	host, err := HostOnly(hostport)
	if err != nil {
		return false
	}
	if slices.ContainsFunc(p.Hosts, func(h string) bool { return strings.EqualFold(h, host) }) {
		return true
	}
	if strings.EqualFold(host, "localhost") || p.own != nil && p.own.VerifyHostname(host) == nil {
		return true
	}
	addr, err := netip.ParseAddr(host)
	return err == nil && (addr.IsLoopback() || addr.Unmap() == local)
}

// HostOnly is the name or address in a Host header (RFC 9110, section 7.2), without brackets and port; an error where the
// header is not one.
func HostOnly(hostport string) (string, error) {
	host, port, bracketed := hostport, "", strings.HasPrefix(hostport, "[")
	if bracketed {
		end := strings.IndexByte(hostport, ']')
		if end < 0 {
			return "", errors.New("cannot take a host with half its brackets")
		}
		host, port = hostport[1:end], hostport[end+1:]
		if addr, err := netip.ParseAddr(host); err != nil || !addr.Is6() {
			return "", errors.New("cannot take what stands in brackets for an IPv6 address")
		}
	} else if colon := strings.IndexByte(hostport, ':'); colon >= 0 {
		host, port = hostport[:colon], hostport[colon:]
	}
	if host == "" || strings.ContainsAny(host, "[]") {
		return "", errors.New("cannot take an empty host, or stray brackets")
	}
	if port != "" && (port[0] != ':' || strings.Trim(port[1:], "0123456789") != "") {
		return "", errors.New("cannot take a port that is no number")
	}
	return host, nil
}
