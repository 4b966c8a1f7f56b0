package snapshot_test

import (
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/k8singress/k8singress/internal/model/snapshot"
)

// TestAnnotatedServices checks that Annotated yields exactly the Services that currently have an annotation with our
// prefix, and that older snapshots do not change.
func TestAnnotatedServices(t *testing.T) {
	store := snapshot.NewStore()
	set := func(name string, annotations ...string) {
		s := &corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: "a", Name: name,
			Annotations: map[string]string{"example.com/x": "y"}}}
		for _, key := range annotations {
			s.Annotations[key] = "1"
		}
		store.Set(s)
	}
	var first *snapshot.Snapshot
	expect := func(want ...string) *snapshot.Snapshot {
		t.Helper()
		s := store.Take()
		if got := annotatedNames(s); !slices.Equal(got, want) {
			t.Errorf("annotated are %q, want %q", got, want)
		}
		return s
	}
	set("plain")
	set("one", "k8singress.io/tcp-ports")
	set("two", "k8singress.io/udp-ports", "k8singress.io/stream-responses")
	first = expect("one", "two")
	set("one")
	set("plain", "k8singress.io/tcp-ports")
	expect("plain", "two")
	store.Delete(&corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: "a", Name: "two"}})
	expect("plain")
	if got := annotatedNames(first); !slices.Equal(got, []string{"one", "two"}) {
		t.Errorf("an older snapshot has changed: %q", got)
	}
}

func annotatedNames(s *snapshot.Snapshot) []string {
	var names []string
	for o := range snapshot.Of[*corev1.Service](s).Annotated() {
		names = append(names, o.Name)
	}
	return names
}
