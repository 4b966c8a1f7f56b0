package caddyfile

//go:generate go test -run ^TestCaddyPage$ -update

import (
	"fmt"
	"slices"
	"strings"

	"github.com/caddyserver/caddy/v2/caddyconfig"
	"github.com/caddyserver/caddy/v2/caddyconfig/caddyfile"

	"github.com/k8singress/k8singress/internal/model/settings"
)

// fate is the effect of a global option of Caddy on the hosts of Ingresses.
type fate int

const (
	// works means that the option takes effect.
	works fate = iota
	// worksInSites means that the option takes effect in sites with the directive k8singress, and not on the servers of
	// the options http and https.
	worksInSites
	// noEffect means that the option has no effect for the hosts of Ingresses.
	noEffect
	// forSites is like noEffect, for an option that Caddyfiles often need for their sites. It has no effect at all if
	// there are no sites.
	forSites
	// alwaysOff means that the option can only turn something off that is always off for the hosts of Ingresses.
	alwaysOff
)

// String returns the text for the documentation.
func (f fate) String() string {
	return [...]string{"yes", "only in sites with the directive", "no", "no", "always off"}[f]
}

// caddyOption is a global option of Caddy.
type caddyOption struct {
	// Name is the name of the option, or "servers NAME" for an option in the block of servers.
	Name string
	Fate fate
	// Doc says what the option does for the hosts of Ingresses or, if it has no effect, what to write instead. It is a
	// part of a warning, so it starts with a lower-case letter.
	Doc string
}

// caddyOptions lists all global options of Caddy 2.11, in alphabetical order. The options of servers follow.
var caddyOptions = []caddyOption{
	{"acme_ca", works, "the option `acme_ca` of k8singress and `dir` in `issuer` take precedence"},
	{"acme_ca_root", works, "trusted in addition to `trusted_roots` in `issuer`"},
	{"acme_dns", works, "`dns` in `issuer` takes precedence"},
	{"acme_eab", works, "`eab` in `issuer` takes precedence"},
	{"admin", works, "the controller uses the same address"},
	{"auto_https", forSites, "it only applies to sites. Set the option `auto_https` of k8singress"},
	{"cert_issuer", works, "the option `issuer` of k8singress takes precedence"},
	{"cert_lifetime", works,
		"`lifetime` in `issuer` takes precedence. Without an issuer or another default for ACME, it has no effect"},
	{"debug", works, "also logs the controller's messages at level DEBUG"},
	{"default_bind", works,
		"sets the hosts of the default addresses. The options `http` and `https` of k8singress take precedence. " +
			"`protocols` in its block has no effect"},
	{"default_sni", worksInSites,
		"clients without a server name get the certificate of the option `default_certificate` of k8singress"},
	{"dns", works, "the provider for `acme_dns`, and for `dns` without a provider in `issuer`"},
	{"ech", noEffect, "Encrypted ClientHello is not supported for hosts of Ingresses"},
	{"email", works, "the option `email` of k8singress and `email` in `issuer` take precedence"},
	{"events", works, "see [Events](#events)"},
	{"fallback_sni", worksInSites,
		"clients with an unknown server name get the certificate of the option `default_certificate` of k8singress"},
	{"filesystem", works, "chains can use the file system"},
	{"grace_period", works, "the option `shutdown_timeout` of k8singress takes precedence"},
	{"http_port", works, "sets the port of the default address. The option `http` of k8singress takes precedence"},
	{"https_port", works, "sets the port of the default address. The option `https` of k8singress takes precedence"},
	{"key_type", works, "the option `key_type` of k8singress takes precedence"},
	{"local_certs", works, "the option `issuer` of k8singress takes precedence"},
	{"log", works,
		"the controller logs below `k8singress`, and with the option `access_log caddy` also to `http.log.access`"},
	{"metrics", works,
		"adds requests for hosts of Ingresses to `caddy_http_*` ([Metrics](metrics.md#metrics-of-caddy))"},
	{"ocsp_interval", forSites, "OCSP responses are not stapled to certificates of Ingresses"},
	{"ocsp_stapling", forSites,
		"OCSP responses are never stapled to certificates of Ingresses, because certificate authorities are " +
			"discontinuing OCSP"},
	{"on_demand_tls", works,
		"decides for which names an Ingress with the annotation `k8singress.io/on-demand-tls` gets certificates"},
	{"order", forSites,
		"it only sorts the directives of sites. A chain runs its directives in the order of the file, and sorts " +
			"blocks such as `handle` in Caddy's default order"},
	{"persist_config", alwaysOff,
		"a saved configuration could be older than the Caddyfile. Only JSON can turn it on, with `persist` in " +
			"`admin.config`"},
	{"pki", works, "`issuer internal { ca <name> }` of k8singress uses its certificate authorities"},
	{"preferred_chains", works, "`preferred_chains` in `issuer` takes precedence"},
	{"renew_interval", works,
		"the controller asks the certificate authority at most once in this interval when it should renew a " +
			"certificate, and renews it at least five intervals before it expires. Default and minimum: one minute"},
	{"renewal_window_ratio", works, "certificates are renewed when this part of their lifetime is left"},
	{"servers", works, "the options in its block follow"},
	{"shutdown_delay", works, "the option `shutdown_delay` of k8singress takes precedence"},
	{"skip_install_trust", works,
		"the controller never installs a root certificate on the machine. With `issuer internal`, Caddy does not " +
			"install the root certificate of its authority `local` for your sites either, unless the option `pki` " +
			"has a block `ca local`"},
	{"storage", works, "stores certificates of issuers for hosts of Ingresses, too"},
	{"storage_check", forSites, "the storage is never checked before a certificate is ordered for hosts of Ingresses"},
	{"storage_clean_interval", works, "cleans the storage of certificates, which hosts of Ingresses and sites share"},
	{"tls_automate_names", noEffect, "hosts of Ingresses get certificates as their `spec.tls` says"},
	{"tls_resolvers", works,
		"used for the DNS challenge. `resolvers` in `issuer` takes precedence. Without an issuer or another default " +
			"for ACME, it has no effect"},

	{"servers 0rtt", alwaysOff,
		"the controller's servers accept no early data. In sites with the directive, the option takes effect"},
	{"servers client_ip_headers", works,
		"takes precedence over the ConfigMap key `forwarded-for-header`, except for `X-Forwarded-For` alone"},
	{"servers enable_full_duplex", worksInSites, "set the annotation or ConfigMap key `proxy-request-buffering: off`"},
	{"servers expected_dot_headers", worksInSites, "set the ConfigMap key `ignore-invalid-headers: false`"},
	{"servers expected_underscore_headers", worksInSites,
		"set the ConfigMap key `enable-underscores-in-headers`"},
	{"servers keepalive_count", works, "sets TCP keep-alive"},
	{"servers keepalive_idle", works, "sets TCP keep-alive"},
	{"servers keepalive_interval", works, "sets TCP keep-alive"},
	{"servers listener_wrappers", works, "see [listener wrappers](#listener-wrappers)"},
	{"servers log_credentials", works,
		"has an effect with `access_log caddy`, and only if it is set for the servers of `http` and of `https`, " +
			"which share an access log"},
	{"servers max_header_size", works,
		"the ConfigMap key `large-client-header-buffers` takes precedence. Default: 32 KiB"},
	{"servers metrics", worksInSites, "set the global option `metrics`"},
	{"servers name", works,
		"names the server in Caddy's metrics, logs and admin API. Default: `k8singress_http` and `k8singress_https`"},
	{"servers packet_conn_wrappers", worksInSites, "the servers of k8singress accept no other wrappers"},
	{"servers protocols", works,
		"the options `http3 off` and `h2c` of k8singress apply, too. On the server of `http`, `h2` and `h3` have no " +
			"effect"},
	{"servers strict_sni_host", works,
		"Caddy's HTTP server then reads the requests. Without it, a request gets 421 only if its host needs a client " +
			"certificate"},
	{"servers timeouts", works,
		"the ConfigMap keys `client-header-timeout`, `client-body-timeout` and `keep-alive` take precedence. Minimum " +
			"rates and `write_max_chunk` have no effect"},
	{"servers trace", worksInSites, "it has no equivalent"},
	{"servers trusted_proxies", works,
		"the client of a request is the same in `{client_ip}`, headers, limits, allow lists and logs. See " +
			"[proxies in front](#proxies-in-front)"},
	{"servers trusted_proxies_strict", works, "see `servers trusted_proxies`"},
	{"servers trusted_proxies_unix", works, "has no effect if the ConfigMap names proxies, too"},
}

