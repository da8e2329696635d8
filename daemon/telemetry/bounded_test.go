package telemetry_test

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"

	"github.com/executord/executord/daemon/pool"
	"github.com/executord/executord/daemon/server"
	"github.com/executord/executord/daemon/telemetry"
	"github.com/executord/executord/ipc/executor"
	"github.com/executord/executord/ipc/protocol"
	"github.com/executord/executord/ipc/testbin"
)

func TestMain(m *testing.M) { os.Exit(testbin.Main(m)) }

// service is a pool and a server that measure, without what daemon adds.
type service struct {
	t    *testing.T
	page http.Handler
	pool *pool.Pool
	url  string
}

func start(t *testing.T, policy server.Policy) *service {
	t.Helper()
	said, err := telemetry.New(telemetry.Config{Page: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = said.Close() })
	c := pool.Defaults()
	c.Workers, c.Queue, c.QueuePerIdentity = 2, 100, 100
	c.Meter, c.Tracer = said.Meter, said.Tracer
	if c.Launcher, err = pool.NewChild(t.Context(), pool.ChildConfig{Path: testbin.Worker(t)}); err != nil {
		t.Fatal(err)
	}
	p, err := pool.New(c)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = p.Close() })
	ready, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	if err := p.WaitReady(ready); err != nil {
		t.Fatal(err)
	}
	srv, err := server.New(p, server.Config{Meter: said.Meter, Metrics: said.Page, Policy: policy})
	if err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- srv.Serve(ctx, l) }()
	t.Cleanup(func() {
		stop()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
	return &service{t: t, page: said.Page, pool: p, url: "http://" + l.Addr().String()}
}

// series parses the page and returns it with the number of its series.
func (s *service) series() (text string, n int) {
	s.t.Helper()
	w := httptest.NewRecorder()
	s.page.ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/metrics", nil))
	text = w.Body.String()
	parser := expfmt.NewTextParser(model.LegacyValidation)
	all, err := parser.TextToMetricFamilies(strings.NewReader(text))
	if err != nil {
		s.t.Fatal(err)
	}
	for _, f := range all {
		n += len(f.Metric)
	}
	return text, n
}

// direct runs one program for a caller with a name of its own, that calls a tool, throws and reaches out by names of its
// own.
func (s *service) direct(i int) {
	chosen := fmt.Sprintf("chosen%d", i)
	r := executor.Request{Identity: chosen, Execute: protocol.Execute{
		Execution: chosen, Name: chosen + ".js", Network: protocol.NetworkHost,
		Code: fmt.Sprintf(`console.log(%[1]q); await %[1]s.%[1]s(1); try { await %[1]s.nope(); } catch {}
			await fetch("https://%[1]s.example/%[1]s"); throw Object.assign(new Error(%[1]q), {name: %[1]q})`, chosen),
		Providers: []protocol.Provider{{Name: chosen, Tools: protocol.Tools{All: true}}},
		Trace:     &protocol.Trace{Traceparent: fmt.Sprintf("00-0af7651916cd43dd8448eb21%08x-b7ad6b7169203331-01", i), Tracestate: chosen + "=1"},
	}}
	r.Call = func(_ context.Context, c executor.ToolCall) (protocol.Value, error) {
		if c.Path[0] == "nope" {
			return nil, &protocol.ThrownError{Name: chosen, Message: chosen, Code: chosen}
		}
		return c.Args, nil
	}
	r.Fetch = func(_ context.Context, f executor.FetchCall) (*executor.FetchResponse, error) {
		return &executor.FetchResponse{FetchHead: protocol.FetchHead{Status: 200, URL: f.URL}}, nil
	}
	o, err := s.pool.Execute(s.t.Context(), r)
	if err != nil || o.Error == nil || o.Error.Type != protocol.Exception || o.Error.Name != chosen || o.Stats.ToolCalls != 2 {
		s.t.Errorf("%s: %+v, %v", chosen, o, err)
	}
}

// post is a request of the caller with the nth token; there may be none.
func (s *service) post(n int) {
	r, _ := http.NewRequestWithContext(s.t.Context(), http.MethodPost, s.url+"/v1/execute", strings.NewReader(fmt.Sprintf(`{"code":"1","execution":"chosen%d"}`, n)))
	r.Header.Set("Authorization", "Bearer "+secret(n))
	resp, err := http.DefaultClient.Do(r)
	if err != nil {
		s.t.Error(err)
		return
	}
	_ = resp.Body.Close()
}

func secret(n int) string { return fmt.Sprintf("chosen-secret-%08d", n) }

// O1: hundreds of callers, executions and names that programs choose make no series: there are as many as after the first
// few, none of them is the SDK's overflow, and none has a name that somebody chose.
func TestO1SeriesAreBounded(t *testing.T) {
	callers, first, posts := 900, 20, 300
	if testing.Short() {
		callers, posts = 200, 50
	}
	var policy server.Policy
	for i := range posts {
		policy.Tokens = append(policy.Tokens, server.Token{Name: fmt.Sprintf("chosen%d", i), Secret: secret(i)})
	}
	s := start(t, policy)
	var next sync.Mutex
	done := 0
	run := func(until int) {
		var all sync.WaitGroup
		for range 4 {
			all.Go(func() {
				for {
					next.Lock()
					i := done
					done++
					next.Unlock()
					if i >= until || t.Failed() {
						return
					}
					s.direct(i)
					if i%(callers/posts) == 0 {
						s.post(i / (callers / posts))
						s.post(posts + i) // of nobody
					}
				}
			})
		}
		all.Wait()
	}
	run(first)
	_, before := s.series()
	done = first
	run(callers)
	text, after := s.series()
	if after != before {
		t.Errorf("%d series became %d", before, after)
	}
	if after > 300 || len(text) > 200_000 {
		t.Errorf("%d series, %d bytes", after, len(text))
	}
	for _, never := range []string{"overflow", "chosen"} {
		if strings.Contains(text, never) {
			t.Errorf("the page has %q", never)
		}
	}
	for _, line := range []string{
		fmt.Sprintf(`executord_executions_total{executord_outcome="exception"} %d`, callers),
		fmt.Sprintf(`executord_executions_total{executord_outcome="ok"} %d`, posts),
		fmt.Sprintf(`executord_tool_calls_total{executord_status="ok"} %d`, callers),
		fmt.Sprintf(`executord_tool_calls_total{executord_status="error"} %d`, callers),
		fmt.Sprintf(`executord_fetches_total{executord_status="ok"} %d`, callers),
		fmt.Sprintf(`executord_execution_queue_duration_seconds_count %d`, callers+posts),
	} {
		if !strings.Contains(text, line+"\n") {
			t.Errorf("the page lacks %s", line)
		}
	}
	if t.Failed() {
		t.Log(text)
	}
}
