package certs_test

import (
	"fmt"
	"testing"

	"github.com/k8singress/k8singress/internal/certs"
	"github.com/k8singress/k8singress/internal/document"
)

// BenchmarkProblems has 10,000 good Secrets: whoever asks does so each time that any object changes.
func BenchmarkProblems(b *testing.B) {
	s, all := certs.NewStore(), map[string]*document.Certificate{}
	for i := range 10_000 {
		all[fmt.Sprintf("host-%d.example", i)] = &document.Certificate{Secret: fmt.Sprintf("a/tls-%d", i), Origin: "Ingress/a/web"}
	}
	s.Update(all)
	data := forNames(b, "*.example").data()
	for i := range 10_000 {
		s.SetSecret("a", fmt.Sprintf("tls-%d", i), data, true)
	}
	b.ReportAllocs()
	for b.Loop() {
		if p := s.Problems(); len(p) != 0 {
			b.Fatalf("problems of good Secrets: %+v", p[0])
		}
	}
}
