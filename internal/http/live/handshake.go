package live

import (
	"crypto/tls"
	"slices"

	"github.com/k8singress/k8singress/internal/http/message"
	"github.com/k8singress/k8singress/internal/model/ir"
)

// handshake is the compiled form of ir.TLSPolicy, which configures TLS versions and cipher suites.
type handshake struct {
	versions string
	// ciphers are the TLS 1.2 cipher suites. Nil means Caddy's defaults.
	ciphers   []uint16
	onlyHTTP1 bool
}

func newHandshake(p *ir.TLSPolicy) *handshake {
	h := &handshake{versions: p.Versions(), onlyHTTP1: !p.TakesHTTP2()}
	for _, suite := range slices.Concat(tls.CipherSuites(), tls.InsecureCipherSuites()) {
		if slices.Contains(p.Ciphers, suite.Name) {
			h.ciphers = append(h.ciphers, suite.ID)
		}
	}
	return h
}

// handshakes holds the global TLS settings of ir.Global.
type handshakes struct {
	// usual applies to hosts that have no TLS settings of their own.
	usual             *handshake
	reject, onlyHTTP1 bool
}

func newHandshakes(g *ir.Global) *handshakes {
	return &handshakes{newHandshake(&g.TLS), g.RejectUnknown, g.OnlyHTTP1}
}

// Speaks reports whether the TLS versions that are enabled for a server name on a port are equal to versions, which has
// the format of TLSPolicy.Versions. server is the server name as the client sent it, or empty. Speaks always returns
// false if the handshake must be rejected: no listener of the port covers the name, or unknown names are rejected and
// no host has this name.
func (t *Table) Speaks(port uint16, server, versions string) bool {
	name := message.Hostname(server)
	if port != ServerPorts && t.listeners.Load().find(port, name) == nil {
		return false
	}
	h := t.indexFor(port, name).find(name)
	g := t.global.handshakes.Load()
	if g.reject && t.ready.Load() && (h == nil || h.name == "" || server == "") {
		return false
	}
	return g.of(h).versions == versions
}

// Handshake returns the TLS configuration for a server name on a port. This is config itself if no setting differs,
// otherwise a copy with the cipher suites and ALPN protocols of the host. server is the server name as the client sent
// it, or empty.
func (t *Table) Handshake(port uint16, server string, config *tls.Config) *tls.Config {
	name := message.Hostname(server)
	g := t.global.handshakes.Load()
	own := g.of(t.indexFor(port, name).find(name))
	onlyHTTP1 := own.onlyHTTP1 || g.onlyHTTP1
	if own.ciphers == nil && !onlyHTTP1 {
		return config
	}
	config = config.Clone()
	if own.ciphers != nil {
		config.CipherSuites = own.ciphers
	}
	if onlyHTTP1 {
		config.NextProtos = slices.DeleteFunc(slices.Clone(config.NextProtos),
			func(name string) bool { return name == "h2" })
	}
	return config
}

// The method of(h) returns the TLS settings for connections to the host h: its own settings, or the global settings if
// the host has no settings or h is nil.
func (g *handshakes) of(h *host) *handshake {
	if h == nil || h.handshake == nil {
		return g.usual
	}
	return h.handshake
}
