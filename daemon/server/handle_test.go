package server

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/gorilla/websocket"

	"github.com/executord/executord/ipc/executor"
	"github.com/executord/executord/ipc/protocol"
)

// keeper is an Executor that retains: its programs are a script's, and its handles are Go functions, of any session.
type keeper struct {
	script
	handles map[string]func(ctx context.Context, i executor.Invocation) (*protocol.Outcome, error)

	mu       sync.Mutex
	released []string // "SESSION ID"
	ended    []string // sessions

	count atomic.Int64 // that is told of every session
}

func (k *keeper) Retained(string) int { return int(k.count.Load()) }

var _ executor.Retainer = (*keeper)(nil)

func (k *keeper) Invoke(ctx context.Context, i executor.Invocation) (*protocol.Outcome, error) {
	f, ok := k.handles[i.Handle]
	if !ok {
		return nil, protocol.Errorf(protocol.HandleUnknown, "there is no handle %q", i.Handle)
	}
	if i.Begun != nil {
		i.Begun()
	}
	return f(ctx, i)
}

func (k *keeper) Release(session string, handles []string) int {
	k.mu.Lock()
	defer k.mu.Unlock()
	for _, h := range handles {
		k.released = append(k.released, session+" "+h)
	}
	return len(handles)
}

func (k *keeper) ReleaseSession(session string) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.ended = append(k.ended, session)
}

// hasEnded tells whether ReleaseSession was called for a session, exactly once.
func (k *keeper) hasEnded(t *testing.T, session string) bool {
	t.Helper()
	k.mu.Lock()
	defer k.mu.Unlock()
	n := 0
	for _, s := range k.ended {
		if s == session {
			n++
		}
	}
	if n > 1 {
		t.Errorf("the session was released %d times", n)
	}
	return n > 0
}

// sayArgs answers an invocation with what it was called with.
func sayArgs(_ context.Context, i executor.Invocation) (*protocol.Outcome, error) {
	args := make([]string, len(i.Args))
	for n, a := range i.Args {
		args[n] = string(a)
	}
	return returned(protocol.Value("[" + strings.Join(args, ",") + "]")), nil
}

// asExecution has an invocation do what a program does.
func asExecution(f func(context.Context, executor.Request) (*protocol.Outcome, error)) func(context.Context, executor.Invocation) (*protocol.Outcome, error) {
	return func(ctx context.Context, i executor.Invocation) (*protocol.Outcome, error) {
		i.Host.Execution = i.Execution
		return f(ctx, i.Host)
	}
}

// invoke sends a handle.invoke whose id is that of the invocation.
func (h *host) invoke(id, handle, more string) {
	h.t.Helper()
	h.send(fmt.Sprintf(`{"jsonrpc":"2.0","id":%q,"method":"handle.invoke","params":{"execution":%q,"handle":%q%s}}`, id, id, handle, more))
}

func TestRetain(t *testing.T) {
	var asked atomic.Pointer[executor.Request]
	exec := &keeper{script: script{"f": func(_ context.Context, r executor.Request) (*protocol.Outcome, error) {
		asked.Store(&r)
		o := returned(protocol.Value(`{"@handle":"k.1"}`))
		o.Retained = &protocol.Retained{ID: "k", Handles: 1, IdleMs: 5, TTLMs: 6}
		return o, nil
	}}}
	r := serve(t, exec, Config{})
	h := r.open(t)
	h.execute("a", "f", `,"retain":{"ttlMs":7}`)
	h.want(`"value":{"@handle":"k.1"}`, `"retained":{"id":"k","handles":1,"idleMs":5,"ttlMs":6}`)
	if q := asked.Load(); q.Retain == nil || q.Retain.TTLMs != 7 || q.Session == "" {
		t.Errorf("the executor was asked for %+v", q)
	}
	h.execute("b", "f", `,"retain":false`)
	h.want(`"id":"b"`)
	if q := asked.Load(); q.Retain != nil {
		t.Errorf("the executor was asked for %+v", q)
	}
	status, body, _ := r.ask(t, false, r.request(t, "POST", "/v1/execute", `{"code":"f","retain":true}`))
	if status != 400 || !strings.Contains(body, `"field":"retain"`) {
		t.Errorf("a single request: %d %s", status, body)
	}
}

