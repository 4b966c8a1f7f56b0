package ingress_test

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/k8singress/k8singress/internal/model/ir"
	"github.com/k8singress/k8singress/internal/model/kinds"
	"github.com/k8singress/k8singress/internal/translate/hosts"
	"github.com/k8singress/k8singress/internal/translate/ingress"
)

// aged sets the creation time of an Ingress, in seconds since 1970, and returns the Ingress.
func aged(o *networkingv1.Ingress, second int64) *networkingv1.Ingress {
	o.CreationTimestamp = metav1.Time{Time: time.Unix(second, 0)}
	return o
}

// merge translates Ingresses and merges them for one host.
func merge(t *testing.T, host string, objects ...*networkingv1.Ingress) *hosts.Merged {
	t.Helper()
	return mergeAround(t, host, &hosts.HostContext{}, objects...)
}

func mergeAround(t *testing.T, host string, around *hosts.HostContext,
	objects ...*networkingv1.Ingress) *hosts.Merged {
	t.Helper()
	s := take(service("a", corev1.ServicePort{Port: 80}), service("b", corev1.ServicePort{Port: 80}),
		service("c", corev1.ServicePort{Port: 80}))
	var results, fallbacks []*hosts.Contribution
	for _, o := range objects {
		r := ingress.Translate(s, o, everything)
		results = append(results, &r.Contribution)
		if r.Fallback != nil {
			fallbacks = append(fallbacks, &r.Contribution)
		}
	}
	return hosts.Merge(host, results, fallbacks, around)
}

// served returns the routes of a host in order, with their type, path, Service and Ingress.
func served(m *hosts.Merged) []string {
	var all []string
	if m.Host == nil {
		return []string{"no host"}
	}
	for _, r := range m.Host.Routes {
		all = append(all, strings.Join([]string{string(r.Match.Type), r.Match.Path, r.Backends[0].Backend.Service,
			r.Origin.Name}, " "))
	}
	return all
}

func complaints(m *hosts.Merged) map[string][]string {
	all := map[string][]string{}
	for ref, problems := range m.Problems {
		all[ref.Name] = reasons(problems)
	}
	return all
}

func withExact(path string, b networkingv1.IngressBackend) networkingv1.HTTPIngressPath {
	exact := networkingv1.PathTypeExact
	return networkingv1.HTTPIngressPath{Path: path, PathType: &exact, Backend: b}
}

func withDefault(o *networkingv1.Ingress, service string) *networkingv1.Ingress {
	b := backend(service, 80)
	o.Spec.DefaultBackend = &b
	return o
}

func catchAll(name, service string) *networkingv1.Ingress {
	o := withDefault(object(name, ""), service)
	o.Spec.Rules = nil
	return o
}

func rewriting(o *networkingv1.Ingress, target string) *networkingv1.Ingress {
	o.Annotations = map[string]string{"nginx.ingress.kubernetes.io/rewrite-target": target}
	return o
}

