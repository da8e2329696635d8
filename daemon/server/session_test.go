package server

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/gorilla/websocket"

	"github.com/executord/executord/ipc/executor"
	"github.com/executord/executord/ipc/protocol"
)

// Each message is answered by an error, and the session goes on.
func TestBadMessages(t *testing.T) {
	r := serve(t, script{}, Config{})
	deep := strings.Repeat("[", 5000) + strings.Repeat("]", 5000)
	cases := []struct{ name, send, want string }{
		{"no JSON", `{nope`, `"id":null,"error":{"code":-32700`},
		{"empty", ``, `"id":null,"error":{"code":-32700`},
		{"two values", `{} {}`, `"id":null,"error":{"code":-32700`},
		{"batch", `[{"jsonrpc":"2.0","id":1,"method":"execute"}]`, `"id":null,"error":{"code":-32600`},
		{"number", `1`, `"id":null,"error":{"code":-32600`},
		{"no version", `{"id":7,"method":"cancel"}`, `"id":7,"error":{"code":-32600`},
		{"neither request nor response", `{"jsonrpc":"2.0","id":7}`, `"id":7,"error":{"code":-32600`},
		{"both request and response", `{"jsonrpc":"2.0","id":7,"method":"cancel","result":1}`, `"id":7,"error":{"code":-32600`},
		{"object as id", `{"jsonrpc":"2.0","id":{},"method":"cancel"}`, `"id":null,"error":{"code":-32600`},
		{"unknown method", `{"jsonrpc":"2.0","id":7,"method":"eval"}`, `"id":7,"error":{"code":-32601`},
		{"method of the other direction", `{"jsonrpc":"2.0","id":7,"method":"tool.call"}`, `"id":7,"error":{"code":-32601`},
		{"too deep", `{"jsonrpc":"2.0","id":7,"method":"execute","params":{"code":"x","input":` + deep + `}}`, `"error":{"code":-32600`},
		{"execute without params", `{"jsonrpc":"2.0","id":7,"method":"execute"}`, `"type":"invalid_code"`},
		{"execute with an array", `{"jsonrpc":"2.0","id":7,"method":"execute","params":["x"]}`, `"type":"invalid_params"`},
		{"code of the wrong type", `{"jsonrpc":"2.0","id":7,"method":"execute","params":{"code":1}}`, `"field":"code"`},
		{"id of the wrong type", `{"jsonrpc":"2.0","id":7,"method":"execute","params":{"code":"x","execution":1}}`, `"field":"execution"`},
		{"unknown field", `{"jsonrpc":"2.0","id":7,"method":"execute","params":{"code":"x","limit":{}}}`, `"field":"limit"`},
		{"zero limit", `{"jsonrpc":"2.0","id":7,"method":"execute","params":{"code":"x","limits":{"cpuMs":0}}}`, `"field":"limits.cpuMs"`},
		{"cancel without id", `{"jsonrpc":"2.0","id":7,"method":"cancel","params":{}}`, `"field":"execution"`},
		{"cancel of an unknown execution", `{"jsonrpc":"2.0","id":7,"method":"cancel","params":{"execution":"no"}}`, `"result":{"cancelled":false}`},
		{"cancel with a long reason", `{"jsonrpc":"2.0","id":7,"method":"cancel","params":{"execution":"no","reason":"` + strings.Repeat("x", 2000) + `"}}`, `"field":"reason"`},
		{"open again", `{"jsonrpc":"2.0","id":7,"method":"session.open","params":{"client":{"name":"x"}}}`, `"type":"invalid_request"`},
		{"handle", `{"jsonrpc":"2.0","id":7,"method":"handle.invoke","params":{"handle":"h","args":[]}}`, `"type":"handle_unknown"`},
		{"handles", `{"jsonrpc":"2.0","id":7,"method":"handle.release","params":{"handles":["h"]}}`, `"result":{"released":0}`},
	}
	h := r.open(t)
	for _, tc := range cases {
		t.Run(tc.name, func(t *testing.T) {
			h.t = t
			h.send(tc.send)
			h.want(tc.want)
			h.execute("probe "+tc.name, "", `,"code ":1`)
			h.want(`"id":"probe ` + tc.name)
		})
	}
	h.t = t
	h.execute("good", "anything", `,"input":5`)
	h.want(`"id":"good","result":{"status":"ok","value":5`)
}

