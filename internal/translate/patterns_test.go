package translate_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/k8singress/k8singress/internal/model/ir"
	"github.com/k8singress/k8singress/internal/model/pattern"
	"github.com/k8singress/k8singress/internal/model/report"
	"github.com/k8singress/k8singress/internal/translate"
	"github.com/k8singress/k8singress/internal/translate/annotations"
)

// large is a path whose pattern is nearly as large as the limit for one pattern.
const large = "/[a-z]{0,460}!"

// matching returns an Ingress like numbered whose path is a regular expression. It was created i seconds after 1970.
func matching(i int, path string) *networkingv1.Ingress {
	object := numbered(i, path)
	object.CreationTimestamp = metav1.NewTime(time.Unix(int64(i), 0))
	object.Annotations = map[string]string{annotations.Prefix + "rewrite-target": "/x"}
	return object
}

// TestPatternsOfNamespace checks the limit for the size of all patterns of a namespace. The oldest Ingresses keep their
// patterns, whatever the order in which the translator sees the Ingresses. Rejected patterns are accepted again when
// other Ingresses are deleted.
func TestPatternsOfNamespace(t *testing.T) {
	size, err := pattern.PathSize(large)
	if err != nil {
		t.Fatal(err)
	}
	room := pattern.MaxNamespaceSize / size
	store, translator := fill(0), translate.New()
	for i := range room + 3 {
		i = (i*37 + 5) % (room + 3)
		store.Set(matching(i, large))
		if i%50 == 0 {
			translator.Translate(store.Take(), options)
		}
	}
	check := func(refused ...int) {
		t.Helper()
		s := store.Take()
		config, verdicts := translator.Translate(s, options)
		wantConfig, wantVerdicts := translate.Translate(s, options)
		if diff := cmp.Diff(wantConfig, config) + cmp.Diff(wantVerdicts, verdicts); diff != "" {
			t.Fatalf("it depends on the order of events (-full +incremental):\n%s", diff)
		}
		var told []int
		for _, v := range verdicts.Verdicts {
			if slices.ContainsFunc(v.Problems,
				func(p report.Problem) bool { return p.Reason == report.QuotaExceeded }) {
				var i int
				_, _ = fmt.Sscanf(v.Object.Name, "i%d", &i)
				told = append(told, i)
			}
		}
		slices.Sort(told)
		if diff := cmp.Diff(refused, told); diff != "" {
			t.Errorf("refused are others (-want +got):\n%s", diff)
		}
		for _, h := range config.VirtualHosts {
			var i int
			_, _ = fmt.Sscanf(h.Host, "h%d.", &i)
			if served := len(h.Routes) > 0; served == slices.Contains(refused, i) {
				t.Errorf("%s has %d routes", h.Host, len(h.Routes))
			}
		}
	}
	oldest := matching(0, large)
	check(room, room+1, room+2)
	store.Delete(oldest)
	check(room+1, room+2)
	store.Set(matching(3, "/small"))
	check(room + 2)
	other := matching(room+3, large)
	other.Namespace = "b"
	store.Set(other)
	check(room + 2)
	store.Set(oldest)
	check(room+1, room+2)
}

