package e2e

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/executord/executord/ipc/client"
	"github.com/executord/executord/ipc/executor"
	"github.com/executord/executord/ipc/protocol"
)

// soakVariable names the environment variable with the length of the soak.
const soakVariable = "EXECUTORD_SOAK"

const (
	soakClients = 4
	soakEach    = 3       // executions of a client at once
	soakBytes   = 1 << 20 // the largest value
)

// TestSoak: under mixed load, with workers and connections dying all the time, every execution gets exactly one answer,
// and the right one. Afterwards the service is as it was before.
func TestSoak(t *testing.T) {
	length := 15 * time.Second
	if testing.Short() {
		length = 5 * time.Second
	}
	if text := os.Getenv(soakVariable); text != "" {
		var err error
		if length, err = time.ParseDuration(text); err != nil {
			t.Fatal(err)
		}
	}
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	calm := startThree(t)
	calm.rest()
	resting := calm.goroutines()
	s := startThree(t)
	before := s.rest()
	k := newSoak(t, s, seed)
	k.monitor = s.monitor(soakRSS, func(pid int, rss int64) { t.Errorf("worker %d has %d MiB resident", pid, rss>>20) })
	k.neighbour = s.neighbour()
	k.run(length)
	k.neighbour.leave()
	k.monitor.close()
	s.settle(before)
	k.judge()
	k.report(length, before, s.vitals())
	s.hasRoom()
	s.settle(before)
	if now := s.goroutines(); !maps.Equal(now, resting) {
		t.Errorf("the service has the goroutines %v, a fresh one %v", now, resting)
	}
}

// soakRSS is hostileRSS: all programs have those limits of memory.
const soakRSS = hostileRSS

// soak is the load and what came of it.
type soak struct {
	t         *testing.T
	service   *service
	monitor   *monitor
	neighbour *neighbour
	seed      uint64
	hostile   []hostile
	lines     []*line
	kills     atomic.Int64

	mu       sync.Mutex
	counts   map[string]int
	took     []time.Duration // of programs that are no harm
	failures []string
}

func newSoak(t *testing.T, s *service, seed uint64) *soak {
	k := &soak{t: t, service: s, seed: seed, counts: map[string]int{}, hostile: hostiles(t, "testdata/hostile.jsonl", 217)}
	for range soakClients {
		w := s.lay()
		k.lines = append(k.lines, &line{w, w.dial()})
	}
	return k
}

// line is a client on a wire.
type line struct {
	*wire
	client *client.Client
}

func (l *line) close() {
	_ = l.client.Close()
	l.wire.close()
}

// run puts the load on the service for a while, and waits until all answers are there.
func (k *soak) run(length time.Duration) {
	ctx, stop := context.WithTimeout(k.t.Context(), length)
	defer stop()
	var all sync.WaitGroup
	random := func(n int) *rand.Rand { return rand.New(rand.NewPCG(k.seed, uint64(n))) }
	for i, l := range k.lines {
		var users sync.WaitGroup
		for j := range soakEach {
			users.Go(func() { k.use(ctx, l, random(100*i+j)) })
		}
		all.Go(func() {
			users.Wait()
			l.close()
		})
	}
	all.Go(func() { k.every(ctx, random(-1), 500*time.Millisecond, 3*time.Second, k.killWorker) })
	all.Go(func() { k.every(ctx, random(-2), time.Second, 4*time.Second, k.cutWire) })
	all.Wait()
}

// every does something at random times.
func (k *soak) every(ctx context.Context, r *rand.Rand, least, most time.Duration, do func(*rand.Rand)) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-time.After(between(r, least, most)):
			do(r)
		}
	}
}

func (k *soak) killWorker(r *rand.Rand) {
	if pids := k.service.workers(); len(pids) > 0 && syscall.Kill(pids[r.IntN(len(pids))], syscall.SIGKILL) == nil {
		k.kills.Add(1)
	}
}

func (k *soak) cutWire(r *rand.Rand) { k.lines[r.IntN(len(k.lines))].cut() }

// use runs one program after the other.
func (k *soak) use(ctx context.Context, l *line, r *rand.Rand) {
	for ctx.Err() == nil {
		p := k.program(r)
		patience, cancel := context.WithTimeout(context.Background(), time.Minute)
		if p.cancel > 0 {
			patience, cancel = context.WithTimeout(context.Background(), p.cancel)
		}
		began := time.Now()
		o, err := l.client.Execute(patience, p.request)
		took := time.Since(began)
		cancel()
		k.note(p, o, err, took)
	}
}

