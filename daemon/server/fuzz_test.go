package server

import (
	"net/http"
	"net/netip"
	"strings"
	"testing"
)

// FuzzIdentify: whatever stands in the headers, nobody gets in on TCP without the secret, from a page that is not on the
// list, or by a name that an outsider could point here.
func FuzzIdentify(f *testing.F) {
	for _, seed := range [][3]string{
		{"localhost", "", "Bearer " + secretA},
		{"[::1]:80", "https://app.example", "bearer  " + secretA + " "},
		{"127.0.0.1:7410", "null", "Basic " + secretA},
		{"evil.example", "", "Bearer " + secretB},
		{"[127.0.0.1", "https://app.example,", ""},
		{"", "\x00", "Bearer"},
	} {
		f.Add(seed[0], seed[1], seed[2])
	}
	policy := Policy{Origins: []string{"https://app.example"}, Tokens: []Token{{"a", secretA}}}
	from := peer{addr: netip.MustParseAddr("192.0.2.1"), local: netip.MustParseAddr("192.0.2.2")}
	f.Fuzz(func(t *testing.T, host, origin, authorization string) {
		r := &http.Request{Host: host, Header: http.Header{"Authorization": {authorization}}}
		if origin != "" {
			r.Header["Origin"] = []string{origin}
		}
		who, no := policy.identify(r, from)
		if (no == nil) != (who.identity != "") {
			t.Fatalf("identity %q, refusal %v", who.identity, no)
		}
		if no != nil {
			return
		}
		if who.identity != "token:a" || !strings.HasSuffix(strings.TrimSpace(authorization), secretA) {
			t.Errorf("%q lets in as %q", authorization, who.identity)
		}
		if origin != "" && origin != "https://app.example" {
			t.Errorf("the origin %q is let in", origin)
		}
		// A name that can be registered has a letter beyond hexadecimal ones in its last part, or is no address.
		if name := strings.ToLower(host); !strings.HasPrefix(name, "localhost") && strings.ContainsAny(name, "ghijklmnopqrstuvwxyz") && !strings.Contains(name, "%") {
			t.Errorf("the host %q is let in", host)
		}
	})
}

func TestHostOnly(t *testing.T) {
	for hostport, want := range map[string]string{
		"localhost": "localhost", "localhost:80": "localhost", "localhost:": "localhost", "127.0.0.1:7410": "127.0.0.1", "[::1]": "::1",
		"[::1]:80": "::1", "[::1]:": "::1",
		"": "", ":80": "", "[::1]:X": "", "[::1]80": "", "[::1": "", "::1": "", "::1]": "", "[localhost]": "", "[127.0.0.1]": "", "localhost:80:80": "",
		"localhost:http": "", "local[host": "", "localhost:-1": "", "[]": "", "[::1]:80]": "",
	} {
		if got, err := HostOnly(hostport); got != want || (err == nil) != (want != "") {
			t.Errorf("%q: %q, %v, want %q", hostport, got, err, want)
		}
	}
}
