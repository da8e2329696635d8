// Executord is the service that runs programs: it listens for callers and keeps a pool of worker processes.
package main

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"os/signal"
	"syscall"

	"github.com/alecthomas/kong"

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
	var cli struct {
		daemon.Settings
		Version kong.VersionFlag `help:"Print the version and exit."`
	}
	vars := daemon.Defaults()
	parser := kong.Must(&cli,
		kong.Name("executord"),
		kong.Description("Runs JavaScript in a sandbox and returns what it produced."),
		kong.Vars(vars), kong.Vars{"version": "executord " + version},
		kong.ExplicitGroups([]kong.Group{{Key: "default", Title: vars["default"]}, {Key: "max", Title: vars["max"]}}),
		kong.ConfigureHelp(kong.HelpOptions{Compact: true}),
	)
	if _, err := parser.Parse(os.Args[1:]); err != nil {
		fail(err, exitUsage)
	}
	log := slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: cli.LogLevel}))
	d, err := daemon.New(cli.Settings, version, log)
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
