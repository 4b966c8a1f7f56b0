package caddyfile

import (
	"encoding/json"
	"fmt"
	"slices"

	"github.com/caddyserver/caddy/v2/caddyconfig/caddyfile"
	"github.com/caddyserver/caddy/v2/modules/caddytls"

	"github.com/k8singress/k8singress/internal/model/settings"
)

// issuerOptions lists Caddy's global options that configure issuers of certificates.
var issuerOptions = []string{
	"acme_ca", "acme_ca_root", "acme_dns", "acme_eab", "cert_issuer", "cert_lifetime", "dns", "email", "local_certs",
	"preferred_chains", "tls_resolvers",
}

// ourIssuerOptions lists the options of the controller that configure issuers. All but issuer have the names of Caddy's
// global options, whose place they take for the hosts of Ingresses.
var ourIssuerOptions = []string{"acme_ca", "email", "issuer"}

// withIssuerDefaults returns the options of the controller with the issuers of the hosts of Ingresses. Caddy's global
// options are the defaults of the option issuer, in the same way as they are for the directive tls of a site: Caddy
// adapts them together with a site that has our issuers. Without such global options, withIssuerDefaults returns c.
func withIssuerDefaults(c settings.Config, global []caddyfile.Segment) (settings.Config, error) {
	var ours, theirs []caddyfile.Segment
	for _, segment := range global {
		switch {
		case segment.Directive() == name:
			ours = slices.DeleteFunc(optionsIn(segment), func(o caddyfile.Segment) bool {
				return !slices.Contains(ourIssuerOptions, o.Directive())
			})
		case slices.Contains(issuerOptions, segment.Directive()):
			theirs = append(theirs, segment)
		}
	}
	if theirs == nil {
		return c, nil
	}
	issuers, err := issuersOfSite(ours, theirs)
	if err != nil || issuers == nil {
		return c, err
	}
	c.Issuers, c.Email, c.ACMECA = issuers, "", ""
	return c, nil
}

// publicSite is the address of a site for which Caddy gets certificates from public authorities by default.
const publicSite = "https://ingress.example"

// issuersOfSite returns the issuers that Caddy gives a site with a public name. ours are options of the controller, and
// theirs are Caddy's global options. It returns nil if the site has Caddy's default issuers.
func issuersOfSite(ours, theirs []caddyfile.Segment) ([]json.RawMessage, error) {
	token := func(text string, line int) caddyfile.Token { return caddyfile.Token{Text: text, Line: line} }
	tls := caddyfile.Segment{token("tls", 1), token("{", 1)}
	for _, option := range ours {
		if option.Directive() == "issuer" {
			tls = append(tls, option...)
			continue
		}
		theirs = append(slices.DeleteFunc(slices.Clone(theirs), func(other caddyfile.Segment) bool {
			return other.Directive() == option.Directive()
		}), option)
	}
	site := caddyfile.ServerBlock{Keys: []caddyfile.Token{token(publicSite, 1)}}
	if len(tls) > 2 {
		site.Segments = []caddyfile.Segment{append(tls, token("}", 2))}
	}
	adapted, err := adaptWithSite(theirs, site)
	if err != nil {
		return nil, err
	}
	var app caddytls.TLS
	if err := json.Unmarshal(adapted.AppsRaw["tls"], &app); adapted.AppsRaw["tls"] != nil && err != nil {
		return nil, fmt.Errorf("decoding the issuers of certificates: %w", err)
	}
	if app.Automation == nil || len(app.Automation.Policies) == 0 {
		return nil, nil
	}
	// The policy of the site comes before the policy for all other names, unless the two are equal.
	return app.Automation.Policies[0].IssuersRaw, nil
}
