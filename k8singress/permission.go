package k8singress

import (
	"context"
	"fmt"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/modules/caddytls"
)

func init() { caddy.RegisterModule(new(Permission)) }

// Permission is a permission module for certificates on demand that denies all of them. The certificates of Ingress
// hosts come from the certificate manager k8singress, which never waits for an issuer during a handshake.
type Permission struct{}

// CaddyModule returns the Caddy module information.
func (*Permission) CaddyModule() caddy.ModuleInfo {
	return caddy.ModuleInfo{ID: "tls.permission.k8singress", New: func() caddy.Module { return new(Permission) }}
}

// CertificateAllowed returns an error for every name.
func (*Permission) CertificateAllowed(_ context.Context, name string) error {
	return fmt.Errorf("%w: k8singress gets no certificate on demand for %s",
		caddytls.ErrPermissionDenied, name)
}

var _ caddytls.OnDemandPermission = (*Permission)(nil)
