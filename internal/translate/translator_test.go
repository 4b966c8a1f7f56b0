package translate_test

import (
	"fmt"
	"reflect"
	"testing"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/k8singress/k8singress/internal/model/ir"
	"github.com/k8singress/k8singress/internal/model/settings"
	"github.com/k8singress/k8singress/internal/model/snapshot"
	"github.com/k8singress/k8singress/internal/translate"
	"github.com/k8singress/k8singress/internal/translate/ingress"
	"github.com/k8singress/k8singress/internal/translate/streams"
)

var options = translate.Options{
	Ingress: ingress.Options{ControllerName: "k8s.io/ingress-nginx", ClassName: "nginx", Passthrough: true},
	Streams: streams.Options{
		TCP: ir.Name{Namespace: "a", Name: "tcp"}, UDP: ir.Name{Namespace: "a", Name: "udp"},
		Chains: []string{"office"},
		Services: streams.ServicePorts{
			TCP: []settings.PortRange{{First: 1, Last: 9999}}, UDP: []settings.PortRange{{First: 53, Last: 53}},
		},
	},
	ConfigMap: ir.Name{Namespace: "a", Name: "global"},
}

// narrow holds options that reject more objects than the variable options.
var narrow = translate.Options{
	Ingress: ingress.Options{
		ControllerName: "k8s.io/ingress-nginx", ClassName: "nginx", WatchWithoutClass: true, DisableCatchAll: true,
		ExternalNames: "off",
		Namespaces:    labels.SelectorFromSet(labels.Set{"team": "shop"}),
	},
	Streams: streams.Options{ExternalNames: "off", Services: streams.ServicePorts{
		TCP:      []settings.PortRange{{First: 6000, Last: 6999}},
		Selector: labels.SelectorFromSet(labels.Set{"team": "shop"}),
	}},
	ConfigMap: ir.Name{Namespace: "a", Name: "global"},
}

// scarce holds options that request certificates from issuers wherever possible, but for at most two hosts of each
// namespace.
var scarce = translate.Options{
	Ingress: ingress.Options{
		ControllerName: "k8s.io/ingress-nginx", ClassName: "nginx", WatchWithoutClass: true,
		Issuance:    ingress.Issuance{Mode: "all", OnMissingSecret: true, AnyName: true, Wildcards: true},
		Passthrough: true,
	},
	ConfigMap: ir.Name{Namespace: "a", Name: "global"}, DefaultCertificate: ir.Name{Namespace: "a", Name: "one"},
	HostsPerNamespace: 2,
}

// ports are references to a port of a Service: by number, by name, and to a port that does not exist.
var ports = []networkingv1.ServiceBackendPort{{Number: 80}, {Name: "http"}, {Name: "nope"}}

// fill returns a store with n Ingresses, each with its own host and Service.
func fill(n int) *snapshot.Store { return fillWith(n, numbered) }

// fillWith returns a store with n Ingresses, which one creates, and as many Services.
func fillWith(n int, one func(i int, path string) *networkingv1.Ingress) *snapshot.Store {
	store := snapshot.NewStore()
	store.Set(&networkingv1.IngressClass{
		ObjectMeta: metav1.ObjectMeta{Name: "nginx"},
		Spec:       networkingv1.IngressClassSpec{Controller: "k8s.io/ingress-nginx"},
	})
	for i := range n {
		object := one(i, "/")
		store.Set(object)
		store.Set(&corev1.Service{
			ObjectMeta: metav1.ObjectMeta{Namespace: object.Namespace, Name: fmt.Sprint("s", i)},
			Spec:       corev1.ServiceSpec{Ports: []corev1.ServicePort{{Name: "http", Port: 80}}},
		})
	}
	return store
}

func numbered(i int, path string) *networkingv1.Ingress {
	class, kind := "nginx", networkingv1.PathTypePrefix
	backend := networkingv1.IngressBackend{Service: &networkingv1.IngressServiceBackend{Name: fmt.Sprint("s", i),
		Port: ports[0]}}
	return &networkingv1.Ingress{
		ObjectMeta: metav1.ObjectMeta{Namespace: "a", Name: fmt.Sprint("i", i)},
		Spec: networkingv1.IngressSpec{IngressClassName: &class, Rules: []networkingv1.IngressRule{{
			Host: fmt.Sprintf("h%d.example", i),
			IngressRuleValue: networkingv1.IngressRuleValue{HTTP: &networkingv1.HTTPIngressRuleValue{
				Paths: []networkingv1.HTTPIngressPath{{Path: path, PathType: &kind, Backend: backend}},
			}},
		}}},
	}
}

