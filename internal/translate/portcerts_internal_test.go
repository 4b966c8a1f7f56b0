package translate

import (
	"slices"
	"strings"
	"testing"

	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/k8singress/k8singress/internal/model/ir"
	"github.com/k8singress/k8singress/internal/model/report"
	"github.com/k8singress/k8singress/internal/translate/hosts"
	"github.com/k8singress/k8singress/internal/translate/ownership"
)

var services = ir.Ref{Kind: "ConfigMap", Namespace: "default", Name: "tcp-services"}

func endsTLS(port uint16, host, secret string) *ir.StreamRoute {
	name, _ := ir.ParseName(secret)
	return &ir.StreamRoute{
		Protocol: ir.TCP, Port: port, Origin: services, TLS: &ir.StreamTLS{Host: host, Secret: name},
		Backends: ir.To(&ir.Backend{Namespace: "shop"}),
	}
}

// published publishes routes of ports with TLS. It returns the hosts that get certificates from issuers, with their
// origins.
func (t *Translator) published(routes ...*ir.StreamRoute) string {
	t.streams.Routes = routes
	c := &change{hosts: set[string]{}, objects: set[ir.Ref]{services: {}}, backends: set[string]{}}
	t.publish(c)
	var hosts []string
	for _, c := range t.config.Certificates {
		if c.Automated {
			hosts = append(hosts, c.Host+" "+c.Origin.String())
		}
	}
	return strings.Join(hosts, ", ")
}

func TestCertificatesOfPorts(t *testing.T) {
	translator := New()
	translator.reset(Options{})
	const of = " ConfigMap/default/tcp-services"
	for _, step := range []struct {
		routes []*ir.StreamRoute
		want   string
	}{
		{[]*ir.StreamRoute{endsTLS(1, "db.example.com", ""), endsTLS(2, "db.example.com", ""),
			endsTLS(3, "", "default/own")}, "db.example.com" + of},
		{[]*ir.StreamRoute{endsTLS(1, "db.example.com", ""), endsTLS(2, "a.example.com", "")},
			"a.example.com" + of + ", db.example.com" + of},
		{[]*ir.StreamRoute{endsTLS(2, "a.example.com", "")}, "a.example.com" + of},
		{[]*ir.StreamRoute{{Protocol: ir.TCP, Port: 2, Origin: services}}, ""},
	} {
		if got := translator.published(step.routes...); got != step.want {
			t.Errorf("got %q, want %q", got, step.want)
		}
	}
	// The certificate of an Ingress takes precedence, and stays when the port is removed.
	own := &ir.Certificate{Host: "a.example.com", Secret: ir.Name{Namespace: "shop", Name: "a"},
		Origin: ir.Ref{Namespace: "shop", Name: "a"}}
	translator.merged.Set("a.example.com", &hosts.Merged{Certificate: own})
	if got := translator.published(endsTLS(2, "a.example.com", "")); got != "" ||
		!slices.Contains(translator.config.Certificates, own) {
		t.Errorf("issuers are asked for %q, and there are %v", got, translator.config.Certificates)
	}
	if translator.published(); !slices.Contains(translator.config.Certificates, own) {
		t.Error("the certificate of the Ingress goes with the port")
	}
}

// TestHostOfAnotherNamespace checks that a port with TLS is not opened if another namespace has the certificate of its
// host.
func TestHostOfAnotherNamespace(t *testing.T) {
	translator := New()
	translator.reset(Options{})
	theirs := &ir.Certificate{Host: "a.example.com", Secret: ir.Name{Namespace: "other", Name: "a"},
		Origin: ir.Ref{Namespace: "other", Name: "a"}}
	translator.merged.Set("a.example.com", &hosts.Merged{Certificate: theirs})
	foreign := endsTLS(2, "b.example.com", "")
	foreign.Backends = ir.To(&ir.Backend{Namespace: "other"})
	first := endsTLS(1, "b.example.com", "")
	translator.published(first, foreign, endsTLS(3, "a.example.com", ""))
	if open := translator.config.StreamRoutes; len(open) != 1 || open[0] != first {
		t.Errorf("open are %v", open)
	}
	verdicts := translator.report.Verdicts
	if len(verdicts) != 1 || len(verdicts[0].Problems) != 2 || verdicts[0].Problems[0].Reason != report.HostConflict {
		t.Errorf("it is said %+v", verdicts)
	}
	translator.merged.Delete("a.example.com")
	translator.published(endsTLS(3, "a.example.com", ""))
	if len(translator.config.StreamRoutes) != 1 || len(translator.report.Verdicts) != 0 {
		t.Errorf("when it is free: %v, %v", translator.config.StreamRoutes, translator.report.Verdicts)
	}
}

// TestHostOfAPortHasAnOwner checks that a port with TLS, like a rule of an Ingress, is only opened if its namespace may
// own the host. This includes hosts below a wildcard of another namespace and reserved hosts.
func TestHostOfAPortHasAnOwner(t *testing.T) {
	for name, c := range map[string]struct {
		policy ownership.Policy
		open   bool
	}{
		"shared": {ownership.Policy{}, true}, "exclusive": {ownership.Policy{Exclusive: true}, false},
		"reserved":            {ownership.Policy{Reserved: map[string][]string{"*.example.com": {"other"}}}, false},
		"reserved for itself": {ownership.Policy{Exclusive: true, Reserved: map[string][]string{"*": {"shop"}}}, true},
	} {
		t.Run(name, func(t *testing.T) {
			translator := New()
			translator.reset(Options{Ownership: c.policy})
			object := &networkingv1.Ingress{ObjectMeta: metav1.ObjectMeta{Namespace: "other", Name: "wildcard"}}
			wildcard := &hosts.Merged{Owner: ownership.Owner{Namespace: "other", By: object}}
			translator.merged.Set("*.example.com", wildcard)
			translator.published(endsTLS(1, "db.example.com", ""))
			if open := len(translator.config.StreamRoutes) == 1; open != c.open {
				t.Errorf("the port is open: %v, and it is said %+v", open, translator.report.Verdicts)
			}
		})
	}
}

func TestCertificateOfAPortWithoutIssuer(t *testing.T) {
	translator := New()
	translator.reset(Options{})
	if got := translator.published(endsTLS(1, "db.local", ""), endsTLS(2, "db.local", "")); got != "" {
		t.Errorf("issuers are asked for %q", got)
	}
	verdicts := translator.report.Verdicts
	if len(verdicts) != 1 || verdicts[0].Object != services ||
		len(verdicts[0].Problems) != 1 || verdicts[0].Problems[0].Reason != report.HostNotPublic {
		t.Errorf("it is said %+v", verdicts)
	}
	translator.published()
	if verdicts := translator.report.Verdicts; len(verdicts) != 0 {
		t.Errorf("in the end it is said %+v", verdicts)
	}
}
