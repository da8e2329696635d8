package pool

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/executord/executord/ipc/executor"
	"github.com/executord/executord/ipc/protocol"
)

// online is a script of a program whose host answers fetches with f.
func online(f executor.Fetch, lines ...string) executor.Request {
	r := script(lines...)
	r.Network, r.Fetch = protocol.NetworkHost, f
	return r
}

// tracked is a body that notes when it is closed.
type tracked struct {
	io.Reader
	closed atomic.Bool
}

func (b *tracked) Close() error {
	b.closed.Store(true)
	return nil
}

// answer is a response with a body of these pieces.
func answer(pieces ...string) (*executor.FetchResponse, *tracked) {
	readers := make([]io.Reader, len(pieces))
	for i, p := range pieces {
		readers[i] = strings.NewReader(p)
	}
	body := &tracked{Reader: io.MultiReader(readers...)}
	return &executor.FetchResponse{FetchHead: protocol.FetchHead{Status: 200}, Body: body}, body
}

// awaitClosed waits for a body to be closed, which happens beside the end of its execution.
func awaitClosed(t testing.TB, b *tracked) {
	t.Helper()
	for stop := time.Now().Add(10 * time.Second); !b.closed.Load(); time.Sleep(time.Millisecond) {
		if time.Now().After(stop) {
			t.Fatal("the body is not closed")
		}
	}
}

func TestFetch(t *testing.T) {
	b := insideBench(t, testConfig())
	response, body := answer("one ", "two ", strings.Repeat("x", 3*pieceBytes))
	var got executor.FetchCall
	r := online(func(_ context.Context, f executor.FetchCall) (*executor.FetchResponse, error) {
		got = f
		return response, nil
	}, "fetch POST http://x/ sent", "read 0", "text")
	r.Execution = "mine"
	out := b.run(r)
	if want := `"one two ` + strings.Repeat("x", 3*pieceBytes) + `"`; string(out.Value) != want {
		t.Errorf("got %.100s, %v", out.Value, out.Error)
	}
	if got.Execution != "mine" || got.Call != 1 || got.Method != "POST" || got.URL != "http://x/" || string(got.Body) != "sent" || out.Stats.Fetches != 1 {
		t.Errorf("got %+v, stats %+v", got, out.Stats)
	}
	awaitClosed(t, body)
}

// TestFetchAnswers: what a host can do wrong fails the exchange and nothing else.
func TestFetchAnswers(t *testing.T) {
	b := insideBench(t, testConfig())
	gives := func(r *executor.FetchResponse, err error) executor.Fetch {
		return func(context.Context, executor.FetchCall) (*executor.FetchResponse, error) { return r, err }
	}
	bad, badBody := answer("x")
	bad.Status = 99
	failing := &executor.FetchResponse{FetchHead: protocol.FetchHead{Status: 200}, Body: io.NopCloser(io.MultiReader(strings.NewReader("a"), failure{}))}
	for _, c := range []struct {
		name  string
		fetch executor.Fetch
		cause string
	}{
		{"error", gives(nil, errors.New("no route")), "no route"},
		{"thrown", gives(nil, &protocol.ThrownError{Name: "TypeError", Message: "refused", Code: "EGRESS"}), `"code":"EGRESS"`},
		{"nothing", gives(nil, nil), "could not answer"},
		{"panic", func(context.Context, executor.FetchCall) (*executor.FetchResponse, error) { panic("secret") }, "could not answer"},
		{"no status", gives(bad, nil), "the status 99"},
		{"body that fails", gives(failing, nil), "broken pipe"},
	} {
		t.Run(c.name, func(t *testing.T) {
			out := b.run(online(c.fetch, "fetch GET http://x/", "read 0", "text"))
			if out.Error == nil || !strings.Contains(string(out.Error.Cause), c.cause) {
				t.Errorf("got %s, %+v", out.Value, out.Error)
			}
		})
	}
	awaitClosed(t, badBody)
	b.works()
}

type failure struct{}

func (failure) Read([]byte) (int, error) { return 0, errors.New("broken pipe") }

