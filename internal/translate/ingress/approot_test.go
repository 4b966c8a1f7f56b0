package ingress_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"

	"github.com/k8singress/k8singress/internal/model/ir"
	"github.com/k8singress/k8singress/internal/translate/annotations"
	"github.com/k8singress/k8singress/internal/translate/hosts"
	"github.com/k8singress/k8singress/internal/translate/ingress"
)

// withAppRoot sets annotations of an Ingress: app-root, and pairs of names and values. It returns the Ingress.
func withAppRoot(o *networkingv1.Ingress, target string, pairs ...string) *networkingv1.Ingress {
	o.Annotations = map[string]string{annotations.Prefix + "app-root": target}
	for i := 0; i < len(pairs); i += 2 {
		o.Annotations[annotations.Prefix+pairs[i]] = pairs[i+1]
	}
	return o
}

// TestAppRootIsUnlogged checks that requests for "/" are not logged if the Ingress with app-root disables the access
// log. Another Ingress with the same app-root is not told that its app-root differs, even if it enables the log.
func TestAppRootIsUnlogged(t *testing.T) {
	const host = "a.example"
	old := withAppRoot(object("old", host, prefix("/app", backend("a", 80))), "/app", "enable-access-log", "false")
	young := withAppRoot(object("young", host, prefix("/other", backend("b", 80))), "/app")
	m := merge(t, host, aged(old, 1), aged(young, 2))
	unlogged := map[string]bool{}
	for _, r := range m.Host.Routes {
		unlogged[r.Match.Path] = r.Unlogged
	}
	if len(unlogged) != 3 || !unlogged["/"] || !unlogged["/app"] || unlogged["/other"] {
		t.Errorf("the access log omits %v", unlogged)
	}
	if len(m.Problems) > 0 {
		t.Errorf("the problems are %v", m.Problems)
	}
}

// TestAnotherAppRoot checks that an Ingress is told if an older Ingress redirects "/" to another path.
func TestAnotherAppRoot(t *testing.T) {
	const host = "a.example"
	old := withAppRoot(object("old", host, prefix("/app", backend("a", 80))), "/app")
	young := withAppRoot(object("young", host, prefix("/other", backend("b", 80))), "/other")
	m := merge(t, host, aged(old, 1), aged(young, 2))
	if got := complaints(m)["young"]; len(m.Problems) != 1 || len(got) != 1 {
		t.Errorf("the problems are %v", m.Problems)
	}
}

// TestRoutePolicy checks that all routes of an Ingress have its RoutePolicy: the routes of a path with a canary, of the
// default backend and of app-root.
func TestRoutePolicy(t *testing.T) {
	const host = "a.example"
	o := everything
	o.Defaults.Unlogged = true
	o.Defaults.Asked.Tracing.On, o.Defaults.Asked.Tracing.Collected = true, true
	o.Defaults.Asked.Tracing.Operation = "$request_method"
	canary := object("canary", host, prefix("/shared", backend("b", 80)))
	canary.Annotations = map[string]string{annotations.Prefix + "canary": "true",
		annotations.Prefix + "canary-weight": "10"}
	main := withAppRoot(object("main", host, prefix("/shared", backend("a", 80))), "/app")
	s := take(service("a", corev1.ServicePort{Port: 80}), service("b", corev1.ServicePort{Port: 80}))
	var results []*hosts.Contribution
	for _, object := range []*networkingv1.Ingress{withDefault(main, "b"), canary} {
		results = append(results, &ingress.Translate(s, object, o).Contribution)
	}
	m := hosts.Merge(host, results, nil, &hosts.HostContext{})
	if got := strings.Join(served(m), ", "); !strings.HasPrefix(got, "exact / ") || len(m.Host.Routes) < 4 {
		t.Errorf("the routes are %s", got)
	}
	want := ir.RoutePolicy{Unlogged: true, Tracing: &ir.Tracing{Operation: "$request_method"}}
	for _, r := range m.Host.Routes {
		if diff := cmp.Diff(want, r.RoutePolicy); diff != "" {
			t.Errorf("%s %s (-want +got):\n%s", r.Match.Type, r.Match.Path, diff)
		}
	}
}
