package server

import (
	"context"
	"encoding/json"
	"fmt"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/gorilla/websocket"

	"github.com/executord/executord/ipc/executor"
	"github.com/executord/executord/ipc/protocol"
)

// guest is a host whose session outlives its connections. It acknowledges nothing by itself.
type guest struct {
	*host
	r        *running
	session  string
	token    string
	server   uint64 // messages that the service has received, as it told last
	received uint64
}

// begin opens a session that can be resumed.
func (r *running) begin(t *testing.T) *guest {
	t.Helper()
	g := &guest{host: r.connect(t, false), r: r}
	g.open(`"received":0`)
	return g
}

func (g *guest) open(how string) {
	g.t.Helper()
	g.send(`{"jsonrpc":"2.0","id":"open","method":"session.open","params":{"client":{"name":"test"},` + how + `}}`)
	g.opened(g.host.next())
}

func (g *guest) opened(text string) {
	g.t.Helper()
	var m struct{ Result protocol.SessionOpened }
	if err := json.Unmarshal([]byte(text), &m); err != nil || m.Result.Resume == nil || m.Result.Resume.Token == "" {
		g.t.Fatalf("the session was opened by %s", text)
	}
	g.session, g.token, g.server = m.Result.Session, m.Result.Resume.Token, m.Result.Received
}

// cut breaks the connection.
func (g *guest) cut() { _ = g.ws.UnderlyingConn().Close() }

// resume connects again and goes on with the session.
func (g *guest) resume() {
	g.t.Helper()
	before := g.session
	g.host = g.r.connect(g.t, false)
	g.open(fmt.Sprintf(`"resume":%q,"received":%d`, g.token, g.received))
	if g.session != before {
		g.t.Fatalf("session %s became %s", before, g.session)
	}
}

// want is host.want, counted.
func (g *guest) want(parts ...string) string {
	g.t.Helper()
	text := g.host.want(parts...)
	g.received++
	return text
}

func (g *guest) ack(n uint64) {
	g.t.Helper()
	g.send(fmt.Sprintf(`{"jsonrpc":"2.0","method":"session.ack","params":{"received":%d}}`, n))
}

// refusedResume tries to resume and returns the answer.
func (r *running) refusedResume(t *testing.T, tcp bool, how string, parts ...string) {
	t.Helper()
	h := r.connect(t, tcp)
	h.send(`{"jsonrpc":"2.0","id":"open","method":"session.open","params":{"client":{"name":"test"},` + how + `}}`)
	h.want(parts...)
}

const (
	resumeWindow = 30 * time.Second
	graceOfTests = 50 * time.Millisecond // at their ends sessions wait for hosts that never return
)

// callsTwice is a program that calls a tool twice and returns both answers.
func callsTwice(ctx context.Context, r executor.Request) (*protocol.Outcome, error) {
	var got []string
	for i := range 2 {
		v, err := r.Ask(ctx, executor.ToolCall{Execution: r.Execution, Call: uint64(i + 1), Provider: "p", Path: []string{"t"}, Args: protocol.Value(`[]`)})
		if err != nil {
			return failed(protocol.AsError(err)), nil
		}
		got = append(got, string(v))
	}
	return returned(protocol.Value("[" + strings.Join(got, ",") + "]")), nil
}

// What the host did not get comes again, in order and once, and what the service did not get is not taken for received.
func TestResumeReplaysBothWays(t *testing.T) {
	r := serve(t, script{"call": callsTwice}, Config{ResumeWindow: resumeWindow, DrainGrace: graceOfTests})
	g := r.begin(t)
	g.execute("a", "call", `,"providers":[{"name":"p"}]`)
	g.want(`"method":"tool.call"`, `"call":1`)
	g.received-- // as if it had been lost
	g.cut()
	g.resume()
	if g.server != 1 {
		t.Errorf("the service has received %d messages, want 1", g.server)
	}
	first := requestID(t, g.want(`"method":"tool.call"`, `"call":1`))
	g.cut() // the answer is lost: sent again after the next connection says so
	g.resume()
	if g.server != 1 {
		t.Errorf("the service has received %d messages, want 1", g.server)
	}
	g.send(`{"jsonrpc":"2.0","id":` + first + `,"result":{"value":1}}`)
	second := requestID(t, g.want(`"call":2`))
	g.ack(g.received)
	g.send(`{"jsonrpc":"2.0","id":` + second + `,"result":{"value":2}}`)
	g.want(`"id":"a","result":{"status":"ok","value":[1,2]`)
	g.cut()
	g.received-- // the outcome was lost
	g.resume()
	if g.server != 3 {
		t.Errorf("the service has received %d messages, want 3", g.server)
	}
	g.want(`"id":"a","result":{"status":"ok","value":[1,2]`)
	g.cut()
	g.resume()
	g.execute("b", "x", "")
	g.want(`"id":"b"`) // and nothing before it
}

