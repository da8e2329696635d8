package e2e

import (
	"context"
	"math/rand/v2"
	"os"
	"os/exec"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/executord/executord/daemon/e2e/gauge"
	"github.com/executord/executord/daemon/e2e/latency"
	"github.com/executord/executord/ipc/client"
	"github.com/executord/executord/ipc/executor"
	"github.com/executord/executord/ipc/protocol"
	"github.com/executord/executord/ipc/testbin"
)

// latencyVariable names the environment variable with how many rounds the latency benchmark makes, and latencyFolder is
// where it writes to then, which git ignores.
const (
	latencyVariable = "EXECUTORD_LATENCY"
	latencyFolder   = "../../bench"
)

const (
	latencyEach   = 10                    // samples of a kind in a round
	latencyCold   = 3                     // of those that start a process
	latencyGap    = 10 * time.Millisecond // idle time after each, in which the next isolate is made
	latencySettle = 60 * time.Millisecond // a service that hardly computes for so long rests
)

// latencyTouches are programs that first touch an interface of the library; its value is true.
var latencyTouches = []struct{ name, code string }{
	{"new URL()", `new URL("https://example.com/a?b").search === "?b"`},
	{"new Headers()", `new Headers({ a: "b" }).get("a") === "b"`},
	{"fetch, Request", `typeof fetch === "function" && new Request("https://example.com/").method === "GET"`},
	{"crypto.subtle", `(await crypto.subtle.digest("SHA-256", new Uint8Array(1))).byteLength === 32`},
	{"ReadableStream", `(await new ReadableStream({ start(c) { c.enqueue(1); c.close(); } }).getReader().read()).value === 1`},
}

// TestLatency measures what callers wait for, all kinds in turn, so that what else the machine does hits them alike, and
// writes it down. Without the variable it makes one small round, which shows that it can.
func TestLatency(t *testing.T) {
	rounds, each, cold, folder := 1, 1, 1, t.TempDir()
	if text := os.Getenv(latencyVariable); text != "" {
		var err error
		if rounds, err = strconv.Atoi(text); err != nil || rounds < 1 {
			t.Fatalf("%s is %q, not a number of rounds", latencyVariable, text)
		}
		each, cold, folder = latencyEach, latencyCold, latencyFolder
	}
	record := latency.Record{
		Commit: commit(), Time: time.Now(), Machine: gauge.Machine(), Go: runtime.Version(), LoadBefore: gauge.Load(),
	}
	l := newLatencies(t)
	for range rounds {
		l.round(each, cold)
	}
	record.LoadAfter = gauge.Load()
	record.Rows = l.rows()
	for _, row := range record.Rows {
		want := rounds * each
		if row.Name == kindCold {
			want = rounds * cold
		}
		if row.Samples != want {
			t.Errorf("%s has %d samples, not %d", row.Name, row.Samples, want)
		}
	}
	if err := latency.Write(folder, &record); err != nil {
		t.Fatal(err)
	}
	if folder == latencyFolder {
		table, err := os.ReadFile(folder + "/latency.md")
		t.Logf("%s, %v", table, err)
	}
}

// commit is the one that is measured, short, with a word if the tree has changes; unknown-dirty outside of a repository.
func commit() string {
	out, err := exec.Command("git", "describe", "--always", "--dirty", "--abbrev=12", "--exclude", "*").Output()
	if err != nil {
		return "unknown-dirty"
	}
	return strings.TrimSpace(string(out))
}

// latencies are the services that are measured and what came of it.
type latencies struct {
	t              *testing.T
	warm, cold     *service // with one worker, and with a new one for each program
	toWarm, toCold *client.Client
	kinds          map[string]*kind
}

// kind is one sort of execution and what was measured of it.
type kind struct {
	name    string
	one     func() time.Duration
	samples []float64 // ms
	cpuMs   float64   // in all
}

// The kinds that rows are made of, besides those of latencyTouches.
const (
	kindCold    = "cold worker"
	kindWarm    = "warm worker"
	kindQueued  = "queued"
	kindCall    = "1 call"
	kindCalls   = "100 calls"
	kindInvoked = "handle invoke"
)

