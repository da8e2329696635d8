package egress

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/executord/executord/ipc/executor"
	"github.com/executord/executord/ipc/fetch"
	"github.com/executord/executord/ipc/protocol"
)

// Config of an Egress. Defaults fills everything but what may be reached.
type Config struct {
	Allow   []Pattern      // what may be reached; nothing else is
	Private []netip.Prefix // addresses that may be reached though they are not of the Internet

	Connections int           // of all programs at once
	HeadTimeout time.Duration // from the request to the head of the response
	IdleTimeout time.Duration // the longest that a body may pause

	// Resolver finds addresses; nil is the host's own.
	Resolver *net.Resolver
}

// Defaults returns a Config that allows nothing.
func Defaults() Config {
	return Config{Connections: 512, HeadTimeout: 30 * time.Second, IdleTimeout: 2 * time.Minute}
}

const (
	connectTimeout = 10 * time.Second
	maxConnections = 1 << 16
	maxTimeout     = time.Hour
)

// Egress performs exchanges under one policy. It may be used by several goroutines at once.
type Egress struct {
	config Config
	fetch  executor.Fetch
	places chan struct{} // has an item for each connection
}

// New checks c.
func New(c Config) (*Egress, error) {
	switch {
	case len(c.Allow) == 0:
		return nil, errors.New("cannot make an egress that may reach nothing")
	case c.Connections < 1 || c.Connections > maxConnections:
		return nil, fmt.Errorf("cannot make an egress of %d connections, must be from 1 to %d", c.Connections, maxConnections)
	case c.HeadTimeout <= 0 || c.HeadTimeout > maxTimeout, c.IdleTimeout <= 0 || c.IdleTimeout > maxTimeout:
		return nil, fmt.Errorf("cannot make an egress with timeouts of %s and %s, must be over 0 and at most %s",
			c.HeadTimeout, c.IdleTimeout, maxTimeout)
	}
	e := &Egress{config: c, places: make(chan struct{}, c.Connections)}
	e.fetch = fetch.Over(e.transport())
	return e, nil
}

// transport has nothing that outlives an exchange, so that no program learns of another's connections.
func (e *Egress) transport() *http.Transport {
	dialer := &net.Dialer{Timeout: connectTimeout, Resolver: e.config.Resolver, KeepAlive: -1, Control: e.control}
	return &http.Transport{
		DialContext:            dialer.DialContext,
		TLSHandshakeTimeout:    connectTimeout,
		ResponseHeaderTimeout:  e.config.HeadTimeout,
		MaxResponseHeaderBytes: protocol.MaxHeaderBytes,
		DisableKeepAlives:      true,
		DisableCompression:     true, // package fetch decodes, as the program reads
	}
}

// Fetch performs one exchange; it is an executor.Fetch.
func (e *Egress) Fetch(ctx context.Context, r executor.FetchCall) (*executor.FetchResponse, error) {
	if err := r.Check(); err != nil {
		return nil, err
	}
	if err := e.allowed(r.URL); err != nil {
		return nil, err
	}
	select {
	case e.places <- struct{}{}:
	default:
		return nil, refuse("too many requests of all programs are under way")
	}
	ctx, cancel := context.WithCancelCause(ctx)
	release := sync.OnceFunc(func() {
		cancel(nil)
		<-e.places
	})
	head := time.AfterFunc(e.config.HeadTimeout, func() { cancel(errTimeout) })
	response, err := e.fetch(ctx, r)
	head.Stop()
	if err != nil {
		release()
		return nil, err
	}
	if response.Body == nil {
		release()
		return response, nil
	}
	response.Body = &body{ReadCloser: response.Body, release: release, idle: e.config.IdleTimeout, cancel: cancel}
	return response, nil
}

// allowed holds an address to the list.
func (e *Egress) allowed(address string) error {
	u, err := protocol.ParseFetchURL(address)
	if err != nil {
		return refuse("the URL cannot be used")
	}
	host := strings.TrimSuffix(u.Hostname(), ".")
	port := defaultPorts[u.Scheme]
	if text := u.Port(); text != "" {
		n, err := strconv.ParseUint(text, 10, 16)
		if err != nil {
			return refuse("the port %.10q is none", text)
		}
		port = uint16(n)
	}
	if !validHost(host) {
		return refuse("the host %.80q is none", host)
	}
	for _, p := range e.config.Allow {
		if p.matches(u.Scheme, canonical(host), port) {
			return nil
		}
	}
	return refuse("%s://%s is not among the addresses that this service lets programs reach (--egress-allow)", u.Scheme, u.Host)
}

// control sees the address that a connection is about to be made to, after all resolution.
func (e *Egress) control(_, address string, _ syscall.RawConn) error {
	to, err := netip.ParseAddrPort(address)
	if err != nil {
		return refuse("the host has no address")
	}
	if public(to.Addr()) || within(plain(to.Addr()), e.config.Private) {
		return nil
	}
	return refuse("the host's address is not on the Internet, and not among those that this service makes an exception for (--egress-allow-private)")
}

// errTimeout ends an exchange that takes too long.
var errTimeout error = &timeout{}

type timeout struct{}

func (*timeout) Error() string { return "the other side took too long" }
func (*timeout) Timeout() bool { return true }

func refuse(format string, args ...any) error {
	return &protocol.ThrownError{Name: "TypeError", Message: "fetch: " + fmt.Sprintf(format, args...), Code: Refused}
}

// Refused is the code of an error of the policy.
const Refused = "EGRESS"

// body gives its connection's place free, and up when nothing comes for too long.
type body struct {
	io.ReadCloser
	release func()
	idle    time.Duration
	cancel  context.CancelCauseFunc
}

func (b *body) Read(p []byte) (int, error) {
	timer := time.AfterFunc(b.idle, func() { b.cancel(errTimeout) })
	defer timer.Stop()
	return b.ReadCloser.Read(p)
}

func (b *body) Close() error {
	err := b.ReadCloser.Close()
	b.release()
	return err
}
