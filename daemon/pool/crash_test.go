package pool

import (
	"strings"
	"testing"

	"github.com/executord/executord/ipc/protocol"
)

// TestCrashesNameTheirExecution: the event of a worker that died has its last words and what it ran.
func TestCrashesNameTheirExecution(t *testing.T) {
	b := faultyBench(t, testConfig(), realOutside())
	r := program("console.log('fault:segv')")
	r.Execution = "mine"
	want(t, b.run(r), protocol.WorkerCrashed, "signal:SIGSEGV")
	b.awaitEvents(WorkerCrashed, 1)
	e := b.lastDeath()
	if e.Execution != "mine" || e.PID == 0 || e.Worker == "" || e.Reason != "signal:SIGSEGV" || !strings.Contains(e.Stderr, "fault_segv") || strings.Contains(e.Detail, "fault_segv") {
		t.Errorf("event %+v", e)
	}
	if out := b.run(program("return 42")); string(out.Value) != "42" {
		t.Errorf("the next program: %v", out.Error)
	}
}
