package server

import (
	"bytes"
	"context"
	"crypto/rand"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"net"
	"net/http"
	"net/netip"
	"os"
	"runtime"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
	"unsafe"

	"github.com/gorilla/websocket"

	"github.com/executord/executord/ipc/executor"
	"github.com/executord/executord/ipc/protocol"
	"github.com/executord/executord/ipc/testcert"
	"github.com/executord/executord/ipc/testlog"
)

const (
	secretA = "correct horse battery"
	secretB = "another long secret"
)

// who is a program that tells the identity of its caller.
func who(seen chan<- string) script {
	return script{"who": func(_ context.Context, r executor.Request) (*protocol.Outcome, error) {
		seen <- r.Identity
		return returned(protocol.Value("1")), nil
	}}
}

// user is a user of the machine.
type user struct {
	uid, gid int
	groups   []uint32
}

// dialAs connects as another user. Credentials are those of the thread that connects, so it takes a thread of its own,
// which ends with its goroutine. The socket is abstract: what counts is the service's answer, not the mode of a file.
func dialAs(t *testing.T, address string, u user) net.Conn {
	t.Helper()
	if os.Getuid() != 0 {
		t.Skip("only root can be another user")
	}
	type result struct {
		conn net.Conn
		err  error
	}
	done := make(chan result)
	go func() {
		runtime.LockOSThread() // for good
		conn, err := func() (net.Conn, error) {
			var groups unsafe.Pointer
			if len(u.groups) > 0 {
				groups = unsafe.Pointer(&u.groups[0])
			}
			for _, call := range [][4]uintptr{
				{syscall.SYS_SETGROUPS, uintptr(len(u.groups)), uintptr(groups)},
				{syscall.SYS_SETRESGID, uintptr(u.gid), uintptr(u.gid), uintptr(u.gid)},
				{syscall.SYS_SETRESUID, uintptr(u.uid), uintptr(u.uid), uintptr(u.uid)},
			} {
				if _, _, errno := syscall.RawSyscall(call[0], call[1], call[2], call[3]); errno != 0 {
					return nil, errno
				}
			}
			return net.Dial("unix", address)
		}()
		done <- result{conn, err}
	}()
	r := <-done
	if r.err != nil {
		t.Fatal(r.err)
	}
	t.Cleanup(func() { _ = r.conn.Close() })
	return r.conn
}

// abstract serves exec on an abstract socket, which anybody can connect to.
func abstract(t *testing.T, exec executor.Executor, cfg Config) (address string) {
	t.Helper()
	s, err := New(exec, cfg)
	if err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("unix", "@executord-test-"+rand.Text())
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	stopped := make(chan error, 1)
	go func() { stopped <- s.Serve(ctx, l) }()
	t.Cleanup(func() { stop(); <-stopped })
	return l.Addr().String()
}