// None of these is answered, and the session goes on.
func TestMessagesWithoutAnswer(t *testing.T) {
	r := serve(t, script{}, Config{})
	h := r.open(t)
	for _, text := range []string{
		`{"jsonrpc":"2.0","id":99,"result":{"value":1}}`,
		`{"jsonrpc":"2.0","id":"x","result":{"value":1}}`,
		`{"jsonrpc":"2.0","id":null,"error":{"code":1,"message":"x"}}`,
		`{"jsonrpc":"2.0","method":"execute","params":{"code":"x"}}`,
		`{"jsonrpc":"2.0","method":"no.such"}`,
		`{"jsonrpc":"2.0","method":"cancel","params":{"execution":"no"}}`,
		`{"jsonrpc":"2.0","method":"cancel","params":5.5}`[:44] + `{}}`,
	} {
		h.send(text)
	}
	h.execute("good", "anything", "")
	h.want(`"id":"good"`)
	if n := r.Stats().Ignored; n != 3 {
		t.Errorf("%d responses were counted as ignored, want 3", n)
	}
}

func TestFirstMessageIsSessionOpen(t *testing.T) {
	r := serve(t, script{}, Config{Version: "1.2.3", Limits: protocol.Limits{CPUMs: 5}})
	h := r.connect(t, true)
	h.execute("early", "x", "")
	h.want(`"id":"early","error":{"code":-32600`)
	h.send(`{"jsonrpc":"2.0","id":1,"method":"session.open","params":{"client":{"name":"t"},"resume":"token","received":0}}`)
	h.want(`"field":"resume"`)
	h.send(`{"jsonrpc":"2.0","id":1,"method":"session.open","params":{"client":{"name":"t"}}}`)
	text := h.want(`"session":"`, `"protocol":"1"`, `"version":"1.2.3"`, `"limits":{"cpuMs":5}`)
	if strings.Contains(text, "resume") {
		t.Error("resume is offered: " + text)
	}
}

func TestSessionThatNeverOpensIsClosed(t *testing.T) {
	r := serve(t, script{}, Config{OpenTimeout: 50 * time.Millisecond})
	r.connect(t, false).wantClose(websocket.ClosePolicyViolation)
}

func TestFramesThatEndTheSession(t *testing.T) {
	begun := make(chan context.Context, 10)
	exec := script{"wait": func(ctx context.Context, q executor.Request) (*protocol.Outcome, error) {
		begun <- ctx
		return untilCancelled(ctx, q)
	}}
	r := serve(t, exec, Config{MaxMessageBytes: 1 << 20})
	cases := []struct {
		name string
		send func(ws *websocket.Conn) error
		code int
	}{
		{"binary", func(ws *websocket.Conn) error { return ws.WriteMessage(websocket.BinaryMessage, []byte("{}")) }, websocket.CloseUnsupportedData},
		{"invalid UTF-8", func(ws *websocket.Conn) error {
			return ws.WriteMessage(websocket.TextMessage, []byte(`{"jsonrpc":"2.0","id":1,"method":"`+"\xff"+`"}`))
		}, websocket.CloseInvalidFramePayloadData},
		{"a frame of 100 MB", func(ws *websocket.Conn) error {
			_, err := ws.UnderlyingConn().Write([]byte{0x81, 0xFF, 0, 0, 0, 0, 5, 0xF5, 0xE1, 0, 1, 2, 3, 4})
			return err
		}, websocket.CloseMessageTooBig},
		{"normal close", func(ws *websocket.Conn) error {
			return ws.WriteControl(websocket.CloseMessage, websocket.FormatCloseMessage(websocket.CloseNormalClosure, ""), time.Now().Add(time.Second))
		}, websocket.CloseNormalClosure},
	}
	for _, tc := range cases {
		t.Run(tc.name, func(t *testing.T) {
			h := r.open(t)
			h.execute("running", "wait", "")
			ctx := <-begun
			if err := tc.send(h.ws); err != nil {
				t.Fatal(err)
			}
			h.wantClose(tc.code)
			<-ctx.Done() // its execution is cancelled
		})
	}
}

