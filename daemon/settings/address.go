package settings

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"path/filepath"
	"strings"
)

// maxSocketPath is what sun_path of unix(7) holds before its zero.
const maxSocketPath = 107

// beside is the address of the operator's socket in the folder of the first unix socket; empty where there is none.
func beside(listen []string) string {
	for _, text := range listen {
		if a, err := ParseAddress(text); err == nil && a.Network() == "unix" {
			return "unix:" + filepath.Join(filepath.Dir(a.String()), "admin.sock")
		}
	}
	return ""
}

// ParseAddress reads an address to listen on: unix:/path with an absolute path, or tcp://address:port.
func ParseAddress(text string) (net.Addr, error) {
	if path, ok := strings.CutPrefix(text, "unix:"); ok {
		path = strings.TrimPrefix(path, "//")
		if !filepath.IsAbs(path) {
			return nil, errors.New("the path of a unix socket must be absolute")
		}
		if len(path) > maxSocketPath {
			return nil, fmt.Errorf("the path of a unix socket has at most %d bytes", maxSocketPath)
		}
		return &net.UnixAddr{Name: path, Net: "unix"}, nil
	}
	hostport, ok := strings.CutPrefix(text, "tcp://")
	if !ok {
		return nil, errors.New("an address begins with unix: or tcp://")
	}
	// An IP address and no name: what a name stands for is not the operator's word.
	addr, err := netip.ParseAddrPort(strings.Replace(hostport, "localhost:", "127.0.0.1:", 1))
	if err != nil {
		return nil, errors.New("a tcp address is an IP address and a port")
	}
	return net.TCPAddrFromAddrPort(addr), nil
}
