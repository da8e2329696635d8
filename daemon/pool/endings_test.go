package pool

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/executord/executord/ipc/executor"
	"github.com/executord/executord/ipc/protocol"
)

func TestValue(t *testing.T) {
	b := childBench(t, testConfig())
	r := script("log one", "log two", `return {"a":[1]}`)
	r.Limits.TotalMs = 1 << 40 // lowered
	out := b.run(r)
	if out.Status != protocol.StatusOK || string(out.Value) != `{"a":[1]}` || out.Error != nil {
		t.Fatalf("got %+v", out)
	}
	if got := texts(out); !slices.Equal(got, []string{"one", "two"}) {
		t.Errorf("logs %q", got)
	}
	s := out.Stats
	if s.Worker == "" || s.CPUMs != 1 || s.PeakHeapBytes != 99 || s.TotalMs <= 0 || s.WallMs > s.TotalMs || s.ToolCalls != 0 {
		t.Errorf("stats %+v", s)
	}
	if s.Limits == nil || s.Limits.TotalMs != b.config().MaxLimits.TotalMs || s.Limits.HeapMiB != 64 {
		t.Errorf("limits %+v", s.Limits)
	}
}

// endings are all ways in which an honest worker's execution ends badly.
var endings = []struct {
	name   string
	script []string
	typ    protocol.Type
	reason string
}{
	{"exception", []string{`throw {"type":"exception","name":"TypeError","message":"no"}`}, protocol.Exception, ""},
	{"deadlock", []string{`throw {"type":"deadlock","message":"no"}`}, protocol.Deadlock, ""},
	{"own memory limit", []string{`throw {"type":"memory_limit","message":"no"}`}, protocol.MemoryLimit, ""},
	{"heap exhausted", []string{"exit 70"}, protocol.MemoryLimit, ""},
	{"process memory exhausted", []string{"exit 71"}, protocol.MemoryLimit, ""},
	{"fatal", []string{"exit 72"}, protocol.WorkerCrashed, "exit:72"},
	{"worker finds fault with the pool", []string{"exit 73"}, protocol.WorkerCrashed, "exit:73"},
	{"CPU time", []string{"exit 74"}, protocol.CPUTimeout, ""},
	{"wall time", []string{"exit 75"}, protocol.WallTimeout, ""},
	{"total time", []string{"exit 76"}, protocol.TotalTimeout, ""},
	{"cancelled though nobody did", []string{"exit 77"}, protocol.WorkerCrashed, "exit:77"},
	{"exit", []string{"exit 3"}, protocol.WorkerCrashed, "exit:3"},
	{"exit as if closed", []string{"exit 0"}, protocol.WorkerCrashed, "exit:0"},
	{"segmentation fault", []string{"signal SIGSEGV"}, protocol.WorkerCrashed, "signal:SIGSEGV"},
	{"killed by somebody else", []string{"signal SIGKILL"}, protocol.WorkerCrashed, "signal:SIGKILL"},
	{"last word on memory", []string{"word memory_limit the heap is full", "exit 72"}, protocol.MemoryLimit, ""},
	{"last word on time", []string{"word cpu_timeout ", "exit 1"}, protocol.CPUTimeout, ""},
	{"last word on a crash", []string{"word worker_crashed Check failed", "exit 72"}, protocol.WorkerCrashed, "exit:72"},
	{"last word before a result", []string{"word wall_timeout late", "return 1"}, protocol.WallTimeout, ""},
	{"half a frame, then exit", []string{"rawexit ff00000086"}, protocol.WorkerCrashed, "exit:4"},
}

// TestEndings: every ending has its type, keeps the logs so far, and costs nobody else anything (C15, E5).
func TestEndings(t *testing.T) {
	b := childBench(t, testConfig())
	for _, c := range endings {
		t.Run(c.name, func(t *testing.T) {
			out := b.run(script(append([]string{"log before"}, c.script...)...))
			want(t, out, c.typ, c.reason)
			if got := texts(out); !slices.Equal(got, []string{"before"}) {
				t.Errorf("logs %q", got)
			}
			b.works()
		})
	}
	if got := b.Stats(); got.Running != 0 || got.Queued != 0 || len(got.Identities) != 0 {
		t.Errorf("stats at rest: %+v", got)
	}
}

