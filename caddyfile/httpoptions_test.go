package caddyfile

import (
	"testing"

	"github.com/k8singress/k8singress/internal/control/structure"
	"github.com/k8singress/k8singress/internal/model/document"
)

// TestUserSettingsStay checks that settings for all of Caddy are as global options set them, with and without sites,
// and are not set without the options.
func TestUserSettingsStay(t *testing.T) {
	for option, c := range map[string]struct {
		path []string
		key  string
		want string
		// without is the value without the option.
		without string
	}{
		"grace_period 10s":  {[]string{"apps", "http"}, "grace_period", "10000000000", "240000000000"},
		"shutdown_delay 3s": {[]string{"apps", "http"}, "shutdown_delay", "3000000000", "null"},
		"metrics":           {[]string{"apps", "http"}, "metrics", `{}`, "null"},
		"metrics {\nper_host\nobserve_catchall_hosts\n}": {[]string{"apps", "http"}, "metrics",
			`{"observe_catchall_hosts":true,"per_host":true}`, "null"},
		"ocsp_stapling off":          {[]string{"apps", "tls"}, "disable_ocsp_stapling", "true", "null"},
		"storage_check off":          {[]string{"apps", "tls"}, "disable_storage_check", "true", "null"},
		"storage_clean_interval off": {[]string{"apps", "tls"}, "disable_storage_clean", "true", "null"},
		"storage_clean_interval 1h": {[]string{"apps", "tls", "automation"}, "storage_clean_interval",
			"3600000000000", "null"},
		"renew_interval 1h":  {[]string{"apps", "tls", "automation"}, "renew_interval", "3600000000000", "null"},
		"persist_config off": {[]string{"admin", "config"}, "persist", "false", "false"},
	} {
		for _, sites := range []string{"", "http://site.example:8080 {\n}\n"} {
			value := func(options string) string {
				config, _ := adaptedWithWarnings(t, options, sites)
				return string(document.Encode(structure.Branch(config, c.path...)[c.key]))
			}
			if got := value(option + "\nk8singress"); got != c.want {
				t.Errorf("%s with %q: %s, want %s", option, sites, got, c.want)
			}
			if got := value("k8singress"); got != c.without {
				t.Errorf("%s is %s without the option, want %s", c.key, got, c.without)
			}
		}
	}
}

// TestPoliciesOfAllNames checks that the policy for the hosts of Ingresses has the settings of global options.
func TestPoliciesOfAllNames(t *testing.T) {
	config := adapted(t, "key_type p384\nrenewal_window_ratio 0.5\nk8singress", "")
	policies := structure.Branch(config, "apps", "tls", "automation")["policies"].([]any)
	policy := policies[len(policies)-1].(map[string]any)
	if policy["subjects"] != nil || policy["key_type"] != "p384" || policy["renewal_window_ratio"] != .5 {
		t.Errorf("the policy is %v", policy)
	}
}
