package engine

import (
	"testing"
	"time"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/modules/caddytls"
)

// TestTLSDefaults checks that the settings of Caddy's TLS app for all names are found, whichever other policies there
// are.
func TestTLSDefaults(t *testing.T) {
	other := &caddytls.AutomationPolicy{SubjectsRaw: []string{"a.example"}, KeyType: "rsa2048"}
	all := &caddytls.AutomationPolicy{KeyType: "p384", RenewalWindowRatio: .5}
	for name, c := range map[string]struct {
		app      any
		keyType  string
		ratio    float64
		interval time.Duration
	}{
		"no app":        {},
		"no automation": {app: &caddytls.TLS{}},
		"other names": {app: &caddytls.TLS{Automation: &caddytls.AutomationConfig{
			RenewCheckInterval: caddy.Duration(time.Hour), Policies: []*caddytls.AutomationPolicy{other},
		}}, interval: time.Hour},
		"all names": {app: &caddytls.TLS{Automation: &caddytls.AutomationConfig{
			Policies: []*caddytls.AutomationPolicy{other, all},
		}}, keyType: "p384", ratio: .5},
	} {
		policy, automation := tlsDefaults(c.app)
		if policy.KeyType != c.keyType || policy.RenewalWindowRatio != c.ratio ||
			time.Duration(automation.RenewCheckInterval) != c.interval {
			t.Errorf("%s: %+v, %+v", name, policy, automation)
		}
	}
}
