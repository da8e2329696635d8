package e2e

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/executord/executord/ipc/client"
	"github.com/executord/executord/ipc/executor"
	"github.com/executord/executord/ipc/protocol"
	"github.com/executord/executord/ipc/testbin"
)

// hostileVariable names the environment variable with a pattern: all hostile programs whose names match run, and each is
// reported. Without it a fixed choice runs.
const hostileVariable = "EXECUTORD_HOSTILE"

// hostile is a program that tries to outlive, outgrow or crash its sandbox; see testdata/README.md.
type hostile struct {
	Name    string          `json:"name"`
	Kind    string          `json:"kind"` // "time", "memory" or "attack"
	Code    string          `json:"code"`
	Limits  protocol.Limits `json:"limits"`
	Allowed []string        `json:"allowed"` // types of endings, or "ok"
	Seen    string          `json:"seen"`    // how it ended elsewhere: what it is like
}

// What holds for the programs that do not say.
var (
	hostileLimits  = protocol.Limits{CPUMs: 1500, WallMs: 1500, TotalMs: 2000, HeapMiB: 64, BufferMiB: 64}
	hostileAllowed = []string{"ok", "exception", "syntax", "wall_timeout", "cpu_timeout", "memory_limit", "deadlock"}
)

const (
	// hostileGrace is what an execution may take over its total limit.
	hostileGrace = 500 * time.Millisecond
	// hostileRSS is what a worker may have resident: heap and buffers of the limits, the engine, and garbage.
	hostileRSS = (64 + 64 + 300) << 20
)

// TestHostileProgramsHurtNobody runs the programs, two at a time, beside a neighbour. Each ends in a way that is allowed
// to it, in time and with what it printed, the next execution succeeds, and the neighbour notices nothing. Afterwards the
// service is as it was before.
func TestHostileProgramsHurtNobody(t *testing.T) {
	programs := choose(t, append(hostiles(t, "testdata/hostile.jsonl", 217), hostiles(t, "testdata/attacks.jsonl", 28)...))
	calm := startThree(t)
	calm.rest()
	resting := calm.goroutines()
	s := startThree(t)
	before := s.rest()
	a := &assault{t: t, service: s, running: map[string]bool{}}
	a.monitor = s.monitor(hostileRSS, a.tooLarge)
	a.neighbour = s.neighbour()
	began := time.Now()
	a.attack(programs)
	took := time.Since(began)
	a.neighbour.leave()
	a.monitor.close()
	a.judge()
	s.settle(before)
	a.report(took)
	s.hasRoom()
	s.settle(before)
	if now := s.goroutines(); !maps.Equal(now, resting) {
		t.Errorf("the service has the goroutines %v, a fresh one %v", now, resting)
	}
}

// rest runs what makes everything that is made once, and returns what the service has then.
func (s *service) rest() vitals {
	s.neighbourly()
	var v vitals
	if !within(20*time.Second, func() bool {
		last := v
		v = s.vitals()
		return v.workers == threeWorkers+spares && v.descriptors == last.descriptors && v.threads == last.threads
	}) {
		s.tb.Fatalf("the service does not come to rest: %v", v)
	}
	return v
}

// neighbourly runs one execution on each of the two sockets.
func (s *service) neighbourly() {
	n := s.neighbour()
	defer n.leave()
	c := s.dial()
	defer c.Close()
	r := program("await codemode.echo(1)")
	r.Provide(codemode())
	if o := run(s.tb, c, r); string(o.Value) != "1" {
		s.tb.Fatalf("got %s, %v", o.Value, o.Error)
	}
	within(10*time.Second, func() bool { return n.slowest(time.Time{}, time.Now()) > 0 })
}

// hostiles reads n programs.
func hostiles(t *testing.T, file string, n int) (programs []hostile) {
	t.Helper()
	f, err := os.Open(file)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	for lines := bufio.NewScanner(f); lines.Scan(); {
		h := hostile{Limits: hostileLimits}
		if err := json.Unmarshal(lines.Bytes(), &h); err != nil {
			t.Fatal(err)
		}
		if h.Allowed == nil {
			h.Allowed = hostileAllowed
		}
		programs = append(programs, h)
	}
	if len(programs) != n {
		t.Fatalf("%s has %d programs, want %d", file, len(programs), n)
	}
	return programs
}