func TestLostConnectionCancels(t *testing.T) {
	wait, begun := started(untilCancelled)
	r := serve(t, script{"wait": wait}, Config{})
	h := r.open(t)
	for i := range 10 {
		h.execute(fmt.Sprint(i), "wait", "")
		<-begun
	}
	_ = h.ws.UnderlyingConn().Close()
	if err := r.wait(); err != nil { // returns only when all executions have ended
		t.Fatal(err)
	}
}

func TestExecutionIDs(t *testing.T) {
	wait, begun := started(untilCancelled)
	exec := script{"wait": wait, "refused": func(context.Context, executor.Request) (*protocol.Outcome, error) {
		return nil, &protocol.Error{Type: protocol.Overloaded, Message: "full", RetryAfterMs: 20}
	}}
	r := serve(t, exec, Config{})
	h := r.open(t)
	h.execute("a", "wait", "")
	<-begun
	h.execute("a", "x", "")
	h.want(`"field":"execution"`)
	h.send(`{"jsonrpc":"2.0","id":1,"method":"cancel","params":{"execution":"a","reason":"enough"}}`)
	h.want(`"result":{"cancelled":true}`)
	h.want(`"id":"a","result":{"status":"error","error":{"type":"cancelled","message":"enough"`)
	h.execute("a", "x", "") // has run, and must not run twice
	h.want(`"field":"execution"`)
	h.execute("b", "refused", "")
	h.want(`"type":"overloaded"`, `"retryable":true`, `"retryAfterMs":20`)
	h.execute("b", "x", "") // has not run
	h.want(`"status":"ok"`)
	h.send(`{"jsonrpc":"2.0","id":1,"method":"execute","params":{"code":"wait"}}`)
	h.send(`{"jsonrpc":"2.0","id":2,"method":"execute","params":{"code":"wait"}}`)
	<-begun
	<-begun // both got an id of their own
}

func TestRecentIDsAreBounded(t *testing.T) {
	var r recentIDs
	for i := range 3 * maxRecentIDs {
		r.add(fmt.Sprint(i))
	}
	if len(r.set) != maxRecentIDs || r.has("5") || !r.has(fmt.Sprint(3*maxRecentIDs-1)) {
		t.Errorf("%d ids are remembered", len(r.set))
	}
}

// A cancel that follows its execute at once finds it, however long the params take to decode.
func TestCancelFollowsExecuteAtOnce(t *testing.T) {
	r := serve(t, script{"wait": untilCancelled}, Config{})
	h := r.open(t)
	for i := range 50 {
		h.execute(fmt.Sprint(i), "wait", `,"input":"`+strings.Repeat("x", 100_000)+`"`)
		h.send(fmt.Sprintf(`{"jsonrpc":"2.0","method":"cancel","params":{"execution":"%d"}}`, i))
		h.want(`"type":"cancelled"`)
	}
}

