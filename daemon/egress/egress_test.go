package egress

import (
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/executord/executord/ipc/executor"
	"github.com/executord/executord/ipc/fetch"
	"github.com/executord/executord/ipc/protocol"
)

// loopback makes an exception for the servers of the tests.
var loopback = []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}

func patterns(t testing.TB, list ...string) []Pattern {
	t.Helper()
	parsed := make([]Pattern, len(list))
	for i, text := range list {
		var err error
		if parsed[i], err = ParsePattern(text); err != nil {
			t.Fatal(err)
		}
	}
	return parsed
}

// newEgress may reach any host of http, and loopback addresses; change makes it another.
func newEgress(t testing.TB, change ...func(*Config)) *Egress {
	t.Helper()
	c := Defaults()
	c.Allow, c.Private = patterns(t, "http://*:*"), loopback
	for _, f := range change {
		f(&c)
	}
	e, err := New(c)
	if err != nil {
		t.Fatal(err)
	}
	return e
}

func serve(t testing.TB, h http.HandlerFunc) *httptest.Server {
	t.Helper()
	s := httptest.NewServer(h)
	t.Cleanup(s.Close)
	return s
}

func get(address string) executor.FetchCall {
	return executor.FetchCall{FetchRequest: protocol.FetchRequest{Method: "GET", URL: address}}
}

// text performs a GET and reads all of it.
func text(t testing.TB, e *Egress, address string) (string, error) {
	t.Helper()
	r, err := e.Fetch(t.Context(), get(address))
	if err != nil {
		return "", err
	}
	defer r.Body.Close()
	b, err := io.ReadAll(r.Body)
	return string(b), err
}

// wantRefusal asks for an error of the policy that says so in part.
func wantRefusal(t testing.TB, err error, part string) {
	t.Helper()
	var thrown *protocol.ThrownError
	if !errors.As(err, &thrown) || thrown.Name != "TypeError" || thrown.Code != Refused || !strings.Contains(thrown.Message, part) {
		t.Errorf("got %v, want a refusal with %q", err, part)
	}
	if thrown != nil && strings.Contains(thrown.Message, "127.0.0.1") {
		t.Errorf("the program learns an address: %s", thrown.Message)
	}
}

func TestConfigs(t *testing.T) {
	for name, change := range map[string]func(*Config){
		"nothing allowed": func(c *Config) { c.Allow = nil },
		"no connection":   func(c *Config) { c.Connections = 0 },
		"no time":         func(c *Config) { c.HeadTimeout = 0 },
		"endless":         func(c *Config) { c.IdleTimeout = 24 * time.Hour },
	} {
		c := Defaults()
		c.Allow = patterns(t, "http://x")
		change(&c)
		if _, err := New(c); err == nil {
			t.Errorf("%s: accepted", name)
		}
	}
}

func TestExchange(t *testing.T) {
	var got *http.Request
	var body []byte
	s := serve(t, func(w http.ResponseWriter, r *http.Request) {
		got = r
		body, _ = io.ReadAll(r.Body)
		w.Header().Add("Set-Cookie", "a=1")
		w.Header().Add("Set-Cookie", "b=2")
		w.Header().Set("X-Bytes", "\xe9")
		w.WriteHeader(201)
		fmt.Fprint(w, "made")
	})
	call := get(s.URL + "/path?q=1")
	call.Method, call.Body = "POST", []byte("sent")
	call.Headers = []protocol.Header{
		{Name: "X-One", Value: "\u00e9"}, {Name: "Host", Value: "evil.example"}, {Name: "Connection", Value: "close, x-one"}, {Name: "Content-Length", Value: "99"}, {Name: "Accept-Encoding", Value: "zstd"}, {Name: "Transfer-Encoding", Value: "chunked"},
	}
	r, err := newEgress(t).Fetch(t.Context(), call)
	if err != nil {
		t.Fatal(err)
	}
	answer, _ := io.ReadAll(r.Body)
	r.Body.Close()
	if r.Status != 201 || r.StatusText != "Created" || string(answer) != "made" {
		t.Errorf("%+v, %q", r, answer)
	}
	want := []protocol.Header{{Name: "set-cookie", Value: "a=1"}, {Name: "set-cookie", Value: "b=2"}, {Name: "x-bytes", Value: "\u00e9"}}
	for _, h := range want {
		found := false
		for _, is := range r.Headers {
			found = found || is == h
		}
		if !found {
			t.Errorf("%v is not in %v", h, r.Headers)
		}
	}
	u, _ := url.Parse(s.URL)
	if got.Method != "POST" || string(body) != "sent" || got.Host != u.Host || got.URL.RequestURI() != "/path?q=1" || got.ContentLength != 4 ||
		got.Header.Get("X-One") != "\xe9" || got.Header.Get("User-Agent") != fetch.UserAgent || strings.Contains(got.Header.Get("Accept-Encoding"), "zstd") ||
		len(got.TransferEncoding) != 0 {
		t.Errorf("the server got %+v, body %q", got, body)
	}
}

