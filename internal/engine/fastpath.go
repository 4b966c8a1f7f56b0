package engine

import (
	"slices"
	"strings"

	"github.com/k8singress/k8singress/internal/backends"
	"github.com/k8singress/k8singress/internal/document"
	"github.com/k8singress/k8singress/internal/endpoints"
	"github.com/k8singress/k8singress/internal/ir"
	"github.com/k8singress/k8singress/internal/kinds"
	"github.com/k8singress/k8singress/internal/snapshot"
)

// refreshEndpoints brings the backends of one Service up to date. It returns false, and leaves them as they are, when the
// port of one has gone from all slices: most often it has another name now, which the translation finds out, and until
// then requests go where they went.
func (e *Engine) refreshEndpoints(s *snapshot.Snapshot, namespace, service string) bool {
	all := e.backendsOf(namespace, service)
	for _, b := range all {
		if endpoints.PortGone(s.EndpointSlices(namespace, service), b) {
			return false
		}
	}
	e.setEndpoints(s, all)
	return true
}

// settleEndpoints does what refreshEndpoints left to the pipeline.
func (e *Engine) settleEndpoints(s *snapshot.Snapshot) {
	for _, ref := range s.Changed {
		if ref.Kind == kinds.EndpointSlice {
			e.setEndpoints(s, e.backendsOf(ref.Namespace, ref.Name))
		}
	}
}

func (e *Engine) setEndpoints(s *snapshot.Snapshot, all []*ir.Backend) {
	zone := zoneOf(e.settings)
	for _, b := range all {
		if b.ExternalName != "" {
			// Its endpoints are what the DNS says.
			continue
		}
		e.endpoints.Set(b.ID, resolve(s, b, zone))
		e.metrics.endpointUpdates.Inc()
	}
}

func (e *Engine) backendsOf(namespace, service string) []*ir.Backend {
	return withPrefix(e.config.Backends, backends.Prefix(namespace, service))
}

// withPrefix returns the backends whose ID begins with prefix; they are neighbours in the sorted list.
func withPrefix(all []*ir.Backend, prefix string) []*ir.Backend {
	low, _ := slices.BinarySearchFunc(all, prefix, func(b *ir.Backend, prefix string) int { return strings.Compare(b.ID, prefix) })
	high := low
	for high < len(all) && strings.HasPrefix(all[high].ID, prefix) {
		high++
	}
	return all[low:high]
}

// refreshSecret hands the contents of a Secret to the certificates. It returns false when more may depend on it: whether
// there is such a Secret is a question for the translation.
func (e *Engine) refreshSecret(before, now *snapshot.Snapshot, ref ir.Ref) bool {
	if e.shown(ref) {
		e.loadSecret(now, ref.Namespace, ref.Name)
		e.applied = true
	}
	if before == nil {
		return false
	}
	_, was := before.Secrets.Get(ref.Namespace, ref.Name)
	_, is := now.Secrets.Get(ref.Namespace, ref.Name)
	return was == is && before.Denied(ref) == now.Denied(ref)
}

// shown says whether a certificate that is in effect comes from a Secret. In a cluster most do not.
func (e *Engine) shown(secret ir.Ref) bool {
	if e.secrets == nil {
		e.secrets = map[string]bool{}
		for _, c := range e.config.Certificates {
			e.secrets[c.SecretNamespace+"/"+c.SecretName] = true
			if c.SecondSecretName != "" {
				e.secrets[c.SecretNamespace+"/"+c.SecondSecretName] = true
			}
		}
		if c := e.config.DefaultCertificate; c != nil {
			e.secrets[c.SecretNamespace+"/"+c.SecretName] = true
		}
	}
	return e.secrets[secret.Namespace+"/"+secret.Name]
}

// loadSecrets hands over the contents of those that certificates come from now.
func (e *Engine) loadSecrets(s *snapshot.Snapshot, certificates map[string]*document.Certificate) {
	for _, c := range certificates {
		if c == nil {
			continue
		}
		for _, secret := range c.Secrets() {
			if namespace, name, ok := splitName(secret); ok {
				e.loadSecret(s, namespace, name)
			}
		}
	}
}

func (e *Engine) loadSecret(s *snapshot.Snapshot, namespace, name string) {
	secret, ok := s.Secrets.Get(namespace, name)
	if !ok {
		e.live.Certificates.SetSecret(namespace, name, nil, false)
		return
	}
	e.live.Certificates.SetSecret(namespace, name, secret.Data, true)
}
