// Package executor runs programs inside a Go program of one's own: in worker processes that it starts, without a service
// and without a network.
//
// Programs that embed the sandbox call it, as do executorctl run --embedded and the daemon. It is a facade: the contract
// is that of ipc/executor, whose types it repeats for those who need no other, and the work is done by daemon/pool. It
// must never link the sandbox, and keeps nothing in variables of the package: any number of executors live side by side.
//
// Concurrency: all functions may be called by several goroutines at once.
package executor

import (
	"context"
	"errors"
	"log/slog"

	"github.com/executord/executord/daemon/pool"
	"github.com/executord/executord/ipc/executor"
)

// The contract, for programs that import this package only.
type (
	Executor = executor.Executor
	Request  = executor.Request
	Provider = executor.Provider
	Tool     = executor.Tool
	Fetch    = executor.Fetch

	Retainer = executor.Retainer
	Handles  = executor.Handles
	Handle   = executor.Handle
)

// NewHandles makes the handles in values callable; see ipc/executor.
func NewHandles(r Retainer, host Request) *Handles { return executor.NewHandles(r, host) }

// Func makes a Tool of a Go function; see ipc/executor.
func Func(f any) Tool { return executor.Func(f) }

// Config of an executor. Zero fields mean their defaults; nothing is ever unlimited.
type Config struct {
	// WorkerBinary is the path of executor-worker; by default the one beside this executable, else the one in PATH.
	WorkerBinary string
	// Workers is how many programs run at once; by default the number of CPUs.
	Workers int
	// Direct performs the requests of programs with network "direct"; nil refuses those. See daemon/egress.
	Direct Fetch
	// Logger hears of workers; nil discards.
	Logger *slog.Logger
	// Tune may change everything else about the pool, once its defaults are filled in.
	Tune func(*pool.Config)
}

// New starts the workers and returns when all are ready to run a program. Ctx bounds only that. Close ends the workers;
// they also end with this process, however it ends.
func New(ctx context.Context, c Config) (*pool.Pool, error) {
	config := pool.Defaults()
	if c.Workers != 0 {
		config.Workers = c.Workers
	}
	config.Direct = c.Direct
	if c.Logger != nil {
		config.Logger = c.Logger
	}
	if c.Tune != nil {
		c.Tune(&config)
	}
	if config.Launcher == nil {
		binary, err := FindWorker(c.WorkerBinary)
		if err != nil {
			return nil, err
		}
		if config.Launcher, err = pool.NewChild(ctx, pool.ChildConfig{Path: binary}); err != nil {
			return nil, err
		}
	}
	p, err := pool.New(config)
	if err != nil {
		return nil, errors.Join(err, config.Launcher.Close())
	}
	if err := p.WaitReady(ctx); err != nil {
		return nil, errors.Join(err, p.Close())
	}
	return p, nil
}
