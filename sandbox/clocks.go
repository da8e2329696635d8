package sandbox

import (
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"github.com/executord/executord/ipc/protocol"
	"github.com/executord/executord/ipc/worker"
)

// clocks are the three clocks of one execution. The CPU clock is that of the isolate's thread, the wall clock stops
// while the guest only waits for the host, the total clock never stops.
type clocks struct {
	limits   worker.Limits
	thread   int32 // clock id of the isolate's thread
	cpuStart time.Duration

	mu      sync.Mutex
	began   time.Time
	wall    time.Duration // guest's own time, up to `since`
	since   time.Time     // when the wall clock was last started
	running bool
}

func newClocks(l worker.Limits, thread int32) *clocks {
	now := time.Now()
	return &clocks{limits: l, thread: thread, cpuStart: threadTime(thread), began: now, since: now, running: true}
}

// pause stops the wall clock: the guest waits only for the host.
func (c *clocks) pause() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.running {
		c.wall += time.Since(c.since)
		c.running = false
	}
}

// resume starts the wall clock again.
func (c *clocks) resume() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.running {
		c.since = time.Now()
		c.running = true
	}
}

// read gives what the three clocks show.
func (c *clocks) read() (cpu, wall, total time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	wall = c.wall
	if c.running {
		wall += time.Since(c.since)
	}
	return threadTime(c.thread) - c.cpuStart, wall, time.Since(c.began)
}

// expired names the first clock that passed its limit, or gives the shortest time in which one could.
func (c *clocks) expired() (protocol.Type, time.Duration) {
	cpu, wall, total := c.read()
	switch {
	case total >= c.limits.Total:
		return protocol.TotalTimeout, 0
	case wall >= c.limits.Wall:
		return protocol.WallTimeout, 0
	case cpu >= c.limits.CPU:
		return protocol.CPUTimeout, 0
	}
	return "", min(c.limits.Total-total, c.limits.Wall-wall, c.limits.CPU-cpu)
}

// threadClock is the CPU clock of the calling thread, readable from any other. The encoding is the kernel's
// (CPUCLOCK_PERTHREAD_MASK | CPUCLOCK_SCHED over the inverted thread id; stable ABI, checked on Linux 6.1).
func threadClock() int32 { return int32(^uint32(unix.Gettid())<<3 | 4 | 2) }

func threadTime(clock int32) time.Duration {
	var t unix.Timespec
	if err := unix.ClockGettime(clock, &t); err != nil {
		return 0
	}
	return time.Duration(t.Nano())
}
