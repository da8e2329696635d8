package e2e

import (
	"encoding/json"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/executord/executord/ipc/protocol"
	"github.com/executord/executord/ipc/testbin"
)

// TestNativeCrashesAreForTheOperator: the log says which worker died in which execution, why and where; the caller gets the
// reason, and nothing of the host. The next program runs in a worker that took its place.
func TestNativeCrashesAreForTheOperator(t *testing.T) {
	for _, x := range []struct{ fault, reason, report, function string }{
		{"segv", "signal:SIGSEGV", "SIGSEGV near null (0x8)", "fault_segv"},
		{"engine", "signal:SIGSEGV", "SIGSEGV near null", "v8::internal::StackGuard::"},
		{"trap", "signal:SIGTRAP", "SIGTRAP", "fault_trap"},
		{"abort", "signal:SIGABRT", "SIGABRT", "fault_abort"},
		{"check", "exit:72", "worker_crashed: ", "V8_Fatal"},
	} {
		t.Run(x.fault, func(t *testing.T) {
			s := start(t, testbin.FaultyWorker(t), "--workers", "1")
			c := s.dial()
			defer c.Close()
			r := program("console.log('before'); console.log('fault:" + x.fault + "')")
			r.Execution = "crash-" + x.fault
			before := s.workers()
			o := run(t, c, r)
			if o.Error == nil || o.Error.Type != protocol.WorkerCrashed || o.Error.Reason != x.reason {
				t.Fatalf("got %s, %+v", o.Value, o.Error)
			}
			if text, err := json.Marshal(o); err != nil || regexp.MustCompile(`fault_|executor-worker|0x|libc|ex_|::`).Match(text) {
				t.Errorf("the outcome has what is the host's: %s, %v", text, err)
			}
			record := regexp.MustCompile(`level=WARN msg="worker ended" worker=\S+ pid=(\d+) execution=` + r.Execution + ` .*reason=` + x.reason + ` stderr="executor-worker: ` + regexp.QuoteMeta(x.report) + `.*\\n  #\d+ .*` + x.function)
			var found []string
			if !within(5*time.Second, func() bool { found = record.FindStringSubmatch(s.log.String()); return found != nil }) {
				t.Fatalf("the log is\n%s", s.log)
			}
			if pid, _ := strconv.Atoi(found[1]); !slices.Contains(before, pid) {
				t.Errorf("process %d died, the workers were %v", pid, before)
			}
			if next := run(t, c, program("return 1+1")); string(next.Value) != "2" {
				t.Errorf("the next execution gave %s, %v", next.Value, next.Error)
			}
			if strings.Count(s.log.String(), "worker ended") != 1 {
				t.Errorf("more than one worker ended:\n%s", s.log)
			}
		})
	}
}
