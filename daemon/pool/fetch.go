package pool

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"runtime/debug"

	"github.com/executord/executord/ipc/executor"
	"github.com/executord/executord/ipc/protocol"
	"github.com/executord/executord/ipc/worker"
)

const (
	// fetchesAtOnce is how many exchanges of one execution may wait for the head of their response; more wait their turn.
	fetchesAtOnce = 64
	// openBodies is how many responses of one execution may have a body that is not at its end.
	openBodies = 256
	// pieceBytes is how much of a body crosses at a time.
	pieceBytes = 64 << 10
)

// exchange is one fetch of a program, from its request to the end of the response's body.
type exchange struct {
	number uint64
	asked  *hostCall       // for the head
	ctx    context.Context // ends with the run, or when the program gives the exchange up
	cancel context.CancelFunc

	// Guarded by run.mu.
	call *hostCall     // that waits for an answer, nil when none does
	body io.ReadCloser // once the head was answered
}

// perform is who answers the fetches of a request; nil when nobody does.
func (c *Config) perform(r *executor.Request) executor.Fetch {
	switch r.Network {
	case protocol.NetworkHost:
		return r.Fetch
	case protocol.NetworkDirect:
		return c.Direct
	}
	return nil
}

// checkNetwork refuses a network that nobody is there for.
func (c *Config) checkNetwork(r *executor.Request) error {
	switch {
	case r.Network == protocol.NetworkHost && r.Fetch == nil:
		return protocol.FieldError("network", "host needs a caller that answers fetch calls")
	case r.Network == protocol.NetworkDirect && c.Direct == nil:
		return protocol.FieldError("network", "direct is not allowed by this service: its operator names what may be reached with --egress-allow")
	}
	return nil
}

// fetch takes an exchange that the program asks for. The error is a violation.
func (r *run) fetch(m worker.Fetch) error {
	perform := r.config.perform(r.req)
	if perform == nil {
		return violationf("a fetch without a network")
	}
	request, err := protocol.DecodeFetchRequest(m.Request, bounds(math.MaxInt, 1, r.limits)) // the frame bounds its length
	if err != nil {
		return violationf("request of a fetch: %v", err)
	}
	f, refusal, err := r.admitFetch(m, request)
	if err != nil || f == nil {
		return err
	}
	r.starting.Add(1)
	call := executor.FetchCall{Execution: r.execution, Call: m.Call, FetchRequest: *request}
	go r.exchange(r.trace.fetch(f.ctx, f.asked, request), f, perform, call, refusal)
	return nil
}

// admitFetch accounts for an exchange; nil when the run ended. A refusal is thrown in the program.
func (r *run) admitFetch(m worker.Fetch, request *protocol.FetchRequest) (f *exchange, refusal, violation error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	switch {
	case r.ended || r.verdict != nil:
		return nil, nil, nil
	case m.Call <= r.lastCall:
		return nil, nil, violationf("fetch call %d after %d", m.Call, r.lastCall)
	case m.Fetch <= r.lastFetch:
		return nil, nil, violationf("fetch %d after %d", m.Fetch, r.lastFetch)
	}
	now := r.pool.outside.now()
	call := &hostCall{kind: fetchKind, number: m.Call, asked: now, size: int64(len(m.Request)), body: int64(len(request.Body))}
	refused, violation := r.govern.hostCall(now, call)
	if violation != nil {
		return nil, nil, violation
	}
	f = &exchange{number: m.Fetch, asked: call, call: call}
	f.ctx, f.cancel = context.WithCancel(r.ctx)
	r.lastCall, r.lastFetch = m.Call, m.Fetch
	r.exchanges[f.number] = f
	if refused != nil {
		return f, refused, nil
	}
	return f, request.Check(), nil
}

// exchange asks whoever performs, and answers with the head of the response.
func (r *run) exchange(ctx context.Context, f *exchange, perform executor.Fetch, call executor.FetchCall, refusal error) {
	r.starting.Done()
	response, err := (*executor.FetchResponse)(nil), refusal
	if err == nil {
		response, err = r.performSafely(ctx, f, perform, call)
	}
	if err == nil {
		r.trace.responded(f.asked, response.Status)
		err = response.Check()
	}
	if err != nil {
		closeBody(response)
		r.endFetch(f)
		r.answerFetch(f, nil, r.networkError(err))
		return
	}
	if response.Body == nil {
		r.endFetch(f)
	} else if err := r.keepBody(f, response.Body); err != nil {
		r.endFetch(f)
		r.answerFetch(f, nil, r.networkError(err))
		return
	}
	r.answerFetch(f, protocol.AppendFetchHead(nil, &response.FetchHead, response.Body != nil), nil)
}

