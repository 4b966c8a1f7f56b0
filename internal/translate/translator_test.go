package translate_test

import (
	"fmt"
	"maps"
	"reflect"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/intstr"
	"pgregory.net/rapid"

	"github.com/k8singress/k8singress/internal/ingress"
	"github.com/k8singress/k8singress/internal/kinds"
	"github.com/k8singress/k8singress/internal/settings"
	"github.com/k8singress/k8singress/internal/snapshot"
	"github.com/k8singress/k8singress/internal/streams"
	"github.com/k8singress/k8singress/internal/translate"
)

var options = translate.Options{
	Ingress: ingress.Options{ControllerName: "k8s.io/ingress-nginx", ClassName: "nginx", Passthrough: true},
	Streams: streams.Options{
		TCP: "a/tcp", Services: streams.ServicePorts{
			TCP: []settings.PortRange{{First: 1, Last: 9999}}, UDP: []settings.PortRange{{First: 53, Last: 53}},
		},
	},
	ConfigMap: "a/global",
}

// narrow are other options, which leave more out.
var narrow = translate.Options{
	Ingress: ingress.Options{
		ControllerName: "k8s.io/ingress-nginx", ClassName: "nginx", WatchWithoutClass: true, DisableCatchAll: true, ExternalNames: "off",
		Namespaces: labels.SelectorFromSet(labels.Set{"team": "shop"}),
	},
	Streams: streams.Options{ExternalNames: "off", Services: streams.ServicePorts{
		TCP: []settings.PortRange{{First: 6000, Last: 6999}}, Selector: labels.SelectorFromSet(labels.Set{"team": "shop"}),
	}},
	ConfigMap: "a/global",
}

// scarce are options with which issuers are asked for as much as they can be, and of each namespace for two hosts.
var scarce = translate.Options{
	Ingress: ingress.Options{
		ControllerName: "k8s.io/ingress-nginx", ClassName: "nginx", WatchWithoutClass: true,
		Issuance: ingress.Issuance{Mode: "all", OnMissingSecret: true, AnyName: true, Wildcards: true}, Passthrough: true,
	},
	ConfigMap: "a/global", HostsPerNamespace: 2,
}

// The worlds that objects are drawn from are small, so that objects meet.
var (
	names  = []string{"one", "two", "three"}
	hosts  = []string{"", "a.example", "b.example", "*.example", "c.example", "c.a.example", "*.a.example", "{env.HOME}"}
	paths  = []string{"/", "/foo", "/foo/", "/foo/(.*)", "/(", "", "no-slash"}
	ports  = []networkingv1.ServiceBackendPort{{Number: 80}, {Name: "http"}, {Name: "nope"}}
	stamps = []time.Time{time.Unix(1, 0), time.Unix(2, 0)}

	asked = map[string][]string{
		"rewrite-target":        {"/$1", "/", "bad\nvalue", "https://x/"},
		"load-balance":          {"ewma", "round_robin", "random"},
		"affinity":              {"cookie"},
		"service-upstream":      {"true"},
		"proxy-connect-timeout": {"1", "2"},
		"ssl-redirect":          {"true", "false"},
		"force-ssl-redirect":    {"true", "false"},
		"ssl-passthrough":       {"true"},
	}
	data = map[string][]string{
		"load-balance":          {"ewma", "round_robin", "bad"},
		"proxy-connect-timeout": {"7", "8", "bad"},
		"use-forwarded-headers": {"true", "false"},
		"auto-https":            {"off", "tls", "all"},
		"ssl-redirect":          {"true", "false"},
		"proxy-stream-timeout":  {"1h", "2h", "bad"},
	}
	exposed = map[string][]string{
		"tcp-ports":           {"5432:80, 6379:http", "6379", "bad"},
		"udp-ports":           {"53:80"},
		"stream-idle-timeout": {"3h", "bad"},
		"stream-tls-secret":   {"one", "a/b"},
		"stream-tls-host":     {"a.example"},
	}
)

// some takes values for some of the keys, most often for none.
func some(t *rapid.T, from map[string][]string, prefix string) map[string]string {
	result := map[string]string{}
	for _, key := range slices.Sorted(maps.Keys(from)) {
		if rapid.IntRange(0, 4).Draw(t, key) == 0 {
			result[prefix+key] = draw(t, from[key])
		}
	}
	return result
}

func draw[T any](t *rapid.T, from []T) T { return rapid.SampledFrom(from).Draw(t, "value") }

