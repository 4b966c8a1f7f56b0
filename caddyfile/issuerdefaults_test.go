package caddyfile

import (
	"context"
	"encoding/json"
	"errors"
	"testing"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/caddyconfig"
	"github.com/caddyserver/caddy/v2/caddyconfig/caddyfile"
	"github.com/google/go-cmp/cmp"
	"github.com/libdns/libdns"

	"github.com/k8singress/k8singress/internal/model/settings"
)

func init() { caddy.RegisterModule(new(dnsProvider)) }

// dnsProvider is a module for the global options acme_dns and dns. It has one argument.
type dnsProvider struct {
	Token string `json:"token,omitempty"`
}

// CaddyModule returns the Caddy module information.
func (*dnsProvider) CaddyModule() caddy.ModuleInfo {
	return caddy.ModuleInfo{ID: "dns.providers.adapted", New: func() caddy.Module { return new(dnsProvider) }}
}

// AppendRecords is never called, because the tests only adapt Caddyfiles.
func (*dnsProvider) AppendRecords(context.Context, string, []libdns.Record) ([]libdns.Record, error) {
	return nil, errors.ErrUnsupported
}

// DeleteRecords is never called, because the tests only adapt Caddyfiles.
func (*dnsProvider) DeleteRecords(context.Context, string, []libdns.Record) ([]libdns.Record, error) {
	return nil, errors.ErrUnsupported
}

// UnmarshalCaddyfile parses the name of the provider and the token.
func (p *dnsProvider) UnmarshalCaddyfile(d *caddyfile.Dispenser) error {
	d.Next()
	d.AllArgs(&p.Token)
	return nil
}

// adaptedApps returns the settings of k8singress and of the apps http and tls that a Caddyfile with the given global
// options results in. It returns an error if there is a warning.
func adaptedApps(t *testing.T, options, sites string) (apps struct {
	K8singress settings.Config `json:"k8singress"`
	HTTP       map[string]any  `json:"http"`
	TLS        map[string]any  `json:"tls"`
}) {
	t.Helper()
	adapted, warnings, err := caddyconfig.GetAdapter(adapterName).Adapt(
		caddyfile.Format([]byte("{\n"+options+"\n}\n\n"+sites)),
		map[string]any{"filename": "Caddyfile"})
	if err != nil {
		t.Fatal(err)
	}
	if len(warnings) > 0 {
		t.Errorf("warnings: %v", warnings)
	}
	config := struct{ Apps any }{&apps}
	if err := json.Unmarshal(adapted, &config); err != nil {
		t.Fatal(err)
	}
	return apps
}

