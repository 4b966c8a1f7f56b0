package k8singress

import (
	"crypto/tls"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/modules/caddytls"

	"github.com/k8singress/k8singress/internal/front"
	"github.com/k8singress/k8singress/internal/live"
)

func init() { caddy.RegisterModule(new(Handshake)) }

// Handshake matches the TLS handshakes of hosts as Ingresses describe them at that moment, so that a host may change to
// another connection policy without a reload.
type Handshake struct {
	// Policy matches those of hosts with these versions of TLS: "tls1.2", "tls1.3" or "tls1.2+tls1.3".
	Policy string `json:"policy,omitempty"`
	// ClientAuth matches, of these, those that ask their clients for a certificate.
	ClientAuth bool `json:"client_auth,omitempty"`

	table *live.Table
}

// CaddyModule returns the Caddy module information.
func (*Handshake) CaddyModule() caddy.ModuleInfo {
	return caddy.ModuleInfo{ID: "tls.handshake_match.k8singress", New: func() caddy.Module { return new(Handshake) }}
}

// Provision finds the running tables.
func (h *Handshake) Provision(ctx caddy.Context) error {
	app, err := appOf(ctx)
	if err != nil {
		return err
	}
	h.table = app.engine.Table()
	return nil
}

// Match says whether a handshake is one of those that are asked for.
func (h *Handshake) Match(hello *tls.ClientHelloInfo) bool {
	port := front.PortOf(hello.Context())
	return (!h.ClientAuth || h.table.AsksClient(port, hello.ServerName)) && h.table.Speaks(port, hello.ServerName, h.Policy)
}

var (
	_ caddy.Provisioner          = (*Handshake)(nil)
	_ caddytls.ConnectionMatcher = (*Handshake)(nil)
)