func TestSessionLimit(t *testing.T) {
	wait, begun := started(untilCancelled)
	r := serve(t, script{"wait": wait}, Config{MaxExecutions: 2, MaxSessions: 1})
	h := r.open(t)
	h.execute("1", "wait", "")
	h.execute("2", "wait", "")
	<-begun
	<-begun
	h.execute("3", "wait", "")
	h.want(`"id":"3"`, `"type":"session_limit"`)
	h.send(`{"jsonrpc":"2.0","method":"cancel","params":{"execution":"1"}}`)
	h.want(`"id":"1"`)
	h.execute("4", "x", "")
	h.want(`"id":"4"`, `"status":"ok"`)
	_, resp, err := (&websocket.Dialer{Subprotocols: []string{protocol.Subprotocol}}).Dial("ws://"+r.tcp+"/v1/session", nil)
	if err == nil || resp.StatusCode != 429 {
		t.Errorf("a second session: %v", err)
	}
}

// TestUnreadAnswersAreBounded: an execution's place is free once it ended, but a client that reads none of the answers
// cannot have more and more of them kept.
func TestUnreadAnswersAreBounded(t *testing.T) {
	const size = 4 << 20
	r := serve(t, script{"big": func(context.Context, executor.Request) (*protocol.Outcome, error) {
		return returned(protocol.Value(`"` + strings.Repeat("x", size) + `"`)), nil
	}}, Config{MaxExecutions: 1, QueueBytes: size, OwedBytes: 2 * size})
	h := r.open(t)
	// One on its way to a client that does not read, then two that wait; the last passes the bound.
	for i := range 3 {
		h.execute(fmt.Sprint(i), "big", "")
		r.waitOwed(t, i+1, int64(i)*size)
	}
	h.execute("refused", "x", "")
	answers := map[string]int{}
	for range 4 {
		text := h.next()
		for _, kind := range []string{`"status":"ok"`, `"type":"overloaded"`} {
			if strings.Contains(text, kind) {
				answers[kind]++
			}
		}
	}
	if answers[`"status":"ok"`] != 3 || answers[`"type":"overloaded"`] != 1 {
		t.Errorf("got %v", answers)
	}
	r.waitOwed(t, 3, 0)
	h.execute("after", "x", "")
	h.want(`"id":"after"`, `"status":"ok"`)
}

// TestUnreadAnswersOfAllAreBounded: clients that do not read cost the service no more than the bound, and the one that
// owes the most pays for it.
func TestUnreadAnswersOfAllAreBounded(t *testing.T) {
	const size = 4 << 20
	big := func(n int) func(context.Context, executor.Request) (*protocol.Outcome, error) {
		return func(context.Context, executor.Request) (*protocol.Outcome, error) {
			return returned(protocol.Value(`"` + strings.Repeat("x", n) + `"`)), nil
		}
	}
	r := serve(t, script{"big": big(size), "small": big(size / 4)}, Config{QueueBytes: size / 8, TotalOwedBytes: 3 * size})
	worst, other := r.open(t), r.open(t)
	for i := range 3 { // the first is on its way, two wait
		worst.execute(fmt.Sprint(i), "big", "")
	}
	r.waitTotalOwed(t, 2*size)
	for i := range 10 {
		other.execute(fmt.Sprint(i), "small", "")
	}
	r.waitSessions(t, 1) // before it reads, or it owes less by what it read
	worst.wantClose(websocket.CloseAbnormalClosure)
	for range 10 {
		other.want(`"status":"ok"`)
	}
	r.waitTotalOwed(t, 0)
	if n := len(r.debts.of); n != 0 {
		t.Errorf("%d sessions are still on the books", n)
	}
}

// waitSessions waits until only n sessions are left.
func (r *running) waitSessions(t *testing.T, n int) {
	t.Helper()
	for end := time.Now().Add(20 * time.Second); time.Now().Before(end); time.Sleep(time.Millisecond) {
		r.mu.Lock()
		left := len(r.sessions)
		r.mu.Unlock()
		if left == n {
			return
		}
	}
	t.Fatalf("it never came to %d sessions", n)
}

