package e2e

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/executord/executord/ipc/client"
	"github.com/executord/executord/ipc/executor"
	"github.com/executord/executord/ipc/protocol"
)

// vitals are what a service must have back when all work has ended, as the kernel counts it.
type vitals struct {
	descriptors, threads, workers int
	rss                           int64 // bytes
}

func (v vitals) String() string {
	return fmt.Sprintf("%d descriptors, %d threads, %d workers, %d MiB", v.descriptors, v.threads, v.workers, v.rss>>20)
}

func (s *service) vitals() vitals {
	pid := s.cmd.Process.Pid
	return vitals{
		descriptors: descriptors(pid), workers: len(s.workers()),
		threads: int(status(pid, "Threads")), rss: status(pid, "VmRSS") << 10,
	}
}

// The Go runtime keeps threads that it once needed, for system calls that block, and returns memory in its own time.
const (
	spareThreads = 16
	spareRSS     = 96 << 20
)

// settle waits until the service has no more than before, and as many workers. Descriptors have to be the same.
func (s *service) settle(before vitals) {
	s.tb.Helper()
	var now vitals
	if !within(20*time.Second, func() bool {
		now = s.vitals()
		return now.descriptors == before.descriptors && now.workers == before.workers &&
			now.threads <= before.threads+spareThreads && now.rss <= before.rss+spareRSS
	}) {
		s.tb.Errorf("the service has %v, before it had %v", now, before)
	}
}

// hasRoom fills the service: as many programs as it has workers run at once, as many as the queue takes wait, and the
// next is turned away. So all that was counted before was counted off again.
func (s *service) hasRoom() {
	s.tb.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	running, queued, free := make(chan struct{}, threeWorkers), make(chan struct{}, threeQueue), make(chan struct{})
	wait := executor.Provider{Name: "tools", Tools: map[string]executor.Tool{"wait": func(ctx context.Context, _ []protocol.Value) (protocol.Value, error) {
		running <- struct{}{}
		<-free
		return nil, nil
	}}}
	clients := []*client.Client{s.dial(), s.dial(), s.dial()}
	var all sync.WaitGroup
	for i := range threeWorkers + threeQueue {
		code := "1+1"
		if i < threeWorkers {
			code = "await tools.wait(); 1+1"
		} else if i == threeWorkers {
			for range threeWorkers {
				s.within(ctx, running)
			}
			for len(queued) > 0 { // they may have had to wait for a worker to be made ready
				<-queued
			}
		}
		r := program(code)
		r.Provide(wait)
		r.OnState = func(st protocol.State) {
			if st.State == protocol.StateQueued {
				queued <- struct{}{}
			}
		}
		all.Go(func() {
			if o, err := clients[i%2].Execute(ctx, r); err != nil || string(o.Value) != "2" {
				s.tb.Errorf("a program of many gave %+v, %v", o, err)
			}
		})
	}
	for range threeQueue {
		s.within(ctx, queued)
	}
	if o, err := clients[2].Execute(ctx, program("1+1")); !errors.Is(err, protocol.Overloaded) {
		s.tb.Errorf("one more than there is room for gave %+v, %v", o, err)
	}
	close(free)
	all.Wait()
	for _, c := range clients {
		_ = c.Close()
	}
}

// within waits for one of many to get there.
func (s *service) within(ctx context.Context, c <-chan struct{}) {
	select {
	case <-c:
	case <-ctx.Done():
		s.tb.Error("the service has not the room that it should have")
	}
}

// goroutines ends the service with SIGQUIT, to which the Go runtime answers with the stacks of all goroutines, and
// counts them by what began them. The runtime's own do not count.
func (s *service) goroutines() map[string]int {
	_ = s.cmd.Process.Signal(syscall.SIGQUIT)
	_ = s.cmd.Wait()
	by := map[string]int{}
	for _, m := range regexp.MustCompile(`(?m)^created by (\S+)`).FindAllStringSubmatch(s.log.String(), -1) {
		if !strings.HasPrefix(m[1], "runtime.") {
			by[m[1]]++
		}
	}
	return by
}

// status is a number in /proc/PID/status, in the unit that stands there; 0 for a process that is gone.
func status(pid int, field string) int64 {
	text, _ := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	for line := range bytes.Lines(text) {
		if f := bytes.Fields(line); len(f) > 1 && string(f[0]) == field+":" {
			n, _ := strconv.ParseInt(string(f[1]), 10, 64)
			return n
		}
	}
	return 0
}

