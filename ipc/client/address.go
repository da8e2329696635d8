package client

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/url"
	"slices"
	"strings"

	"github.com/executord/executord/ipc/quiet"
)

// endpoint is a parsed address.
type endpoint struct {
	network string // of net.Dial
	address string
	url     string // of the WebSocket, without its scheme for TLS: dial speaks that
	tls     bool
}

const sessionPath = "/v1/session"

// parseAddress reads unix:/path, tcp://host:port, or ws://host:port with an optional path before /v1/session; tls:// and
// wss:// are the last two over TLS.
func parseAddress(s string) (endpoint, error) {
	if path, ok := strings.CutPrefix(s, "unix:"); ok {
		path = strings.TrimPrefix(path, "//")
		if !strings.HasPrefix(path, "/") {
			return endpoint{}, fmt.Errorf("cannot use address %q: the path after unix: must be absolute", s)
		}
		return endpoint{network: "unix", address: path, url: "ws://localhost" + sessionPath}, nil
	}
	u, err := url.Parse(s)
	switch {
	case err != nil:
		return endpoint{}, fmt.Errorf("cannot use address %q: %w", s, errors.Unwrap(err))
	case !slices.Contains([]string{"tcp", "ws", "tls", "wss"}, u.Scheme):
		return endpoint{}, fmt.Errorf("cannot use address %q: it must begin with unix:, tcp://, ws://, tls:// or wss://", s)
	case u.Port() == "" || u.Hostname() == "" || u.User != nil || u.RawQuery != "" || u.Fragment != "":
		return endpoint{}, fmt.Errorf("cannot use address %q: it must have a host and a port and no more", s)
	case (u.Scheme == "tcp" || u.Scheme == "tls") && strings.Trim(u.Path, "/") != "":
		return endpoint{}, fmt.Errorf("cannot use address %q: a %s address has no path", s, u.Scheme)
	}
	path := strings.TrimSuffix(strings.TrimSuffix(u.Path, "/"), sessionPath)
	return endpoint{"tcp", u.Host, "ws://" + u.Host + path + sessionPath, u.Scheme == "tls" || u.Scheme == "wss"}, nil
}

// dial connects. Over TLS the name of the service is that in the address, unless config says another.
func (e endpoint) dial(ctx context.Context, config *tls.Config) (net.Conn, error) {
	if e.tls {
		return (&tls.Dialer{Config: config}).DialContext(ctx, e.network, e.address)
	}
	var d net.Dialer
	c, err := d.DialContext(ctx, e.network, e.address)
	if err != nil {
		return nil, err
	}
	return quiet.Of(c), nil
}