// TestFetchRefused: what the program asks for too much is thrown in it.
func TestFetchRefused(t *testing.T) {
	b := insideBench(t, testConfig())
	var asked atomic.Int64
	f := func(context.Context, executor.FetchCall) (*executor.FetchResponse, error) {
		asked.Add(1)
		response, _ := answer(strings.Repeat("x", 100))
		return response, nil
	}
	for _, c := range []struct {
		name  string
		lines []string
		limit protocol.Limits
		cause string
		asked int64
	}{
		{name: "request over the bytes", lines: []string{"fetch POST http://x/ " + strings.Repeat("y", 50)}, limit: protocol.Limits{FetchBytes: 49}, cause: "more than 49 bytes"},
		{name: "response over the bytes", lines: []string{"fetch GET http://x/", "read 0", "text"}, limit: protocol.Limits{FetchBytes: 99}, cause: "more than 99 bytes", asked: 1},
		{name: "both together", lines: []string{"fetch POST http://x/ y", "read 0", "text"}, limit: protocol.Limits{FetchBytes: 100}, cause: "more than 100 bytes", asked: 1},
		{name: "responses over the bytes", lines: []string{"fetch GET http://x/", "read 0", "fetch GET http://x/", "read 0", "text"}, limit: protocol.Limits{FetchBytes: 150}, cause: "more than 150 bytes", asked: 2},
	} {
		t.Run(c.name, func(t *testing.T) {
			asked.Store(0)
			r := online(f, c.lines...)
			r.Limits = c.limit
			out := b.run(r)
			if out.Error == nil || !strings.Contains(string(out.Error.Cause), c.cause) || !strings.Contains(string(out.Error.Cause), "RangeError") || asked.Load() != c.asked {
				t.Errorf("got %s, %+v, %d asked", out.Value, out.Error, asked.Load())
			}
		})
	}
}

// TestFetchViolations: a worker that asks for what a program cannot is broken.
func TestFetchViolations(t *testing.T) {
	f := func(ctx context.Context, c executor.FetchCall) (*executor.FetchResponse, error) {
		if strings.HasSuffix(c.URL, "/wait") {
			<-ctx.Done()
			return nil, ctx.Err()
		}
		response, _ := answer("x")
		return response, nil
	}
	const request = `{"method":"GET","url":"http://x/"}`
	cases := []struct {
		name  string
		lines []string
		limit int64
		want  protocol.Type // worker_crashed unless a limit was passed
	}{
		{name: "not JSON", lines: []string{"fetchraw 1 {"}},
		{name: "no object", lines: []string{"fetchraw 1 []"}},
		{name: "unknown field", lines: []string{`fetchraw 1 {"method":"GET","url":"http://x/","proxy":"http://y/"}`}},
		{name: "number 0", lines: []string{"fetchraw 0 " + request}},
		{name: "number twice", lines: []string{"fetchraw 7 " + request, "fetchraw 7 " + request}},
		{name: "more than the limit", lines: []string{"fetch GET http://x/", "fetch GET http://x/"}, limit: 1, want: protocol.ToolLimit},
		{name: "read of nothing", lines: []string{"readraw 1"}},
		{name: "read before the head", lines: []string{"fire-fetch 1 http://x/wait", "readraw 1"}},
		{name: "read past the end", lines: []string{"fetch GET http://x/", "read 0", "readraw 1"}},
		{name: "read of what was given up", lines: []string{"fetch GET http://x/", "give-up 1", "readraw 1"}},
		{name: "giving up nothing", lines: []string{"give-up 1", "sleep 100ms"}},
	}
	b := insideBench(t, testConfig())
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			r := online(f, c.lines...)
			r.Limits.Fetches = c.limit
			if c.want != "" {
				want(t, b.run(r), c.want, "")
			} else {
				want(t, b.run(r), protocol.WorkerCrashed, "protocol")
			}
			b.works()
		})
	}
	t.Run("without a network", func(t *testing.T) {
		r := script("fetch GET http://x/")
		r.Fetch = f // which does not make it one
		want(t, b.run(r), protocol.WorkerCrashed, "protocol")
	})
}

// TestNetworkNeedsSomebody: a network that nobody performs is refused before anything runs.
func TestNetworkNeedsSomebody(t *testing.T) {
	b := insideBench(t, testConfig())
	for network, part := range map[protocol.Network]string{protocol.NetworkHost: "fetch calls", protocol.NetworkDirect: "--egress-allow"} {
		r := script("return 1")
		r.Network = network
		out, err := b.Execute(t.Context(), r)
		var fault *protocol.Error
		if out != nil || !errors.As(err, &fault) || fault.Type != protocol.InvalidParams || fault.Field != "network" || !strings.Contains(fault.Message, part) {
			t.Errorf("%s: %+v, %v", network, out, err)
		}
	}
}

// TestDirect: the daemon's own network answers, not the caller's.
func TestDirect(t *testing.T) {
	c := testConfig()
	c.Direct = func(context.Context, executor.FetchCall) (*executor.FetchResponse, error) {
		response, _ := answer("direct")
		return response, nil
	}
	b := insideBench(t, c)
	r := online(func(context.Context, executor.FetchCall) (*executor.FetchResponse, error) {
		t.Error("the caller was asked")
		return nil, nil
	}, "fetch GET http://x/", "read 0", "text")
	r.Network = protocol.NetworkDirect
	if out := b.run(r); string(out.Value) != `"direct"` {
		t.Errorf("got %s, %v", out.Value, out.Error)
	}
}

