package translate

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/k8singress/k8singress/internal/model/ir"
	"github.com/k8singress/k8singress/internal/translate/ingress"
)

// balancedIngress returns an Ingress with load-balancing annotations. silent returns an Ingress without them, which has
// the defaults of the ConfigMap.
func balancedIngress(name string, wants ir.LoadBalancing) *ingress.Result {
	r := silent(name, wants)
	r.Balances = true
	return r
}

func silent(name string, defaults ir.LoadBalancing) *ingress.Result {
	object := &networkingv1.Ingress{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: name}}
	return &ingress.Result{Object: object, LoadBalancing: defaults}
}

func TestBalance(t *testing.T) {
	round, ewma := ir.LoadBalancing{}, ir.LoadBalancing{Policy: ir.PolicyEWMA}
	service := ir.LoadBalancing{UseVirtualAddress: true}
	one := ir.LoadBalancing{SessionCookie: &ir.SessionCookie{Name: "one"}}
	two := ir.LoadBalancing{SessionCookie: &ir.SessionCookie{Name: "two"}}
	found := ir.Backend{ID: "shop/web/80", VirtualAddress: "10.96.0.1:80",
		LoadBalancing: ir.LoadBalancing{ClientIP: time.Hour}}
	headless := ir.Backend{ID: "shop/web/80"}
	for _, test := range []struct {
		name  string
		found ir.Backend
		users []*ingress.Result
		want  ir.LoadBalancing
		// told are the Ingresses that get a warning because their settings have no effect.
		told string
	}{
		{"a stream", found, nil, ir.LoadBalancing{ClientIP: time.Hour}, ""},
		{"nobody asks", headless, []*ingress.Result{silent("a", round), silent("b", round)}, round, ""},
		{"the ConfigMap says", headless, []*ingress.Result{silent("a", ewma), silent("b", ewma)}, ewma, ""},
		{"one asks", headless, []*ingress.Result{silent("a", round), balancedIngress("b", ewma), silent("c", round)},
			ewma, ""},
		{"two ask for the same", headless,
			[]*ingress.Result{balancedIngress("a", ewma), balancedIngress("b", ewma)}, ewma, ""},
		{
			"two ask for other things", headless,
			[]*ingress.Result{silent("a", round), balancedIngress("b", ewma), balancedIngress("c", two),
				balancedIngress("d", service)},
			ewma, "c d",
		},
		{"classes differ", headless, []*ingress.Result{silent("a", ewma), silent("b", round)}, ewma, ""},
		{
			"the affinity of the Service stays", found, []*ingress.Result{balancedIngress("a", ewma)},
			ir.LoadBalancing{Policy: ir.PolicyEWMA, ClientIP: time.Hour}, "",
		},
		{
			"the address of the Service", found, []*ingress.Result{balancedIngress("a", service)},
			ir.LoadBalancing{UseVirtualAddress: true, ClientIP: time.Hour}, "",
		},
		{"a Service without address", headless, []*ingress.Result{balancedIngress("a", service)}, round, ""},
		{
			"a cookie, and one that follows it", headless,
			[]*ingress.Result{balancedIngress("b", one), silent("c", round), balancedIngress("a", one)},
			ir.LoadBalancing{SessionCookie: &ir.SessionCookie{Name: "one",
				Origins: []string{"Ingress/shop/a", "Ingress/shop/b"}}}, "",
		},
		{
			"two cookies", headless, []*ingress.Result{balancedIngress("b", one), balancedIngress("a", two)},
			ir.LoadBalancing{SessionCookie: &ir.SessionCookie{Name: "one",
				Origins: []string{"Ingress/shop/a", "Ingress/shop/b"}}}, "a",
		},
	} {
		t.Run(test.name, func(t *testing.T) {
			b := balance(&test.found, test.users)
			if diff := cmp.Diff(test.want, b.backend.LoadBalancing); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
			var told []string
			for ref, problems := range b.problems {
				told = append(told, ref.Name)
				if !strings.Contains(problems[0].Message, "Ingress/shop/"+winnerOf(test.users)) {
					t.Errorf("%s is told %v", ref, problems)
				}
			}
			slices.Sort(told)
			if got := strings.Join(told, " "); got != test.told {
				t.Errorf("told are %q, want %q", got, test.told)
			}
		})
	}
	if one.SessionCookie.Origins != nil {
		t.Error("what an Ingress asks for was changed")
	}
}

func winnerOf(users []*ingress.Result) string {
	return users[slices.IndexFunc(users, func(r *ingress.Result) bool { return r.Balances })].Object.Name
}
