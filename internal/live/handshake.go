package live

import (
	"crypto/tls"
	"slices"

	"github.com/k8singress/k8singress/internal/ir"
	"github.com/k8singress/k8singress/internal/message"
)

// handshake is an ir.TLSPolicy, ready for handshakes.
type handshake struct {
	versions string
	// ciphers are those of TLS 1.2; nil are Caddy's.
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

// handshakes is what ir.Global says of them.
type handshakes struct {
	// usual is for hosts without a policy of their own.
	usual             *handshake
	reject, onlyHTTP1 bool
}

func newHandshakes(g *ir.Global) *handshakes {
	return &handshakes{newHandshake(&g.TLS), g.RejectUnknown, g.OnlyHTTP1}
}

// Speaks says whether the handshake that comes by a port for a server name is one of the TLS versions that TLSPolicy.Versions names. The
// server name is as the client wrote it, or empty. A name that no host has may have to be refused, and one that no listener of the port
// has is; no versions are right for it then.
func (t *Table) Speaks(port uint16, server, versions string) bool {
	name := message.Hostname(server)
	if port != ServerPorts && t.listeners.Load().find(port, name) == nil {
		return false
	}
	h := t.at(port, name).find(name)
	g := t.global.handshakes.Load()
	if g.reject && t.ready.Load() && (h == nil || h.name == "" || server == "") {
		return false
	}
	return g.of(h).versions == versions
}

// Handshake returns what TLS is to agree on with a client that asks by a port for a server name: config itself, or a copy with the ciphers
// and protocols of the host.
func (t *Table) Handshake(port uint16, server string, config *tls.Config) *tls.Config {
	name := message.Hostname(server)
	g := t.global.handshakes.Load()
	own := g.of(t.at(port, name).find(name))
	onlyHTTP1 := own.onlyHTTP1 || g.onlyHTTP1
	if own.ciphers == nil && !onlyHTTP1 {
		return config
	}
	config = config.Clone()
	if own.ciphers != nil {
		config.CipherSuites = own.ciphers
	}
	if onlyHTTP1 {
		config.NextProtos = slices.DeleteFunc(slices.Clone(config.NextProtos), func(name string) bool { return name == "h2" })
	}
	return config
}

// of returns that of a host, which may be nil.
func (g *handshakes) of(h *host) *handshake {
	if h == nil || h.handshake == nil {
		return g.usual
	}
	return h.handshake
}
