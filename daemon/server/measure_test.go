package server

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"slices"
	"strings"
	"testing"

	"go.opentelemetry.io/otel/attribute"
	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"

	"github.com/executord/executord/ipc/executor"
	"github.com/executord/executord/ipc/protocol"
)

// measured makes c measure, and returns how to read all series.
func measured(t *testing.T, c *Config) func() map[string]int64 {
	t.Helper()
	reader := sdkmetric.NewManualReader()
	provider := sdkmetric.NewMeterProvider(sdkmetric.WithReader(reader))
	t.Cleanup(func() { _ = provider.Shutdown(context.Background()) })
	c.Meter = provider
	return func() map[string]int64 {
		var all metricdata.ResourceMetrics
		if err := reader.Collect(context.Background(), &all); err != nil {
			t.Fatal(err)
		}
		series := map[string]int64{}
		for _, m := range all.ScopeMetrics[0].Metrics {
			for _, p := range m.Data.(metricdata.Sum[int64]).DataPoints {
				series[seriesName(m.Name, p.Attributes)] = p.Value
			}
		}
		return series
	}
}

func seriesName(metric string, labels attribute.Set) string {
	name := strings.TrimPrefix(metric, "executord.")
	for _, a := range labels.ToSlice() {
		name += " " + a.Value.String()
	}
	return name
}

// TestMeasures: each metric counts what it is for.
func TestMeasures(t *testing.T) {
	busy := func(context.Context, executor.Request) (*protocol.Outcome, error) {
		return nil, protocol.Errorf(protocol.Overloaded, "busy")
	}
	cfg := Config{MaxMessageBytes: 1 << 16, Policy: Policy{Tokens: []Token{{Name: "n", Secret: "0123456789abcdef"}}}}
	read := measured(t, &cfg)
	s := serve(t, script{"busy": busy}, cfg)
	h := s.open(t)
	h.execute("1", "echo", `,"input":5`)
	h.want(`"value":5`)
	h.execute("2", "busy", "")
	h.want(`"overloaded"`)
	h.send(`{"jsonrpc":"2.0","id":"x","method":"nope"}`)
	h.want(`unknown_method`)
	h.send(`{"jsonrpc":"2.0","id":99,"result":{}}`) // of no call
	h.send(`{"jsonrpc":"2.0","id":"y","method":"nope"}`)
	h.want(`unknown_method`)
	before := read()
	post := func(body string) { s.ask(t, false, s.request(t, http.MethodPost, "/v1/execute", body)) }
	request := `{"code":"echo","input":5}`
	post(request)
	post(`{"code":"busy"}`)
	post(`{"code":`)
	post(`"` + strings.Repeat("x", 1<<16) + `"`)
	s.ask(t, true, s.request(t, http.MethodGet, "/metrics", ""))
	after := read()
	for name, want := range map[string]int64{
		"session.active": 1, "session.away": 0, "sessions": 1, "session.late_responses": 1, "session.owed": 0,
		"refusals overloaded": 2, "refusals unknown_method": 2, "refusals parse_error": 1, "refusals invalid_params": 1, "refusals maintenance": 0,
		"auth.failures no_token": 1, "auth.failures token": 0,
	} {
		if got, there := after[name]; !there || got != want {
			t.Errorf("%s is %d (there: %v), want %d", name, got, there, want)
		}
	}
	for name, want := range map[string]int64{"messages receive": 3, "messages transmit": 1} {
		if got := after[name] - before[name]; got != want {
			t.Errorf("single requests are %d %s, want %d", got, name, want)
		}
	}
	if before["messages receive"] != 6 || before["messages transmit"] != 5 {
		t.Errorf("the session has %d messages in, %d out", before["messages receive"], before["messages transmit"])
	}
	if in := after["message.io receive"] - before["message.io receive"]; in < int64(len(request)) || after["message.io transmit"] <= before["message.io transmit"] {
		t.Errorf("bytes before %v and after %v", before, after)
	}
	if testing.Verbose() {
		t.Log(after)
	}
}

