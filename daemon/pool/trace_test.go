package pool

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"
	"unicode/utf8"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	"go.opentelemetry.io/otel/trace"

	"github.com/executord/executord/daemon/telemetry/instrument"
	"github.com/executord/executord/ipc/executor"
	"github.com/executord/executord/ipc/protocol"
	"github.com/executord/executord/ipc/testbin"
)

// traced makes c trace into memory.
func traced(t *testing.T, c *Config) *tracetest.SpanRecorder {
	t.Helper()
	spans := tracetest.NewSpanRecorder()
	provider := sdktrace.NewTracerProvider(sdktrace.WithSpanProcessor(spans))
	t.Cleanup(func() { _ = provider.Shutdown(context.Background()) })
	c.Tracer = provider
	return spans
}

// caller is the trace context of a request.
const (
	callerTrace = "0af7651916cd43dd8448eb211c80319c"
	callerSpan  = "b7ad6b7169203331"
)

func caller(flags string) *protocol.Trace {
	return &protocol.Trace{Traceparent: "00-" + callerTrace + "-" + callerSpan + "-" + flags, Tracestate: "vendor=1"}
}

// tree words the spans below parent, each with its children in the order in which they began.
func tree(spans []sdktrace.ReadOnlySpan, parent trace.SpanID) string {
	var b strings.Builder
	for _, s := range spans {
		if s.Parent().SpanID() != parent {
			continue
		}
		if b.Len() > 0 {
			b.WriteString(" ")
		}
		b.WriteString(s.Name())
		if s.Status().Code == codes.Error {
			b.WriteString("!" + s.Status().Description)
		}
		if below := tree(spans, s.SpanContext().SpanID()); below != "" {
			b.WriteString("(" + below + ")")
		}
	}
	return b.String()
}

// belowCaller wants that all spans are of the caller's trace and have ended, and returns their tree.
func belowCaller(t *testing.T, r *tracetest.SpanRecorder) string {
	t.Helper()
	spans := r.Started()
	all := make([]sdktrace.ReadOnlySpan, 0, len(spans))
	for _, s := range spans {
		if s.EndTime().IsZero() {
			t.Errorf("span %s never ended", s.Name())
		}
		if got := s.SpanContext().TraceID().String(); got != callerTrace {
			t.Errorf("span %s is of trace %s", s.Name(), got)
		}
		if got := s.SpanContext().TraceState().Get("vendor"); got != "1" {
			t.Errorf("span %s lost the caller's tracestate", s.Name())
		}
		all = append(all, s)
	}
	root, _ := trace.SpanIDFromHex(callerSpan)
	return tree(all, root)
}

func attributeOf(s sdktrace.ReadOnlySpan, key attribute.Key) string {
	for _, a := range s.Attributes() {
		if a.Key == key {
			return a.Value.String()
		}
	}
	return ""
}

// O7: tool calls are children of the run, the run of the execution, the execution of the caller's span.
func TestO7ToolSpansAreChildren(t *testing.T) {
	c := testConfig()
	spans := traced(t, &c)
	b := realBench(t, c)
	r := program(`await tools.echo(1);
		try { await db.users.get(2); } catch {}
		return (await fetch("https://example.com:8443/secret?key=secret")).status;`)
	r.Execution, r.Identity, r.Trace, r.Network = "mine", "somebody", caller("01"), protocol.NetworkHost
	var mu sync.Mutex
	var seen []trace.SpanID // by the host's callbacks
	note := func(ctx context.Context) {
		mu.Lock()
		defer mu.Unlock()
		seen = append(seen, trace.SpanContextFromContext(ctx).SpanID())
	}
	r.Call = func(ctx context.Context, c executor.ToolCall) (protocol.Value, error) {
		note(ctx)
		if c.Provider == "db" {
			return nil, errors.New("no such user")
		}
		return c.Args, nil
	}
	r.Fetch = func(ctx context.Context, _ executor.FetchCall) (*executor.FetchResponse, error) {
		note(ctx)
		return &executor.FetchResponse{FetchHead: protocol.FetchHead{Status: 204, URL: "https://example.com"}}, nil
	}
	out := b.run(r)
	if string(out.Value) != "204" {
		t.Fatalf("%s, %v", out.Value, out.Error)
	}
	if got, want := belowCaller(t, spans), "execute(queue run(tool.call tool.call!error fetch))"; got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	var hosts []trace.SpanID
	for _, s := range spans.Ended() {
		if s.SpanKind() == trace.SpanKindClient {
			hosts = append(hosts, s.SpanContext().SpanID())
		}
		for _, a := range s.Attributes() {
			if strings.Contains(a.Value.String(), "secret") {
				t.Errorf("%s of %s tells a secret", a.Key, s.Name())
			}
		}
		switch s.Name() {
		case "execute":
			if attributeOf(s, instrument.Execution) != "mine" || attributeOf(s, instrument.Identity) != "somebody" ||
				attributeOf(s, instrument.Outcome) != "ok" || attributeOf(s, instrument.Network) != "host" {
				t.Errorf("execute has %v", s.Attributes())
			}
		case "run":
			if attributeOf(s, instrument.Worker) != "worker-1" {
				t.Errorf("run has %v", s.Attributes())
			}
		case "fetch":
			if attributeOf(s, "server.address") != "example.com" || attributeOf(s, "http.response.status_code") != "204" {
				t.Errorf("fetch has %v", s.Attributes())
			}
		}
	}
	if !slices.Equal(seen, hosts) {
		t.Errorf("the host's callbacks were below %v, the spans are %v", seen, hosts)
	}
}

