package server

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/gorilla/websocket"

	"github.com/executord/executord/ipc/executor"
	"github.com/executord/executord/ipc/protocol"
)

// ask makes one HTTP request over the unix socket, or over TCP.
func (r *running) ask(t *testing.T, tcp bool, req *http.Request) (status int, body string, header http.Header) {
	t.Helper()
	tr := &http.Transport{DisableKeepAlives: true}
	if !tcp {
		tr.DialContext = func(ctx context.Context, _, _ string) (net.Conn, error) {
			var d net.Dialer
			return d.DialContext(ctx, "unix", r.unix)
		}
	}
	resp, err := tr.RoundTrip(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return resp.StatusCode, string(text), resp.Header
}

func (r *running) request(t *testing.T, method, path, body string, headers ...string) *http.Request {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), method, "http://"+r.tcp+path, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	for i := 0; i < len(headers); i += 2 {
		if headers[i] == "Host" {
			req.Host = headers[i+1]
			continue
		}
		req.Header.Add(headers[i], headers[i+1])
	}
	return req
}

func wantFault(t *testing.T, text string, want protocol.Type) {
	t.Helper()
	var f struct{ Error protocol.Error }
	if err := json.Unmarshal([]byte(text), &f); err != nil || f.Error.Type != want || f.Error.Message == "" {
		t.Errorf("got %s, want an error of type %s", text, want)
	}
}

func TestRoutes(t *testing.T) {
	r := serve(t, script{}, Config{})
	cases := []struct {
		method, path string
		status       int
		want         protocol.Type
	}{
		{"GET", "/", 404, protocol.UnknownMethod},
		{"GET", "/v1/session/", 404, protocol.UnknownMethod},
		{"GET", "/metrics", 404, protocol.UnknownMethod},
		{"POST", "/v1/session", 405, protocol.UnknownMethod},
		{"GET", "/v1/execute", 405, protocol.UnknownMethod},
		{"DELETE", "/healthz", 405, protocol.UnknownMethod},
		{"GET", "/v1/session", 400, protocol.UnsupportedProtocol},
	}
	for _, tc := range cases {
		t.Run(tc.method+tc.path, func(t *testing.T) {
			status, body, header := r.ask(t, true, r.request(t, tc.method, tc.path, ""))
			if status != tc.status || header.Get("Content-Type") != "application/json" {
				t.Errorf("status %d of type %q", status, header.Get("Content-Type"))
			}
			wantFault(t, body, tc.want)
		})
	}
}

func TestSubprotocol(t *testing.T) {
	r := serve(t, script{}, Config{})
	for _, offered := range [][]string{nil, {"executor.v0"}, {"chat", "executor.v2"}} {
		_, resp, err := (&websocket.Dialer{Subprotocols: offered}).Dial("ws://"+r.tcp+"/v1/session", nil)
		if err == nil || resp.StatusCode != http.StatusBadRequest {
			t.Fatalf("offering %v: %v", offered, err)
		}
		body, _ := io.ReadAll(resp.Body)
		wantFault(t, string(body), protocol.UnsupportedProtocol)
		if !strings.Contains(string(body), `"supported":["executor.v1"]`) {
			t.Errorf("the answer does not say what is supported: %s", body)
		}
	}
	ws, _, err := (&websocket.Dialer{Subprotocols: []string{"chat", "executor.v1"}}).Dial("ws://"+r.tcp+"/v1/session", nil)
	if err != nil || ws.Subprotocol() != protocol.Subprotocol {
		t.Fatal(err)
	}
	_ = ws.Close()
	// The subprotocol is right and the rest is no WebSocket handshake.
	status, body, _ := r.ask(t, true, r.request(t, "GET", "/v1/session", "", "Sec-WebSocket-Protocol", "executor.v1"))
	if status != http.StatusBadRequest {
		t.Errorf("status %d", status)
	}
	wantFault(t, body, protocol.InvalidRequest)
}

func TestProbes(t *testing.T) {
	var notReady error
	r := serve(t, script{}, Config{Ready: func() error { return notReady }})
	if status, body, _ := r.ask(t, false, r.request(t, "GET", "/healthz", "")); status != 200 || body != `{"status":"ok"}`+"\n" {
		t.Errorf("%d %s", status, body)
	}
	if status, body, _ := r.ask(t, false, r.request(t, "GET", "/readyz", "")); status != 200 || body != `{"ready":true}`+"\n" {
		t.Errorf("%d %s", status, body)
	}
	notReady = errors.New("workers are starting")
	status, body, _ := r.ask(t, false, r.request(t, "GET", "/readyz", ""))
	if status != 503 || body != `{"ready":false,"type":"maintenance","reason":"workers are starting"}`+"\n" {
		t.Errorf("%d %s", status, body)
	}
	if status, _, _ := r.ask(t, false, r.request(t, "HEAD", "/healthz", "")); status != 200 {
		t.Errorf("HEAD: %d", status)
	}
}

