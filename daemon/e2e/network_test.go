package e2e

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/executord/executord/ipc/executor"
	"github.com/executord/executord/ipc/fetch"
	"github.com/executord/executord/ipc/protocol"
	"github.com/executord/executord/ipc/testbin"
)

// web is a server of the Internet, as the programs of these tests see it.
func web(tb testing.TB) *httptest.Server {
	tb.Helper()
	mux := http.NewServeMux()
	mux.HandleFunc("/hello", func(w http.ResponseWriter, r *http.Request) { fmt.Fprintf(w, "hello %s", r.Header.Get("X-Name")) })
	mux.HandleFunc("/away", func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, "/hello", http.StatusFound) })
	mux.HandleFunc("/metadata", func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, "http://169.254.169.254/latest/meta-data/iam", http.StatusFound)
	})
	mux.HandleFunc("/endless", func(w http.ResponseWriter, r *http.Request) {
		for r.Context().Err() == nil {
			if _, err := w.Write(make([]byte, 1<<20)); err != nil {
				return
			}
		}
	})
	mux.HandleFunc("/events", func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream")
		for i := 0; r.Context().Err() == nil; i++ {
			fmt.Fprintf(w, "id: %d\ndata: event %d\n\n", i, i)
			w.(http.Flusher).Flush()
			select {
			case <-r.Context().Done():
			case <-time.After(10 * time.Millisecond): // the pace of the events
			}
		}
	})
	s := httptest.NewServer(mux)
	tb.Cleanup(s.Close)
	return s
}

func online(network protocol.Network, code string, base string) executor.Request {
	r := program(strings.ReplaceAll(code, "$", base))
	r.Form, r.Network = protocol.FormScript, network
	return r
}

func wantOnline(t *testing.T, c executor.Executor, r executor.Request, value string) {
	t.Helper()
	if o := run(t, c, r); string(o.Value) != value {
		t.Errorf("got %.200s, %v, want %s", o.Value, o.Err(), value)
	}
}

// TestNetworkDirect: the service performs requests itself, as far as its policy goes.
func TestNetworkDirect(t *testing.T) {
	s := web(t)
	service := start(t, testbin.Worker(t), "--workers=1", "--egress-allow", s.URL, "--egress-allow", "http://169.254.169.254", "--egress-allow-private", "127.0.0.1/32")
	c := service.dial()
	defer c.Close()
	for name, tc := range map[string]struct{ code, want string }{
		"get":       {`return (await fetch("$/hello", { headers: { "X-Name": "you" } })).text()`, `"hello you"`},
		"redirect":  {`const r = await fetch("$/away"); return [r.url, r.redirected, await r.text()]`, `["` + s.URL + `/hello",true,"hello "]`},
		"metadata":  {`try { await fetch("$/metadata") } catch (e) { return e.message.includes("--egress-allow-private") }`, `true`},
		"elsewhere": {`try { await fetch("http://example.com/") } catch (e) { return [e.name, e.message.includes("--egress-allow")] }`, `["TypeError",true]`},
		"streaming": {`const reader = (await fetch("$/endless")).body.getReader(); const { value } = await reader.read(); await reader.cancel(); return value.length > 0`, `true`},
		"too much":  {`try { await (await fetch("$/endless")).bytes() } catch (e) { return e.name }`, `"RangeError"`},
		"events": {
			`const s = new EventSource("$/events"); const seen = []; await new Promise((done) => { s.onmessage = (e) => { seen.push(e.data, e.lastEventId); if (seen.length === 6) done(); }; }); s.close(); return seen`,
			`["event 0","0","event 1","1","event 2","2"]`,
		},
		"abort": {`const c = new AbortController(); const r = await fetch("$/events", { signal: c.signal }); const reader = r.body.getReader(); await reader.read(); c.abort("why"); try { for (;;) await reader.read(); } catch (e) { return e }`, `"why"`},
	} {
		t.Run(name, func(t *testing.T) {
			r := online(protocol.NetworkDirect, tc.code, s.URL)
			r.Limits.FetchBytes = 5 << 20
			wantOnline(t, c, r, tc.want)
		})
	}
}

// TestNetworkHost: the caller performs requests, over a real WebSocket.
func TestNetworkHost(t *testing.T) {
	s := web(t)
	service := start(t, testbin.Worker(t), "--workers=1")
	c := service.dial()
	defer c.Close()
	do := func(code, want string) {
		t.Helper()
		r := online(protocol.NetworkHost, code, s.URL)
		r.Fetch = fetch.Over(http.DefaultTransport)
		wantOnline(t, c, r, want)
	}
	do(`return (await fetch("$/hello", { headers: { "X-Name": "you" } })).text()`, `"hello you"`)
	do(`const r = await fetch("$/away"); return [r.redirected, await r.text()]`, `[true,"hello "]`)
	do(`try { await fetch("$/endless") } catch (e) { return e.name }`, `"RangeError"`)
	do(`const headers = {}; for (let i = 0; i < 300; i++) headers["x" + i] = "1"; try { await fetch("$/hello", { headers }) } catch (e) { return e.message }`, `"fetch: there are 300 headers, more than 256"`)
	do(`try { await fetch("http://127.0.0.1:1/") } catch (e) { return [e.name, e.code] }`, `["TypeError","NETWORK"]`)

	// What was given up and awaited is not called late.
	r := online(protocol.NetworkHost, `const c = new AbortController(); const p = fetch("$/hello", { signal: c.signal }); c.abort(); await p.catch(() => {}); return 1`, s.URL)
	r.Fetch = func(ctx context.Context, _ executor.FetchCall) (*executor.FetchResponse, error) {
		<-ctx.Done()
		return nil, ctx.Err()
	}
	if out, err := c.Execute(t.Context(), r); err != nil || out.Error != nil || len(out.Logs) != 0 {
		t.Errorf("given up: %+v, %v", out, err)
	}

	_, err := c.Execute(t.Context(), online(protocol.NetworkDirect, "1", ""))
	var fault *protocol.Error
	if !errors.As(err, &fault) || fault.Field != "network" || !strings.Contains(fault.Message, "--egress-allow") {
		t.Errorf("direct: %v", err)
	}
}
