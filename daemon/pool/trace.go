package pool

import (
	"cmp"
	"context"
	"net/url"
	"strings"
	"sync"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/trace"

	"github.com/executord/executord/daemon/telemetry/instrument"
	"github.com/executord/executord/ipc/protocol"
)

const (
	// tracedCalls of one execution get a span. A program that makes many more would push the spans of others out of the
	// exporter's queue.
	tracedCalls = 256
	// maxAttributeBytes bounds texts of clients and programs in spans.
	maxAttributeBytes = 128
)

// tracing is the spans of one execution: below the caller's span that of the execution, below that its queue and its run,
// and below the run each call. They are the pool's own, so that they outlive the worker. All methods may be called on nil,
// which traces nothing, and by several goroutines at once.
type tracing struct {
	tracer    trace.Tracer
	execution trace.Span
	queue     trace.Span
	run       trace.Span

	mu   sync.Mutex
	open map[*hostCall]trace.Span // calls without an answer
	made int
	over bool
}

// trace begins the span of an execution, or an invocation. The span that t names is the parent, else that of ctx. Nil means
// that nobody wants spans, or not those of this trace.
func (p *Pool) trace(ctx context.Context, name string, t *protocol.Trace) (context.Context, *tracing) {
	if p.tracer == nil {
		return ctx, nil
	}
	if t != nil {
		ctx = propagation.TraceContext{}.Extract(ctx, propagation.MapCarrier{"traceparent": t.Traceparent, "tracestate": t.Tracestate})
	}
	ctx, span := p.tracer.Start(ctx, name, trace.WithSpanKind(trace.SpanKindServer))
	if !span.IsRecording() {
		return ctx, nil
	}
	return ctx, &tracing{tracer: p.tracer, execution: span, open: map[*hostCall]trace.Span{}}
}

// queued begins the wait for a worker.
func (t *tracing) queued(ctx context.Context, r *run) {
	if t == nil {
		return
	}
	t.about(r)
	_, t.queue = t.tracer.Start(ctx, "queue")
}

// invoked says what an invocation is of. It does not wait.
func (t *tracing) invoked(r *run) {
	if t == nil {
		return
	}
	t.about(r)
	t.execution.SetAttributes(text(instrument.Retained, r.pool.nameOf(r.invoked.of.number)))
}

func (t *tracing) about(r *run) {
	network := cmp.Or(r.req.Network, protocol.NetworkNone)
	t.execution.SetAttributes(text(instrument.Execution, r.execution), text(instrument.Identity, r.req.Identity), instrument.Network.String(string(network)))
}

// running begins the run, unless it is begun again on another worker. The spans of calls are children of what it returns.
func (t *tracing) running(ctx context.Context) context.Context {
	if t == nil {
		return ctx
	}
	if t.run == nil {
		if t.queue != nil {
			t.queue.End()
		}
		_, t.run = t.tracer.Start(ctx, "run")
	}
	return trace.ContextWithSpan(ctx, t.run)
}

// tool begins a tool call. The names in it are the program's.
func (t *tracing) tool(ctx context.Context, c *hostCall) context.Context {
	if t == nil {
		return ctx
	}
	return t.call(ctx, c, "tool.call", text(instrument.Provider, c.provider), text(instrument.Tool, strings.Join(c.path, ".")))
}

// methods are those that a span may name as they are: https://opentelemetry.io/docs/specs/semconv/http/http-spans/.
var methods = map[string]bool{
	"GET": true, "HEAD": true, "POST": true, "PUT": true, "DELETE": true, "OPTIONS": true, "PATCH": true, "TRACE": true, "CONNECT": true, "QUERY": true,
}

// fetch begins an HTTP exchange. Of its address only the server is told: the rest may hold secrets.
func (t *tracing) fetch(ctx context.Context, c *hostCall, r *protocol.FetchRequest) context.Context {
	if t == nil {
		return ctx
	}
	method, server := r.Method, ""
	if !methods[method] {
		method = "_OTHER"
	}
	if u, err := url.Parse(r.URL); err == nil {
		server = u.Hostname()
	}
	return t.call(ctx, c, "fetch", attribute.String("http.request.method", method), text("server.address", server))
}

func (t *tracing) call(ctx context.Context, c *hostCall, name string, about ...attribute.KeyValue) context.Context {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.over || t.made >= tracedCalls {
		return ctx
	}
	t.made++
	ctx, span := t.tracer.Start(ctx, name, trace.WithSpanKind(trace.SpanKindClient), trace.WithAttributes(about...))
	t.open[c] = span
	return ctx
}

// responded notes the status of a response.
func (t *tracing) responded(c *hostCall, status int) {
	if t == nil {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if span := t.open[c]; span != nil {
		span.SetAttributes(attribute.Int("http.response.status_code", status))
	}
}

// answered ends a call.
func (t *tracing) answered(c *hostCall, ok bool) {
	if t == nil {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if span := t.open[c]; span != nil {
		delete(t.open, c)
		status := protocol.CallOK
		if !ok {
			status = protocol.CallError
		}
		endCall(span, status)
	}
}

func endCall(span trace.Span, status protocol.CallStatus) {
	span.SetAttributes(instrument.Status.String(string(status)))
	if status != protocol.CallOK {
		span.SetStatus(codes.Error, string(status))
	}
	span.End()
}

// end ends all spans. Calls that have no answer by then stay pending, as in the outcome.
func (t *tracing) end(out *protocol.Outcome, err error) {
	if t == nil {
		return
	}
	t.mu.Lock()
	t.over = true
	for _, span := range t.open {
		endCall(span, protocol.CallPending)
	}
	t.mu.Unlock()
	typ := typeOf(out)
	if err != nil {
		typ = protocol.AsError(err).Type
	}
	if t.run != nil {
		if out != nil {
			t.run.SetAttributes(text(instrument.Worker, out.Stats.Worker))
		}
		endSpan(t.run, typ)
	} else if t.queue != nil {
		endSpan(t.queue, typ)
	}
	endSpan(t.execution, typ)
}

// endSpan ends a span with an outcome. What the program says of it stays in the outcome.
func endSpan(span trace.Span, typ protocol.Type) {
	if typ == "" {
		span.SetAttributes(instrument.Outcome.String(instrument.OK))
	} else {
		span.SetAttributes(instrument.Outcome.String(string(typ)), instrument.ErrorType.String(string(typ)))
		span.SetStatus(codes.Error, string(typ))
	}
	span.End()
}

// text is an attribute that somebody else chose, bounded; a batch with invalid UTF-8 would be lost as a whole.
func text(key attribute.Key, value string) attribute.KeyValue {
	return key.String(strings.ToValidUTF8(Clip(value, maxAttributeBytes), "\uFFFD"))
}