func TestExecuteOnce(t *testing.T) {
	refuse := func(e *protocol.Error) func(context.Context, executor.Request) (*protocol.Outcome, error) {
		return func(context.Context, executor.Request) (*protocol.Outcome, error) { return nil, e }
	}
	exec := script{
		"throw": func(context.Context, executor.Request) (*protocol.Outcome, error) {
			return failed(&protocol.Error{Type: protocol.Exception, Name: "TypeError", Message: "no"}), nil
		},
		"full":     refuse(&protocol.Error{Type: protocol.Overloaded, Message: "full", RetryAfterMs: 1500}),
		"waited":   refuse(protocol.Errorf(protocol.QueueTimeout, "too long")),
		"draining": refuse(protocol.Errorf(protocol.Draining, "going")),
		"broken":   func(context.Context, executor.Request) (*protocol.Outcome, error) { return nil, errors.New("odd") },
	}
	r := serve(t, exec, Config{MaxMessageBytes: 1 << 20})
	cases := []struct {
		name, body string
		status     int
		want       string
		typ        protocol.Type
	}{
		{"value", `{"code":"x","input":{"@date":5}}`, 200, `{"status":"ok","value":{"@date":5},"logs":[],`, ""},
		{"exception", `{"code":"throw"}`, 200, `{"status":"error","error":{"type":"exception"`, ""},
		{"no JSON", `{`, 400, "", protocol.ParseError},
		{"empty", ``, 400, "", protocol.ParseError},
		{"no code", `{}`, 400, "", protocol.InvalidCode},
		{"providers", `{"code":"x","providers":[{"name":"p"}]}`, 400, `"field":"providers"`, protocol.InvalidParams},
		{"stream", `{"code":"x","logs":{"stream":true}}`, 400, `"field":"logs.stream"`, protocol.InvalidParams},
		{"limit", `{"code":"x","limits":{"cpuMs":-1}}`, 400, `"field":"limits.cpuMs"`, protocol.InvalidParams},
		{"too large", `{"code":"x","input":"` + strings.Repeat("x", 1<<20) + `"}`, 413, "", protocol.InvalidParams},
		{"overloaded", `{"code":"full"}`, 503, `"retryAfterMs":1500`, protocol.Overloaded},
		{"queue timeout", `{"code":"waited"}`, 503, "", protocol.QueueTimeout},
		{"draining", `{"code":"draining"}`, 503, "", protocol.Draining},
		{"internal", `{"code":"broken"}`, 500, "", protocol.Internal},
	}
	for _, tc := range cases {
		t.Run(tc.name, func(t *testing.T) {
			status, body, header := r.ask(t, false, r.request(t, "POST", "/v1/execute", tc.body))
			if status != tc.status || !strings.Contains(body, tc.want) {
				t.Errorf("got %d %s, want %d with %s", status, body, tc.status, tc.want)
			}
			if tc.typ != "" {
				wantFault(t, body, tc.typ)
			}
			if tc.name == "overloaded" && header.Get("Retry-After") != "2" {
				t.Errorf("Retry-After is %q", header.Get("Retry-After"))
			}
		})
	}
}

func TestExecuteOnceIsCancelledByLeaving(t *testing.T) {
	wait, begun := started(untilCancelled)
	r := serve(t, script{"wait": wait}, Config{})
	ctx, cancel := context.WithCancel(t.Context())
	go func() { <-begun; cancel() }()
	req := r.request(t, "POST", "/v1/execute", `{"code":"wait"}`).WithContext(ctx)
	if _, err := http.DefaultTransport.RoundTrip(req); err == nil {
		t.Error("the request was answered")
	}
	if err := r.wait(); err != nil {
		t.Fatal(err)
	}
}

func TestRequestsAtOnceAreBounded(t *testing.T) {
	wait, begun := started(untilCancelled)
	r := serve(t, script{"wait": wait}, Config{MaxRequests: 1})
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	go func() {
		req := r.request(t, "POST", "/v1/execute", `{"code":"wait"}`).WithContext(ctx)
		if resp, err := http.DefaultTransport.RoundTrip(req); err == nil {
			_ = resp.Body.Close()
		}
	}()
	<-begun
	status, body, _ := r.ask(t, false, r.request(t, "POST", "/v1/execute", `{"code":"x"}`))
	if status != 503 {
		t.Errorf("status %d", status)
	}
	wantFault(t, body, protocol.Overloaded)
}

