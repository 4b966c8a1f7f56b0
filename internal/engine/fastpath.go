package engine

import (
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/k8singress/k8singress/internal/apply"
	"github.com/k8singress/k8singress/internal/backends"
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

// refreshSecret brings the contents of a Secret up to date. It returns false when more may depend on it: whether
// there is such a Secret is a question for the translation.
func (e *Engine) refreshSecret(before, now *snapshot.Snapshot, ref ir.Ref) bool {
	if name := (ir.Name{Namespace: ref.Namespace, Name: ref.Name}); e.used(name) {
		loadSecret(e.live.Secrets, now, name)
		e.applied = true
	}
	if before == nil {
		return false
	}
	_, was := snapshot.Of[*corev1.Secret](before).Get(ref.Namespace, ref.Name)
	_, is := snapshot.Of[*corev1.Secret](now).Get(ref.Namespace, ref.Name)
	return was == is && before.Denied(ref) == now.Denied(ref)
}

// used says whether something that is in effect refers to a Secret. In a cluster most are of no use here.
func (e *Engine) used(secret ir.Name) bool {
	if e.secrets == nil {
		e.secrets = map[ir.Name]bool{}
		for name := range e.config.Secrets() {
			e.secrets[name] = true
		}
	}
	return e.secrets[secret]
}

// loadSecrets sets the contents of the Secrets that certificates come from now.
func loadSecrets(to apply.Secrets, s *snapshot.Snapshot, certificates map[string]*ir.Certificate) {
	for _, c := range certificates {
		if c == nil {
			continue
		}
		loadSecret(to, s, c.Secret)
		loadSecret(to, s, c.SecondSecret)
	}
}

// loadSecret sets the contents of a Secret.
func loadSecret(to apply.Secrets, s *snapshot.Snapshot, name ir.Name) {
	secret, ok := snapshot.Of[*corev1.Secret](s).Get(name.Namespace, name.Name)
	if !ok {
		to.SetSecret(name, nil, false)
		return
	}
	to.SetSecret(name, secret.Data, true)
}
