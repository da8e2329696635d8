package e2e

import (
	"context"
	"flag"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"regexp"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus/testutil/promlint"
	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"
	collectortrace "go.opentelemetry.io/proto/otlp/collector/trace/v1"
	tracepb "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/protobuf/proto"

	"github.com/executord/executord/ipc/executor"
	"github.com/executord/executord/ipc/pagetest"
	"github.com/executord/executord/ipc/protocol"
	"github.com/executord/executord/ipc/testbin"
)

var update = flag.Bool("update", false, "write the golden files")

// scrape reads the metrics page.
func (s *service) scrape(accept string) (contentType, text string) {
	s.tb.Helper()
	r, _ := http.NewRequest(http.MethodGet, "http://localhost/metrics", nil)
	r.Header.Set("Accept", accept)
	resp, err := s.web().Do(r)
	if err != nil {
		s.tb.Fatal(err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil || resp.StatusCode != http.StatusOK {
		s.tb.Fatalf("status %d, %v: %s", resp.StatusCode, err, body)
	}
	return resp.Header.Get("Content-Type"), string(body)
}

// families parses a page as Prometheus does.
func families(tb testing.TB, text string) map[string]*dto.MetricFamily {
	tb.Helper()
	parser := expfmt.NewTextParser(model.LegacyValidation)
	all, err := parser.TextToMetricFamilies(strings.NewReader(text))
	if err != nil {
		tb.Fatalf("Prometheus cannot parse the page: %v\n%s", err, text)
	}
	return all
}

// everything runs a program with a value, one tool call that works and one that fails, and one fetch.
func everything(t *testing.T, c executor.Executor) {
	t.Helper()
	r := program(`await tools.echo(1); try { await tools.fail(); } catch {} await fetch("https://example.com/"); return 1`)
	r.Network = protocol.NetworkHost
	p := echo()
	p.Tools["fail"] = func(context.Context, []protocol.Value) (protocol.Value, error) { return nil, fmt.Errorf("no") }
	r.Provide(p)
	r.Fetch = func(context.Context, executor.FetchCall) (*executor.FetchResponse, error) {
		return &executor.FetchResponse{FetchHead: protocol.FetchHead{Status: 200, URL: "https://example.com/"}}, nil
	}
	r.Trace = &protocol.Trace{Traceparent: "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"}
	if o := run(t, c, r); o.Err() != nil {
		t.Fatal(o.Err())
	}
}

const metricsGolden = "testdata/metrics.golden"

// O3: names, types, help and labels of the whole page stay as they are, as Prometheus' own parser reads them, and its
// linter finds no fault.
func TestO3MetricsPage(t *testing.T) {
	s := start(t, testbin.Worker(t), "--workers", "1")
	c := s.dial()
	everything(t, c)
	c.Close()
	_, text := s.scrape("text/plain")
	problems, err := promlint.New(strings.NewReader(text)).Lint()
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range problems {
		t.Errorf("%s: %s", p.Metric, p.Text)
	}
	got := describe(families(t, text))
	if *update {
		if err := os.WriteFile(metricsGolden, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(metricsGolden)
	if err != nil {
		t.Fatal(err)
	}
	if got != string(want) {
		t.Errorf("the page has changed; look at it, then go test ./daemon/e2e -run O3 -update\n%s", pagetest.FirstDifference(got, string(want)))
	}
}

// describe words families: name, type and help, then each label, with its values where they are there from the start.
func describe(all map[string]*dto.MetricFamily) string {
	var b strings.Builder
	for _, name := range slices.Sorted(maps.Keys(all)) {
		f := all[name]
		fmt.Fprintf(&b, "%s %s %s\n", name, strings.ToLower(f.GetType().String()), f.GetHelp())
		labels := map[string]map[string]bool{}
		for _, m := range f.Metric {
			for _, l := range m.Label {
				if labels[l.GetName()] == nil {
					labels[l.GetName()] = map[string]bool{}
				}
				labels[l.GetName()][l.GetValue()] = true
			}
		}
		for _, label := range slices.Sorted(maps.Keys(labels)) {
			values := ""
			if f.GetType() != dto.MetricType_HISTOGRAM && name != "target_info" {
				values = ": " + strings.Join(slices.Sorted(maps.Keys(labels[label])), " ")
			}
			fmt.Fprintf(&b, "    %s%s\n", label, values)
		}
	}
	return b.String()
}

// TestMetricsAreDocumented: docs/telemetry.md lists what the page has, and nothing else.
func TestMetricsAreDocumented(t *testing.T) {
	golden, err := os.ReadFile(metricsGolden)
	if err != nil {
		t.Fatal(err)
	}
	doc, err := os.ReadFile("../../docs/telemetry.md")
	if err != nil {
		t.Fatal(err)
	}
	row := regexp.MustCompile("(?m)^\\| `(\\w+)` \\| (\\w+) \\| ([^|]*) \\| ([^|]*) \\|$")
	var listed strings.Builder
	for _, cells := range row.FindAllStringSubmatch(string(doc), -1) {
		fmt.Fprintf(&listed, "%s %s %s\n", cells[1], cells[2], cells[4])
		for _, label := range regexp.MustCompile("`(\\w+)`").FindAllStringSubmatch(cells[3], -1) {
			fmt.Fprintf(&listed, "    %s\n", label[1])
		}
	}
	want := regexp.MustCompile(`(?m)^(    \w+): .*$`).ReplaceAllString(string(golden), "$1")
	want = regexp.MustCompile(`(?m)^target_info .*\n(    .*\n)*`).ReplaceAllString(want, "")
	if listed.String() != want {
		t.Errorf("the page lists\n%s\nbut the service has\n%s", listed.String(), want)
	}
}

// TestMetricsHaveAUse: docs/operations.md says of each metric what to do about it, and of no other.
func TestMetricsHaveAUse(t *testing.T) {
	golden, err := os.ReadFile(metricsGolden)
	if err != nil {
		t.Fatal(err)
	}
	page, err := os.ReadFile("../../docs/operations.md")
	if err != nil {
		t.Fatal(err)
	}
	_, figures, _ := strings.Cut(string(page), "\n## Figures\n")
	used := map[string]bool{}
	for _, name := range regexp.MustCompile("`(executord_\\w+)`").FindAllStringSubmatch(figures, -1) {
		used[name[1]] = true
	}
	for _, name := range regexp.MustCompile(`(?m)^executord_\w+`).FindAllString(string(golden), -1) {
		if !used[name] {
			t.Errorf("the page says nothing of %s", name)
		}
		delete(used, name)
	}
	for name := range used {
		t.Errorf("there is no metric %s", name)
	}
}

// O5: with traces on, durations have exemplars, and Prometheus' own parser takes them.
func TestO5Exemplars(t *testing.T) {
	collector := newCollector(t)
	t.Setenv("OTEL_EXPORTER_OTLP_ENDPOINT", collector.url)
	s := start(t, testbin.Worker(t), "--workers", "1")
	c := s.dial()
	everything(t, c)
	c.Close()
	_, text := s.scrape("text/plain")
	families(t, text)
	accept := `application/vnd.google.protobuf;proto=io.prometheus.client.MetricFamily;encoding=delimited`
	kind, body := s.scrape(accept)
	if !strings.HasPrefix(kind, "application/vnd.google.protobuf") {
		t.Fatalf("got %s", kind)
	}
	decoder := expfmt.NewDecoder(strings.NewReader(body), expfmt.ResponseFormat(http.Header{"Content-Type": {kind}}))
	exemplars := map[string]int{}
	for {
		var f dto.MetricFamily
		if err := decoder.Decode(&f); err == io.EOF {
			break
		} else if err != nil {
			t.Fatal(err)
		}
		for _, m := range f.Metric {
			for _, bucket := range m.GetHistogram().GetBucket() {
				e := bucket.GetExemplar()
				if e == nil {
					continue
				}
				exemplars[f.GetName()]++
				labels := map[string]string{}
				for _, l := range e.Label {
					labels[l.GetName()] = l.GetValue()
				}
				if len(labels) != 2 || len(labels["trace_id"]) != 32 || len(labels["span_id"]) != 16 {
					t.Errorf("%s has the exemplar %v", f.GetName(), e)
				}
			}
		}
	}
	for _, name := range []string{"executord_execution_duration_seconds", "executord_execution_run_duration_seconds", "executord_tool_call_duration_seconds"} {
		if exemplars[name] == 0 {
			t.Errorf("%s has no exemplar", name)
		}
	}
	kind, body = s.scrape("application/openmetrics-text;version=1.0.0")
	// https://github.com/prometheus/OpenMetrics/blob/v1.0.0/specification/OpenMetrics.md#exemplars
	exemplar := regexp.MustCompile(`(?m) # \{(span_id="[0-9a-f]{16}",trace_id="0af7651916cd43dd8448eb211c80319c"|trace_id="0af7651916cd43dd8448eb211c80319c",span_id="[0-9a-f]{16}")\} [0-9.e-]+ [0-9.e+]+$`)
	if !strings.HasPrefix(kind, "application/openmetrics-text") || !exemplar.MatchString(body) || !strings.HasSuffix(body, "# EOF\n") {
		t.Errorf("%s:\n%s", kind, body)
	}
	if dump := os.Getenv("EXECUTORD_DUMP_METRICS"); dump != "" {
		_ = os.WriteFile(dump, []byte(body), 0o644)
	}
}

// collector receives traces.
type collector struct {
	url   string
	mu    sync.Mutex
	spans []*tracepb.Span
}

func newCollector(t *testing.T) *collector {
	t.Helper()
	c := &collector{}
	srv := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		var m collectortrace.ExportTraceServiceRequest
		if r.URL.Path != "/v1/traces" || proto.Unmarshal(body, &m) != nil {
			return
		}
		c.mu.Lock()
		defer c.mu.Unlock()
		for _, of := range m.ResourceSpans {
			for _, scope := range of.ScopeSpans {
				c.spans = append(c.spans, scope.Spans...)
			}
		}
	}))
	t.Cleanup(srv.Close)
	c.url = srv.URL
	return c
}

// below words the spans of the caller's trace under parent.
func (c *collector) below(parent string) string {
	c.mu.Lock()
	defer c.mu.Unlock()
	slices.SortFunc(c.spans, func(a, b *tracepb.Span) int { return int(int64(a.StartTimeUnixNano) - int64(b.StartTimeUnixNano)) })
	var word func(parent string) string
	word = func(parent string) string {
		var list []string
		for _, s := range c.spans {
			if fmt.Sprintf("%x", s.ParentSpanId) == parent {
				list = append(list, strings.TrimSuffix(s.Name+"("+word(fmt.Sprintf("%x", s.SpanId))+")", "()"))
			}
		}
		return strings.Join(list, " ")
	}
	return word(parent)
}

// O9: what runs when the service is told to stop still reaches the collector: the last export comes after the last run.
func TestO9SpansAreExportedAtTheEnd(t *testing.T) {
	collector := newCollector(t)
	t.Setenv("OTEL_EXPORTER_OTLP_ENDPOINT", collector.url)
	t.Setenv("OTEL_BSP_SCHEDULE_DELAY", "3600000") // nothing leaves before
	s := start(t, testbin.Worker(t), "--workers", "1")
	c := s.dial()
	defer c.Close()
	running := make(chan struct{})
	free := make(chan struct{})
	r := program("await tools.wait(); await tools.wait(); return 7")
	r.Trace = &protocol.Trace{Traceparent: "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"}
	var once sync.Once
	r.Provide(executor.Provider{Name: "tools", Tools: map[string]executor.Tool{"wait": func(context.Context, []protocol.Value) (protocol.Value, error) {
		once.Do(func() { close(running) })
		<-free
		return nil, nil
	}}})
	ended := make(chan error, 1)
	go func() {
		o, err := c.Execute(t.Context(), r)
		if err == nil {
			err = o.Err()
		}
		ended <- err
	}()
	<-running
	if err := s.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	web := s.web()
	within(10*time.Second, func() bool { return probe(web, "/readyz") != http.StatusOK }) // it has heard
	close(free)
	if err := <-ended; err != nil {
		t.Error(err)
	}
	if err := s.cmd.Wait(); err != nil {
		t.Errorf("executord ended with %v", err)
	}
	if got, want := collector.below("b7ad6b7169203331"), "execute(queue run(tool.call tool.call))"; got != want {
		t.Errorf("the collector has %q, want %q", got, want)
	}
}

// TestStopWithADeadCollector: a collector that takes connections and never answers does not hold up the end.
func TestStopWithADeadCollector(t *testing.T) {
	silent, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer silent.Close()
	t.Setenv("OTEL_EXPORTER_OTLP_ENDPOINT", "http://"+silent.Addr().String())
	s := start(t, testbin.Worker(t), "--workers", "1")
	c := s.dial()
	if o := run(t, c, program("1")); o.Err() != nil {
		t.Fatal(o.Err())
	}
	c.Close()
	began := time.Now()
	if err := s.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	if err := s.cmd.Wait(); err != nil {
		t.Errorf("executord ended with %v", err)
	}
	took := time.Since(began)
	t.Logf("it took %s", took)
	if took > 3*time.Second {
		t.Errorf("it took %s to end", took)
	}
	if !strings.Contains(s.log.String(), "cannot export telemetry") {
		t.Error("the log does not say that the last spans are lost")
	}
}

// TestTelemetryOff: neither a page nor a connection to anybody.
func TestTelemetryOff(t *testing.T) {
	s := start(t, testbin.Worker(t), "--workers", "1", "--metrics=false")
	if status := probe(s.web(), "/metrics"); status != http.StatusNotFound {
		t.Errorf("status %d", status)
	}
}
