package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"strings"
	"syscall"

	"github.com/executord/executord/ipc/protocol"
)

// unreachable is an error of a service that does not answer; its exit status is exitUnreachable.
type unreachable struct{ error }

// hint tells what can be done where nobody answers.
func hint(address string, err error) error {
	start := "executord --listen " + address
	if address == "unix:"+defaultSocket {
		start = "systemctl start executord"
	}
	return hintAt(address, err, start, ", or use --embedded")
}

// adminHint does so for the admin socket.
func adminHint(address string, err error) error {
	start := "executord --admin-listen " + address
	if address == "unix:"+defaultAdminSocket {
		start = "systemctl start executord"
	}
	if errors.Is(err, protocol.UnknownMethod) {
		return fmt.Errorf("%w; is %s the socket of the operator, and not that of callers?", err, address)
	}
	return hintAt(address, err, start, ", or say with --address or $EXECUTORCTL_ADDRESS where its admin socket is")
}

func hintAt(address string, err error, start, or string) error {
	var socket *net.OpError
	var typed *protocol.Error
	switch {
	case err == nil, errors.Is(err, context.Canceled), errors.As(err, &typed): // it was answered
		return err
	case errors.Is(err, fs.ErrNotExist), errors.Is(err, syscall.ECONNREFUSED):
		return unreachable{fmt.Errorf("cannot reach the service: nobody listens on %s; start it with %q%s", address, start, or)}
	case errors.Is(err, fs.ErrPermission) && strings.HasPrefix(address, "unix:"):
		return unreachable{fmt.Errorf("cannot reach the service: you may not use the socket %s; its group may", strings.TrimPrefix(address, "unix:"))}
	case errors.Is(err, context.DeadlineExceeded), errors.As(err, &socket) && socket.Op == "dial":
		return unreachable{fmt.Errorf("cannot reach the service: %w", err)}
	}
	return err
}
