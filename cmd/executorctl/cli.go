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

// Exit statuses besides those of the types of errors.
const (
	exitOther       = 1   // a wrong invocation, and every failure that has no type
	exitUnreachable = 3   // no service answers
	exitCheck       = 4   // check found something wrong
	exitInterrupted = 130 // as shells have it
)

// commands is the command line.
type commands struct {
	Run         runCommand          `cmd:"" help:"Run a program and print what it produced."`
	MCP         mcpCommand          `cmd:"" name:"mcp" help:"Be an MCP server with a tool that runs code, which can call the tools of other MCP servers."`
	Status      statusCommand       `cmd:"" help:"Show what the service is doing, and how much."`
	Top         topCommand          `cmd:"" help:"Watch the service in a live view; q ends it."`
	Page        pageCommand         `cmd:"" help:"Serve the live page to browsers on this machine."`
	Check       checkCommand        `cmd:"" help:"Have the service run real programs, and say what is wrong."`
	Execution   executionCommands   `cmd:"" help:"List, show and cancel executions."`
	Worker      workerCommands      `cmd:"" help:"List, show and retire worker processes."`
	Session     sessionCommands     `cmd:"" help:"List the sessions of callers."`
	Event       eventCommands       `cmd:"" help:"Watch the news of the service."`
	Maintenance maintenanceCommands `cmd:"" help:"Keep callers away for a while."`
	Setting     settingCommands     `cmd:"" help:"List the settings of the service."`
	Reload      reloadCommand       `cmd:"" help:"Have the settings read again, and apply what can change while the service runs."`
	LogLevel    logLevelCommand     `cmd:"" help:"Print the least level that is logged, or change it until the next reload."`
	Metrics     metricsCommand      `cmd:"" help:"Print the metrics in the text format of Prometheus."`
	Openapi     openapiCommand      `cmd:"" help:"Print the OpenAPI document of the admin socket."`
	Completion  completionCommand   `cmd:"" help:"Print the script that completes command lines in a shell."`
	Complete    completeCommand     `cmd:"" hidden:"" help:"Print how a command line may go on; for the scripts of completion."`
	Version     versionCommand      `cmd:"" help:"Print the version."`
}

type versionCommand struct {
	JSON bool `name:"json" help:"Print JSON, in one line."`
}

// Run prints the version.
func (c versionCommand) Run(w *world) error {
	if c.JSON {
		return printJSON(w, map[string]string{"version": version})
	}
	_, err := fmt.Fprintln(w.out, "executorctl", version)
	return err
}

// exitError ends the process with a status; everything has been said already.
type exitError int

func (e exitError) Error() string { return fmt.Sprintf("exit status %d", int(e)) }

// execute parses and runs a command line, and returns the exit status.
func execute(ctx context.Context, args []string, w *world) int {
	exited := -1
	parser := grammar(w, kong.Exit(func(status int) { exited = status }), kong.BindTo(ctx, (*context.Context)(nil)))
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

// grammar is the command line as kong knows it.
func grammar(w *world, more ...kong.Option) *kong.Kong {
	return kong.Must(&commands{}, append([]kong.Option{
		kong.Name("executorctl"),
		kong.Description("Runs programs through executord, and operates the service.\n\n" + exitHelp()),
		kong.Writers(w.out, w.err), kong.Bind(w),
		kong.ConfigureHelp(kong.HelpOptions{Compact: true, NoExpandSubcommands: true}),
	}, more...)...)
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
	var nobody unreachable
	switch {
	case errors.Is(err, context.Canceled):
		return exitInterrupted
	case errors.As(err, &nobody):
		status = exitUnreachable
	case errors.As(err, &typed):
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
	fmt.Fprintf(&b, "Exit status: 0 when it is done and a program produced a value, %d for a wrong invocation and any other failure, "+
		"%d when no service answers, %d when check found something wrong, %d when interrupted, else by the type of the error: ",
		exitOther, exitUnreachable, exitCheck, exitInterrupted)
	for i, info := range protocol.Types() {
		if i > 0 {
			b.WriteString(", ")
		}
		fmt.Fprintf(&b, "%d %s", info.Exit, info.Type)
	}
	b.WriteString(".")
	return b.String()
}
