package e2e

import (
	"strings"
	"testing"

	"github.com/executord/executord/daemon/e2e/gauge"
	"github.com/executord/executord/ipc/executor"
	"github.com/executord/executord/ipc/protocol"
	"github.com/executord/executord/ipc/testbin"
)

// BenchmarkExecution measures whole executions through the real WebSocket, one at a time. cpu-ms/op is the CPU time of
// the service and its workers, without the client's; ns/op is what the client waits.
func BenchmarkExecution(b *testing.B) {
	s := start(b, testbin.Worker(b))
	c := s.dial()
	defer c.Close()
	bytes, err := protocol.Marshal(make([]byte, 1<<20))
	if err != nil {
		b.Fatal(err)
	}
	for _, w := range []struct {
		name, code string
		input      protocol.Value
		want       string // the start of the value
	}{
		{"1+1", "1+1", nil, "2"},
		{"calls-1", "await tools.echo(1)", nil, "1"},
		{"calls-10", "let n = 0; for (let i = 0; i < 10; i++) n += await tools.echo(1); n", nil, "10"},
		{"calls-100", "let n = 0; for (let i = 0; i < 100; i++) n += await tools.echo(1); n", nil, "100"},
		{"calls-100-parallel", "(await Promise.all(Array.from({length: 100}, () => tools.echo(1)))).length", nil, "100"},
		{"result-1MiB-string", "'x'.repeat(1 << 20)", nil, `"xxx`},
		{"call-1MiB-bytes", "await tools.len(new Uint8Array(1 << 20))", nil, "1048576"},
		{"argument-1MiB-bytes", "async b => b.length", bytes, "1048576"},
	} {
		b.Run(w.name, func(b *testing.B) {
			r := program(w.code)
			r.Input = w.input
			if strings.Contains(w.code, "tools.") {
				tools := echo()
				tools.Tools["len"] = executor.Func(func(b []byte) int { return len(b) })
				r.Provide(tools)
			}
			one := func() {
				if o := run(b, c, cloneRequest(r)); o.Error != nil || !strings.HasPrefix(string(o.Value), w.want) {
					b.Fatalf("got %.60s, %v", o.Value, o.Error)
				}
			}
			for range 5 {
				one()
			}
			pids := append(s.workers(), s.cmd.Process.Pid)
			before := gauge.ProcessCPU(pids...)
			for b.Loop() {
				one()
			}
			spent := gauge.ProcessCPU(pids...) - before
			b.ReportMetric(float64(spent.Microseconds())/1000/float64(b.N), "cpu-ms/op")
		})
	}
}

// cloneRequest gives each execution an id of its own.
func cloneRequest(r executor.Request) executor.Request {
	r.Execution = ""
	return r
}
