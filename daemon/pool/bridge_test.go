package pool

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/executord/executord/ipc/executor"
	"github.com/executord/executord/ipc/protocol"
	"github.com/executord/executord/ipc/worker"
)

type callFunc = func(context.Context, executor.ToolCall) (protocol.Value, error)

func TestToolCalls(t *testing.T) {
	b := insideBench(t, testConfig())
	fails := func(err error) callFunc {
		return func(context.Context, executor.ToolCall) (protocol.Value, error) { return nil, err }
	}
	answers := func(v string) callFunc {
		return func(context.Context, executor.ToolCall) (protocol.Value, error) { return protocol.Value(v), nil }
	}
	cases := []struct {
		name  string
		call  callFunc
		line  string
		value string // the result
		cause string // or the thrown error, in part
	}{
		{name: "echo", call: func(_ context.Context, c executor.ToolCall) (protocol.Value, error) { return c.Args, nil }, line: `call tools.echo [1,"é"]`, value: `[1,"é"]`},
		{name: "path", call: answers("7"), line: `call db.users.get []`, value: "7"},
		{name: "nothing", call: answers(""), line: `call tools.x []`, cause: "cannot be passed on"},
		{name: "nil", call: fails(nil), line: `call tools.x []`, value: `{"@undefined":true}`},
		{name: "error", call: fails(errors.New("no such row")), line: `call tools.x []`, cause: `{"message":"no such row"}`},
		{name: "thrown", call: fails(&protocol.ThrownError{Name: "RangeError", Message: "far", Code: "E1"}), line: `call tools.x []`, cause: `{"message":"far","name":"RangeError","code":"E1"}`},
		{name: "thrown value", call: fails(&protocol.ThrownError{Message: "m", Thrown: protocol.Value("[3]")}), line: `call tools.x []`, cause: `"thrown":[3]`},
		{name: "thrown rubbish", call: fails(&protocol.ThrownError{Message: "m", Thrown: protocol.Value("[")}), line: `call tools.x []`, cause: `{"message":"m"}`},
		{name: "nil thrown", call: fails((*protocol.ThrownError)(nil)), line: `call tools.x []`, cause: "could not answer"},
		{name: "long error", call: fails(errors.New(strings.Repeat("é", 1<<20))), line: `call tools.x []`, cause: "éé"},
		{name: "rubbish", call: answers("{"), line: `call tools.x []`, cause: "cannot be passed on"},
		{name: "panic", call: func(context.Context, executor.ToolCall) (protocol.Value, error) { panic("secret") }, line: `call tools.x []`, cause: `{"message":"the host could not answer the call"}`},
		{name: "no callback", line: `call tools.x []`, cause: "answers no tool calls"},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			r := script(c.line)
			r.Call = c.call
			out := b.run(r)
			if out.Stats.ToolCalls != 1 {
				t.Errorf("stats %+v", out.Stats)
			}
			if c.cause == "" {
				if string(out.Value) != c.value {
					t.Errorf("got %s, %v", out.Value, out.Error)
				}
				return
			}
			if out.Error == nil || !strings.Contains(string(out.Error.Cause), c.cause) || len(out.Error.Cause) > maxThrownText+100 {
				t.Errorf("got %.200s, %.200v", out.Value, out.Error)
			}
		})
	}
}

func TestToolCallArguments(t *testing.T) {
	b := insideBench(t, testConfig())
	var got executor.ToolCall
	r := script("call db.users.get [5]")
	r.Execution = "mine"
	r.Call = func(_ context.Context, c executor.ToolCall) (protocol.Value, error) {
		got = c
		return nil, nil
	}
	b.run(r)
	if got.Execution != "mine" || got.Call != 1 || got.Provider != "db" || strings.Join(got.Path, "/") != "users/get" || string(got.Args) != "[5]" {
		t.Errorf("got %+v", got)
	}
}