// What happens while the host is away waits for it.
func TestResumeFindsWhatHappenedMeanwhile(t *testing.T) {
	release := make(chan struct{})
	work, begun := started(func(_ context.Context, q executor.Request) (*protocol.Outcome, error) {
		<-release
		for i := range 3 {
			q.OnLog(protocol.Log{Level: protocol.LevelLog, Text: fmt.Sprint("line ", i)})
		}
		return returned(protocol.Value(`"done"`)), nil
	})
	r := serve(t, script{"work": work}, Config{ResumeWindow: resumeWindow, DrainGrace: graceOfTests})
	g := r.begin(t)
	g.execute("a", "work", `,"logs":{"stream":true}`)
	<-begun
	g.cut()
	r.waitAway(t, 1)
	close(release)
	g.resume()
	for i := range 3 {
		g.want(fmt.Sprintf(`"text":"line %d"`, i))
	}
	g.want(`"id":"a"`, `"done"`)
	if s := r.Stats(); s.Away != 0 || s.Sessions != 1 {
		t.Errorf("%+v", s)
	}
}

// waitAway waits until so many sessions wait for their clients.
func (r *running) waitAway(t *testing.T, n int) {
	t.Helper()
	for end := time.Now().Add(20 * time.Second); time.Now().Before(end); time.Sleep(time.Millisecond) {
		if r.Stats().Away == n {
			return
		}
	}
	t.Fatalf("%d sessions wait for their clients, want %d", r.Stats().Away, n)
}

// A token is for one use. The one before stays good until the client shows that it has the next.
func TestResumeTokens(t *testing.T) {
	r := serve(t, script{}, Config{ResumeWindow: resumeWindow, DrainGrace: graceOfTests})
	const unknown = `"type":"session_unknown"`
	g := r.begin(t)
	first := g.token
	g.cut()
	g.resume()
	if g.token == first {
		t.Error("the token did not change")
	}
	lost := g.token
	g.token = first // the answer with the second was lost
	g.resume()
	r.refusedResume(t, false, fmt.Sprintf(`"resume":%q,"received":0`, lost), unknown)
	g.ack(0)
	g.execute("a", "x", "") // answered after the ack was taken
	g.want(`"id":"a"`)
	r.refusedResume(t, false, fmt.Sprintf(`"resume":%q,"received":0`, first), unknown)
	r.refusedResume(t, false, `"resume":"made up","received":0`, unknown)
	r.refusedResume(t, true, fmt.Sprintf(`"resume":%q,"received":0`, g.token), unknown) // another identity
	r.refusedResume(t, false, fmt.Sprintf(`"resume":%q,"received":7`, g.token), `"field":"received"`)
	r.refusedResume(t, false, fmt.Sprintf(`"resume":%q`, g.token), `"field":"received"`)
	r.refusedResume(t, false, `"received":3`, `"field":"received"`)
	g.execute("b", "x", "") // none of this disturbed the session
	g.want(`"id":"b"`)
	g.resume()
	g.execute("c", "x", "")
	g.want(`"id":"c"`)
}

func TestResumeComesFirst(t *testing.T) {
	r := serve(t, script{}, Config{ResumeWindow: resumeWindow, DrainGrace: graceOfTests})
	g := r.begin(t)
	h := r.connect(t, false)
	h.send(`{"jsonrpc":"2.0","id":1,"method":"execute","params":{"code":"x"}}`)
	h.want(`"type":"invalid_request"`)
	h.send(fmt.Sprintf(`{"jsonrpc":"2.0","id":"open","method":"session.open","params":{"client":{"name":"test"},"resume":%q,"received":0}}`, g.token))
	h.want(`"field":"resume"`)
}

// A connection that is lost without the service's knowledge makes way for the next.
func TestResumeTakesOver(t *testing.T) {
	wait, begun := started(untilCancelled)
	r := serve(t, script{"wait": wait}, Config{ResumeWindow: resumeWindow, DrainGrace: graceOfTests})
	g := r.begin(t)
	g.execute("a", "wait", "")
	<-begun
	former := g.host
	g.resume()
	former.wantClose(4001)
	g.send(`{"jsonrpc":"2.0","method":"cancel","params":{"execution":"a"}}`)
	g.want(`"id":"a"`, `"type":"cancelled"`)
}

