package conformance

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/executord/executord/ipc/executor"
	"github.com/executord/executord/ipc/protocol"
)

// endings provokes each way in which a program that ran can end badly.
func endings(t *testing.T, e executor.Executor) {
	cases := []struct {
		name    string
		request executor.Request
		want    protocol.Type
	}{
		{"exception", program("throw new TypeError('no')"), protocol.Exception},
		{"exception that is no error", program("throw 5"), protocol.Exception},
		{"rejection", program("await Promise.reject(new Error('no'))"), protocol.Exception},
		{"syntax", program("let = ;"), protocol.Syntax},
		{"module", program("import 'nowhere'; export default 1"), protocol.Module},
		{"cpu", program("for (;;);", within(protocol.Limits{CPUMs: 100})), protocol.CPUTimeout},
		{"wall", program("await new Promise(r => setTimeout(r, 60000))", within(protocol.Limits{WallMs: 100})), protocol.WallTimeout},
		{"total", program("await tools.wait()", within(protocol.Limits{TotalMs: 200}), using(waiting)), protocol.TotalTimeout},
		{"memory", program("const a = []; for (;;) a.push({a: [1, 2, 3], b: 'x'.repeat(100) + a.length})", within(protocol.Limits{HeapMiB: 16})), protocol.MemoryLimit},
		{"result too large", program("'x'.repeat(10000)", within(protocol.Limits{ResultBytes: 1000})), protocol.ResultTooLarge},
		{"result without encoding", program("return () => 1", as(protocol.FormScript)), protocol.ResultUnserializable},
		{"too many tool calls", program("for (let i = 0; i < 5; i++) await tools.echo(i)", within(protocol.Limits{ToolCalls: 3}), using(echo)), protocol.ToolLimit},
		{"deadlock", program("await new Promise(() => {})"), protocol.Deadlock},
	}
	for _, tc := range cases {
		t.Run(tc.name, func(t *testing.T) {
			fault := wantEnding(t, e, tc.request, tc.want)
			if fault.Message == "" {
				t.Error("the error has no message")
			}
			wantValue(t, e, program("1"), "1") // and costs nobody else anything
		})
	}
	t.Run("exception in detail", func(t *testing.T) {
		r := program("const a = 1;\n  null.field;\n")
		r.Name = "mine.js"
		fault := wantEnding(t, e, r, protocol.Exception)
		p := fault.Position
		if fault.Name != "TypeError" || p == nil || p.File != "mine.js" || p.Line != 2 || !strings.Contains(fault.Stack, "mine.js:2") {
			t.Errorf("name %q, position %+v, stack %q", fault.Name, p, fault.Stack)
		}
	})
	t.Run("what was called", func(t *testing.T) {
		tools := executor.Provider{Name: "tools", Tools: map[string]executor.Tool{
			"good": func(context.Context, []protocol.Value) (protocol.Value, error) { return nil, nil },
			"bad":  func(context.Context, []protocol.Value) (protocol.Value, error) { return nil, errors.New("no") },
			"wait": waiting.Tools["wait"],
		}}
		for name, last := range map[string]string{
			"exception": "throw 1", "the engine stops it": "for (;;);", "the process ends": "[].indexOf.call({length: 2 ** 53 - 1}, 1)",
		} {
			code := "await tools.good(1); await tools.bad(2).catch(() => {}); tools.wait(3); await new Promise(r => setTimeout(r, 50)); " + last
			o := run(t, e, program(code, using(tools), within(protocol.Limits{CPUMs: 200})))
			got := ""
			for _, c := range o.Calls {
				got += fmt.Sprintf("%d %s.%s %s,", c.Call, c.Provider, strings.Join(c.Path, "."), c.Status)
			}
			if got != "1 tools.good ok,2 tools.bad error,3 tools.wait pending," || o.Error == nil {
				t.Errorf("%s: calls %q, %v", name, got, o.Error)
			}
		}
		if o := run(t, e, program("await tools.good(1); 1", using(tools))); o.Calls != nil {
			t.Errorf("a value with calls %+v", o.Calls)
		}
	})
	t.Run("many calls", func(t *testing.T) {
		o := run(t, e, program("for (let i = 0; i < 500; i++) await tools.echo(i); throw 1", using(echo)))
		if n := len(o.Calls); n != 257 || o.Calls[128].Omitted != 244 || o.Calls[127].Call != 128 || o.Calls[256].Call != 500 {
			t.Errorf("%d calls, %+v", n, o.Calls)
		}
	})
	t.Run("syntax error in detail", func(t *testing.T) {
		fault := wantEnding(t, e, program("let ok = 1;\nlet x = ) + 1;\n"), protocol.Syntax)
		if p := fault.Position; p == nil || p.Line != 2 || p.Column != 9 || p.SourceLine != "let x = ) + 1;" {
			t.Errorf("position %+v", p)
		}
	})
	t.Run("what was thrown", func(t *testing.T) {
		fault := wantEnding(t, e, program("throw {code: 7}"), protocol.Exception)
		wantSame(t, "thrown", fault.Thrown, protocol.Value(`{"code":7}`))
	})
}

