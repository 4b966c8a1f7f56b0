package engine

import (
	"strings"

	"github.com/k8singress/k8singress/internal/ir"
	"github.com/k8singress/k8singress/internal/snapshot"
)

// refreshEndpoints brings the backends of one Service up to date.
func (e *Engine) refreshEndpoints(s *snapshot.Snapshot, namespace, service string) {
	for _, b := range backendsOf(e.config.Backends, namespace+"/"+service+"/") {
		e.endpoints.Set(b.ID, resolve(s, b))
		e.metrics.endpointUpdates.Inc()
	}
}

// backendsOf returns the backends whose ID begins with prefix; they are neighbours in the sorted list.
func backendsOf(all []*ir.Backend, prefix string) []*ir.Backend {
	low, high := 0, len(all)
	for low < high {
		if middle := (low + high) / 2; all[middle].ID < prefix {
			low = middle + 1
		} else {
			high = middle
		}
	}
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
	return was == is
}

// shown says whether a certificate that is in effect comes from a Secret. In a cluster most do not.
func (e *Engine) shown(secret ir.Ref) bool {
	if e.secrets == nil {
		e.secrets = map[string]bool{}
		for _, c := range e.config.Certificates {
			e.secrets[c.SecretNamespace+"/"+c.SecretName] = true
		}
		if c := e.config.DefaultCertificate; c != nil {
			e.secrets[c.SecretNamespace+"/"+c.SecretName] = true
		}
	}
	return e.secrets[secret.Namespace+"/"+secret.Name]
}

func (e *Engine) loadSecret(s *snapshot.Snapshot, namespace, name string) {
	secret, ok := s.Secrets.Get(namespace, name)
	if !ok {
		e.live.Certificates.SetSecret(namespace, name, nil, false)
		return
	}
	e.live.Certificates.SetSecret(namespace, name, secret.Data, true)
}
