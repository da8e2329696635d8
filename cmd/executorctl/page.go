package main

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"strconv"
	"time"

	"github.com/executord/executord/daemon/admin"
)

// pageCommand is executorctl page.
type pageCommand struct {
	textCommand
	Port uint16 `placeholder:"PORT" help:"The port of 127.0.0.1. Default: any that is free."`
}

// Bounds of who asks at the port, which every user of the machine can reach.
const (
	pageHeaderTimeout = 10 * time.Second
	pageIdleTimeout   = time.Minute
	pageHeaderBytes   = 16 << 10
)

// Run serves the live page until it is interrupted. The URL has an address and not the name localhost, of which another
// user might have the IPv6 half, and would be told the secret.
func (c *pageCommand) Run(ctx context.Context, w *world) error {
	address := operator{Address: c.Address}.address(w)
	a, err := admin.NewClient(address)
	if err != nil {
		return err
	}
	defer a.Close()
	if _, err := a.Status(ctx); err != nil {
		return adminHint(address, err)
	}
	l, err := net.Listen("tcp4", net.JoinHostPort("127.0.0.1", strconv.Itoa(int(c.Port))))
	if err != nil {
		return fmt.Errorf("cannot serve the page: %w", err)
	}
	secret := rand.Text() // 130 bits
	server := &http.Server{
		Handler: a.PageHandler(secret), ReadHeaderTimeout: pageHeaderTimeout, IdleTimeout: pageIdleTimeout, MaxHeaderBytes: pageHeaderBytes,
		ErrorLog: log.New(io.Discard, "", 0), // of what strangers send
	}
	stop := context.AfterFunc(ctx, func() { _ = server.Close() })
	defer stop()
	w.line("http://%s/%s/", l.Addr().String(), secret)
	_, _ = fmt.Fprintln(w.err, "Whoever has this URL and an account on this machine may look, and no more. Ctrl-C ends it.")
	if err := server.Serve(l); !errors.Is(err, http.ErrServerClosed) {
		return cmp.Or(ctx.Err(), fmt.Errorf("cannot go on serving the page: %w", err))
	}
	return nil
}
