package ingress_test

import (
	"slices"
	"testing"

	networkingv1 "k8s.io/api/networking/v1"

	"github.com/k8singress/k8singress/internal/translate/hosts"
)

const listed = "a.example.com"

// listing adds an entry of spec.tls to an Ingress and returns it. The entry lists a host without a Secret, and so
// requests a certificate from an issuer.
func listing(o *networkingv1.Ingress) *networkingv1.Ingress {
	o.Spec.TLS = []networkingv1.IngressTLS{{Hosts: []string{listed}}}
	return aged(o, 1)
}

// TestIssuerNeedsARule checks that a host without a rule gets no certificate from an issuer.
func TestIssuerNeedsARule(t *testing.T) {
	web := prefix("/", backend("a", 80))
	other := object("other", "b.example.com", web)
	for _, test := range []struct {
		name    string
		objects []*networkingv1.Ingress
		asked   bool
	}{
		{"a rule of the Ingress", []*networkingv1.Ingress{listing(object("one", listed, web))}, true},
		{"a rule without paths", []*networkingv1.Ingress{listing(object("one", listed))}, true},
		{"no rule", []*networkingv1.Ingress{listing(other.DeepCopy())}, false},
		{"a rule of another Ingress", []*networkingv1.Ingress{listing(other.DeepCopy()),
			aged(object("one", listed, web), 2)}, true},
		{"a rule for every host", []*networkingv1.Ingress{listing(object("one", "", web))}, true},
		{"a rule for every host of another Ingress",
			[]*networkingv1.Ingress{listing(other.DeepCopy()), object("one", "", web)}, false},
		{"a rule for the wildcard above", []*networkingv1.Ingress{listing(object("one", "*.example.com", web))}, true},
		{"only a default backend", []*networkingv1.Ingress{listing(catchAll("one", "a"))}, true},
	} {
		t.Run(test.name, func(t *testing.T) {
			above := merge(t, "*.example.com", test.objects...)
			m := mergeAround(t, listed, &hosts.HostContext{Above: above}, test.objects...)
			if asked := m.Certificate != nil && m.Certificate.Automated; asked != test.asked {
				t.Errorf("an issuer is asked: %v", asked)
			}
			said := slices.Concat(complaints(m)["one"], complaints(m)["other"])
			if told := slices.Contains(said, "InvalidHost spec.tls"); told == test.asked {
				t.Errorf("the Ingress is told %q", said)
			}
		})
	}
}

// TestSecretOfAHostWithoutRule checks that an entry of spec.tls applies only to hosts for which its namespace has a
// rule, and that the Ingress gets a problem otherwise.
func TestSecretOfAHostWithoutRule(t *testing.T) {
	web := prefix("/", backend("a", 80))
	secret := aged(object("secret", "c.example.com", web), 2)
	secret.Spec.TLS = []networkingv1.IngressTLS{{Hosts: []string{listed}, SecretName: "tls"}}
	m := merge(t, listed, secret)
	if said := complaints(m)["secret"]; m.Certificate != nil || !slices.Contains(said, "InvalidHost spec.tls") {
		t.Errorf("the certificate is %+v, and it is told %q", m.Certificate, said)
	}
	m = merge(t, listed, secret, aged(object("younger", listed, web), 3))
	if m.Certificate == nil || m.Certificate.Secret.Name != "tls" || len(complaints(m)) != 0 {
		t.Errorf("with a rule of its namespace the certificate is %+v, problems are %v", m.Certificate, complaints(m))
	}
}
