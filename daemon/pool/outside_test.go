package pool

import (
	"context"
	"strings"
	"syscall"
	"testing"

	"github.com/executord/executord/ipc/executor"
	"github.com/executord/executord/ipc/protocol"
)

// TestLimitsOfValuesHoldOutside: a worker that keeps none of the limits on values itself gets its program the ending that
// one which keeps them does.
func TestLimitsOfValuesHoldOutside(t *testing.T) {
	deep := strings.Repeat("[", 40) + strings.Repeat("]", 40)
	wide := "[" + strings.Repeat("0,", 5000) + "0]"
	b := childBench(t, testConfig())
	for _, c := range []struct {
		name, line string
		limits     protocol.Limits
		typ        protocol.Type
		text       string
		thrown     bool // the call fails, and nobody hears of it
	}{
		{"valueDepth of a result", "return " + deep, protocol.Limits{ValueDepth: 16}, protocol.ResultUnserializable, "16 levels", false},
		{"valueParts of a result", "return " + wide, protocol.Limits{ValueParts: 1024}, protocol.ResultUnserializable, "1024 parts", false},
		{"resultBytes", "return " + wide, protocol.Limits{ResultBytes: 1000}, protocol.ResultTooLarge, "1000 bytes", false},
		{"valueDepth of arguments", "call tools.echo [" + deep + "]", protocol.Limits{ValueDepth: 16}, protocol.Exception, "16 levels", true},
		{"valueParts of arguments", "call tools.echo " + wide, protocol.Limits{ValueParts: 1024}, protocol.Exception, "1024 parts", true},
		{"messageBytes of arguments", "call tools.echo " + wide, protocol.Limits{MessageBytes: 1000}, protocol.Exception, "more than 1000", true},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := script(c.line)
			r.Limits = c.limits
			r.Call = func(context.Context, executor.ToolCall) (protocol.Value, error) {
				t.Error("the host hears of the call")
				return nil, nil
			}
			out := b.run(r)
			want(t, out, c.typ, "")
			text := out.Error.Message
			if c.thrown {
				text = string(out.Error.Cause)
			}
			if !strings.Contains(text, c.text) || c.thrown && !strings.Contains(text, "TypeError") {
				t.Errorf("it says %s", text)
			}
			b.works()
		})
	}
}

// What the service manager says of a worker's end is believed before its signal.
func TestTheManagersWordOnAnEnd(t *testing.T) {
	l := Defaults().Limits
	if v := autopsy(nil, ExitState{Signal: syscall.SIGKILL, Cause: "oom-kill"}, l, nil); v.typ != protocol.MemoryLimit {
		t.Errorf("out of memory: %+v", v)
	}
	if v := autopsy(nil, ExitState{Signal: syscall.SIGABRT, Cause: "watchdog"}, l, nil); v.typ != protocol.WorkerCrashed || v.reason != "watchdog" {
		t.Errorf("watchdog: %+v", v)
	}
}
