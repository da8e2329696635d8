package box

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"testing"
	"text/tabwriter"

	"github.com/executord/executord/ipc/client"
	"github.com/executord/executord/ipc/protocol"
	"github.com/executord/executord/ipc/testbin"
)

const (
	workerPath = "/usr/libexec/executord/executor-worker"
	faulty     = "executor-worker-faulty" // beside the test binary
)

// The red team in worker units: native code of an attacker in the worker's place. Each attempt is made twice, as with the
// other launcher: with the worker's own filter, and with nothing but what systemd has put around it.
func TestRedTeam(t *testing.T) {
	text, err := os.ReadFile(faulty)
	if err != nil {
		t.Skip("there is no attacker for this machine: ", err)
	}
	units(t, service, "[Service]\nEnvironment=EXECUTORD_WORKERS=2 EXECUTORD_WORKER_MAX_EXECUTIONS=1\n")
	genuine, err := os.ReadFile(workerPath)
	if err != nil {
		t.Fatal(err)
	}
	replaceWorker(t, text)
	t.Cleanup(func() { replaceWorker(t, genuine) })

	sealed := attackAll(t, "")
	unsealed := attackAll(t, "[Service]\nExecStart=\nExecStart="+workerPath+" -unit unsealed\n")
	var listed bytes.Buffer
	table := tabwriter.NewWriter(&listed, 0, 8, 2, ' ', 0)
	for i, a := range testbin.Attempts {
		fmt.Fprintf(table, "%s %s\t%s\twithout the worker's own filter: %s\n", a.Name, a.Target, sealed[i], unsealed[i])
		// On a machine that is very busy V8 was seen to get no memory before the attack began.
		if !testbin.EndsBy(sealed[i], a.Sealed+" or "+string(protocol.MemoryLimit)) {
			t.Errorf("%s %s ended by %q, want %q", a.Name, a.Target, sealed[i], a.Sealed)
		}
		if unsealed[i] == "done" && !slices.Contains(allowed, a.Name+" "+a.Target) {
			t.Errorf("%s %s is done where the worker does not confine itself", a.Name, a.Target)
		}
	}
	table.Flush()
	t.Logf("%d attempts\n%s", len(testbin.Attempts), &listed)
}

// allowed is what a unit lets a process do to itself: see the empty folder, be one of its few tasks, have itself traced by nobody,
// confine itself.
// A signal to a thread, which a process needs to end as it should, reaches siblings as far as no PID namespace is around it:
// systemd makes them from 257 on. The worker's own filter lets it pass to the worker alone.
var allowed = []string{"open-read /", "fork ", "dumpable ", "landlock ", "tgkill sibling"}

func replaceWorker(t *testing.T, text []byte) {
	t.Helper()
	run(t, "systemctl", "stop", service, "executor-worker.socket")
	next := workerPath + ".new"
	if err := os.WriteFile(next, text, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(next, workerPath); err != nil {
		t.Fatal(err)
	}
	run(t, "systemctl", "start", "executor-worker.socket")
}

// attackAll makes all attempts, and tells how each ended. After each the next program runs, and the service is the same.
func attackAll(t *testing.T, addition string) (ends []string) {
	t.Helper()
	if addition != "" {
		dropIn(t, "executor-worker@.service", addition)
	}
	run(t, "systemctl", "restart", service)
	works(t)
	pid := mainPID(t)
	c := dial(t)
	targets := testbin.Targets{Daemon: pid}
	targets.Socket, targets.Abstract = testbin.Sockets(t)
	for _, a := range testbin.Attempts {
		ends = append(ends, attack(t, c, a, targets))
		if o, err := c.Execute(ctx(t), program("6 * 7")); err != nil || string(o.Value) != "42" {
			t.Errorf("after %s: %v", a.Name, err)
		}
	}
	if now := mainPID(t); now != pid {
		t.Error("the service was started again")
	}
	return ends
}

// sibling is the process of one of several workers that wait, another one with each turn.
func sibling(t *testing.T, turn int) (pid int, name string) {
	t.Helper()
	type member struct {
		Name  string `json:"name"`
		PID   int    `json:"pid"`
		State string `json:"state"`
	}
	var list struct {
		Workers []member `json:"workers"`
	}
	eventually(t, "two workers wait", func() bool {
		out := run(t, "executorctl", "worker", "list", "--json")
		if err := json.Unmarshal([]byte(out), &list); err != nil {
			t.Fatalf("%v in %s", err, out)
		}
		list.Workers = slices.DeleteFunc(list.Workers, func(w member) bool { return w.State != "idle" })
		return len(list.Workers) >= 2
	})
	found := list.Workers[turn%len(list.Workers)]
	return found.PID, found.Name
}

// attack makes an attempt, again where a worker attacked itself in another's place, and tells how it ended.
func attack(t *testing.T, c *client.Client, a testbin.Attempt, targets testbin.Targets) string {
	t.Helper()
	for turn := 0; ; turn++ {
		var name string
		targets.Sibling, name = sibling(t, turn)
		r := program(a.Program(targets))
		r.Limits = protocol.Limits{HeapMiB: 32, BufferMiB: 16, SlackMiB: 64}
		o, err := c.Execute(ctx(t), r)
		if err != nil {
			return err.Error()
		}
		if !a.Missed(o, name) {
			return testbin.End(o)
		}
	}
}