// TestNothingOfTheHost: no proxy of the environment, no credentials, no cookies that a response set.
func TestNothingOfTheHost(t *testing.T) {
	proxy := serve(t, func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "proxy") })
	t.Setenv("HTTP_PROXY", proxy.URL)
	t.Setenv("http_proxy", proxy.URL)
	var mu sync.Mutex
	connections := map[string]bool{}
	s := serve(t, func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		connections[r.RemoteAddr] = true
		mu.Unlock()
		http.SetCookie(w, &http.Cookie{Name: "a", Value: "b"})
		fmt.Fprint(w, r.Header.Get("Cookie"), r.Header.Get("Authorization"))
	})
	e := newEgress(t)
	for range 3 {
		if body, err := text(t, e, s.URL); err != nil || body != "" {
			t.Errorf("got %q, %v", body, err)
		}
	}
	if len(connections) != 3 {
		t.Errorf("3 exchanges had %d connections", len(connections))
	}
}

func TestRedirectsAreNotFollowed(t *testing.T) {
	s := serve(t, func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, "http://169.254.169.254/latest/meta-data/", http.StatusFound)
	})
	e := newEgress(t)
	r, err := e.Fetch(t.Context(), get(s.URL))
	if err != nil || r.Status != 302 {
		t.Fatalf("%+v, %v", r, err)
	}
	r.Body.Close()
	// The next hop is an exchange of its own.
	_, err = e.Fetch(t.Context(), get("http://169.254.169.254/latest/meta-data/"))
	wantRefusal(t, err, "--egress-allow-private")
}

func TestRefusals(t *testing.T) {
	e := newEgress(t, func(c *Config) { c.Allow = patterns(t, "https://api.example.com", "http://*:8080") })
	for _, c := range []struct{ address, part string }{
		{"http://api.example.com/", "--egress-allow"},
		{"https://other.example.com/", "--egress-allow"},
		{"https://api.example.com:444/", "--egress-allow"},
		{"http://10.0.0.1:8080/", "--egress-allow-private"},
		{"http://[::1]:8080/", "--egress-allow-private"},
		{"http://[::ffff:10.0.0.1]:8080/", "--egress-allow-private"},
		{"http://[64:ff9b::a00:1]:8080/", "--egress-allow-private"},
		{"http://0.0.0.0:8080/", "--egress-allow-private"},
		{"http://[fe80::1%25lo]:8080/", "is none"},
		{"http://a_b.%41:8080/", "is not among"},
		{"http://x:99999/", "is none"},
	} {
		_, err := e.Fetch(t.Context(), get(c.address))
		if err == nil {
			t.Errorf("%s is reached", c.address)
			continue
		}
		if c.part != "is not among" {
			wantRefusal(t, err, c.part)
		}
	}
	for _, address := range []string{"http://u:p@api.example.com:8080/", "file:///etc/passwd", "gopher://x:8080/", "http:///", "//x:8080/"} {
		if _, err := e.Fetch(t.Context(), get(address)); err == nil {
			t.Errorf("%s is reached", address)
		}
	}
}

