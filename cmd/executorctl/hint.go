package main

import (
	"errors"
	"fmt"
	"io/fs"
	"strings"
	"syscall"
)

// hint tells what can be done where nobody answers.
func hint(address string, err error) error {
	start := "executord --listen " + address
	if address == "unix:"+defaultSocket {
		start = "systemctl start executord"
	}
	switch {
	case errors.Is(err, fs.ErrNotExist), errors.Is(err, syscall.ECONNREFUSED):
		return fmt.Errorf("cannot reach the service: nobody listens on %s; start it with %q, or use --embedded", address, start)
	case errors.Is(err, fs.ErrPermission) && strings.HasPrefix(address, "unix:"):
		return fmt.Errorf("cannot reach the service: you may not use the socket %s; its group may", strings.TrimPrefix(address, "unix:"))
	}
	return err
}