// TestMetricsPage: who may use the service may scrape it; without a page there is nothing at its address.
func TestMetricsPage(t *testing.T) {
	page := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "a 1\n") })
	for _, x := range []struct {
		name    string
		page    http.Handler
		method  string
		status  int
		holding string
	}{
		{"page", page, http.MethodGet, 200, "a 1\n"},
		{"only read", page, http.MethodPost, 405, "unknown_method"},
		{"none", nil, http.MethodGet, 404, "unknown_method"},
	} {
		t.Run(x.name, func(t *testing.T) {
			s := serve(t, script{}, Config{Metrics: x.page})
			status, body, _ := s.ask(t, false, s.request(t, x.method, "/metrics", ""))
			if status != x.status || !strings.Contains(body, x.holding) {
				t.Errorf("status %d: %s", status, body)
			}
		})
	}
}

// lines are those about executions.
func (l *log) lines(t *testing.T) (lines []map[string]any) {
	t.Helper()
	for line := range strings.Lines(l.String()) {
		var fields map[string]any
		if err := json.Unmarshal([]byte(line), &fields); err != nil {
			t.Fatal(err)
		}
		if _, about := fields["execution"]; about {
			lines = append(lines, fields)
		}
	}
	return lines
}

// TestOneLineForEachExecution: at debug, and at warn where the service failed, with both ids and without a word of the
// program's.
func TestOneLineForEachExecution(t *testing.T) {
	const secret = "what the program says"
	ends := func(e *protocol.Error) func(context.Context, executor.Request) (*protocol.Outcome, error) {
		return func(context.Context, executor.Request) (*protocol.Outcome, error) {
			o := failed(e)
			o.Logs = []protocol.Log{{Text: secret}}
			o.Stats.Worker = "worker-7"
			return o, nil
		}
	}
	programs := script{
		"throws":  ends(&protocol.Error{Type: protocol.Exception, Name: secret, Message: secret, Stack: secret}),
		"crashes": ends(&protocol.Error{Type: protocol.WorkerCrashed, Reason: "signal:SIGSEGV", Message: secret}),
		"refused": func(context.Context, executor.Request) (*protocol.Outcome, error) {
			return nil, protocol.Errorf(protocol.Overloaded, "%s", secret)
		},
		"fails": func(context.Context, executor.Request) (*protocol.Outcome, error) {
			return nil, fmt.Errorf("a fault of ours")
		},
	}
	log := &log{}
	s := serve(t, programs, Config{Logger: slog.New(slog.NewJSONHandler(log, &slog.HandlerOptions{Level: slog.LevelDebug}))})
	h := s.open(t)
	for _, code := range []string{"works", "throws", "crashes", "refused", "fails"} {
		h.execute("id-"+code, code, `,"input":1`)
		h.want(`"id-` + code + `"`)
	}
	s.ask(t, false, s.request(t, http.MethodPost, "/v1/execute", `{"code":"crashes"}`))
	lines := log.lines(t)
	want := []string{
		"DEBUG execution ended ok <nil> <nil>",
		"DEBUG execution ended error exception <nil>",
		"WARN execution ended error worker_crashed signal:SIGSEGV",
		"DEBUG execution refused <nil> overloaded <nil>",
		"WARN execution refused <nil> internal <nil>",
		"WARN execution ended error worker_crashed signal:SIGSEGV",
	}
	var got []string
	for i, l := range lines {
		got = append(got, fmt.Sprintf("%v %v %v %v %v", l["level"], l["msg"], l["status"], l["type"], l["reason"]))
		if last := i == len(lines)-1; l["identity"] == "" || l["execution"] == "" || (l["session"] == nil) != last {
			t.Errorf("ids are missing in %v", l)
		}
		if l["status"] == "error" && l["worker"] != "worker-7" {
			t.Errorf("the worker is missing in %v", l)
		}
		if strings.Contains(fmt.Sprint(l), secret) {
			t.Errorf("%v has the program's words", l)
		}
	}
	if !slices.Equal(got, want) {
		t.Errorf("got  %q\nwant %q", got, want)
	}
}
