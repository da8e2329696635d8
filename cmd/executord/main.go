// Executord is the service that runs programs: it listens for callers and keeps a pool of worker processes.
package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"slices"

	"github.com/executord/executord/cmd/internal/goruntime"
	"github.com/executord/executord/daemon"
	"github.com/executord/executord/daemon/systemd"
	"github.com/executord/executord/daemon/telemetry"
)

// version is set when the program is built.
var version = "devel"

// Exit statuses. 0 is an end in order.
const (
	exitFailure  = 1  // it could not start, or a listener failed
	exitCutShort = 3  // a third signal or the stop timeout ended it: outcomes may be lost
	exitConfig   = 78 // the settings are wrong: starting it again is of no use (EX_CONFIG of sysexits.h; Go's panics have 2)
)

func main() {
	goruntime.Relax()
	goruntime.Headroom(16 << 20)
	signals := listen()
	loaded, err := load()
	if err != nil {
		fail(err, exitConfig)
	}
	level := &slog.LevelVar{}
	log, err := telemetry.NewLogger(os.Stderr, telemetry.Format(loaded.Settings().LogFormat), level)
	if err != nil {
		fail(err, exitConfig)
	}
	options, err := activated()
	if err != nil {
		fail(err, exitFailure)
	}
	d, err := daemon.New(loaded.Settings(), append(options, daemon.WithVersion(version), daemon.WithLogger(log),
		daemon.WithLevel(level), daemon.WithLoaded(loaded, os.Args[1:], os.Environ()))...)
	if err != nil {
		fail(err, exitConfig)
	}
	go obey(d, signals)
	manager := systemd.Follow(d.Subscribe, log)
	go systemd.Watchdog(context.Background(), d.Alive, log)
	err = d.Run(context.Background())
	manager.Close()
	switch {
	case errors.Is(err, daemon.ErrCutShort):
		fail(err, exitCutShort)
	case err != nil:
		fail(err, exitFailure)
	}
}

// activated has the service use the sockets that systemd passed; without any it opens those of its settings.
func activated() ([]daemon.Option, error) {
	passed, err := systemd.Listeners()
	if err != nil {
		return nil, err
	}
	if len(passed) == 0 {
		return nil, nil
	}
	options := []daemon.Option{daemon.WithSuccessor(), daemon.WithListeners(slices.Concat(passed[systemd.ServiceSocket], passed[systemd.TCPSocket])...)}
	admin := passed[systemd.AdminSocket]
	if len(admin) > 1 {
		return nil, fmt.Errorf("cannot serve the operator on %d sockets", len(admin))
	}
	for _, l := range admin {
		options = append(options, daemon.WithAdminListener(l))
	}
	return options, nil
}

func fail(err error, status int) {
	fmt.Fprintf(os.Stderr, "executord: %v\n", err)
	os.Exit(status)
}
