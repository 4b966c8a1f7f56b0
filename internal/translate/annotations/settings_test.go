package annotations_test

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/k8singress/k8singress/internal/model/ir"
	"github.com/k8singress/k8singress/internal/translate/annotations"
)

// parse parses annotations on top of defaults, and fails the test if there are problems.
func parse(t *testing.T, defaults annotations.Settings, all map[string]string) *annotations.Settings {
	t.Helper()
	settings, problems := annotations.Parse(defaults, all)
	if len(problems) > 0 {
		t.Fatal(problems)
	}
	return settings
}

// TestChainsComeFirst checks that the administrator's handler chains see the request before the rewrite, in the order
// of the annotation.
func TestChainsComeFirst(t *testing.T) {
	defaults := annotations.Settings{AvailableChains: []string{"audit", "waf"}}
	settings := parse(t, defaults, map[string]string{rewriteTarget: "/b",
		annotations.OwnPrefix + "chains": "waf,audit"})
	want := []ir.Filter{ir.HandlerChain{Name: "waf"}, ir.HandlerChain{Name: "audit"}, ir.URLRewrite{Target: "/b"}}
	if diff := cmp.Diff(want, settings.Filters("/a")); diff != "" {
		t.Errorf("filters (-want +got):\n%s", diff)
	}
}

// TestMissingChainReturns503 checks that all requests get 503 if the annotation is invalid or names an unknown chain.
func TestMissingChainReturns503(t *testing.T) {
	for _, value := range []string{"audti", "audit,waf", "au\ndit", "audit audit", "*", "\xff"} {
		settings, problems := annotations.Parse(annotations.Settings{AvailableChains: []string{"audit"}},
			map[string]string{annotations.OwnPrefix + "chains": value})
		filters := settings.Filters("/")
		if len(problems) != 1 || len(filters) == 0 || filters[0] != (ir.DirectResponse{Status: 503}) {
			t.Errorf("%q: got the filters %v and %v, want 503 and one problem", value, filters, problems)
		}
	}
}

// TestPrefixGoesWithRewrite checks that x-forwarded-prefix takes effect only for paths that are rewritten.
func TestPrefixGoesWithRewrite(t *testing.T) {
	settings := parse(t, annotations.Settings{},
		map[string]string{rewriteTarget: "/a", annotations.Prefix + "x-forwarded-prefix": "/app"})
	for path, want := range map[string]string{"/b": "/app", "/a": ""} {
		if got := settings.ForwardingFor(path).Prefix; got != want {
			t.Errorf("%s has the prefix %q, want %q", path, got, want)
		}
	}
}

// TestDefaultsAreCombined checks that the load-balancing settings of an Ingress are combined with the defaults:
// each setting that the Ingress lacks comes from the defaults.
func TestDefaultsAreCombined(t *testing.T) {
	defaults := parse(t, annotations.Settings{}, map[string]string{
		annotations.Prefix + "upstream-hash-by-subset-size": "5",
		annotations.Prefix + "upstream-hash-by":             "$remote_addr",
		annotations.Prefix + "load-balance":                 "ewma",
	})
	for _, test := range []struct {
		name string
		all  map[string]string
		want ir.LoadBalancing
	}{
		{"nothing", nil, ir.LoadBalancing{Policy: ir.PolicyHash, HashBy: "$remote_addr"}},
		{"subset", map[string]string{annotations.Prefix + "upstream-hash-by-subset": "true"},
			ir.LoadBalancing{Policy: ir.PolicyHash, HashBy: "$remote_addr", HashSubset: 5}},
		{"cookie", map[string]string{annotations.Prefix + "affinity": "cookie"},
			ir.LoadBalancing{Policy: ir.PolicyEWMA, SessionCookie: &ir.SessionCookie{Name: "INGRESSCOOKIE"}}},
	} {
		t.Run(test.name, func(t *testing.T) {
			if diff := cmp.Diff(test.want, parse(t, *defaults, test.all).LoadBalancing); diff != "" {
				t.Errorf("load balancing (-want +got):\n%s", diff)
			}
		})
	}
}

// TestRetriesOfNonIdempotentRequests checks that the ConfigMap key retry-non-idempotent adds a retry condition to the
// conditions of an Ingress, and does not turn retries on if the Ingress has turned them off.
func TestRetriesOfNonIdempotentRequests(t *testing.T) {
	var defaults annotations.Settings
	defaults.Asked.Retries.NonIdempotent = true
	for value, want := range map[string][]ir.RetryOn{
		"":                        {ir.RetryOnError, ir.RetryOnTimeout, ir.RetryNonIdempotent},
		"http_502":                {ir.RetryOn502, ir.RetryNonIdempotent},
		"http_502 non_idempotent": {ir.RetryOn502, ir.RetryNonIdempotent},
		"off":                     {},
	} {
		got := parse(t, defaults, map[string]string{annotations.Prefix + "proxy-next-upstream": value}).Attempts.On
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%q (-want +got):\n%s", value, diff)
		}
	}
}

// TestTracingNeedsCollector checks that requests are traced only if tracing is enabled and the ConfigMap configures a
// collector. Without a collector, the annotation that enables tracing gets a warning.
func TestTracingNeedsCollector(t *testing.T) {
	traced := ir.Tracing{Operation: "$request_method", Untrusted: true}
	for _, test := range []struct {
		enabled   string
		collected bool
		want      *ir.Tracing
		warnings  []string
	}{
		{"true", true, &traced, nil},
		{"false", true, nil, nil},
		{"true", false, nil, []string{annotations.NoCollector}},
		{"false", false, nil, nil},
	} {
		defaults := annotations.Settings{}
		defaults.Asked.Tracing.Collected, defaults.Asked.Tracing.Tracing = test.collected, traced
		settings, problems := annotations.Parse(defaults,
			map[string]string{annotations.Prefix + "enable-opentelemetry": test.enabled})
		var warnings []string
		for _, p := range problems {
			warnings = append(warnings, p.Message)
		}
		if !cmp.Equal(test.want, settings.Tracing) || !slices.Equal(test.warnings, warnings) {
			t.Errorf("%+v: got %+v and %q", test, settings.Tracing, warnings)
		}
	}
}

// TestBackendTLSWithoutSecret checks that the settings of TLS connections to endpoints apply without a Secret only if a
// snippet sets some of them, and that no annotation gets a warning then.
func TestBackendTLSWithoutSecret(t *testing.T) {
	values := map[string]string{
		annotations.Prefix + "backend-protocol":      "HTTPS",
		annotations.Prefix + "proxy-ssl-server-name": "on",
	}
	if settings, problems := annotations.Parse(all, values); settings.Forwarding.TLS != nil ||
		len(problems) != 1 {
		t.Errorf("the settings are %v, with the problems %v", settings.Forwarding.TLS, problems)
	}
	values[annotations.Prefix+"configuration-snippet"] = "proxy_ssl_name app.example;"
	want := &ir.BackendTLS{Name: "app.example", SendName: true, Depth: 1}
	if diff := cmp.Diff(want, parse(t, all, values).Forwarding.TLS); diff != "" {
		t.Errorf("TLS to the endpoints (-want +got):\n%s", diff)
	}
}
