package egress

import (
	"fmt"
	"net/netip"
	"strconv"
	"strings"
)

// Pattern is one entry of the list of what may be reached: scheme://host[:port]. The host is a name, an address, "*." and
// a name for all names below that, or "*" for any. Without a port it is the scheme's own; "*" is any.
type Pattern struct {
	scheme string // http or https
	host   string // lower case; "*" for any
	below  bool   // names below host only
	port   uint16 // 0 for any
}

// maxPatternBytes is more than a URL's origin can have.
const maxPatternBytes = 300

// defaultPorts by scheme.
var defaultPorts = map[string]uint16{"http": 80, "https": 443}

// ParsePattern reads a pattern.
func ParsePattern(text string) (Pattern, error) {
	fault := func(reason string, args ...any) (Pattern, error) {
		return Pattern{}, fmt.Errorf("cannot read %.80q: %s", text, fmt.Sprintf(reason, args...))
	}
	scheme, rest, found := strings.Cut(strings.ToLower(text), "://")
	if len(text) > maxPatternBytes || !found || defaultPorts[scheme] == 0 {
		return fault("it must be http://host[:port] or https://host[:port]")
	}
	host, port, err := splitPort(rest)
	if err != nil {
		return fault("%s", err)
	}
	p := Pattern{scheme: scheme, port: defaultPorts[scheme]}
	switch {
	case port == "*":
		p.port = 0
	case port != "":
		n, err := strconv.ParseUint(port, 10, 16)
		if err != nil || n == 0 {
			return fault("its port must be a number from 1 to 65535, or *")
		}
		p.port = uint16(n)
	}
	if host == "*" {
		p.host = host
		return p, nil
	}
	if host, p.below = strings.CutPrefix(host, "*."); !validHost(host) || p.below && isAddress(host) {
		return fault("its host must be a name, an address, *.name or *")
	}
	p.host = canonical(host)
	return p, nil
}

// UnmarshalText is ParsePattern, for settings.
func (p *Pattern) UnmarshalText(text []byte) (err error) {
	*p, err = ParsePattern(string(text))
	return err
}

// splitPort cuts host:port, where an IPv6 address is in brackets. An absent port is empty.
func splitPort(text string) (host, port string, err error) {
	if rest, ok := strings.CutPrefix(text, "["); ok {
		host, rest, ok = strings.Cut(rest, "]")
		port, isPort := strings.CutPrefix(rest, ":")
		if address, err := netip.ParseAddr(host); !ok || err != nil || !address.Is6() || rest != "" && !isPort || isPort && port == "" {
			return "", "", fmt.Errorf("what stands in brackets must be an IPv6 address, and only a port may follow")
		}
		return host, port, nil
	}
	host, port, found := strings.Cut(text, ":")
	if found && port == "" {
		return "", "", fmt.Errorf("its port is empty")
	}
	return host, port, nil
}

// validHost tells that host is an address without a zone, or a name of ASCII letters, digits, hyphens and underscores.
func validHost(host string) bool {
	if address, err := netip.ParseAddr(host); err == nil {
		return address.Zone() == ""
	}
	if len(host) > 253 {
		return false
	}
	for label := range strings.SplitSeq(host, ".") {
		if label == "" || len(label) > 63 || strings.ContainsFunc(label, notName) {
			return false
		}
	}
	return true
}

func notName(r rune) bool {
	return !('a' <= r && r <= 'z' || 'A' <= r && r <= 'Z' || '0' <= r && r <= '9' || r == '-' || r == '_')
}

func isAddress(host string) bool {
	_, err := netip.ParseAddr(host)
	return err == nil
}

// canonical gives every spelling of a host one form.
func canonical(host string) string {
	if address, err := netip.ParseAddr(host); err == nil {
		return address.Unmap().String()
	}
	return strings.ToLower(host)
}

// String is the pattern as ParsePattern reads it.
func (p Pattern) String() string {
	host := p.host
	if p.below {
		host = "*." + host
	}
	if strings.Contains(host, ":") {
		host = "[" + host + "]"
	}
	switch p.port {
	case defaultPorts[p.scheme]:
		return p.scheme + "://" + host
	case 0:
		return p.scheme + "://" + host + ":*"
	}
	return p.scheme + "://" + host + ":" + strconv.Itoa(int(p.port))
}

// matches compares with a host in canonical form.
func (p Pattern) matches(scheme, host string, port uint16) bool {
	switch {
	case p.scheme != scheme, p.port != 0 && p.port != port:
		return false
	case p.host == "*":
		return true
	case p.below:
		return strings.HasSuffix(host, "."+p.host)
	}
	return p.host == host
}
