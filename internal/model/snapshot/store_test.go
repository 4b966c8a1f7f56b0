package snapshot

import (
	"fmt"
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/k8singress/k8singress/internal/model/ir"
	"github.com/k8singress/k8singress/internal/model/kinds"
)

func named(kind, namespace, name string) kinds.Object {
	row, _ := kinds.ByName(kind)
	o := row.New()
	o.SetNamespace(namespace)
	o.SetName(name)
	return o
}

func slice(namespace, service, name string) *discoveryv1.EndpointSlice {
	return &discoveryv1.EndpointSlice{ObjectMeta: metav1.ObjectMeta{
		Namespace: namespace, Name: name, Labels: map[string]string{discoveryv1.LabelServiceName: service},
	}}
}

func woken(s *Store) bool {
	select {
	case <-s.Changed():
		return true
	default:
		return false
	}
}

func changes(s *Snapshot) []string {
	names := make([]string, len(s.Changed))
	for i, ref := range s.Changed {
		names[i] = ref.String()
	}
	slices.Sort(names)
	return names
}

func TestEveryKindComesAndGoes(t *testing.T) {
	for _, row := range kinds.All {
		t.Run(row.Name, func(t *testing.T) {
			s, o := NewStore(), named(row.Name, "shop", "web")
			if row.ClusterScoped {
				o.SetNamespace("")
			}
			if got := s.Get(o); got != nil {
				t.Fatalf("an empty store has %v", got)
			}
			s.Set(o)
			if got := s.Get(named(row.Name, o.GetNamespace(), "web")); got != o {
				t.Fatalf("Get returns %v, want the object that was set", got)
			}
			if got := s.Take(); !woken(s) || len(got.Changed) != 1 || got.Changed[0].Kind != row.Name {
				t.Fatalf("after Set: changed %v", got.Changed)
			}
			s.Delete(named(row.Name, o.GetNamespace(), "web"))
			if got := s.Take(); !woken(s) || len(got.Changed) != 1 || got.Changed[0].Kind != row.Name {
				t.Fatalf("after Delete: changed %v", got.Changed)
			}
			s.Delete(o)
			if got := s.Take(); woken(s) || len(got.Changed) != 0 || s.Get(o) != nil {
				t.Fatalf("after the second Delete: changed %v", got.Changed)
			}
		})
	}
}

func TestSequenceCountsFromOne(t *testing.T) {
	s := NewStore()
	if a, b := s.Take().Sequence, s.Take().Sequence; a != 1 || b != 2 {
		t.Fatalf("sequences %d and %d", a, b)
	}
}

// TestSinceIsTheSnapshotBefore checks that Since is the sequence of the previous snapshot. From it a reader can tell
// whether it has missed changes.
func TestSinceIsTheSnapshotBefore(t *testing.T) {
	s := NewStore()
	var before uint64
	for i := range 4 {
		if i%2 == 1 {
			s.Set(named(kinds.Secret, "shop", fmt.Sprint(i)))
		}
		taken := s.Take()
		if taken.Since != before || taken.Sequence != before+1 || len(taken.Changed) != i%2 {
			t.Fatalf("snapshot %d: sequence %d, since %d, changed %v", i, taken.Sequence, taken.Since, taken.Changed)
		}
		before = taken.Sequence
	}
}

func TestJoined(t *testing.T) {
	s := NewStore()
	s.Set(named(kinds.Secret, "shop", "a"))
	s.Set(named(kinds.Secret, "shop", "b"))
	first := s.Take()
	s.Delete(named(kinds.Secret, "shop", "b"))
	s.Set(named(kinds.Service, "shop", "a"))
	second := s.Take()
	third := s.Take()
	joined := third.Joined(second.Joined(first))
	want := []string{"Secret/shop/a", "Secret/shop/b", "Service/shop/a"}
	if got := changes(joined); !slices.Equal(got, want) {
		t.Errorf("changed %v, want %v", got, want)
	}
	if joined.Since != 0 || joined.Sequence != 3 || Of[*corev1.Secret](joined).Len() != 1 ||
		Of[*corev1.Service](joined).Len() != 1 {
		t.Errorf("since %d, sequence %d, %d Secrets, %d Services: want the objects of the newest",
			joined.Since, joined.Sequence, Of[*corev1.Secret](joined).Len(), Of[*corev1.Service](joined).Len())
	}
	if len(first.Changed) != 2 || len(second.Changed) != 2 || len(third.Changed) != 0 || second.Since != 1 ||
		third.Since != 2 {
		t.Error("joining changed what it joined")
	}
}

