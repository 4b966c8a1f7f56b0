// Package translate is the one pure entry point from Kubernetes objects to the model. It remembers the outcome for each
// Ingress and each host, so that a change costs what it touches; what it returns is the same as without that memory.
package translate

import (
	"github.com/k8singress/k8singress/internal/ingress"
	"github.com/k8singress/k8singress/internal/ir"
	"github.com/k8singress/k8singress/internal/kinds"
	"github.com/k8singress/k8singress/internal/report"
	"github.com/k8singress/k8singress/internal/snapshot"
	"github.com/k8singress/k8singress/internal/streams"
)

// Options are what, besides the objects, decides about a translation.
type Options struct {
	Ingress ingress.Options
	Streams streams.Options
	// Listeners are those that serve the hosts of Ingresses.
	Listeners []ir.Listener
	// ConfigMap is the "namespace/name" of the ConfigMap with the options for all Ingresses; it may be empty. What it says
	// takes the place of Ingress.Defaults and of Streams.Policy.
	ConfigMap string
	// DefaultCertificate is the "namespace/name" of the Secret for names without a certificate; it may be empty.
	DefaultCertificate string
	// HostsPerNamespace is for how many hosts of one namespace an issuer is asked. Zero is no limit.
	HostsPerNamespace int
}

// Translate returns what is to be served, and what became of each object. It depends on nothing but its arguments.
func Translate(s *snapshot.Snapshot, o Options) (*ir.Config, *report.Report) {
	return New().Translate(s, o)
}

func defaultCertificate(name string) *ir.Certificate {
	secret, err := ir.ParseName(name)
	if err != nil {
		return nil
	}
	return &ir.Certificate{Secret: secret, Origin: secret.Of(kinds.Secret)}
}
