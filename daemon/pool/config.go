package pool

import (
	"errors"
	"fmt"
	"log/slog"
	"runtime"
	"time"

	"github.com/executord/executord/ipc/executor"
	"github.com/executord/executord/ipc/protocol"
	"github.com/executord/executord/ipc/worker"
)

// Config of a Pool. No zero means "no limit"; Defaults fills everything but Launcher.
type Config struct {
	Workers          int           // programs that run at once
	Queue            int           // requests that wait beyond those; 0 refuses what cannot run at once
	QueuePerIdentity int           // the same for one Request.Identity, at most Queue
	QueueTimeout     time.Duration // longest wait

	WorkerMaxExecutions  int           // a worker process is replaced after so many; 1 is a fresh process for each
	WorkerMaxAge         time.Duration // and at this age, give or take a tenth
	WorkerMaxGrowthBytes int64         // and when its resident memory at rest has grown by this since it was new
	SpawnTimeout         time.Duration // from start to ready, and from a result to ready again
	HeartbeatTimeout     time.Duration // a worker that sends no frame for this long is killed

	Limits    protocol.Limits // where a request names none
	MaxLimits protocol.Limits // a request's are lowered to these

	MessageBytes     int64 // arguments of one tool call, and its answer; one request of a fetch
	InFlightBytes    int64 // arguments of all tool calls and requests of all fetches under way in one execution; more is refused to the program
	MemorySlackBytes int64 // resident memory of a process beyond its state at rest, twice the heap and the buffers

	// Direct performs the exchanges of requests with network "direct"; nil refuses those. See daemon/egress.
	Direct executor.Fetch

	Launcher Launcher // starts workers; the pool owns it
	Logger   *slog.Logger
	// OnEvent hears of workers and faults, from several goroutines at once. It must not block. Nil means nobody.
	OnEvent func(Event)
}

// Defaults returns a Config for this machine, complete but for the Launcher.
func Defaults() Config {
	cpus := runtime.NumCPU()
	return Config{
		Workers: cpus, Queue: 4 * cpus, QueuePerIdentity: 4 * cpus, QueueTimeout: 30 * time.Second,
		WorkerMaxExecutions: 1000, WorkerMaxAge: time.Hour, WorkerMaxGrowthBytes: 256 << 20,
		SpawnTimeout: 10 * time.Second, HeartbeatTimeout: 5 * time.Second,
		Limits: protocol.Limits{
			CPUMs: 5_000, WallMs: 10_000, TotalMs: 60_000, HeapMiB: 64, BufferMiB: 64,
			ResultBytes: 8 << 20, LogBytes: 1 << 20, LogLines: 10_000, ToolCalls: 1_000,
			Fetches: 100, FetchBytes: 32 << 20,
		},
		MaxLimits: protocol.Limits{
			CPUMs: 60_000, WallMs: 300_000, TotalMs: 900_000, HeapMiB: 512, BufferMiB: 512,
			ResultBytes: 32 << 20, LogBytes: 16 << 20, LogLines: 100_000, ToolCalls: 100_000,
			Fetches: 10_000, FetchBytes: 1 << 30,
		},
		MessageBytes: 8 << 20, InFlightBytes: 256 << 20, MemorySlackBytes: 128 << 20,
		Logger: slog.New(slog.DiscardHandler),
	}
}

// limit is one field of protocol.Limits with the largest number that the pool can work with.
type limit struct {
	name string
	at   func(*protocol.Limits) *int64
	most int64
	unit string
}

const (
	maxMs       = int64(7 * 24 * time.Hour / time.Millisecond)
	maxMiB      = 1 << 20 // 1 TiB: more is a number in the wrong unit
	maxBytes    = 1 << 30
	maxCount    = 1 << 30
	maxWorkers  = 4096
	maxQueue    = 1 << 20
	frameMargin = 1 << 20 // of a frame beyond its largest field
)

var limits = []limit{
	{"cpuMs", func(l *protocol.Limits) *int64 { return &l.CPUMs }, maxMs, "milliseconds"},
	{"wallMs", func(l *protocol.Limits) *int64 { return &l.WallMs }, maxMs, "milliseconds"},
	{"totalMs", func(l *protocol.Limits) *int64 { return &l.TotalMs }, maxMs, "milliseconds"},
	{"heapMiB", func(l *protocol.Limits) *int64 { return &l.HeapMiB }, maxMiB, "MiB"},
	{"bufferMiB", func(l *protocol.Limits) *int64 { return &l.BufferMiB }, maxMiB, "MiB"},
	{"resultBytes", func(l *protocol.Limits) *int64 { return &l.ResultBytes }, maxBytes, "bytes"},
	{"logBytes", func(l *protocol.Limits) *int64 { return &l.LogBytes }, maxBytes, "bytes"},
	{"logLines", func(l *protocol.Limits) *int64 { return &l.LogLines }, maxCount, "lines"},
	{"toolCalls", func(l *protocol.Limits) *int64 { return &l.ToolCalls }, maxCount, "calls"},
	{"fetches", func(l *protocol.Limits) *int64 { return &l.Fetches }, maxCount, "exchanges"},
	{"fetchBytes", func(l *protocol.Limits) *int64 { return &l.FetchBytes }, 1 << 40, "bytes"},
}

// effective is what is in force for a request that asks for l.
func (c *Config) effective(l protocol.Limits) protocol.Limits {
	for _, f := range limits {
		p := f.at(&l)
		if *p <= 0 {
			*p = *f.at(&c.Limits)
		}
		*p = min(*p, *f.at(&c.MaxLimits))
	}
	return l
}

// check returns all faults at once.
func (c *Config) check() error {
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
	between("queue", int64(c.Queue), 0, maxQueue, "requests")
	between("queue per identity", int64(c.QueuePerIdentity), 0, int64(max(c.Queue, 0)), "requests")
	between("worker max executions", int64(c.WorkerMaxExecutions), 1, maxCount, "executions")
	between("worker max growth", c.WorkerMaxGrowthBytes, 1<<20, 1<<40, "bytes")
	between("message size", c.MessageBytes, 1, worker.DefaultFrameBytes-frameMargin, "bytes")
	between("in-flight size", c.InFlightBytes, c.MessageBytes, 1<<40, "bytes")
	between("memory slack", c.MemorySlackBytes, 1<<20, 1<<40, "bytes")
	within("queue timeout", c.QueueTimeout, 24*time.Hour)
	within("worker max age", c.WorkerMaxAge, 365*24*time.Hour)
	within("spawn timeout", c.SpawnTimeout, 10*time.Minute)
	within("heartbeat timeout", c.HeartbeatTimeout, 10*time.Minute)
	if c.HeartbeatTimeout > 0 && c.HeartbeatTimeout < 2*worker.HeartbeatInterval {
		faults = append(faults, fmt.Errorf("heartbeat timeout is %s, workers speak every %s", c.HeartbeatTimeout, worker.HeartbeatInterval))
	}
	for _, f := range limits {
		between("largest "+f.name, *f.at(&c.MaxLimits), 1, f.most, f.unit)
		between("default "+f.name, *f.at(&c.Limits), 1, *f.at(&c.MaxLimits), f.unit)
	}
	if c.Launcher == nil {
		faults = append(faults, errors.New("there is no launcher"))
	}
	if len(faults) == 0 {
		return nil
	}
	return fmt.Errorf("cannot make pool: %w", errors.Join(faults...))
}

// frameBytes is the largest frame that an honest worker sends.
func (c *Config) frameBytes() int {
	return int(max(c.MaxLimits.ResultBytes, c.MaxLimits.LogBytes, c.MessageBytes) + frameMargin)
}
