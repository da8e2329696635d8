package e2e

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/executord/executord/ipc/client"
	"github.com/executord/executord/ipc/protocol"
	"github.com/executord/executord/ipc/testbin"
)

// Of the service whose capacity is measured: what it runs and holds in its queue is its capacity.
const (
	capacityWorkers = 2
	capacityQueue   = 6
)

// load is what callers of a service saw in a while.
type load struct {
	served   int
	refusals []time.Duration // how long each took
	took     time.Duration
	faults   []error
}

func (l *load) throughput() float64 { return float64(l.served) / l.took.Seconds() }

// p99 is the time that 99 of 100 refusals took at most.
func (l *load) p99() time.Duration {
	if len(l.refusals) == 0 {
		return 0
	}
	slices.Sort(l.refusals)
	return l.refusals[len(l.refusals)*99/100]
}

// press has so many callers ask one after the other, until the time is over. Who is
// refused comes back when it is told to.
func press(c *client.Client, callers int, d time.Duration) *load {
	l := &load{}
	var mu sync.Mutex
	var all sync.WaitGroup
	begin := time.Now()
	for range callers {
		all.Go(func() {
			for time.Since(begin) < d {
				asked := time.Now()
				_, err := c.Execute(context.Background(), program("let n = 0; for (let i = 0; i < 2e5; i++) n += i; n"))
				took := time.Since(asked)
				var fault *protocol.Error
				mu.Lock()
				switch {
				case err == nil:
					l.served++
				case errors.As(err, &fault) && fault.Type == protocol.Overloaded:
					l.refusals = append(l.refusals, took)
				default:
					l.faults = append(l.faults, err)
				}
				mu.Unlock()
				if fault != nil {
					time.Sleep(fault.RetryAfter())
				}
			}
		})
	}
	all.Wait()
	l.took = time.Since(begin)
	return l
}

func capacityService(tb testing.TB) *client.Client {
	s := start(tb, testbin.Worker(tb), "--workers", fmt.Sprint(capacityWorkers), "--queue", fmt.Sprint(capacityQueue))
	c := s.dial()
	tb.Cleanup(func() { c.Close() })
	press(c, capacityWorkers, 200*time.Millisecond) // warm
	return c
}

// TestA11MoreThanCapacity: at three times its capacity a service refuses at once what it cannot take, serves the others, and
// fails nobody. BenchmarkA11 has the figures.
func TestA11MoreThanCapacity(t *testing.T) {
	c := capacityService(t)
	l := press(c, 3*(capacityWorkers+capacityQueue), time.Second)
	if len(l.faults) > 0 {
		t.Errorf("%d faults, the first is %v", len(l.faults), l.faults[0])
	}
	if l.served == 0 || len(l.refusals) == 0 {
		t.Errorf("%d served, %d refused", l.served, len(l.refusals))
	}
}

// BenchmarkA11 measures how much a service serves at its capacity and at three times that, and how long refusals take.
func BenchmarkA11(b *testing.B) {
	c := capacityService(b)
	const capacity, window = capacityWorkers + capacityQueue, 3 * time.Second
	for b.Loop() {
		at, over := press(c, capacity, window), press(c, 3*capacity, window)
		b.ReportMetric(at.throughput(), "served/s")
		b.ReportMetric(over.throughput(), "served/s-at-3x")
		b.ReportMetric(100*over.throughput()/at.throughput(), "%-at-3x")
		b.ReportMetric(float64(over.p99().Microseconds())/1000, "refusal-p99-ms")
		if n := len(at.faults) + len(over.faults); n > 0 {
			b.Fatalf("%d faults", n)
		}
	}
}

// TestA9ErrorBeforeTheEnd: a program that takes its process along gets a whole answer, and the session goes on.
func TestA9ErrorBeforeTheEnd(t *testing.T) {
	c := start(t, testbin.Worker(t), "--workers", "1").dial()
	defer c.Close()
	r := program("console.log('before'); [...Array(2 ** 28).keys()]")
	r.Limits = protocol.Limits{CPUMs: 30_000, WallMs: 60_000}
	o := run(t, c, r)
	if o.Error == nil || o.Error.Type != protocol.MemoryLimit || len(o.Logs) != 1 || o.Stats.Worker == "" {
		t.Errorf("got %+v, %v", o, o.Error)
	}
	if o := run(t, c, program("1 + 1")); string(o.Value) != "2" {
		t.Errorf("the next program on the session: %s, %v", o.Value, o.Error)
	}
}