// waitTotalOwed waits until at least n bytes wait for room, or none when n is 0.
func (r *running) waitTotalOwed(t *testing.T, n int64) {
	t.Helper()
	for end := time.Now().Add(20 * time.Second); time.Now().Before(end); time.Sleep(time.Millisecond) {
		r.debts.mu.Lock()
		total := r.debts.total
		r.debts.mu.Unlock()
		if n > 0 && total >= n || total == n {
			return
		}
	}
	t.Fatalf("it never came to %d bytes of answers that wait, but %d", n, r.debts.total)
}

// waitOwed waits until so many executions of the only session ended and about n bytes of answers wait for room.
func (r *running) waitOwed(t *testing.T, ended int, n int64) {
	t.Helper()
	const envelope = 1 << 10
	for end := time.Now().Add(20 * time.Second); time.Now().Before(end); time.Sleep(time.Millisecond) {
		r.mu.Lock()
		for x := range r.sessions {
			x.mu.Lock()
			owed, ends := r.debts.owed(x), len(x.ended.ring)
			x.mu.Unlock()
			if ends == ended && owed >= n && owed < n+4*envelope {
				r.mu.Unlock()
				return
			}
		}
		r.mu.Unlock()
	}
	t.Fatalf("it never came to %d bytes of answers that wait, but %d", n, r.debts.total)
}

func TestToolCalls(t *testing.T) {
	errs := make(chan error, 10)
	exec := script{
		"call": func(ctx context.Context, r executor.Request) (*protocol.Outcome, error) {
			v, err := r.Ask(ctx, executor.ToolCall{Call: 1, Provider: "p", Path: []string{"a", "b"}, Args: protocol.Value(`[1,"two"]`)})
			errs <- err
			return returned(v), nil
		},
		"leave open": func(ctx context.Context, r executor.Request) (*protocol.Outcome, error) {
			ctx, cancel := context.WithCancel(ctx)
			var sent []chan struct{}
			for i := range 3 {
				done := make(chan struct{})
				sent = append(sent, done)
				go func() {
					defer close(done)
					_, err := r.Ask(ctx, executor.ToolCall{Call: uint64(i + 1), Provider: "p", Path: []string{"t"}, Args: protocol.Value(`[]`)})
					errs <- err
				}()
			}
			_, _ = r.Ask(ctx, executor.ToolCall{Call: 9, Provider: "p", Path: []string{"last"}, Args: protocol.Value(`[]`)})
			cancel()
			for _, done := range sent {
				<-done
			}
			return returned(protocol.Value("1")), nil
		},
	}
	const providers = `,"providers":[{"name":"p"}]`
	r := serve(t, exec, Config{})
	h := r.open(t)
	answers := []struct{ name, answer, value, thrown string }{
		{"value", `"result":{"value":{"@date":7}}`, `"value":{"@date":7}`, ""},
		{"no value", `"result":{}`, `"value":{"@undefined":true}`, ""},
		{"thrown", `"error":{"code":-32000,"message":"m","data":{"name":"RangeError","message":"no"}}`, "", "RangeError: no"},
		{"plain error", `"error":{"code":1,"message":"just text"}`, "", "just text"},
		{"nonsense", `"result":[]`, "", "TypeError: the host's answer is not a tool result"},
	}
	const noResponse = "TypeError: the host's answer is not a response: "
	malformed := []struct{ name, answer, thrown string }{
		{"null as error", `,"error":null`, noResponse + "error must be an error object"},
		{"text as error", `,"error":"it failed"`, noResponse + "error must be an error object"},
		{"a code of the wrong type", `,"error":{"code":"x","message":"m"}`, noResponse + "error must be an error object"},
		{"both", `,"result":{},"error":{"code":1,"message":"m"}`, noResponse + "a response has a result or an error, not both"},
		{"neither", ``, noResponse + "a message has a method, a result or an error"},
		{"too deep", `,"result":` + strings.Repeat("[", 5000) + strings.Repeat("]", 5000), noResponse},
	}
	for _, tc := range answers {
		t.Run(tc.name, func(t *testing.T) {
			h.t = t
			h.execute(tc.name, "call", providers)
			text := h.want(`"method":"tool.call"`, `"execution":"`+tc.name+`","call":1,"provider":"p","path":["a","b"],"args":[1,"two"]`)
			answer := `{"jsonrpc":"2.0","id":` + requestID(t, text) + `,` + tc.answer + `}`
			h.send(answer)
			h.send(answer) // the second is ignored
			err := <-errs
			var e *protocol.ThrownError
			if tc.thrown == "" && err != nil || tc.thrown != "" && (!errors.As(err, &e) || e.Error() != tc.thrown) {
				t.Errorf("the program got error %v, want %q", err, tc.thrown)
			}
			h.want(`"id":"`+tc.name+`"`, tc.value)
		})
	}
	for _, tc := range malformed {
		t.Run(tc.name, func(t *testing.T) {
			h.t = t
			h.execute(tc.name, "call", providers)
			h.send(`{"jsonrpc":"2.0","id":` + requestID(t, h.want(`"method":"tool.call"`)) + tc.answer + `}`)
			h.want(`"id":null,"error":{"code":-32600`)
			var e *protocol.ThrownError
			if err := <-errs; !errors.As(err, &e) || !strings.HasPrefix(e.Error(), tc.thrown) {
				t.Errorf("the program got error %v, want %q", err, tc.thrown)
			}
			h.want(`"id":"` + tc.name + `"`)
		})
	}
	t.Run("open at the end", func(t *testing.T) {
		h.t = t
		h.execute("open", "leave open", providers)
		last := ""
		for range 4 {
			if text := h.want(`"method":"tool.call"`); strings.Contains(text, "last") {
				last = requestID(t, text)
			}
		}
		h.send(`{"jsonrpc":"2.0","id":` + last + `,"result":{"value":1}}`)
		for _, call := range []string{"1", "2", "3"} {
			_ = call
			h.want(`"method":"tool.cancel","params":{"execution":"open","call":`)
		}
		h.want(`"id":"open","result":{"status":"ok"`)
	})
}