func meta(t *rapid.T) metav1.ObjectMeta {
	namespace := draw(t, []string{"a", "a", "a", "b"})
	return metav1.ObjectMeta{Namespace: namespace, Name: draw(t, names), CreationTimestamp: metav1.NewTime(draw(t, stamps))}
}

func drawBackend(t *rapid.T) networkingv1.IngressBackend {
	if rapid.IntRange(0, 9).Draw(t, "resource") == 0 {
		return networkingv1.IngressBackend{Resource: &corev1.TypedLocalObjectReference{Kind: "Bucket", Name: "x"}}
	}
	return networkingv1.IngressBackend{Service: &networkingv1.IngressServiceBackend{Name: draw(t, names), Port: draw(t, ports)}}
}

func drawIngress(t *rapid.T) *networkingv1.Ingress {
	object := &networkingv1.Ingress{ObjectMeta: meta(t)}
	object.Annotations = some(t, asked, "nginx.ingress.kubernetes.io/")
	switch rapid.IntRange(0, 4).Draw(t, "class") {
	case 0:
		object.Annotations["kubernetes.io/ingress.class"] = draw(t, []string{"nginx", "other", ""})
	case 1:
	default:
		name := draw(t, []string{"one", "two", "gone"})
		object.Spec.IngressClassName = &name
	}
	if rapid.IntRange(0, 2).Draw(t, "default") == 0 {
		backend := drawBackend(t)
		object.Spec.DefaultBackend = &backend
	}
	for range rapid.IntRange(0, 2).Draw(t, "rules") {
		rule := networkingv1.IngressRule{Host: draw(t, hosts)}
		for range rapid.IntRange(0, 2).Draw(t, "paths") {
			kind := draw(t, []networkingv1.PathType{networkingv1.PathTypeExact, networkingv1.PathTypePrefix})
			path := networkingv1.HTTPIngressPath{Path: draw(t, paths), PathType: &kind, Backend: drawBackend(t)}
			if rule.HTTP == nil {
				rule.HTTP = &networkingv1.HTTPIngressRuleValue{}
			}
			rule.HTTP.Paths = append(rule.HTTP.Paths, path)
		}
		object.Spec.Rules = append(object.Spec.Rules, rule)
	}
	if word := draw(t, []string{"", "", "", "off", "all"}); word != "" {
		object.Annotations["k8singress.io/auto-https"] = word
	}
	for range rapid.IntRange(0, 2).Draw(t, "tls") {
		entry := networkingv1.IngressTLS{SecretName: draw(t, append([]string{""}, names...))}
		if rapid.IntRange(0, 4).Draw(t, "listed") > 0 {
			entry.Hosts = []string{draw(t, hosts)}
		}
		object.Spec.TLS = append(object.Spec.TLS, entry)
	}
	return object
}

func drawService(t *rapid.T) *corev1.Service {
	port := corev1.ServicePort{Name: draw(t, []string{"http", ""}), Port: 80, TargetPort: intstr.FromInt32(8080)}
	object := &corev1.Service{ObjectMeta: meta(t), Spec: corev1.ServiceSpec{Ports: []corev1.ServicePort{port}}}
	object.Annotations = some(t, exposed, "k8singress.io/")
	switch rapid.IntRange(0, 4).Draw(t, "type") {
	case 0:
		object.Spec.Type = corev1.ServiceTypeExternalName
		object.Spec.ExternalName = draw(t, []string{"example.org", "localhost"})
	case 1:
		object.Spec.ClusterIP = draw(t, []string{"None", "10.96.0.1"})
		object.Spec.SessionAffinity = corev1.ServiceAffinityClientIP
	}
	return object
}

func drawClass(t *rapid.T) *networkingv1.IngressClass {
	class := &networkingv1.IngressClass{ObjectMeta: meta(t)}
	class.Namespace = ""
	class.Spec.Controller = draw(t, []string{"k8s.io/ingress-nginx", "example.com/other"})
	if rapid.Bool().Draw(t, "default") {
		class.Annotations = map[string]string{networkingv1.AnnotationIsDefaultIngressClass: "true"}
	}
	if rapid.Bool().Draw(t, "parameters") {
		class.Spec.Parameters = &networkingv1.IngressClassParametersReference{
			Kind: draw(t, []string{"ConfigMap", "Bucket"}), Name: draw(t, []string{"class", "gone"}),
		}
	}
	return class
}

func drawConfigMap(t *rapid.T) *corev1.ConfigMap {
	object := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "a", Name: draw(t, []string{"tcp", "global", "class"})}}
	object.Data = some(t, data, "")
	if object.Name == "tcp" {
		object.Data[draw(t, []string{"5432", "6379", "x"})] = "a/" + draw(t, names) + ":" + draw(t, []string{"80", "http", "nope"})
	}
	return object
}

