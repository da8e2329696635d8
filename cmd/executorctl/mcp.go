package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/executord/executord/cmd/internal/codemcp"
	"github.com/executord/executord/daemon/executor"
	"github.com/executord/executord/ipc/protocol"
)

// mcpWorkers is how many programs run at once with --embedded.
const mcpWorkers = 2

// mcpCommand is executorctl mcp.
type mcpCommand struct {
	Config string `arg:"" optional:"" help:"The MCP servers whose tools programs may call: a JSON file as other hosts have it."`
	placeFlags
	Timeout   limitFlag `default:"1m" placeholder:"TIME" help:"How long a program may run, without waiting for tools. Default: ${default}."`
	MaxOutput int       `default:"24000" placeholder:"N" help:"How many characters the text of a result may have; what is longer is cut inside. Default: ${default}."`
}

// Help is shown below the flags.
func (mcpCommand) Help() string {
	return `It speaks on standard input and output; an MCP client starts it. The file has {"mcpServers": {name: server}}. A server has ` +
		`command, args, env and cwd, or url and headers; values of env and headers may name variables as ${NAME}. Of this program's ` +
		`environment commands get only what every program needs. In a program each server is a namespace of its tools.` +
		"\n\n" +
		`A server may have approve: always (its tools are called), ask (the user of the client is asked each time) or never (programs ` +
		`do not have them), or an object of these words by tool, in which * stands for the others. Without it, tools that say that ` +
		`they are destructive are asked about, and others are called.`
}

// Run serves one client.
func (c *mcpCommand) Run(ctx context.Context, w *world) error {
	if c.MaxOutput < 100 {
		return errors.New("cannot use --max-output: it must be at least 100")
	}
	config, err := c.config()
	if err != nil {
		return err
	}
	native, err := c.native(ctx, w)
	if err != nil {
		return err
	}
	server := codemcp.New(codemcp.Options{
		Native: native, Config: config, Version: version, Timeout: time.Duration(c.Timeout), MaxText: c.MaxOutput, Stderr: w.err,
	})
	err = server.Run(ctx, &mcp.IOTransport{Reader: io.NopCloser(w.in), Writer: unclosed{w.out}})
	return errors.Join(err, native.Close())
}

func (c *mcpCommand) config() (config codemcp.Config, err error) {
	if c.Config == "" {
		return config, nil
	}
	f, err := os.Open(c.Config)
	if err != nil {
		return config, fmt.Errorf("cannot read the configuration: %w", err)
	}
	defer f.Close()
	if config, err = codemcp.ReadConfig(f, os.LookupEnv); err != nil {
		return config, fmt.Errorf("cannot use the configuration %s: %w", c.Config, err)
	}
	return config, nil
}

// native runs programs: through a service by a connection for each, since services are restarted while clients stay.
func (c *mcpCommand) native(ctx context.Context, w *world) (executor.Executor, error) {
	first, err := c.executor(ctx, w, executor.Config{Workers: mcpWorkers})
	if address := c.address(w); err == nil && address != "" {
		return redialer{w, address}, first.Close()
	}
	return first, err
}

// redialer runs each program over a connection of its own.
type redialer struct {
	w       *world
	address string
}

// Execute connects and runs r.
func (d redialer) Execute(ctx context.Context, r executor.Request) (*protocol.Outcome, error) {
	e, err := dial(ctx, d.w, d.address)
	if err != nil {
		return nil, err
	}
	outcome, err := e.Execute(ctx, r)
	return outcome, errors.Join(err, e.Close())
}

// Close has nothing to do.
func (redialer) Close() error { return nil }

// unclosed is an output that others close.
type unclosed struct{ io.Writer }

func (unclosed) Close() error { return nil }
