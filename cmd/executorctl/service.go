package main

import (
	"context"
	"strings"

	"github.com/executord/executord/daemon/admin"
)

// logLevelCommand is executorctl log-level.
type logLevelCommand struct {
	operator
	Level string `arg:"" optional:"" complete:"level" help:"The new one: debug, info, warn or error. Without it the level is printed."`
}

// Run prints the level, or changes it.
func (c *logLevelCommand) Run(ctx context.Context, w *world) error {
	return with(ctx, w, c.operator, func(ctx context.Context, a *admin.Client) (admin.LogLevel, error) {
		if c.Level == "" {
			return a.LogLevel(ctx)
		}
		return a.SetLogLevel(ctx, admin.LogLevel{Level: c.Level})
	}, func(w *world, l admin.LogLevel) { w.line("%s", strings.ToLower(l.Level)) })
}

// reloadCommand is executorctl reload.
type reloadCommand struct{ operator }

// Run has the settings read again.
func (c *reloadCommand) Run(ctx context.Context, w *world) error {
	return with(ctx, w, c.operator, func(ctx context.Context, a *admin.Client) (admin.Reload, error) { return a.Reload(ctx) }, func(w *world, r admin.Reload) {
		if len(r.Applied)+len(r.NeedRestart) == 0 {
			w.line("nothing has changed")
		}
		w.facts([2]string{"applied", strings.Join(r.Applied, ", ")}, [2]string{"need a restart", strings.Join(r.NeedRestart, ", ")})
	})
}

// textCommand is a command whose answer is printed as it is.
type textCommand struct {
	Address string `placeholder:"ADDRESS" help:"The admin socket: unix:/path. Default: $$EXECUTORCTL_ADDRESS, else unix:/run/executord/admin.sock."`
}

func (c textCommand) print(ctx context.Context, w *world, ask func(*admin.Client, context.Context) ([]byte, error)) error {
	return with(ctx, w, operator{Address: c.Address}, func(ctx context.Context, a *admin.Client) ([]byte, error) { return ask(a, ctx) }, func(w *world, text []byte) {
		_, _ = w.out.Write(text)
	})
}

// metricsCommand is executorctl metrics.
type metricsCommand struct{ textCommand }

// Run prints the metrics.
func (c *metricsCommand) Run(ctx context.Context, w *world) error {
	return c.print(ctx, w, (*admin.Client).Metrics)
}

// openapiCommand is executorctl openapi.
type openapiCommand struct{ textCommand }

// Run prints the description of the API.
func (c *openapiCommand) Run(ctx context.Context, w *world) error {
	return c.print(ctx, w, (*admin.Client).OpenAPI)
}
