package ir

import (
	"slices"
	"strings"
)

// TLSPolicy limits the TLS versions and cipher suites of a host. The zero value allows TLS 1.2 and 1.3 with Go's secure
// cipher suites.
type TLSPolicy struct {
	// Version is the only allowed TLS version. If it is empty, TLS 1.2 and 1.3 are allowed.
	Version TLSVersion `json:"version,omitempty"`
	// Ciphers lists the IANA names of the allowed cipher suites of TLS 1.2, sorted. If it is empty, Caddy's defaults
	// are used. The cipher suites of TLS 1.3 cannot be chosen.
	Ciphers []string `json:"ciphers,omitempty"`
}

// TLSVersion is Caddy's name of a TLS version.
type TLSVersion string

// The supported TLS versions. Older versions are not supported.
const (
	TLS12 TLSVersion = "tls1.2"
	TLS13 TLSVersion = "tls1.3"
)

// Versions returns a name for the set of allowed TLS versions. All policies with the same name share one of Caddy's TLS
// connection policies.
func (p *TLSPolicy) Versions() string {
	if p.Version == "" {
		return "tls1.2+tls1.3"
	}
	return string(p.Version)
}

// TakesHTTP2 reports whether the policy allows HTTP/2. It returns false if all cipher suites use CBC, because HTTP/2
// does not allow these: the connection would be closed after the handshake.
func (p *TLSPolicy) TakesHTTP2() bool {
	return p.Version == TLS13 || len(p.Ciphers) == 0 ||
		slices.ContainsFunc(p.Ciphers, func(name string) bool { return !strings.Contains(name, "_CBC_") })
}