func TestEndpointSlicesOfOneService(t *testing.T) {
	s := NewStore()
	for _, o := range []*discoveryv1.EndpointSlice{
		slice("shop", "web", "web-2"), slice("shop", "web", "web-1"), slice("shop", "web-2", "web-0"),
		slice("shop", "we", "b"), slice("shop2", "web", "web-9"), slice("shop", "", "lonely"),
	} {
		s.Set(o)
	}
	var got []string
	for o := range s.Take().EndpointSlices("shop", "web") {
		got = append(got, o.Name)
	}
	if want := []string{"web-1", "web-2"}; !slices.Equal(got, want) {
		t.Fatalf("slices %v, want %v", got, want)
	}
}

func TestSliceIsGivenToAnotherService(t *testing.T) {
	s := NewStore()
	s.Set(slice("shop", "old", "x"))
	s.Take()
	s.Set(slice("shop", "new", "x"))
	taken := s.Take()
	if got, want := changes(taken), []string{"EndpointSlice/shop/new",
		"EndpointSlice/shop/old"}; !slices.Equal(got, want) {
		t.Fatalf("changed %v, want %v", got, want)
	}
	for o := range taken.EndpointSlices("shop", "old") {
		t.Fatalf("the old Service still has %s", o.Name)
	}
}

func TestUnchangedObjects(t *testing.T) {
	ingress := func(change func(*networkingv1.Ingress)) kinds.Object {
		o := named(kinds.Ingress, "shop", "web").(*networkingv1.Ingress)
		o.ResourceVersion, o.Spec.Rules = "1", []networkingv1.IngressRule{{Host: "a.example"}}
		change(o)
		return o
	}
	service := func(change func(*corev1.Service)) kinds.Object {
		o := named(kinds.Service, "shop", "web").(*corev1.Service)
		o.ResourceVersion = "1"
		change(o)
		return o
	}
	as := func(version string) func(*networkingv1.Ingress) {
		return func(o *networkingv1.Ingress) { o.ResourceVersion = version }
	}
	tests := map[string]struct {
		before, after kinds.Object
		want          bool
	}{
		"listed again":      {ingress(as("1")), ingress(as("1")), false},
		"resource version":  {ingress(as("1")), ingress(as("2")), false},
		"no version at all": {ingress(as("")), ingress(as("")), false},
		"managed fields": {ingress(as("1")), ingress(func(o *networkingv1.Ingress) {
			o.ResourceVersion, o.ManagedFields = "2", []metav1.ManagedFieldsEntry{{Manager: "kubectl"}}
		}), false},
		"status of an Ingress": {ingress(as("1")), ingress(func(o *networkingv1.Ingress) {
			o.ResourceVersion = "2"
			o.Status.LoadBalancer.Ingress = []networkingv1.IngressLoadBalancerIngress{{IP: "203.0.113.7"}}
		}), false},
		"empty for nil": {ingress(as("1")), ingress(func(o *networkingv1.Ingress) {
			o.ResourceVersion, o.Annotations = "2", map[string]string{}
		}), false},
		"spec": {ingress(as("1")), ingress(func(o *networkingv1.Ingress) {
			o.ResourceVersion, o.Spec.Rules[0].Host = "2", "b.example"
		}), true},
		"annotation": {ingress(as("1")), ingress(func(o *networkingv1.Ingress) {
			o.ResourceVersion, o.Annotations = "2", map[string]string{"a": "b"}
		}), true},
		"made anew in the same way": {ingress(as("1")),
			ingress(func(o *networkingv1.Ingress) { o.UID = "other" }), true},
		"status of a Service": {service(func(*corev1.Service) {}), service(func(o *corev1.Service) {
			o.ResourceVersion = "2"
			o.Status.LoadBalancer.Ingress = []corev1.LoadBalancerIngress{{IP: "203.0.113.7"}}
		}), true},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			s := NewStore()
			s.Set(test.before)
			s.Take()
			woken(s)
			s.Set(test.after)
			if got := woken(s); got != test.want {
				t.Errorf("woken = %v, want %v", got, test.want)
			}
			if got := len(s.Take().Changed) == 1; got != test.want {
				t.Errorf("changed = %v, want %v", got, test.want)
			}
			if s.Get(test.before) != test.after {
				t.Error("the store does not have the newest object")
			}
		})
	}
}

