// Executord is the service that runs programs: it listens for callers and keeps a pool of worker processes.
package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"github.com/executord/executord/cmd/internal/goruntime"
	"github.com/executord/executord/daemon"
	"github.com/executord/executord/daemon/telemetry"
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
	log, err := telemetry.NewLogger(os.Stderr, telemetry.Format(loaded.Settings().LogFormat), loaded.Settings().LogLevel)
	if err != nil {
		fail(err, exitUsage)
	}
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
