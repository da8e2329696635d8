package conformance

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"time"

	"github.com/executord/executord/ipc/executor"
	"github.com/executord/executord/ipc/protocol"
)

// failing has a tool for each way to fail.
var failing = executor.Provider{Name: "tools", Tools: map[string]executor.Tool{
	"plain": func(context.Context, []protocol.Value) (protocol.Value, error) { return nil, errors.New("plain text") },
	"typed": func(context.Context, []protocol.Value) (protocol.Value, error) {
		return nil, &protocol.ThrownError{Name: "RangeError", Message: "too far", Code: "E_FAR"}
	},
	"value": func(context.Context, []protocol.Value) (protocol.Value, error) {
		return nil, &protocol.ThrownError{Message: "x", Thrown: protocol.Value(`{"status":404}`)}
	},
	"panics":  func(context.Context, []protocol.Value) (protocol.Value, error) { panic("ouch") },
	"nothing": func(context.Context, []protocol.Value) (protocol.Value, error) { return nil, nil },
	"broken":  func(context.Context, []protocol.Value) (protocol.Value, error) { return protocol.Value(`{"a":`), nil },
}}

func tools(t *testing.T, e executor.Executor) {
	cases := []struct{ name, code, want string }{
		{"undefined", "[await tools.nothing()]", `[{"@undefined":true}]`},
		{"plain error", "try { await tools.plain() } catch (e) { return [e instanceof Error, e.name, e.message] }", `[true,"Error","plain text"]`},
		{"typed error", "try { await tools.typed() } catch (e) { return [e.name, e.message, e.code] }", `["RangeError","too far","E_FAR"]`},
		{"thrown value", "try { await tools.value() } catch (e) { return e }", `{"status":404}`},
		{"panic", "try { await tools.panics() } catch (e) { return e instanceof Error }", "true"},
		{"result that is not JSON", "try { await tools.broken() } catch (e) { return e instanceof Error }", "true"},
		{"unknown tool", "try { await tools.nowhere(); return 'called' } catch (e) { return e instanceof Error }", "true"},
		{"not thenable", "typeof tools.then", `"undefined"`},
	}
	for _, tc := range cases {
		t.Run(tc.name, func(t *testing.T) { wantValue(t, e, program(tc.code, using(failing)), tc.want) })
	}
	t.Run("uncaught error", func(t *testing.T) {
		fault := wantEnding(t, e, program("await tools.typed()", using(failing)), protocol.Exception)
		if fault.Name != "RangeError" || fault.Message != "too far" {
			t.Errorf("%+v", fault)
		}
	})
	t.Run("many at once", func(t *testing.T) {
		wantValue(t, e, program("const l = await Promise.all(Array.from({length: 300}, (_, i) => tools.echo(i))); l.every((v, i) => v === i)", using(echo)), "true")
	})
	t.Run("any name", func(t *testing.T) {
		p := executor.Provider{Name: "api", Any: func(_ context.Context, path []string, args []protocol.Value) (protocol.Value, error) {
			return protocol.Marshal(map[string]any{"path": path, "args": len(args)})
		}}
		wantValue(t, e, program("api.anything(1, 2)", using(p)), `{"args":2,"path":["anything"]}`)
	})
	t.Run("paths", func(t *testing.T) {
		r := program("api.users.get(1)")
		r.Providers = []protocol.Provider{{Name: "api", Tools: protocol.Tools{Paths: [][]string{{"users", "get"}}}}}
		r.Call = func(_ context.Context, c executor.ToolCall) (protocol.Value, error) {
			return protocol.Marshal(append([]string{c.Provider}, c.Path...))
		}
		wantValue(t, e, r, `["api","users","get"]`)
	})
	t.Run("two providers", func(t *testing.T) {
		other := executor.Provider{Name: "other", Tools: echo.Tools}
		wantValue(t, e, program("[await tools.echo(1), await other.echo(2)]", using(echo, other)), "[1,2]")
	})
	t.Run("large arguments and results", func(t *testing.T) {
		wantValue(t, e, program("(await tools.echo('x'.repeat(3e6))).length", using(echo)), "3000000")
	})
	t.Run("T5 a slow tool is not the program's own time", func(t *testing.T) {
		slow := executor.Provider{Name: "tools", Tools: map[string]executor.Tool{
			"slow": func(ctx context.Context, _ []protocol.Value) (protocol.Value, error) {
				timer := time.NewTimer(600 * time.Millisecond) // the time that is not to count
				defer timer.Stop()
				select {
				case <-timer.C:
				case <-ctx.Done():
				}
				return protocol.Value("1"), nil
			},
		}}
		wantValue(t, e, program("tools.slow()", using(slow), within(protocol.Limits{WallMs: 300, CPUMs: 300})), "1")
	})
	t.Run("calls end with the execution", callsEnd(e))
}

// callsEnd leaves calls open at the end of a program: their contexts end, and no call begins afterwards.
func callsEnd(e executor.Executor) func(*testing.T) {
	return func(t *testing.T) {
		var begun, ended atomic.Int64
		all := make(chan struct{})
		r := program("for (let i = 0; i < 4; i++) api.wait(); await api.ready(); 'left'")
		r.Providers = []protocol.Provider{{Name: "api", Tools: protocol.Tools{All: true}}}
		r.Call = func(ctx context.Context, c executor.ToolCall) (protocol.Value, error) {
			if c.Path[0] == "ready" {
				select {
				case <-all:
				case <-ctx.Done():
				}
				return nil, nil
			}
			if begun.Add(1) == 4 {
				close(all)
			}
			<-ctx.Done()
			ended.Add(1)
			return nil, ctx.Err()
		}
		wantValue(t, e, r, `"left"`)
		for stop := time.Now().Add(deadline); ended.Load() < 4; time.Sleep(time.Millisecond) {
			if time.Now().After(stop) {
				t.Fatalf("%d of 4 calls have ended", ended.Load())
			}
		}
	}
}
