package fetch_test

import (
	"bytes"
	"compress/flate"
	"compress/zlib"
	"context"
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/andybalholm/brotli"

	"github.com/executord/executord/ipc/executor"
	"github.com/executord/executord/ipc/fetch"
	"github.com/executord/executord/ipc/protocol"
)

// transport answers by a function.
type transport func(*http.Request) (*http.Response, error)

func (t transport) RoundTrip(r *http.Request) (*http.Response, error) { return t(r) }

// reply is a response of these headers, given in pairs.
func reply(status string, body string, headers ...string) *http.Response {
	h := http.Header{}
	for i := 0; i < len(headers); i += 2 {
		h.Add(headers[i], headers[i+1])
	}
	code := 200
	if strings.HasPrefix(status, "204") {
		code = 204
	}
	return &http.Response{Status: status, StatusCode: code, Header: h, Body: io.NopCloser(strings.NewReader(body))}
}

func call(method string, headers ...protocol.Header) executor.FetchCall {
	return executor.FetchCall{FetchRequest: protocol.FetchRequest{Method: method, URL: "http://host.test/", Headers: headers}}
}

func TestHeadersOfARequest(t *testing.T) {
	var got http.Header
	perform := fetch.Over(transport(func(r *http.Request) (*http.Response, error) {
		got = r.Header
		return reply("200 OK", ""), nil
	}))
	// Not http.Header: its keys are to be as they were written.
	raw := func() map[string][]string { return got }
	send := func(headers ...protocol.Header) http.Header {
		t.Helper()
		if _, err := perform(t.Context(), call("GET", headers...)); err != nil {
			t.Fatal(err)
		}
		return got
	}
	h := send(protocol.Header{Name: "x-OWN", Value: "caf\u00e9"}, protocol.Header{Name: "user-AGENT", Value: "mine"}, protocol.Header{Name: "accept", Value: "a/b"})
	if v := raw()["x-OWN"]; len(v) != 1 || v[0] != "caf\xe9" {
		t.Errorf("names and bytes are not kept: %q", h)
	}
	if h.Get("User-Agent") != "mine" || len(h["User-Agent"]) != 1 || raw()["accept"][0] != "a/b" || h["Accept"] != nil {
		t.Errorf("defaults come beside what was set: %q", h)
	}
	if h := send(); h.Get("User-Agent") != fetch.UserAgent || h.Get("Accept") != "*/*" || !strings.Contains(h.Get("Accept-Encoding"), "gzip") {
		t.Errorf("defaults %q", h)
	}
	if h := send(protocol.Header{Name: "range", Value: "bytes=0-1"}); h.Get("Accept-Encoding") != "identity" {
		t.Errorf("a range of %q", h.Get("Accept-Encoding"))
	}
}

func TestHeadOfAResponse(t *testing.T) {
	for _, c := range []struct {
		name, status string
		method       string
		text         string
		body         bool
	}{
		{"usual", "200 OK", "GET", "OK", true},
		{"no text", "200", "GET", "", true},
		{"text of bytes", "200 \xe9t\xe9", "GET", "\u00e9t\u00e9", true},
		{"no content", "204 No Content", "GET", "No Content", false},
		{"only the head", "200 OK", "HEAD", "OK", false},
	} {
		t.Run(c.name, func(t *testing.T) {
			perform := fetch.Over(transport(func(*http.Request) (*http.Response, error) {
				return reply(c.status, "x", "B", "2", "A", "1", "B", "3"), nil
			}))
			r, err := perform(t.Context(), call(c.method))
			if err != nil {
				t.Fatal(err)
			}
			want := []protocol.Header{{Name: "a", Value: "1"}, {Name: "b", Value: "2"}, {Name: "b", Value: "3"}}
			if r.StatusText != c.text || (r.Body != nil) != c.body || len(r.Headers) != 3 || r.Headers[0] != want[0] || r.Headers[1] != want[1] || r.Headers[2] != want[2] {
				t.Errorf("%+v", r)
			}
		})
	}
}

// TestCodings: every coding that is asked for is decoded, the last one first.
func TestCodings(t *testing.T) {
	packed := func(open func(io.Writer) io.WriteCloser, text string) string {
		var b bytes.Buffer
		w := open(&b)
		_, _ = io.WriteString(w, text)
		_ = w.Close()
		return b.String()
	}
	zip := func(w io.Writer) io.WriteCloser { return zlib.NewWriter(w) }
	bare := func(w io.Writer) io.WriteCloser { f, _ := flate.NewWriter(w, 5); return f }
	br := func(w io.Writer) io.WriteCloser { return brotli.NewWriter(w) }
	for name, c := range map[string][2]string{
		"deflate":      {"deflate", packed(zip, "text")},
		"bare deflate": {"deflate", packed(bare, "text")},
		"brotli":       {"BR", packed(br, "text")},
		"two":          {"deflate, br", packed(br, packed(zip, "text"))},
		"empty":        {"deflate", ""},
	} {
		perform := fetch.Over(transport(func(*http.Request) (*http.Response, error) {
			return reply("200 OK", c[1], "Content-Encoding", c[0]), nil
		}))
		r, err := perform(t.Context(), call("GET"))
		if err != nil {
			t.Fatal(err)
		}
		want := "text"
		if c[1] == "" {
			want = ""
		}
		if got, err := io.ReadAll(r.Body); err != nil || string(got) != want {
			t.Errorf("%s: got %q, %v", name, got, err)
		}
	}
}

// TestFailures: the program learns what failed, and no address of the host's.
func TestFailures(t *testing.T) {
	typed := &protocol.ThrownError{Name: "TypeError", Message: "fetch: not allowed", Code: "EGRESS"}
	for name, c := range map[string]struct {
		err  error
		code string
		part string
	}{
		"of the network": {errors.New("dial tcp 10.1.2.3:80: connection refused"), fetch.NetworkFailure, "exchange failed"},
		"in time":        {context.DeadlineExceeded, fetch.NetworkFailure, "too long"},
		"typed":          {typed, "EGRESS", "not allowed"},
	} {
		perform := fetch.Over(transport(func(*http.Request) (*http.Response, error) { return nil, c.err }))
		_, err := perform(t.Context(), call("GET"))
		var thrown *protocol.ThrownError
		if !errors.As(err, &thrown) || thrown.Name != "TypeError" || thrown.Code != c.code || !strings.Contains(thrown.Message, c.part) || strings.Contains(thrown.Message, "10.1.2.3") {
			t.Errorf("%s: %v", name, err)
		}
	}
	perform := fetch.Over(transport(func(*http.Request) (*http.Response, error) {
		t.Error("a request that is none was sent")
		return nil, nil
	}))
	bad := call("GET")
	bad.URL = "file:///etc/passwd"
	if _, err := perform(t.Context(), bad); err == nil {
		t.Error("a file was fetched")
	}
}
