package client

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/url"
	"strings"
)

// endpoint is a parsed address.
type endpoint struct {
	network string // of net.Dial
	address string
	url     string // of the WebSocket
}

const sessionPath = "/v1/session"

// parseAddress reads unix:/path, tcp://host:port, or ws://host:port with an optional path before /v1/session.
func parseAddress(s string) (endpoint, error) {
	if path, ok := strings.CutPrefix(s, "unix:"); ok {
		path = strings.TrimPrefix(path, "//")
		if !strings.HasPrefix(path, "/") {
			return endpoint{}, fmt.Errorf("cannot use address %q: the path after unix: must be absolute", s)
		}
		return endpoint{"unix", path, "ws://localhost" + sessionPath}, nil
	}
	u, err := url.Parse(s)
	switch {
	case err != nil:
		return endpoint{}, fmt.Errorf("cannot use address %q: %w", s, errors.Unwrap(err))
	case u.Scheme != "tcp" && u.Scheme != "ws":
		return endpoint{}, fmt.Errorf("cannot use address %q: it must begin with unix:, tcp:// or ws://", s)
	case u.Port() == "" || u.Hostname() == "" || u.User != nil || u.RawQuery != "" || u.Fragment != "":
		return endpoint{}, fmt.Errorf("cannot use address %q: it must have a host and a port and no more", s)
	case u.Scheme == "tcp" && strings.Trim(u.Path, "/") != "":
		return endpoint{}, fmt.Errorf("cannot use address %q: a tcp address has no path", s)
	}
	path := strings.TrimSuffix(strings.TrimSuffix(u.Path, "/"), sessionPath)
	return endpoint{"tcp", u.Host, "ws://" + u.Host + path + sessionPath}, nil
}

func (e endpoint) dial(ctx context.Context) (net.Conn, error) {
	var d net.Dialer
	return d.DialContext(ctx, e.network, e.address)
}