// An Executor that retains nothing is not asked to, and has no handles.
func TestNothingIsRetained(t *testing.T) {
	h := serve(t, script{}, Config{}).open(t)
	h.execute("a", "x", `,"retain":true`)
	h.want(`"type":"invalid_params"`, `"field":"retain"`)
	h.execute("b", "x", `,"retain":false,"input":1`)
	h.want(`"status":"ok"`)
	h.invoke("c", "k.1", "")
	h.want(`"type":"handle_unknown"`)
	h.send(`{"jsonrpc":"2.0","id":"d","method":"handle.release","params":{"handles":["k.1"]}}`)
	h.want(`"result":{"released":0}`)
}

// orderly is an Executor whose calls take the longer to begin the earlier they came.
type orderly struct {
	*keeper
	mu   sync.Mutex
	seen []string
}

func (o *orderly) note(what string) int {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.seen = append(o.seen, what)
	return len(o.seen)
}

func (o *orderly) Invoke(ctx context.Context, i executor.Invocation) (*protocol.Outcome, error) {
	pause, _ := strconv.Atoi(i.Execution)
	time.Sleep(time.Duration(pause) * 10 * time.Millisecond)
	o.note(i.Execution)
	i.Begun()
	<-ctx.Done() // none ends by itself
	return returned(protocol.UndefinedValue), nil
}

func (o *orderly) Release(string, []string) int { return o.note("release") }

// Calls begin in their order, though none has ended, and before what is released after them.
func TestCallsBeginInOrder(t *testing.T) {
	o := &orderly{keeper: &keeper{}}
	h := serve(t, o, Config{}).open(t)
	for _, id := range []string{"5", "3", "1", "0"} {
		h.invoke(id, "k.1", "")
	}
	h.send(`{"jsonrpc":"2.0","id":"r","method":"handle.release","params":{"handles":["k.1"]}}`)
	h.want(`"id":"r"`, `"released":5`)
	if want := []string{"5", "3", "1", "0", "release"}; !slices.Equal(o.seen, want) {
		t.Errorf("%q began, want %q", o.seen, want)
	}
}

