package annotations

import (
	"slices"
	"testing"

	"github.com/k8singress/k8singress/internal/model/ir"
)

// TestLocationsEndAtASlash checks which paths no-auth-locations and no-tls-redirect-locations exempt: a location and
// the paths below it, but not other paths with the same prefix.
func TestLocationsEndAtASlash(t *testing.T) {
	for _, test := range []struct {
		locations []string
		path      string
		exempt    bool
	}{
		{nil, "/.well-known/acme-challenge", true},
		{nil, "/.well-known/acme-challenge/token", true},
		{nil, "/.well-known/acme-challengeX/admin", false},
		{nil, "/", false},
		{[]string{"/healthz"}, "/healthz", true},
		{[]string{"/healthz"}, "/healthz/deep", true},
		{[]string{"/healthz"}, "/healthz-admin", false},
		{[]string{"/open/"}, "/open/x", true},
		{[]string{"/open/"}, "/open", false},
		{[]string{"/"}, "/anything", true},
		{[]string{}, "/.well-known/acme-challenge", false},
	} {
		defaults := Settings{Asked: Asked{NoAuth: test.locations}, Redirect: Redirect{Exempt: test.locations}}
		s, problems := Parse(defaults, map[string]string{Key("auth-url"): "http://auth.example/",
			Key("force-ssl-redirect"): "true"})
		if len(problems) > 0 {
			t.Fatal(problems)
		}
		filters := s.Filters(test.path)
		asks := slices.ContainsFunc(filters, func(f ir.Filter) bool {
			_, ok := f.(ir.ExternalAuth)
			return ok
		})
		redirect, _ := s.RedirectFor(test.path, filters, 443)
		if asks == test.exempt || (redirect == nil) != test.exempt {
			t.Errorf("%q with %q: asks the service %t, redirects %t", test.path, test.locations, asks, redirect != nil)
		}
	}
}