// refusals are requests that must not run. Each is a typed error and costs nothing.
func refusals(t *testing.T, e executor.Executor) {
	cases := []struct {
		name    string
		request executor.Request
		want    protocol.Type
		field   string
	}{
		{"no code", program(""), protocol.InvalidCode, "code"},
		{"code that is not UTF-8", program("\xff"), protocol.InvalidCode, "code"},
		{"unknown form", program("1", as("poem")), protocol.InvalidParams, "form"},
		{"negative limit", program("1", within(protocol.Limits{CPUMs: -1})), protocol.InvalidParams, "limits.cpuMs"},
		{"input that is not JSON", program("1", input("{")), protocol.InvalidParams, "input"},
		{"input with an unknown tag", program("1", input(`[{"@nothing":1}]`)), protocol.InvalidParams, "input"},
		{"name of the service's own", program("1", func(r *executor.Request) { r.Name = "executor:library" }), protocol.InvalidParams, "name"},
		{"module of the service's own", program("1", func(r *executor.Request) {
			r.Modules = map[string]protocol.ModuleSource{"executor:library": {Source: "1"}}
		}), protocol.InvalidParams, `modules["executor:library"]`},
		{"provider with a reserved name", program("1", using(executor.Provider{Name: "class"})), protocol.InvalidProvider, "providers[0].name"},
		{"provider twice", program("1", using(echo, echo)), protocol.InvalidProvider, "providers[1].name"},
		{"module without a name", program("1", func(r *executor.Request) {
			r.Modules = map[string]protocol.ModuleSource{"": {Source: "1"}}
		}), protocol.InvalidParams, "modules"},
		{"long id", program("1", func(r *executor.Request) { r.Execution = strings.Repeat("x", 500) }), protocol.InvalidParams, "execution"},
	}
	for _, tc := range cases {
		t.Run(tc.name, func(t *testing.T) {
			o, err := e.Execute(t.Context(), tc.request)
			var fault *protocol.Error
			if o != nil || !errors.Is(err, tc.want) || !errors.As(err, &fault) || fault.Field != tc.field {
				t.Errorf("outcome %+v, error %+v, want %s of field %q", o, err, tc.want, tc.field)
			}
		})
	}
}

// echo has a tool that returns its first argument.
var echo = executor.Provider{Name: "tools", Tools: map[string]executor.Tool{
	"echo": func(_ context.Context, args []protocol.Value) (protocol.Value, error) {
		if len(args) == 0 {
			return nil, nil
		}
		return args[0], nil
	},
}}

// waiting has a tool that returns only when its execution has ended.
var waiting = executor.Provider{Name: "tools", Tools: map[string]executor.Tool{
	"wait": func(ctx context.Context, _ []protocol.Value) (protocol.Value, error) {
		<-ctx.Done()
		return nil, ctx.Err()
	},
}}