// TestPatternsFailClosed checks that an Ingress over the limit returns 503 for all requests if the rejected pattern
// restricts access to its hosts, or is not the pattern of a path.
func TestPatternsFailClosed(t *testing.T) {
	size, err := pattern.PathSize(large)
	if err != nil {
		t.Fatal(err)
	}
	store := fill(0)
	for i := range pattern.MaxNamespaceSize/size + 1 {
		store.Set(matching(i, large))
	}
	guarded := matching(1000, "/admin/[a-z]{0,400}")
	guarded.Annotations["k8singress.io/chains"] = "staff"
	clients := matching(1001, "/")
	clients.Annotations = map[string]string{
		annotations.Prefix + "auth-tls-secret":   "a/authority",
		annotations.Prefix + "auth-tls-match-cn": "CN=[a-z]{0,400}",
	}
	store.Set(guarded)
	store.Set(clients)
	config, _ := translate.Translate(store.Take(), options)
	seen := 0
	for _, h := range config.VirtualHosts {
		switch h.Host {
		case "h1000.example":
			seen++
			if r := h.Routes[0]; len(h.Routes) != 1 || r.Match.Path != "/admin/" ||
				!slices.Contains(r.Filters, ir.Filter(ir.Unavailable)) {
				t.Errorf("the guarded path is %v", r)
			}
		case "h1001.example":
			seen++
			if h.ClientAuth == nil || !h.ClientAuth.Closed {
				t.Errorf("clients are let in: %v", h.ClientAuth)
			}
		}
	}
	if seen != 2 {
		t.Errorf("%d of 2 hosts are there", seen)
	}
}

// TestPatternsOfHost checks the limit for the size of all patterns of a host. Patterns of other namespaces are limited,
// too, and do not reduce the limit of the owner.
func TestPatternsOfHost(t *testing.T) {
	size, err := pattern.PathSize(large)
	if err != nil {
		t.Fatal(err)
	}
	room := pattern.MaxHostSize / size
	store := fill(0)
	for i := range room + 2 {
		object := matching(i, fmt.Sprintf("/%d%s", i, large[1:]))
		object.Namespace = []string{"a", "b"}[i%2]
		object.Spec.Rules[0].Host = "shared.example"
		store.Set(object)
	}
	config, verdicts := translate.Translate(store.Take(), options)
	if n := len(config.VirtualHosts[0].Routes); n != room+1 {
		t.Errorf("%d of %d patterns are taken", n, room+2)
	}
	for _, v := range verdicts.Verdicts {
		full := slices.ContainsFunc(v.Problems, func(p report.Problem) bool { return p.Reason == report.QuotaExceeded })
		var i int
		_, _ = fmt.Sscanf(v.Object.Name, "i%d", &i)
		if want := i >= room && v.Object.Namespace == "b"; full != want {
			t.Errorf("%v: refused is %v", v.Object, full)
		}
	}
}

// TestAliasesOfNamespace checks the limit for the number of aliases that are regular expressions. Each namespace has
// its own limit, and the oldest Ingresses keep their aliases.
func TestAliasesOfNamespace(t *testing.T) {
	aliased := func(i int) *networkingv1.Ingress {
		object := matching(i, "/")
		object.Annotations = map[string]string{annotations.Prefix +
			"server-alias": fmt.Sprintf("n%d.test, ~^x%d-.{60}$", i, i)}
		return object
	}
	store, translator := fill(0), translate.New()
	for _, i := range []int{3, 1, 4, 2} {
		store.Set(aliased(i))
		translator.Translate(store.Take(), options)
	}
	other := aliased(5)
	other.Namespace = "b"
	store.Set(other)
	check := func(want ...string) {
		t.Helper()
		config, verdicts := translator.Translate(store.Take(), options)
		var served, told []string
		for _, h := range config.VirtualHosts {
			if h.AliasOf != "" {
				served = append(served, h.Host)
			}
		}
		for _, v := range verdicts.Verdicts {
			if slices.ContainsFunc(v.Problems,
				func(p report.Problem) bool { return p.Reason == report.QuotaExceeded }) {
				told = append(told, v.Object.Name)
			}
		}
		if diff := cmp.Diff(want, append(served, told...)); diff != "" {
			t.Errorf("served and refused are others (-want +got):\n%s", diff)
		}
	}
	check("n1.test", "n2.test", "n3.test", "n4.test", "n5.test", "~^x1-.{60}$", "~^x2-.{60}$",
		"~^x5-.{60}$", "i3", "i4")
	store.Delete(aliased(1))
	check("n2.test", "n3.test", "n4.test", "n5.test", "~^x2-.{60}$", "~^x3-.{60}$", "~^x5-.{60}$", "i4")
}
