package pool

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"strconv"
	"time"

	"golang.org/x/sys/unix"

	"github.com/executord/executord/ipc/protocol"
)

// outside is the world as the pool sees it.
type outside struct {
	now    func() time.Time
	random func() float64 // in [0,1)
	meter  func(pid int) (meter, error)
	govern func(protocol.Limits, int64, *logbook) governor
	timer  func(time.Duration) (fires <-chan time.Time, stop func())
}

func realOutside() outside {
	return outside{now: time.Now, random: rand.Float64, meter: newProcMeter, govern: newLedger, timer: realTimer}
}

func realTimer(d time.Duration) (<-chan time.Time, func()) {
	t := time.NewTimer(d)
	return t.C, func() { t.Stop() }
}

// meter measures one process, whatever the process says of itself.
type meter interface {
	cpu() (time.Duration, error)    // CPU time of all its threads
	thread() (time.Duration, error) // CPU time of its first thread, the isolate's
	rss() (int64, error)            // resident bytes
	close()
}

// procMeter reads the kernel's figures. It keeps files of /proc/PID open: a read after the process is gone fails, also
// when the number was given to another.
type procMeter struct {
	statm *os.File
	sched *os.File // nil where the kernel has none (CONFIG_SCHED_INFO)
	clock int32
}

func newProcMeter(pid int) (meter, error) {
	f, err := os.Open("/proc/" + strconv.Itoa(pid) + "/statm")
	if err != nil {
		return nil, fmt.Errorf("cannot watch process: %w", err)
	}
	m := &procMeter{statm: f, clock: processClock(pid)}
	m.sched, _ = os.Open(fmt.Sprintf("/proc/%d/task/%d/schedstat", pid, pid))
	return m, nil
}

// processClock is clock_getcpuclockid(3) for pid: CPUCLOCK_SCHED of the whole process (linux/posix-timers.h).
func processClock(pid int) int32 { return int32(^pid)<<3 | 2 }

func (m *procMeter) cpu() (time.Duration, error) {
	var t unix.Timespec
	if err := unix.ClockGettime(m.clock, &t); err != nil {
		return 0, err
	}
	return time.Duration(t.Nano()), nil
}

// A buffer that the first figures fill is filled by one read; a larger one needs another to find the end.

// rss reads the second figure of statm, pages (proc_pid_statm(5)).
func (m *procMeter) rss() (int64, error) {
	var buf [32]byte
	n, err := m.statm.ReadAt(buf[:], 0)
	fields := bytes.Fields(buf[:n])
	if len(fields) < 3 { // the second may be cut off
		return 0, errors.Join(errors.New("cannot read statm"), err)
	}
	pages, err := strconv.ParseInt(string(fields[1]), 10, 64)
	return pages * int64(os.Getpagesize()), err
}

// thread reads the first figure of schedstat, nanoseconds on a processor (Documentation/scheduler/sched-stats.rst).
func (m *procMeter) thread() (time.Duration, error) {
	var buf [20]byte
	if m.sched == nil {
		return 0, errors.New("cannot read schedstat: the kernel has none")
	}
	n, _ := m.sched.ReadAt(buf[:], 0)
	text, _, ok := bytes.Cut(buf[:n], []byte(" "))
	if !ok {
		return 0, errors.New("cannot read schedstat")
	}
	ns, err := strconv.ParseInt(string(text), 10, 64)
	return time.Duration(ns), err
}

func (m *procMeter) close() {
	m.statm.Close()
	if m.sched != nil {
		m.sched.Close()
	}
}

// Back-off between starts of workers that fail.
const (
	backoffFirst = 100 * time.Millisecond
	backoffMost  = 30 * time.Second
)

// backoff is the pause after the nth failure in a row, n from 1: it doubles, and random in [0,1) moves it by half.
func backoff(n int, random float64) time.Duration {
	d := backoffMost
	if n < 20 {
		d = min(backoffFirst<<(n-1), backoffMost)
	}
	return time.Duration(float64(d) * (0.5 + random))
}