// roundTrip sends one request over conn.
func roundTrip(t *testing.T, conn net.Conn, method, path, body string) (status int, text string) {
	t.Helper()
	tr := &http.Transport{DisableKeepAlives: true, DialContext: func(context.Context, string, string) (net.Conn, error) { return conn, nil }}
	req, err := http.NewRequestWithContext(t.Context(), method, "http://localhost"+path, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	// What a caller claims of itself has no effect.
	req.Header.Set("X-Forwarded-User", "0")
	req.Header.Set("X-Uid", "0")
	resp, err := tr.RoundTrip(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	all, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return resp.StatusCode, string(all)
}

// U5: a user who is on no list is refused, whatever the socket's mode let through. Real users, by the kernel's word.
func TestU5OtherUsersAreRefused(t *testing.T) {
	many := make([]uint32, 100) // more than fit at first
	for i := range many {
		many[i] = uint32(10_000 + i)
	}
	for _, tc := range []struct {
		name   string
		policy Policy
		user   user
		want   string // identity, empty when refused
	}{
		{"nobody is listed", Policy{}, user{4444, 4343, nil}, ""},
		{"another is listed", Policy{UIDs: []uint32{4445}, GIDs: []uint32{4344}}, user{4444, 4343, []uint32{4345}}, ""},
		{"a number that is both", Policy{UIDs: []uint32{4343}, GIDs: []uint32{4444}}, user{4444, 4343, nil}, ""},
		{"the user is listed", Policy{UIDs: []uint32{4444}}, user{4444, 4343, nil}, "uid:4444"},
		{"the group is listed", Policy{GIDs: []uint32{4343}}, user{4444, 4343, nil}, "uid:4444"},
		{"a supplementary group is listed", Policy{GIDs: []uint32{4242}}, user{4444, 4343, []uint32{17, 4242}}, "uid:4444"},
		{"the last of many groups is listed", Policy{GIDs: []uint32{10_099}}, user{4444, 4343, many}, "uid:4444"},
		{"root", Policy{}, user{0, 0, nil}, "uid:0"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			seen := make(chan string, 1)
			address := abstract(t, who(seen), Config{Policy: tc.policy})
			status, body := roundTrip(t, dialAs(t, address, tc.user), "POST", "/v1/execute", `{"code":"who"}`)
			if tc.want == "" {
				if status != http.StatusForbidden || len(seen) != 0 {
					t.Errorf("status %d", status)
				}
				wantFault(t, body, protocol.Unauthorized)
				return
			}
			if status != http.StatusOK || len(seen) != 1 || <-seen != tc.want {
				t.Errorf("status %d: %s", status, body)
			}
		})
	}
}

// U3: claims in messages are refused or not looked at: a session belongs to whom the kernel names.
func TestU3ClaimsInMessagesAreIgnored(t *testing.T) {
	seen := make(chan string, 1)
	address := abstract(t, who(seen), Config{Policy: Policy{UIDs: []uint32{4444}}})
	conn := dialAs(t, address, user{4444, 4343, nil})
	d := websocket.Dialer{
		Subprotocols: []string{protocol.Subprotocol},
		NetDial:      func(string, string) (net.Conn, error) { return conn, nil },
	}
	ws, _, err := d.Dial("ws://localhost/v1/session", http.Header{"X-Uid": {"0"}, "Authorization": {"Bearer root"}})
	if err != nil {
		t.Fatal(err)
	}
	defer ws.Close()
	h := &host{t: t, ws: ws}
	for _, claim := range []string{"uid", "pid", "identity"} { // there is no place for one
		h.send(`{"jsonrpc":"2.0","id":1,"method":"session.open","params":{"client":{"name":"x"},"` + claim + `":0}}`)
		h.want(`"type":"invalid_params"`, claim)
	}
	h.send(`{"jsonrpc":"2.0","id":1,"method":"session.open","params":{"client":{"name":"uid:0"}}}`)
	h.want(`"protocol"`)
	h.execute("uid:0", "who", "")
	h.want(`"status":"ok"`)
	if got := <-seen; got != "uid:4444" {
		t.Errorf("identity %q", got)
	}
}

func TestPeersThatCannotBeTold(t *testing.T) {
	req, _ := http.NewRequest("GET", "http://localhost/healthz", nil)
	if _, no := (Policy{}).identify(req, peer{err: errors.New("no credentials")}); no == nil || no.reason != UnknownPeer {
		t.Errorf("got %v", no)
	}
	if _, no := (Policy{}).identify(req, peer{addr: netip.MustParseAddr("192.0.2.1")}); no == nil || no.reason != ForeignAddress {
		t.Errorf("another machine: %v", no)
	}
}

// log is one that the test reads.
type log struct{ testlog.Buffer }

func (l *log) logger() *slog.Logger {
	return slog.New(slog.NewTextHandler(l, &slog.HandlerOptions{Level: slog.LevelDebug - 100}))
}

// No secret reaches the log at any level, nor an answer, nor the hook, wherever the caller put it.
func TestSecretsAreNotLogged(t *testing.T) {
	var l log
	var told []string
	var mu sync.Mutex
	const wrong = "wr0ng-but-close-to-a-real-one"
	r := serve(t, script{}, Config{
		Logger: l.logger(), Policy: Policy{Tokens: []Token{{"a", secretA}, {"b", secretB}}},
		OnRefused: func(no Refusal) {
			mu.Lock()
			defer mu.Unlock()
			told = append(told, fmt.Sprintf("%+v", no))
		},
	})
	for _, secret := range []string{secretA, wrong} {
		for _, req := range []*http.Request{
			r.request(t, "GET", "/healthz", "", "Authorization", "Bearer "+secret),
			r.request(t, "GET", "/healthz", "", "Authorization", "Basic "+secret),
			r.request(t, "GET", "/healthz", "", "Authorization", secret),
			r.request(t, "GET", "/healthz?token="+strings.ReplaceAll(secret, " ", "+"), ""),
			r.request(t, "GET", "/"+strings.ReplaceAll(secret, " ", "+"), ""),
			r.request(t, "GET", "/healthz", "", "Origin", secret),
			r.request(t, "GET", "/healthz", "", "Host", "x", "Cookie", secret),
			r.request(t, "GET", "/v1/session", "", "Authorization", "Bearer "+secret, "Sec-WebSocket-Protocol", secret),
		} {
			_, body, _ := r.ask(t, true, req)
			for _, part := range strings.Fields(secret) {
				if strings.Contains(body, part) {
					t.Errorf("an answer tells a secret: %s", body)
				}
			}
		}
	}
	r.open(t).execute("x", "x", "")
	if err := r.wait(); err != nil {
		t.Fatal(err)
	}
	text := l.String() + strings.Join(told, "\n")
	for _, part := range append(strings.Fields(secretA+" "+secretB), wrong) {
		if strings.Contains(text, part) {
			t.Errorf("%q is in the log:\n%s", part, text)
		}
	}
	if !strings.Contains(text, "reason=token") || !strings.Contains(text, "peer=addr:127.0.0.1") {
		t.Errorf("the refusals are not logged:\n%s", text)
	}
}

// A peer that keeps failing is told to wait, and refused before anything is looked at; not so callers beside it.
func TestFailuresAreThrottled(t *testing.T) {
	var l log
	s, err := New(script{}, Config{Logger: l.logger(), Policy: Policy{
		Hosts: []string{"x"}, Tokens: []Token{{"a", secretA}}, Proxies: []netip.Prefix{netip.MustParsePrefix("198.51.100.0/24")},
	}})
	if err != nil {
		t.Fatal(err)
	}
	c := newClock()
	s.throttle = c.throttle()
	ask := func(from, secret string) (int, http.Header, string) {
		req, _ := http.NewRequest("GET", "http://x/healthz", nil)
		req.Header.Set("Authorization", "Bearer "+secret)
		p := peer{addr: netip.MustParseAddr(from)}
		w := &recorder{header: http.Header{}}
		s.ServeHTTP(w, req.WithContext(context.WithValue(t.Context(), peerKey{}, p)))
		return w.status, w.header, w.body.String()
	}
	for _, tc := range []struct {
		name, attacker, neighbour, bystander string
		goodIsHeard                          bool
	}{
		{"another machine", "192.0.2.1", "192.0.2.1", "192.0.2.2", false},
		{"a network of IPv6", "2001:db8:0:1::1", "2001:db8:0:1:ffff::2", "2001:db8:0:2::1", false},
		{"this machine, where a proxy may be", "127.0.0.1", "127.0.0.1", "127.0.0.2", true},
		{"a proxy elsewhere", "198.51.100.7", "198.51.100.7", "198.51.100.8", true},
	} {
		t.Run(tc.name, func(t *testing.T) {
			for i := range throttleAttempts {
				if status, _, body := ask(tc.attacker, fmt.Sprint("guess ", i)); status != http.StatusForbidden {
					t.Fatalf("attempt %d: %d %s", i, status, body)
				}
			}
			if tc.goodIsHeard {
				if _, _, body := ask(tc.neighbour, "guess"); !strings.Contains(body, "this one since the bearer token is not known") {
					t.Errorf("does not tell why: %s", body)
				}
			}
			before := len(l.String())
			for range 100 {
				status, header, body := ask(tc.neighbour, "guess")
				if status != http.StatusTooManyRequests || header.Get("Retry-After") != "6" {
					t.Fatalf("status %d, Retry-After %q", status, header.Get("Retry-After"))
				}
				wantFault(t, body, protocol.Overloaded)
			}
			if strings.Contains(l.String()[before:], "level=WARN") {
				t.Error("each of them is a warning in the log")
			}
			if status, _, _ := ask(tc.neighbour, secretA); (status == http.StatusOK) != tc.goodIsHeard {
				t.Errorf("a good token gets %d", status)
			}
			if status, _, _ := ask(tc.bystander, secretA); status != http.StatusOK {
				t.Errorf("a bystander gets %d", status)
			}
			c.forward(throttleEvery)
			if status, _, _ := ask(tc.neighbour, secretA); status != http.StatusOK {
				t.Errorf("after the wait: %d", status)
			}
			c.forward(time.Hour)
		})
	}
	if n := s.Stats().Refused; n[BadToken] != 4*throttleAttempts || n[Throttled] < 400 {
		t.Errorf("counted %v", n)
	}
	if n := strings.Count(l.String(), "has to wait"); n != 4 {
		t.Errorf("%d lines tell that a peer has to wait", n)
	}
}

// A balancer or a kubelet has no credential to show. It hears how the service is, and nothing that the operator wrote,
// even where callers at its own address were refused too often.
func TestProbesNeedNoCredential(t *testing.T) {
	ca := testcert.New(t)
	own := ca.Server("executord.example").TLS(t)
	s, err := New(script{}, Config{
		Ready:  func() error { return protocol.Errorf(protocol.Maintenance, "a note of the operator") },
		Policy: Policy{Tokens: []Token{{"a", secretA}}, ClientCAs: ca.Pool()}, Certificate: &own,
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, tc := range []struct {
		name, method, path string
		header             http.Header
		status             int
	}{
		{"alive", "GET", "/healthz", nil, 200},
		{"ready", "GET", "/readyz", nil, 503},
		{"wrong method", "POST", "/readyz", nil, 405},
		{"metrics", "GET", "/metrics", nil, 403},
		{"session", "GET", "/v1/session", nil, 403},
		{"nowhere", "GET", "/nowhere", nil, 403},
		{"a wrong token", "GET", "/readyz", http.Header{"Authorization": {"Bearer wrong"}}, 403},
		{"a web page", "GET", "/readyz", http.Header{"Origin": {"https://evil.example"}}, 403},
	} {
		t.Run(tc.name, func(t *testing.T) {
			req, _ := http.NewRequest(tc.method, "http://localhost"+tc.path, nil)
			maps.Copy(req.Header, tc.header)
			w := &recorder{header: http.Header{}}
			from := peer{addr: netip.MustParseAddr("192.0.2.1")}
			s.ServeHTTP(w, req.WithContext(context.WithValue(t.Context(), peerKey{}, from)))
			if w.status != tc.status {
				t.Errorf("status %d, want %d: %s", w.status, tc.status, w.body.String())
			}
			if body := w.body.String(); w.status == 503 && body != `{"ready":false,"type":"maintenance"}`+"\n" {
				t.Errorf("tells %s", body)
			}
		})
	}
	t.Run("after many refusals", func(t *testing.T) {
		from := peer{addr: netip.MustParseAddr("192.0.2.2")}
		exhaust(s.throttle, from.network())
		for path, want := range map[string]int{"/healthz": 200, "/metrics": 429} {
			req, _ := http.NewRequest("GET", "http://localhost"+path, nil)
			w := &recorder{header: http.Header{}}
			s.ServeHTTP(w, req.WithContext(context.WithValue(t.Context(), peerKey{}, from)))
			if w.status != want {
				t.Errorf("%s: status %d", path, w.status)
			}
		}
	})
}

// recorder is an http.ResponseWriter.
type recorder struct {
	header http.Header
	status int
	body   bytes.Buffer
}

func (r *recorder) Header() http.Header         { return r.header }
func (r *recorder) WriteHeader(status int)      { r.status = status }
func (r *recorder) Write(p []byte) (int, error) { return r.body.Write(p) }

// openAs opens a session on TCP with a token.
func (r *running) openAs(t *testing.T, secret string) *host {
	t.Helper()
	d := websocket.Dialer{Subprotocols: []string{protocol.Subprotocol}}
	ws, _, err := d.Dial("ws://"+r.tcp+"/v1/session", http.Header{"Authorization": {"Bearer " + secret}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = ws.Close() })
	h := &host{t: t, ws: ws}
	h.send(`{"jsonrpc":"2.0","id":"open","method":"session.open","params":{"client":{"name":"test"}}}`)
	h.want(`"protocol":"1"`)
	return h
}

// A session lives as long as what let it in: its outcomes come first, then its end. A secret that gets a new one beside
// it goes on.
func TestReconfigureEndsSessionsOfARemovedToken(t *testing.T) {
	wait, begun := started(untilCancelled)
	policy := func(tokens ...Token) Config { return Config{Policy: Policy{Tokens: tokens}} }
	r := serve(t, script{"wait": wait}, policy(Token{"a", secretA}, Token{"b", secretB}))
	a, b, local := r.openAs(t, secretA), r.openAs(t, secretB), r.open(t)
	for _, h := range []*host{a, b, local} {
		h.execute("1", "wait", "")
		<-begun
	}
	const next = "the next secret of b"
	if err := r.Reconfigure(policy(Token{"b", secretB}, Token{"b", next})); err != nil {
		t.Fatal(err)
	}
	a.want(`"id":"1","result":{"status":"error","error":{"type":"cancelled","message":"this caller is not let in any more"`)
	a.wantClose(websocket.ClosePolicyViolation)
	if _, resp, err := (&websocket.Dialer{Subprotocols: []string{protocol.Subprotocol}}).Dial("ws://"+r.tcp+"/v1/session",
		http.Header{"Authorization": {"Bearer " + secretA}}); err == nil || resp.StatusCode != http.StatusForbidden {
		t.Errorf("the removed token: %v", err)
	}
	renewed := r.openAs(t, next)
	for _, h := range []*host{b, local, renewed} {
		h.execute("2", "x", "")
		h.want(`"id":"2"`, `"status":"ok"`)
	}
	// The old secret goes, and with it what it opened; the new one stays.
	if err := r.Reconfigure(policy(Token{"b", next})); err != nil {
		t.Fatal(err)
	}
	b.want(`"id":"1"`, `"type":"cancelled"`)
	b.wantClose(websocket.ClosePolicyViolation)
	renewed.execute("3", "x", "")
	renewed.want(`"id":"3"`, `"status":"ok"`)
	// The name of a secret is the identity of its sessions.
	if err := r.Reconfigure(policy(Token{"c", next})); err != nil {
		t.Fatal(err)
	}
	renewed.wantClose(websocket.ClosePolicyViolation)
	if err := r.Reconfigure(policy(Token{"c", "short"})); err == nil {
		t.Error("a short secret was taken")
	}
	r.openAs(t, next) // what was refused changed nothing
}

func TestReconfigureChangesLimits(t *testing.T) {
	wait, begun := started(untilCancelled)
	r := serve(t, script{"wait": wait}, Config{})
	h := r.open(t)
	h.execute("1", "wait", "")
	<-begun
	if err := r.Reconfigure(Config{MaxExecutions: 1, MaxSessions: 1}); err != nil {
		t.Fatal(err)
	}
	h.execute("2", "x", "")
	h.want(`"id":"2"`, `"type":"session_limit"`)
	_, resp, err := (&websocket.Dialer{Subprotocols: []string{protocol.Subprotocol}}).Dial("ws://"+r.tcp+"/v1/session", nil)
	if err == nil || resp.StatusCode != http.StatusTooManyRequests {
		t.Errorf("one too many: %v", err)
	}
	if err := r.Reconfigure(Config{}); err != nil {
		t.Fatal(err)
	}
	h.execute("2", "x", "")
	h.want(`"id":"2"`, `"status":"ok"`)
	if err := r.Reconfigure(Config{MaxSessions: -1}); err == nil {
		t.Error("a negative limit was taken")
	}
}

// What one caller holds over all its sessions and requests is bounded, and takes nothing from the next.
func TestLimitsOfOneCaller(t *testing.T) {
	wait, begun := started(untilCancelled)
	r := serve(t, script{"wait": wait}, Config{
		MaxCallerSessions: 2, MaxCallerExecutions: 2, Policy: Policy{Tokens: []Token{{"a", secretA}, {"b", secretB}}},
	})
	first, second := r.openAs(t, secretA), r.openAs(t, secretA)
	_, resp, err := (&websocket.Dialer{Subprotocols: []string{protocol.Subprotocol}}).Dial("ws://"+r.tcp+"/v1/session",
		http.Header{"Authorization": {"Bearer " + secretA}})
	if err == nil || resp.StatusCode != http.StatusTooManyRequests {
		t.Fatalf("a third session: %v", err)
	}
	text, _ := io.ReadAll(resp.Body)
	wantFault(t, string(text), protocol.SessionLimit)
	for _, h := range []*host{first, second} {
		h.execute("1", "wait", "")
		<-begun
	}
	second.execute("2", "x", "")
	second.want(`"id":"2"`, `"type":"session_limit"`, "this caller has 2 executions")
	status, body, _ := r.ask(t, true, r.request(t, "POST", "/v1/execute", `{"code":"x"}`, "Authorization", "Bearer "+secretA))
	if status != http.StatusTooManyRequests {
		t.Errorf("a single request: %d", status)
	}
	wantFault(t, body, protocol.SessionLimit)
	other := r.openAs(t, secretB)
	other.execute("1", "x", "")
	other.want(`"status":"ok"`)
	first.send(`{"jsonrpc":"2.0","method":"cancel","params":{"execution":"1"}}`)
	first.want(`"type":"cancelled"`)
	second.execute("3", "x", "")
	second.want(`"id":"3"`, `"status":"ok"`)
	_ = first.ws.Close()
	for deadline := time.Now().Add(10 * time.Second); r.sessionsOf.count("token:a") > 1; runtime.Gosched() {
		if time.Now().After(deadline) {
			t.Fatal("a session that ended still counts")
		}
	}
	r.openAs(t, secretA)
}

// The gate refuses what is new with the reason, and nothing else: what runs goes on, sessions stay.
func TestAdmitRefusesWhatIsNew(t *testing.T) {
	var gate sync.Map
	release := make(chan struct{})
	work, begun := started(func(context.Context, executor.Request) (*protocol.Outcome, error) {
		<-release
		return returned(protocol.Value(`"done"`)), nil
	})
	r := serve(t, script{"work": work}, Config{Admit: func() *protocol.Error {
		if e, ok := gate.Load("shut"); ok {
			return e.(*protocol.Error)
		}
		return nil
	}})
	h := r.open(t)
	h.execute("1", "work", "")
	<-begun
	gate.Store("shut", protocol.Errorf(protocol.Maintenance, "the disk is being replaced"))
	h.execute("2", "x", "")
	h.want(`"id":"2"`, `"type":"maintenance"`, "the disk is being replaced")
	status, body, _ := r.ask(t, false, r.request(t, "POST", "/v1/execute", `{"code":"x"}`))
	if status != http.StatusServiceUnavailable || !strings.Contains(body, "the disk is being replaced") {
		t.Errorf("%d %s", status, body)
	}
	wantFault(t, body, protocol.Maintenance)
	_, resp, err := (&websocket.Dialer{Subprotocols: []string{protocol.Subprotocol}}).Dial("ws://"+r.tcp+"/v1/session", nil)
	if err == nil || resp.StatusCode != http.StatusServiceUnavailable {
		t.Fatalf("a new session: %v", err)
	}
	text, _ := io.ReadAll(resp.Body)
	wantFault(t, string(text), protocol.Maintenance)
	close(release)
	h.want(`"id":"1"`, `"value":"done"`)
	gate.Delete("shut")
	h.execute("2", "x", "")
	h.want(`"id":"2"`, `"status":"ok"`)
}

// secured serves on TCP with TLS.
func secured(t *testing.T, exec executor.Executor, cfg Config) (*Server, string) {
	t.Helper()
	s, err := New(exec, cfg)
	if err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	stopped := make(chan error, 1)
	go func() { stopped <- s.Serve(ctx, l) }()
	t.Cleanup(func() { stop(); <-stopped })
	return s, l.Addr().String()
}

// post runs the program "who" over TLS.
func post(t *testing.T, address, host string, c *tls.Config, token string) (int, string, error) {
	t.Helper()
	tr := &http.Transport{TLSClientConfig: c, DisableKeepAlives: true}
	req, err := http.NewRequestWithContext(t.Context(), "POST", "https://"+address+"/v1/execute", strings.NewReader(`{"code":"who"}`))
	if err != nil {
		t.Fatal(err)
	}
	req.Host = host
	if token != "" {
		req.Header.Set("Authorization", "Bearer "+token)
	}
	resp, err := tr.RoundTrip(req)
	if err != nil {
		return 0, "", err
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	return resp.StatusCode, string(text), err
}

func TestMutualTLS(t *testing.T) {
	ca, other := testcert.New(t), testcert.New(t)
	own := ca.Server("executord.example").TLS(t)
	seen := make(chan string, 1)
	exec := who(seen)
	plain := Config{Certificate: &own}
	mutual := Config{Certificate: &own, Policy: Policy{ClientCAs: ca.Pool()}}
	both := Config{Certificate: &own, Policy: Policy{ClientCAs: ca.Pool(), Tokens: []Token{{"ci", secretA}}}}
	with := func(pairs ...testcert.Pair) *tls.Config {
		c := &tls.Config{RootCAs: ca.Pool()}
		for _, p := range pairs {
			cert := p.TLS(t)
			// As a caller that does not care which CAs the service asks for.
			c.GetClientCertificate = func(*tls.CertificateRequestInfo) (*tls.Certificate, error) { return &cert, nil }
		}
		return c
	}
	for _, tc := range []struct {
		name     string
		cfg      Config
		client   *tls.Config
		host     string
		token    string
		status   int
		identity string
	}{
		{"without client certificates", plain, with(), "", "", 200, "addr:127.0.0.1"},
		{"by the name in the certificate", plain, with(), "executord.example:443", "", 200, "addr:127.0.0.1"},
		{"by another name", plain, with(), "evil.example", "", 403, ""},
		{"common name", mutual, with(ca.Client("app-1")), "", "", 200, "cert:app-1"},
		{"DNS name before common name", mutual, with(ca.Client("x", "app.example")), "", "", 200, "cert:app.example"},
		{"no certificate", mutual, with(), "", "", 403, ""},
		{"of another CA", mutual, with(other.Client("app-1")), "", "", 403, ""},
		{"a server's certificate", mutual, with(ca.Server("app-1")), "", "", 403, ""},
		{"no name", mutual, with(ca.Client("")), "", "", 403, ""},
		{"a long name", mutual, with(ca.Client("", strings.Repeat("n.", maxCertificateName))), "", "", 403, ""},
		{"a name with a line break", mutual, with(ca.Client("a\nb")), "", "", 403, ""},
		{"certificate and token", both, with(ca.Client("app-1")), "", secretA, 200, "token:ci"},
		{"certificate without token", both, with(ca.Client("app-1")), "", "", 401, ""},
		{"token without certificate", both, with(), "", secretA, 403, ""},
	} {
		t.Run(tc.name, func(t *testing.T) {
			_, address := secured(t, exec, tc.cfg)
			status, body, err := post(t, address, tc.host, tc.client, tc.token)
			if err != nil || status != tc.status {
				t.Fatalf("status %d, want %d, %v: %s", status, tc.status, err, body)
			}
			if status != 200 {
				wantFault(t, body, protocol.Unauthorized)
			} else if got := <-seen; got != tc.identity {
				t.Errorf("identity %q, want %q", got, tc.identity)
			}
		})
	}
	t.Run("plain HTTP gets nothing", func(t *testing.T) {
		_, address := secured(t, exec, plain)
		resp, err := http.Post("http://"+address+"/v1/execute", "application/json", strings.NewReader(`{"code":"who"}`))
		if err == nil {
			_ = resp.Body.Close()
		}
		if err == nil && resp.StatusCode != http.StatusBadRequest || len(seen) != 0 {
			t.Errorf("answered: %v", resp)
		}
	})
	for name, c := range map[string]Config{
		"client CAs without a certificate": {Policy: Policy{ClientCAs: ca.Pool()}},
		"an empty certificate":             {Certificate: &tls.Certificate{}},
	} {
		if _, err := New(exec, c); err == nil {
			t.Errorf("%s accepted", name)
		}
	}
}

// Certificates and CAs are those of the moment; who is not signed for any more is not let in any more.
func TestReconfigureChangesCertificates(t *testing.T) {
	old, next := testcert.New(t), testcert.New(t)
	first, second := old.Server().TLS(t), next.Server().TLS(t)
	s, address := secured(t, script{}, Config{Certificate: &first, Policy: Policy{ClientCAs: old.Pool()}})
	open := func(root *testcert.CA, client testcert.Pair) (*host, error) {
		d := websocket.Dialer{
			Subprotocols:    []string{protocol.Subprotocol},
			TLSClientConfig: &tls.Config{RootCAs: root.Pool(), Certificates: []tls.Certificate{client.TLS(t)}},
		}
		ws, _, err := d.Dial("wss://"+address+"/v1/session", nil)
		if err != nil {
			return nil, err
		}
		t.Cleanup(func() { _ = ws.Close() })
		h := &host{t: t, ws: ws}
		h.send(`{"jsonrpc":"2.0","id":"open","method":"session.open","params":{"client":{"name":"test"}}}`)
		h.want(`"protocol":"1"`)
		return h, nil
	}
	h, err := open(old, old.Client("app"))
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Reconfigure(Config{Certificate: &second, Policy: Policy{ClientCAs: next.Pool()}}); err != nil {
		t.Fatal(err)
	}
	h.wantClose(websocket.ClosePolicyViolation)
	if _, err := open(old, old.Client("app")); err == nil {
		t.Error("the old certificate is still shown")
	}
	if _, err := open(next, old.Client("app")); err == nil {
		t.Error("the old CA is still trusted")
	}
	if h, err = open(next, next.Client("app")); err != nil {
		t.Fatal(err)
	}
	h.execute("1", "x", "")
	h.want(`"status":"ok"`)
	if err := s.Reconfigure(Config{}); err == nil || !strings.Contains(err.Error(), "TLS") {
		t.Errorf("TLS was turned off: %v", err)
	}
}

// A reload may not open to other machines what was protected when it was opened.
func TestReconfigureKeepsOpenAddressesProtected(t *testing.T) {
	l, err := net.Listen("tcp", "0.0.0.0:0")
	if err != nil {
		t.Fatal(err)
	}
	tokens := Config{Policy: Policy{Tokens: []Token{{"a", secretA}}}}
	s, err := New(script{}, tokens)
	if err != nil {
		t.Fatal(err)
	}
	front, err := s.Start(l)
	if err != nil {
		t.Fatal(err)
	}
	defer front.Close()
	if err := s.Reconfigure(Config{}); err == nil || !strings.Contains(err.Error(), "loopback") {
		t.Errorf("tokens were dropped: %v", err)
	}
	if err := s.Reconfigure(tokens); err != nil {
		t.Error(err)
	}
}

func TestReasonsAreClosed(t *testing.T) {
	names := Reasons()
	slices.Sort(names)
	if len(slices.Compact(names)) != len(Reasons()) {
		t.Error("a reason stands there twice")
	}
	s, _ := New(script{}, Config{})
	text, err := json.Marshal(s.Stats().Refused)
	if err != nil || strings.Count(string(text), ":0") != len(Reasons()) {
		t.Errorf("%s, %v", text, err)
	}
}