// TestC1LateCallbacks: callbacks end with the execution, none begins after it, and what they answer late reaches nobody.
func TestC1LateCallbacks(t *testing.T) {
	b := insideBench(t, testConfig())
	var returned atomic.Bool
	var late sync.WaitGroup
	late.Add(1)
	release := make(chan struct{})
	r := script("fire 1", "sleep 20ms", "return 1")
	var ended error
	r.Call = func(ctx context.Context, _ executor.ToolCall) (protocol.Value, error) {
		defer late.Done()
		if returned.Load() {
			t.Error("a callback began after Execute returned")
		}
		<-ctx.Done()
		ended = context.Cause(ctx)
		<-release // and ignores it
		return protocol.Value("1"), nil
	}
	if out := b.run(r); string(out.Value) != "1" {
		t.Fatalf("got %+v", out)
	}
	returned.Store(true)
	next := b.start("a", script("sleep 50ms", "call tools.echo [2]"))
	next.isRunning(t)
	close(release)
	late.Wait()
	<-next.done
	if string(next.out.Value) != "[2]" || ended == nil {
		t.Errorf("got %s, %v; context ended with %v", next.out.Value, next.out.Error, ended)
	}
}

// TestManyCallsAtOnce: calls are answered side by side.
func TestManyCallsAtOnce(t *testing.T) {
	b := insideBench(t, testConfig())
	var together sync.WaitGroup
	together.Add(20)
	r := script("fire 20", "sleep 100ms", "return 1")
	r.Call = func(context.Context, executor.ToolCall) (protocol.Value, error) {
		together.Done()
		together.Wait()
		return nil, nil
	}
	if out := b.run(r); out.Stats.ToolCalls != 20 {
		t.Errorf("got %+v, %v", out, out.Error)
	}
	together.Wait()
}

func TestInFlightBound(t *testing.T) {
	c := testConfig()
	c.Limits.MessageBytes, c.MaxLimits.MessageBytes, c.InFlightBytes = 1000, 1000, 1500
	b := insideBench(t, c)
	release := make(chan struct{})
	r := script("fire 1", "big 900", "return 1")
	r.Call = func(_ context.Context, c executor.ToolCall) (protocol.Value, error) { return protocol.Value("1"), nil }
	if out := b.run(r); string(out.Value) != "1" {
		t.Errorf("under the bound: %v", out.Error)
	}
	c.InFlightBytes = 1000
	b.config().InFlightBytes = 900
	r.Call = func(ctx context.Context, c executor.ToolCall) (protocol.Value, error) {
		<-release
		return nil, nil
	}
	if out := b.run(r); out.Error == nil || !strings.Contains(string(out.Error.Cause), "900 bytes") {
		t.Errorf("over the bound: %s %v", out.Value, out.Error)
	}
	close(release)
	if out := b.run(script("big 1000")); out.Error == nil || !strings.Contains(string(out.Error.Cause), "more than 1000") {
		t.Errorf("over the bound of one: %s %v", out.Value, out.Error)
	}
	b.works()
}

// TestLogsAreHeard: the outcome has the first and the last lines. A listener hears lines as they come up to the bound, and
// then the last.
func TestLogsAreHeard(t *testing.T) {
	b := insideBench(t, testConfig())
	var heard []protocol.Log
	r := script("logs 200", "return 1")
	r.OnLog = func(l protocol.Log) { heard = append(heard, l) }
	out := b.run(r)
	checkLogs := func(name string, logs []protocol.Log, head int, lost protocol.Truncated) {
		t.Helper()
		if len(logs) != head+1+50 {
			t.Fatalf("%s: %d lines", name, len(logs))
		}
		for i, l := range logs {
			number := i
			if i == head {
				if l.Truncated == nil || *l.Truncated != lost || l.Level != protocol.LevelWarn {
					t.Errorf("%s: marker %+v, %+v", name, l, l.Truncated)
				}
				continue
			} else if i > head {
				number = 200 - len(logs) + i
			}
			if l.Text != fmt.Sprintf("line %d", number) {
				t.Errorf("%s: line %d is %q", name, i, l.Text)
			}
		}
	}
	checkLogs("outcome", out.Logs, 50, protocol.Truncated{Lines: 100, Bytes: 50*7 + 50*8})
	checkLogs("stream", heard, 100, protocol.Truncated{Lines: 50, Bytes: 50 * 8})
	if n := b.Stats().Totals.Limits["logLines"]; n != 1 {
		t.Errorf("counted %d times", n)
	}
}

