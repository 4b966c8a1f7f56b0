package annotations

import "testing"

// TestRedirectForRejected checks that there is no redirect to HTTPS if all requests are rejected, and that there is one
// if some clients may be served, or if a client without access may be asked for a password.
func TestRedirectForRejected(t *testing.T) {
	broken := Asked{GlobalAuth: externalAuth{Broken: true}}
	for name, test := range map[string]struct {
		asked     Asked
		set       map[string]string
		redirects bool
	}{
		"open":                    {redirects: true},
		"closed":                  {set: map[string]string{Key("limit-rps"): "many"}},
		"maintenance":             {set: map[string]string{maintenance.Name: "true"}},
		"maintenance for some":    {redirects: true, set: allowing("192.0.2.0/24")},
		"maintenance and no list": {set: allowing("office")},
		"external authentication": {asked: broken},
		"a password comes first": {asked: broken, redirects: true,
			set: map[string]string{Key("auth-type"): "basic", Key("auth-secret"): "users"}},
		"another URL": {set: map[string]string{Key("permanent-redirect"): "https://new.example/"}},
	} {
		s, _ := Parse(Settings{Asked: test.asked}, test.set)
		s.UsersSecret.Name = "users"
		if redirect, _ := s.RedirectFor("/", s.Filters("/"), 443); (redirect != nil) != test.redirects {
			t.Errorf("%s: the redirect is %v", name, redirect)
		}
	}
}

// allowing returns the annotations of an Ingress in maintenance with an allowlist.
func allowing(networks string) map[string]string {
	return map[string]string{maintenance.Name: "true", maintenanceAllowlist.Name: networks}
}
