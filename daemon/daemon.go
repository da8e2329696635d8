package daemon

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"time"

	"github.com/executord/executord/daemon/executor"
	"github.com/executord/executord/daemon/pool"
	"github.com/executord/executord/daemon/server"
	"github.com/executord/executord/daemon/settings"
	"github.com/executord/executord/daemon/telemetry"
	"github.com/executord/executord/ipc/protocol"
)

// Daemon is the service, made of its parts.
type Daemon struct {
	version string
	log     *slog.Logger
	binary  string
	listen  []net.Addr
	pool    pool.Config
	server  server.Config

	telemetry telemetry.Config
}

// bootTimeout bounds the start of the workers and the check that they work.
const bootTimeout = time.Minute

// New checks the settings. It starts nothing.
func New(s settings.Settings, version string, log *slog.Logger) (*Daemon, error) {
	d := &Daemon{version: version, log: log}
	if err := s.Check(); err != nil {
		return nil, err
	}
	var err error
	if d.pool, err = poolConfig(&s, log); err != nil {
		return nil, err
	}
	if d.server, err = serverConfig(&s, version, log); err != nil {
		return nil, err
	}
	if d.listen, err = parseAddresses(s.Listen); err != nil {
		return nil, err
	}
	if err := telemetry.Check(); err != nil {
		return nil, err
	}
	d.telemetry = telemetry.Config{Version: version, Page: s.Metrics, Logger: log}
	d.binary, err = executor.FindWorker(s.WorkerBinary)
	return d, err
}

// Run serves until ctx ends, and then drains. It returns nil after an ordered end.
func (d *Daemon) Run(ctx context.Context) error {
	t, err := telemetry.New(d.telemetry)
	if err != nil {
		return err
	}
	defer func() { // after all work has ended
		if err := t.Close(); err != nil {
			d.log.Warn("telemetry is lost", "error", err.Error())
		}
	}()
	d.pool.Meter, d.pool.Tracer = t.Meter, t.Tracer
	d.server.Meter, d.server.Metrics = t.Meter, t.Page
	d.log.Info("starting workers", "version", d.version, "workers", d.pool.Workers, "binary", d.binary)
	boot, cancel := context.WithTimeout(ctx, bootTimeout)
	defer cancel()
	p, err := executor.New(boot, executor.Config{WorkerBinary: d.binary, Tune: func(c *pool.Config) { *c = d.pool }})
	if err != nil {
		return stopped(ctx, err)
	}
	defer func() {
		if err := p.Close(); err != nil {
			d.log.Warn("workers did not end in order", "error", err.Error())
		}
	}()
	if err := selfCheck(boot, p); err != nil {
		return stopped(ctx, err)
	}
	d.server.Ready = func() error { return workersReady(p) }
	srv, err := server.New(p, d.server)
	if err != nil {
		return err
	}
	listeners, err := listenAll(d.listen)
	if err != nil {
		return err
	}
	defer closeAll(listeners)
	for _, l := range listeners {
		d.log.Info("listening", "address", l.Addr().String())
	}
	err = srv.Serve(ctx, listeners...)
	d.log.Info("stopped")
	return err
}

// stopped makes an error of the start nil when the operator ended it.
func stopped(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return nil
	}
	return err
}

// selfCheck runs one real program, so that a service that cannot do its work does not start.
func selfCheck(ctx context.Context, e executor.Executor) error {
	o, err := e.Execute(ctx, executor.Request{
		Execute:  protocol.Execute{Code: "6 * 7", Form: protocol.FormScript, Name: "check.js"},
		Identity: "check",
	})
	if err == nil {
		err = o.Err()
	}
	if err != nil {
		return fmt.Errorf("cannot run a program: %w", err)
	}
	if string(o.Value) != "42" {
		return fmt.Errorf("cannot run a program: 6 * 7 came to %.40q", o.Value)
	}
	return nil
}

// workersReady says why there is no worker at all; being busy is not unreadiness.
func workersReady(p *pool.Pool) error {
	s := p.Stats()
	if s.Idle+s.Running+s.Restoring > 0 {
		return nil
	}
	if s.LastFailure != "" {
		return fmt.Errorf("no worker runs: %s", s.LastFailure)
	}
	return errors.New("no worker runs yet")
}
