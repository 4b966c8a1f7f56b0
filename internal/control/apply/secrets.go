package apply

import (
	"slices"

	"github.com/k8singress/k8singress/internal/http/basicauth"
	"github.com/k8singress/k8singress/internal/model/document"
	"github.com/k8singress/k8singress/internal/model/ir"
	"github.com/k8singress/k8singress/internal/model/report"
	"github.com/k8singress/k8singress/internal/tls/certs"
	"github.com/k8singress/k8singress/internal/tls/trust"
)

// Secrets holds the data that is loaded from Kubernetes Secrets: certificates for TLS handshakes, certificate
// authorities, and the user lists of basic authentication.
type Secrets struct {
	Certificates *certs.Store
	Trust        *trust.Store
	Users        *basicauth.Store
}

// NewSecrets returns a Secrets with empty stores.
func NewSecrets() Secrets { return Secrets{certs.NewStore(), trust.NewStore(), basicauth.NewStore()} }

// Update records to which Secrets the changed hosts, backends and ports refer, except Secrets with certificates for TLS
// handshakes. It returns the Secrets whose contents the caller must set before the change d takes effect.
func (s Secrets) Update(d *document.Delta) []ir.Name {
	return slices.Concat(s.Trust.Update(d), s.Users.Update(d))
}

// SetSecret sets the contents of a Secret; present is false if the Secret does not exist.
func (s Secrets) SetSecret(name ir.Name, data map[string][]byte, present bool) {
	s.Trust.SetSecret(name, data, present)
	s.Users.SetSecret(name, data, present)
	s.Certificates.SetSecret(name, data, present)
}

// Problems returns the problems of objects that refer to a missing Secret or to a Secret with invalid contents, with
// one verdict for each object.
func (s Secrets) Problems() []*report.Verdict {
	return slices.Concat(s.Certificates.Problems(), s.Trust.Problems(), s.Users.Problems())
}

// Stale reports whether Problems would now return a different result only because time has passed, for example because
// a certificate has expired.
func (s Secrets) Stale() bool { return s.Certificates.Stale() || s.Trust.Stale() }
