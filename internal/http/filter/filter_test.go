package filter_test

import (
	"slices"
	"testing"

	"github.com/k8singress/k8singress/internal/http/filter"
	"github.com/k8singress/k8singress/internal/model/ir"
)

// TestHandlerNames checks that New knows the name of each filter of the model, and each name only once. Chains are
// handlers of package k8singress.
func TestHandlerNames(t *testing.T) {
	var names []string
	for _, f := range []ir.Filter{
		ir.URLRewrite{}, ir.Redirect{}, ir.RewriteRedirect{}, ir.HostRedirect{}, ir.AppRoot{}, ir.RequestHeaders{},
		ir.ResponseHeaders{}, ir.DirectResponse{}, ir.CORS{}, ir.SourceRanges{}, ir.BasicAuth{}, ir.AnyOf{},
		ir.RateLimit{}, ir.Bandwidth{}, ir.Mirror{}, ir.ExternalAuth{},
	} {
		names = append(names, filter.HandlerName(f))
	}
	slices.Sort(names)
	if !slices.Equal(names, filter.Names()) {
		t.Errorf("the filters of the model have the handlers %v; New creates %v", names, filter.Names())
	}
	chain := filter.HandlerName(ir.HandlerChain{})
	if f, ok, err := filter.New(chain, []byte(`{"name": "staff"}`), nil); ok || err != nil {
		t.Errorf("%s: %v, %v, %v", chain, f, ok, err)
	}
}
