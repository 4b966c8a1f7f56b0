package snapshot

import (
	"fmt"
	"testing"

	networkingv1 "k8s.io/api/networking/v1"

	"github.com/k8singress/k8singress/internal/model/kinds"
)

// BenchmarkOneOf10000 measures the cost of changing one of 10,000 Ingresses, and of reading a snapshot.
func BenchmarkOneOf10000(b *testing.B) {
	s, version := NewStore(), 0
	for i := range 10_000 {
		s.Set(named(kinds.Ingress, fmt.Sprintf("ns-%d", i%100), fmt.Sprintf("web-%d", i)))
	}
	taken := s.Take()
	b.Run("change", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			version++
			o := named(kinds.Ingress, "ns-7", "web-7").(*networkingv1.Ingress)
			o.Spec.Rules = []networkingv1.IngressRule{{Host: fmt.Sprint(version)}}
			s.Set(o)
			if len(s.Take().Changed) != 1 {
				b.Fatal("the change is not in the snapshot")
			}
		}
	})
	b.Run("all", func(b *testing.B) {
		for b.Loop() {
			for o := range Of[*networkingv1.Ingress](taken).All() {
				if o.Name == "" {
					b.Fatal("an Ingress has no name")
				}
			}
		}
	})
	b.Run("get", func(b *testing.B) {
		for b.Loop() {
			if _, ok := Of[*networkingv1.Ingress](taken).Get("ns-7", "web-7"); !ok {
				b.Fatal("an Ingress is missing")
			}
		}
	})
}
