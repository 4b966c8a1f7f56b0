package structure

import (
	"encoding/json"
	"net/url"
	"slices"
	"strings"

	"github.com/caddyserver/caddy/v2/modules/caddypki"

	"github.com/k8singress/k8singress/internal/settings"
)

// Abilities say which names the issuers of the options can be asked for.
type Abilities struct {
	// AnyName says that one of them takes names that nobody outside knows, such as web.local.
	AnyName bool
	// Wildcards says that one of them takes wildcards.
	Wildcards bool
}

// AbilitiesOf reads what the issuers can do out of the options. An issuer that nobody here knows may do all.
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

// publicCAs are the domains of the authorities that browsers trust and that speak ACME.
var publicCAs = []string{
	"letsencrypt.org", "zerossl.com", "pki.goog", "buypass.com", "buypass.no", "ssl.com", "actalis.com", "digicert.com", "sectigo.com",
}

// publicCA says whether the directory of an authority is that of a public one. Without one it is Caddy's default.
func publicCA(directory string) bool {
	u, err := url.Parse(directory)
	if err != nil || u.Host == "" {
		return true
	}
	return slices.ContainsFunc(publicCAs, func(domain string) bool { return strings.HasSuffix("."+u.Hostname(), "."+domain) })
}

// localCA is the authority that the internal issuer has if it names none.
const localCA = "local"

// keepsToItself says that the options make this Caddy an authority by itself.
func keepsToItself(c settings.Config) bool {
	return slices.ContainsFunc(Issuers(c), func(raw json.RawMessage) bool {
		var issuer struct{ Module, CA string }
		return json.Unmarshal(raw, &issuer) == nil && issuer.Module == "internal" && (issuer.CA == "" || issuer.CA == localCA)
	})
}

// pkiApp keeps the root of an authority that Ingresses asked for out of the trust store of the machine.
func pkiApp() *caddypki.PKI {
	install := false
	return &caddypki.PKI{CAs: map[string]*caddypki.CA{localCA: {InstallTrust: &install}}}
}

// mergePKI leaves an authority alone that the configuration has something to say of.
func mergePKI(apps, wanted map[string]any) error {
	ours := Branch(wanted, "apps", "pki", "certificate_authorities")
	if ours == nil {
		return nil
	}
	pki, err := child(apps, "pki")
	if err != nil {
		return err
	}
	authorities, err := child(pki, "certificate_authorities")
	if err != nil {
		return err
	}
	if authorities[localCA] == nil {
		authorities[localCA] = ours[localCA]
	}
	return nil
}
