package pool

import (
	"context"
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	"go.opentelemetry.io/otel/attribute"
	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"

	"github.com/executord/executord/ipc/executor"
	"github.com/executord/executord/ipc/protocol"
)

// measured makes c measure, and returns how to read all series: a count, or what a histogram has.
func measured(t testing.TB, c *Config) func() map[string]float64 {
	t.Helper()
	reader := sdkmetric.NewManualReader()
	provider := sdkmetric.NewMeterProvider(sdkmetric.WithReader(reader))
	t.Cleanup(func() { _ = provider.Shutdown(context.Background()) })
	c.Meter = provider
	return func() map[string]float64 {
		var all metricdata.ResourceMetrics
		if err := reader.Collect(context.Background(), &all); err != nil {
			t.Fatal(err)
		}
		series := map[string]float64{}
		for _, m := range all.ScopeMetrics[0].Metrics {
			switch d := m.Data.(type) {
			case metricdata.Sum[int64]:
				for _, p := range d.DataPoints {
					series[seriesName(m.Name, p.Attributes)] = float64(p.Value)
				}
			case metricdata.Histogram[float64]:
				for _, p := range d.DataPoints {
					series[seriesName(m.Name, p.Attributes)] = float64(p.Count)
					series[seriesName(m.Name+" sum", p.Attributes)] = p.Sum
				}
			default:
				t.Errorf("%s is a %T", m.Name, d)
			}
		}
		return series
	}
}

func seriesName(metric string, labels attribute.Set) string {
	var b strings.Builder
	b.WriteString(strings.TrimPrefix(metric, "executord."))
	for _, a := range labels.ToSlice() {
		b.WriteString(" " + a.Value.String())
	}
	return b.String()
}

// TestMeasures: each metric counts what it is for.
func TestMeasures(t *testing.T) {
	c := testConfig()
	c.Queue, c.QueuePerIdentity = 1, 1
	read := measured(t, &c)
	b := insideBench(t, c)
	b.run(script("call tools.echo [1]"))
	failing := script("calls tools.echo [1]", "call tools.echo [2]")
	failing.Call = func(_ context.Context, c executor.ToolCall) (protocol.Value, error) {
		return nil, fmt.Errorf("no %d", c.Call)
	}
	b.run(failing)
	pending := script("fire 2", "throw "+`{"type":"exception","message":"x"}`)
	pending.Call = func(ctx context.Context, _ executor.ToolCall) (protocol.Value, error) {
		<-ctx.Done()
		return nil, ctx.Err()
	}
	b.run(pending)
	web := script("fetch GET https://example.com/", "return 1")
	web.Network = protocol.NetworkHost
	web.Fetch = func(context.Context, executor.FetchCall) (*executor.FetchResponse, error) {
		return &executor.FetchResponse{FetchHead: protocol.FetchHead{Status: 200, URL: "https://example.com/"}}, nil
	}
	b.run(web)
	b.run(script("giant 2000000")) // of a worker that breaks the contract
	b.waitReady()
	large := script(strings.Repeat("x", 1000))
	large.Limits.ModuleBytes = 10
	if _, err := b.Execute(t.Context(), large); err == nil {
		t.Error("code over moduleBytes ran")
	}
	ctx, cancel := context.WithCancel(t.Context())
	running, queued, ended := make(chan struct{}), make(chan struct{}), make(chan error, 2)
	for _, state := range []struct {
		name  string
		heard chan struct{}
	}{{protocol.StateRunning, running}, {protocol.StateQueued, queued}} {
		go func() {
			r := script("wait")
			r.OnState = func(s protocol.State) {
				if s.State == state.name {
					close(state.heard)
				}
			}
			_, err := b.Execute(ctx, r)
			ended <- err
		}()
		<-state.heard
	}
	if _, err := b.Execute(t.Context(), script("return 1")); err == nil {
		t.Error("nothing is full")
	}
	during := read()
	cancel()
	for range 2 {
		if err := <-ended; err != nil {
			t.Error(err)
		}
	}
	after := read()
	for _, x := range []struct {
		when   string
		series map[string]float64
		want   map[string]float64
	}{
		{"under load", during, map[string]float64{
			"execution.active": 1, "queue.depth": 1, "worker.processes running": 1, "worker.processes idle": 0, "queue.refusals overloaded": 1,
		}},
		{"at the end", after, map[string]float64{
			"executions ok": 2, "executions exception": 2, "executions result_too_large": 1, "executions cancelled": 1, "executions syntax": 0,
			"execution.endings engine": 5, "execution.endings contract": 1,
			"execution.active": 0, "queue.depth": 0, "queue.departures": 1, "queue.refusals queue_timeout": 0,
			"worker.starts": 2, "worker.ends stopped": 1, "worker.ends crashed": 0, "worker.ends retired": 0, "worker.ends failed": 0,
			"limit.hits resultBytes": 1, "limit.hits moduleBytes": 1, "limit.hits cpuMs": 0,
			"tool.calls ok": 1, "tool.calls error": 1, "tool.calls pending": 2,
			"fetches ok": 1, "fetches error": 0, "fetches pending": 0,
			"execution.run.duration ok": 2, "execution.duration ok": 2, "execution.run.duration exception": 2, "execution.queue.duration": 7,
			"tool.call.duration ok": 1, "tool.call.duration error": 1, "fetch.duration ok": 1, "worker.start.duration": 2,
		}},
	} {
		for name, want := range x.want {
			if got, there := x.series[name]; !there || got != want {
				t.Errorf("%s: %s is %v (there: %v), want %v", x.when, name, got, there, want)
			}
		}
	}
	if after["worker.restore.duration"] < 2 {
		t.Errorf("%v restores", after["worker.restore.duration"])
	}
	if testing.Verbose() {
		for name, value := range after {
			t.Log(name, value)
		}
	}
}