// note judges one answer.
func (k *soak) note(p trial, o *protocol.Outcome, err error, took time.Duration) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if err != nil {
		k.failures = append(k.failures, fmt.Sprintf("%s: %v", p.name, err))
		return
	}
	kind := "ok"
	if o.Error != nil {
		kind = string(o.Error.Type)
	}
	k.counts[kind]++
	switch {
	case kind == string(protocol.WorkerCrashed) && o.Error.Reason == "signal:SIGKILL":
		return // as many as were killed, see judge
	case kind == string(protocol.Cancelled) && p.cancel > 0:
		return
	}
	if wrong := p.check(o); wrong != "" {
		k.failures = append(k.failures, fmt.Sprintf("%s: %s", p.name, wrong))
	}
	if p.harmless {
		k.took = append(k.took, took)
	}
}

// trial is a program and what its answer has to be.
type trial struct {
	name     string
	request  executor.Request
	cancel   time.Duration                    // after which its caller loses interest, 0 for never
	harmless bool                             // its time counts
	check    func(o *protocol.Outcome) string // what is wrong, empty for nothing
}

// program makes up one.
func (k *soak) program(r *rand.Rand) trial {
	kinds := []func(*rand.Rand) trial{sums, sums, sums, texts, texts, byteses, long, prints, throws, gaveUp, k.harmful}
	p := kinds[r.IntN(len(kinds))](r)
	if p.request.Limits == (protocol.Limits{}) {
		p.request.Limits = protocol.Limits{CPUMs: 20_000, WallMs: 40_000, TotalMs: 50_000}
	}
	p.request.Limits.HeapMiB, p.request.Limits.BufferMiB = 64, 64
	return p
}

// returns checks a value.
func returns(want string) func(*protocol.Outcome) string {
	return func(o *protocol.Outcome) string {
		if o.Error != nil || string(o.Value) != want {
			return fmt.Sprintf("got %.100q (%d bytes), %v; want %.100q (%d bytes)", o.Value, len(o.Value), o.Error, want, len(want))
		}
		return ""
	}
}

// sums adds what tools give, some calls one after the other and some at once.
func sums(r *rand.Rand) trial {
	n, base := 1+r.IntN(30), r.IntN(1e6)
	code := fmt.Sprintf("let s = 0; for (let i = 0; i < %d; i++) s += await tools.echo(%d + i);", n, base)
	if r.IntN(2) == 0 {
		code = fmt.Sprintf("let s = 0; for (const x of await Promise.all(Array.from({length: %d}, (_, i) => tools.echo(%d + i)))) s += x;", n, base)
	}
	p := trial{name: "sums", request: program(code + " return s"), harmless: true, check: returns(fmt.Sprint(n*base + n*(n-1)/2))}
	p.request.Provide(echo())
	return p
}

// texts sends a string as the input, to a tool, and back.
func texts(r *rand.Rand) trial {
	text := make([]byte, size(r))
	for i := range text {
		text[i] = byte(' ' + r.IntN('~'-' '))
	}
	input, _ := json.Marshal(string(text))
	return passed("texts", input)
}

// byteses does the same with bytes.
func byteses(r *rand.Rand) trial {
	data := make([]byte, size(r)*3/4)
	for i := range data {
		data[i] = byte(r.Uint32())
	}
	return passed("bytes", fmt.Appendf(nil, `{"@bytes":%q}`, base64.StdEncoding.EncodeToString(data)))
}

func passed(name string, input protocol.Value) trial {
	p := trial{name: name, request: program("async (x) => await tools.echo(x)"), harmless: true}
	p.request.Input = input
	p.request.Provide(echo())
	p.check = func(o *protocol.Outcome) string {
		var got, want any
		if o.Error == nil && json.Unmarshal(o.Value, &got) == nil && json.Unmarshal(input, &want) == nil && fmt.Sprint(got) == fmt.Sprint(want) {
			return ""
		}
		return returns(string(input))(o)
	}
	return p
}

// size is small for the most part.
func size(r *rand.Rand) int { return r.IntN(soakBytes >> (2 * r.IntN(8))) }

// long returns up to the most.
func long(r *rand.Rand) trial {
	n := size(r)
	return trial{name: "long", request: program(fmt.Sprintf("return 'y'.repeat(%d)", n)), harmless: true, check: returns(`"` + strings.Repeat("y", n) + `"`)}
}

