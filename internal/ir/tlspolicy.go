package ir

import (
	"slices"
	"strings"
)

// TLSPolicy is what the handshake for a host may end in. The zero value is TLS 1.2 and 1.3, with what Go takes for safe.
type TLSPolicy struct {
	// Version is the only one that is spoken; empty is both.
	Version TLSVersion `json:"version,omitempty"`
	// Ciphers are those of TLS 1.2, by their names at IANA, sorted. None are Caddy's. Those of TLS 1.3 cannot be chosen.
	Ciphers []string `json:"ciphers,omitempty"`
}

// TLSVersion is a version of TLS, by Caddy's name.
type TLSVersion string

// The versions there are. Older ones are not spoken.
const (
	TLS12 TLSVersion = "tls1.2"
	TLS13 TLSVersion = "tls1.3"
)

// Versions names what is spoken: of all policies, those with the same name are served by one TLS connection policy of Caddy.
func (p *TLSPolicy) Versions() string {
	if p.Version == "" {
		return "tls1.2+tls1.3"
	}
	return string(p.Version)
}

// TakesHTTP2 is false if all ciphers are of the kind CBC, which HTTP/2 refuses after the handshake.
func (p *TLSPolicy) TakesHTTP2() bool {
	return p.Version == TLS13 || len(p.Ciphers) == 0 ||
		slices.ContainsFunc(p.Ciphers, func(name string) bool { return !strings.Contains(name, "_CBC_") })
}
