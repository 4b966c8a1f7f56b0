package translate

import (
	"reflect"
	"slices"

	corev1 "k8s.io/api/core/v1"

	"github.com/k8singress/k8singress/internal/ir"
	"github.com/k8singress/k8singress/internal/snapshot"
	"github.com/k8singress/k8singress/internal/tlssecret"
)

// answer is the certificate of a wildcard, in place of which no issuer is asked for the hosts of its namespace below.
type answer struct {
	namespace string
	// issued is for a certificate from an issuer, which is for all of the hosts. Otherwise the names are those of the certificates in the
	// Secrets.
	issued  bool
	secrets []ir.Name
	names   []tlssecret.Names
}

// covers says whether a host of a namespace needs no certificate of its own. The answer may be nil.
func (a *answer) covers(host, namespace string) bool {
	return a != nil && a.namespace == namespace &&
		(a.issued || slices.ContainsFunc(a.names, func(n tlssecret.Names) bool { return n.Cover(host) }))
}

// answerOf returns the answer of a wildcard, or nil. What is no certificate answers for nobody.
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
		if pair, err := tlssecret.Parse(secret.Data[tlssecret.CertificateKey], secret.Data[tlssecret.PrivateKey]); err == nil {
			a.names = append(a.names, tlssecret.NamesOf(pair.Leaf))
		}
	}
	return a
}

// turned returns the hosts below a wildcard if it answers for other ones now than before.
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

// ReadsContents says whether the outcome depends on what is in a Secret, and not only on whether there is one.
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
