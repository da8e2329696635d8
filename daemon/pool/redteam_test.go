package pool

import (
	"bytes"
	"fmt"
	"os"
	"runtime"
	"slices"
	"sync"
	"testing"
	"text/tabwriter"

	"github.com/executord/executord/ipc/protocol"
	"github.com/executord/executord/ipc/testbin"
	"github.com/executord/executord/ipc/worker"
)

// The red team: an attacker has native code in the worker (sandbox/attacks_on.go), which is the real one in the cage of the
// real launcher. Each attempt is made twice: as it is, and without the filter on system calls, to see what stands then.

func TestRedTeam(t *testing.T) {
	if runtime.GOARCH != "amd64" {
		t.Skip("the attacks are written for amd64")
	}
	if testing.Short() {
		t.Skip("each attack takes a worker")
	}
	sealed, unsealed := redTeam(t), redTeam(t, "unsealed")
	whole := len(expected(t)) == len(worker.Layers())
	var text bytes.Buffer
	table := tabwriter.NewWriter(&text, 0, 8, 2, ' ', 0)
	var both sync.WaitGroup // they take turns in waiting for workers
	var endings, endingsUnsealed []string
	both.Go(func() { endings = sealed.attackAll(testbin.Attempts) })
	both.Go(func() { endingsUnsealed = unsealed.attackAll(testbin.Attempts) })
	both.Wait()
	if t.Failed() {
		t.FailNow()
	}
	for i, a := range testbin.Attempts {
		with, without := endings[i], endingsUnsealed[i]
		fmt.Fprintf(table, "%s %s\t%s\twithout the filter: %s\n", a.Name, a.Target, with, without)
		if !testbin.EndsBy(with, a.Sealed) {
			t.Errorf("%s %s ended by %q, want %q", a.Name, a.Target, with, a.Sealed)
		}
		if whole && a.Unsealed != "" && !testbin.EndsBy(without, a.Unsealed) {
			t.Errorf("%s %s without the filter ended by %q, want %q", a.Name, a.Target, without, a.Unsealed)
		}
	}
	table.Flush()
	for _, x := range []*team{sealed, unsealed} {
		if died := x.Stats().Totals.Crashed; died != x.crashes {
			t.Errorf("%d workers died, of which %d were the attacker's", died, x.crashes)
		}
	}
	if with := redTeam(t, "logging").attack(testbin.Attempt{Name: "memfd"}); with != "done" {
		t.Errorf("a filter that only logs ended an attack by %q", with)
	}
	t.Logf("%d attempts\n%s", len(testbin.Attempts), &text)
}

// team is a pool of two faulty workers, one of which is attacked by the other, and what else may be attacked.
type team struct {
	*bench
	args    []string // of the workers
	targets testbin.Targets
	crashes uint64 // of attackers
}

func redTeam(t *testing.T, args ...string) *team {
	t.Helper()
	c := testConfig()
	c.Workers, c.WorkerMaxExecutions, c.Launcher = 2, 1, launcherOf(t, testbin.FaultyWorker(t), args...)
	c.Limits.HeapMiB, c.Limits.BufferMiB, c.Limits.SlackMiB = 32, 16, 64
	b := newBench(t, c, realOutside())
	b.waitReady()
	x := &team{bench: b, args: args, targets: testbin.Targets{Daemon: os.Getpid()}}
	x.targets.Socket, x.targets.Abstract = testbin.Sockets(t)
	return x
}

// attackAll makes all attempts and tells how they ended.
func (x *team) attackAll(attempts []testbin.Attempt) (endings []string) {
	for _, a := range attempts {
		endings = append(endings, x.attack(a))
	}
	return endings
}

// attack has a worker make an attempt, tells how it ended, and wants that nobody else noticed.
func (x *team) attack(a testbin.Attempt) string {
	x.t.Helper()
	out := x.order(a)
	// Each program costs a worker: without the filter the number of deaths at the end has to do.
	if !slices.Contains(x.args, "unsealed") {
		if next := x.run(program("return 42")); string(next.Value) != "42" {
			x.t.Errorf("after %s: %v", a.Name, next.Error)
		}
	}
	return testbin.End(out)
}

// order has a worker make an attempt, until it is on another one than its own where it should be.
func (x *team) order(a testbin.Attempt) *protocol.Outcome {
	x.t.Helper()
	for turn := 0; ; turn++ {
		x.waitReady()
		workers := x.Workers()
		sibling := workers[turn%len(workers)]
		x.targets.Sibling = sibling.PID
		out := x.run(program(a.Program(x.targets)))
		if typeOf(out) == protocol.WorkerCrashed {
			x.crashes++
		}
		if !a.Missed(out, sibling.Name) {
			return out
		}
	}
}
