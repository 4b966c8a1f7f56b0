package message

import (
	"net/netip"
	"strings"
)

// longestHost is a name of 253 characters with a dot, a colon and a port.
const longestHost = 260

// ValidHost reports whether an authority is a name or an address, with or without a port. It refuses percent signs, which RFC 3986
// allows in names, zones of addresses, and names of dots alone: no host has these.
func ValidHost(host string) bool {
	if host == "" || len(host) > longestHost {
		return false
	}
	if host[0] == '[' {
		address, port, ok := strings.Cut(host[1:], "]")
		ip, err := netip.ParseAddr(address)
		return ok && err == nil && ip.Is6() && ip.Zone() == "" && (port == "" || validPort(port))
	}
	for i := range len(host) {
		if !ofHost[host[i]] {
			return hasLabel(host[:i]) && validPort(host[i:])
		}
	}
	return hasLabel(host)
}

// hasLabel reports whether a name has anything in it but dots.
func hasLabel(name string) bool { return strings.Trim(name, ".") != "" }

// validPort takes a colon and digits, or none of these.
func validPort(port string) bool {
	if port[0] != ':' {
		return false
	}
	for _, c := range []byte(port[1:]) {
		if c < '0' || c > '9' {
			return false
		}
	}
	return true
}

// ofHost are the characters of registered names by RFC 3986 3.2.2.
var ofHost = func() (all [256]bool) {
	for c := range all {
		all[c] = 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || '0' <= c && c <= '9'
	}
	for _, c := range []byte("-._~!$&'()*+,;=") {
		all[c] = true
	}
	return all
}()
