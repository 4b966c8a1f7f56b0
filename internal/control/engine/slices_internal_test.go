package engine

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/k8singress/k8singress/internal/model/settings"
	"github.com/k8singress/k8singress/internal/model/snapshot"
)

// TestSlicesAreCheckedWhenTheyChange checks that a change of another object does not make the engine check all
// EndpointSlices again.
func TestSlicesAreCheckedWhenTheyChange(t *testing.T) {
	slice := func(name, address string) *discoveryv1.EndpointSlice {
		return &discoveryv1.EndpointSlice{
			ObjectMeta: metav1.ObjectMeta{Namespace: "a", Name: name}, AddressType: discoveryv1.AddressTypeIPv4,
			Endpoints: []discoveryv1.Endpoint{{Addresses: []string{address}}},
		}
	}
	store, checks := snapshot.NewStore(), sliceChecks{}
	store.Set(slice("one", "127.0.0.1"))
	first := checks.check(store.Take(), settings.Config{})
	if len(first) != 1 || first[0].Object.Name != "one" {
		t.Fatalf("the verdicts are %+v", first)
	}
	store.Set(&corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: "a", Name: "other"}})
	if again := checks.check(store.Take(), settings.Config{}); len(again) != 1 || again[0] != first[0] {
		t.Error("a Service has the EndpointSlices checked again")
	}
	store.Set(slice("two", "169.254.1.1"))
	if two := checks.check(store.Take(), settings.Config{}); len(two) != 2 {
		t.Errorf("the verdicts are %+v", two)
	}
	store.Set(slice("one", "192.0.2.1"))
	if one := checks.check(store.Take(), settings.Config{}); len(one) != 1 || one[0].Object.Name != "two" {
		t.Errorf("the verdicts are %+v", one)
	}
}