// lies are frames that no honest worker sends.
var lies = []struct {
	name   string
	script []string
}{
	{"result for another execution", []string{"resultfor 1"}},
	{"result for an execution before", []string{"resultfor -1"}},
	{"log for another execution", []string{"logfor 1"}},
	{"heartbeat for a later execution", []string{"beatfor 1"}},
	{"flood of heartbeats", []string{"beats 5000"}},
	{"log of an unknown level", []string{"loglevel fatal"}},
	{"ready in the middle", []string{"ready"}},
	{"hello in the middle", []string{"hello"}},
	{"result without anything", []string{"empty"}},
	{"result with everything", []string{"both"}},
	{"value that is no JSON", []string{"return {"}},
	{"frame over the limit", []string{"raw ffffffff86"}},
	{"empty frame", []string{"raw 00000000"}},
	{"unknown kind", []string{"raw 01000000ff"}},
	{"frame of the parent's", []string{"raw 0300000003010000"}},
	{"error that is no JSON", []string{"throw oops"}},
	{"error with unknown fields", []string{`throw {"type":"exception","message":"","more":1}`}},
	{"error of an unknown type", []string{`throw {"type":"strange","message":""}`}},
	{"error without a type", []string{`throw {"message":""}`}},
	{"error that never ran", []string{`throw {"type":"overloaded","message":""}`}},
	{"error that is the pool's", []string{`throw {"type":"worker_crashed","message":"","reason":"signal:SIGSEGV"}`}},
	{"error with the pool's fields", []string{`throw {"type":"exception","message":"","retryAfterMs":5}`}},
	{"fault with a parameter that it does not read", []string{`throw {"type":"invalid_params","message":"","field":"code"}`}},
	{"fault with no parameter", []string{`throw {"type":"invalid_params","message":""}`}},
	{"exception with a field", []string{`throw {"type":"exception","message":"","field":"input"}`}},
	{"cancelled though nobody did", []string{`throw {"type":"cancelled","message":""}`}},
	{"call without a number", []string{"callnumber 0", "hang"}},
	{"call with a number twice", []string{"callnumber 1", "callnumber 1", "hang"}},
	{"call with a smaller number", []string{"callnumber 2", "callnumber 1", "hang"}},
	{"call of an unknown provider", []string{"call nobody.x []"}},
	{"call of an unknown tool", []string{"call db.users.drop []"}},
	{"call of a path where names are announced", []string{"call tools.a.b []"}},
	{"call of nothing", []string{"call tools []"}},
	{"arguments that are no JSON", []string{"callargs [", "hang"}},
	{"arguments that are no array", []string{"callargs {}", "hang"}},
	{"no arguments", []string{"callargs", "hang"}},
	{"channel closed, process stays", []string{"close"}},
}

// TestLimitsOfTheContract: a worker that lets its program pass a limit costs it the ending of that limit, and the worker its
// life.
func TestLimitsOfTheContract(t *testing.T) {
	b := childBench(t, testConfig())
	for i, c := range []struct {
		name   string
		script []string
		limits protocol.Limits
		typ    protocol.Type
		counts string
	}{
		{"value", []string{"giant 1048577"}, protocol.Limits{}, protocol.ResultTooLarge, "resultBytes"},
		{"calls", []string{"fire 21", "hang"}, protocol.Limits{}, protocol.ToolLimit, "toolCalls"},
		{"calls at once", []string{"fire 3", "hang"}, protocol.Limits{ToolCallsInFlight: 2}, protocol.ToolLimit, "toolCalls"},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := script(append([]string{"log before"}, c.script...)...)
			r.Limits = c.limits
			r.Call = func(ctx context.Context, _ executor.ToolCall) (protocol.Value, error) {
				<-ctx.Done()
				return nil, nil
			}
			out := b.run(r)
			want(t, out, c.typ, "")
			if got := texts(out); !slices.Equal(got, []string{"before"}) {
				t.Errorf("logs %q", got)
			}
			if n := b.count(WorkerStopped); n != i+1 {
				t.Errorf("%d workers stopped", n)
			}
			if s := b.Stats(); s.Totals.Limits[c.counts] == 0 || s.Totals.Layers[LayerContract] != uint64(i+1) {
				t.Errorf("totals %+v", s.Totals)
			}
			b.works()
		})
	}
}

func TestLies(t *testing.T) {
	b := childBench(t, testConfig())
	for _, c := range lies {
		t.Run(c.name, func(t *testing.T) {
			out := b.run(script(append([]string{"log before"}, c.script...)...))
			want(t, out, protocol.WorkerCrashed, "protocol")
			if got := texts(out); len(got) == 0 || got[0] != "before" {
				t.Errorf("logs %q", got)
			}
			b.works()
		})
	}
}

// TestSecondResult: what comes after a result cannot change it, and costs the worker its life.
func TestSecondResult(t *testing.T) {
	b := childBench(t, testConfig())
	if out := b.run(script("again")); string(out.Value) != "1" {
		t.Errorf("got %+v", out)
	}
	b.awaitEvents(WorkerCrashed, 1)
	b.works()
}