func TestMerge(t *testing.T) {
	a, b, c := backend("a", 80), backend("b", 80), backend("c", 80)
	const host = "a.example"
	for _, test := range []struct {
		name     string
		host     string
		objects  []*networkingv1.Ingress
		want     []string
		problems map[string][]string
	}{
		{
			name: "the oldest wins",
			objects: []*networkingv1.Ingress{aged(object("young", host, prefix("/", a)), 2),
				aged(object("old", host, prefix("/", b)), 1)},
			want:     []string{"prefix / b old"},
			problems: map[string][]string{"young": {"PathConflict spec.rules[0].http.paths[0]"}},
		},
		{
			name: "of the same second, the last name wins",
			objects: []*networkingv1.Ingress{aged(object("x", host, prefix("/", a)), 1),
				aged(object("y", host, prefix("/", b)), 1)},
			want:     []string{"prefix / b y"},
			problems: map[string][]string{"x": {"PathConflict spec.rules[0].http.paths[0]"}},
		},
		{
			name:     "twice in one",
			objects:  []*networkingv1.Ingress{object("one", host, prefix("/", a), prefix("/", b))},
			want:     []string{"prefix / a one"},
			problems: map[string][]string{"one": {"PathConflict spec.rules[0].http.paths[1]"}},
		},
		{
			name: "of a prefix with and without the slash at its end, the oldest wins",
			objects: []*networkingv1.Ingress{aged(object("young", host, prefix("/x", a)), 2),
				aged(object("old", host, prefix("/x/", b)), 1)},
			want:     []string{"prefix /x/ b old"},
			problems: map[string][]string{"young": {"PathConflict spec.rules[0].http.paths[0]"}},
		},
		{
			name:    "an exact path with a slash at its end is another one",
			objects: []*networkingv1.Ingress{object("one", host, withExact("/x", a), withExact("/x/", b))},
			want:    []string{"exact /x a one", "exact /x/ b one"},
		},
		{
			name: "a regular expression with a slash at its end is another one",
			objects: []*networkingv1.Ingress{
				aged(object("old", host, prefix("/x", a), prefix("/x/", b)), 1),
				aged(rewriting(object("young", host, prefix("/y", c)), "/"), 2),
			},
			want: []string{"regex /x/ b old", "regex /y c young", "regex /x a old"},
		},
		{
			name: "another type is another path",
			objects: []*networkingv1.Ingress{aged(object("young", host, withExact("/x", a)), 2),
				aged(object("old", host, prefix("/x", b)), 1)},
			want: []string{"exact /x a young", "prefix /x b old"},
		},
		{
			name: "exact first, then the longest",
			objects: []*networkingv1.Ingress{
				object("one", host, prefix("/", a), prefix("/x", a), withExact("/x", b), prefix("/x/y", c),
					withExact("/", c)),
			},
			want: []string{"exact /x b one", "exact / c one", "prefix /x/y c one", "prefix /x a one", "prefix / a one"},
		},
		{
			name:    "default backend after all paths",
			objects: []*networkingv1.Ingress{withDefault(object("one", host, prefix("/x", a)), "b")},
			want:    []string{"prefix /x a one", "prefix / b one"},
		},
		{
			name: "default backend of the old, path of the young",
			objects: []*networkingv1.Ingress{
				aged(object("young", host, prefix("/", a)), 2),
				aged(withDefault(object("old", host, prefix("/x", b)), "c"), 1),
			},
			want: []string{"prefix /x b old", "prefix / a young"},
		},
		{
			name: "of two default backends, the oldest wins",
			objects: []*networkingv1.Ingress{
				aged(withDefault(object("young", host, prefix("/x", a)), "b"), 2),
				aged(withDefault(object("old", host, prefix("/y", a)), "c"), 1),
			},
			want:     []string{"prefix /x a young", "prefix /y a old", "prefix / c old"},
			problems: map[string][]string{"young": {"PathConflict spec.defaultBackend"}},
		},
		{
			name: "the same default backend twice harms nobody",
			objects: []*networkingv1.Ingress{
				aged(withDefault(object("young", host, prefix("/x", a)), "c"), 2),
				aged(withDefault(object("old", host, prefix("/y", a)), "c"), 1),
			},
			want: []string{"prefix /x a young", "prefix /y a old", "prefix / c old"},
		},
		{
			name:    "a default backend beside a path for all",
			objects: []*networkingv1.Ingress{withDefault(object("one", host, prefix("/", a)), "b")},
			want:    []string{"prefix / a one"},
		},
		{
			name:    "catch-all behind a host",
			objects: []*networkingv1.Ingress{object("one", host, prefix("/x", a)), catchAll("all", "c")},
			want:    []string{"prefix /x a one", "prefix / c all"},
		},
		{
			name: "catch-all alone", host: "-",
			objects: []*networkingv1.Ingress{catchAll("all", "c")},
			want:    []string{"prefix / c all"},
		},
		{
			name: "two catch-alls", host: "-",
			objects:  []*networkingv1.Ingress{aged(catchAll("old", "c"), 1), aged(catchAll("young", "b"), 2)},
			want:     []string{"prefix / c old"},
			problems: map[string][]string{"young": {"PathConflict spec.defaultBackend"}},
		},
		{
			name: "a path for every host before a catch-all", host: "-",
			objects: []*networkingv1.Ingress{aged(object("young", "", prefix("/", a)), 2),
				aged(catchAll("old", "c"), 1)},
			want:     []string{"prefix / a young"},
			problems: map[string][]string{"old": {"PathConflict spec.defaultBackend"}},
		},
		{
			name:    "a catch-all makes no host",
			objects: []*networkingv1.Ingress{catchAll("all", "c")},
			want:    []string{"no host"},
		},
		{
			name: "a rewrite makes all paths of the host regular expressions",
			objects: []*networkingv1.Ingress{
				aged(object("old", host, prefix("/a", a), withExact("/bcd", b)), 1),
				aged(rewriting(object("young", host, prefix("/x(/|$)(.*)", c)), "/$2"), 2),
			},
			want: []string{"regex /x(/|$)(.*) c young", "regex /bcd b old", "regex /a a old"},
		},
		{
			name: "a bad regular expression is left out alone",
			objects: []*networkingv1.Ingress{
				aged(object("old", host, prefix("/(", a), prefix("/ok", a)), 1),
				aged(rewriting(object("young", host, prefix("/x", c)), "/"), 2),
			},
			want:     []string{"regex /ok a old", "regex /x c young"},
			problems: map[string][]string{"old": {"InvalidRegex spec.rules[0].http.paths[0]"}},
		},
		{
			name:    "a rewrite to the path itself changes nothing",
			objects: []*networkingv1.Ingress{rewriting(object("one", host, prefix("/x", a)), "/x")},
			want:    []string{"prefix /x a one"},
		},
	} {
		t.Run(test.name, func(t *testing.T) {
			of := host
			if test.host == "-" {
				of = ""
			}
			m := merge(t, of, test.objects...)
			if diff := cmp.Diff(test.want, served(m)); diff != "" {
				t.Errorf("routes (-want +got):\n%s", diff)
			}
			if test.problems == nil {
				test.problems = map[string][]string{}
			}
			if diff := cmp.Diff(test.problems, complaints(m)); diff != "" {
				t.Errorf("problems (-want +got):\n%s", diff)
			}
		})
	}
}