// Spans are the pool's own: those of a program that takes its worker along are kept, its pending calls too.
func TestSpansOutliveTheWorker(t *testing.T) {
	c := testConfig()
	spans := traced(t, &c)
	c.Launcher = launcherOf(t, testbin.FaultyWorker(t))
	b := newBench(t, c, realOutside())
	b.waitReady()
	asked := make(chan struct{})
	r := program("await tools.echo(1); db.users.get(1); await tools.echo(2); console.log('fault:segv')")
	r.Trace = caller("01")
	r.Call = func(ctx context.Context, c executor.ToolCall) (protocol.Value, error) {
		if c.Provider == "db" {
			close(asked)
			<-ctx.Done()
			return nil, ctx.Err()
		}
		if c.Call > 1 {
			<-asked
		}
		return c.Args, nil
	}
	want(t, b.run(r), protocol.WorkerCrashed, "signal:SIGSEGV")
	if got, want := belowCaller(t, spans), "execute!worker_crashed(queue run!worker_crashed(tool.call tool.call!pending tool.call))"; got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}

func TestSpansOfWhatDidNotRun(t *testing.T) {
	c := testConfig()
	c.Queue, c.QueuePerIdentity = 0, 0
	spans := traced(t, &c)
	b := insideBench(t, c)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	running, ended := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		r := script("wait")
		r.OnState = func(protocol.State) { close(running) }
		_, _ = b.Execute(ctx, r)
	}()
	<-running
	r := script("return 1")
	r.Trace = caller("01")
	_, err := b.Execute(t.Context(), r)
	if !errors.Is(err, protocol.Overloaded) {
		t.Fatal(err)
	}
	r.Providers = []protocol.Provider{{Name: "not a name"}}
	if _, err := b.Execute(t.Context(), r); err == nil {
		t.Fatal("a bad request ran")
	}
	cancel()
	<-ended
	var mine []sdktrace.ReadOnlySpan
	for _, s := range spans.Ended() {
		if s.SpanContext().TraceID().String() == callerTrace {
			mine = append(mine, s)
		}
	}
	slices.SortFunc(mine, func(a, b sdktrace.ReadOnlySpan) int { return a.StartTime().Compare(b.StartTime()) })
	root, _ := trace.SpanIDFromHex(callerSpan)
	if got, want := tree(mine, root), "execute!overloaded(queue!overloaded) execute!invalid_provider"; got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}

// A caller that does not sample gets no spans, and its decision is passed on to the host.
func TestUnsampledTraceIsPassedOn(t *testing.T) {
	c := testConfig()
	spans := traced(t, &c)
	b := insideBench(t, c)
	var host trace.SpanContext
	r := script("call tools.echo [1]")
	r.Trace = caller("00")
	r.Call = func(ctx context.Context, c executor.ToolCall) (protocol.Value, error) {
		host = trace.SpanContextFromContext(ctx)
		return c.Args, nil
	}
	b.run(r)
	if n := len(spans.Started()); n != 0 {
		t.Errorf("%d spans", n)
	}
	if host.TraceID().String() != callerTrace || host.IsSampled() {
		t.Errorf("the host was given %v", host)
	}
}

// What a client or a program chooses is bounded, and is never the name of a span.
func TestSpansAreBounded(t *testing.T) {
	c := testConfig()
	c.Limits.ToolCalls = 1000
	spans := traced(t, &c)
	b := insideBench(t, c)
	long := strings.Repeat("é", maxAttributeBytes)
	r := script("call tools."+long+" [1]", "return 1")
	r.Identity = long + "\xff"
	b.run(r)
	many := script("fire 900", "call tools.echo [1]")
	b.run(many)
	names := map[string]int{}
	for _, s := range spans.Ended() {
		names[s.Name()]++
		for _, a := range s.Attributes() {
			if v := a.Value.String(); len(v) > maxAttributeBytes+len("\uFFFD") || !utf8.ValidString(v) {
				t.Errorf("%s of %s is %q", a.Key, s.Name(), v)
			}
		}
	}
	if names["tool.call"] != tracedCalls+1 || len(names) != 4 {
		t.Errorf("spans %v", names)
	}
}

// A trace context that is none begins a new trace.
func TestMalformedTraceContext(t *testing.T) {
	c := testConfig()
	spans := traced(t, &c)
	b := insideBench(t, c)
	for _, parent := range []string{"", "00", "00-00000000000000000000000000000000-b7ad6b7169203331-01", "ff-" + callerTrace + "-" + callerSpan + "-01", strings.Repeat("0", 1000), "\x00\n"} {
		r := script("return 1")
		r.Trace = &protocol.Trace{Traceparent: parent, Tracestate: "=,\n;" + parent}
		if _, err := b.Execute(t.Context(), r); err != nil && !errors.Is(err, protocol.InvalidParams) {
			t.Error(err)
		}
	}
	for _, s := range spans.Ended() {
		if s.SpanContext().TraceID().String() == callerTrace {
			t.Errorf("span %s is of a trace that was not to be believed", s.Name())
		}
	}
	if len(spans.Ended()) == 0 {
		t.Error("no spans")
	}
}