func TestConnectionsAtOnceAreBounded(t *testing.T) {
	wait, begun := started(untilCancelled)
	r := serve(t, script{"wait": wait}, Config{MaxConnections: 2})
	for range 2 {
		c := r.dialSilent(t)
		_, _ = fmt.Fprintf(c, "POST /v1/execute HTTP/1.1\r\nHost: localhost\r\nContent-Length: 15\r\n\r\n"+`{"code":"wait"}`)
		<-begun
	}
	third := r.dialSilent(t)
	_ = third.SetReadDeadline(time.Now().Add(5 * time.Second))
	text, err := io.ReadAll(third)
	if err != nil || !bytes.HasPrefix(text, []byte("HTTP/1.1 503 ")) || !bytes.Contains(text, []byte(`"type":"overloaded"`)) {
		t.Errorf("the third connection got %q, %v", text, err)
	}
}

// TestIdleConnectionsMakeWay: sockets that send nothing keep nobody out.
func TestIdleConnectionsMakeWay(t *testing.T) {
	r := serve(t, script{}, Config{MaxConnections: 4, MaxSessions: 2})
	var silent []net.Conn
	for range 12 {
		silent = append(silent, r.dialSilent(t))
	}
	status, _, _ := r.ask(t, false, r.request(t, "GET", "/healthz", ""))
	if status != http.StatusOK {
		t.Errorf("status %d", status)
	}
	_ = silent[0].SetReadDeadline(time.Now().Add(5 * time.Second))
	if _, err := silent[0].Read(make([]byte, 1)); err == nil || errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("the oldest socket is still there: %v", err)
	}
}

// TestUnopenedSessionsMakeWay: connections that never open their session keep nobody out, and those that did stay.
func TestUnopenedSessionsMakeWay(t *testing.T) {
	r := serve(t, script{}, Config{MaxSessions: 3})
	first := r.open(t)
	for range 8 {
		r.connect(t, false)
	}
	second := r.open(t)
	for _, h := range []*host{first, second} {
		h.execute("x", "x", "")
		h.want(`"status":"ok"`)
	}
}

func TestTurnOut(t *testing.T) {
	type item struct {
		peer  string
		since uint64
	}
	for _, tc := range []struct {
		name  string
		items []item
		want  item
	}{
		{"none", nil, item{}},
		{"the oldest of one peer", []item{{"a", 3}, {"a", 1}, {"a", 2}}, item{"a", 1}},
		{"the oldest of who has most", []item{{"a", 1}, {"b", 3}, {"b", 2}}, item{"b", 2}},
		{"the oldest where all have as many", []item{{"b", 2}, {"a", 1}, {"c", 3}}, item{"a", 1}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			got, ok := turnOut(slices.Values(tc.items), func(i item) string { return i.peer }, func(i item) uint64 { return i.since })
			if got != tc.want || ok != (len(tc.items) > 0) {
				t.Errorf("got %v, %t", got, ok)
			}
		})
	}
}

// dial opens a connection that sends nothing by itself.
func (r *running) dialSilent(t *testing.T) net.Conn {
	t.Helper()
	c, err := net.Dial("unix", r.unix)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	return c
}

func TestHeadersAreBounded(t *testing.T) {
	r := serve(t, script{}, Config{})
	status, _, _ := r.ask(t, false, r.request(t, "GET", "/healthz", "", "X-Large", strings.Repeat("x", 64<<10)))
	if status != http.StatusRequestHeaderFieldsTooLarge {
		t.Errorf("status %d", status)
	}
}

// W13: pages of the web are refused, a proxy's host name can be allowed.
func TestW13HostAndOrigin(t *testing.T) {
	strict := serve(t, script{}, Config{})
	loose := serve(t, script{}, Config{Policy: Policy{Hosts: []string{"proxy.example"}, Origins: []string{"https://app.example"}}})
	cases := []struct {
		name    string
		r       *running
		tcp     bool
		headers []string
		status  int
	}{
		{"no origin", strict, true, nil, 200},
		{"any origin", strict, true, []string{"Origin", "https://app.example"}, 403},
		{"own origin", strict, true, []string{"Origin", "http://" + strict.tcp}, 403},
		{"null origin", strict, true, []string{"Origin", "null"}, 403},
		{"empty origin", strict, true, []string{"Origin", ""}, 403},
		{"origin on a unix socket", strict, false, []string{"Origin", "https://app.example"}, 403},
		{"allowed origin", loose, true, []string{"Origin", "https://app.example"}, 200},
		{"an allowed origin and another", loose, true, []string{"Origin", "https://app.example", "Origin", "https://evil.example"}, 403},
		{"other origin", loose, true, []string{"Origin", "https://app.example.evil"}, 403},
		{"localhost", strict, true, []string{"Host", "LOCALHOST:7410"}, 200},
		{"IPv6 loopback", strict, true, []string{"Host", "[::1]:80"}, 200},
		{"IPv6 loopback without port", strict, true, []string{"Host", "[::1]"}, 200},
		{"another loopback address", strict, true, []string{"Host", "127.9.9.9"}, 200},
		{"rebound name", strict, true, []string{"Host", "evil.example"}, 403},
		{"name that begins like loopback", strict, true, []string{"Host", "127.0.0.1.evil.example"}, 403},
		{"other address", strict, true, []string{"Host", "10.0.0.1"}, 403},
		{"proxy, not configured", strict, true, []string{"Host", "proxy.example"}, 403},
		{"proxy, configured", loose, true, []string{"Host", "proxy.example:443"}, 200},
		{"any host on a unix socket", strict, false, []string{"Host", "whatever"}, 200},
	}
	for _, tc := range cases {
		t.Run(tc.name, func(t *testing.T) {
			status, body, _ := tc.r.ask(t, tc.tcp, tc.r.request(t, "GET", "/healthz", "", tc.headers...))
			if status != tc.status {
				t.Errorf("status %d, want %d: %s", status, tc.status, body)
			}
			if status == 403 {
				wantFault(t, body, protocol.Unauthorized)
			}
		})
	}
	if n := strict.Stats().Refused; n[BadOrigin] == 0 || n[BadHost] == 0 || n[BadToken] != 0 {
		t.Errorf("refusals are counted as %v", n)
	}
}

