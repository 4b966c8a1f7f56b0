package translate_test

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/k8singress/k8singress/internal/model/ir"
	"github.com/k8singress/k8singress/internal/model/kinds"
	"github.com/k8singress/k8singress/internal/model/report"
	"github.com/k8singress/k8singress/internal/model/snapshot"
	"github.com/k8singress/k8singress/internal/tests/fixture"
	"github.com/k8singress/k8singress/internal/translate"
)

// owned returns the options, changed so that only the owner's namespace may use a host.
func owned(o translate.Options) translate.Options {
	o.Ownership.Exclusive = true
	return o
}

// reserved returns the options, changed so that some hosts are reserved for some namespaces.
func reserved(o translate.Options) translate.Options {
	o.Ownership.Reserved = map[string][]string{"*.a.example": {"a"}, "a.example": {"b", "x*"}, "*": {"a", "b"}}
	o.Ownership.Solvers = []string{"b"}
	return o
}

// rival returns an Ingress. of is "namespace/name", age is the creation time in seconds since 1970, route is
// "host/path", and tls are the hosts that it lists for TLS.
func rival(of string, age int64, route string, annotations map[string]string, tls ...string) *networkingv1.Ingress {
	namespace, name, _ := strings.Cut(of, "/")
	host, path, _ := strings.Cut(route, "/")
	object := numbered(0, "/"+path)
	object.Namespace, object.Name, object.CreationTimestamp = namespace, name, metav1.NewTime(time.Unix(age, 0))
	object.Annotations = map[string]string{}
	for key, value := range annotations {
		object.Annotations["nginx.ingress.kubernetes.io/"+key] = value
	}
	object.Spec.Rules[0].Host = host
	for _, listed := range tls {
		object.Spec.TLS = append(object.Spec.TLS, networkingv1.IngressTLS{Hosts: []string{listed}, SecretName: "tls"})
	}
	return object
}

// rivals returns objects that compete with each other for hosts.
func rivals(t *testing.T) []kinds.Object {
	onlyBackend := rival("b/fallback", 1, "/", nil)
	onlyBackend.Spec.DefaultBackend = &onlyBackend.Spec.Rules[0].HTTP.Paths[0].Backend
	onlyBackend.Spec.Rules = nil
	all := []kinds.Object{
		onlyBackend,
		rival("a/main", 10, "s.example/admin",
			map[string]string{"ssl-ciphers": "ECDHE-RSA-AES128-GCM-SHA256"}, "s.example"),
		rival("a/regex", 11, "s.example/api/(.*)", map[string]string{"rewrite-target": "/$1"}),
		rival("b/long", 20, "s.example/()()()()()()", map[string]string{"rewrite-target": "/x"},
			"s.example", "*.example"),
		rival("b/mtls", 21, "s.example/b",
			map[string]string{"auth-tls-secret": "b/tls", "ssl-ciphers": "ECDHE-RSA-AES256-GCM-SHA384"}),
		rival("c/pass", 5, "s.example/", map[string]string{"ssl-passthrough": "true"}),
		rival("c/wild", 30, "*.example/", nil, "*.example"),
		rival("a/younger", 31, "*.example/x", nil, "*.example"),
		rival("b/below", 32, "t.example/", nil),
		rival("a/below", 33, "t.example/", nil, "t.example"),
		rival("b/same", 10, "s.example/admin", nil),
		rival("a/named", 12, "named.example/", map[string]string{
			"server-alias": "t.example, u.example, x.shop.example, *.example, *.deep.example, " +
				"~^[0-9]+[.]example$",
			"from-to-www-redirect": "true",
		}, "u.example", "www.named.example", "*.deep.example"),
		rival("b/named", 13, "www.other.example/",
			map[string]string{"server-alias": "u.example, other.example", "from-to-www-redirect": "true"},
			"u.example"),
		rival("c/shop", 14, "*.shop.example/", nil, "*.shop.example"),
		rival("b/www", 15, "www.named.example/", nil),
		rival("c/deep", 16, "x.deep.example/", map[string]string{"server-alias": "y.deep.example"}, "*.deep.example"),
		rival("b/challenge", 2, "s.example/.well-known/acme-challenge/token", nil),
	}
	for _, namespace := range []string{"a", "b", "c"} {
		secret := tlsSecret("tls")
		secret.Namespace, secret.Data = namespace, fixture.Certificate(t, "*.example").Secret()
		all = append(all, secret)
	}
	return all
}

