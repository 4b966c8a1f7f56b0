package annotations_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/k8singress/k8singress/internal/model/ir"
	"github.com/k8singress/k8singress/internal/translate/annotations"
)

// TestRelativeRedirectsOfSnippets checks that the annotation and nginx's directive have the same effect on the
// redirects of a snippet.
func TestRelativeRedirectsOfSnippets(t *testing.T) {
	const snippet, relative = annotations.Prefix + "configuration-snippet", annotations.Prefix + "relative-redirects"
	for name, c := range map[string]struct {
		all  map[string]string
		want bool
	}{
		"neither":       {map[string]string{snippet: "return 302 /b;"}, false},
		"an annotation": {map[string]string{snippet: "return 302 /b;", relative: "true"}, true},
		"a directive":   {map[string]string{snippet: "absolute_redirect off; return 302 /b;"}, true},
	} {
		settings := parse(t, all, c.all)
		want := []ir.Filter{ir.Program{RelativeRedirects: c.want,
			Steps: []ir.Step{{Return: &ir.Return{Status: 302, Text: "/b", HasText: true}}}}}
		if diff := cmp.Diff(want, settings.Filters("/a")); diff != "" {
			t.Errorf("%s: filters (-want +got):\n%s", name, diff)
		}
	}
}

// TestLinesOfRefusedSnippet checks that all lines of a snippet with problems are reported at once, also if one of them
// makes all requests get 503.
func TestLinesOfRefusedSnippet(t *testing.T) {
	const snippet = annotations.Prefix + "configuration-snippet"
	settings, problems := annotations.Parse(all, map[string]string{
		snippet: "proxy_cache zone;\nauth_request /auth;\nadd_header X-A b;\nauth_jwt shop;\nproxy_buffers 4 8k;\n"})
	if !settings.Closed {
		t.Error("the Ingress is served")
	}
	var got []string
	for _, p := range problems {
		line, _, _ := strings.Cut(p.Message, ":")
		got = append(got, fmt.Sprintf("%s %s", p.Severity, line))
		if p.Field == "" || p.Reason == "" {
			t.Errorf("%+v has no field or no reason", p)
		}
	}
	want := []string{"error line 2", "warning line 1", "error line 4", "info line 5"}
	if !slices.Equal(got, want) {
		t.Errorf("the problems are %v, want %v", got, want)
	}
}

// TestSnippetBehindAnnotations checks that an annotation takes precedence over the same setting in the ConfigMap's
// snippet, and that the author of the Ingress is told.
func TestSnippetBehindAnnotations(t *testing.T) {
	defaults := annotations.Settings{}
	if err := annotations.LocationsSnippet.Parse(&defaults,
		"proxy_read_timeout 5s;\nproxy_send_timeout 6s;\nproxy_redirect /a /b;\nauth_basic off;"); err != nil {
		t.Fatal(err)
	}
	defaults.Finish()
	for name, c := range map[string]struct {
		all         map[string]string
		read, write time.Duration
		problems    []string
	}{
		"no annotation": {nil, 5 * time.Second, 6 * time.Second, nil},
		"an annotation": {map[string]string{annotations.Prefix + "proxy-read-timeout": "9"}, 9 * time.Second,
			6 * time.Second, []string{"info proxy-read-timeout: line 1"}},
		"another annotation": {map[string]string{annotations.Prefix + "proxy-redirect-from": "off"}, 5 * time.Second,
			6 * time.Second, []string{"info proxy-redirect-from: line 3"}},
		"a password": {map[string]string{annotations.Prefix + "auth-type": "basic"}, 5 * time.Second,
			6 * time.Second, []string{"info auth-type: line 4"}},
	} {
		settings, problems := annotations.Parse(defaults, c.all)
		if settings.Attempts.Read != c.read || settings.Attempts.Write != c.write {
			t.Errorf("%s: the limits are %v and %v", name, settings.Attempts.Read, settings.Attempts.Write)
		}
		var got []string
		for _, p := range problems {
			line, _, _ := strings.Cut(p.Message, " of ")
			name := strings.TrimSuffix(strings.TrimPrefix(p.Field, "metadata.annotations["+annotations.Prefix), "]")
			got = append(got, fmt.Sprintf("%s %s: %s", p.Severity, name, line))
		}
		if !slices.Equal(got, c.problems) {
			t.Errorf("%s: the problems are %v", name, problems)
		}
	}
}

// TestLimitsOfSnippets checks that the statuses of a snippet precede the statuses of the ConfigMap, also for the limits
// of annotations.
func TestLimitsOfSnippets(t *testing.T) {
	const snippet, rps = annotations.Prefix + "configuration-snippet", annotations.Prefix + "limit-rps"
	settings := parse(t, all, map[string]string{snippet: "limit_req_status 429;", rps: "1"})
	filters := settings.Filters("/a")
	if limit, ok := filters[0].(ir.RateLimit); len(filters) != 2 || !ok || limit.Status != 429 ||
		limit.ConnectionsStatus != 503 {
		t.Errorf("the filters are %+v", filters)
	}
}

