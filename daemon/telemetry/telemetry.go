package telemetry

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/google/uuid"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	"github.com/prometheus/otlptranslator"
	"go.opentelemetry.io/otel/attribute"
	exporter "go.opentelemetry.io/otel/exporters/prometheus"
	"go.opentelemetry.io/otel/metric"
	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/resource"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"
)

// Config of a Telemetry.
type Config struct {
	Version string       // of the service
	Page    bool         // offer metrics for Prometheus to scrape
	Logger  *slog.Logger // hears of exporters that fail; nil discards
}

// Telemetry is where a service's metrics and traces go. What nobody asked for is nil, and costs nothing. One that was not made
// by New has providers that are somebody else's, who closes them.
type Telemetry struct {
	Meter  metric.MeterProvider
	Tracer trace.TracerProvider
	Page   http.Handler // the metrics page of Prometheus, also in OpenMetrics

	life context.Context    // of exports
	end  context.CancelFunc // of life; nil where there are none
	stop []func(context.Context) error
}

// flushTime bounds Close, whatever the collector does.
const flushTime = 2 * time.Second

// scrapes are answered at once, so many; more are turned away.
const scrapes = 4

// New reads the OTEL_* variables of the process and starts exporters as they and c say. Its error names the variable that
// is wrong. That a collector cannot be reached is no error.
func New(c Config) (*Telemetry, error) {
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
	env, err := readEnvironment()
	if err != nil {
		return nil, err
	}
	if env.off {
		return &Telemetry{}, nil
	}
	about, err := describe(c.Version)
	if err != nil {
		return nil, err
	}
	t := &Telemetry{}
	t.life, t.end = context.WithCancel(context.Background())
	if err := errors.Join(t.measure(c, env, about), t.trace(c, env, about)); err != nil {
		_ = t.Close()
		return nil, err
	}
	return t, nil
}

// describe says who measures; OTEL_SERVICE_NAME and OTEL_RESOURCE_ATTRIBUTES overrule it.
func describe(version string) (*resource.Resource, error) {
	r, err := resource.New(context.Background(),
		resource.WithTelemetrySDK(),
		resource.WithAttributes(
			attribute.String("service.name", "executord"),
			attribute.String("service.version", version),
			attribute.String("service.instance.id", uuid.NewString()),
		),
		resource.WithFromEnv(),
	)
	if err != nil {
		return nil, fmt.Errorf("cannot read OTEL_RESOURCE_ATTRIBUTES: %w", err)
	}
	return r, nil
}

// measure composes the readers of metrics.
func (t *Telemetry) measure(c Config, env environment, about *resource.Resource) error {
	options := []sdkmetric.Option{sdkmetric.WithResource(about)}
	if c.Page {
		registry := prometheus.NewRegistry()
		page, err := exporter.New(exporter.WithRegisterer(registry), exporter.WithoutScopeInfo(),
			exporter.WithTranslationStrategy(otlptranslator.UnderscoreEscapingWithSuffixes))
		if err != nil {
			return fmt.Errorf("cannot offer metrics to Prometheus: %w", err)
		}
		options = append(options, sdkmetric.WithReader(page))
		t.Page = promhttp.HandlerFor(registry, promhttp.HandlerOpts{
			EnableOpenMetrics: true, MaxRequestsInFlight: scrapes, ErrorLog: pageLog{c.Logger},
		})
	}
	if env.metrics.on {
		push, err := env.metrics.metricExporter(t.life)
		if err != nil {
			return fmt.Errorf("cannot export metrics: %w", err)
		}
		options = append(options, sdkmetric.WithReader(sdkmetric.NewPeriodicReader(metricExporter{push, t.failures(c, "metrics")})))
	}
	if len(options) == 1 {
		return nil
	}
	provider := sdkmetric.NewMeterProvider(options...)
	t.Meter = provider
	t.stop = append(t.stop, provider.Shutdown)
	return nil
}

// pageLog hears of pages that could not be made or sent. That a reader has left is nobody's fault.
type pageLog struct{ *slog.Logger }

func (l pageLog) Println(said ...any) {
	level := slog.LevelWarn
	for _, x := range said {
		if err, ok := x.(error); ok && (errors.Is(err, syscall.EPIPE) || errors.Is(err, syscall.ECONNRESET)) {
			level = slog.LevelDebug
		}
	}
	l.Log(context.Background(), level, strings.TrimSpace(fmt.Sprintln(said...)))
}

// trace composes the exporter of spans. Which traces are sampled is for OTEL_TRACES_SAMPLER to say; without it the caller
// decides, and what has no caller is sampled.
func (t *Telemetry) trace(c Config, env environment, about *resource.Resource) error {
	if !env.traces.on {
		return nil
	}
	push, err := env.traces.spanExporter(t.life)
	if err != nil {
		return fmt.Errorf("cannot export traces: %w", err)
	}
	provider := sdktrace.NewTracerProvider(sdktrace.WithResource(about), sdktrace.WithBatcher(spanExporter{push, t.failures(c, "traces")}))
	t.Tracer = provider
	t.stop = append(t.stop, provider.Shutdown)
	return nil
}

// Close exports what there is and ends the exporters. It takes two seconds at most, and fails where that did not do; exports
// that fail before are logged.
// Nothing is exported after it, so it comes after all work has ended.
func (t *Telemetry) Close() error {
	ctx, cancel := context.WithTimeout(context.Background(), flushTime)
	defer cancel()
	faults := make([]error, len(t.stop))
	var all sync.WaitGroup
	for i, stop := range t.stop {
		all.Go(func() { faults[i] = stop(ctx) })
	}
	all.Wait()
	if t.end != nil {
		t.end() // what still tries
	}
	if err := errors.Join(faults...); err != nil {
		return fmt.Errorf("cannot export the last metrics and traces: %w", err)
	}
	return nil
}
