package structure

import (
	"encoding/json"
	"net/url"
	"slices"
	"strings"

	"github.com/caddyserver/caddy/v2/modules/caddypki"

	"github.com/k8singress/k8singress/internal/model/settings"
)

// Abilities describes for which names the configured issuers can issue certificates.
type Abilities struct {
	// AnyName means that at least one issuer accepts names that do not exist in public DNS, such as web.local.
	AnyName bool
	// Wildcards means that at least one issuer accepts wildcard names.
	Wildcards bool
}

// AbilitiesOf returns the abilities of the configured issuers. An issuer module that is not known here is assumed to
// support all names.
func AbilitiesOf(c settings.Config) Abilities {
	var all Abilities
	for _, raw := range Issuers(c) {
		of := abilities(raw)
		all.AnyName = all.AnyName || of.AnyName
		all.Wildcards = all.Wildcards || of.Wildcards
	}
	return all
}

func abilities(raw json.RawMessage) Abilities {
	var issuer struct {
		Module     string `json:"module"`
		CA         string `json:"ca"`
		Challenges struct {
			DNS any `json:"dns"`
		} `json:"challenges"`
		CNAME any `json:"cname_validation"`
	}
	if err := json.Unmarshal(raw, &issuer); err != nil {
		return Abilities{}
	}
	switch issuer.Module {
	case "acme":
		return Abilities{AnyName: !publicCA(issuer.CA), Wildcards: issuer.Challenges.DNS != nil}
	case "zerossl":
		return Abilities{Wildcards: issuer.CNAME != nil}
	}
	return Abilities{AnyName: true, Wildcards: true}
}

// publicCAs lists the domains of publicly trusted certificate authorities that support ACME.
var publicCAs = []string{
	"letsencrypt.org", "zerossl.com", "pki.goog", "buypass.com", "buypass.no", "ssl.com", "actalis.com", "digicert.com",
	"sectigo.com",
}

// publicCA reports whether an ACME directory URL belongs to a public certificate authority. An empty URL means Caddy's
// default, which is public.
func publicCA(directory string) bool {
	u, err := url.Parse(directory)
	if err != nil || u.Host == "" {
		return true
	}
	return slices.ContainsFunc(publicCAs,
		func(domain string) bool { return strings.HasSuffix("."+u.Hostname(), "."+domain) })
}

// localCA is the ID of the certificate authority that the internal issuer uses by default.
const localCA = "local"

// usesLocalCA reports whether a configured issuer is the internal issuer with Caddy's local certificate authority.
func usesLocalCA(c settings.Config) bool {
	return slices.ContainsFunc(Issuers(c), func(raw json.RawMessage) bool {
		var issuer struct{ Module, CA string }
		return json.Unmarshal(raw, &issuer) == nil && issuer.Module == "internal" &&
			(issuer.CA == "" || issuer.CA == localCA)
	})
}

// pkiApp returns a PKI app that does not install the local root certificate in the machine's trust store.
func pkiApp() *caddypki.PKI {
	install := false
	return &caddypki.PKI{CAs: map[string]*caddypki.CA{localCA: {InstallTrust: &install}}}
}

// mergePKI adds our settings for Caddy's local certificate authority, unless the configuration already defines this
// authority.
func mergePKI(apps, wanted map[string]any) error {
	ours := Branch(wanted, "apps", "pki", "certificate_authorities")
	if ours == nil {
		return nil
	}
	authorities, err := Child(apps, "pki", "certificate_authorities")
	if err != nil {
		return err
	}
	if authorities[localCA] == nil {
		authorities[localCA] = ours[localCA]
	}
	return nil
}
