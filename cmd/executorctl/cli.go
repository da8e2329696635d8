package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"slices"
	"strings"

	"github.com/alecthomas/kong"
	"golang.org/x/term"

	"github.com/executord/executord/ipc/protocol"
)

// world is what the commands touch outside; tests have their own.
type world struct {
	in       io.Reader
	out, err stream
	env      func(string) string
	exists   func(string) bool
}

// stream is an output and how it may be written to.
type stream struct {
	io.Writer
	terminal bool
	color    bool
}

func system() *world {
	color := os.Getenv("NO_COLOR") == "" && os.Getenv("TERM") != "dumb"
	of := func(f *os.File) stream {
		terminal := term.IsTerminal(int(f.Fd()))
		return stream{f, terminal, terminal && color}
	}
	return &world{
		in: os.Stdin, out: of(os.Stdout), err: of(os.Stderr), env: os.Getenv,
		exists: func(path string) bool {
			info, err := os.Stat(path)
			return err == nil && info.Mode().Type() == fs.ModeSocket
		},
	}
}

// exitOther is the status of a wrong invocation and of every failure that has no type.
const exitOther = 1

// commands is the command line.
type commands struct {
	Run     runCommand     `cmd:"" help:"Run a program and print what it produced."`
	Version versionCommand `cmd:"" help:"Print the version."`
}

type versionCommand struct{}

// Run prints the version.
func (versionCommand) Run(w *world) error {
	_, err := fmt.Fprintln(w.out, "executorctl", version)
	return err
}

// exitError ends the process with a status; everything has been said already.
type exitError int

func (e exitError) Error() string { return fmt.Sprintf("exit status %d", int(e)) }

// execute parses and runs a command line, and returns the exit status.
func execute(ctx context.Context, args []string, w *world) int {
	var cli commands
	exited := -1
	parser := kong.Must(&cli,
		kong.Name("executorctl"),
		kong.Description("Runs programs through executord.\n\n"+exitHelp()),
		kong.Writers(w.out, w.err),
		kong.Exit(func(status int) { exited = status }),
		kong.ConfigureHelp(kong.HelpOptions{Compact: true}),
		kong.BindTo(ctx, (*context.Context)(nil)), kong.Bind(w),
	)
	if len(args) == 0 {
		args = []string{"--help"}
	}
	command, err := parser.Parse(args)
	var wrong *kong.ParseError
	switch {
	case exited >= 0:
		return exited
	case errors.As(err, &wrong) && asksForHelp(args):
		if wrong.Context.PrintUsage(false) == nil {
			return 0
		}
		return exitOther
	case err != nil:
		return complain(w, err)
	}
	if err := command.Run(); err != nil {
		return complain(w, err)
	}
	return 0
}

// asksForHelp tells whether --help is among the arguments, however wrong the others are.
func asksForHelp(args []string) bool {
	if end := slices.Index(args, "--"); end >= 0 {
		args = args[:end]
	}
	return slices.Contains(args, "--help") || slices.Contains(args, "-h")
}

// complain prints an error and returns its status.
func complain(w *world, err error) int {
	var said exitError
	if errors.As(err, &said) {
		return int(said)
	}
	text, status := err.Error(), exitOther
	var typed *protocol.Error
	if errors.As(err, &typed) {
		status = exitStatus(typed)
		if typed.Field != "" {
			text = fmt.Sprintf("%s: %s: %s", typed.Type, typed.Field, typed.Message)
		}
	}
	_, _ = fmt.Fprintf(w.err, "executorctl: %s\n", printable(text, w.err.terminal))
	return status
}

// exitStatus is that of the error's type.
func exitStatus(e *protocol.Error) int {
	if info, ok := e.Type.Info(); ok {
		return info.Exit
	}
	return exitOther
}

// exitHelp documents the exit statuses.
func exitHelp() string {
	var b strings.Builder
	b.WriteString("Exit status: 0 when the program produced a value, 1 for a wrong invocation and any other failure, else by the type of the error: ")
	for i, info := range protocol.Types() {
		if i > 0 {
			b.WriteString(", ")
		}
		fmt.Fprintf(&b, "%d %s", info.Exit, info.Type)
	}
	b.WriteString(".")
	return b.String()
}
