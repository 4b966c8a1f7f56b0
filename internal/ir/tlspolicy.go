package ir

import (
	"crypto/sha256"
	"encoding/hex"
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

// Handshake is a TLSPolicy with what the process adds to it: one of those that Caddy's configuration has to hold.
type Handshake struct {
	TLSPolicy
	// OnlyHTTP1 offers no HTTP/2.
	OnlyHTTP1 bool
}

// Effective returns the handshake of a policy. Two of them that are the same to a client are equal.
func (p TLSPolicy) Effective(onlyHTTP1 bool) Handshake {
	h := Handshake{p, onlyHTTP1}
	if h.Version == TLS13 {
		h.Ciphers = nil
	}
	// HTTP/2 does not take the ciphers of the kind CBC, and would fail after the handshake.
	if len(h.Ciphers) > 0 && !slices.ContainsFunc(h.Ciphers, func(name string) bool { return !strings.Contains(name, "_CBC_") }) {
		h.OnlyHTTP1 = true
	}
	return h
}

// Name is the same for handshakes that are the same. It begins with Versions.
func (h *Handshake) Name() string {
	name := h.Versions()
	if h.OnlyHTTP1 {
		name += "/http1"
	}
	if len(h.Ciphers) > 0 {
		sum := sha256.Sum256([]byte(strings.Join(h.Ciphers, ":")))
		name += "/" + hex.EncodeToString(sum[:8])
	}
	return name
}

// Versions is the Name of the handshake with the same versions, and nothing else said. Caddy's configuration always has it.
func (h *Handshake) Versions() string {
	if h.Version == "" {
		return "tls1.2+tls1.3"
	}
	return string(h.Version)
}