func drawObject(t *rapid.T) kinds.Object {
	switch rapid.IntRange(0, 9).Draw(t, "kind") {
	case 0, 1:
		return drawService(t)
	case 2:
		return &corev1.Secret{ObjectMeta: meta(t)}
	case 3:
		return drawClass(t)
	case 4:
		return drawConfigMap(t)
	case 5:
		object := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: draw(t, []string{"a", "b"})}}
		object.Labels = map[string]string{"team": draw(t, []string{"shop", "shop", "other"})}
		return object
	}
	return drawIngress(t)
}

// TestIncrementalEqualsFull: whatever happened before, the result is that of a translation that remembers nothing.
func TestIncrementalEqualsFull(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		store, translator := snapshot.NewStore(), translate.New()
		options := draw(t, []translate.Options{options, narrow, scarce, scarce})
		var waiting *snapshot.Snapshot
		for range rapid.IntRange(1, 30).Draw(t, "steps") {
			if object := drawObject(t); rapid.IntRange(0, 3).Draw(t, "delete") == 0 {
				store.Delete(object)
			} else {
				store.Set(object)
			}
			s := store.Take()
			if waiting != nil {
				s = s.Joined(waiting)
			}
			// Sometimes changes wait for the next ones.
			if waiting = nil; rapid.IntRange(0, 3).Draw(t, "wait") == 0 {
				waiting = s
				continue
			}
			config, verdicts := translator.Translate(s, options)
			wantConfig, wantVerdicts := translate.Translate(s, options)
			if diff := cmp.Diff(wantConfig, config); diff != "" {
				t.Fatalf("configuration (-full +incremental):\n%s", diff)
			}
			if diff := cmp.Diff(wantVerdicts, verdicts); diff != "" {
				t.Fatalf("report (-full +incremental):\n%s", diff)
			}
		}
	})
}

// fill returns a store with Ingresses, each with a host and a Service of its own.
func fill(n int) *snapshot.Store { return fillWith(n, numbered) }

// fillWith returns a store with the Ingresses that one makes of a number and a path, and with as many Services.
func fillWith(n int, one func(i int, path string) *networkingv1.Ingress) *snapshot.Store {
	store := snapshot.NewStore()
	store.Set(&networkingv1.IngressClass{
		ObjectMeta: metav1.ObjectMeta{Name: "nginx"}, Spec: networkingv1.IngressClassSpec{Controller: "k8s.io/ingress-nginx"},
	})
	for i := range n {
		store.Set(one(i, "/"))
		store.Set(&corev1.Service{
			ObjectMeta: metav1.ObjectMeta{Namespace: "a", Name: fmt.Sprint("s", i)},
			Spec:       corev1.ServiceSpec{Ports: []corev1.ServicePort{{Name: "http", Port: 80}}},
		})
	}
	return store
}

func numbered(i int, path string) *networkingv1.Ingress {
	class, kind := "nginx", networkingv1.PathTypePrefix
	backend := networkingv1.IngressBackend{Service: &networkingv1.IngressServiceBackend{Name: fmt.Sprint("s", i), Port: ports[0]}}
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

// sharing is numbered with the Service of the first.
func sharing(i int, path string) *networkingv1.Ingress {
	object := numbered(i, path)
	object.Spec.Rules[0].HTTP.Paths[0].Backend.Service.Name = "s0"
	return object
}

// TestWhatDidNotChangeStaysTheSame: later stages find changes by comparing pointers.
func TestWhatDidNotChangeStaysTheSame(t *testing.T) {
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

// BenchmarkOneChange changes one Ingress of many: it must not cost more where there are more, whether each has a Service of
// its own or all have the same.
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

// exposing is a Service that asks for a port of its own.
func exposing(i int, ports string) *corev1.Service {
	return &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: "a", Name: fmt.Sprint("x", i), Annotations: map[string]string{"k8singress.io/tcp-ports": ports},
		},
		Spec: corev1.ServiceSpec{Ports: []corev1.ServicePort{{Name: "http", Port: 80}}},
	}
}

// TestPortsThatDidNotChangeStayTheSame holds that of many ports those are rendered again that are others, and that Services
// without annotations are none of their business.
func TestPortsThatDidNotChangeStayTheSame(t *testing.T) {
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

// BenchmarkOneOf200Ports changes one port of 200 in a cluster of 10,000 Services.
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
