package snapshot

import (
	"fmt"
	"maps"
	"slices"
	"sync"
	"testing"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	"pgregory.net/rapid"

	"github.com/k8singress/k8singress/internal/model/kinds"
)

// contents lists the objects of a snapshot.
func contents(s *Snapshot) []string {
	var all []string
	for o := range Of[*corev1.Secret](s).All() {
		all = append(all, fmt.Sprintf("Secret/%s/%s %s", o.Namespace, o.Name, o.Labels["v"]))
	}
	for _, service := range names {
		for o := range s.EndpointSlices("a", service) {
			all = append(all, fmt.Sprintf("EndpointSlice/a/%s/%s %s", service, o.Name, o.Labels["v"]))
		}
	}
	slices.Sort(all)
	return all
}

var names = []string{"a", "ab", "b", "c", "d"}

// TestTakenSnapshotNeverChanges compares the store with a plain map, and checks that every snapshot stays as it was
// taken.
func TestTakenSnapshotNeverChanges(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		store, model := NewStore(), map[string]string{}
		taken := map[*Snapshot][]string{}
		for i := range rapid.IntRange(1, 60).Draw(t, "steps") {
			step(t, store, model, fmt.Sprint(i))
			if rapid.Bool().Draw(t, "take") {
				s := store.Take()
				taken[s] = contents(s)
				if want := describe(model); !slices.Equal(taken[s], want) {
					t.Fatalf("the snapshot holds %v, want %v", taken[s], want)
				}
			}
		}
		for s, want := range taken {
			if got := contents(s); !slices.Equal(got, want) {
				t.Fatalf("snapshot %d changed from %v to %v", s.Sequence, want, got)
			}
		}
	})
}

func describe(model map[string]string) []string {
	all := slices.Collect(maps.Values(model))
	slices.Sort(all)
	return all
}

func step(t *rapid.T, store *Store, model map[string]string, version string) {
	name := rapid.SampledFrom(names).Draw(t, "name")
	set := rapid.Bool().Draw(t, "set")
	secret := named(kinds.Secret, "a", name)
	secret.SetLabels(map[string]string{"v": version})
	endpoints := slice("a", rapid.SampledFrom(names).Draw(t, "service"), name)
	endpoints.Labels["v"] = version
	if rapid.Bool().Draw(t, "kind") {
		toggle(store, secret, set)
		model["s"+name] = fmt.Sprintf("Secret/a/%s %s", name, version)
		if !set {
			delete(model, "s"+name)
		}
		return
	}
	toggle(store, endpoints, set)
	model["e"+name] = fmt.Sprintf("EndpointSlice/a/%s/%s %s", kinds.Of(endpoints).Owner(endpoints), name, version)
	if !set {
		delete(model, "e"+name)
	}
}

func toggle(store *Store, object kinds.Object, set bool) {
	if set {
		store.Set(object)
		return
	}
	store.Delete(object)
}

// TestReadersAndWriters reads snapshots while the store changes. It is meant for the race detector.
func TestReadersAndWriters(t *testing.T) {
	store := filled(500)
	var group sync.WaitGroup
	for w := range 2 {
		group.Go(func() {
			for i := range 500 {
				toggle(store, named(kinds.Ingress, fmt.Sprintf("ns-%d", i%100), fmt.Sprintf("web-%d", i)), (i+w)%2 == 0)
			}
		})
	}
	for range 50 {
		s := store.Take()
		group.Go(func() {
			count := 0
			for range Of[*networkingv1.Ingress](s).All() {
				count++
			}
			if count != Of[*networkingv1.Ingress](s).Len() {
				t.Errorf("%d Ingresses, and Len says %d", count, Of[*networkingv1.Ingress](s).Len())
			}
		})
	}
	group.Wait()
}
