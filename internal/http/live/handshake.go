package live

import (
	"cmp"
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
	// usual holds the settings for hosts that have no TLS settings of their own.
	usual             *handshake
	reject, onlyHTTP1 bool
}

func newHandshakes(g *ir.Global) *handshakes {
	return &handshakes{newHandshake(&g.TLS), g.RejectUnknown, g.OnlyHTTP1}
}

// Host is a virtual host. The type is exported so that other packages can pass the result of HostFor to the methods for
// TLS handshakes.
type Host = host

var (
	// unknown is used for server names without a virtual host. The global TLS settings apply to such names.
	unknown = new(host)
	// uncovered is used for server names that do not match the host name of any listener of the port.
	uncovered = new(host)
)

// HostFor returns the virtual host for a TLS handshake. port is the listen port, or ServerPorts. server is the server
// name as the client sent it, or empty. HostFor never returns nil: if no host has this name, it returns a Host without
// settings.
func (t *Table) HostFor(port uint16, server string) *Host {
	name, x := message.Hostname(server), t.index.Load()
	if port != ServerPorts {
		l := t.listeners.Load().find(port, name)
		if l == nil {
			return uncovered
		}
		x = l.group.index.Load()
	}
	return cmp.Or(x.find(name), unknown)
}

// OnDemand returns the object that requests certificates on demand for the names that the host serves. It returns false
// if no object does.
func (h *host) OnDemand() (ir.Origin, bool) { return h.onDemand, h.onDemand != ir.Origin{} }

// Speaks reports whether the TLS versions that are enabled for a host are equal to versions, which has the format of
// TLSPolicy.Versions. h is the result of HostFor for the server name server. Speaks always returns false if the
// handshake must be rejected: no listener of the port covers the name, or unknown names are rejected and no host has
// this name.
func (t *Table) Speaks(h *Host, server, versions string) bool {
	g := t.global.handshakes.Load()
	if h == uncovered || g.reject && t.ready.Load() && (h.name == "" || server == "") {
		return false
	}
	return g.of(h).versions == versions
}

// Handshake returns the TLS configuration for handshakes with a host. This is config itself if no setting differs,
// otherwise a copy with the cipher suites and ALPN protocols of the host.
func (t *Table) Handshake(h *Host, config *tls.Config) *tls.Config {
	g := t.global.handshakes.Load()
	own := g.of(h)
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

// g.of(h) returns the TLS settings for connections to the host h: its own settings, or the global settings if h has no
// settings.
func (g *handshakes) of(h *host) *handshake { return cmp.Or(h.handshake, g.usual) }
