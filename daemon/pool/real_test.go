package pool

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/executord/executord/ipc/executor"
	"github.com/executord/executord/ipc/protocol"
	"github.com/executord/executord/ipc/testbin"
	"github.com/executord/executord/ipc/worker"
)

// realBench is a pool over the real worker binary.
func realBench(t testing.TB, c Config) *bench {
	t.Helper()
	c.Launcher = launcherOf(t, testbin.Worker(t))
	b := newBench(t, c, realOutside())
	b.waitReady()
	return b
}

// program is a request for real JavaScript, with an echo.
func program(code string) executor.Request {
	r := script(code)
	r.Form = protocol.FormScript
	return r
}

// TestRealWorker: the pool and the worker binary agree on every kind of ending.
func TestRealWorker(t *testing.T) {
	b := realBench(t, testConfig())
	cases := []struct {
		name  string
		code  string
		limit protocol.Limits
		want  protocol.Type // empty for a value
		value string
	}{
		{name: "value", code: "return [1, 'é', new Date(0)]", value: `[1,"é",{"@date":0}]`},
		{name: "tool", code: "return await tools.echo(1, {a: 2})", value: `[1,{"a":2}]`},
		{name: "tool in a path", code: "return await db.users.get(3)", value: `[3]`},
		{name: "exception", code: "throw new TypeError('no')", want: protocol.Exception},
		{name: "syntax", code: "ls -la | grep x", want: protocol.Syntax},
		{name: "total", code: "for (;;) await tools.echo()", limit: protocol.Limits{TotalMs: 300, ToolCalls: 1e6}, want: protocol.TotalTimeout},
		{name: "deadlock", code: "await new Promise(() => {})", want: protocol.Deadlock},
		{name: "tool limit", code: "for (let i = 0; i < 21; i++) await tools.echo(i)", want: protocol.ToolLimit},
		{name: "result too large", code: "return 'x'.repeat(2 << 20)", want: protocol.ResultTooLarge},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			r := program("console.log('before');\n" + c.code)
			r.Limits = c.limit
			out := b.run(r)
			if c.want == "" {
				if string(out.Value) != c.value {
					t.Errorf("got %s, %v", out.Value, out.Error)
				}
			} else {
				want(t, out, c.want, "")
			}
			if c.want != protocol.Syntax && (len(out.Logs) == 0 || out.Logs[0].Text != "before") {
				t.Errorf("logs %+v", out.Logs)
			}
		})
	}
	if out := b.run(program("return 42")); string(out.Value) != "42" {
		t.Errorf("at the end: %v", out.Error)
	}
}

// TestG3CancelsAtAnyPoint: a thousand cancellations at random points each end the program.
func TestG3CancelsAtAnyPoint(t *testing.T) {
	c := testConfig()
	c.Workers = 2
	b := realBench(t, c)
	rounds := 500
	if testing.Short() {
		rounds = 50
	}
	var all sync.WaitGroup
	for half := range c.Workers {
		all.Go(func() {
			for i := range rounds {
				cancelledAfter(t, b, time.Duration((2*i+half)%25)*time.Millisecond)
			}
		})
	}
	all.Wait()
	if out := b.run(program("return 42")); string(out.Value) != "42" {
		t.Errorf("at the end: %v", out.Error)
	}
}

func cancelledAfter(t *testing.T, b *bench, d time.Duration) {
	ctx, cancel := context.WithTimeout(t.Context(), d)
	defer cancel()
	r := program("for (;;) { await tools.echo(1); for (let i = 0; i < 1e5; i++); }")
	r.Limits.ToolCalls = 1e5
	out, err := b.Execute(ctx, r)
	if err != nil || typeOf(out) != protocol.Cancelled {
		t.Errorf("after %s: %+v, %v", d, out, err)
	}
}

// TestG7CallbacksDoNotPileUp: programs with ten tools each leave nothing in the process that ran them.
func TestG7CallbacksDoNotPileUp(t *testing.T) {
	if testing.Short() {
		t.Skip("it looks at the worker, a thousand times")
	}
	c := testConfig()
	c.WorkerMaxExecutions = 1e6
	b := realBench(t, c)
	resident := func(n int) int64 {
		for i := range n {
			r := program("return await tools.t3(" + fmt.Sprint(i) + ")")
			r.Providers = []protocol.Provider{{Name: "tools"}}
			for k := range 10 {
				r.Providers[0].Tools.Paths = append(r.Providers[0].Tools.Paths, []string{fmt.Sprintf("t%d", k)})
			}
			if out := b.run(r); string(out.Value) != fmt.Sprintf("[%d]", i) {
				t.Fatalf("execution %d: %s, %v", i, out.Value, out.Error)
			}
		}
		b.waitReady()
		return b.Workers()[0].RSSBytes
	}
	for range 3 {
		began := b.Stats().Totals
		grown := -resident(300) + resident(500)
		ended := b.Stats().Totals
		if ended.Crashed+ended.Failed+ended.Stopped != 0 {
			t.Fatalf("a worker died: %+v", ended)
		}
		if ended.Started != began.Started {
			continue // where the machine is busy a worker may be slow to make room, and leaves for that
		}
		if grown > 16<<20 {
			t.Errorf("%d MiB more after 500 programs", grown>>20)
		}
		return
	}
	t.Error("no worker ran 800 programs")
}

// TestC17HandlesAreGivenBack: hundreds of executions leave nothing behind; the bench counts.
func TestC17HandlesAreGivenBack(t *testing.T) {
	if testing.Short() {
		t.Skip("hundreds of executions")
	}
	c := testConfig()
	c.WorkerMaxExecutions = 60
	b := realBench(t, c)
	for i := range 300 {
		out := b.run(program(fmt.Sprintf("return await tools.echo(%d)", i)))
		if string(out.Value) != fmt.Sprintf("[%d]", i) {
			t.Fatalf("execution %d: %s, %v", i, out.Value, out.Error)
		}
	}
}

func BenchmarkRealExecute(b *testing.B) {
	p := realBench(b, testConfig())
	for b.Loop() {
		p.run(program("return 1"))
	}
}

// BenchmarkStart is the time from asking for a worker until it can take a program.
func BenchmarkStart(b *testing.B) {
	l, err := NewChild(b.Context(), ChildConfig{Path: testbin.Worker(b)})
	if err != nil {
		b.Fatal(err)
	}
	defer l.Close()
	for b.Loop() {
		startAndEnd(b, l)
	}
}

func startAndEnd(b *testing.B, l Launcher) {
	p, err := l.Start(b.Context())
	if err != nil {
		b.Fatal(err)
	}
	conn, err := worker.NewConn(p.Conn(), worker.Options{Side: worker.Parent})
	if err != nil {
		b.Fatal(err)
	}
	for ready := false; !ready; {
		m, err := conn.Receive()
		if err != nil {
			b.Fatal(err)
		}
		_, ready = m.(worker.Ready)
	}
	b.StopTimer()
	conn.Close()
	p.Kill()
	<-p.Exited()
	b.StartTimer()
}