// resolver answers every name with address.
func resolver(t testing.TB, address func(name string) netip.Addr) *net.Resolver {
	t.Helper()
	server, err := net.ListenPacket("udp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { server.Close() })
	go func() {
		query := make([]byte, 1500)
		for {
			n, from, err := server.ReadFrom(query)
			if err != nil {
				return
			}
			if answer := answerDNS(query[:n], address); answer != nil {
				_, _ = server.WriteTo(answer, from)
			}
		}
	}()
	return &net.Resolver{PreferGo: true, Dial: func(ctx context.Context, _, _ string) (net.Conn, error) {
		var d net.Dialer
		return d.DialContext(ctx, "udp", server.LocalAddr().String())
	}}
}

// answerDNS answers a query of one question (RFC 1035, 4.1), nil for what is none.
func answerDNS(query []byte, address func(name string) netip.Addr) []byte {
	const head = 12
	if len(query) < head {
		return nil
	}
	var labels []string
	at := head
	for at < len(query) && query[at] != 0 {
		end := at + 1 + int(query[at])
		if end >= len(query) {
			return nil
		}
		labels = append(labels, string(query[at+1:end]))
		at = end
	}
	question := at + 5 // the root label, the type and the class
	if question > len(query) {
		return nil
	}
	answer := append([]byte{}, query[:question]...)
	copy(answer[2:], []byte{0x81, 0x80, 0, 1, 0, 0, 0, 0, 0, 0}) // a response with one question
	kind, data := query[at+2], address(strings.Join(labels, ".")).AsSlice()
	if kind == 1 && len(data) == 4 || kind == 28 && len(data) == 16 { // A, AAAA
		answer[7] = 1
		answer = append(answer, 0xc0, head, 0, kind, 0, 1, 0, 0, 0, 0, 0, byte(len(data)))
		answer = append(answer, data...)
	}
	return answer
}

// TestRebinding: a name that is allowed, and even was public before, does not open the host's own networks.
func TestRebinding(t *testing.T) {
	s := serve(t, func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "secret") })
	port := s.URL[strings.LastIndexByte(s.URL, ':'):]
	addresses := map[string]netip.Addr{
		"home.example":     netip.MustParseAddr("127.0.0.1"),
		"mapped.example":   netip.MustParseAddr("::ffff:127.0.0.1"),
		"metadata.example": netip.MustParseAddr("169.254.169.254"),
		"ula.example":      netip.MustParseAddr("fd00:ec2::254"),
		"nat64.example":    netip.MustParseAddr("64:ff9b::a9fe:a9fe"),
	}
	r := resolver(t, func(name string) netip.Addr { return addresses[name] })
	e := newEgress(t, func(c *Config) { c.Private, c.Resolver = nil, r })
	for name := range addresses {
		_, err := e.Fetch(t.Context(), get("http://"+name+port))
		wantRefusal(t, err, "--egress-allow-private")
	}
	// The very same is reached where the operator excepts it, so the refusal was the policy's.
	e = newEgress(t, func(c *Config) { c.Resolver = r })
	if body, err := text(t, e, "http://home.example"+port); err != nil || body != "secret" {
		t.Errorf("got %q, %v", body, err)
	}
}

