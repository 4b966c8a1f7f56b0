package apply

import (
	"slices"

	"github.com/k8singress/k8singress/internal/basicauth"
	"github.com/k8singress/k8singress/internal/certs"
	"github.com/k8singress/k8singress/internal/document"
	"github.com/k8singress/k8singress/internal/ir"
	"github.com/k8singress/k8singress/internal/report"
	"github.com/k8singress/k8singress/internal/trust"
)

// Secrets are the stores that the contents of Secrets go to: certificates to show, authorities to verify with, and users.
type Secrets struct {
	Certificates *certs.Store
	Trust        *trust.Store
	Users        *basicauth.Store
}

// NewSecrets returns empty stores.
func NewSecrets() Secrets { return Secrets{certs.NewStore(), trust.NewStore(), basicauth.NewStore()} }

// Update changes which parts of the document refer to which Secrets, but for certificates to show. It returns the Secrets whose contents
// are to be set before the delta is in effect.
func (s Secrets) Update(d *document.Delta) []ir.Name {
	return slices.Concat(s.Trust.Update(d), s.Users.Update(d))
}

// SetSecret sets the contents of a Secret; present is false for a Secret that does not exist.
func (s Secrets) SetSecret(name ir.Name, data map[string][]byte, present bool) {
	s.Trust.SetSecret(name, data, present)
	s.Users.SetSecret(name, data, present)
	s.Certificates.SetSecret(name, data, present)
}

// Problems returns a verdict for each object that refers to a Secret which is no good for it.
func (s Secrets) Problems() []*report.Verdict {
	return slices.Concat(s.Certificates.Problems(), s.Trust.Problems(), s.Users.Problems())
}

// Stale says whether Problems would return something else by now, for no other reason than that time has passed.
func (s Secrets) Stale() bool { return s.Certificates.Stale() || s.Trust.Stale() }
