package telemetry

import (
	"bytes"
	"context"
	"errors"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"runtime"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	collectormetrics "go.opentelemetry.io/proto/otlp/collector/metrics/v1"
	collectortrace "go.opentelemetry.io/proto/otlp/collector/trace/v1"
	"google.golang.org/grpc"
	"google.golang.org/protobuf/proto"

	"github.com/executord/executord/ipc/testlog"
)

// collector is a receiver of OTLP.
type collector struct {
	mu      sync.Mutex
	spans   []string // service and name
	metrics []string
}

func (c *collector) take(r *collectortrace.ExportTraceServiceRequest) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, of := range r.ResourceSpans {
		service := ""
		for _, a := range of.Resource.Attributes {
			if a.Key == "service.name" {
				service = a.Value.GetStringValue()
			}
		}
		for _, scope := range of.ScopeSpans {
			for _, s := range scope.Spans {
				c.spans = append(c.spans, service+" "+s.Name)
			}
		}
	}
}

func (c *collector) measure(r *collectormetrics.ExportMetricsServiceRequest) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, of := range r.ResourceMetrics {
		for _, scope := range of.ScopeMetrics {
			for _, m := range scope.Metrics {
				c.metrics = append(c.metrics, m.Name)
			}
		}
	}
}

func (c *collector) ServeHTTP(_ http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	switch r.URL.Path {
	case "/v1/traces":
		var m collectortrace.ExportTraceServiceRequest
		if proto.Unmarshal(body, &m) == nil {
			c.take(&m)
		}
	case "/v1/metrics":
		var m collectormetrics.ExportMetricsServiceRequest
		if proto.Unmarshal(body, &m) == nil {
			c.measure(&m)
		}
	}
}

// grpcTraces and grpcMetrics are the same by gRPC.
type grpcTraces struct {
	collectortrace.UnimplementedTraceServiceServer
	*collector
}

func (c grpcTraces) Export(_ context.Context, r *collectortrace.ExportTraceServiceRequest) (*collectortrace.ExportTraceServiceResponse, error) {
	c.take(r)
	return &collectortrace.ExportTraceServiceResponse{}, nil
}

type grpcMetrics struct {
	collectormetrics.UnimplementedMetricsServiceServer
	*collector
}

func (c grpcMetrics) Export(_ context.Context, r *collectormetrics.ExportMetricsServiceRequest) (*collectormetrics.ExportMetricsServiceResponse, error) {
	c.measure(r)
	return &collectormetrics.ExportMetricsServiceResponse{}, nil
}