// No tool.call ever follows the outcome of its execution.
func TestNoToolCallAfterTheOutcome(t *testing.T) {
	exec := script{"race": func(ctx context.Context, r executor.Request) (*protocol.Outcome, error) {
		ctx, cancel := context.WithCancel(ctx)
		for i := range 4 {
			go func() {
				_, _ = r.Ask(ctx, executor.ToolCall{Call: uint64(i), Provider: "p", Path: []string{"t"}, Args: protocol.Value(`[]`)})
			}()
		}
		cancel()
		return returned(protocol.Value("1")), nil
	}}
	r := serve(t, exec, Config{})
	h := r.open(t)
	for i := range 200 {
		h.execute(fmt.Sprint(i), "race", `,"providers":[{"name":"p"}]`)
		calls := map[string]bool{}
		for {
			text := h.next()
			if strings.Contains(text, `"status":"ok"`) {
				break
			}
			call := text[strings.Index(text, `"call":`)+7:][:1]
			if strings.Contains(text, "tool.call") {
				calls[call] = true
			} else {
				delete(calls, call)
			}
		}
		if len(calls) > 0 {
			t.Fatalf("calls %v were not taken back", calls)
		}
	}
	h.execute("end", "x", "")
	h.want(`"id":"end"`)
}

// TestRunningIsToldWhileNothingElseIs: the news waits for other messages, but not for ever.
func TestRunningIsToldWhileNothingElseIs(t *testing.T) {
	heard := make(chan struct{})
	exec := script{"long": func(_ context.Context, r executor.Request) (*protocol.Outcome, error) {
		r.OnState(protocol.State{State: protocol.StateRunning})
		<-heard
		return returned(protocol.Value("1")), nil
	}}
	h := serve(t, exec, Config{}).open(t)
	h.execute("a", "long", "")
	h.want(`"execution":"a","state":"running"`)
	close(heard)
	h.want(`"id":"a","result"`)
}

