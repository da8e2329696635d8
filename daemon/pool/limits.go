package pool

import (
	"slices"
	"time"

	"github.com/executord/executord/ipc/protocol"
	"github.com/executord/executord/ipc/worker"
)

// Limit is one field of protocol.Limits: the one place for its numbers. docs/limits.md says what each is for.
type Limit struct {
	Name    string
	Unit    string
	Least   int64 // that makes sense: less is raised to it
	Usual   int64 // where a request names none and the operator neither
	Highest int64 // that a request gets, where the operator does not say otherwise
	Most    int64 // that an operator may set: more is a number in the wrong unit, or more than the worker can do
}

// Limits are all of them, in the order of protocol.LimitNames.
func Limits() []Limit { return slices.Clone(limits) }

const (
	maxMs       = int64(7 * 24 * time.Hour / time.Millisecond)
	maxMiB      = 1 << 20 // 1 TiB
	maxBytes    = 1 << 30
	maxCount    = 1 << 30
	maxMessage  = worker.DefaultFrameBytes - frameMargin
	frameMargin = 1 << 20 // of a frame beyond its largest field
)

var limits = []Limit{
	{"cpuMs", "milliseconds", 1, 5_000, 60_000, maxMs},
	{"wallMs", "milliseconds", 1, 10_000, 300_000, maxMs},
	{"totalMs", "milliseconds", 1, 60_000, 900_000, maxMs},
	{"heapMiB", "MiB", 1, 64, 512, maxMiB},
	{"bufferMiB", "MiB", 1, 64, 512, maxMiB},
	{"slackMiB", "MiB", 64, 128, 1024, maxMiB},
	{"stackKiB", "KiB", 128, 984, 4096, 6144}, // of the 8 MiB that a thread has
	{"resultBytes", "bytes", 1, 8 << 20, 32 << 20, maxBytes},
	{"messageBytes", "bytes", 1, 8 << 20, 32 << 20, maxMessage},
	{"moduleBytes", "bytes", 1, 32 << 20, 48 << 20, maxMessage},
	{"valueDepth", "levels", 16, protocol.MaxValueDepth, protocol.MaxValueDepth, protocol.MaxValueDepth}, // what a fetch asks for fits
	{"valueParts", "parts", 1024, protocol.MaxValueParts, protocol.MaxValueParts, protocol.MaxValueParts},
	{"logBytes", "bytes", 1, 1 << 20, 16 << 20, maxBytes},
	{"logLines", "lines", 1, 10_000, 100_000, maxCount},
	{"toolCalls", "calls", 1, 1_000, 100_000, maxCount},
	{"toolCallsInFlight", "calls", 1, 256, 4096, 1 << 16},
	{"fetches", "exchanges", 1, 100, 10_000, maxCount},
	{"fetchBytes", "bytes", 1, 32 << 20, 1 << 30, 1 << 40},
	{"timers", "timers", 1, 10_000, 1_000_000, 1 << 24},
}

func limitsOf(value func(Limit) int64) (l protocol.Limits) {
	for _, f := range limits {
		*l.Field(f.Name) = value(f)
	}
	return l
}

// effective is what is in force for a request that asks for l.
func (c *Config) effective(l protocol.Limits) protocol.Limits {
	for _, f := range limits {
		p := l.Field(f.Name)
		if *p <= 0 {
			*p = *c.Limits.Field(f.Name)
		}
		*p = min(max(*p, f.Least), *c.MaxLimits.Field(f.Name))
	}
	return l
}
