package k8singress

import (
	"crypto/tls"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/modules/caddytls"

	"github.com/k8singress/k8singress/internal/live"
)

func init() { caddy.RegisterModule(new(Handshake)) }

// Handshake matches the TLS handshakes of hosts as Ingresses describe them at that moment, so that a host may change to
// another connection policy without a reload.
type Handshake struct {
	// Policy matches those of hosts that have the versions and the ciphers of this name, or, behind the policies that are
	// nearer to what they have, the versions alone.
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
	return (!h.ClientAuth || h.table.AsksClient(hello.ServerName)) && h.table.Handshakes(hello.ServerName, h.Policy)
}

var (
	_ caddy.Provisioner          = (*Handshake)(nil)
	_ caddytls.ConnectionMatcher = (*Handshake)(nil)
)