func TestStatesAndLogs(t *testing.T) {
	exec := script{"talk": func(_ context.Context, r executor.Request) (*protocol.Outcome, error) {
		r.OnState(protocol.State{State: protocol.StateQueued, Position: 2})
		r.OnState(protocol.State{State: protocol.StateRunning})
		if r.OnLog != nil {
			r.OnLog(protocol.Log{Level: protocol.LevelWarn, Time: 1.5, Text: "hello"})
		}
		return returned(protocol.Value("1")), nil
	}}
	r := serve(t, exec, Config{})
	h := r.open(t)
	for _, stream := range []bool{true, false} {
		id := fmt.Sprint(stream)
		h.execute(id, "talk", `,"logs":{"stream":`+id+`}`)
		h.want(`"method":"execution.state"`, `"execution":"`+id+`","state":"queued","position":2`)
		h.want(`"state":"running"`)
		if stream {
			h.want(`"method":"execution.log"`, `"execution":"true","level":"warn","time":1.5,"text":"hello"`)
		}
		h.want(`"id":"` + id + `","result"`)
	}
}

// A host that does not read gets a marker in place of the streamed lines that found no room.
func TestStreamedLogsAreBounded(t *testing.T) {
	const lines = 3000
	done := make(chan struct{})
	exec := script{"shout": func(_ context.Context, r executor.Request) (*protocol.Outcome, error) {
		for range lines {
			r.OnLog(protocol.Log{Level: protocol.LevelLog, Text: strings.Repeat("x", 1000)})
		}
		close(done)
		return returned(protocol.Value("1")), nil
	}}
	r := serve(t, exec, Config{QueueBytes: 64 << 10})
	h := r.open(t)
	h.execute("1", "shout", `,"logs":{"stream":true}`)
	<-done
	got, lost := 0, 0
	for {
		text := h.next()
		if strings.Contains(text, `"result"`) {
			break
		}
		if at := strings.Index(text, `"truncated":{"lines":`); at > 0 {
			n := 0
			_, _ = fmt.Sscanf(text[at:], `"truncated":{"lines":%d`, &n)
			lost += n
		} else {
			got++
		}
	}
	if lost == 0 || got+lost != lines {
		t.Errorf("%d lines came and %d were counted as lost, of %d", got, lost, lines)
	}
}

func TestPanicOfTheExecutorCostsOneExecution(t *testing.T) {
	r := serve(t, script{"panic": func(context.Context, executor.Request) (*protocol.Outcome, error) { panic("ouch") }}, Config{})
	h := r.open(t)
	h.execute("1", "panic", "")
	text := h.want(`"type":"internal"`)
	if strings.Contains(text, "ouch") {
		t.Error("the panic reached the client")
	}
	h.execute("2", "x", "")
	h.want(`"id":"2","result"`)
}

// A program that is stuck in the Executor holds up neither pings nor other executions.
func TestStuckExecutionDoesNotHoldUpTheSession(t *testing.T) {
	release := make(chan struct{})
	exec := script{"stuck": func(context.Context, executor.Request) (*protocol.Outcome, error) {
		<-release
		return returned(protocol.Value("1")), nil
	}}
	r := serve(t, exec, Config{})
	h := r.open(t)
	h.execute("stuck", "stuck", "")
	pong := make(chan struct{}, 1)
	h.ws.SetPongHandler(func(string) error { pong <- struct{}{}; return nil })
	if err := h.ws.WriteControl(websocket.PingMessage, []byte("x"), time.Now().Add(time.Second)); err != nil {
		t.Fatal(err)
	}
	for i := 0; len(pong) == 0; i++ { // the pong is taken while answers are read
		id := fmt.Sprint("other", i)
		h.execute(id, "x", "")
		h.want(`"id":"` + id + `"`)
	}
	close(release)
	h.want(`"id":"stuck"`)
}
