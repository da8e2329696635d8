// Executord is the service that runs programs: it listens for callers and keeps a pool of worker processes.
package main

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"os/signal"
	"syscall"

	"github.com/executord/executord/cmd/internal/goruntime"
	"github.com/executord/executord/daemon"
)

// version is set when the program is built.
var version = "devel"

// Exit statuses.
const (
	exitFailure = 1
	exitUsage   = 2
)

func main() {
	goruntime.Relax()
	goruntime.Headroom(64 << 20)
	loaded, err := load()
	if err != nil {
		fail(err, exitUsage)
	}
	log := slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: loaded.Settings().LogLevel}))
	d, err := daemon.New(loaded.Settings(), version, log)
	if err != nil {
		fail(err, exitUsage)
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop) // a second signal ends the process at once
	if err := d.Run(ctx); err != nil {
		fail(err, exitFailure)
	}
}

func fail(err error, status int) {
	fmt.Fprintf(os.Stderr, "executord: %v\n", err)
	os.Exit(status)
}
