package egress

import "net/netip"

// special are the ranges that no program reaches unless the operator excepts them: those of the IANA registries of
// special-purpose addresses (as of 2025-10), multicast, and addresses of clouds' metadata outside of them.
var special = prefixes(
	"0.0.0.0/8", "10.0.0.0/8", "100.64.0.0/10", "127.0.0.0/8", "169.254.0.0/16", "172.16.0.0/12", "192.0.0.0/24",
	"192.0.2.0/24", "192.88.99.0/24", "192.168.0.0/16", "198.18.0.0/15", "198.51.100.0/24", "203.0.113.0/24",
	"224.0.0.0/4", "240.0.0.0/4",
	"168.63.129.16/32", // Azure's, in public space
	"2001::/23",        // of protocols, Teredo among them
	"2001:db8::/32", "3fff::/20",
)

// global is the only IPv6 space with addresses of the Internet.
var global = netip.MustParsePrefix("2000::/3")

// Addresses that stand for an IPv4 address, and where its 4 bytes are.
var embedded = []struct {
	prefix netip.Prefix
	at     int
}{
	{netip.MustParsePrefix("64:ff9b::/96"), 12}, // NAT64 (RFC 6052); 64:ff9b:1::/48 is for local use and never global
	{netip.MustParsePrefix("2002::/16"), 2},     // 6to4 (RFC 3056)
}

func prefixes(list ...string) []netip.Prefix {
	parsed := make([]netip.Prefix, len(list))
	for i, text := range list {
		parsed[i] = netip.MustParsePrefix(text)
	}
	return parsed
}

// public tells that an address belongs to the Internet. One that stands for an IPv4 address is judged as that.
func public(a netip.Addr) bool {
	a = plain(a)
	return (a.Is4() || global.Contains(a)) && !within(a, special)
}

// plain is the IPv4 address that a stands for, or a itself without a zone.
func plain(a netip.Addr) netip.Addr {
	a = a.Unmap().WithZone("")
	for _, e := range embedded {
		if e.prefix.Contains(a) {
			b := a.As16()
			return netip.AddrFrom4([4]byte(b[e.at : e.at+4]))
		}
	}
	return a
}

func within(a netip.Addr, list []netip.Prefix) bool {
	for _, p := range list {
		if p.Contains(a) {
			return true
		}
	}
	return false
}