func newLatencies(t *testing.T) *latencies {
	l := &latencies{t: t, kinds: map[string]*kind{}}
	l.warm = start(t, testbin.Worker(t), "--workers", "1")
	l.cold = start(t, testbin.Worker(t), "--workers", "1", "--spare-workers", "0", "--worker-max-executions", "1")
	l.toWarm, l.toCold = l.warm.dial(), l.cold.dial()
	t.Cleanup(func() {
		_ = l.toWarm.Close()
		_ = l.toCold.Close()
	})
	l.add(kindCold, func() time.Duration { return l.execute(l.toCold, "1 + 1", "2") })
	l.add(kindWarm, func() time.Duration { return l.execute(l.toWarm, "1 + 1", "2") })
	l.add(kindQueued, l.queued)
	for name, n := range map[string]string{kindCall: "1", kindCalls: "100"} {
		code := "let n = 0; for (let i = 0; i < " + n + "; i++) n += await tools.echo(1); n"
		l.add(name, func() time.Duration { return l.execute(l.toWarm, code, n) })
	}
	for _, touch := range latencyTouches {
		l.add(touch.name, func() time.Duration { return l.execute(l.toWarm, touch.code, "true") })
	}
	return l
}

func (l *latencies) add(name string, one func() time.Duration) {
	l.kinds[name] = &kind{name: name, one: one}
}

// round samples every kind. Those that others are compared with are sampled among them.
func (l *latencies) round(each, cold int) {
	warm := []string{kindWarm, kindQueued, kindCall, kindCalls}
	for _, touch := range latencyTouches {
		warm = append(warm, touch.name)
	}
	l.measure(l.warm, each, latencyGap, warm...)
	invoke, release := l.retain()
	if l.kinds[kindInvoked] == nil {
		l.add(kindInvoked, nil)
	}
	l.kinds[kindInvoked].one = invoke
	l.measure(l.warm, each, latencyGap, kindInvoked)
	release()
	l.measure(l.cold, cold, 0, kindCold)
}

// measure takes samples of kinds in a new order each time, and the CPU time of the service and its workers, after one of
// each that does not count. What work one leaves that takes longer than the gap is counted for the next.
func (l *latencies) measure(s *service, samples int, gap time.Duration, names ...string) {
	l.t.Helper()
	cpu := func() float64 { return gauge.Milliseconds(gauge.FamilyCPU(s.cmd.Process.Pid)) }
	for _, name := range names {
		l.kinds[name].one()
	}
	l.rest()
	for range samples {
		for _, i := range rand.Perm(len(names)) {
			k, before := l.kinds[names[i]], cpu()
			k.samples = append(k.samples, gauge.Milliseconds(k.one()))
			time.Sleep(gap)
			k.cpuMs += cpu() - before
		}
	}
}

// rest waits until the services have nothing left to do, such as starting a worker in the place of another one: at most
// ten seconds, so that a service which never rests is measured all the same.
func (l *latencies) rest() {
	cpu := func() time.Duration {
		return gauge.FamilyCPU(l.warm.cmd.Process.Pid) + gauge.FamilyCPU(l.cold.cmd.Process.Pid)
	}
	before := cpu()
	within(10*time.Second, func() bool {
		time.Sleep(latencySettle)
		now := cpu()
		spent := now - before
		before = now
		return spent < latencySettle/20
	})
}

// execute runs a program that has the tool echo, and returns how long that took.
func (l *latencies) execute(c *client.Client, code, want string) time.Duration {
	l.t.Helper()
	r := program(code)
	r.Provide(echo())
	begin := time.Now()
	o := run(l.t, c, r)
	took := time.Since(begin)
	l.expect(o, want)
	return took
}

func (l *latencies) expect(o *protocol.Outcome, want string) {
	l.t.Helper()
	if o.Error != nil || string(o.Value) != want {
		l.t.Fatalf("got %s, %v, not %s", o.Value, o.Error, want)
	}
}