// TestFetchGivenUp: giving up ends the callback's context and closes the body; the guest's clock goes on.
func TestFetchGivenUp(t *testing.T) {
	b := insideBench(t, testConfig())
	begun, ended := make(chan struct{}), make(chan struct{})
	out := b.run(online(func(ctx context.Context, _ executor.FetchCall) (*executor.FetchResponse, error) {
		close(begun)
		<-ctx.Done()
		close(ended)
		return nil, ctx.Err()
	}, "fire-fetch 1 http://x/", "sleep 50ms", "give-up 1", "give-up 1", "sleep 50ms", "return 1"))
	<-begun
	<-ended
	if string(out.Value) != "1" {
		t.Errorf("got %v", out.Error)
	}
	response, body := answer("first", "second")
	out = b.run(online(func(context.Context, executor.FetchCall) (*executor.FetchResponse, error) { return response, nil },
		"fetch GET http://x/", "read 1", "give-up 1", "text"))
	if string(out.Value) != `"first"` {
		t.Errorf("got %s, %v", out.Value, out.Error)
	}
	awaitClosed(t, body)
	// A callback that answers late gives its body back.
	late, lateBody := answer("late")
	release := make(chan struct{})
	out = b.run(online(func(context.Context, executor.FetchCall) (*executor.FetchResponse, error) {
		<-release
		return late, nil
	}, "fire-fetch 1 http://x/", "sleep 200ms", "give-up 1", "return 1"))
	close(release)
	if string(out.Value) != "1" {
		t.Errorf("got %v", out.Error)
	}
	awaitClosed(t, lateBody)
}

// TestFetchEndsWithTheRun: callbacks end with the execution, and bodies are closed.
func TestFetchEndsWithTheRun(t *testing.T) {
	b := insideBench(t, testConfig())
	response, body := answer("unread")
	var ended sync.WaitGroup
	ended.Add(3)
	out := b.run(online(func(ctx context.Context, f executor.FetchCall) (*executor.FetchResponse, error) {
		if f.URL == "http://x/" {
			return response, nil
		}
		defer ended.Done()
		<-ctx.Done()
		return nil, ctx.Err()
	}, "fetch GET http://x/", "fire-fetch 3 http://x/wait", "sleep 20ms", "return 1"))
	ended.Wait()
	awaitClosed(t, body)
	if string(out.Value) != "1" || out.Stats.Fetches != 4 {
		t.Errorf("got %s, %+v", out.Value, out.Stats)
	}
}

// TestFetchesAtOnce: more than so many wait their turn.
func TestFetchesAtOnce(t *testing.T) {
	c := testConfig()
	c.Limits.Fetches = 1000
	b := insideBench(t, c)
	var running, most atomic.Int64
	r := online(func(ctx context.Context, f executor.FetchCall) (*executor.FetchResponse, error) {
		most.Store(max(most.Load(), running.Add(1)))
		defer running.Add(-1)
		time.Sleep(time.Millisecond) // so that they overlap
		response, _ := answer()
		return response, nil
	}, fmt.Sprintf("fire-fetch %d http://x/", 3*fetchesAtOnce), "fetch GET http://x/", "return 1")
	if out := b.run(r); string(out.Value) != "1" || most.Load() > fetchesAtOnce {
		t.Errorf("%d at once, %v", most.Load(), out.Error)
	}
}

// TestOpenBodies: a program cannot hold any number of responses.
func TestOpenBodies(t *testing.T) {
	c := testConfig()
	c.Limits.Fetches = 1000
	b := insideBench(t, c)
	lines := make([]string, openBodies+1)
	for i := range lines {
		lines[i] = "fetch GET http://x/"
	}
	f := func(context.Context, executor.FetchCall) (*executor.FetchResponse, error) {
		response, _ := answer("x")
		return response, nil
	}
	out := b.run(online(f, append(lines, "return 1")...))
	if out.Error == nil || !strings.Contains(string(out.Error.Cause), "responses are open") {
		t.Errorf("got %s, %v", out.Value, out.Error)
	}
	for i := range lines {
		lines[i] = "fetch GET http://x/\nread 0"
	}
	if out := b.run(online(f, append(lines, "return 1")...)); string(out.Value) != "1" {
		t.Errorf("read ones: %v", out.Error)
	}
}