// TestClocks: each limit ends an execution whose worker does nothing about it, and ends it in time (T1, T11, T13).
func TestClocks(t *testing.T) {
	c := testConfig()
	c.HeartbeatTimeout = time.Second
	b := childBench(t, c)
	cases := []struct {
		name        string
		script      []string
		limits      protocol.Limits
		typ         protocol.Type
		reason      string
		least, most time.Duration
	}{
		{"total", []string{"hang"}, protocol.Limits{TotalMs: 100}, protocol.TotalTimeout, "", 325 * time.Millisecond, 5 * time.Second},
		{"total of one millisecond", []string{"hang"}, protocol.Limits{TotalMs: 1}, protocol.TotalTimeout, "", 225 * time.Millisecond, 5 * time.Second},
		{"wall", []string{"hang"}, protocol.Limits{WallMs: 100}, protocol.WallTimeout, "", 325 * time.Millisecond, 5 * time.Second},
		{"cpu", []string{"spin"}, protocol.Limits{CPUMs: 100}, protocol.CPUTimeout, "", 275 * time.Millisecond, 30 * time.Second},
		{"memory", []string{"grow 400"}, protocol.Limits{HeapMiB: 8, BufferMiB: 8}, protocol.MemoryLimit, "", 0, 30 * time.Second},
		{"silence", []string{"silent"}, protocol.Limits{}, protocol.WorkerCrashed, "unresponsive", 700 * time.Millisecond, 5 * time.Second},
		{"half a frame", []string{"raw ff00000086"}, protocol.Limits{TotalMs: 300}, protocol.TotalTimeout, "", 500 * time.Millisecond, 5 * time.Second},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			r := script(append([]string{"log before"}, c.script...)...)
			r.Limits = c.limits
			var out *protocol.Outcome
			timed(t, c.least, c.most, func() { out = b.run(r) })
			want(t, out, c.typ, c.reason)
			if got := texts(out); !slices.Equal(got, []string{"before"}) {
				t.Errorf("logs %q", got)
			}
			if out.Stats.TotalMs < ms(c.least) {
				t.Errorf("stats %+v", out.Stats)
			}
			kind := WorkerStopped
			if c.typ == protocol.WorkerCrashed {
				kind = WorkerCrashed
			}
			if e := b.lastDeath(); e.Kind != kind || e.Type != c.typ {
				t.Errorf("the operator hears %s of type %q", e.Kind, e.Type)
			}
			b.works()
		})
	}
}

// TestT5SlowHost: the guest is not billed for slow work of the host, but total has its own cap.
func TestT5SlowHost(t *testing.T) {
	b := childBench(t, testConfig())
	r := script("calls tools.slow []", "return 1")
	r.Limits.WallMs = 100
	r.Call = func(ctx context.Context, _ executor.ToolCall) (protocol.Value, error) {
		select {
		case <-time.After(time.Second):
		case <-ctx.Done():
		}
		return protocol.Value("1"), nil
	}
	if out := b.run(r); out.Status != protocol.StatusOK {
		t.Errorf("got %v", out.Error)
	}
	r.Limits.TotalMs = 200
	want(t, b.run(r), protocol.TotalTimeout, "")
}

// TestSlowRestore: a worker that does not become ready again is replaced; its result had left before.
func TestSlowRestore(t *testing.T) {
	c := testConfig()
	c.SpawnTimeout = time.Second
	b := childBench(t, c)
	timed(t, 0, 900*time.Millisecond, func() {
		if out := b.run(script("restore 1h")); string(out.Value) != "1" {
			t.Errorf("got %+v", out)
		}
	})
	b.works()
	b.awaitEvents(WorkerCrashed, 1) // it was replaced
}

func TestStderrReachesTheOperator(t *testing.T) {
	b := childBench(t, testConfig())
	b.run(script("stderr something is wrong", "exit 3"))
	b.awaitEvents(WorkerCrashed, 1)
	for _, e := range b.events {
		if e.Kind == WorkerCrashed && (!strings.Contains(e.Stderr, "something is wrong") || e.Reason != "exit:3") {
			t.Errorf("event %+v", e)
		}
	}
}

// TestInputThatTheWorkerRefuses: nothing ran, so there is no outcome; the worker goes on.
func TestInputThatTheWorkerRefuses(t *testing.T) {
	b := childBench(t, testConfig())
	r := script(`throw {"type":"invalid_params","message":"no","field":"input"}`)
	out, err := b.Execute(t.Context(), r)
	var fault *protocol.Error
	if out != nil || !errors.As(err, &fault) || fault.Type != protocol.InvalidParams || fault.Field != "input" || fault.Message != "no" {
		t.Errorf("%+v, %v", out, err)
	}
	b.works()
}
