package filter_test

import (
	"slices"
	"testing"

	"github.com/k8singress/k8singress/internal/http/filter"
	"github.com/k8singress/k8singress/internal/model/ir"
)

// cases has the cases of each filter, by the name of its handler.
var cases = map[string][]filterCase{
	"k8singress_access_rules":          accessRulesCases,
	"k8singress_any_of":                anyOfCases,
	"k8singress_app_root":              appRootCases,
	"k8singress_bandwidth":             bandwidthCases,
	"k8singress_basic_auth":            basicAuthCases,
	"k8singress_cors":                  corsCases,
	"k8singress_direct_response":       directResponseCases,
	"k8singress_external_auth":         slices.Concat(externalAuthCases, authProgramCases),
	"k8singress_host_redirect":         hostRedirectCases,
	"k8singress_internal":              internalCases,
	"k8singress_path_groups":           pathGroupsCases,
	"k8singress_maintenance":           maintenanceCases,
	"k8singress_mirror":                mirrorCases,
	"k8singress_program":               programCases,
	"k8singress_rate_limit":            rateLimitCases,
	"k8singress_redirect":              redirectCases,
	"k8singress_response_headers":      responseHeadersCases,
	"k8singress_rewrite":               rewriteCases,
	"k8singress_rewrite_redirect":      rewriteRedirectCases,
	"k8singress_source_ranges":         sourceRangesCases,
	"k8singress_substitution":          substitutionCases,
	"k8singress_try_files":             tryFilesCases,
	"k8singress_without_authorization": withoutAuthorizationCases,
	"k8singress_zone_limits":           zoneLimitsCases,
}

// TestFilters checks each filter with the requests of its cases. A filter without a case fails the test.
func TestFilters(t *testing.T) {
	for _, name := range filter.Names() {
		t.Run(name, func(t *testing.T) {
			served := 0
			for i := range cases[name] {
				c := &cases[name][i]
				served += len(c.requests)
				t.Run(c.name, func(t *testing.T) { c.run(t, name) })
			}
			if served == 0 {
				t.Error("no case shows what this filter does with a request: add one to the variable cases")
			}
		})
	}
}

// TestUnknownSettings checks that each filter rejects settings that it does not know, and JSON that is not an object.
func TestUnknownSettings(t *testing.T) {
	env := newEnvironment(t)
	for _, name := range filter.Names() {
		for _, settings := range []string{`{"handler": "` + name + `", "no_such_setting": 1}`, `[]`, `{`} {
			if _, ok, err := filter.New(name, []byte(settings), env.shared); !ok || err == nil {
				t.Errorf("%s %s: %t, %v", name, settings, ok, err)
			}
		}
	}
}

// TestStateless checks which filters can be created without shared resources: the filters whose equal settings share
// one filter.
func TestStateless(t *testing.T) {
	for name, all := range cases {
		valid := slices.IndexFunc(all, func(c filterCase) bool { return c.invalid == "" })
		_, ok, err := filter.New(name, []byte(all[valid].settings), nil)
		if stateless := ok && err == nil; stateless != filter.Stateless(name) {
			t.Errorf("%s: Stateless returns %t, and without shared resources New returns %v", name,
				filter.Stateless(name), err)
		}
	}
}

// TestHandlerNames checks that New knows the name of each filter of the model, and each name only once. Chains and
// status pages are handlers of package k8singress.
func TestHandlerNames(t *testing.T) {
	var names []string
	for _, f := range []ir.Filter{
		ir.URLRewrite{}, ir.Redirect{}, ir.RewriteRedirect{}, ir.HostRedirect{}, ir.AppRoot{},
		ir.WithoutAuthorization{},
		ir.ResponseHeaders{}, ir.DirectResponse{}, ir.CORS{}, ir.SourceRanges{}, ir.BasicAuth{}, ir.AnyOf{},
		ir.RateLimit{}, ir.Bandwidth{}, ir.Maintenance{}, ir.Mirror{}, ir.ExternalAuth{}, ir.AccessRules{},
		ir.Program{}, ir.Substitution{}, ir.Internal{}, ir.TryFiles{}, ir.PathGroups{},
		ir.ZoneLimits{},
	} {
		names = append(names, filter.HandlerName(f))
	}
	slices.Sort(names)
	if !slices.Equal(names, filter.Names()) {
		t.Errorf("the filters of the model have the handlers %v; New creates %v", names, filter.Names())
	}
	for _, other := range []string{filter.HandlerName(ir.HandlerChain{}), filter.HandlerName(ir.StubStatus{})} {
		if f, ok, err := filter.New(other, []byte(`{}`), nil); ok || err != nil {
			t.Errorf("%s: %v, %v, %v", other, f, ok, err)
		}
	}
}
