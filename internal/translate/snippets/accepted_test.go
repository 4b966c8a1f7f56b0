package snippets_test

import (
	"encoding/json"
	"testing"

	"github.com/k8singress/k8singress/internal/http/filter"
	"github.com/k8singress/k8singress/internal/model/ir"
	"github.com/k8singress/k8singress/internal/translate/snippets"
)

// checkAccepted checks that the filters of package filter accept what a result contains.
func checkAccepted(t *testing.T, r *snippets.Result) {
	t.Helper()
	var all []ir.Filter
	if r.Program != nil {
		all = append(all, *r.Program)
	}
	if r.Substitution != nil {
		all = append(all, *r.Substitution)
	}
	if r.Access != nil {
		all = append(all, *r.Access)
	}
	for _, f := range all {
		raw, err := json.Marshal(f)
		if err != nil {
			t.Fatal(err)
		}
		if _, ok, err := filter.New(filter.HandlerName(f), raw, nil); !ok || err != nil {
			t.Errorf("%s is not accepted: %v", raw, err)
		}
	}
}