func TestInvoke(t *testing.T) {
	var got atomic.Pointer[executor.Invocation]
	exec := &keeper{handles: map[string]func(context.Context, executor.Invocation) (*protocol.Outcome, error){
		"k.1": func(ctx context.Context, i executor.Invocation) (*protocol.Outcome, error) {
			got.Store(&i)
			i.Host.OnState(protocol.State{State: protocol.StateRunning})
			if i.Host.OnLog != nil {
				i.Host.OnLog(protocol.Log{Level: protocol.LevelLog, Text: "line"})
			}
			return sayArgs(ctx, i)
		},
		"k.2": asExecution(callsTwice),
		"k.3": func(ctx context.Context, i executor.Invocation) (*protocol.Outcome, error) {
			response, err := i.Host.Fetch(ctx, executor.FetchCall{Execution: i.Execution, Call: 1, FetchRequest: protocol.FetchRequest{Method: "GET", URL: "https://example.com/"}})
			if err != nil {
				return failed(protocol.AsError(err)), nil
			}
			return returned(protocol.Value(fmt.Sprint(response.Status))), nil
		},
	}}
	r := serve(t, exec, Config{})
	h := r.open(t)
	h.invoke("a", "k.1", `,"method":"next","args":[1,{"@map":[]}],"limits":{"cpuMs":5},"logs":{"stream":true},"trace":{"tracestate":"a=b"}`)
	h.want(`"method":"execution.state","params":{"execution":"a","state":"running"}`)
	h.want(`"method":"execution.log","params":{"execution":"a"`, `"text":"line"`)
	h.want(`"id":"a","result":{"status":"ok","value":[1,{"@map":[]}]`)
	i := got.Load()
	if i.Handle != "k.1" || i.Execution != "a" || i.Method != protocol.HandleNext || i.Limits.CPUMs != 5 || i.Trace.Tracestate != "a=b" ||
		i.Host.Session == "" || i.Host.Identity == "" {
		t.Errorf("the executor got %+v", i)
	}
	h.send(`{"jsonrpc":"2.0","id":1,"method":"handle.invoke","params":{"handle":"k.1"}}`)
	h.want(`"execution":"x-`)
	h.want(`"id":1,"result":{"status":"ok","value":[]`)

	h.invoke("b", "k.2", "")
	for n := range 2 {
		id := requestID(t, h.want(`"method":"tool.call","params":{"execution":"b","call":`+fmt.Sprint(n+1)))
		h.send(`{"jsonrpc":"2.0","id":` + id + `,"result":{"value":` + fmt.Sprint(n) + `}}`)
	}
	h.want(`"id":"b","result":{"status":"ok","value":[0,1]`)

	h.invoke("c", "k.3", "")
	id := requestID(t, h.want(`"method":"fetch","params":{"execution":"c"`))
	h.send(`{"jsonrpc":"2.0","id":` + id + `,"result":{"response":{"status":204}}}`)
	h.want(`"id":"c","result":{"status":"ok","value":204`)

	h.invoke("d", "k.4", "")
	h.want(`"id":"d","error"`, `"type":"handle_unknown"`)
	for field, params := range map[string]string{
		"handle": `{"handle":""}`, "args": `{"handle":"k.1","args":1}`, "method": `{"handle":"k.1","method":"call"}`,
		"limits.heapMiB": `{"handle":"k.1","limits":{"heapMiB":1}}`, "execution": `{"handle":"k.1","execution":"a"}`,
	} {
		h.send(`{"jsonrpc":"2.0","id":2,"method":"handle.invoke","params":` + params + `}`)
		h.want(`"type":"invalid_params"`, `"field":"`+field+`"`)
	}
}

// An invocation counts, is joined, is cancelled and ends with its session as an execution does.
func TestInvocationsAreExecutions(t *testing.T) {
	wait, begun := started(untilCancelled)
	exec := &keeper{script: script{"wait": wait}, handles: map[string]func(context.Context, executor.Invocation) (*protocol.Outcome, error){
		"k.1": asExecution(wait), "k.2": sayArgs,
	}}
	r := serve(t, exec, Config{MaxExecutions: 2, MaxCallerExecutions: 3})
	h := r.open(t)
	h.execute("a", "wait", "")
	h.invoke("b", "k.1", "")
	<-begun
	<-begun
	h.invoke("c", "k.2", "")
	h.want(`"id":"c"`, `"type":"session_limit"`)
	if n := r.Sessions()[0].Executions; n != 2 {
		t.Errorf("%d executions are listed", n)
	}
	other := r.open(t)
	other.invoke("b", "k.1", "") // an id of another session
	<-begun
	other.invoke("c", "k.2", "")
	other.want(`"id":"c"`, `"type":"session_limit"`, "this caller")

	h.send(`{"jsonrpc":"2.0","id":"again","method":"handle.invoke","params":{"execution":"b","handle":"k.1"}}`) // joins
	h.invoke("b", "k.2", "")
	h.want(`"id":"b","error"`, `"field":"execution"`)
	h.execute("b", "wait", "")
	h.want(`"id":"b","error"`, `"field":"execution"`)
	h.send(`{"jsonrpc":"2.0","method":"cancel","params":{"execution":"b","reason":"enough"}}`)
	h.want(`"id":"b","result":{"status":"error","error":{"type":"cancelled","message":"enough"`)
	h.want(`"id":"again","result":{"status":"error","error":{"type":"cancelled","message":"enough"`)
	h.invoke("b", "k.2", "")
	h.want(`"field":"execution"`)
	h.invoke("d", "k.2", `,"args":[1]`)
	h.want(`"id":"d"`, `"value":[1]`)
}