// performSafely waits for a turn. A callback that panics fails the exchange only.
func (r *run) performSafely(ctx context.Context, f *exchange, perform executor.Fetch, call executor.FetchCall) (response *executor.FetchResponse, err error) {
	select {
	case r.turns <- struct{}{}:
		defer func() { <-r.turns }()
	case <-f.ctx.Done():
		return nil, context.Cause(f.ctx)
	}
	defer func() {
		if p := recover(); p != nil {
			r.pool.log.Error("fetch callback panicked", "execution", r.execution, "panic", p, "stack", string(debug.Stack()))
			response, err = nil, errUnanswered
		}
	}()
	response, err = perform(ctx, call)
	if err == nil && response == nil {
		err = errUnanswered
	}
	return response, err
}

var errUnanswered = &protocol.ThrownError{Name: "TypeError", Message: "fetch: the host could not answer the call"}

// keepBody holds a body until it is read; it is closed when the exchange ends in whatever way.
func (r *run) keepBody(f *exchange, body io.ReadCloser) error {
	context.AfterFunc(f.ctx, func() { _ = body.Close() })
	r.mu.Lock()
	defer r.mu.Unlock()
	switch {
	case r.exchanges[f.number] != f:
		return errUnanswered // it was given up
	case r.open >= openBodies:
		return rangeError("more than %d responses are open: read their bodies to the end, or cancel them", openBodies)
	}
	f.body = body
	r.open++
	return nil
}

func closeBody(response *executor.FetchResponse) {
	if response != nil && response.Body != nil {
		_ = response.Body.Close()
	}
}

// endFetch frees what an exchange holds. It may be called more than once.
func (r *run) endFetch(f *exchange) {
	f.cancel()
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.exchanges[f.number] == f {
		delete(r.exchanges, f.number)
		if f.body != nil {
			r.open--
		}
	}
}

// fetchRead takes the program's wish for more of a body. The error is a violation.
func (r *run) fetchRead(m worker.FetchRead) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	f := r.exchanges[m.Fetch]
	switch {
	case r.ended || r.verdict != nil:
		return nil
	case m.Call <= r.lastCall:
		return violationf("read call %d after %d", m.Call, r.lastCall)
	case f == nil || f.body == nil || f.call != nil:
		return violationf("a read of fetch %d, which has no body to read now", m.Fetch)
	}
	r.lastCall = m.Call
	now := r.pool.outside.now()
	f.call = &hostCall{kind: readKind, number: m.Call, asked: now}
	if _, err := r.govern.hostCall(now, f.call); err != nil {
		return err
	}
	go r.read(f)
	return nil
}

// read answers with the next piece of a body.
func (r *run) read(f *exchange) {
	piece := make([]byte, pieceBytes)
	n, err := 0, error(nil)
	for n == 0 && err == nil {
		n, err = f.body.Read(piece)
	}
	switch {
	case n > 0 && !r.govern.body(n):
		r.endFetch(f)
		r.answerFetch(f, nil, tooManyBytes(r.limits))
	case n > 0: // an error comes again with the next read
		r.answerFetch(f, protocol.AppendBytes(nil, piece[:n]), nil)
	case errors.Is(err, io.EOF):
		r.endFetch(f)
		r.answerFetch(f, protocol.Value("null"), nil)
	default:
		r.endFetch(f)
		r.answerFetch(f, nil, r.networkError(err))
	}
}

// networkError is err as the program gets it: a TypeError, as the Fetch Standard has every network error, unless it says
// what it is.
func (r *run) networkError(err error) *protocol.ThrownError {
	t := r.thrown(err)
	if t.Name == "" && t.Thrown == nil {
		t.Name = "TypeError"
	}
	return t
}

func rangeError(format string, args ...any) error {
	return &protocol.ThrownError{Name: "RangeError", Message: "fetch: " + fmt.Sprintf(format, args...)}
}

// fetchCancel gives up an exchange; one that just ended is no fault.
func (r *run) fetchCancel(m worker.FetchCancel) error {
	r.mu.Lock()
	f := r.exchanges[m.Fetch]
	known := m.Fetch <= r.lastFetch
	var waits *hostCall
	if f != nil {
		waits, f.call = f.call, nil
	}
	r.mu.Unlock()
	if waits != nil {
		r.answered(waits, false)
	}
	if f != nil {
		r.endFetch(f)
	} else if !known {
		return violationf("fetch %d is given up before it was made", m.Fetch)
	}
	return nil
}

// answerFetch answers the call of an exchange that waits, unless it was given up.
func (r *run) answerFetch(f *exchange, value protocol.Value, thrown *protocol.ThrownError) {
	r.mu.Lock()
	call := f.call
	f.call = nil
	r.mu.Unlock()
	if call != nil {
		r.answer(call, value, thrown)
	}
}
