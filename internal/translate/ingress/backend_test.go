package ingress

import (
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/k8singress/k8singress/internal/model/ir"
	"github.com/k8singress/k8singress/internal/model/report"
	"github.com/k8singress/k8singress/internal/model/snapshot"
)

// TestServiceWithoutAddress checks that an Ingress with service-upstream gets a warning if the Service has no address.
func TestServiceWithoutAddress(t *testing.T) {
	store := snapshot.NewStore()
	for name, address := range map[string]string{"headless": corev1.ClusterIPNone, "plain": "10.96.0.1"} {
		store.Set(&corev1.Service{
			ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: name},
			Spec:       corev1.ServiceSpec{ClusterIP: address, Ports: []corev1.ServicePort{{Port: 80}}},
		})
	}
	for _, test := range []struct {
		service   string
		asks, own bool
		told      bool
	}{{"headless", true, true, true}, {"headless", true, false, false}, {"headless", false, true, false},
		{"plain", true, true, false}} {
		r := &reading{snapshot: store.Take(), refs: map[ir.Ref]bool{}, Result: &Result{
			Object:        &networkingv1.Ingress{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web"}},
			LoadBalancing: ir.LoadBalancing{UseVirtualAddress: test.asks}, Balances: test.own,
		}}
		b := &networkingv1.IngressBackend{Service: &networkingv1.IngressServiceBackend{
			Name: test.service, Port: networkingv1.ServiceBackendPort{Number: 80},
		}}
		r.backend(b, "spec", false)
		r.backend(b, "spec", false)
		warned := slices.ContainsFunc(r.Problems, func(p report.Problem) bool { return p.Severity == report.Warning })
		if warned != test.told || !slices.Equal(r.Backends, []string{"shop/" + test.service + "/80"}) {
			t.Errorf("%+v: problems %v, backends %v", test, r.Problems, r.Backends)
		}
	}
}
