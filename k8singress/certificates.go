package k8singress

import (
	"context"
	"crypto/tls"
	"errors"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/certmagic"

	"github.com/k8singress/k8singress/internal/certs"
	"github.com/k8singress/k8singress/internal/front"
	"github.com/k8singress/k8singress/internal/live"
)

func init() { caddy.RegisterModule(new(Certificates)) }

// Certificates answers TLS handshakes with the certificates of Secrets that Ingresses name, and with the default
// certificate where there is none. A changed Secret counts from the next handshake on.
type Certificates struct {
	store *certs.Store
	hosts *live.Table
}

// CaddyModule returns the Caddy module information.
func (*Certificates) CaddyModule() caddy.ModuleInfo {
	return caddy.ModuleInfo{ID: "tls.get_certificate.k8singress", New: func() caddy.Module { return new(Certificates) }}
}

// Provision finds the running table of certificates.
func (c *Certificates) Provision(ctx caddy.Context) error {
	app, err := appOf(ctx)
	if err != nil {
		return err
	}
	c.store, c.hosts = app.engine.Certificates(), app.engine.Table()
	return nil
}

// GetCertificate returns the certificate for the name that the client asks for. There is none for a host that is passed
// through, where the shortcut has not refused the handshake before.
func (c *Certificates) GetCertificate(ctx context.Context, hello *tls.ClientHelloInfo) (*tls.Certificate, error) {
	if c.hosts.Passthrough(front.PortOf(ctx), hello.ServerName) != nil {
		return nil, errPassthrough
	}
	return c.store.GetCertificate(hello)
}

var errPassthrough = errors.New("the host has ssl-passthrough: its TLS ends at its backend")

var (
	_ caddy.Provisioner = (*Certificates)(nil)
	_ certmagic.Manager = (*Certificates)(nil)
)
