package translate

import (
	"reflect"
	"slices"

	corev1 "k8s.io/api/core/v1"

	"github.com/k8singress/k8singress/internal/model/ir"
	"github.com/k8singress/k8singress/internal/model/shrinking"
	"github.com/k8singress/k8singress/internal/model/snapshot"
	tlssecret "github.com/k8singress/k8singress/internal/tls/secret"
)

// answer is the certificate of a wildcard. Hosts below the wildcard use it instead of requesting a certificate from an
// issuer, if they belong to the same namespace.
type answer struct {
	namespace string
	// issued is true if the certificate comes from an issuer. It is then valid for all hosts directly below the
	// wildcard. Otherwise it comes from one or two Secrets: secrets lists the names of these Secrets, and names lists
	// the host names for which their certificates are valid.
	issued  bool
	secrets []ir.Name
	names   []tlssecret.Names
}

// The result of the method covers is true if a host of the given namespace can use the certificate of the wildcard. It
// returns false if a is nil.
func (a *answer) covers(host, namespace string) bool {
	return a != nil && a.namespace == namespace &&
		(a.issued || slices.ContainsFunc(a.names, func(n tlssecret.Names) bool { return n.Cover(host) }))
}

// answerOf returns the certificate of a wildcard, or nil if the wildcard has no certificate.
func (t *Translator) answerOf(s *snapshot.Snapshot, wildcard string) *answer {
	c := t.issuance.certificate(wildcard, t.merged.Get(wildcard))
	return answerWith(s, c, t.issuance.requests.Get(wildcard) != nil)
}

// answerWith returns the answer for the certificate of a wildcard, or nil if c is nil. If the certificate in a Secret
// is invalid, the result has no names, so that no host uses it.
func answerWith(s *snapshot.Snapshot, c *ir.Certificate, issued bool) *answer {
	if c == nil {
		return nil
	}
	a := &answer{namespace: c.Origin.Namespace, issued: issued}
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

// The method turned updates the certificate of a wildcard in t.issuance.answers. If the certificate has changed, turned
// returns the hosts below the wildcard that may use it. Otherwise it returns nil.
func (t *Translator) turned(s *snapshot.Snapshot, wildcard string) *shrinking.Map[string, struct{}] {
	n, before := t.issuance, t.issuance.answers.Get(wildcard)
	now := t.answerOf(s, wildcard)
	if reflect.DeepEqual(before, now) {
		return nil
	}
	if now == nil {
		n.answers.Delete(wildcard)
	} else {
		n.answers.Set(wildcard, now)
	}
	return n.below.Get(wildcard)
}

// ReadsContents reports whether the translation depends on the content of a Secret. For most Secrets, it only matters
// whether the Secret exists.
func (t *Translator) ReadsContents(secret ir.Name) bool {
	if t.issuance == nil {
		return false
	}
	for _, a := range t.issuance.answers.All() {
		if slices.Contains(a.secrets, secret) {
			return true
		}
	}
	return false
}
