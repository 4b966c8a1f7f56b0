package engine

import (
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/k8singress/k8singress/internal/control/apply"
	"github.com/k8singress/k8singress/internal/model/document"
	"github.com/k8singress/k8singress/internal/model/ir"
	"github.com/k8singress/k8singress/internal/model/kinds"
	"github.com/k8singress/k8singress/internal/model/snapshot"
	"github.com/k8singress/k8singress/internal/translate/backends"
	"github.com/k8singress/k8singress/internal/upstream/endpoints"
)

// refreshEndpoints updates the endpoints of the backends of one Service, without a new translation of all objects. If
// no EndpointSlice contains the port of a backend, the port was probably renamed. In this case, refreshEndpoints
// changes nothing and returns false. Requests go to the old endpoints until the next translation has found the new name
// of the port.
func (l *loop) refreshEndpoints(s *snapshot.Snapshot, namespace, service string) bool {
	all := l.backendsOf(namespace, service)
	for _, b := range all {
		if endpoints.PortGone(s.EndpointSlices(namespace, service), b) {
			return false
		}
	}
	l.setEndpoints(s, all)
	return true
}

// setChangedEndpoints updates the endpoints of the Services for which refreshEndpoints returned false. It is called
// after a new translation.
func (l *loop) setChangedEndpoints(s *snapshot.Snapshot) {
	for _, ref := range s.Changed {
		if ref.Kind == kinds.EndpointSlice {
			l.setEndpoints(s, l.backendsOf(ref.Namespace, ref.Name))
		}
	}
}

func (l *loop) setEndpoints(s *snapshot.Snapshot, all []*ir.Backend) {
	l.resolveEndpoints(s, all)
	l.resolveShortened(s)
}

// resolveShortened updates the backends that got only some of their endpoints because their namespace had reached its
// endpoint quota. If the namespace now has fewer endpoints, these backends get more of them.
func (l *loop) resolveShortened(s *snapshot.Snapshot) {
	for id := range l.endpoints.Short() {
		i, found := slices.BinarySearchFunc(l.config.Backends, id,
			func(b *ir.Backend, id string) int { return strings.Compare(b.ID, id) })
		if found {
			l.resolveEndpoints(s, l.config.Backends[i:i+1])
		}
	}
}

func (l *loop) resolveEndpoints(s *snapshot.Snapshot, all []*ir.Backend) {
	zone := zoneOf(l.settings)
	for _, b := range all {
		if b.ExternalName != "" {
			// Skip a backend with an external name, because its endpoints come from DNS.
			continue
		}
		l.endpoints.Set(b.ID, resolve(s, b, zone))
		l.metrics.endpointUpdates.Inc()
	}
}

func (l *loop) backendsOf(namespace, service string) []*ir.Backend {
	return withPrefix(l.config.Backends, backends.Prefix(namespace, service))
}

// withPrefix returns the backends whose IDs start with prefix. all must be sorted by ID.
func withPrefix(all []*ir.Backend, prefix string) []*ir.Backend {
	low, _ := slices.BinarySearchFunc(all, prefix,
		func(b *ir.Backend, prefix string) int { return strings.Compare(b.ID, prefix) })
	high := low
	for high < len(all) && strings.HasPrefix(all[high].ID, prefix) {
		high++
	}
	return all[low:high]
}

// refreshSecret loads the new contents of a changed Secret. It returns false if all objects must be translated again,
// because the Secret was added or removed, or because the translation depends on its contents.
func (l *loop) refreshSecret(before, now *snapshot.Snapshot, ref ir.Ref) bool {
	if name := (ir.Name{Namespace: ref.Namespace, Name: ref.Name}); l.refersTo(name) {
		loadSecret(l.live.Secrets, now, name)
		l.applied = true
	}
	if before == nil || l.translator.ReadsContents(ir.Name{Namespace: ref.Namespace, Name: ref.Name}) {
		return false
	}
	_, was := snapshot.Of[*corev1.Secret](before).Get(ref.Namespace, ref.Name)
	_, is := snapshot.Of[*corev1.Secret](now).Get(ref.Namespace, ref.Name)
	return was == is && before.Denied(ref) == now.Denied(ref)
}

// refersTo reports whether the current configuration refers to a Secret. If it does not, the contents of the Secret
// need not be loaded: most Secrets in a cluster have nothing to do with Ingresses.
func (l *loop) refersTo(secret ir.Name) bool {
	if l.secrets == nil {
		l.secrets = map[ir.Name]bool{}
		for name := range l.config.Secrets() {
			l.secrets[name] = true
		}
	}
	return l.secrets[secret]
}

// loadSecrets passes the contents of the Secrets to which the given certificates refer to the stores in to. The
// contents come from the snapshot s.
func loadSecrets(to apply.Secrets, s *snapshot.Snapshot, certificates map[string]*ir.Certificate) {
	for _, c := range certificates {
		if c == nil {
			continue
		}
		loadSecret(to, s, c.Secret)
		loadSecret(to, s, c.SecondSecret)
	}
}

// loadListenerSecrets passes the contents of the Secrets to which the listeners of the given groups refer to the stores
// in to. The contents come from the snapshot s.
func loadListenerSecrets(to apply.Secrets, s *snapshot.Snapshot, groups map[string]*document.ListenerGroup) {
	for _, g := range groups {
		if g == nil {
			continue
		}
		for i := range g.Listeners {
			for _, name := range g.Listeners[i].Certificates {
				loadSecret(to, s, name)
			}
		}
	}
}

// loadSecret passes the contents of the Secret name to the stores in to. The contents come from the snapshot s. If the
// Secret does not exist in s, the stores are told that it is missing.
func loadSecret(to apply.Secrets, s *snapshot.Snapshot, name ir.Name) {
	secret, ok := snapshot.Of[*corev1.Secret](s).Get(name.Namespace, name.Name)
	if !ok {
		secret = &corev1.Secret{}
	}
	to.SetSecret(name, secret.Data, ok)
}