// TestW9SessionEnds: what ends a session has a close status of its own, and ends its executions at once or keeps them.
func TestW9SessionEnds(t *testing.T) {
	began := make(chan context.Context, 10)
	exec := script{"wait": func(ctx context.Context, q executor.Request) (*protocol.Outcome, error) {
		began <- ctx
		return untilCancelled(ctx, q)
	}}
	bye := func(code int) func(*guest) {
		return func(g *guest) {
			_ = g.ws.WriteControl(websocket.CloseMessage, websocket.FormatCloseMessage(code, ""), time.Now().Add(time.Second))
			g.wantClose(code)
		}
	}
	for _, tc := range []struct {
		name string
		end  func(g *guest)
		keep bool
	}{
		{"normal", bye(websocket.CloseNormalClosure), false},
		{"of the host's own", bye(4000), false},
		{"a proxy that stops", bye(websocket.CloseGoingAway), true},
		{"a proxy that restarts", bye(websocket.CloseServiceRestart), true},
		{"lost", (*guest).cut, true},
		{"acknowledged what was not sent", func(g *guest) { g.ack(99); g.wantClose(websocket.ClosePolicyViolation) }, false},
		{"acknowledged nonsense", func(g *guest) {
			g.send(`{"jsonrpc":"2.0","method":"session.ack","params":{"received":-1}}`)
			g.wantClose(websocket.ClosePolicyViolation)
		}, false},
		{"no text", func(g *guest) {
			_ = g.ws.WriteMessage(websocket.BinaryMessage, nil)
			g.wantClose(websocket.CloseUnsupportedData)
		}, false},
	} {
		t.Run(tc.name, func(t *testing.T) {
			r := serve(t, exec, Config{ResumeWindow: resumeWindow, DrainGrace: graceOfTests})
			g := r.begin(t)
			g.execute("a", "wait", "")
			ctx := <-began
			tc.end(g)
			if tc.keep {
				r.waitAway(t, 1)
				if ctx.Err() != nil {
					t.Error("the execution was cancelled")
				}
				g.resume()
				return
			}
			<-ctx.Done()
			r.refusedResume(t, false, fmt.Sprintf(`"resume":%q,"received":0`, g.token), `"type":"session_unknown"`)
		})
	}
}

func TestResumeWindowEnds(t *testing.T) {
	wait, begun := started(untilCancelled)
	for _, window := range []time.Duration{0, 30 * time.Millisecond} {
		r := serve(t, script{"wait": wait}, Config{ResumeWindow: window})
		h := r.connect(t, false)
		h.send(`{"jsonrpc":"2.0","id":"open","method":"session.open","params":{"client":{"name":"test"},"received":0}}`)
		text := h.want(`"protocol":"1"`)
		if offered := strings.Contains(text, `"resume"`); offered != (window > 0) {
			t.Errorf("with a window of %v: %s", window, text)
		}
		h.execute("a", "wait", "")
		<-begun
		_ = h.ws.UnderlyingConn().Close()
		r.waitSessions(t, 0) // when its execution has ended
	}
}

// Sessions without a client are bounded: nobody's can drive out those of others, or be without end.
func TestSessionsAwayAreBounded(t *testing.T) {
	r := serve(t, script{}, Config{ResumeWindow: resumeWindow, ResumeSessions: 4, DrainGrace: graceOfTests})
	other := &guest{host: r.connect(t, true), r: r} // another identity
	other.host.send(`{"jsonrpc":"2.0","id":"open","method":"session.open","params":{"client":{"name":"test"},"received":0}}`)
	other.opened(other.host.next())
	other.cut()
	r.waitAway(t, 1)
	var mine []*guest
	for i := range 5 {
		g := r.begin(t)
		g.cut()
		mine = append(mine, g)
		r.waitAway(t, 1+min(i+1, 2))
		r.waitSessions(t, 1+min(i+1, 2))
	}
	for i, g := range mine {
		if i < 3 {
			r.refusedResume(t, false, fmt.Sprintf(`"resume":%q,"received":0`, g.token), `"type":"session_unknown"`)
			continue
		}
		g.resume()
	}
	r.refusedResume(t, true, fmt.Sprintf(`"resume":%q,"received":0`, other.token), `"session":"`+other.session)
}

