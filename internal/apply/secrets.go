package apply

import (
	"slices"

	"github.com/k8singress/k8singress/internal/certs"
	"github.com/k8singress/k8singress/internal/ir"
	"github.com/k8singress/k8singress/internal/report"
	"github.com/k8singress/k8singress/internal/trust"
)

// Secrets are the stores that the contents of Secrets go to: certificates to show, and authorities to verify with.
type Secrets struct {
	Certificates *certs.Store
	Trust        *trust.Store
}

// NewSecrets returns empty stores.
func NewSecrets() Secrets { return Secrets{certs.NewStore(), trust.NewStore()} }

// SetSecret sets the contents of a Secret; present is false for a Secret that does not exist.
func (s Secrets) SetSecret(name ir.Name, data map[string][]byte, present bool) {
	s.Trust.SetSecret(name, data, present)
	s.Certificates.SetSecret(name, data, present)
}

// Problems returns a verdict for each object that refers to a Secret which is no good for it.
func (s Secrets) Problems() []*report.Verdict {
	return slices.Concat(s.Certificates.Problems(), s.Trust.Problems())
}

// Stale says whether Problems would return something else by now, for no other reason than that time has passed.
func (s Secrets) Stale() bool { return s.Certificates.Stale() || s.Trust.Stale() }
