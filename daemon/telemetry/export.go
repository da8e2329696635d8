package telemetry

import (
	"context"
	"log/slog"
	"sync/atomic"

	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
)

// failures tells the service's own log when exports begin and cease to fail; the SDK would tell the process's. It also ends
// exports with the Telemetry.
type failures struct {
	life    context.Context
	log     *slog.Logger
	failing atomic.Bool
}

func (t *Telemetry) failures(c Config, what string) *failures {
	return &failures{life: t.life, log: c.Logger.With("exporter", what)}
}

// watch runs one export. It has no error for the SDK, which would only tell it.
func (f *failures) watch(ctx context.Context, export func(context.Context) error) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(f.life, cancel)()
	err := export(ctx)
	switch {
	case err != nil && !f.failing.Swap(true):
		f.log.Warn("cannot export telemetry; silent until it works again", "error", err.Error())
	case err == nil && f.failing.Swap(false):
		f.log.Info("telemetry is exported again")
	}
	return nil
}

type metricExporter struct {
	sdkmetric.Exporter
	failures *failures
}

func (e metricExporter) Export(ctx context.Context, m *metricdata.ResourceMetrics) error {
	return e.failures.watch(ctx, func(ctx context.Context) error { return e.Exporter.Export(ctx, m) })
}

type spanExporter struct {
	sdktrace.SpanExporter
	failures *failures
}

func (e spanExporter) ExportSpans(ctx context.Context, spans []sdktrace.ReadOnlySpan) error {
	return e.failures.watch(ctx, func(ctx context.Context) error { return e.SpanExporter.ExportSpans(ctx, spans) })
}
