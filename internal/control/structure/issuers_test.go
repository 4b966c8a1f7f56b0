package structure_test

import (
	"encoding/json"
	"testing"

	"github.com/k8singress/k8singress/internal/control/structure"
	"github.com/k8singress/k8singress/internal/model/settings"
)

func TestAbilities(t *testing.T) {
	none, names, wildcards := structure.Abilities{}, structure.Abilities{AnyName: true},
		structure.Abilities{Wildcards: true}
	all := structure.Abilities{AnyName: true, Wildcards: true}
	for name, c := range map[string]struct {
		options settings.Config
		want    structure.Abilities
	}{
		"Caddy's own": {settings.Config{}, none},
		"an email":    {settings.Config{Email: "ops@example.com"}, none},
		"the staging of a public": {settings.Config{ACMECA: "https://acme-staging-v02.api.letsencrypt.org/directory"},
			none},
		"a name like a public": {settings.Config{ACMECA: "https://notletsencrypt.org/directory"}, names},
		"a private authority":  {settings.Config{ACMECA: "https://ca.corp:9000/acme/acme/directory"}, names},
		"an issuer":            {issuers(`{"module":"acme"}`), none},
		"the DNS challenge": {issuers(`{"module":"acme","challenges":{"dns":{"provider":{"name":"x"}}}}`),
			wildcards},
		"another challenge": {issuers(`{"module":"acme","challenges":{"http":{"disabled":true}}}`), none},
		"ZeroSSL by HTTP":   {issuers(`{"module":"zerossl","api_key":"k"}`), none},
		"ZeroSSL by DNS":    {issuers(`{"module":"zerossl","cname_validation":{}}`), wildcards},
		"internal":          {issuers(`{"module":"internal"}`), all},
		"internal at last":  {issuers(`{"module":"acme"}`, `{"module":"internal"}`), all},
		"of a plugin":       {issuers(`{"module":"vault"}`), all},
		"not JSON":          {issuers(`[`), none},
	} {
		t.Run(name, func(t *testing.T) {
			if got := structure.AbilitiesOf(c.options); got != c.want {
				t.Errorf("got %+v, want %+v", got, c.want)
			}
		})
	}
}

func issuers(all ...string) settings.Config {
	var c settings.Config
	for _, raw := range all {
		c.Issuers = append(c.Issuers, json.RawMessage(raw))
	}
	return c
}