// A worker may say what it likes of its restore: no longer than it took counts.
func TestRestoreIsMeasuredWithinBounds(t *testing.T) {
	c := testConfig()
	read := measured(t, &c)
	b := insideBench(t, c)
	before := read()["worker.restore.duration sum"]
	for _, d := range []time.Duration{-time.Hour, math.MinInt64, time.Hour, math.MaxInt64} {
		b.measure.restore(d, time.Second)
	}
	if got := read()["worker.restore.duration sum"] - before; math.Abs(got-2) > 1e-6 {
		t.Errorf("four restores of at most a second took %v s", got)
	}
}

// With nobody who reads, and with somebody who does, measuring allocates nothing; without a tracer neither does tracing.
func TestMeasuringAllocatesNothing(t *testing.T) {
	read := Defaults()
	measured(t, &read)
	for name, provider := range map[string]Config{"off": {}, "on": read} {
		m, err := newMeasures(&Pool{totals: newTotals()}, provider.Meter)
		if err != nil {
			t.Fatal(err)
		}
		ctx := t.Context()
		record := func() {
			m.waited(ctx, time.Millisecond)
			m.ended(ctx, protocol.Exception, time.Millisecond, time.Second)
			m.answered(ctx, toolKind, time.Millisecond, true)
			m.restore(time.Millisecond, time.Second)
		}
		record()
		if n := testing.AllocsPerRun(100, record); n != 0 {
			t.Errorf("%s: %v allocations", name, n)
		}
	}
	p, ctx := &Pool{}, t.Context()
	r, call := script("return 1"), &hostCall{provider: "tools", path: []string{"echo"}}
	r.Trace = caller("01")
	out := &protocol.Outcome{}
	if n := testing.AllocsPerRun(100, func() {
		ctx, spans := p.trace(ctx, "execute", r.Trace)
		spans.queued(ctx, nil)
		ctx = spans.running(ctx)
		_ = spans.tool(ctx, call)
		spans.answered(call, true)
		spans.end(out, nil)
	}); n != 0 {
		t.Errorf("tracing off: %v allocations", n)
	}
}

func BenchmarkMeasures(b *testing.B) {
	read := Defaults()
	measured(b, &read)
	for _, x := range []struct {
		name string
		c    Config
	}{{"off", Config{}}, {"on", read}} {
		b.Run(x.name, func(b *testing.B) {
			m, err := newMeasures(&Pool{totals: newTotals()}, x.c.Meter)
			if err != nil {
				b.Fatal(err)
			}
			ctx := b.Context()
			b.ReportAllocs()
			for b.Loop() { // what one execution costs
				m.waited(ctx, time.Millisecond)
				m.ended(ctx, "", time.Millisecond, time.Second)
			}
		})
	}
}