// collect starts a collector and returns its URL.
func collect(t *testing.T, protocol string) (*collector, string) {
	t.Helper()
	c := &collector{}
	if protocol != "grpc" {
		s := httptest.NewServer(c)
		t.Cleanup(s.Close)
		return c, s.URL
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s := grpc.NewServer()
	collectortrace.RegisterTraceServiceServer(s, grpcTraces{collector: c})
	collectormetrics.RegisterMetricsServiceServer(s, grpcMetrics{collector: c})
	go func() { _ = s.Serve(l) }()
	t.Cleanup(s.Stop)
	return c, "http://" + l.Addr().String()
}

// use makes one span and one count.
func use(t *testing.T, x *Telemetry) {
	t.Helper()
	if x.Tracer != nil {
		_, span := x.Tracer.Tracer("test").Start(t.Context(), "execute")
		span.End()
	}
	if x.Meter != nil {
		n, err := x.Meter.Meter("test").Int64Counter("executord.test")
		if err != nil {
			t.Fatal(err)
		}
		n.Add(t.Context(), 1)
	}
}

func page(t *testing.T, x *Telemetry) string {
	t.Helper()
	w := httptest.NewRecorder()
	x.Page.ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/metrics", nil))
	return w.Body.String()
}

func TestBothOneOrNeither(t *testing.T) {
	for _, protocol := range []string{"http/protobuf", "grpc"} {
		c, url := collect(t, protocol)
		t.Setenv("OTEL_EXPORTER_OTLP_PROTOCOL", protocol)
		for _, x := range []struct {
			name           string
			page           bool
			env            map[string]string
			spans, metrics bool
		}{
			{name: "neither"},
			{name: "page", page: true},
			{name: "push", env: map[string]string{"OTEL_EXPORTER_OTLP_ENDPOINT": url}, spans: true, metrics: true},
			{name: "both", page: true, env: map[string]string{"OTEL_EXPORTER_OTLP_ENDPOINT": url}, spans: true, metrics: true},
			{name: "spans only", env: map[string]string{"OTEL_EXPORTER_OTLP_ENDPOINT": url, "OTEL_METRICS_EXPORTER": "none"}, spans: true},
			{name: "metrics only", env: map[string]string{"OTEL_EXPORTER_OTLP_ENDPOINT": url, "OTEL_TRACES_EXPORTER": "none"}, metrics: true},
			{name: "page in the variable", page: true, env: map[string]string{"OTEL_EXPORTER_OTLP_ENDPOINT": url, "OTEL_METRICS_EXPORTER": "prometheus"}, spans: true},
			{name: "switched off", page: true, env: map[string]string{"OTEL_EXPORTER_OTLP_ENDPOINT": url, "OTEL_SDK_DISABLED": "true"}},
		} {
			t.Run(protocol+" "+x.name, func(t *testing.T) {
				for k, v := range x.env {
					t.Setenv(k, v)
				}
				c.mu.Lock()
				c.spans, c.metrics = nil, nil
				c.mu.Unlock()
				var log testlog.Buffer
				got, err := New(Config{Version: "1.2.3", Page: x.page, Logger: slog.New(slog.NewTextHandler(&log, nil))})
				if err != nil {
					t.Fatal(err)
				}
				use(t, got)
				offered := x.page && x.env["OTEL_SDK_DISABLED"] == ""
				if (got.Page != nil) != offered || (got.Tracer != nil) != x.spans || (got.Meter != nil) != (offered || x.metrics) {
					t.Errorf("page %v, tracer %v, meter %v", got.Page != nil, got.Tracer != nil, got.Meter != nil)
				}
				if offered {
					if text := page(t, got); !strings.Contains(text, "executord_test_total 1\n") || !strings.Contains(text, `service_version="1.2.3"`) {
						t.Errorf("page:\n%s", text)
					}
				}
				if err := got.Close(); err != nil {
					t.Error(err)
				}
				c.mu.Lock()
				defer c.mu.Unlock()
				if spans := strings.Join(c.spans, ","); (spans == "executord execute") != x.spans || !x.spans && spans != "" {
					t.Errorf("collector has spans %q; log: %s", spans, log.String())
				}
				if metrics := strings.Join(c.metrics, ","); (metrics == "executord.test") != x.metrics || !x.metrics && metrics != "" {
					t.Errorf("collector has metrics %q; log: %s", metrics, log.String())
				}
			})
		}
	}
}

func TestVariablesOfOpenTelemetry(t *testing.T) {
	for _, x := range []struct{ name, value, want string }{
		{"OTEL_EXPORTER_OTLP_ENDPOINT", "localhost:4318", "OTEL_EXPORTER_OTLP_ENDPOINT must be a URL"},
		{"OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "ftp://x", "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT must be a URL"},
		{"OTEL_EXPORTER_OTLP_METRICS_ENDPOINT", "https://", "OTEL_EXPORTER_OTLP_METRICS_ENDPOINT must be a URL"},
		{"OTEL_EXPORTER_OTLP_PROTOCOL", "http/json", `OTEL_EXPORTER_OTLP_PROTOCOL is "http/json", must be`},
		{"OTEL_EXPORTER_OTLP_TRACES_PROTOCOL", "udp", `OTEL_EXPORTER_OTLP_TRACES_PROTOCOL is "udp"`},
		{"OTEL_TRACES_EXPORTER", "console", `OTEL_TRACES_EXPORTER is "console"`},
		{"OTEL_TRACES_EXPORTER", "prometheus", `OTEL_TRACES_EXPORTER is "prometheus"`},
		{"OTEL_METRICS_EXPORTER", "otlp,prometheus", `OTEL_METRICS_EXPORTER is "otlp,prometheus"`},
		{"OTEL_RESOURCE_ATTRIBUTES", "a", "OTEL_RESOURCE_ATTRIBUTES"},
	} {
		t.Run(x.name+"="+x.value, func(t *testing.T) {
			t.Setenv(x.name, x.value)
			got, err := New(Config{})
			if err == nil {
				_ = got.Close()
			}
			if err == nil || !strings.Contains(err.Error(), x.want) {
				t.Errorf("got %v, want %q", err, x.want)
			}
		})
	}
	t.Setenv("OTEL_SERVICE_NAME", "mine")
	got, err := New(Config{Page: true})
	if err != nil {
		t.Fatal(err)
	}
	if text := page(t, got); !strings.Contains(text, `service_name="mine"`) {
		t.Errorf("page:\n%s", text)
	}
	if err := got.Close(); err != nil {
		t.Error(err)
	}
}

// Collectors that do not do their work: the end is bounded, leaves no goroutine behind, and the log says it once.
func TestDeadCollectors(t *testing.T) {
	refusing, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	_ = refusing.Close()
	silent, err := net.Listen("tcp", "127.0.0.1:0") // accepts, and never answers
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = silent.Close() })
	busy := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusServiceUnavailable) }))
	t.Cleanup(busy.Close)
	for name, url := range map[string]string{
		"refuses": "http://" + refusing.Addr().String(), "is silent": "http://" + silent.Addr().String(), "is busy": busy.URL,
	} {
		for _, protocol := range []string{"http/protobuf", "grpc"} {
			t.Run(name+" by "+protocol, func(t *testing.T) {
				t.Setenv("OTEL_EXPORTER_OTLP_ENDPOINT", url)
				t.Setenv("OTEL_EXPORTER_OTLP_PROTOCOL", protocol)
				var log testlog.Buffer
				got, err := New(Config{Logger: slog.New(slog.NewTextHandler(&log, nil))})
				if err != nil {
					t.Fatal(err)
				}
				for range 3 { // batches
					for range 600 {
						use(t, got)
					}
				}
				began := time.Now()
				err = got.Close()
				if took := time.Since(began); took > flushTime+time.Second {
					t.Errorf("took %s, %v", took, err)
				}
				for deadline := time.Now().Add(10 * time.Second); strings.Contains(stacks(), "go.opentelemetry.io"); time.Sleep(10 * time.Millisecond) {
					if time.Now().After(deadline) {
						t.Fatalf("still there:\n%s", stacks())
					}
				}
				if n := strings.Count(log.String(), "cannot export telemetry"); n != 2 {
					t.Errorf("%d complaints, want one for each of metrics and traces:\n%s", n, log.String())
				}
			})
		}
	}
}