// monitor looks at the workers of a service all the time: at the most memory that each ever had resident, and at how
// late it comes to look itself, which is what the machine does to a process that wants next to nothing.
type monitor struct {
	service *service
	bound   int64                    // resident bytes of a worker
	over    func(pid int, rss int64) // hears of each worker that passes the bound, once
	stop    chan struct{}
	done    sync.WaitGroup

	mu    sync.Mutex
	peaks map[int]int64 // by process, bytes
	looks []time.Time
}

const lookEvery = 20 * time.Millisecond

func (s *service) monitor(bound int64, over func(pid int, rss int64)) *monitor {
	m := &monitor{service: s, bound: bound, over: over, stop: make(chan struct{}), peaks: map[int]int64{}}
	m.done.Go(func() {
		ticks := time.NewTicker(lookEvery)
		defer ticks.Stop()
		for {
			select {
			case <-m.stop:
				return
			case <-ticks.C:
				m.look()
			}
		}
	})
	return m
}

func (m *monitor) close() {
	close(m.stop)
	m.done.Wait()
}

func (m *monitor) look() {
	for _, pid := range offspring(m.service.cmd.Process.Pid) {
		rss := status(pid, "VmHWM") << 10
		m.mu.Lock()
		news := rss > m.bound && m.peaks[pid] <= m.bound
		m.peaks[pid] = max(m.peaks[pid], rss)
		m.mu.Unlock()
		if news {
			m.over(pid, rss)
		}
	}
	m.mu.Lock()
	m.looks = append(m.looks, time.Now())
	m.mu.Unlock()
}

// peak is the most that any worker had resident, and how many workers there were.
func (m *monitor) peak() (rss int64, workers int) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, n := range m.peaks {
		rss = max(rss, n)
	}
	return rss, len(m.peaks)
}

// late is the time by which looks between two moments came late, in all.
func (m *monitor) late(from, to time.Time) (sum time.Duration) {
	m.mu.Lock()
	defer m.mu.Unlock()
	last := from
	for _, at := range m.looks {
		if at.After(from) && at.Before(to) {
			sum += max(at.Sub(last)-lookEvery, 0)
			last = at
		}
	}
	return sum + max(to.Sub(last)-lookEvery, 0)
}

// offspring are the children of a process as the kernel lists them by the thread that forked (CONFIG_PROC_CHILDREN),
// else as children finds them.
func offspring(pid int) (pids []int) {
	lists, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/children", pid))
	if len(lists) == 0 {
		return children(pid)
	}
	for _, list := range lists {
		text, _ := os.ReadFile(list)
		for _, f := range bytes.Fields(text) {
			if n, err := strconv.Atoi(string(f)); err == nil {
				pids = append(pids, n)
			}
		}
	}
	return pids
}

// TestMonitorSeesWorkers: what the tests of memory stand on.
func TestMonitorSeesWorkers(t *testing.T) {
	s := startThree(t)
	m := s.monitor(1<<20, func(int, int64) {})
	c := s.dial()
	defer c.Close()
	if !within(10*time.Second, func() bool { _, n := m.peak(); return n == threeWorkers+spares }) {
		t.Errorf("the monitor sees %v, the service has %v", m.peaks, s.workers())
	}
	idle, _ := m.peak()
	r := program("const a = new Uint8Array(48 << 20).fill(1); await new Promise((r) => setTimeout(r, 100)); a.length")
	if o := run(t, c, r); o.Error != nil {
		t.Fatal(o.Error)
	}
	m.close()
	if peak, _ := m.peak(); peak < idle+40<<20 {
		t.Errorf("48 MiB of buffer made the peak go from %d to %d bytes", idle, peak)
	}
}

func TestMonitorTellsHowLateItLooks(t *testing.T) {
	from := time.Now()
	at := func(ms int) time.Time { return from.Add(time.Duration(ms) * time.Millisecond) }
	m := &monitor{looks: []time.Time{at(-10), at(10), at(30), at(90), at(100), at(500)}}
	for to, want := range map[int]time.Duration{5: 0, 100: 40, 110: 40, 200: 120, 510: 420} {
		if got := m.late(from, at(to)); got != want*time.Millisecond {
			t.Errorf("late by %v in %d ms, want %d ms", got, to, want)
		}
	}
}
