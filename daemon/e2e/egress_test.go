package e2e

import (
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/executord/executord/ipc/protocol"
	"github.com/executord/executord/ipc/testbin"
)

// The tests of this file are named after publicly reported faults; see sandbox/testdata/faults.md.

// at is a server on an address of this machine. It counts what reaches it, and redirects /to?URL there.
func at(tb testing.TB, address string) (url string, reached *atomic.Int64) {
	tb.Helper()
	l, err := net.Listen("tcp", net.JoinHostPort(address, "0"))
	if err != nil {
		tb.Fatal(err)
	}
	reached = new(atomic.Int64)
	s := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		reached.Add(1)
		if r.URL.Path == "/to" {
			http.Redirect(w, r, r.URL.RawQuery, http.StatusFound)
			return
		}
		w.Write([]byte("secret"))
	}))
	s.Listener.Close()
	s.Listener = l
	s.Start()
	tb.Cleanup(s.Close)
	return s.URL, reached
}

// TestI5RedirectsAreHeldToThePolicy: each hop is asked about like the first request, and what is refused is not reached.
func TestI5RedirectsAreHeldToThePolicy(t *testing.T) {
	allowed, _ := at(t, "127.0.0.1")
	other, reached := at(t, "127.0.0.1")
	service := start(t, testbin.Worker(t), "--workers=1", "--egress-allow", allowed, "--egress-allow", "http://169.254.169.254", "--egress-allow-private", "127.0.0.1/32")
	c := service.dial()
	defer c.Close()
	for name, address := range map[string]string{
		"to a metadata address":         allowed + "/to?http://169.254.169.254/latest/meta-data/iam",
		"to another server":             allowed + "/to?" + other + "/",
		"through a second hop":          allowed + "/to?" + allowed + "/to?" + other + "/",
		"to another scheme":             allowed + "/to?file:///etc/passwd",
		"to a metadata address by name": allowed + "/to?http://metadata.google.internal/",
		"to an address in hexadecimal":  allowed + "/to?http://0xa9fea9fe/",
		"to the same port of any":       allowed + "/to?" + strings.Replace(allowed, "127.0.0.1", "0.0.0.0", 1) + "/",
	} {
		t.Run(name, func(t *testing.T) {
			for _, mode := range []string{"follow", "error"} {
				code := `try { await (await fetch("` + address + `", { redirect: "` + mode + `" })).text() } catch (e) { return e.name }`
				wantOnline(t, c, online(protocol.NetworkDirect, code, ""), `"TypeError"`)
			}
		})
	}
	if n := reached.Load(); n != 0 {
		t.Errorf("%d requests reached a server that is not allowed", n)
	}
	wantOnline(t, c, online(protocol.NetworkDirect, `return (await fetch("`+allowed+`/to?`+allowed+`/")).text()`, ""), `"secret"`)
}

// TestI7ExceptionsAdd: an exception to a built-in list adds to what holds; it does not take the list's place.
func TestI7ExceptionsAdd(t *testing.T) {
	first, _ := at(t, "127.0.0.1")
	second, reached := at(t, "127.0.0.2")
	get := func(url string) string {
		return `try { return await (await fetch("` + url + `/")).text() } catch (e) { return e.name }`
	}
	arguments := []string{"--workers=1", "--egress-allow", first, "--egress-allow", second, "--egress-allow-private", "127.0.0.1/32"}
	for _, tc := range []struct {
		name   string
		more   []string
		second string
	}{
		{"one address", nil, `"TypeError"`},
		{"another one besides", []string{"--egress-allow-private", "127.0.0.2/32"}, `"secret"`},
	} {
		t.Run(tc.name, func(t *testing.T) {
			c := start(t, testbin.Worker(t), append(arguments, tc.more...)...).dial()
			defer c.Close()
			before := reached.Load()
			wantOnline(t, c, online(protocol.NetworkDirect, get(first), ""), `"secret"`)
			wantOnline(t, c, online(protocol.NetworkDirect, get(second), ""), tc.second)
			if tc.more == nil && reached.Load() != before {
				t.Error("an address that is not among the exceptions was reached")
			}
		})
	}
}
