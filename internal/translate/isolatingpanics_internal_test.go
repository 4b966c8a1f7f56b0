package translate

import (
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/k8singress/k8singress/internal/model/ir"
	"github.com/k8singress/k8singress/internal/model/kinds"
	"github.com/k8singress/k8singress/internal/model/report"
	"github.com/k8singress/k8singress/internal/model/snapshot"
	"github.com/k8singress/k8singress/internal/translate/ingress"
)

// TestPanicInLoadBalancingIsIsolated checks that an Ingress that makes balance panic gets a problem, and that the
// other Ingresses decide.
func TestPanicInLoadBalancingIsIsolated(t *testing.T) {
	user := func(name string, policy ir.Policy) *ingress.Result {
		return &ingress.Result{Object: onHosts(name), LoadBalancing: ir.LoadBalancing{Policy: policy},
			Balances: policy != ""}
	}
	users := []*ingress.Result{user("one", ir.PolicyHash), user("two", ir.PolicyEWMA), user("three", "")}
	found := &ir.Backend{ID: "shop/web/80"}
	for name, c := range map[string]struct {
		bad, told string
		want      ir.Policy
	}{
		"none":   {"", "two", ir.PolicyHash},
		"first":  {"one", "one", ir.PolicyEWMA},
		"second": {"two", "two", ir.PolicyHash},
		"all":    {"one two three", "one three two", ""},
	} {
		t.Run(name, func(t *testing.T) {
			b := isolatingPanics(func(found *ir.Backend, users []*ingress.Result) *balanced {
				for _, r := range users {
					if strings.Contains(c.bad, r.Object.Name) {
						panic("fault")
					}
				}
				return balance(found, users)
			}, found, users)
			if b.backend.LoadBalancing.Policy != c.want {
				t.Errorf("the policy is %q", b.backend.LoadBalancing.Policy)
			}
			var told []string
			for ref, problems := range b.problems {
				told = append(told, ref.Name)
				if quarantined := problems[0].Reason == report.Quarantined; quarantined != strings.Contains(c.bad,
					ref.Name) || len(problems) != 1 {
					t.Errorf("%s is told %+v", ref, problems)
				}
			}
			slices.Sort(told)
			if got := strings.Join(told, " "); got != c.told {
				t.Errorf("told are %s, want %s", got, c.told)
			}
		})
	}
	always := func(*ir.Backend, []*ingress.Result) *balanced { panic("always") }
	if b := isolatingPanics(always, found, users); b.backend != found || len(b.problems) != len(users) {
		t.Errorf("without help it is %+v", b)
	}
}

// poisonous is a selector that panics while it is armed.
type poisonous struct {
	labels.Selector
	armed bool
}

func (p *poisonous) Matches(l labels.Labels) bool {
	if p.armed {
		panic("fault")
	}
	return p.Selector.Matches(l)
}

// TestUnreadableIngressReturns503 checks that its paths return 503 until it can be read again, even if a shorter
// path of another Ingress matches.
func TestUnreadableIngressReturns503(t *testing.T) {
	poison := &poisonous{Selector: labels.Everything()}
	o := Options{Ingress: ingress.Options{WatchWithoutClass: true, Folder: true, Namespaces: poison}}
	store := snapshot.NewStore()
	store.Set(&corev1.Service{
		ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web"},
		Spec:       corev1.ServiceSpec{Ports: []corev1.ServicePort{{Port: 80}}},
	})
	open := onHosts("open", "a.example")
	open.Spec.Rules[0].HTTP.Paths[0].Path = "/"
	store.Set(open)
	translator := New()
	translator.Translate(store.Take(), o)

	poison.armed = true
	store.Set(onHosts("bad", "a.example"))
	config, verdicts := translator.Translate(store.Take(), o)
	routes := config.VirtualHosts[0].Routes
	if len(routes) != 2 || !slices.Contains(routes[0].Filters, ir.Filter(ir.DirectResponse{Status: 503})) ||
		routes[1].Filters != nil {
		t.Errorf("the routes are %+v", routes)
	}
	bad := ir.Ref{Kind: kinds.Ingress, Namespace: "shop", Name: "bad"}
	if v := verdicts.Get(bad); len(v.Problems) != 1 || v.Problems[0].Reason != report.Quarantined {
		t.Errorf("of it is said %+v", v)
	}

	poison.armed = false
	store.Set(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "shop"}})
	config, verdicts = translator.Translate(store.Take(), o)
	if routes := config.VirtualHosts[0].Routes; len(routes) != 2 || routes[0].Filters != nil ||
		len(verdicts.Get(bad).Problems) > 0 {
		t.Errorf("afterwards the routes are %+v, and of it is said %+v", routes, verdicts.Get(bad))
	}
}