// TestIssuerDefaults checks that Caddy's global options for issuers are the defaults of the option issuer, and that the
// options of the controller take precedence. An issuer is the JSON of its module without the field module.
func TestIssuerDefaults(t *testing.T) {
	const (
		acme    = `"module":"acme"`
		zerossl = `{"ca":"https://acme.zerossl.com/v2/DV90","email":"a@x.org","module":"acme"}`
	)
	for name, c := range map[string]struct {
		options string
		want    []string
	}{
		"acme_ca": {"acme_ca https://x/dir\nk8singress", []string{`{"ca":"https://x/dir",` + acme + `}`}},
		"acme_ca beside": {"acme_ca https://x/dir\nk8singress {\nissuer internal\n}",
			[]string{`{"module":"internal"}`}},
		"acme_ca of k8singress": {"acme_ca https://x/dir\nk8singress {\nacme_ca https://y/dir\n}",
			[]string{`{"ca":"https://y/dir",` + acme + `}`}},
		"acme_ca of issuer": {"acme_ca https://x/dir\nk8singress {\nissuer acme {\ndir https://y/dir\n}\n}",
			[]string{`{"ca":"https://y/dir",` + acme + `}`}},
		"acme_ca_root": {"acme_ca_root /root.pem\nk8singress",
			[]string{`{` + acme + `,"trusted_roots_pem_files":["/root.pem"]}`}},
		"acme_dns": {"acme_dns adapted {env.TOKEN}\ntls_resolvers 192.0.2.1\nk8singress",
			[]string{`{"challenges":{"dns":{"provider":{"name":"adapted","token":"{env.TOKEN}"},` +
				`"resolvers":["192.0.2.1"]}},` + acme + `}`}},
		"acme_dns of issuer": {"acme_dns adapted a\nk8singress {\nissuer acme {\ndns adapted b\n}\n}",
			[]string{`{"challenges":{"dns":{"provider":{"name":"adapted","token":"b"}}},` + acme + `}`}},
		"dns": {"dns adapted a\nacme_dns\nk8singress", []string{`{"challenges":{"dns":{}},` + acme + `}`}},
		"dns for issuer": {"dns adapted a\nk8singress {\nissuer acme {\ndns\n}\n}",
			[]string{`{"challenges":{"dns":{}},` + acme + `}`}},
		"acme_eab": {"acme_eab {\nkey_id {env.ID}\nmac_key {env.KEY}\n}\nk8singress",
			[]string{`{"external_account":{"key_id":"{env.ID}","mac_key":"{env.KEY}"},` + acme + `}`}},
		"cert_issuer": {"cert_issuer acme {\nprofile short\n}\ncert_issuer internal\nemail a@x.org\nk8singress",
			[]string{`{"email":"a@x.org",` + acme + `,"profile":"short"}`, `{"module":"internal"}`}},
		"cert_issuer and issuer": {"cert_issuer internal\nemail a@x.org\nk8singress {\nissuer acme\n}",
			[]string{`{"email":"a@x.org",` + acme + `}`}},
		"cert_lifetime": {"cert_lifetime 1h\nk8singress {\nissuer acme\n}",
			[]string{`{"certificate_lifetime":3600000000000,` + acme + `}`}},
		"email": {"email a@x.org\nk8singress", []string{`{"email":"a@x.org",` + acme + `}`, zerossl}},
		"email with a placeholder": {"email {env.MAIL}\nacme_ca {env.CA}\nk8singress",
			[]string{`{"ca":"{env.CA}","email":"{env.MAIL}",` + acme + `}`}},
		"email of k8singress": {"email b@x.org\nk8singress {\nemail a@x.org\n}",
			[]string{`{"email":"a@x.org",` + acme + `}`, zerossl}},
		"local_certs":            {"local_certs\nk8singress", []string{`{"module":"internal"}`}},
		"local_certs and issuer": {"local_certs\nk8singress {\nissuer acme\n}", []string{`{` + acme + `}`}},
		"preferred_chains": {"preferred_chains smallest\nk8singress",
			[]string{`{` + acme + `,"preferred_chains":{"smallest":true}}`}},
		"tls_resolvers alone": {"tls_resolvers 192.0.2.1\nk8singress", nil},
	} {
		t.Run(name, func(t *testing.T) {
			apps := adaptedApps(t, c.options, "")
			var got []string
			for _, issuer := range apps.K8singress.Issuers {
				got = append(got, string(issuer))
			}
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
			if apps.K8singress.Email != "" || apps.K8singress.ACMECA != "" {
				t.Errorf("there are other issuers, too: %+v", apps.K8singress)
			}
		})
	}
}

// TestIssuersOfSitesAreSeparate checks that the options of the controller do not change the issuers of sites.
func TestIssuersOfSitesAreSeparate(t *testing.T) {
	apps := adaptedApps(t, "email site@x.org\nacme_ca https://x/dir\nk8singress {\nhttps off\nacme_ca https://y/dir\n}",
		"site.example {\n}\n")
	policies := apps.TLS["automation"].(map[string]any)["policies"].([]any)
	want := []any{map[string]any{"ca": "https://x/dir", "email": "site@x.org", "module": "acme"}}
	for _, p := range policies {
		if policy := p.(map[string]any); policy["subjects"] != nil {
			if diff := cmp.Diff(want, policy["issuers"]); diff != "" {
				t.Errorf("the issuers of the site (-want +got):\n%s", diff)
			}
			return
		}
	}
	t.Errorf("the site has no policy: %v", policies)
}