func TestTokens(t *testing.T) {
	seen := make(chan string, 1)
	exec := script{"who": func(_ context.Context, r executor.Request) (*protocol.Outcome, error) {
		seen <- r.Identity
		return returned(protocol.Value("1")), nil
	}}
	r := serve(t, exec, Config{Policy: Policy{Tokens: []Token{{"ci", "correct horse battery"}, {"ops", "another long secret"}}}})
	cases := []struct {
		name, header string
		status       int
		identity     string
	}{
		{"none", "", 401, ""},
		{"wrong", "Bearer correct horse batterz", 403, ""},
		{"empty", "Bearer ", 403, ""},
		{"other scheme", "Basic correct horse battery", 401, ""},
		{"first", "Bearer correct horse battery", 200, "token:ci"},
		{"second", "bearer another long secret", 200, "token:ops"},
	}
	for _, tc := range cases {
		t.Run(tc.name, func(t *testing.T) {
			var headers []string
			if tc.header != "" {
				headers = []string{"Authorization", tc.header}
			}
			status, body, _ := r.ask(t, true, r.request(t, "POST", "/v1/execute", `{"code":"who"}`, headers...))
			if status != tc.status {
				t.Fatalf("status %d, want %d: %s", status, tc.status, body)
			}
			if tc.identity != "" {
				if got := <-seen; got != tc.identity {
					t.Errorf("identity %q", got)
				}
			}
		})
	}
}

// U3: the kernel says who calls; nothing in the request can change it.
func TestU3IdentityIsTheKernels(t *testing.T) {
	seen := make(chan string, 1)
	exec := script{"who": func(_ context.Context, r executor.Request) (*protocol.Outcome, error) {
		seen <- r.Identity
		return returned(protocol.Value("1")), nil
	}}
	r := serve(t, exec, Config{})
	req := r.request(t, "POST", "/v1/execute", `{"code":"who"}`, "X-Forwarded-User", "0", "X-Forwarded-For", "10.0.0.1")
	r.ask(t, false, req)
	if got, want := <-seen, fmt.Sprintf("uid:%d", ownUID); got != want {
		t.Errorf("identity %q, want %q", got, want)
	}
	req = r.request(t, "POST", "/v1/execute", `{"code":"who"}`, "X-Forwarded-For", "10.0.0.1")
	r.ask(t, true, req)
	if got := <-seen; got != "addr:127.0.0.1" {
		t.Errorf("identity %q", got)
	}
}

func TestListenersBeyondThisMachineNeedTokens(t *testing.T) {
	l, err := net.Listen("tcp", "0.0.0.0:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	s, _ := New(script{}, Config{})
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second) // of one that serves all the same
	defer cancel()
	if err := s.Serve(ctx, l); err == nil || !strings.Contains(err.Error(), "loopback") {
		t.Errorf("Serve: %v", err)
	}
	if err := (Policy{Tokens: []Token{{"a", "0123456789abcdef"}}}).Check(l.Addr()); err != nil {
		t.Error(err)
	}
	if _, err := New(script{}, Config{Policy: Policy{Tokens: []Token{{"a", "short"}}}}); err == nil {
		t.Error("a short secret was accepted")
	}
}

func TestConfigRefusesNegativeNumbers(t *testing.T) {
	for name, cfg := range map[string]Config{
		"sessions": {MaxSessions: -1}, "bytes": {MaxMessageBytes: -1}, "ping": {PingInterval: -1},
	} {
		if _, err := New(script{}, cfg); err == nil {
			t.Errorf("negative %s accepted", name)
		}
	}
	if _, err := New(nil, Config{}); err == nil {
		t.Error("no executor accepted")
	}
}
