package ingress_test

import (
	"strings"
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

// everything accepts Ingresses of any class, for tests of other features.
var everything = ingress.Options{ControllerName: "k8s.io/ingress-nginx", ClassName: "nginx", WatchWithoutClass: true}

func take(objects ...kinds.Object) *snapshot.Snapshot {
	store := snapshot.NewStore()
	for _, object := range objects {
		store.Set(object)
	}
	return store.Take()
}

func service(name string, ports ...corev1.ServicePort) *corev1.Service {
	return &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: name},
		Spec:       corev1.ServiceSpec{Type: corev1.ServiceTypeClusterIP, Ports: ports},
	}
}

func backend(service string, port int32) networkingv1.IngressBackend {
	return networkingv1.IngressBackend{Service: &networkingv1.IngressServiceBackend{
		Name: service, Port: networkingv1.ServiceBackendPort{Number: port},
	}}
}

func prefix(path string, b networkingv1.IngressBackend) networkingv1.HTTPIngressPath {
	pathType := networkingv1.PathTypePrefix
	return networkingv1.HTTPIngressPath{Path: path, PathType: &pathType, Backend: b}
}

// object returns an Ingress with one rule.
func object(name, host string, paths ...networkingv1.HTTPIngressPath) *networkingv1.Ingress {
	return &networkingv1.Ingress{
		ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: name},
		Spec: networkingv1.IngressSpec{Rules: []networkingv1.IngressRule{{
			Host:             host,
			IngressRuleValue: networkingv1.IngressRuleValue{HTTP: &networkingv1.HTTPIngressRuleValue{Paths: paths}},
		}}},
	}
}

// reasons returns the reason and field of each problem.
func reasons(problems []report.Problem) []string {
	var all []string
	for _, p := range problems {
		all = append(all, string(p.Reason)+" "+p.Field)
	}
	return all
}

func TestHost(t *testing.T) {
	label := strings.Repeat("a", 63)
	long := strings.Repeat("a.", 126) + "a"
	for _, test := range []struct{ host, want string }{
		{"", ""},
		{"example.com", "example.com"},
		{"EXAMPLE.Com", "example.com"},
		{"example.com.", "example.com"},
		{"localhost", "localhost"},
		{"*.example.com", "*.example.com"},
		{"*.com", "*.com"},
		{"xn--bcher-kva.example", "xn--bcher-kva.example"},
		{"1.2.3", "1.2.3"},
		{label + ".example", label + ".example"},
		{long, long},
	} {
		got, err := ingress.Host(test.host)
		if err != nil || got != test.want {
			t.Errorf("%q: got %q and %v, want %q", test.host, got, err, test.want)
		}
	}
}

func TestHostRefused(t *testing.T) {
	for _, host := range []string{
		".", "..", "*", "*.", "*.*.example.com", "a.*.example.com", "*example.com", "example.*", "example.com..",
		".example.com",
		"a..b", "-a.example", "a-.example", "under_score.example", "example.com:8080", "http://example.com",
		"example.com/path", "a b",
		"bücher.example", "\u212a.example", "{env.HOME}", "{file./etc/hostname}.example", "~^regex$", "a\nb", "a\x00",
		"\xff", "[::1]",
		strings.Repeat("a.", 127) + "a",
	} {
		if got, err := ingress.Host(host); err == nil {
			t.Errorf("%q is taken, as %q", host, got)
		}
	}
}

