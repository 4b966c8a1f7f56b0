package ownership_test

import (
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/k8singress/k8singress/internal/model/ir"
	"github.com/k8singress/k8singress/internal/model/kinds"
	"github.com/k8singress/k8singress/internal/translate/ownership"
)

func object(namespace, name string, second int64) kinds.Object {
	return &networkingv1.Ingress{ObjectMeta: metav1.ObjectMeta{
		Namespace: namespace, Name: name, CreationTimestamp: metav1.NewTime(time.Unix(second, 0)),
	}}
}

func owner(o kinds.Object) ownership.Owner {
	return ownership.Owner{Namespace: o.GetNamespace(), By: o}
}

// TestOldestOwns checks the owner of a host, in any order of the claims.
func TestOldestOwns(t *testing.T) {
	claims := []kinds.Object{object("b", "young", 3), object("a", "old", 1), object("c", "between", 2),
		object("d", "as-old", 1)}
	above := owner(object("w", "wildcard", 0))
	for name, c := range map[string]struct {
		policy ownership.Policy
		above  ownership.Owner
		want   string
	}{
		// If two objects are created in the same second, the last one by name wins, as in ingress-nginx.
		"by age": {want: "d"},
		"reserved": {policy: ownership.Policy{Reserved: map[string][]string{"www.shop.example": {"b", "c"}}},
			want: "c"},
		"reserved for a namespace " +
			"without": {policy: ownership.Policy{Reserved: map[string][]string{"*.shop.example": {"e"}}}, want: ""},
		"below a wildcard":            {above: above, want: "d"},
		"below a wildcard, exclusive": {policy: ownership.Policy{Exclusive: true}, above: above, want: "w"},
		"below a younger wildcard": {policy: ownership.Policy{Exclusive: true},
			above: owner(object("w", "x", 2)), want: "d"},
		"below a wildcard that may not have": {
			policy: ownership.Policy{Exclusive: true, Reserved: map[string][]string{"*": {"a"}}},
			above:  above, want: "a",
		},
	} {
		t.Run(name, func(t *testing.T) {
			for range 100 {
				rand.Shuffle(len(claims), func(i, j int) { claims[i], claims[j] = claims[j], claims[i] })
				got := c.policy.Of("www.shop.example", slices.Values(claims), c.above)
				if got.Namespace != c.want || got.Is(c.want) != (c.want != "") {
					t.Fatalf("the owner is %+v, want %q", got, c.want)
				}
			}
		})
	}
}

// TestHostWithoutClaims checks that a host without claims has no owner, and that the empty namespace does not own
// it either.
func TestHostWithoutClaims(t *testing.T) {
	policy := ownership.Policy{}
	got := policy.Of("x.example", slices.Values([]kinds.Object(nil)), ownership.Owner{})
	if got.Is("") || got.By != nil || policy.Serves("x.example", got, "") != true {
		t.Errorf("the owner is %+v", got)
	}
}

func TestReserved(t *testing.T) {
	policy := ownership.Policy{Reserved: map[string][]string{
		"*.shop.example": {"shop", "team-*"}, "www.shop.example": {"web"},
		"*.deep.shop.example": {"deep"}, "*": {"ops"},
	}}
	for _, c := range []struct {
		host, namespace string
		want            bool
	}{
		{"www.shop.example", "web", true}, {"www.shop.example", "shop", false},
		{"api.shop.example", "shop", true}, {"api.shop.example", "team-x", true}, {"api.shop.example", "team", false},
		{"a.b.shop.example", "shop", true}, {"*.shop.example", "shop", true}, {"*.shop.example", "web", false},
		{"*.www.shop.example", "shop", true}, {"*.www.shop.example", "web", false},
		{"x.deep.shop.example", "deep", true}, {"x.deep.shop.example", "shop", false},
		{"deep.shop.example", "shop", true},
		{"shop.example", "shop", false}, {"shop.example", "ops", true}, {"", "ops", true}, {"", "shop", false},
		{"localhost", "ops", true},
	} {
		if got := policy.Admits(c.host, c.namespace); got != c.want {
			t.Errorf("%s may have %q: %v", c.namespace, c.host, got)
		}
	}
	open := ownership.Policy{Reserved: map[string][]string{"*.shop.example": {"shop"}}}
	if !open.Admits("other.example", "anybody") {
		t.Error("a name that is not reserved is closed")
	}
}

func TestSolvers(t *testing.T) {
	policy := ownership.Policy{Solvers: []string{"cert-manager"}}
	for path, want := range map[string]bool{
		"/.well-known/acme-challenge/token": true, "/.well-known/acme-challenge": true,
		"/.well-known/acme-challenges": false,
		"/":                            false, "/x/.well-known/acme-challenge/token": false,
	} {
		if got := policy.Solves("cert-manager", ir.PathMatch{Type: ir.MatchExact, Path: path}); got != want {
			t.Errorf("%s: %v", path, got)
		}
		if policy.Solves("b", ir.PathMatch{Type: ir.MatchExact, Path: path}) {
			t.Errorf("%s of another namespace", path)
		}
	}
	if policy.Solves("cert-manager", ir.PathMatch{Type: ir.MatchRegex, Path: ownership.Challenges + "/x|/"}) {
		t.Error("a regular expression is taken for a challenge")
	}
}