func TestRelease(t *testing.T) {
	exec := &keeper{}
	r := serve(t, exec, Config{})
	h := r.open(t)
	release := func(params string, want ...string) {
		t.Helper()
		h.send(`{"jsonrpc":"2.0","id":1,"method":"handle.release","params":` + params + `}`)
		h.want(want...)
	}
	release(`{"handles":["k.1","k"]}`, `"id":1,"result":{"released":2}`)
	release(`{"handles":[]}`, `"result":{"released":0}`)
	release(`{}`, `"field":"handles"`)
	release(`{"handles":["k",1]}`, `"field":"handles[1]"`)
	release(`{"handles":["k"],"x":1}`, `"field":"x"`)
	release(`{"handles":null}`, `"field":"handles"`)
	release(`{"handles":["k",""]}`, `"field":"handles[1]"`)
	release(`{"handles":["`+strings.Repeat("x", protocol.MaxHandleBytes+1)+`"]}`, `"field":"handles[0]"`)
	many := make([]string, protocol.MaxReleased+1)
	for i := range many {
		many[i] = fmt.Sprint("k.", i)
	}
	text, _ := json.Marshal(many)
	release(`{"handles":`+string(text)+`}`, `"field":"handles"`)
	text, _ = json.Marshal(many[1:])
	release(`{"handles":`+string(text)+`}`, fmt.Sprintf(`"released":%d`, protocol.MaxReleased))
	h.send(`{"jsonrpc":"2.0","method":"handle.release","params":{"handles":["no"]}}`) // nobody would hear the answer
	release(`{"handles":["last"]}`, `"released":1`)
	session := r.Sessions()[0].ID
	exec.mu.Lock()
	defer exec.mu.Unlock()
	if first := []string{session + " k.1", session + " k"}; !slices.Equal(exec.released[:2], first) || len(exec.released) != protocol.MaxReleased+3 {
		t.Errorf("%d handles were released, the first are %v", len(exec.released), exec.released[:2])
	}
}

// However a session ends, what it retained is released once, and not before its last execution has ended.
func TestSessionsReleaseWhatTheyRetained(t *testing.T) {
	var exec *keeper
	ends := make(chan bool, 1) // whether the session was released while its execution ran
	exec = &keeper{script: script{"wait": func(ctx context.Context, r executor.Request) (*protocol.Outcome, error) {
		ends <- false
		o, err := untilCancelled(ctx, r)
		exec.mu.Lock()
		defer exec.mu.Unlock()
		ends <- slices.Contains(exec.ended, r.Session)
		return o, err
	}}}
	r := serve(t, exec, Config{ResumeWindow: 50 * time.Millisecond})
	for name, end := range map[string]func(g *guest){
		"closed": func(g *guest) {
			_ = g.ws.WriteControl(websocket.CloseMessage, websocket.FormatCloseMessage(1000, ""), time.Now().Add(time.Second))
		},
		"not resumed":                    func(g *guest) { g.cut() },
		"fault":                          func(g *guest) { _ = g.ws.WriteMessage(websocket.BinaryMessage, nil) },
		"acknowledges what was not sent": func(g *guest) { g.ack(100) },
		"aborted":                        func(*guest) { r.abortSessions() },
	} {
		t.Run(name, func(t *testing.T) {
			g := r.begin(t)
			g.execute("a", "wait", "")
			<-ends
			end(g)
			if <-ends {
				t.Error("the session was released before its execution had ended")
			}
			r.waitSessions(t, 0)
			if !exec.hasEnded(t, g.session) {
				t.Error("the session was not released")
			}
		})
	}
}