func TestApplyIsOneChange(t *testing.T) {
	s := NewStore()
	a, b, c := named(kinds.Secret, "shop", "a"), named(kinds.Secret, "shop", "b"), named(kinds.Secret, "shop", "c")
	s.Apply([]kinds.Object{a, b}, nil)
	s.Take()
	s.Apply([]kinds.Object{c}, []kinds.Object{a})
	taken := s.Take()
	if got, want := changes(taken), []string{"Secret/shop/a", "Secret/shop/c"}; !slices.Equal(got, want) {
		t.Fatalf("changed %v, want %v", got, want)
	}
	if got := Of[*corev1.Secret](taken).Len(); got != 2 {
		t.Fatalf("%d Secrets, want b and c", got)
	}
}

func TestWakeWithoutChange(t *testing.T) {
	s := NewStore()
	s.Wake()
	s.Wake()
	if !woken(s) || woken(s) || len(s.Take().Changed) != 0 {
		t.Fatal("Wake should be received once, and name no object")
	}
}

func filled(n int) *Store {
	s := NewStore()
	for i := range n {
		namespace, name := fmt.Sprintf("ns-%d", i%100), fmt.Sprintf("web-%d", i)
		s.Set(named(kinds.Ingress, namespace, name))
		s.Set(named(kinds.Service, namespace, name))
		s.Set(slice(namespace, name, name+"-x"))
	}
	s.Take()
	return s
}

func TestTakeIsCheap(t *testing.T) {
	allocations := func(n int) float64 {
		s := filled(n)
		return testing.AllocsPerRun(100, func() { s.Take() })
	}
	few, many := allocations(10), allocations(50_000)
	if few != many {
		t.Fatalf("Take allocates %v times with 10 objects of a kind and %v times with 50,000", few, many)
	}
}

func TestChangeAfterTakeIsCheap(t *testing.T) {
	s := filled(50_000)
	o := named(kinds.Service, "ns-7", "web-7")
	got := testing.AllocsPerRun(100, func() {
		s.Delete(o)
		s.Set(o)
		s.Take()
	})
	if got > 60 {
		t.Fatalf("changing one of 150,000 objects and taking them allocates %v times", got)
	}
}

func BenchmarkTake(b *testing.B) {
	for _, n := range []int{10, 1000, 50_000} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			s, o := filled(n), named(kinds.Service, "ns-7", "web-7")
			for b.Loop() {
				s.Delete(o)
				s.Set(o)
				s.Take()
			}
		})
	}
}

func TestOlder(t *testing.T) {
	at := func(namespace, name string, second int64) *networkingv1.Ingress {
		o := named(kinds.Ingress, namespace, name).(*networkingv1.Ingress)
		o.CreationTimestamp = metav1.Unix(second, 0)
		return o
	}
	want := []*networkingv1.Ingress{at("z", "z", 1), at("b", "a", 2), at("a", "b", 2), at("a", "a", 2), at("a", "c", 3)}
	got := slices.Clone(want)
	slices.Reverse(got)
	slices.SortFunc(got, func(a, b *networkingv1.Ingress) int { return Older(a, b) })
	if !slices.Equal(got, want) {
		t.Fatalf("order is %v", got)
	}
}

func TestRefOfAForeignKind(t *testing.T) {
	account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: "p"}}
	s := NewStore()
	s.Set(account)
	s.Delete(account)
	if woken(s) || s.Get(account) != nil || RefOf(account) != (ir.Ref{Name: "p"}) {
		t.Fatal("an object of an unknown kind was stored")
	}
}