// TestSlowListener: who listens slowly holds up neither the worker nor its supervision.
func TestSlowListener(t *testing.T) {
	c := testConfig()
	c.HeartbeatTimeout = time.Second
	b := insideBench(t, c)
	release := make(chan struct{})
	r := script("logs 50", "call tools.echo [1]")
	first := sync.OnceFunc(func() { <-release })
	r.OnLog = func(protocol.Log) { first() }
	j := b.start("a", r)
	j.isRunning(t)
	for b.Stats().Totals.Executions == 0 {
		time.Sleep(time.Millisecond)
	}
	b.works()
	close(release)
	<-j.done
	if string(j.out.Value) != "[1]" || len(j.out.Logs) != 50 {
		t.Errorf("got %+v, %v", j.out, j.out.Error)
	}
}

// TestE5: logs are bounded by bytes too, whatever the worker says it left out.
func TestE5(t *testing.T) {
	b := insideBench(t, testConfig())
	r := script("log 012", "log 0123456789", "log éééééééééé", "drop")
	r.Limits.LogBytes = 16
	out := b.run(r)
	if got := texts(out); len(got) != 3 || got[0] != "012" || got[2] != "last" {
		t.Fatalf("logs %q", got)
	}
	if got := out.Logs[1].Truncated; got == nil || got.Lines != protocol.MaxLimit || got.Bytes != protocol.MaxLimit {
		t.Errorf("marker %+v", got)
	}
	if _, err := json.Marshal(out); err != nil {
		t.Error(err)
	}
	// One line that is too long is cut.
	r = script("log 012", "log ééééééééééééé")
	r.Limits.LogBytes = 16
	out = b.run(r)
	if got := texts(out); len(got) != 3 || got[0] != "012" || got[2] != "éééééé" || *out.Logs[1].Truncated != (protocol.Truncated{Bytes: 14}) {
		t.Errorf("logs %q, %+v", got, out.Logs)
	}
}

func TestRequestReachesWorker(t *testing.T) {
	b := insideBench(t, testConfig())
	r := script("request")
	r.Input = protocol.Value(`{"a":1}`)
	r.Modules = map[string]protocol.ModuleSource{
		"b": {Source: "AP8=", Type: protocol.ModuleBytes}, "a": {Source: "export default 1"},
	}
	r.Limits = protocol.Limits{CPUMs: 7, HeapMiB: 1 << 19}
	var got worker.Execute
	if err := json.Unmarshal(b.run(r).Value, &got); err != nil {
		t.Fatal(err)
	}
	if got.ID == 0 || got.Name != "main.js" || got.Form != "auto" || got.Language != "javascript" || got.Network != "none" || string(got.Input) != `{"a":1}` {
		t.Errorf("got %+v", got)
	}
	if len(got.Modules) != 2 || got.Modules[0].Type != "module" || string(got.Modules[1].Source) != "\x00\xff" {
		t.Errorf("modules %+v", got.Modules)
	}
	if len(got.Providers) != 2 || !got.Providers[0].All || got.Providers[1].All || len(got.Providers[1].Paths) != 1 {
		t.Errorf("providers %+v", got.Providers)
	}
	l := got.Limits
	if l.CPU != 7*time.Millisecond || l.HeapBytes != 512<<20 || l.Total != 20*time.Second || l.MessageBytes != 8<<20 || l.ToolCalls != 20 {
		t.Errorf("limits %+v", l)
	}
}