// TestBackend checks the backend of a path: a port of a Service, a missing one, or nil.
func TestBackend(t *testing.T) {
	external := service("external", corev1.ServicePort{Port: 80})
	external.Spec.Type, external.Spec.ExternalName = corev1.ServiceTypeExternalName, "example.com"
	objects := take(service("web", corev1.ServicePort{Name: "http", Port: 80}), external)
	named := backend("web", 0)
	named.Service.Port.Name = "http"
	slash := backend("web", 0)
	slash.Service.Port.Name = "80/udp"
	for _, test := range []struct {
		name    string
		backend networkingv1.IngressBackend
		want    *ir.Backend
		reasons []string
	}{
		{"number", backend("web", 80), &ir.Backend{ID: "shop/web/80", PortName: "http"}, nil},
		{"name", named, &ir.Backend{ID: "shop/web/80", PortName: "http"}, nil},
		{
			"no such port", backend("web", 81), &ir.Backend{ID: "shop/web/81", Missing: true},
			[]string{"InvalidBackend spec.rules[0].http.paths[0].backend.service.port"},
		},
		{
			"no port", backend("web", 0), &ir.Backend{ID: "shop/web/0", Missing: true},
			[]string{"InvalidBackend spec.rules[0].http.paths[0].backend.service.port"},
		},
		{
			"a port that is no name", slash, &ir.Backend{ID: "shop/web/80%2Fudp", Missing: true},
			[]string{"InvalidBackend spec.rules[0].http.paths[0].backend.service.port"},
		},
		{
			"no such Service", backend("nobody", 80),
			&ir.Backend{ID: "shop/nobody/80", Service: "nobody", Missing: true},
			[]string{"ServiceNotFound spec.rules[0].http.paths[0].backend.service.name"},
		},
		{
			"ExternalName", backend("external", 80),
			&ir.Backend{ID: "shop/external/80", Service: "external", ExternalName: "example.com:80"}, nil,
		},
		{"nothing", networkingv1.IngressBackend{}, nil, []string{"InvalidBackend spec.rules[0].http.paths[0].backend"}},
		{
			"resource", networkingv1.IngressBackend{Resource: &corev1.TypedLocalObjectReference{Kind: "Bucket",
				Name: "b"}}, nil,
			[]string{"InvalidBackend spec.rules[0].http.paths[0].backend.resource"},
		},
	} {
		t.Run(test.name, func(t *testing.T) {
			r := ingress.Translate(objects, object("web", "a.example", prefix("/", test.backend)), everything)
			if diff := cmp.Diff(test.reasons, reasons(r.Problems)); diff != "" {
				t.Errorf("problems (-want +got):\n%s", diff)
			}
			var got *ir.Backend
			if paths := r.Paths["a.example"]; len(paths) > 0 {
				got = paths[0].Backend
			}
			if want := test.want; want != nil {
				want.Namespace, want.Protocol = "shop", ir.TCP
				if want.Service == "" {
					want.Service = "web"
				}
			}
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("backend (-want +got):\n%s", diff)
			}
		})
	}
}

func TestPath(t *testing.T) {
	exact, specific, wrong := networkingv1.PathTypeExact, networkingv1.PathTypeImplementationSpecific,
		networkingv1.PathType("Regex")
	b := backend("web", 80)
	for _, test := range []struct {
		name string
		path networkingv1.HTTPIngressPath
		want ir.PathMatch
	}{
		{"prefix", prefix("/a", b), ir.PathMatch{Type: ir.MatchPrefix, Path: "/a"}},
		{"empty is everything", prefix("", b), ir.PathMatch{Type: ir.MatchPrefix, Path: "/"}},
		{"exact", networkingv1.HTTPIngressPath{Path: "/A/", PathType: &exact, Backend: b},
			ir.PathMatch{Type: ir.MatchExact, Path: "/A/"}},
		{"ours to choose", networkingv1.HTTPIngressPath{Path: "/a", PathType: &specific, Backend: b},
			ir.PathMatch{Type: ir.MatchPrefix, Path: "/a"}},
		{"no type", networkingv1.HTTPIngressPath{Path: "/a", Backend: b},
			ir.PathMatch{Type: ir.MatchPrefix, Path: "/a"}},
		{"placeholder", prefix("/{env.HOME}/{file./etc/hostname}", b),
			ir.PathMatch{Type: ir.MatchPrefix, Path: "/{env.HOME}/{file./etc/hostname}"}},
		{"no such type", networkingv1.HTTPIngressPath{Path: "/a", PathType: &wrong, Backend: b}, ir.PathMatch{}},
		{"without slash", prefix("a", b), ir.PathMatch{}},
		{"line feed", prefix("/a\nb", b), ir.PathMatch{}},
		{"next line", prefix("/a\u0085b", b), ir.PathMatch{}},
		{"line separator", prefix("/a\u2028b", b), ir.PathMatch{}},
		{"not UTF-8", prefix("/a\xff", b), ir.PathMatch{}},
	} {
		t.Run(test.name, func(t *testing.T) {
			r := ingress.Translate(take(service("web", corev1.ServicePort{Port: 80})),
				object("web", "a.example", test.path), everything)
			if test.want.Path == "" {
				if diff := cmp.Diff([]string{"InvalidPath spec.rules[0].http.paths[0]"},
					reasons(r.Problems)); diff != "" {
					t.Errorf("problems (-want +got):\n%s", diff)
				}
				if len(r.Paths["a.example"]) > 0 {
					t.Errorf("it is served all the same: %v", r.Paths["a.example"][0].Match)
				}
				return
			}
			if len(r.Problems) > 0 || len(r.Paths["a.example"]) != 1 || r.Paths["a.example"][0].Match != test.want {
				t.Errorf("got %v and %v, want %v", r.Paths, r.Problems, test.want)
			}
		})
	}
}