// choose takes what the variable says, else some of each sort: what ends alike is alike.
func choose(t *testing.T, programs []hostile) []hostile {
	t.Helper()
	if pattern := os.Getenv(hostileVariable); pattern != "" {
		match := regexp.MustCompile(pattern)
		return slices.DeleteFunc(programs, func(h hostile) bool { return !match.MatchString(h.Name) })
	}
	every := 8
	if testing.Short() {
		every = 24
	}
	met := map[string]int{}
	return slices.DeleteFunc(programs, func(h hostile) bool {
		sort := h.Kind + h.Seen
		if h.Kind == "attack" {
			return h.Limits.WallMs > 1000 || testing.Short() && h.Limits.ToolCalls == 0
		}
		met[sort]++
		return met[sort]%every != 1
	})
}

// request is the program with a line before it, which has to be among what it printed.
func (h hostile) request() executor.Request {
	r := program("console.log('before');" + h.Code)
	if r.Form = protocol.FormModule; h.Kind == "attack" {
		r.Code, r.Form = "async () => { console.log('before'); return await ("+h.Code+")(); }", protocol.FormFunction
		r.Provide(codemode())
	}
	r.Limits = h.Limits
	return r
}

// codemode has the tools of the attacks.
func codemode() executor.Provider {
	tools := maps.Clone(echo().Tools)
	tools["never"] = func(ctx context.Context, _ []protocol.Value) (protocol.Value, error) {
		<-ctx.Done()
		return nil, ctx.Err()
	}
	return executor.Provider{Name: "codemode", Tools: tools}
}

// assault is hostile programs at work on a service, and what came of it.
type assault struct {
	t         *testing.T
	service   *service
	monitor   *monitor
	neighbour *neighbour

	mu      sync.Mutex
	running map[string]bool
	endings []ending
}

// ending is how a hostile program ended, as its caller saw it.
type ending struct {
	hostile
	began   time.Time
	took    time.Duration
	outcome *protocol.Outcome
	err     error
}

func (e ending) kind() string {
	switch {
	case e.err != nil:
		return e.err.Error()
	case e.outcome.Error != nil:
		return string(e.outcome.Error.Type)
	}
	return "ok"
}

// overrun is the service's own count of how far it went over the limit that was told to be passed, or else the total.
func (e ending) overrun() time.Duration {
	stats := e.outcome.Stats
	over := stats.TotalMs - float64(e.Limits.TotalMs)
	switch e.kind() {
	case "wall_timeout":
		over = stats.WallMs - float64(e.Limits.WallMs)
	case "cpu_timeout":
		over = stats.CPUMs - float64(e.Limits.CPUMs)
	}
	return time.Duration(over * float64(time.Millisecond))
}

// attack runs the programs, two at a time, each attacker over a connection of his own.
func (a *assault) attack(programs []hostile) {
	work := make(chan hostile)
	var attackers sync.WaitGroup
	for range 2 {
		c := a.service.dial()
		attackers.Go(func() {
			defer c.Close()
			for h := range work {
				a.one(c, h)
			}
		})
	}
	for _, h := range programs {
		if !testbin.Alive(a.service.cmd.Process.Pid) {
			a.t.Errorf("the service is gone before %s", h.Name)
			break
		}
		work <- h
	}
	close(work)
	attackers.Wait()
}

// one runs a program, and after it one that has to succeed.
func (a *assault) one(c *client.Client, h hostile) {
	a.note(h.Name, true)
	defer a.note(h.Name, false)
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	e := ending{hostile: h, began: time.Now()}
	e.outcome, e.err = c.Execute(ctx, h.request())
	e.took = time.Since(e.began)
	a.mu.Lock()
	a.endings = append(a.endings, e)
	a.mu.Unlock()
	if next, err := c.Execute(ctx, program("1+1")); err != nil || string(next.Value) != "2" {
		a.t.Errorf("%s: the next execution gave %+v, %v", h.Name, next, err)
	}
}

