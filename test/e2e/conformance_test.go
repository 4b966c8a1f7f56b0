package e2e

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"

	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/k8singress/k8singress/test/harness"
)

// conformance holds what the tests of the Ingress specification share: one controller, and Deployments with one pod
// each, so that the responding pod shows which Service was selected.
type conformance struct {
	*cluster
	caddy *harness.Caddy
}

// sentence is a requirement in the documentation of networking.k8s.io/v1, in its words.
type sentence struct {
	words string
	hold  func(*conformance)
}

// TestConformance checks each sentence of the Ingress specification. The features are the same as in Kubernetes'
// ingress-controller-conformance.
func TestConformance(t *testing.T) {
	c := newCluster(t)
	services := []string{"one", "two", "three", "other"}
	for _, name := range services {
		c.deploy(name, 1)
	}
	c.deploy("many", 3)
	for _, name := range services {
		c.awaitEndpoints(name, 1, 0)
	}
	c.awaitEndpoints("many", 3, 0)
	caddy := c.caddy(c.options(0, "publish_address "+published))
	for _, feature := range []struct {
		name      string
		sentences []sentence
		// alone reports whether its Ingresses match every host, so that no other test may run at the same time.
		alone bool
	}{
		{"host rules", hostRules, false},
		{"path rules", pathRules, false},
		{"ingress class", ingressClasses, false},
		{"load balancing", loadBalancing, false},
		{"TLS", tlsTermination, false},
		{"default backend", defaultBackends, true},
	} {
		t.Run(feature.name, func(t *testing.T) {
			for _, s := range feature.sentences {
				t.Run(s.words, func(t *testing.T) {
					if !feature.alone {
						t.Parallel()
					}
					s.hold(&conformance{c.in(t), caddy})
				})
			}
		})
	}
	c.checkNoReload(caddy)
}

// route is one path of one host.
type route struct {
	host     string
	pathType networkingv1.PathType
	path     string
	service  string
}

// Short names of the path types for tables.
const (
	exact  = networkingv1.PathTypeExact
	prefix = networkingv1.PathTypePrefix
)

// rules creates an Ingress with the routes, with one rule for each host. The Ingress is deleted when the test ends.
func (f *conformance) rules(name string, routes []route, changes ...func(*networkingv1.Ingress)) {
	f.Helper()
	f.ingress(name, "", append([]func(*networkingv1.Ingress){func(i *networkingv1.Ingress) {
		i.Spec.Rules = nil
		for _, r := range routes {
			addRoute(i, r)
		}
	}}, changes...)...)
	// The context of the test has ended by then, and the test may have deleted the Ingress.
	f.Cleanup(func() {
		_ = f.NetworkingV1().Ingresses(f.namespace).Delete(context.Background(), name, metav1.DeleteOptions{})
	})
}

func addRoute(i *networkingv1.Ingress, r route) {
	at := slices.IndexFunc(i.Spec.Rules, func(rule networkingv1.IngressRule) bool { return rule.Host == r.host })
	if at < 0 {
		at = len(i.Spec.Rules)
		i.Spec.Rules = append(i.Spec.Rules, networkingv1.IngressRule{Host: r.host})
		i.Spec.Rules[at].HTTP = &networkingv1.HTTPIngressRuleValue{}
	}
	i.Spec.Rules[at].HTTP.Paths = append(i.Spec.Rules[at].HTTP.Paths, networkingv1.HTTPIngressPath{
		Path: r.path, PathType: ptr.To(r.pathType), Backend: *to(r.service),
	})
}

// to returns a backend with the port http of a Service.
func to(service string) *networkingv1.IngressBackend {
	return &networkingv1.IngressBackend{Service: &networkingv1.IngressServiceBackend{
		Name: service, Port: networkingv1.ServiceBackendPort{Name: "http"},
	}}
}

// answer is a request and the Service that must respond to it. An empty Service means that the controller responds with
// 404.
type answer struct{ host, path, service string }

// nobody is the empty Service of a 404 response.
const nobody = ""

// answers waits for the first answer, which no other Ingress may give, and then checks the others without waiting,
// since an Ingress takes effect as a whole.
func (f *conformance) answers(all ...answer) {
	f.Helper()
	f.await(fmt.Sprint(all[0]), func() error { return f.compare(all[0]) })
	for _, a := range all[1:] {
		if err := f.compare(a); err != nil {
			f.Errorf("%v: %v", a, err)
		}
	}
}

func (f *conformance) compare(want answer) error {
	r, err := once(f.Context(), f.caddy.HTTP, "http://"+want.host+want.path)
	switch {
	case err != nil:
		return err
	case want.service == nobody && r.code != http.StatusNotFound:
		return fmt.Errorf("answered %d by pod %q, not 404", r.code, r.pod)
	case want.service != nobody && (r.code != http.StatusOK || !strings.HasPrefix(r.pod, want.service+"-")):
		return fmt.Errorf("answered %d by pod %q, not by %s", r.code, r.pod, want.service)
	}
	return nil
}