// findCaddyOption returns the row of an option. It returns nil for options that are not in the table, such as options
// of plugins.
func findCaddyOption(name string) *caddyOption {
	i := slices.IndexFunc(caddyOptions, func(o caddyOption) bool { return o.Name == name })
	if i < 0 {
		return nil
	}
	return &caddyOptions[i]
}

// globalSegments returns the global options of a Caddyfile. It returns nil if the Caddyfile is invalid or has none.
func globalSegments(body []byte, filename string) []caddyfile.Segment {
	blocks, err := caddyfile.Parse(filename, body)
	if err != nil || len(blocks) == 0 || len(blocks[0].Keys) > 0 {
		return nil
	}
	return blocks[0].Segments
}

// warnings returns a warning for each global option of Caddy that has no effect for the hosts of Ingresses. There is no
// warning about options in a block of servers with the address of a site. If hasSites is true, the Caddyfile has sites,
// and there is no warning about options with the fate forSites. c holds the options of the controller.
func warnings(global []caddyfile.Segment, hasSites bool, c settings.Config) (all []caddyconfig.Warning) {
	c = c.WithDefaults()
	ours := slices.Concat(c.HTTP, c.HTTPS)
	warn := func(name string, at caddyfile.Token) {
		o := findCaddyOption(name)
		if o == nil || o.Fate == works || o.Fate == alwaysOff || o.Fate == worksInSites && len(ours) == 0 ||
			o.Fate == forSites && hasSites {
			return
		}
		all = append(all, caddyconfig.Warning{File: at.File, Line: at.Line, Directive: name, Message: fmt.Sprintf(
			"the global option %s has no effect for hosts of Ingresses: %s", name,
			strings.ReplaceAll(o.Doc, "`", ""))})
	}
	for _, segment := range global {
		warn(segment.Directive(), segment[0])
		address := addressOf(segment)
		if segment.Directive() != "servers" || address != "" && !slices.ContainsFunc(ours, sameAs(address)) {
			continue
		}
		for _, option := range optionsIn(segment) {
			warn("servers "+option.Directive(), option[0])
		}
	}
	return all
}

// optionsIn returns the options in the block of a global option, which may have one argument before the block.
func optionsIn(option caddyfile.Segment) (all []caddyfile.Segment) {
	d := caddyfile.NewDispenser(option)
	d.Next()
	d.NextArg()
	for d.NextBlock(0) {
		all = append(all, d.NextSegment())
	}
	return all
}
