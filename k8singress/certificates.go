package k8singress

import (
	"context"
	"crypto/tls"
	"errors"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/certmagic"

	"github.com/k8singress/k8singress/internal/control/engine"
	"github.com/k8singress/k8singress/internal/http/front"
	"github.com/k8singress/k8singress/internal/http/live"
	"github.com/k8singress/k8singress/internal/tls/certs"
)

func init() { caddy.RegisterModule(new(Certificates)) }

// Certificates is a certmagic certificate manager. It provides the certificates from the Secrets in spec.tls of
// Ingresses, and the default certificate for all other hosts. A changed Secret takes effect with the next handshake.
type Certificates struct {
	engine *engine.Engine
	store  *certs.Store
	hosts  *live.Table
}

// CaddyModule returns the Caddy module information.
func (*Certificates) CaddyModule() caddy.ModuleInfo {
	return caddy.ModuleInfo{ID: "tls.get_certificate.k8singress", New: func() caddy.Module { return new(Certificates) }}
}

// Provision gets the certificate store and the routing table from the running k8singress app.
func (c *Certificates) Provision(ctx caddy.Context) error {
	app, err := appOf(ctx)
	if err != nil {
		return err
	}
	c.engine, c.store, c.hosts = app.engine, app.engine.Certificates(), app.engine.Table()
	return nil
}

// GetCertificate returns the certificate for the server name that the client sent. It returns an error for a host with
// TLS passthrough, but usually certificateHook has already rejected such a handshake.
func (c *Certificates) GetCertificate(ctx context.Context, hello *tls.ClientHelloInfo) (*tls.Certificate, error) {
	// Do not use hostOf: it must not be called after the handshake, and certmagic may call GetCertificate later.
	port := front.PortOf(hello.Conn)
	if c.hosts.PassesAny(port) && c.hosts.HostFor(port, hello.ServerName).Passthrough(hello.ServerName) != nil {
		return nil, errPassthrough
	}
	if _, ok := c.hosts.HostFor(port, hello.ServerName).OnDemand(); ok && c.store.Find(hello) == nil {
		if pair := c.engine.CertificateOnDemand(ctx, hello.ServerName); pair != nil {
			return pair, nil
		}
	}
	return c.store.GetCertificate(hello)
}

var errPassthrough = errors.New("the host has ssl-passthrough: the backend terminates TLS")

var (
	_ caddy.Provisioner = (*Certificates)(nil)
	_ certmagic.Manager = (*Certificates)(nil)
)