func TestBytesOfSessionsAwayAreBounded(t *testing.T) {
	const size = 4 << 20
	exec, release := script{}, map[string]chan struct{}{}
	begun := make(chan struct{}, 10)
	for _, name := range []string{"0", "1", "2"} {
		release[name] = make(chan struct{})
		exec[name] = func(context.Context, executor.Request) (*protocol.Outcome, error) {
			begun <- struct{}{}
			<-release[name]
			return returned(protocol.Value(`"` + strings.Repeat("x", size) + `"`)), nil
		}
	}
	r := serve(t, exec, Config{ResumeWindow: resumeWindow, ResumeBytes: 5 * size, DrainGrace: graceOfTests})
	var all []*guest
	for i := range 3 {
		g := r.begin(t)
		for j := range 1 + i%2 {
			g.execute(fmt.Sprint(j), fmt.Sprint(i), "")
			<-begun
		}
		g.cut()
		all = append(all, g)
		r.waitAway(t, i+1)
	}
	close(release["1"]) // of two
	r.waitTotalOwed(t, 2*size)

	close(release["0"]) // three are more than half of five
	r.waitSessions(t, 2)
	close(release["2"])
	r.refusedResume(t, false, fmt.Sprintf(`"resume":%q,"received":0`, all[1].token), `"type":"session_unknown"`)
	for _, g := range []*guest{all[0], all[2]} {
		g.resume()
		g.want(`"status":"ok"`)
	}
}

// A client that asks for messages to be kept and acknowledges none gets nothing more, and is then written off.
func TestClientThatAcknowledgesNothing(t *testing.T) {
	const size = 4 << 20
	big := func(context.Context, executor.Request) (*protocol.Outcome, error) {
		return returned(protocol.Value(`"` + strings.Repeat("x", size) + `"`)), nil
	}
	flood := func(ctx context.Context, q executor.Request) (*protocol.Outcome, error) {
		for ctx.Err() == nil {
			q.OnLog(protocol.Log{Text: strings.Repeat("y", 1<<20)})
			runtime.Gosched()
		}
		return untilCancelled(ctx, q)
	}
	r := serve(t, script{"big": big, "flood": flood}, Config{ResumeWindow: resumeWindow, OwedBytes: 3 * size, DrainGrace: graceOfTests})
	g := r.begin(t)
	for i := range 3 {
		g.execute(fmt.Sprint(i), "big", "")
		g.want(`"status":"ok"`)
	}
	g.execute("refused", "x", "")
	g.want(`"type":"overloaded"`)
	g.ack(g.received - 1)
	g.execute("logs", "flood", `,"logs":{"stream":true}`)
	g.wantClose(4002)
	r.waitSessions(t, 0)
	r.waitTotalOwed(t, 0)
	if n := len(r.debts.of); n != 0 {
		t.Errorf("%d sessions are still on the books", n)
	}
}

// The service acknowledges by itself, and seldom.
func TestServiceAcknowledges(t *testing.T) {
	r := serve(t, script{}, Config{ResumeWindow: resumeWindow, DrainGrace: graceOfTests})
	g := r.begin(t)
	const messages = 200
	acks := 0
	for i := range messages {
		g.execute(fmt.Sprint(i), "x", "")
		for {
			text := g.next()
			if !strings.Contains(text, "session.ack") {
				break
			}
			acks++
			var m struct{ Params protocol.Received }
			if json.Unmarshal([]byte(text), &m) != nil || m.Params.Received == 0 || m.Params.Received > uint64(i+1) {
				t.Fatalf("after %d messages came %s", i+1, text)
			}
		}
	}
	if acks < messages/64 || acks > messages/8 {
		t.Errorf("%d messages were acknowledged %d times", messages, acks)
	}
	g.execute("large", "x", `,"input":"`+strings.Repeat("x", 100_000)+`"`)
	if first, second := g.next(), g.next(); !strings.Contains(first+second, fmt.Sprintf(`{"received":%d}`, messages+1)) {
		t.Error("a large message was not acknowledged")
	}
}

