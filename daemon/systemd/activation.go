package systemd

import (
	"fmt"
	"net"
	"sync"

	"github.com/coreos/go-systemd/v22/activation"
)

// Names of the sockets, as their units call them (FileDescriptorName=, systemd.socket(5)).
const (
	ServiceSocket = "executord"       // the protocol's, on a unix socket
	TCPSocket     = "executord-tcp"   // the same, on TCP
	AdminSocket   = "executord-admin" // the admin app's
)

// Listeners are the sockets that systemd passed to this process, by name. They are fetched once, and belong to whoever
// takes them first: later calls return the same ones. Closing one leaves the socket with systemd, and its file where it
// is. A name that is none of the above is an error, so that a socket is never held and not served.
func Listeners() (map[string][]net.Listener, error) { return passed() }

var passed = sync.OnceValues(func() (map[string][]net.Listener, error) {
	named, err := activation.ListenersWithNames()
	if err != nil {
		return nil, fmt.Errorf("cannot take the sockets of systemd: %w", err)
	}
	for name, ls := range named {
		for _, l := range ls {
			if l == nil {
				return nil, fmt.Errorf("cannot take the sockets of systemd: %q is no stream socket", name)
			}
		}
		switch name {
		case ServiceSocket, TCPSocket, AdminSocket:
		default:
			return nil, fmt.Errorf("cannot take the sockets of systemd: there is no use for one named %q (FileDescriptorName=)", name)
		}
	}
	return named, nil
})
