package translate

import (
	"reflect"
	"slices"

	corev1 "k8s.io/api/core/v1"

	"github.com/k8singress/k8singress/internal/model/ir"
	"github.com/k8singress/k8singress/internal/model/snapshot"
	tlssecret "github.com/k8singress/k8singress/internal/tls/secret"
)

// answer is the certificate of a wildcard. The hosts of its namespace below the wildcard use it instead of a
// certificate from an issuer.
type answer struct {
	namespace string
	// issued means that the certificate comes from an issuer, so it covers all hosts below the wildcard. Otherwise
	// names are the names in the certificates of the Secrets.
	issued  bool
	secrets []ir.Name
	names   []tlssecret.Names
}

// covers reports whether the wildcard certificate is valid for a host of a namespace. a may be nil.
func (a *answer) covers(host, namespace string) bool {
	return a != nil && a.namespace == namespace &&
		(a.issued || slices.ContainsFunc(a.names, func(n tlssecret.Names) bool { return n.Cover(host) }))
}

// answerOf returns the certificate of a wildcard, or nil if it has none. An invalid certificate covers no host.
func (t *Translator) answerOf(s *snapshot.Snapshot, wildcard string) *answer {
	m := t.merged[wildcard]
	c := t.issuance.certificate(wildcard, m)
	if c == nil {
		return nil
	}
	a := &answer{namespace: c.Origin.Namespace, issued: t.issuance.requests[wildcard] != nil}
	if a.issued {
		return a
	}
	for _, name := range []ir.Name{c.Secret, c.SecondSecret} {
		if name.IsZero() {
			continue
		}
		a.secrets = append(a.secrets, name)
		secret, ok := snapshot.Of[*corev1.Secret](s).Get(name.Namespace, name.Name)
		if !ok {
			continue
		}
		if pair, err := tlssecret.Parse(secret.Data[tlssecret.CertificateKey],
			secret.Data[tlssecret.PrivateKey]); err == nil {
			a.names = append(a.names, tlssecret.NamesOf(pair.Leaf))
		}
	}
	return a
}

// turned updates the certificate of a wildcard. If it changed, it returns the hosts below the wildcard that may use it.
func (t *Translator) turned(s *snapshot.Snapshot, wildcard string) set[string] {
	n, before := t.issuance, t.issuance.answers[wildcard]
	now := t.answerOf(s, wildcard)
	if reflect.DeepEqual(before, now) {
		return nil
	}
	if now == nil {
		delete(n.answers, wildcard)
	} else {
		n.answers[wildcard] = now
	}
	return n.below[wildcard]
}

// ReadsContents reports whether the result depends on the content of a Secret, and not only on its existence.
func (t *Translator) ReadsContents(secret ir.Name) bool {
	if t.issuance == nil {
		return false
	}
	for _, a := range t.issuance.answers {
		if slices.Contains(a.secrets, secret) {
			return true
		}
	}
	return false
}