// The same id, sent twice, is one execution: also by a client that resumed and does not trust what it was told.
func TestExecutionSentAgainJoinsTheFirst(t *testing.T) {
	var runs atomic.Int64
	release := make(chan struct{})
	work, begun := started(func(context.Context, executor.Request) (*protocol.Outcome, error) {
		runs.Add(1)
		<-release
		return returned(protocol.Value("1")), nil
	})
	r := serve(t, script{"work": work}, Config{ResumeWindow: resumeWindow, DrainGrace: graceOfTests})
	g := r.begin(t)
	const params = `"method":"execute","params":{"execution":"a","code":"work"}}`
	g.send(`{"jsonrpc":"2.0","id":1,` + params)
	<-begun
	g.cut()
	g.resume()
	g.send(`{"jsonrpc":"2.0","id":1,` + params) // the same request
	for id := 2; id <= maxJoined; id++ {
		g.send(fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,`, id) + params)
	}
	g.send(`{"jsonrpc":"2.0","id":99,` + params) // one too many
	g.want(`"id":99`, `"field":"execution"`)
	g.send(`{"jsonrpc":"2.0","id":100,"method":"execute","params":{"execution":"a","code":"other"}}`)
	g.want(`"id":100`, `"field":"execution"`)
	close(release)
	for id := 1; id <= maxJoined; id++ {
		g.want(fmt.Sprintf(`"id":%d,"result":{"status":"ok","value":1`, id))
	}
	g.send(`{"jsonrpc":"2.0","id":101,` + params) // has been answered
	g.want(`"id":101`, `"field":"execution"`)
	if n := runs.Load(); n != 1 {
		t.Errorf("it ran %d times", n)
	}
}

// A host that is cut off while the service stops still gets what it is owed; no new work comes in.
func TestDrainLetsHostsComeBack(t *testing.T) {
	release := make(chan struct{})
	work, begun := started(func(context.Context, executor.Request) (*protocol.Outcome, error) {
		<-release
		return returned(protocol.Value(`"done"`)), nil
	})
	r := serve(t, script{"work": work}, Config{ResumeWindow: resumeWindow, DrainGrace: time.Minute})
	g := r.begin(t)
	g.execute("a", "work", "")
	<-begun
	r.stop()
	g.want(`"method":"session.draining"`)
	g.cut()
	r.waitAway(t, 1)
	close(release)
	r.refusedResume(t, false, `"received":0`, `"type":"draining"`)
	_, resp, err := (&websocket.Dialer{Subprotocols: []string{protocol.Subprotocol}}).Dial("ws://"+r.tcp+"/v1/session", nil)
	if err == nil || resp.StatusCode != 503 {
		t.Errorf("a caller that nobody waits for: %v", err)
	}
	g.resume()
	g.want(`"id":"a"`, `"done"`)
	g.wantClose(websocket.CloseGoingAway)
	if err := r.wait(); err != nil {
		t.Fatal(err)
	}
}

func TestDrainEndsSessionsAway(t *testing.T) {
	wait, begun := started(untilCancelled)
	r := serve(t, script{"wait": wait}, Config{ResumeWindow: time.Hour, DrainGrace: 50 * time.Millisecond})
	g, idle := r.begin(t), r.begin(t)
	g.execute("a", "wait", "")
	<-begun
	g.cut()
	idle.cut()
	r.waitAway(t, 2)
	began := time.Now()
	if err := r.wait(); err != nil {
		t.Fatal(err)
	}
	if took := time.Since(began); took > closeGrace {
		t.Errorf("the end took %v", took)
	}
}

// A session past its age takes nothing new, finishes, and is closed.
func TestSessionsGrowOld(t *testing.T) {
	release := make(chan struct{})
	work, begun := started(func(context.Context, executor.Request) (*protocol.Outcome, error) {
		<-release
		return returned(protocol.Value(`"done"`)), nil
	})
	r := serve(t, script{"work": work}, Config{ResumeWindow: resumeWindow, MaxSessionAge: 200 * time.Millisecond, Limits: protocol.Limits{TotalMs: 77}, DrainGrace: graceOfTests})
	g, idle := r.begin(t), r.open(t)
	g.execute("a", "work", "")
	<-begun
	g.want(`"method":"session.draining","params":{"deadlineMs":77}`)
	idle.wantClose(websocket.CloseGoingAway)
	g.execute("b", "x", "")
	g.want(`"id":"b"`, `"type":"draining"`)
	g.cut()
	g.resume()
	close(release)
	g.want(`"id":"a"`, `"done"`)
	g.wantClose(websocket.CloseGoingAway)
	r.open(t) // the service goes on
}

// A host that reads nothing keeps the session's reader waiting. That its connection is lost is noticed all the same.
func TestLossIsNoticedWhileTheReaderWaits(t *testing.T) {
	r := serve(t, script{}, Config{ResumeWindow: resumeWindow, QueueBytes: 4 << 10, DrainGrace: graceOfTests})
	g := r.begin(t)
	_ = g.ws.SetWriteDeadline(time.Now().Add(500 * time.Millisecond))
	bad := []byte(`{"jsonrpc":"2.0","id":"` + strings.Repeat("x", 100) + `","method":"no.such"}`)
	for g.ws.WriteMessage(websocket.TextMessage, bad) == nil {
	}
	g.cut()
	r.waitAway(t, 1)
	g.resume()
	sent := g.server
	for range sent {
		g.want(`"code":-32601`)
	}
	g.execute("a", "x", "")
	g.want(`"id":"a"`)
}
