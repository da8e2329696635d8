package admin

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strings"
	"testing"

	"github.com/executord/executord/daemon/events"
)

// TestW13ThePageIsServed: also where the socket is forwarded to a port, as ssh -L does, and only with its policy.
func TestW13ThePageIsServed(t *testing.T) {
	b := start(t, nil)
	for path, kind := range map[string]Text{"/": htmlText, "/page.css": cssText, "/page.js": scriptText} {
		t.Run(path, func(t *testing.T) {
			_, response, text := b.request("GET", path, "", "Host", "localhost:8080", "Sec-Fetch-Site", "none")
			h := response.Header
			if response.StatusCode != 200 || h.Get("Content-Type") != string(kind) || len(text) < 1000 {
				t.Fatalf("status %d, %q, %d bytes", response.StatusCode, h.Get("Content-Type"), len(text))
			}
			for _, rule := range []string{
				"default-src 'none'", "script-src 'self'", "style-src 'self'", "connect-src 'self'", "img-src data: 'self'", "base-uri 'none'",
				"form-action 'none'", "frame-ancestors 'none'", "require-trusted-types-for 'script'", "trusted-types 'none'",
			} {
				if !strings.Contains(h.Get("Content-Security-Policy")+";", rule+";") {
					t.Errorf("the policy lacks %s: %s", rule, h.Get("Content-Security-Policy"))
				}
			}
			if h.Get("X-Content-Type-Options") != "nosniff" || h.Get("Referrer-Policy") != "no-referrer" || h.Get("Cache-Control") != "no-store" ||
				h.Get("Cross-Origin-Resource-Policy") != "same-origin" {
				t.Errorf("headers %v", h)
			}
		})
	}
	for _, header := range [][]string{{"Host", "evil.example"}, {"Sec-Fetch-Site", "cross-site"}} {
		if _, response, _ := b.request("GET", "/", "", header...); response.StatusCode != 403 {
			t.Errorf("%q: status %d", header, response.StatusCode)
		}
	}
	if _, response, _ := b.request("POST", "/", ""); response.StatusCode != 405 {
		t.Errorf("POST: status %d", response.StatusCode)
	}
}

// The page has three files of its own and nothing else: no script, style or address of anybody else in them.
func TestThePageIsWhole(t *testing.T) {
	read := func(name string) string {
		text, err := pageFiles.ReadFile("page/" + name)
		if err != nil {
			t.Fatal(err)
		}
		return string(text)
	}
	page, script := read("page.html"), read("page.js")
	for what, never := range map[string]string{"inline script": `<script(>| [^>]*>[^<])`, "inline style": `<style| style=`, "handler": ` on\w+=`} {
		if found := regexp.MustCompile(never).FindString(page); found != "" {
			t.Errorf("the page has an %s: %s", what, found)
		}
	}
	for _, text := range []string{page, script, read("page.css")} {
		if found := regexp.MustCompile(`\w+://\S+`).FindAllString(strings.ReplaceAll(text, "http://www.w3.org/2000/svg", ""), -1); found != nil {
			t.Errorf("the page knows other places: %q", found)
		}
	}
	for _, k := range events.Kinds() {
		if !strings.Contains(script, fmt.Sprintf("%q", k)) {
			t.Errorf("the page does not listen for %s", k)
		}
	}
	for _, m := range regexp.MustCompile(`find\("([\w-]+)"\)`).FindAllStringSubmatch(script, -1) {
		if !strings.Contains(page, ` id="`+m[1]+`"`) {
			t.Errorf("the page has no element %q", m[1])
		}
	}
}

// TestU5APortIsForWhoeverHasItsSecret: to look, and no more.
func TestU5APortIsForWhoeverHasItsSecret(t *testing.T) {
	b := start(t, nil)
	port := httptest.NewServer(b.PageHandler("secret"))
	defer port.Close()
	for _, c := range []struct {
		method, path, host string
		status             int
	}{
		{"GET", "/secret/", "", 200},
		{"GET", "/secret/page.js", "", 200},
		{"GET", "/secret/v1/status", "", 200},
		{"GET", "/secret/v1/executions?limit=0", "", 400}, // the query arrives
		{"GET", "/secret/v1/executions/none", "", 404},
		{"GET", "/secret/v1/status", "evil.example", 403},
		{"GET", "/", "", 404},
		{"GET", "/v1/status", "", 404},
		{"GET", "/secret", "", 404},
		{"GET", "/Secret/v1/status", "", 404},
		{"GET", "/secre/v1/status", "", 404},
		{"GET", "/secret2/v1/status", "", 404},
		{"GET", "//secret/v1/status", "", 404},
		{"GET", "/x/../secret/v1/status", "", 404},
		{"PUT", "/secret/v1/maintenance", "", 405},
		{"POST", "/secret/v1/reload", "", 405},
		{"POST", "/v1/reload", "", 404},
	} {
		t.Run(c.method+" "+c.path+" "+c.host, func(t *testing.T) {
			r, err := http.NewRequestWithContext(t.Context(), c.method, port.URL+c.path, strings.NewReader(`{"reason":"x"}`))
			if err != nil {
				t.Fatal(err)
			}
			r.Host = c.host
			r.Header.Set("Content-Type", "application/json")
			response, err := http.DefaultTransport.RoundTrip(r)
			if err != nil {
				t.Fatal(err)
			}
			defer response.Body.Close()
			if response.StatusCode != c.status {
				t.Errorf("status %d", response.StatusCode)
			}
		})
	}
	if b.service.Maintenance().Active {
		t.Error("a look has changed something")
	}
	b.stop()
	response, err := http.Get(port.URL + "/secret/v1/status")
	if err != nil || response.StatusCode != http.StatusBadGateway {
		t.Fatalf("without a service: %v, %v", response, err)
	}
	_ = response.Body.Close()
}