// Two services in one process have nothing in common.
func TestServicesInOneProcess(t *testing.T) {
	var all [2]*Telemetry
	for i := range all {
		x, err := New(Config{Page: true})
		if err != nil {
			t.Fatal(err)
		}
		all[i] = x
		t.Cleanup(func() { _ = x.Close() })
	}
	use(t, all[0])
	if text := page(t, all[0]); !strings.Contains(text, "executord_test_total 1\n") {
		t.Errorf("first page:\n%s", text)
	}
	if text := page(t, all[1]); strings.Contains(text, "executord_test") {
		t.Errorf("second page:\n%s", text)
	}
}

// stacks are those of all goroutines but this one.
func stacks() string {
	text := make([]byte, 1<<20)
	_, others, _ := strings.Cut(string(text[:runtime.Stack(text, true)]), "\n\n")
	return others
}

// gone is the connection of a reader that has left.
type gone struct {
	http.ResponseWriter
	err error
}

func (g gone) Write([]byte) (int, error) { return 0, g.err }

func TestReadersOfThePageMayLeave(t *testing.T) {
	for _, x := range []struct {
		err  error
		want string
	}{
		{&net.OpError{Op: "write", Net: "tcp", Err: os.NewSyscallError("write", syscall.EPIPE)}, "DEBUG"},
		{&net.OpError{Op: "write", Net: "tcp", Err: os.NewSyscallError("write", syscall.ECONNRESET)}, "DEBUG"},
		{errors.New("the page is broken"), "WARN"},
	} {
		var log bytes.Buffer
		got, err := New(Config{Page: true, Logger: slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{Level: slog.LevelDebug}))})
		if err != nil {
			t.Fatal(err)
		}
		got.Page.ServeHTTP(gone{httptest.NewRecorder(), x.err}, httptest.NewRequest(http.MethodGet, "/metrics", nil))
		if text := log.String(); !strings.Contains(text, "level="+x.want) || !strings.Contains(text, x.err.Error()) {
			t.Errorf("%v: logged %q, want it at %s", x.err, text, x.want)
		}
		if err := got.Close(); err != nil {
			t.Error(err)
		}
	}
}
