package admin

import (
	"bytes"
	"context"
	"io"
	"net"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/getkin/kin-openapi/openapi3"
	"github.com/getkin/kin-openapi/openapi3filter"
	"github.com/getkin/kin-openapi/routers"
	"github.com/getkin/kin-openapi/routers/gorillamux"
)

// request makes a request by hand.
func (b *bench) request(method, path, body string, header ...string) (*http.Request, *http.Response, []byte) {
	b.t.Helper()
	r, err := http.NewRequestWithContext(b.t.Context(), method, "http://executord"+path, strings.NewReader(body))
	if err != nil {
		b.t.Fatal(err)
	}
	if body != "" {
		r.Header.Set("Content-Type", "application/json")
	}
	for i := 0; i < len(header); i += 2 {
		if header[i] == "Host" {
			r.Host = header[i+1]
		}
		r.Header.Set(header[i], header[i+1])
	}
	c := &http.Client{Transport: &http.Transport{DisableKeepAlives: true, DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		var d net.Dialer
		return d.DialContext(ctx, "unix", b.socket)
	}}}
	response, err := c.Do(r)
	if err != nil {
		b.t.Fatal(err)
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	if err != nil {
		b.t.Fatal(err)
	}
	return r, response, text
}

// TestAnswersAreAsDocumented asks every route, well and badly, and holds the answers against the document.
func TestAnswersAreAsDocumented(t *testing.T) {
	doc, err := openapi3.NewLoader().LoadFromData(openapiText)
	if err != nil {
		t.Fatal(err)
	}
	router, err := gorillamux.NewRouter(doc)
	if err != nil {
		t.Fatal(err)
	}
	b := start(t, nil)
	ended := b.run("mine", "console.log('x'); for (;;);")
	running := b.pool.Executions()[0].ID
	asked := map[string]bool{}
	for _, c := range []struct {
		method, path, body string
		status             int
	}{
		{"GET", "/v1/status", "", 200},
		{"GET", "/v1/settings", "", 200},
		{"GET", "/v1/workers", "", 200},
		{"GET", "/v1/workers/worker-1", "", 200},
		{"GET", "/v1/workers/worker-99", "", 404},
		{"POST", "/v1/workers/worker-1/retire", "", 200},
		{"POST", "/v1/workers/nobody/retire", "", 404},
		{"GET", "/v1/executions", "", 200},
		{"GET", "/v1/executions?state=running,queued&limit=1&session=none", "", 200},
		{"GET", "/v1/executions?limit=0", "", 400},
		{"GET", "/v1/executions?outcome=splendid", "", 400},
		{"GET", "/v1/executions/mine", "", 200},
		{"GET", "/v1/executions/" + running, "", 200},
		{"GET", "/v1/executions/none", "", 404},
		{"POST", "/v1/executions/mine/cancel", `{"reason":"because"}`, 200},
		{"POST", "/v1/executions/none/cancel", ``, 404},
		{"GET", "/v1/sessions", "", 200},
		{"GET", "/v1/events?after=0&follow=false", "", 200},
		{"GET", "/v1/events?kind=nothing", "", 400},
		{"GET", "/v1/maintenance", "", 200},
		{"PUT", "/v1/maintenance", `{"reason":"update"}`, 200},
		{"PUT", "/v1/maintenance", `{"reason":"refuse"}`, 409},
		{"PUT", "/v1/maintenance", `{"reason":"  "}`, 400},
		{"DELETE", "/v1/maintenance", "", 200},
		{"POST", "/v1/check", "", 200},
		{"GET", "/v1/log-level", "", 200},
		{"PUT", "/v1/log-level", `{"level":"debug"}`, 200},
		{"PUT", "/v1/log-level", `{"level":"loud"}`, 400},
		{"POST", "/v1/reload", "", 200},
		{"GET", "/v1/metrics", "", 200},
		{"GET", "/v1/openapi.json", "", 200},
	} {
		t.Run(c.method+" "+c.path, func(t *testing.T) {
			r, response, text := b.request(c.method, c.path, c.body)
			if response.StatusCode != c.status {
				t.Fatalf("status %d: %s", response.StatusCode, text)
			}
			route, values, err := router.FindRoute(r)
			if err != nil {
				t.Fatal(err)
			}
			asked[route.Method+" "+route.Path] = true
			validate(t, r, route, values, response, text)
		})
	}
	<-ended
	for _, to := range api() {
		if !asked[to.Method+" "+to.Path] {
			t.Errorf("%s %s was not asked", to.Method, to.Path)
		}
	}
}

