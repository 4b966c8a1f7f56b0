package ingress

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/k8singress/k8singress/internal/model/ir"
	"github.com/k8singress/k8singress/internal/model/kinds"
	"github.com/k8singress/k8singress/internal/model/report"
	"github.com/k8singress/k8singress/internal/model/snapshot"
	"github.com/k8singress/k8singress/internal/translate/annotations"
	"github.com/k8singress/k8singress/internal/translate/hosts"
)

// guarded returns an Ingress with a path, a default backend, a certificate and the given annotations.
func guarded(notes map[string]string) *networkingv1.Ingress {
	to := networkingv1.IngressBackend{Service: &networkingv1.IngressServiceBackend{Name: "web",
		Port: networkingv1.ServiceBackendPort{Number: 80}}}
	return &networkingv1.Ingress{
		ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "bad", Annotations: notes},
		Spec: networkingv1.IngressSpec{
			DefaultBackend: &to,
			TLS:            []networkingv1.IngressTLS{{Hosts: []string{"a.example"}, SecretName: "cert"}},
			Rules: []networkingv1.IngressRule{{Host: "a.example", IngressRuleValue: networkingv1.IngressRuleValue{
				HTTP: &networkingv1.HTTPIngressRuleValue{Paths: []networkingv1.HTTPIngressPath{{Path: "/admin",
					Backend: to}}},
			}}},
		},
	}
}

// other returns the contribution of another Ingress, with the path "/" on the host of guarded.
func other() *hosts.Contribution {
	object := &networkingv1.Ingress{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "other",
		CreationTimestamp: metav1.Unix(9, 0)}}
	p := &hosts.Path{Match: ir.PathMatch{Type: ir.MatchPrefix, Path: "/"}, Backend: &ir.Backend{ID: "shop/other/80"}}
	return &hosts.Contribution{Object: object, Paths: map[string][]*hosts.Path{"a.example": {p}}}
}

// served returns one line for each route, with its path, the name of its Ingress and its filters.
func served(m *hosts.Merged) []string {
	var lines []string
	for _, r := range m.Host.Routes {
		lines = append(lines, fmt.Sprintf("%s %s %v", r.Match.Path, r.Origin.Name, r.Filters))
	}
	return lines
}

func world() *snapshot.Snapshot {
	store := snapshot.NewStore()
	store.Set(&corev1.Service{
		ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web"},
		Spec:       corev1.ServiceSpec{Ports: []corev1.ServicePort{{Port: 80}}},
	})
	return store.Take()
}

// TestUnreadableIngress checks an Ingress whose reading panics. Its paths return 503, whatever part of it was
// read before the panic, and the result depends on all objects that the Ingress names.
func TestUnreadableIngress(t *testing.T) {
	o := Options{WatchWithoutClass: true, Defaults: annotations.Settings{
		LoadBalancing: ir.LoadBalancing{Policy: ir.PolicyEWMA}, TLS: ir.TLSPolicy{Version: ir.TLS13},
	}}
	for name, read := range map[string]func(*reading){
		"at once":         func(*reading) { panic("fault") },
		"its annotations": func(r *reading) { r.Ours = true; panic("fault") },
		"at the end": func(r *reading) {
			r.read()
			r.depend(ir.Ref{Kind: kinds.ConfigMap,
				Name: "last"})
			panic("fault")
		},
	} {
		t.Run(name, func(t *testing.T) {
			r := readIsolatingPanics(read, newReading(world(), guarded(nil), o))
			m := hosts.Merge("a.example", []*hosts.Contribution{&r.Contribution, other()}, nil, &hosts.HostContext{})
			if got := strings.Join(served(m), "; "); got != "/admin bad [{503}]; / other []" {
				t.Errorf("served is %s", got)
			}
			if len(r.Problems) != 1 || r.Problems[0].Reason != report.Quarantined ||
				!strings.HasSuffix(r.Problems[0].Message, "fault") {
				t.Errorf("it is told %+v", r.Problems)
			}
			if r.LoadBalancing.Policy != ir.PolicyEWMA || r.Balances || r.Certificates["a.example"] == nil {
				t.Errorf("the rest is %+v", r)
			}
			if m.Host.TLS == nil || m.Host.TLS.Version != ir.TLS13 {
				t.Errorf("the handshakes are %+v", m.Host.TLS)
			}
			for _, ref := range []ir.Ref{
				{Kind: kinds.IngressClass}, {Kind: kinds.Service, Namespace: "shop", Name: "web"},
				{Kind: kinds.Secret, Namespace: "shop", Name: "cert"},
			} {
				if !slices.Contains(r.Refs, ref) {
					t.Errorf("it does not depend on %s", ref)
				}
			}
			if last := slices.Contains(r.Refs,
				ir.Ref{Kind: kinds.ConfigMap, Name: "last"}); last != (name == "at the end") {
				t.Errorf("that it depends on the last one is %t", last)
			}
		})
	}
}

// TestClosedPathsAreMeantAsBefore checks that the paths of an Ingress with a rewrite target remain regular expressions
// while they return 503, so that they match the same requests.
func TestClosedPathsAreMeantAsBefore(t *testing.T) {
	object := guarded(map[string]string{annotations.Prefix + "rewrite-target": "/$1"})
	r := readIsolatingPanics(func(*reading) { panic("fault") },
		newReading(world(), object, Options{WatchWithoutClass: true}))
	if paths := r.Paths["a.example"]; len(paths) != 2 || !paths[0].Regex || len(paths[0].Filters) != 1 {
		t.Errorf("the paths are %+v", paths)
	}
}

// TestUnreadableIngressOfOthers checks that an Ingress of another controller has no effect if reading it
// panics.
func TestUnreadableIngressOfOthers(t *testing.T) {
	r := readIsolatingPanics(func(*reading) { panic("fault") }, newReading(world(), guarded(nil), Options{}))
	if r.Ours || len(r.Paths) != 0 || len(r.Certificates) != 0 {
		t.Errorf("read is %+v", r)
	}
}

// TestFailedLookupReturns503 checks that an Ingress is treated as ours and returns 503 if looking up its class and
// its Services panics.
func TestFailedLookupReturns503(t *testing.T) {
	r := Translate(nil, guarded(nil), Options{})
	m := hosts.Merge("a.example", []*hosts.Contribution{&r.Contribution}, nil, &hosts.HostContext{})
	if got := strings.Join(served(m), "; "); got != "/admin bad [{503}]; / bad [{503}]" {
		t.Errorf("served is %s", got)
	}
	if b := m.Host.Routes[0].Backends[0].Backend; b.ID != "shop//" || !b.Missing {
		t.Errorf("the backend is %+v", b)
	}
	if len(r.Problems) != 1 || r.Problems[0].Reason != report.Quarantined {
		t.Errorf("it is told %+v", r.Problems)
	}
}
