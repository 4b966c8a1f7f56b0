package k8singress

import (
	"crypto/tls"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/modules/caddytls"

	"github.com/k8singress/k8singress/internal/http/front"
	"github.com/k8singress/k8singress/internal/http/live"
)

func init() { caddy.RegisterModule(new(Handshake)) }

// Handshake is a Caddy TLS handshake matcher. It matches handshakes by the TLS settings that the Ingresses currently
// configure for the requested host. When these settings change, the host can use another TLS connection policy without
// a configuration reload.
type Handshake struct {
	// Policy matches hosts that are configured with these TLS versions: "tls1.2", "tls1.3" or "tls1.2+tls1.3".
	Policy string `json:"policy,omitempty"`
	// ClientAuth matches only hosts that request client certificates.
	ClientAuth bool `json:"client_auth,omitempty"`

	table *live.Table
}

// CaddyModule returns the Caddy module information.
func (*Handshake) CaddyModule() caddy.ModuleInfo {
	return caddy.ModuleInfo{ID: "tls.handshake_match.k8singress", New: func() caddy.Module { return new(Handshake) }}
}

// Provision gets the routing table from the running k8singress app.
func (h *Handshake) Provision(ctx caddy.Context) error {
	app, err := appOf(ctx)
	if err != nil {
		return err
	}
	h.table = app.engine.Table()
	return nil
}

// Match reports whether the host of a handshake has the settings that h requires.
func (h *Handshake) Match(hello *tls.ClientHelloInfo) bool {
	host := hostOf(h.table, hello)
	return (!h.ClientAuth || host.RequestsClientCert()) && h.table.Speaks(host, hello.ServerName, h.Policy)
}

// hostOf returns the virtual host that the client of a handshake requests.
func hostOf(table *live.Table, hello *tls.ClientHelloInfo) *live.Host {
	return front.LookUp(hello.Conn, hello.ServerName, table.HostFor)
}

var (
	_ caddy.Provisioner          = (*Handshake)(nil)
	_ caddytls.ConnectionMatcher = (*Handshake)(nil)
)
