package translate

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/k8singress/k8singress/internal/model/ir"
	"github.com/k8singress/k8singress/internal/model/kinds"
	"github.com/k8singress/k8singress/internal/model/report"
	"github.com/k8singress/k8singress/internal/model/snapshot"
	"github.com/k8singress/k8singress/internal/translate/ingress"
)

// onHosts returns an Ingress with one path on each host.
func onHosts(name string, hosts ...string) *networkingv1.Ingress {
	object := &networkingv1.Ingress{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: name}}
	for _, host := range hosts {
		kind := networkingv1.PathTypePrefix
		object.Spec.Rules = append(object.Spec.Rules, networkingv1.IngressRule{
			Host: host, IngressRuleValue: networkingv1.IngressRuleValue{HTTP: &networkingv1.HTTPIngressRuleValue{
				Paths: []networkingv1.HTTPIngressPath{{Path: "/" + name, PathType: &kind,
					Backend: networkingv1.IngressBackend{
						Service: &networkingv1.IngressServiceBackend{Name: "web",
							Port: networkingv1.ServiceBackendPort{Number: 80}},
					}}},
			}},
		})
	}
	return object
}

// TestPanicInAHostIsIsolated checks that a panic while one of two hosts is merged does not affect the other host, and
// that a change of the Ingress ends all effects of the panic. The panic comes from a contribution that no real object
// causes.
func TestPanicInAHostIsIsolated(t *testing.T) {
	o := Options{Ingress: ingress.Options{WatchWithoutClass: true}}
	store := snapshot.NewStore()
	store.Set(&corev1.Service{
		ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web"},
		Spec:       corev1.ServiceSpec{Ports: []corev1.ServicePort{{Port: 80}}},
	})
	store.Set(onHosts("good", "a.example", "b.example"))
	store.Set(onHosts("bad", "a.example", "b.example"))
	translator := New()
	before, _ := translator.Translate(store.Take(), o)

	ref := ir.Ref{Kind: kinds.Ingress, Namespace: "shop", Name: "bad"}
	poisoned := translator.results.Get(ref).Paths
	poisoned["a.example"] = append(poisoned["a.example"], nil)
	store.Set(onHosts("good", "a.example", "b.example", "c.example"))
	config, verdicts := translator.Translate(store.Take(), o)
	if len(config.VirtualHosts) != 3 || config.VirtualHosts[1] != before.VirtualHosts[1] {
		t.Fatalf("the hosts are %+v", config.VirtualHosts)
	}
	for _, r := range config.VirtualHosts[0].Routes {
		closed := slices.Contains(r.Filters, ir.Filter(ir.DirectResponse{Status: 503}))
		if bad := r.Origin == ref; bad != closed {
			t.Errorf("%s is closed: %t", r.Match.Path, closed)
		}
	}
	if v := verdicts.Get(ref); len(v.Problems) != 1 || v.Problems[0].Reason != report.Quarantined {
		t.Errorf("of the bad one is said %+v", v)
	}
	if v := verdicts.Get(ir.Ref{Kind: kinds.Ingress, Namespace: "shop", Name: "good"}); len(v.Problems) > 0 {
		t.Errorf("of the good one is said %+v", v)
	}

	other := onHosts("bad", "b.example")
	store.Set(other)
	now := store.Take()
	config, verdicts = translator.Translate(now, o)
	wantConfig, wantVerdicts := Translate(now, o)
	if diff := cmp.Diff(wantConfig, config); diff != "" {
		t.Errorf("afterwards, -want +got:\n%s", diff)
	}
	if diff := cmp.Diff(wantVerdicts, verdicts); diff != "" {
		t.Errorf("the verdicts afterwards, -want +got:\n%s", diff)
	}
}