func (a *assault) note(name string, running bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.running[name] = running
}

// tooLarge hears of a worker that passes its bound.
func (a *assault) tooLarge(pid int, rss int64) {
	a.mu.Lock()
	defer a.mu.Unlock()
	maps.DeleteFunc(a.running, func(_ string, running bool) bool { return !running })
	a.t.Errorf("worker %d has %d MiB resident while %q run", pid, rss>>20, slices.Sorted(maps.Keys(a.running)))
}

// judge holds every ending against what is allowed to it.
func (a *assault) judge() {
	for _, e := range a.endings {
		switch {
		case e.err != nil:
			a.t.Errorf("%s: the caller got %v", e.Name, e.err)
			continue
		case !slices.Contains(e.Allowed, e.kind()):
			a.t.Errorf("%s ended in %s (%+v), allowed are %q", e.Name, e.kind(), e.outcome.Error, e.Allowed)
		case e.kind() != "syntax" && (len(e.outcome.Logs) == 0 || e.outcome.Logs[0].Text != "before"):
			a.t.Errorf("%s ended in %s without what it printed", e.Name, e.kind())
		}
		a.judgeTime(e)
	}
	if len(a.neighbour.failures) > 0 || len(a.neighbour.runs) == 0 {
		a.t.Errorf("the neighbour failed %d times in %d: %.5q", len(a.neighbour.failures), len(a.neighbour.runs), a.neighbour.failures)
	}
}

// judgeTime allows what the machine took from everybody at that time, by the monitor's looks, and to the caller also what
// the neighbour had to wait.
func (a *assault) judgeTime(e ending) {
	ended := e.began.Add(e.took)
	limit := time.Duration(e.Limits.TotalMs)*time.Millisecond + hostileGrace + a.monitor.late(e.began, ended)
	stats := e.outcome.Stats
	if total := time.Duration(stats.TotalMs) * time.Millisecond; total > limit {
		a.t.Errorf("%s ended in %s after %v by the service's clock, allowed are %v", e.Name, e.kind(), total, limit)
	}
	waited := e.took - time.Duration(stats.QueueMs)*time.Millisecond
	if limit += a.neighbour.slowest(e.began, ended); waited > limit {
		a.t.Errorf("%s: the caller waited %v for %s, allowed are %v", e.Name, waited, e.kind(), limit)
	}
}

// report prints the figures, and each ending where programs were asked for by name.
func (a *assault) report(took time.Duration) {
	var b strings.Builder
	kinds, counts := map[string]bool{}, map[string]int{}
	longest := a.endings[0]
	for _, e := range a.endings {
		if e.err != nil {
			continue
		}
		kinds[e.kind()] = true
		counts[e.Kind+e.kind()]++
		if longest.err != nil || e.overrun() > longest.overrun() {
			longest = e
		}
		if os.Getenv(hostileVariable) != "" {
			fmt.Fprintf(&b, "%-34s %-18s %7.0f ms  before: %s\n", e.Name, e.kind(), e.outcome.Stats.TotalMs, e.Seen)
		}
	}
	fmt.Fprintf(&b, "%-18s %6s %6s %6s\n", "ending", "time", "memory", "attack")
	for _, kind := range slices.Sorted(maps.Keys(kinds)) {
		fmt.Fprintf(&b, "%-18s %6d %6d %6d\n", kind, counts["time"+kind], counts["memory"+kind], counts["attack"+kind])
	}
	rss, workers := a.monitor.peak()
	fmt.Fprintf(&b, "%d programs in %v, longest overrun %v (%s), at most %d MiB resident in one of %d workers\n",
		len(a.endings), took.Round(time.Second), longest.overrun().Round(time.Millisecond), longest.Name, rss>>20, workers)
	a.t.Logf("\n%s%v", b.String(), a.neighbour)
}