// sharing returns an Ingress like numbered that uses the Service of the first Ingress.
func sharing(i int, path string) *networkingv1.Ingress {
	object := numbered(i, path)
	object.Spec.Rules[0].HTTP.Paths[0].Backend.Service.Name = "s0"
	return object
}

// TestUnchangedPartsKeepTheirPointers checks that unchanged parts keep their pointers, because later stages compare
// pointers to find changes.
func TestUnchangedPartsKeepTheirPointers(t *testing.T) {
	store, translator := fill(3), translate.New()
	before, _ := translator.Translate(store.Take(), options)
	store.Set(numbered(1, "/changed"))
	after, _ := translator.Translate(store.Take(), options)
	for i, same := range []bool{true, false, true} {
		if (before.VirtualHosts[i] == after.VirtualHosts[i]) != same {
			t.Errorf("host %d: same is %v", i, !same)
		}
	}
	if !reflect.DeepEqual(before.Backends, after.Backends) || before.Backends[0] != after.Backends[0] {
		t.Error("the backends are others")
	}
}

func BenchmarkFull10000(b *testing.B) {
	s := fill(10_000).Take()
	for b.Loop() {
		translate.Translate(s, options)
	}
}

// BenchmarkOneChange changes one of many Ingresses. The time must not depend on the number of Ingresses, whether each
// has its own Service or all share one Service.
func BenchmarkOneChange(b *testing.B) {
	for name, one := range map[string]func(int, string) *networkingv1.Ingress{"own": numbered, "shared": sharing} {
		for _, n := range []int{10_000, 100_000} {
			b.Run(fmt.Sprintf("%s/%d", name, n), func(b *testing.B) {
				store, translator := fillWith(n, one), translate.New()
				translator.Translate(store.Take(), options)
				targets := []string{"/one", "/two"}
				i := 0
				for b.Loop() {
					i++
					store.Set(one(77, targets[i%2]))
					translator.Translate(store.Take(), options)
				}
			})
		}
	}
}

// exposing returns a Service whose annotations request ports.
func exposing(i int, ports string) *corev1.Service {
	return &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: "a", Name: fmt.Sprint("x", i), Annotations: map[string]string{"k8singress.io/tcp-ports": ports},
		},
		Spec: corev1.ServiceSpec{Ports: []corev1.ServicePort{{Name: "http", Port: 80}}},
	}
}

// TestUnchangedPortsKeepTheirPointers checks that only changed ports get new pointers, and that Services without
// annotations have no effect on ports.
func TestUnchangedPortsKeepTheirPointers(t *testing.T) {
	store, translator := fill(3), translate.New()
	for i := range 3 {
		store.Set(exposing(i, fmt.Sprintf("%d:80", 1000+i)))
	}
	before, _ := translator.Translate(store.Take(), options)
	store.Set(exposing(1, "1001:80,1005:http"))
	after, _ := translator.Translate(store.Take(), options)
	if len(before.StreamRoutes) != 3 || len(after.StreamRoutes) != 4 {
		t.Fatalf("there are %d routes, then %d", len(before.StreamRoutes), len(after.StreamRoutes))
	}
	for i, r := range before.StreamRoutes {
		if r != after.StreamRoutes[i] {
			t.Errorf("port %d is another one", r.Port)
		}
	}
	store.Set(&corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: "a", Name: "s1"}})
	if again, _ := translator.Translate(store.Take(), options); &again.StreamRoutes[0] != &after.StreamRoutes[0] {
		t.Error("a Service without annotations has the ports translated again")
	}
	plain := exposing(1, "")
	plain.Annotations = nil
	store.Set(plain)
	if last, _ := translator.Translate(store.Take(), options); len(last.StreamRoutes) != 2 {
		t.Errorf("without its annotation there are %d routes", len(last.StreamRoutes))
	}
}

// BenchmarkOneOf200Ports changes one of 200 ports in a cluster of 10,000 Services.
func BenchmarkOneOf200Ports(b *testing.B) {
	store, translator := fill(10_000), translate.New()
	for i := range 200 {
		store.Set(exposing(i, fmt.Sprintf("%d:80", 1000+i)))
	}
	translator.Translate(store.Take(), options)
	i := 0
	for b.Loop() {
		i++
		store.Set(exposing(77, fmt.Sprintf("%d:80", 2000+i%2)))
		translator.Translate(store.Take(), options)
	}
}
