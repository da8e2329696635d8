// Wpt runs web-platform-tests (https://web-platform-tests.org/) in real workers and compares what passes with other
// runtimes and with what has passed before. It is a tool of this project and is never installed.
//
// It takes the *.any.js files of a tree, and a few named *.window.js, makes one program of each and of its variants,
// and collects every subtest. The tree is no part of the project: `wpt lay` writes it out of a git directory.
package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"

	"github.com/alecthomas/kong"
)

// commands is the command line.
type commands struct {
	Run      runCommand      `cmd:"" help:"Run areas, print a Markdown table, and fail where less passes than has passed before."`
	Score    scoreCommand    `cmd:"" help:"Print the table of saved results."`
	Failures failuresCommand `cmd:"" help:"List what does not pass in saved results."`
	Diff     diffCommand     `cmd:"" help:"List what passes in one of two saved results and not in the other."`
	List     listCommand     `cmd:"" help:"Count the files and cases of areas."`
	Program  programCommand  `cmd:"" help:"Print the program that is made of one case."`
	Lay      layCommand      `cmd:"" help:"Write a tree out of a git directory."`
}

// streams are standard output and error.
type streams struct{ out, err io.Writer }

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop)
	if err := execute(ctx, os.Args[1:], streams{os.Stdout, os.Stderr}); err != nil {
		fmt.Fprintln(os.Stderr, "wpt:", err)
		os.Exit(1)
	}
}

// execute parses and runs a command line.
func execute(ctx context.Context, args []string, s streams) error {
	parser := kong.Must(
		&commands{}, kong.Name("wpt"), kong.Description("Runs web-platform-tests in the sandbox."),
		kong.Writers(s.out, s.err), kong.ConfigureHelp(kong.HelpOptions{Compact: true}), kong.Vars{"origin": origin},
		kong.BindTo(ctx, (*context.Context)(nil)), kong.Bind(s),
	)
	if len(args) == 0 {
		args = []string{"--help"}
	}
	command, err := parser.Parse(args)
	if err != nil {
		return err
	}
	return command.Run()
}
