package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	"github.com/executord/executord/daemon/executor"
	"github.com/executord/executord/daemon/settings"
	"github.com/executord/executord/ipc/client"
	"github.com/executord/executord/ipc/fetch"
	"github.com/executord/executord/ipc/protocol"
)

// defaultSocket is where the service listens when installed.
const defaultSocket = "/run/executord/executord.sock"

// runCommand is executorctl run.
type runCommand struct {
	File string `arg:"" help:"The program; - reads standard input."`
	placeFlags
	Tools   string           `placeholder:"FILE" help:"JSON file of tools: {provider: {tool: {command: [argv…]} | {value: …} | {error: message}}}. A command gets the arguments as a JSON array on standard input and answers with JSON on standard output."`
	Input   string           `placeholder:"JSON" help:"Input of the program."`
	Form    protocol.Form    `enum:"auto,module,function,script" default:"auto" help:"What the text is: auto, module, function or script."`
	Name    string           `placeholder:"NAME" help:"Name of the program in stack traces. Default: that of the file."`
	Network protocol.Network `enum:"none,host,direct" default:"none" help:"Where its requests go: none, host (this program performs them) or direct (the service does, as far as it allows)."`
	Egress  settings.Egress  `embed:"" prefix:"egress-" envprefix:"EXECUTORD_EGRESS_"`
	CPU     limitFlag        `placeholder:"TIME" help:"Limit of CPU time, as 1s."`
	Wall    limitFlag        `placeholder:"TIME" help:"Limit of the program's own time, without waiting for tools."`
	Total   limitFlag        `placeholder:"TIME" help:"Limit of all its time."`
	Heap    *int64           `placeholder:"MIB" help:"Limit of its JavaScript heap."`
	JSON    bool             `name:"json" help:"Print the whole outcome as one line of JSON."`
}

// placeFlags say where programs run.
type placeFlags struct {
	Embedded     bool   `xor:"where" help:"Run in a worker of this process, without a service."`
	Address      string `xor:"where" placeholder:"ADDRESS" help:"The service: unix:/path or tcp://host:port. Default: $$EXECUTORD_ADDRESS, else unix:/run/executord/executord.sock where that is there, else as with --embedded."`
	WorkerBinary string `env:"EXECUTORD_WORKER_BINARY" placeholder:"FILE" help:"The executor-worker that --embedded runs. Default: beside this program, then in PATH."`
}

// Help is shown below the flags.
func (runCommand) Help() string {
	return "Console lines go to standard error as they come, the value to standard output. A string is printed as it is, " +
		"undefined not at all. Any other value is printed for people on a terminal, and else as one line of JSON in the " +
		"encoding of the protocol.\n\nA service on TCP may ask for a token: it is read from $EXECUTORD_TOKEN."
}

// limitFlag is a duration of whole milliseconds, at least one.
type limitFlag time.Duration

// UnmarshalText reads a duration.
func (l *limitFlag) UnmarshalText(text []byte) error {
	d, err := time.ParseDuration(string(text))
	if err != nil {
		return errors.New("it must be a duration with a unit, as 500ms")
	}
	if d < time.Millisecond || d%time.Millisecond != 0 {
		return errors.New("it must be in whole milliseconds, and positive")
	}
	*l = limitFlag(d)
	return nil
}

func (l limitFlag) milliseconds() int64 { return time.Duration(l).Milliseconds() }

// Run runs the program.
func (c *runCommand) Run(ctx context.Context, w *world) error {
	r, err := c.request(w)
	if err != nil {
		return err
	}
	direct, err := c.Egress.Fetch()
	if err != nil {
		return err
	}
	e, err := c.executor(ctx, w, executor.Config{Workers: 1, Direct: direct})
	if err != nil {
		return err
	}
	outcome, err := e.Execute(ctx, r)
	if closeErr := e.Close(); err == nil {
		err = closeErr
	}
	if err != nil {
		return err
	}
	return c.print(w, outcome)
}

func (c *runCommand) print(w *world, o *protocol.Outcome) error {
	if c.JSON {
		if _, err := w.out.Write(append(protocol.AppendOutcome(nil, o), '\n')); err != nil {
			return err
		}
	} else if o.Error != nil {
		printError(w.err, o.Error)
	} else if err := printValue(w.out, o.Value); err != nil {
		return err
	}
	if o.Error != nil {
		return exitError(exitStatus(o.Error))
	}
	return nil
}

// request reads everything that the flags name.
func (c *runCommand) request(w *world) (r executor.Request, err error) {
	if r.Code, r.Name, err = c.source(w); err != nil {
		return r, err
	}
	if c.Name != "" {
		r.Name = c.Name
	}
	r.Form, r.Network = c.Form, c.Network
	if c.Network == protocol.NetworkHost {
		r.Fetch = fetch.Over(fetch.Transport())
	}
	r.Limits = protocol.Limits{
		CPUMs: c.CPU.milliseconds(), WallMs: c.Wall.milliseconds(), TotalMs: c.Total.milliseconds(),
	}
	if c.Heap != nil {
		if *c.Heap <= 0 {
			return r, errors.New("cannot use --heap: it must be positive")
		}
		r.Limits.HeapMiB = *c.Heap
	}
	if c.Input != "" {
		r.Input = protocol.Value(c.Input)
	}
	r.Logs.Stream = true
	r.OnLog = func(l protocol.Log) { printLog(w.err, l) }
	if c.Tools != "" {
		providers, err := readTools(c.Tools)
		if err != nil {
			return r, err
		}
		r.Provide(providers...)
	}
	return r, nil
}

// source reads the program, and not more than may be submitted.
func (c *runCommand) source(w *world) (code, name string, err error) {
	in, name := w.in, "main.js"
	if c.File != "-" {
		f, err := os.Open(c.File)
		if err != nil {
			return "", "", fmt.Errorf("cannot read the program: %w", err)
		}
		defer f.Close()
		in, name = f, filepath.Base(c.File)
	}
	text, err := readUpTo(in, protocol.MaxCodeBytes)
	if err != nil {
		return "", "", fmt.Errorf("cannot read the program: %w", err)
	}
	return string(text), name, nil
}

func readUpTo(r io.Reader, limit int) ([]byte, error) {
	text, err := io.ReadAll(io.LimitReader(r, int64(limit)+1))
	if err == nil && len(text) > limit {
		err = fmt.Errorf("it has more than %d bytes", limit)
	}
	return text, err
}

// executor connects to the service, or starts workers as config says.
func (c *placeFlags) executor(ctx context.Context, w *world, config executor.Config) (executor.Executor, error) {
	address := c.address(w)
	if address == "" {
		config.WorkerBinary = c.WorkerBinary
		return executor.New(ctx, config)
	}
	return dial(ctx, w, address)
}

func dial(ctx context.Context, w *world, address string) (executor.Executor, error) {
	e, err := client.Dial(ctx, address, client.WithName("executorctl", version), client.WithToken(w.env("EXECUTORD_TOKEN")))
	if err != nil {
		return nil, hint(address, err)
	}
	return e, nil
}

// address is that of the service, empty to run without one.
func (c *placeFlags) address(w *world) string {
	switch {
	case c.Embedded:
		return ""
	case c.Address != "":
		return c.Address
	case w.env("EXECUTORD_ADDRESS") != "":
		return w.env("EXECUTORD_ADDRESS")
	case w.exists(defaultSocket):
		return "unix:" + defaultSocket
	}
	return ""
}