// While the client of a session is away nothing is released, and what was being invoked goes on.
func TestInvocationsAreResumed(t *testing.T) {
	exec := &keeper{handles: map[string]func(context.Context, executor.Invocation) (*protocol.Outcome, error){"k.1": asExecution(callsTwice)}}
	r := serve(t, exec, Config{ResumeWindow: resumeWindow, DrainGrace: graceOfTests})
	g := r.begin(t)
	g.invoke("a", "k.1", "")
	g.want(`"method":"tool.call"`, `"call":1`)
	g.received-- // as if it had been lost
	g.cut()
	g.resume()
	id := requestID(t, g.want(`"method":"tool.call"`, `"call":1`))
	g.invoke("a", "k.1", "") // sent again, it is the same invocation
	g.send(`{"jsonrpc":"2.0","id":` + id + `,"result":{"value":1}}`)
	id = requestID(t, g.want(`"method":"tool.call"`, `"call":2`))
	g.cut()
	g.resume()
	g.send(`{"jsonrpc":"2.0","id":` + id + `,"result":{"value":2}}`)
	g.want(`"id":"a","result":{"status":"ok","value":[1,2]`)
	if exec.hasEnded(t, g.session) {
		t.Error("the session was released")
	}
}

// Whoever is not let in any more loses what runs and what is retained.
func TestRevokedSessionsReleaseWhatTheyRetained(t *testing.T) {
	wait, begun := started(untilCancelled)
	exec := &keeper{handles: map[string]func(context.Context, executor.Invocation) (*protocol.Outcome, error){"k.1": asExecution(wait)}}
	policy := Policy{Tokens: []Token{{"a", secretA}}}
	r := serve(t, exec, Config{Policy: policy, ResumeWindow: resumeWindow})
	h := r.openAs(t, secretA)
	session := r.Sessions()[0].ID
	h.invoke("a", "k.1", "")
	<-begun
	if err := r.Reconfigure(Config{Policy: Policy{Tokens: []Token{{"b", secretB}}}}); err != nil {
		t.Fatal(err)
	}
	h.want(`"id":"a","result":{"status":"error","error":{"type":"cancelled","message":"this caller is not let in any more"`)
	h.wantClose(websocket.ClosePolicyViolation)
	r.waitSessions(t, 0)
	if !exec.hasEnded(t, session) {
		t.Error("the session was not released")
	}
}

// In maintenance nothing new is run, but what is retained can be called.
func TestInvokeInMaintenance(t *testing.T) {
	var refusal atomic.Pointer[protocol.Error]
	exec := &keeper{handles: map[string]func(context.Context, executor.Invocation) (*protocol.Outcome, error){"k.1": sayArgs}}
	r := serve(t, exec, Config{Admit: refusal.Load})
	h := r.open(t)
	refusal.Store(protocol.Errorf(protocol.Maintenance, "not now"))
	h.execute("a", "x", "")
	h.want(`"type":"maintenance"`)
	h.invoke("b", "k.1", `,"args":[2]`)
	h.want(`"id":"b"`, `"value":[2]`)
	h.invoke("c", "k.2", "") // the Executor has the word
	h.want(`"type":"handle_unknown"`)
}

// A session that drains lets what is retained be called while it has something under way, and no more once it is closing.
func TestInvokeWhileDraining(t *testing.T) {
	wait, begun := started(untilCancelled)
	exec := &keeper{script: script{"wait": wait}, handles: map[string]func(context.Context, executor.Invocation) (*protocol.Outcome, error){
		"k.1": sayArgs,
		"k.2": func(context.Context, executor.Invocation) (*protocol.Outcome, error) {
			return nil, protocol.Errorf(protocol.Draining, "the executor drains")
		},
	}}
	r := serve(t, exec, Config{DrainGrace: time.Minute})
	h, idle := r.open(t), r.open(t)
	sessions := r.Sessions()
	idle.invoke("0", "k.1", "")
	idle.want(`"id":"0"`)
	h.execute("a", "wait", "")
	<-begun
	r.stop()
	idle.want(`"method":"session.draining"`)
	idle.wantClose(websocket.CloseGoingAway)
	h.want(`"method":"session.draining"`)
	h.invoke("b", "k.1", `,"args":[2]`)
	h.want(`"id":"b"`, `"value":[2]`)
	h.invoke("c", "k.2", "")
	h.want(`"type":"draining"`, "the executor drains")
	h.send(`{"jsonrpc":"2.0","method":"cancel","params":{"execution":"a"}}`)
	h.want(`"id":"a"`)
	h.wantClose(websocket.CloseGoingAway)
	if err := r.wait(); err != nil {
		t.Fatal(err)
	}
	for _, s := range sessions {
		if !exec.hasEnded(t, s.ID) {
			t.Error("a session was not released")
		}
	}
}