func validate(t *testing.T, r *http.Request, route *routers.Route, values map[string]string, response *http.Response, text []byte) {
	t.Helper()
	if kind := response.Header.Get("Content-Type"); !strings.HasPrefix(kind, "application/json") {
		for known := range route.Operation.Responses.Value("200").Value.Content {
			if !strings.HasPrefix(kind, known) {
				t.Errorf("answer of type %s, not %s", kind, known)
			}
		}
		return
	}
	in := &openapi3filter.ResponseValidationInput{
		RequestValidationInput: &openapi3filter.RequestValidationInput{Request: r, Route: route, PathParams: values},
		Status:                 response.StatusCode, Header: response.Header, Body: io.NopCloser(bytes.NewReader(text)),
	}
	if err := openapi3filter.ValidateResponse(t.Context(), in); err != nil {
		t.Errorf("%s\n%s", err, text)
	}
}

// TestTheTableIsWhole: what a route lacks, nobody could use.
func TestTheTableIsWhole(t *testing.T) {
	for _, to := range Routes() {
		if to.Summary == "" || to.Command == "" || to.Out == nil || to.handle == nil || !strings.HasSuffix(to.Summary, ".") ||
			!slices.Contains([]Right{Read, Operate}, to.May) {
			t.Errorf("%s %s is incomplete", to.Method, to.Path)
		}
		if changes := to.Method != http.MethodGet; changes != (to.May == Operate) {
			t.Errorf("%s %s may be done by whoever may %s", to.Method, to.Path, to.May)
		}
	}
}

// TestWrongRequests: each gets a typed error and does nothing.
func TestWrongRequests(t *testing.T) {
	b := start(t, nil)
	for _, c := range []struct {
		name, method, path, body string
		header                   []string
		status                   int
		want                     string
	}{
		{"nothing there", "GET", "/v1/nothing", "", nil, 404, `"type":"unknown_method"`},
		{"another verb", "POST", "/v1/status", "", nil, 405, "/v1/status takes GET"},
		{"a large body", "PUT", "/v1/log-level", strings.Repeat(" ", maxBodyBytes+1), nil, 413, "more than"},
		{"no JSON", "PUT", "/v1/log-level", "level=debug", nil, 400, "invalid_params"},
		{"two values", "PUT", "/v1/log-level", `{"level":"debug"}{}`, nil, 400, "more than one"},
		{"an unknown field", "PUT", "/v1/log-level", `{"lvl":"debug"}`, nil, 400, `unknown field \"lvl\"`},
		{"a form", "PUT", "/v1/log-level", `{"level":"debug"}`, []string{"Content-Type", "text/plain"}, 415, "application/json"},
		{"a long reason", "PUT", "/v1/maintenance", `{"reason":"` + strings.Repeat("x", maxReasonBytes+1) + `"}`, nil, 400, "512 bytes"},
		{"a long reason to cancel", "POST", "/v1/executions/x/cancel", `{"reason":"` + strings.Repeat("x", maxReasonBytes+1) + `"}`, nil, 400, "512 bytes"},
		{"a misspelt filter", "GET", "/v1/executions?stat=running", "", nil, 400, "stat"},
		{"a state that is none", "GET", "/v1/executions?state=idle", "", nil, 400, "state"},
		{"a bad number", "GET", "/v1/events?after=-1", "", nil, 400, "after"},
		{"a bad id", "GET", "/v1/events", "", []string{"Last-Event-ID", "x"}, 400, "Last-Event-ID"},
		{"a bad switch", "GET", "/v1/events?follow=perhaps", "", nil, 400, "follow"},
		{"a name of a web site", "GET", "/v1/status", "", []string{"Host", "evil.example"}, 403, "Host"},
		{"another page", "POST", "/v1/reload", "", []string{"Origin", "http://evil.example"}, 403, "web pages"},
		{"a page of no origin", "POST", "/v1/reload", "", []string{"Origin", "null"}, 403, "web pages"},
		{"a look from another page", "GET", "/v1/status", "", []string{"Sec-Fetch-Site", "cross-site"}, 403, "web pages"},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, response, text := b.request(c.method, c.path, c.body, c.header...)
			if response.StatusCode != c.status || !strings.Contains(string(text), c.want) || !strings.Contains(string(text), `"error":{"type":"`) {
				t.Errorf("status %d: %s", response.StatusCode, text)
			}
			if len(response.Header["Access-Control-Allow-Origin"]) > 0 {
				t.Error("other pages may read it")
			}
		})
	}
	if b.level.Level() != 0 || b.service.Maintenance().Active {
		t.Error("a refused request did something")
	}
}

// TestW13OwnPageAndForwardedPort: a page that the app itself serves may ask, also where the socket is forwarded to a port.
func TestW13OwnPageAndForwardedPort(t *testing.T) {
	b := start(t, nil)
	for _, header := range [][]string{
		{"Host", "localhost:8080", "Origin", "http://localhost:8080", "Sec-Fetch-Site", "same-origin"},
		{"Host", "127.0.0.1:8080", "Origin", "http://127.0.0.1:8080"},
		{"Host", "[::1]:8080"},
		{"Host", "localhost", "Sec-Fetch-Site", "none"},
	} {
		if _, response, text := b.request("GET", "/v1/status", "", header...); response.StatusCode != 200 {
			t.Errorf("%q: status %d: %s", header, response.StatusCode, text)
		}
	}
}
