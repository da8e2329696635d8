package daemon

import (
	"context"
	"strings"
	"testing"

	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"

	"github.com/executord/executord/daemon/telemetry"
	"github.com/executord/executord/ipc/client"
	"github.com/executord/executord/ipc/executor"
	"github.com/executord/executord/ipc/protocol"
)

// Services in one process whose owners have providers of their own measure each for itself, whatever the process's variables
// say; the providers are left open.
func TestProvidersOfTheEmbedder(t *testing.T) {
	t.Setenv("OTEL_TRACES_EXPORTER", "nonsense")
	var readers [2]*sdkmetric.ManualReader
	var spans [2]*tracetest.SpanRecorder
	var services [2]*service
	for i := range services {
		readers[i], spans[i] = sdkmetric.NewManualReader(), tracetest.NewSpanRecorder()
		services[i] = start(t, nil, WithTelemetry(&telemetry.Telemetry{
			Meter:  sdkmetric.NewMeterProvider(sdkmetric.WithReader(readers[i])),
			Tracer: sdktrace.NewTracerProvider(sdktrace.WithSpanProcessor(spans[i])),
		}))
	}
	c, err := client.Dial(t.Context(), "unix:"+services[0].socket)
	if err != nil {
		t.Fatal(err)
	}
	for range 3 {
		if _, err := c.Execute(t.Context(), executor.Request{Execute: protocol.Execute{Code: "1"}}); err != nil {
			t.Fatal(err)
		}
	}
	_ = c.Close()
	for i, s := range services {
		s.Stop()
		s.wait()
		want := []int{4, 1}[i] // with the check at the start
		var all metricdata.ResourceMetrics
		if err := readers[i].Collect(context.Background(), &all); err != nil {
			t.Fatal(err)
		}
		if got := count(all, "executord.executions"); got != int64(want) {
			t.Errorf("service %d counts %d executions, want %d", i, got, want)
		}
		names := map[string]int{}
		for _, span := range spans[i].Ended() {
			names[span.Name()]++
		}
		if names["execute"] != want || names["run"] != want {
			t.Errorf("service %d has spans %v, want %d of each", i, names, want)
		}
	}
	if _, err := New(*services[0].settings.Load()); err == nil || !strings.Contains(err.Error(), "OTEL_TRACES_EXPORTER") {
		t.Errorf("a service without providers of its own: %v", err)
	}
}

// count sums a counter.
func count(all metricdata.ResourceMetrics, name string) (sum int64) {
	for _, scope := range all.ScopeMetrics {
		for _, m := range scope.Metrics {
			if m.Name != name {
				continue
			}
			for _, p := range m.Data.(metricdata.Sum[int64]).DataPoints {
				sum += p.Value
			}
		}
	}
	return sum
}