// A session that has reached its age goes on for what it retains, and ends when that has ended; a service that stops does
// not wait for it.
func TestRetainedOutlivesTheAgeOfItsSession(t *testing.T) {
	exec := &keeper{handles: map[string]func(context.Context, executor.Invocation) (*protocol.Outcome, error){"k.1": sayArgs}}
	wait, begun := started(func(ctx context.Context, r executor.Request) (*protocol.Outcome, error) {
		o, err := untilCancelled(ctx, r)
		exec.count.Store(1) // the first that is retained, at an age at which nothing else keeps the session
		return o, err
	})
	exec.script = script{"wait": wait}
	r := serve(t, exec, Config{MaxSessionAge: 20 * time.Millisecond, ResumeWindow: resumeWindow, DrainGrace: graceOfTests})
	aged := func() *guest {
		g := r.begin(t)
		g.execute("a", "wait", "")
		<-begun
		g.want(`"method":"session.draining"`)
		g.send(`{"jsonrpc":"2.0","method":"cancel","params":{"execution":"a"}}`)
		g.want(`"id":"a"`)
		g.invoke("b", "k.1", `,"args":[1]`)
		g.want(`"id":"b"`, `"value":[1]`)
		g.execute("c", "x", "")
		g.want(`"id":"c"`, `"type":"draining"`)
		if s := r.Sessions()[0]; s.Retained != 1 || s.State != SessionDraining {
			t.Errorf("listed as %+v", s)
		}
		return g
	}
	g := aged()
	g.cut()
	g.resume()
	g.invoke("d", "k.1", `,"args":[2]`)
	g.want(`"id":"d"`, `"value":[2]`)
	exec.count.Store(0)
	g.wantClose(websocket.CloseGoingAway)
	r.waitSessions(t, 0)
	g = aged()
	r.stop()
	g.want(`"method":"session.draining"`)
	g.wantClose(websocket.CloseGoingAway)
	if err := r.wait(); err != nil {
		t.Fatal(err)
	}
}

// counting is a keeper that counts how often it is asked.
type counting struct {
	keeper
	asked atomic.Int64
}

func (c *counting) Retained(session string) int {
	c.asked.Add(1)
	return c.keeper.Retained(session)
}

// However many ask what an aged session retains, one timer asks again, and none once nothing is retained or it has ended.
func TestLingeringHasOneTimer(t *testing.T) {
	for name, end := range map[string]func(x *session, exec *counting){
		"nothing retained": func(_ *session, exec *counting) { exec.count.Store(0) },
		"ended": func(x *session, _ *counting) {
			x.mu.Lock()
			defer x.mu.Unlock()
			x.over = true
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				exec := &counting{}
				exec.count.Store(1)
				x := &session{srv: &Server{exec: exec}}
				const callers, rounds = 5, 10
				for range callers {
					go x.linger()
				}
				time.Sleep(rounds*lingerEvery + lingerEvery/2)
				if got := exec.asked.Load(); got != callers+rounds {
					t.Errorf("asked %d times, want %d", got, callers+rounds)
				}
				end(x, exec)
				time.Sleep(rounds * lingerEvery)
				if got := exec.asked.Load(); got != callers+rounds+1 {
					t.Errorf("asked %d times in all, want %d", got, callers+rounds+1)
				}
			})
		})
	}
}