// TestLimitExcept checks which rules apply to requests with limited methods: the lists of annotations, and the block of
// limit_except in place of the other rules of the snippet.
func TestLimitExcept(t *testing.T) {
	allow := func(network string) ir.AccessRule { return ir.AccessRule{Allow: true, Network: network} }
	deny := func(network string) ir.AccessRule { return ir.AccessRule{Network: network} }
	type list = []ir.AccessRule
	limited := func(rules ...ir.AccessRule) *ir.LimitExcept {
		return &ir.LimitExcept{Methods: []string{"PUT"}, Rules: rules}
	}
	const snippet, orPassword = "configuration-snippet", "satisfy any; "
	const denied, rules = "192.0.2.0/24", "allow 10.0.0.0/8; deny all; "
	const block, refusal = "limit_except PUT { allow 172.16.0.0/12; deny all; }", "limit_except PUT { deny all; }"
	locked, own := limited(deny("all")), list{allow("10.0.0.0/8"), deny("all")}
	other := limited(allow("172.16.0.0/12"), deny("all"))
	unavailable := ir.Unavailable
	for name, c := range map[string]struct {
		all  map[string]string
		want []ir.Filter
	}{
		"alone": {map[string]string{snippet: refusal}, []ir.Filter{ir.Program{LimitExcept: locked}}},
		"with rules": {map[string]string{snippet: rules + block},
			[]ir.Filter{ir.Program{LimitExcept: other}, ir.AccessRules{Rules: own, LimitExcept: limited()}}},
		"with a denylist": {map[string]string{snippet: block, "denylist-source-range": denied}, []ir.Filter{
			ir.Program{LimitExcept: other},
			ir.AccessRules{Rules: list{deny(denied)}, LimitExcept: limited(deny(denied))},
		}},
		"with an allowlist": {map[string]string{snippet: rules + block, "allowlist-source-range": denied}, []ir.Filter{
			ir.Program{LimitExcept: other}, ir.SourceRanges{Allow: []string{denied}},
		}},
		"or a password": {
			map[string]string{
				snippet: orPassword + rules + block, "denylist-source-range": denied, "auth-type": "basic",
			},
			[]ir.Filter{ir.Program{LimitExcept: other}, ir.AnyOf{Filters: []ir.Filter{ir.AccessRules{
				Rules:       list{deny(denied), own[0], own[1], deny("all")},
				LimitExcept: limited(deny(denied), allow("172.16.0.0/12"), deny("all"), deny("all")),
			}, unavailable}}},
		},
		"only for other methods or a password": {
			map[string]string{snippet: orPassword + block, "auth-type": "basic"},
			[]ir.Filter{ir.Program{LimitExcept: other}, ir.AnyOf{Filters: []ir.Filter{ir.AccessRules{
				Rules: list{deny("all")}, LimitExcept: limited(allow("172.16.0.0/12"), deny("all"), deny("all")),
			}, unavailable}}},
		},
		"only denied or a password": {map[string]string{snippet: orPassword + refusal, "auth-type": "basic"},
			[]ir.Filter{ir.Program{LimitExcept: locked}, unavailable}},
	} {
		prefixed := map[string]string{}
		for key, value := range c.all {
			prefixed[annotations.Prefix+key] = value
		}
		settings, _ := annotations.Parse(all, prefixed)
		got := slices.DeleteFunc(settings.Filters("/a"), func(f ir.Filter) bool {
			_, withoutPassword := f.(ir.WithoutAuthorization)
			return withoutPassword
		})
		if diff := cmp.Diff(c.want, got, cmpopts.EquateEmpty()); diff != "" {
			t.Errorf("%s: filters (-want +got):\n%s", name, diff)
		}
	}
}

// TestPassthroughGuardOfLimitExcept checks that limit_except prevents TLS passthrough only if it decides by addresses.
func TestPassthroughGuardOfLimitExcept(t *testing.T) {
	for snippet, want := range map[string]ir.Guard{
		"limit_except GET { deny all; }":                   ir.NoRequests,
		"limit_except GET { allow 10.0.0.0/8; deny all; }": ir.SomeClients,
		"deny all; limit_except GET { allow all; }":        ir.NoRequests,
	} {
		settings := parse(t, all, map[string]string{annotations.Prefix + "configuration-snippet": snippet})
		if _, got, _ := settings.PassthroughGuard(); got != want {
			t.Errorf("%s: the guard is %d, want %d", snippet, got, want)
		}
	}
}
