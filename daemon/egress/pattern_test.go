package egress

import (
	"net/netip"
	"strings"
	"testing"
)

func TestPatterns(t *testing.T) {
	cases := []struct {
		pattern string
		yes, no []string
	}{
		{
			"https://api.example.com",
			[]string{"https://api.example.com/", "https://api.example.com:443/x", "https://API.example.com/", "https://api.example.com./"},
			[]string{"http://api.example.com/", "https://api.example.com:8443/", "https://example.com/", "https://x.api.example.com/", "https://api.example.com.evil.org/"},
		},
		{
			"https://*.example.com",
			[]string{"https://a.example.com/", "https://a.b.example.com/"},
			[]string{"https://example.com/", "https://badexample.com/", "https://example.com.evil.org/", "http://a.example.com/"},
		},
		{"http://*.example.com:8080", []string{"http://a.example.com:8080/"}, []string{"http://a.example.com/", "http://example.com:8080/"}},
		{"http://*", []string{"http://example.com/", "http://10.0.0.1/", "http://[::1]/"}, []string{"http://example.com:8080/", "https://example.com/"}},
		{"https://*:*", []string{"https://example.com:1/", "https://example.com/"}, []string{"http://example.com/"}},
		{"HTTPS://Example.COM:8443", []string{"https://example.com:8443/"}, []string{"https://example.com/"}},
		{"http://127.0.0.1:80", []string{"http://127.0.0.1/", "http://[::ffff:127.0.0.1]/"}, []string{"http://127.0.0.2/", "http://localhost/"}},
		{"http://[2001:DB8::1]:81", []string{"http://[2001:db8:0::1]:81/"}, []string{"http://[2001:db8::2]:81/", "http://[2001:db8::1]/"}},
	}
	for _, c := range cases {
		p, err := ParsePattern(c.pattern)
		if err != nil {
			t.Errorf("%s: %v", c.pattern, err)
			continue
		}
		e := Egress{config: Config{Allow: []Pattern{p}}}
		for _, u := range c.yes {
			if err := e.allowed(u); err != nil {
				t.Errorf("%s refuses %s: %v", c.pattern, u, err)
			}
		}
		for _, u := range c.no {
			if e.allowed(u) == nil {
				t.Errorf("%s allows %s", c.pattern, u)
			}
		}
		if again, err := ParsePattern(p.String()); err != nil || again != p {
			t.Errorf("%s is %s, which is %+v, %v", c.pattern, p, again, err)
		}
	}
}

func TestPatternsThatAreNone(t *testing.T) {
	for _, text := range []string{
		"", "example.com", "*", "ftp://x", "https://", "https:///x", "https://x/", "https://x/path", "https://x:0", "https://x:65536", "https://x:",
		"https://x:8x", "https://u@x", "https://*x", "https://x.*", "https://a.*.b", "https://**.b", "https://*.", "https://.b", "https://a..b", "https://é.com",
		"https://[::1", "https://::1", "https://[1.2.3.4]", "https://[fe80::1%25eth0]", "https://[::1]x", "https://[::1]:", "https://*.1.2.3.4", "https://a b",
		"https://x?", "https://x#", "https://" + strings.Repeat("a", 64) + ".com", "https://" + strings.Repeat("a.", 200) + "com",
	} {
		if p, err := ParsePattern(text); err == nil {
			t.Errorf("%q is %+v", text, p)
		} else if len(err.Error()) > 250 {
			t.Errorf("%q: %v", text, err)
		}
	}
}

// FuzzParsePattern: what is accepted means one thing, and never more than it says.
func FuzzParsePattern(f *testing.F) {
	for _, text := range []string{"https://api.example.com", "http://*.b:8080", "https://*:*", "http://[::1]:80", "http://1.2.3.4", "https://x:443"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		p, err := ParsePattern(text)
		if err != nil {
			return
		}
		again, err := ParsePattern(p.String())
		if err != nil || again != p {
			t.Fatalf("%q is %+v, written %q, which is %+v, %v", text, p, p.String(), again, err)
		}
		if p.host != "*" && p.matches(p.scheme, "other.invalid.example", 1) && !strings.HasSuffix("other.invalid.example", p.host) {
			t.Fatalf("%q matches what it does not name", text)
		}
		if p.scheme == "https" && p.matches("http", p.host, p.port) {
			t.Fatalf("%q matches another scheme", text)
		}
	})
}

func TestPublic(t *testing.T) {
	for _, text := range []string{
		"8.8.8.8", "1.1.1.1", "172.15.255.255", "172.32.0.1", "100.63.0.1", "100.128.0.1", "192.0.1.1", "198.17.0.1", "198.20.0.1", "169.253.0.1", "223.255.255.255",
		"2606:4700::1111", "2a00:1450::1", "::ffff:8.8.8.8", "64:ff9b::8.8.8.8", "2002:808:808::1",
	} {
		if !public(netip.MustParseAddr(text)) {
			t.Errorf("%s is not public", text)
		}
	}
	for _, text := range []string{
		"0.0.0.0", "0.1.2.3", "10.0.0.1", "10.255.255.255", "100.64.0.1", "100.100.100.200", "127.0.0.1", "127.255.0.1", "169.254.169.254", "172.16.0.1", "172.31.255.255",
		"192.0.0.192", "192.0.2.1", "192.88.99.1", "192.168.1.1", "198.18.0.1", "198.19.255.255", "198.51.100.7", "203.0.113.7", "224.0.0.1", "239.1.1.1", "240.0.0.1",
		"255.255.255.255", "168.63.129.16",
		"::", "::1", "::127.0.0.1", "::8.8.8.8", "fc00::1", "fd00:ec2::254", "fe80::1", "fe80::1%eth0", "fec0::1", "ff02::1", "100::1", "2001::1", "2001:10::1", "2001:db8::1", "3fff::1", "5f00::1",
		"64:ff9b:1::8.8.8.8", "64:ff9b::10.0.0.1", "64:ff9b::a9fe:a9fe", "2002:7f00:1::1", "2002:a9fe:a9fe::", "2002:c0a8:101::1",
		"::ffff:127.0.0.1", "::ffff:169.254.169.254", "::ffff:10.0.0.1", "::ffff:0:127.0.0.1",
	} {
		if public(netip.MustParseAddr(text)) {
			t.Errorf("%s is public", text)
		}
	}
}
