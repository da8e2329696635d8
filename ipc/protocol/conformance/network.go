package conformance

import (
	"context"
	"errors"
	"io"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/executord/executord/ipc/executor"
	"github.com/executord/executord/ipc/protocol"
)

// hosting answers the program's fetches with f.
func hosting(f executor.Fetch) func(*executor.Request) {
	return func(r *executor.Request) { r.Network, r.Fetch = protocol.NetworkHost, f }
}

// mirror answers with the request's method, address, headers and body in lines.
func mirror(_ context.Context, f executor.FetchCall) (*executor.FetchResponse, error) {
	text := f.Method + " " + f.URL + "\n"
	for _, h := range f.Headers {
		text += h.Name + ": " + h.Value + "\n"
	}
	return respond(200, text+string(f.Body)), nil
}

func respond(status int, body string, headers ...protocol.Header) *executor.FetchResponse {
	return &executor.FetchResponse{
		FetchHead: protocol.FetchHead{Status: status, StatusText: "As asked", Headers: headers}, Body: io.NopCloser(strings.NewReader(body)),
	}
}

// network is the program's requests where the host performs them.
func network(t *testing.T, e executor.Executor) {
	t.Run("none", func(t *testing.T) {
		wantValue(t, e, program("try { await fetch('https://example.com/') } catch (e) { return [e.name, e.message.includes('no network here')] }"), `["TypeError",true]`)
	})
	t.Run("none by name", func(t *testing.T) {
		wantValue(t, e, program("try { new EventSource('https://example.com/') } catch (e) { return e.name }", func(r *executor.Request) { r.Network = protocol.NetworkNone }), `"TypeError"`)
	})
	t.Run("data needs none", func(t *testing.T) {
		wantValue(t, e, program("await (await fetch('data:,x')).text()"), `"x"`)
	})
	t.Run("request", func(t *testing.T) {
		code := "await (await fetch('http://host.test/a?b#c', {method: 'POST', headers: {'X-A': 'é'}, body: new Uint8Array([104, 105])})).text()"
		wantValue(t, e, program(code, hosting(mirror)), `"POST http://host.test/a?b\nX-A: é\nhi"`)
	})
	t.Run("response", func(t *testing.T) {
		f := func(context.Context, executor.FetchCall) (*executor.FetchResponse, error) {
			return respond(404, "\x00é", protocol.Header{Name: "X-B", Value: "1"}, protocol.Header{Name: "x-b", Value: "2"}), nil
		}
		code := "const r = await fetch('http://host.test/'); return [r.status, r.statusText, r.headers.get('x-b'), r.url, r.redirected, await r.text()]"
		wantValue(t, e, program(code, hosting(f)), `[404,"As asked","1, 2","http://host.test/",false,"\u0000é"]`)
	})
	t.Run("large body", func(t *testing.T) {
		f := func(context.Context, executor.FetchCall) (*executor.FetchResponse, error) {
			return respond(200, strings.Repeat("0123456789", 300_000)), nil
		}
		wantValue(t, e, program("(await (await fetch('http://host.test/')).text()).length", hosting(f)), "3000000")
	})
	t.Run("no body", func(t *testing.T) {
		f := func(context.Context, executor.FetchCall) (*executor.FetchResponse, error) {
			return &executor.FetchResponse{FetchHead: protocol.FetchHead{Status: 204}}, nil
		}
		wantValue(t, e, program("const r = await fetch('http://host.test/'); return [r.body, await r.text()]", hosting(f)), `[null,""]`)
	})
	t.Run("redirects are the program's", func(t *testing.T) {
		f := func(ctx context.Context, c executor.FetchCall) (*executor.FetchResponse, error) {
			if strings.HasSuffix(c.URL, "/from") {
				return respond(302, "", protocol.Header{Name: "Location", Value: "/to"}), nil
			}
			return mirror(ctx, c)
		}
		o := run(t, e, program("const r = await fetch('http://host.test/from', {method: 'POST', body: 'x'}); return [r.url, r.redirected, await r.text()]", hosting(f)))
		wantSame(t, "value", o.Value, protocol.Value(`["http://host.test/to",true,"GET http://host.test/to\n"]`))
		if o.Stats.Fetches != 2 {
			t.Errorf("%d fetches", o.Stats.Fetches)
		}
	})
	t.Run("redirects that the host followed", func(t *testing.T) {
		f := func(context.Context, executor.FetchCall) (*executor.FetchResponse, error) {
			r := respond(200, "")
			r.URL = "http://host.test/end#part"
			return r, nil
		}
		wantValue(t, e, program("const r = await fetch('http://host.test/'); return [r.url, r.redirected]", hosting(f)), `["http://host.test/end",true]`)
	})
	t.Run("event source", func(t *testing.T) {
		f := func(context.Context, executor.FetchCall) (*executor.FetchResponse, error) {
			return respond(200, "data: one\n\n", protocol.Header{Name: "Content-Type", Value: "text/event-stream"}), nil
		}
		wantValue(t, e, program("const s = new EventSource('http://host.test/'); const e = await new Promise((r) => { s.onmessage = r }); s.close(); return e.data", hosting(f)), `"one"`)
	})
	t.Run("failures", func(t *testing.T) {
		for name, f := range map[string]executor.Fetch{
			"plain": func(context.Context, executor.FetchCall) (*executor.FetchResponse, error) {
				return nil, errors.New("no way")
			},
			"nothing":   func(context.Context, executor.FetchCall) (*executor.FetchResponse, error) { return nil, nil },
			"panic":     func(context.Context, executor.FetchCall) (*executor.FetchResponse, error) { panic("ouch") },
			"no status": func(context.Context, executor.FetchCall) (*executor.FetchResponse, error) { return respond(0, ""), nil },
		} {
			t.Run(name, func(t *testing.T) {
				wantValue(t, e, program("try { await fetch('http://host.test/') } catch (e) { return e instanceof TypeError }", hosting(f)), "true")
			})
		}
	})
	t.Run("without a host", func(t *testing.T) {
		o, err := e.Execute(t.Context(), program("1", func(r *executor.Request) { r.Network = protocol.NetworkHost }))
		var fault *protocol.Error
		if o != nil || !errors.As(err, &fault) || fault.Type != protocol.InvalidParams || fault.Field != "network" {
			t.Errorf("%+v, %v", o, err)
		}
	})
	t.Run("too many", func(t *testing.T) {
		wantEnding(t, e, program("for (let i = 0; i < 5; i++) await fetch('http://host.test/')", hosting(mirror), within(protocol.Limits{Fetches: 3})), protocol.ToolLimit)
	})
	t.Run("too many bytes", func(t *testing.T) {
		code := "try { await (await fetch('http://host.test/')).text() } catch (e) { return e.name }"
		wantValue(t, e, program(code, hosting(mirror), within(protocol.Limits{FetchBytes: 10})), `"RangeError"`)
	})
	t.Run("many at once", func(t *testing.T) {
		code := "const l = await Promise.all(Array.from({length: 80}, (_, i) => fetch('http://host.test/' + i).then((r) => r.text()))); l.every((t, i) => t === `GET http://host.test/${i}\\n`)"
		wantValue(t, e, program(code, hosting(mirror)), "true")
	})
	t.Run("a slow host is not the program's own time", func(t *testing.T) {
		slow := func(ctx context.Context, c executor.FetchCall) (*executor.FetchResponse, error) {
			timer := time.NewTimer(600 * time.Millisecond) // the time that is not to count
			defer timer.Stop()
			select {
			case <-timer.C:
			case <-ctx.Done():
			}
			return mirror(ctx, c)
		}
		wantValue(t, e, program("(await fetch('http://host.test/')).status", hosting(slow), within(protocol.Limits{WallMs: 300, CPUMs: 300})), "200")
	})
	t.Run("giving up ends the host's work", func(t *testing.T) {
		ended := make(chan struct{})
		f := func(ctx context.Context, _ executor.FetchCall) (*executor.FetchResponse, error) {
			<-ctx.Done()
			close(ended)
			return nil, ctx.Err()
		}
		code := "const c = new AbortController(); setTimeout(() => c.abort('enough'), 50); try { await fetch('http://host.test/', {signal: c.signal}) } catch (e) { await tools.echo(1); return e }"
		wantValue(t, e, program(code, hosting(f), using(echo)), `"enough"`)
		select {
		case <-ended:
		case <-time.After(deadline):
			t.Error("the host still works")
		}
	})
	t.Run("fetches end with the execution", func(t *testing.T) {
		var begun, ended atomic.Int64
		f := func(ctx context.Context, _ executor.FetchCall) (*executor.FetchResponse, error) {
			begun.Add(1)
			defer ended.Add(1)
			<-ctx.Done()
			return nil, ctx.Err()
		}
		o := run(t, e, program("for (let i = 0; i < 4; i++) fetch('http://host.test/'); await new Promise((r) => setTimeout(r, 50)); 'left'", hosting(f)))
		if got := lines(o.Logs); string(o.Value) != `"left"` || len(got) != 1 || !strings.HasPrefix(got[0], "warn 4 calls were still running") {
			t.Errorf("%s, lines %q", o.Value, got)
		}
		for stop := time.Now().Add(deadline); ended.Load() < begun.Load() || begun.Load() < 4; time.Sleep(time.Millisecond) {
			if time.Now().After(stop) {
				t.Fatalf("%d of %d fetches have ended", ended.Load(), begun.Load())
			}
		}
	})
}
