package snapshot_test

import (
	"slices"
	"testing"

	"github.com/k8singress/k8singress/internal/model/ir"
	"github.com/k8singress/k8singress/internal/model/kinds"
	"github.com/k8singress/k8singress/internal/model/snapshot"
)

func TestDenied(t *testing.T) {
	s, ref := snapshot.NewStore(), ir.Ref{Kind: kinds.Secret, Namespace: "a", Name: "tls"}
	before := s.Take()
	s.Deny(ref, true)
	denied := s.Take()
	s.Deny(ref, true)
	same := s.Take()
	s.Deny(ref, false)
	after := s.Take()
	if before.Denied(ref) || !denied.Denied(ref) || !same.Denied(ref) || after.Denied(ref) {
		t.Errorf("denied is %v, %v, %v, %v", before.Denied(ref), denied.Denied(ref), same.Denied(ref),
			after.Denied(ref))
	}
	if !slices.Contains(denied.Changed, ref) || len(same.Changed) > 0 || !slices.Contains(after.Changed, ref) {
		t.Errorf("changed are %v, %v, %v", denied.Changed, same.Changed, after.Changed)
	}
}