// prints lines, which must come in order and all.
func prints(r *rand.Rand) trial {
	n := r.IntN(500)
	p := trial{name: "prints", request: program(fmt.Sprintf("for (let i = 0; i < %d; i++) console.log('line ' + i)", n)), harmless: true}
	p.check = func(o *protocol.Outcome) string {
		for i, l := range o.Logs {
			if l.Text != fmt.Sprintf("line %d", i) {
				return fmt.Sprintf("line %d is %q", i, l.Text)
			}
		}
		if o.Error != nil || len(o.Logs) != n {
			return fmt.Sprintf("%d of %d lines, %v", len(o.Logs), n, o.Error)
		}
		return ""
	}
	return p
}

func throws(r *rand.Rand) trial {
	text := fmt.Sprintf("fault %d", r.Uint32())
	return trial{name: "throws", request: program(fmt.Sprintf("throw new RangeError(%q)", text)), harmless: true, check: func(o *protocol.Outcome) string {
		if o.Error == nil || o.Error.Type != protocol.Exception || o.Error.Name != "RangeError" || o.Error.Message != text {
			return fmt.Sprintf("got %s, %v; want %q", o.Value, o.Error, text)
		}
		return ""
	}}
}

// gaveUp is waited for in vain: its caller leaves early.
func gaveUp(r *rand.Rand) trial {
	code := []string{"for (;;) await tools.echo(1)", "for (;;);", "await new Promise((r) => setTimeout(r, 1e6))", "console.log('x'.repeat(1e5)); for (;;) await null"}
	p := trial{name: "gave up", request: program(code[r.IntN(len(code))]), cancel: between(r, time.Millisecond, 300*time.Millisecond)}
	p.request.Limits = protocol.Limits{CPUMs: 20_000, WallMs: 20_000, TotalMs: 30_000, ToolCalls: 100_000}
	p.request.Provide(echo())
	p.check = func(o *protocol.Outcome) string {
		return fmt.Sprintf("got %s, %v; want it cancelled", o.Value, o.Error)
	}
	return p
}

// harmful is one of the hostile programs, in a hurry.
func (k *soak) harmful(r *rand.Rand) trial {
	h := k.hostile[r.IntN(len(k.hostile))]
	h.Limits.CPUMs, h.Limits.WallMs, h.Limits.TotalMs = 300, 300, 1000
	return trial{name: h.Name, request: h.request(), check: func(o *protocol.Outcome) string {
		if e := (ending{hostile: h, outcome: o}); !slices.Contains(h.Allowed, e.kind()) {
			return fmt.Sprintf("ended in %s (%+v)", e.kind(), o.Error)
		}
		return ""
	}}
}

// judge reports what went wrong.
func (k *soak) judge() {
	for _, f := range k.failures[:min(len(k.failures), 20)] {
		k.t.Error(f)
	}
	for _, w := range k.lines {
		for _, o := range w.offences {
			k.t.Error(o)
		}
	}
	died, kills := k.counts[string(protocol.WorkerCrashed)]+len(k.neighbour.failures), int(k.kills.Load())
	if died > kills {
		k.t.Errorf("%d executions ended with their worker, %d workers were killed; the neighbour's failures: %q", died, kills, k.neighbour.failures)
	}
	if k.counts["ok"] == 0 || len(k.took) == 0 {
		k.t.Error("nothing ran")
	}
}

// report prints the figures.
func (k *soak) report(length time.Duration, before, after vitals) {
	var b strings.Builder
	total, answers, cuts := 0, 0, int64(0)
	for _, kind := range slices.Sorted(maps.Keys(k.counts)) {
		fmt.Fprintf(&b, "%-18s %7d\n", kind, k.counts[kind])
		total += k.counts[kind]
	}
	for _, w := range k.lines {
		answers += w.answers
		cuts += w.cuts.Load()
	}
	rss, workers := k.monitor.peak()
	fmt.Fprintf(&b, "%d executions in %v, %.1f a second, %d answers on the wires; harmless ones: %s\n", total, length, float64(total)/length.Seconds(), answers, percentiles(k.took))
	fmt.Fprintf(&b, "%v\n%d workers killed, %d connections cut, %d workers in all, at most %d MiB resident in one\n", k.neighbour, k.kills.Load(), cuts, workers, rss>>20)
	fmt.Fprintf(&b, "service before: %v\nservice after:  %v", before, after)
	k.t.Logf("\n%s", b.String())
}
