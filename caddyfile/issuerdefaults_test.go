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

	"github.com/k8singress/k8singress/internal/control/structure"
	"github.com/k8singress/k8singress/internal/model/document"
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

// adapted returns the JSON configuration of a Caddyfile with the given global options and sites. A warning is an error.
func adapted(t *testing.T, options, sites string) map[string]any {
	t.Helper()
	config, warnings := adaptedWithWarnings(t, options, sites)
	if len(warnings) > 0 {
		t.Errorf("warnings: %v", warnings)
	}
	return config
}

// adaptedWithWarnings is like adapted, and returns the warnings.
func adaptedWithWarnings(t *testing.T, options, sites string) (
	config map[string]any, warnings []caddyconfig.Warning) {
	t.Helper()
	text := caddyfile.Format([]byte("{\n" + options + "\n}\n\n" + sites))
	result, warnings, err := caddyconfig.GetAdapter(adapterName).Adapt(text, map[string]any{"filename": "Caddyfile"})
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(result, &config); err != nil {
		t.Fatal(err)
	}
	return config, warnings
}

// TestIssuerDefaults checks that Caddy's global options for issuers are the defaults of the option issuer, and that the
// options of the controller take precedence. An issuer is the JSON of its module without the field module.
func TestIssuerDefaults(t *testing.T) {
	const (
		acme    = `"module":"acme"`
		zerossl = `{"ca":"https://acme.zerossl.com/v2/DV90","email":"a@x.org","module":"acme"}`
	)
	for caseName, c := range map[string]struct {
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
		t.Run(caseName, func(t *testing.T) {
			app := structure.Branch(adapted(t, c.options, ""), "apps", name)
			var got []string
			issuers, _ := app["issuers"].([]any)
			for _, issuer := range issuers {
				got = append(got, string(document.Encode(issuer)))
			}
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
			if app["email"] != nil || app["acme_ca"] != nil {
				t.Errorf("there are other issuers, too: %v", app)
			}
		})
	}
}

// TestIssuersOfSitesAreSeparate checks that the options of the controller do not change the issuers of sites.
func TestIssuersOfSitesAreSeparate(t *testing.T) {
	config := adapted(t, "email site@x.org\nacme_ca https://x/dir\nk8singress {\nhttps off\nacme_ca https://y/dir\n}",
		"site.example {\n}\n")
	policies := structure.Branch(config, "apps", "tls", "automation")["policies"].([]any)
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
