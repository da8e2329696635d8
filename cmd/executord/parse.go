package main

import (
	"errors"
	"os"
	"slices"

	"github.com/alecthomas/kong"

	"github.com/executord/executord/daemon/settings"
)

// commandLine is the flags of the service.
type commandLine struct {
	settings.Settings
	Version kong.VersionFlag `help:"Print the version and exit."`
}

// parse reads a command line. It prints and exits where help or the version are asked for.
func parse(args []string) (settings.Settings, error) {
	var cli commandLine
	vars := settings.Defaults()
	parser := kong.Must(&cli,
		kong.Name("executord"),
		kong.Description("Runs JavaScript in a sandbox and returns what it produced."),
		kong.Vars(vars), kong.Vars{"version": "executord " + version},
		kong.ExplicitGroups([]kong.Group{{Key: "default", Title: vars["default"]}, {Key: "max", Title: vars["max"]}}),
		kong.ConfigureHelp(kong.HelpOptions{Compact: true}),
	)
	_, err := parser.Parse(args)
	var wrong *kong.ParseError
	if errors.As(err, &wrong) && slices.Contains(args, "--help") && wrong.Context.PrintUsage(false) == nil {
		os.Exit(0) // help is help, whatever stands beside it
	}
	return cli.Settings, err
}
