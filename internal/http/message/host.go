package message

import (
	"net/netip"
	"strings"
)

// maxHost is the maximum length in bytes of a Host header field: a name of 253 characters, a trailing dot, a colon and
// a port.
const maxHost = 260

// ValidHost reports whether host is a name or an IP address, with or without a port. It rejects percent signs (although
// RFC 3986 allows them in names), IPv6 zones, and names that consist only of dots, because no real host uses them.
func ValidHost(host string) bool {
	if host == "" || len(host) > maxHost {
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

// hasLabel reports whether a host name contains anything except dots.
func hasLabel(name string) bool { return strings.Trim(name, ".") != "" }

// validPort reports whether port is a colon, optionally followed by digits. port must not be empty.
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

// ofHost marks the characters that ValidHost allows in host names: the characters that RFC 3986 3.2.2 allows, except
// the percent sign.
var ofHost = func() (all [256]bool) {
	for c := range all {
		all[c] = 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || '0' <= c && c <= '9'
	}
	for _, c := range []byte("-._~!$&'()*+,;=") {
		all[c] = true
	}
	return all
}()
