package pool

import (
	"errors"
	"fmt"
	"log/slog"
	"runtime"
	"slices"
	"strings"
	"time"

	"go.opentelemetry.io/otel/metric"
	"go.opentelemetry.io/otel/trace"

	"github.com/executord/executord/ipc/executor"
	"github.com/executord/executord/ipc/protocol"
	"github.com/executord/executord/ipc/worker"
)

// Config of a Pool. No zero means "no limit"; Defaults fills everything but Launcher.
type Config struct {
	Workers          int           // programs that run at once
	Spares           int           // workers beyond those, ready to take over at once from one that died or restores; 0 is none
	Queue            int           // requests that wait beyond those; 0 refuses what cannot run at once
	QueuePerIdentity int           // the same for one Request.Identity, at most Queue
	QueueTimeout     time.Duration // longest wait

	Retained            int           // executions whose isolate stays, each with its worker, beyond Workers and Spares; 0 retains nothing
	RetainedPerIdentity int           // the same for one Request.Identity, at least 1 and at most Retained where that is not 0
	RetainIdle          time.Duration // one ends after so long without an invocation
	RetainLifetime      time.Duration // and after so long in any case; the most that a request can ask for

	WorkerMaxExecutions  int           // a worker process is replaced after so many; 1 is a fresh process for each
	WorkerMaxAge         time.Duration // and at this age, give or take a tenth
	WorkerMaxGrowthBytes int64         // and when its resident memory at rest has grown by this since it was new
	SpawnTimeout         time.Duration // from start to ready, and from a result to ready again
	HeartbeatTimeout     time.Duration // a worker that sends no frame for this long is killed

	Limits    protocol.Limits // where a request names none
	MaxLimits protocol.Limits // a request's are lowered to these

	InFlightBytes int64 // arguments of all tool calls and requests of all fetches under way in one execution; more is refused to the program

	// Direct performs the exchanges of requests with network "direct"; nil refuses those. See daemon/egress.
	Direct executor.Fetch

	// RequireLayers are layers of isolation, by the names of ipc/worker, without which no worker runs a program. What else
	// is missing is logged.
	RequireLayers []string

	Launcher Launcher // starts workers; the pool owns it
	Logger   *slog.Logger

	// Meter and Tracer get what docs/telemetry.md lists; nil costs nothing. Its totals are the pool's own, so that a
	// MeterProvider can serve one pool only; it may be read after the pool is closed.
	Meter  metric.MeterProvider
	Tracer trace.TracerProvider

	// OnEvent hears of workers and faults, from several goroutines at once. It must not block. Nil means nobody.
	OnEvent func(Event)
}

// Defaults returns a Config for this machine, complete but for the Launcher.
func Defaults() Config {
	cpus := runtime.GOMAXPROCS(0) // since Go 1.25 no more than the CPU quota of the cgroup, which a container has
	return Config{
		Workers: cpus, Spares: 1, Queue: 4 * cpus, QueuePerIdentity: 4 * cpus, QueueTimeout: 30 * time.Second,
		Retained: cpus, RetainedPerIdentity: (cpus + 1) / 2, RetainIdle: 5 * time.Minute, RetainLifetime: time.Hour,
		WorkerMaxExecutions: 1000, WorkerMaxAge: time.Hour, WorkerMaxGrowthBytes: 256 << 20,
		SpawnTimeout: 10 * time.Second, HeartbeatTimeout: 5 * time.Second,
		Limits:        limitsOf(func(f Limit) int64 { return f.Usual }),
		MaxLimits:     limitsOf(func(f Limit) int64 { return f.Highest }),
		InFlightBytes: 256 << 20,
		Logger:        slog.New(slog.DiscardHandler),
	}
}

const (
	maxWorkers = 4096
	maxQueue   = 1 << 20
)

// check is Check for New.
func (c *Config) check() error {
	err := c.faults()
	if c.Launcher == nil {
		err = errors.Join(err, errors.New("there is no launcher"))
	}
	return cannot("make pool", err)
}

// Check returns all faults at once, but for a missing Launcher. New checks too.
func (c *Config) Check() error { return cannot("make pool", c.faults()) }

// cannot says what err stands in the way of; nil where it is.
func cannot(do string, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("cannot %s: %w", do, err)
}

// faults are all that there are, but for a missing Launcher.
func (c *Config) faults() error {
	var faults []error
	between := func(name string, got, least, most int64, unit string) {
		if got < least || got > most {
			faults = append(faults, fmt.Errorf("%s is %d %s, must be from %d to %d", name, got, unit, least, most))
		}
	}
	within := func(name string, got, most time.Duration) {
		if got <= 0 || got > most {
			faults = append(faults, fmt.Errorf("%s is %s, must be over 0 and at most %s", name, got, most))
		}
	}
	between("workers", int64(c.Workers), 1, maxWorkers, "processes")
	between("spares", int64(c.Spares), 0, maxWorkers, "processes")
	between("queue", int64(c.Queue), 0, maxQueue, "requests")
	between("queue per identity", int64(c.QueuePerIdentity), 0, int64(max(c.Queue, 0)), "requests")
	between("retained executions", int64(c.Retained), 0, maxWorkers, "executions")
	between("retained executions per identity", int64(c.RetainedPerIdentity), int64(min(max(c.Retained, 0), 1)), int64(max(c.Retained, 0)), "executions")
	between("worker max executions", int64(c.WorkerMaxExecutions), 1, maxCount, "executions")
	between("worker max growth", c.WorkerMaxGrowthBytes, 1<<20, 1<<40, "bytes")
	between("in-flight size", c.InFlightBytes, c.MaxLimits.MessageBytes, 1<<40, "bytes")
	within("queue timeout", c.QueueTimeout, 24*time.Hour)
	within("retain idle", c.RetainIdle, 365*24*time.Hour)
	within("retain lifetime", c.RetainLifetime, 365*24*time.Hour)
	within("worker max age", c.WorkerMaxAge, 365*24*time.Hour)
	within("spawn timeout", c.SpawnTimeout, 10*time.Minute)
	within("heartbeat timeout", c.HeartbeatTimeout, 10*time.Minute)
	if c.HeartbeatTimeout > 0 && c.HeartbeatTimeout < 2*worker.HeartbeatInterval {
		faults = append(faults, fmt.Errorf("heartbeat timeout is %s, workers speak every %s", c.HeartbeatTimeout, worker.HeartbeatInterval))
	}
	for _, f := range limits {
		most := *c.MaxLimits.Field(f.Name)
		between("largest "+f.Name, most, f.Least, f.Most, f.Unit)
		between("default "+f.Name, *c.Limits.Field(f.Name), f.Least, most, f.Unit)
	}
	for _, name := range c.RequireLayers {
		if known := worker.Layers(); !slices.Contains(known, name) {
			faults = append(faults, fmt.Errorf("there is no layer of isolation %q to require, only %s", name, strings.Join(known, ", ")))
		}
	}
	return errors.Join(faults...)
}

// processes is how many workers there shall be, besides those that are retained.
func (c *Config) processes() int { return c.Workers + c.Spares }

// frameBytes is the largest frame that an honest worker sends.
func (c *Config) frameBytes() int {
	return int(max(c.MaxLimits.ResultBytes, c.MaxLimits.LogBytes, c.MaxLimits.MessageBytes) + frameMargin)
}