// queued has a program wait in the queue behind one that ends when the wait is known to have begun, and returns how long
// after the outcome of the one ahead its own came.
func (l *latencies) queued() time.Duration {
	l.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	begun, waits := make(chan struct{}), make(chan struct{})
	ahead, behind := program("await tools.hold()"), program("1 + 1")
	ahead.Provide(executor.Provider{Name: "tools", Tools: map[string]executor.Tool{
		"hold": func(ctx context.Context, _ []protocol.Value) (protocol.Value, error) {
			close(begun)
			select {
			case <-waits:
			case <-ctx.Done():
			}
			return protocol.Value("1"), nil
		},
	}})
	release := sync.OnceFunc(func() { close(waits) })
	behind.OnState = func(s protocol.State) {
		if s.State == protocol.StateQueued {
			release()
		}
	}
	type end struct {
		outcome *protocol.Outcome
		err     error
		at      time.Time
	}
	ended := make(chan end, 1)
	go func() {
		o, err := l.toWarm.Execute(ctx, ahead)
		ended <- end{o, err, time.Now()}
	}()
	select {
	case <-begun:
	case <-ctx.Done():
		l.t.Fatal("the program ahead does not begin")
	}
	o := run(l.t, l.toWarm, behind)
	at := time.Now()
	first := <-ended
	if first.err != nil {
		l.t.Fatal(first.err)
	}
	l.expect(first.outcome, "1")
	l.expect(o, "2")
	return at.Sub(first.at)
}

// retain runs a program that leaves a function, and returns what invokes that, and what releases it.
func (l *latencies) retain() (invoke func() time.Duration, release func()) {
	l.t.Helper()
	r := program("let n = 0; ({ add: (m) => n += m })")
	r.Retain = &protocol.Retain{}
	handles := executor.NewHandles(l.toWarm, executor.Request{})
	found, err := handles.In(run(l.t, l.toWarm, r).Value)
	if err != nil || len(found) != 1 {
		l.t.Fatalf("%d handles, %v", len(found), err)
	}
	sum := 0
	return func() time.Duration {
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		defer cancel()
		begin := time.Now()
		v, err := found[0].Call(ctx, 1)
		took := time.Since(begin)
		if sum++; err != nil || string(v) != strconv.Itoa(sum) {
			l.t.Fatalf("invocation %d gave %s, %v", sum, v, err)
		}
		return took
	}, handles.Close
}

// rows are what is told of the kinds.
func (l *latencies) rows() []latency.Row {
	rows := []latency.Row{
		l.row(kindCold, "1 + 1 in a new process, asked for when the one before has its outcome"),
		l.row(kindWarm, "1 + 1, from request to outcome"),
		l.row(kindQueued, "1 + 1, from the outcome of the program ahead to its own; CPU of both"),
		l.row(kindCalls, "a program with 100 tool calls, one after the other"),
		l.less("tool round trip", kindCalls, kindCall, 99, "one more tool call: 100 calls less the p50 of 1 call, by 99"),
	}
	for _, touch := range latencyTouches {
		rows = append(rows, l.less("touch "+touch.name, touch.name, kindWarm, 1, "its first use: the program less the p50 of warm worker"))
	}
	return append(rows, l.row(kindInvoked, "a retained function, from call to value"))
}

func (l *latencies) row(name, what string) latency.Row {
	k := l.kinds[name]
	return latency.NewRow(name, what, k.samples, k.each())
}

// less makes a row of what a kind takes more than the median of another one, divided.
func (l *latencies) less(name, of, base string, by float64, what string) latency.Row {
	k, b := l.kinds[of], l.kinds[base]
	rest := gauge.Quantile(b.samples, 0.5)
	var samples []float64
	for _, ms := range k.samples {
		samples = append(samples, (ms-rest)/by)
	}
	return latency.NewRow(name, what, samples, (k.each()-b.each())/by)
}

// each is the CPU time of one, in milliseconds.
func (k *kind) each() float64 { return k.cpuMs / float64(len(k.samples)) }