// TestMergeCertificate checks that the oldest Ingress with a certificate for the host decides, and that a host without
// a rule has no certificate.
func TestMergeCertificate(t *testing.T) {
	tls := func(name, secret string, second int64) *networkingv1.Ingress {
		o := aged(object(name, "a.example", prefix("/"+name, backend("a", 80))), second)
		if secret != "" {
			o.Spec.TLS = []networkingv1.IngressTLS{{Hosts: []string{"A.example", "only-tls.example"},
				SecretName: secret}}
		}
		return o
	}
	objects := []*networkingv1.Ingress{tls("youngest", "second", 3), tls("young", "first", 2), tls("old", "", 1),
		tls("same", "first", 4)}
	m := merge(t, "a.example", objects...)
	want := &ir.Certificate{
		Host: "a.example", Secret: ir.Name{Namespace: "shop", Name: "first"},
		Origin: ir.Ref{Kind: kinds.Ingress, Namespace: "shop", Name: "young"},
	}
	if diff := cmp.Diff(want, m.Certificate); diff != "" {
		t.Errorf("certificate (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(map[string][]string{"youngest": {"HostConflict spec.tls"}}, complaints(m)); diff != "" {
		t.Errorf("problems (-want +got):\n%s", diff)
	}
	m = merge(t, "only-tls.example", objects...)
	if m.Host != nil || m.Certificate != nil || len(complaints(m)["young"]) != 1 {
		t.Errorf("a host without a rule: %v, %v, %v", m.Host, m.Certificate, complaints(m))
	}
}