// TestOwnershipInAnyOrder checks that the configuration and the report do not depend on the order in which objects are
// created, or on objects that were deleted in the meantime.
func TestOwnershipInAnyOrder(t *testing.T) {
	objects := rivals(t)
	for name, o := range map[string]translate.Options{
		"shared": options, "exclusive": owned(options), "issuance": scarce, "exclusive issuance": owned(scarce),
		"reserved": reserved(options),
	} {
		t.Run(name, func(t *testing.T) {
			store := fill(0)
			store.Apply(objects, nil)
			wantConfig, wantReport := translate.Translate(store.Take(), o)
			for range 200 {
				rand.Shuffle(len(objects), func(i, j int) { objects[i], objects[j] = objects[j], objects[i] })
				config, verdicts := inThisOrder(objects, o)
				if diff := cmp.Diff(wantConfig, config); diff != "" {
					t.Fatalf("configuration (-at once +one by one):\n%s", diff)
				}
				if diff := cmp.Diff(wantReport, verdicts); diff != "" {
					t.Fatalf("report (-at once +one by one):\n%s", diff)
				}
			}
		})
	}
}

// inThisOrder creates the objects one by one, and translates some of the intermediate states. It also deletes one of
// the objects and creates it again. It returns the final result.
func inThisOrder(objects []kinds.Object, o translate.Options) (*ir.Config, *report.Report) {
	store, translator := fill(0), translate.New()
	for i, object := range objects {
		store.Set(object)
		if i%3 == 0 {
			translator.Translate(store.Take(), o)
		}
	}
	store.Delete(objects[len(objects)/2])
	translator.Translate(store.Take(), o)
	store.Set(objects[len(objects)/2])
	return translator.Translate(store.Take(), o)
}

// TestHostMovesWhenItsOwnerGoes checks that a host keeps its owner when younger objects are created or the owner's
// object is changed, and gets another owner when that object is deleted.
func TestHostMovesWhenItsOwnerGoes(t *testing.T) {
	store, translator, o := fill(0), translate.New(), owned(options)
	old, young := rival("a/old", 1, "s.example/", nil), rival("b/young", 2, "s.example/", nil)
	for _, step := range []struct {
		what string
		do   func()
		want string
	}{
		{"the younger one alone", func() { store.Set(young) }, "b"},
		{"the older one comes", func() { store.Set(old) }, "a"},
		{"the older one changes", func() { store.Set(rival("a/old", 1, "s.example/changed", nil)) }, "a"},
		{"a second one of the owner", func() { store.Set(rival("a/second", 3, "s.example/second", nil)) }, "a"},
		{"the older one goes, the second is younger than the other", func() { store.Delete(old) }, "b"},
		{"the other goes", func() { store.Delete(young) }, "a"},
		{"the wildcard above is younger", func() { store.Set(rival("b/wild", 4, "*.example/", nil)) }, "a"},
		{"the wildcard above is older", func() { store.Set(rival("b/wild", 0, "*.example/", nil)) }, ""},
		{"the wildcard goes", func() { store.Delete(rival("b/wild", 0, "*.example/", nil)) }, "a"},
	} {
		step.do()
		config, _ := translator.Translate(store.Take(), o)
		if got := ownerOf(config, "s.example"); got != step.want {
			t.Errorf("%s: s.example is served by %q, want %q", step.what, got, step.want)
		}
	}
}

// ownerOf returns the namespace of a host's routes, or "several" if they have different namespaces.
func ownerOf(c *ir.Config, host string) string {
	all := ""
	for _, h := range c.VirtualHosts {
		if h.Host != host {
			continue
		}
		for _, r := range h.Routes {
			if all != "" && all != r.Origin.Namespace {
				return "several"
			}
			all = r.Origin.Namespace
		}
	}
	return all
}

// tenant returns an Ingress like numbered, but in one of 100 namespaces, with an entry of spec.tls. It was created i
// seconds after 1970. Every tenth Ingress has a path on the host of the previous Ingress, which is in another
// namespace.
func tenant(i int, path string) *networkingv1.Ingress {
	object := numbered(i, path)
	object.Namespace = fmt.Sprint("n", i%100)
	object.CreationTimestamp = metav1.NewTime(time.Unix(int64(i), 0))
	object.Spec.TLS = []networkingv1.IngressTLS{{Hosts: []string{object.Spec.Rules[0].Host}, SecretName: "tls"}}
	if i%10 == 9 {
		object.Spec.Rules[0].Host = fmt.Sprintf("h%d.example", i-1)
		object.Spec.Rules[0].HTTP.Paths[0].Path = path + "more"
	}
	return object
}

func tenants(n int) *snapshot.Store { return fillWith(n, tenant) }

// BenchmarkTenants10000 translates Ingresses of 100 namespaces.
func BenchmarkTenants10000(b *testing.B) {
	s := tenants(10_000).Take()
	for name, o := range map[string]translate.Options{"shared": options, "namespace": owned(options)} {
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				translate.Translate(s, o)
			}
		})
	}
}

// BenchmarkOneTenantOf10000 changes one Ingress whose host has a path of another namespace.
func BenchmarkOneTenantOf10000(b *testing.B) {
	store, translator := tenants(10_000), translate.New()
	translator.Translate(store.Take(), options)
	targets := []string{"/one", "/two"}
	i := 0
	for b.Loop() {
		i++
		store.Set(tenant(78, targets[i%2]))
		translator.Translate(store.Take(), options)
	}
}