func TestHeaderBomb(t *testing.T) {
	for name, h := range map[string]http.HandlerFunc{
		"one large header": func(w http.ResponseWriter, _ *http.Request) { w.Header().Set("X", strings.Repeat("x", 1<<20)) },
		"many headers": func(w http.ResponseWriter, _ *http.Request) {
			for i := range protocol.MaxHeaders + 1 {
				w.Header().Set(fmt.Sprintf("X-%d", i), "1")
			}
		},
		"a header without an end": func(w http.ResponseWriter, _ *http.Request) {
			c, _, err := http.NewResponseController(w).Hijack()
			if err != nil {
				t.Error(err)
				return
			}
			defer c.Close()
			_, _ = io.WriteString(c, "HTTP/1.1 200 OK\r\nX: "+strings.Repeat("x", 4*protocol.MaxHeaderBytes))
			_, _ = io.Copy(io.Discard, c) // until the other side has enough
		},
	} {
		s := serve(t, h)
		var thrown *protocol.ThrownError
		if _, err := newEgress(t, func(c *Config) { c.HeadTimeout = 10 * time.Second }).Fetch(t.Context(), get(s.URL)); !errors.As(err, &thrown) || !strings.Contains(thrown.Message, "headers") {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestBodiesStream: an endless body costs what is read of it, compressed or not.
func TestBodiesStream(t *testing.T) {
	for _, coding := range []string{"", "gzip"} {
		stopped := make(chan struct{})
		s := serve(t, func(w http.ResponseWriter, r *http.Request) {
			defer close(stopped)
			out := io.Writer(w)
			if coding != "" {
				w.Header().Set("Content-Encoding", coding)
				z := gzip.NewWriter(w)
				defer z.Close()
				out = z
			}
			zeros := make([]byte, 1<<20)
			for r.Context().Err() == nil {
				if _, err := out.Write(zeros); err != nil {
					return
				}
			}
		})
		r, err := newEgress(t).Fetch(t.Context(), get(s.URL))
		if err != nil {
			t.Fatal(err)
		}
		if n, err := io.CopyN(io.Discard, r.Body, 10<<20); n != 10<<20 || err != nil {
			t.Errorf("read %d, %v", n, err)
		}
		r.Body.Close()
		select {
		case <-stopped:
		case <-time.After(10 * time.Second):
			t.Errorf("%q: the server goes on writing", coding)
		}
	}
}

func TestContentCodings(t *testing.T) {
	var zipped bytes.Buffer
	z := gzip.NewWriter(&zipped)
	fmt.Fprint(z, "plain text")
	z.Close()
	cases := []struct {
		name, coding, body, want, fault string
	}{
		{name: "gzip", coding: "gzip", body: zipped.String(), want: "plain text"},
		{name: "in capitals", coding: "X-GZIP", body: zipped.String(), want: "plain text"},
		{name: "none", coding: "identity", body: "as it is", want: "as it is"},
		{name: "unknown", coding: "snappy", body: "as it is", want: "as it is"},
		{name: "too many", coding: "gzip, gzip, gzip, gzip", body: "as it is", want: "as it is"},
		{name: "empty", coding: "gzip", body: "", want: ""},
		{name: "not gzip", coding: "gzip", body: "no such thing, truly", fault: "Content-Encoding"},
		{name: "cut off", coding: "gzip", body: zipped.String()[:15], fault: "ended too early"},
		{name: "not brotli", coding: "br", body: "\xff\xff\xff\xff", fault: "Content-Encoding"},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			s := serve(t, func(w http.ResponseWriter, _ *http.Request) {
				w.Header().Set("Content-Encoding", c.coding)
				fmt.Fprint(w, c.body)
			})
			got, err := text(t, newEgress(t), s.URL)
			if c.fault == "" && (err != nil || got != c.want) {
				t.Errorf("got %q, %v", got, err)
			}
			var thrown *protocol.ThrownError
			if c.fault != "" && (!errors.As(err, &thrown) || !strings.Contains(thrown.Message, c.fault)) {
				t.Errorf("got %q, %v", got, err)
			}
		})
	}
}

func TestTimes(t *testing.T) {
	hang := func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/body" {
			fmt.Fprint(w, "first")
			w.(http.Flusher).Flush()
		}
		<-r.Context().Done()
	}
	e := newEgress(t, func(c *Config) { c.HeadTimeout, c.IdleTimeout = 100*time.Millisecond, 100*time.Millisecond })
	s := serve(t, hang)
	for _, path := range []string{"/head", "/body"} {
		began := time.Now()
		var thrown *protocol.ThrownError
		if _, err := text(t, e, s.URL+path); !errors.As(err, &thrown) || !strings.Contains(thrown.Message, "too long") || thrown.Code != fetch.NetworkFailure {
			t.Errorf("%s: %v", path, err)
		}
		if took := time.Since(began); took > 5*time.Second {
			t.Errorf("%s took %s", path, took)
		}
	}
}

// TestConnections: no more than the limit at once, and every end gives the place back.
func TestConnections(t *testing.T) {
	s := serve(t, func(w http.ResponseWriter, r *http.Request) { fmt.Fprint(w, "x") })
	e := newEgress(t, func(c *Config) { c.Connections = 2 })
	var open []*executor.FetchResponse
	for range 2 {
		r, err := e.Fetch(t.Context(), get(s.URL))
		if err != nil {
			t.Fatal(err)
		}
		open = append(open, r)
	}
	_, err := e.Fetch(t.Context(), get(s.URL))
	wantRefusal(t, err, "too many")
	for _, r := range open {
		r.Body.Close()
		r.Body.Close()
	}
	head := get(s.URL)
	head.Method = "HEAD"
	for range 5 {
		if body, err := text(t, e, s.URL); err != nil || body != "x" {
			t.Errorf("got %q, %v", body, err)
		}
		if r, err := e.Fetch(t.Context(), head); err != nil || r.Body != nil {
			t.Errorf("HEAD: %+v, %v", r, err)
		}
		if _, err := e.Fetch(t.Context(), get("http://127.0.0.1:1/")); err == nil {
			t.Error("reached nobody")
		}
	}
}

func TestCancel(t *testing.T) {
	s := serve(t, func(w http.ResponseWriter, r *http.Request) {
		w.(http.Flusher).Flush()
		<-r.Context().Done()
	})
	ctx, cancel := context.WithCancel(t.Context())
	r, err := newEgress(t).Fetch(ctx, get(s.URL))
	if err != nil {
		t.Fatal(err)
	}
	cancel()
	if _, err := io.ReadAll(r.Body); err == nil {
		t.Error("the body ended well")
	}
	r.Body.Close()
}
