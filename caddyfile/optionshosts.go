package caddyfile

import (
	"github.com/k8singress/k8singress/internal/model/ir"
	"github.com/k8singress/k8singress/internal/model/option"
	"github.com/k8singress/k8singress/internal/model/settings"
)

// certificateOptions configure certificates and issuers.
var certificateOptions = option.Table[draft, *line]{
	{
		Name: "default_certificate", Values: "<namespace/name>",
		Parse:   value(func(d *draft) *ir.Name { return &d.config.DefaultCertificate }, namespacedName),
		Example: "default_certificate ingress-nginx/default-tls",
	},
	{
		Name: "auto_https", Values: "off | all",
		Parse: one(func(d *draft) *string { return &d.config.AutoHTTPS },
			words("; without the option, hosts of a tls entry without "+
				"secretName get a certificate", settings.AutoHTTPSOff, settings.AutoHTTPSAll)),
		Doc:     "[HTTPS](https.md) describes how an Ingress or a class can override the option.",
		Example: "auto_https all",
	},
	{
		Name: "auto_https_except", Values: "<namespace>...",
		Parse:   many(func(d *draft) *[]string { return &d.config.AutoHTTPSExcept }, label),
		Example: "auto_https_except preview sandbox",
	},
	{
		Name: "acme_on_missing_secret", Parse: enable(func(d *draft) *bool { return &d.config.ACMEOnMissingSecret }),
		Example: "acme_on_missing_secret",
	},
	{
		Name: "email", Values: "<address>",
		Parse:   one(func(d *draft) *string { return &d.config.Email }, emailAddress),
		Example: "email ops@example.com",
	},
	{
		Name: "acme_ca", Values: "<url>",
		Parse:   one(func(d *draft) *string { return &d.config.ACMECA }, directoryURL),
		Example: "acme_ca https://localhost:14000/dir",
	},
	{
		Name: "issuer", Values: "<module> [<arguments...>] [{ <options...> }]", Parse: setIssuer,
		Doc: "The issuer of certificates for Ingress hosts, as in Caddy's directive `tls` and its global option " +
			"`cert_issuer`: `acme`, `zerossl`, `internal`, or an issuer of a plugin. The option may be repeated: if " +
			"one issuer fails, the next one is tried. The block of `acme` configures the DNS challenge, external " +
			"accounts, profiles and preferred chains. Caddy's global options, such as `acme_dns`, are the defaults " +
			"([Automatic HTTPS](https.md#issuers)). With `internal`, Caddy itself is the certificate authority. " +
			"Clients do not trust its root certificate until you install the certificate on them, and Caddy does not " +
			"add the certificate to the trust store of this machine.",
		Example: "issuer acme {\n\temail ops@example.com\n\tprofile shortlived\n}",
		Default: "the global option `cert_issuer`, or ACME with `email` and `acme_ca`",
	},
	{
		Name: "key_type", Values: "p256 | p384 | rsa2048 | rsa4096 | ed25519",
		Parse: one(func(d *draft) *string { return &d.config.KeyType },
			words("", "p256", "p384", "rsa2048", "rsa4096", "ed25519")),
		Example: "key_type p384",
	},
}

// tenantOptions configure which namespaces can use which hosts.
var tenantOptions = option.Table[draft, *line]{
	{
		Name: "hosts_per_namespace", Values: "<number>",
		Parse:   number(func(d *draft) *int { return &d.config.HostsPerNamespace }),
		Example: "hosts_per_namespace 20",
	},
	{
		Name: "new_hosts_per_day", Values: "<number>",
		Parse:   number(func(d *draft) *int { return &d.config.NewHostsPerDay }),
		Example: "new_hosts_per_day 50",
	},
	{
		Name: "check_host_dns", Parse: enable(func(d *draft) *bool { return &d.config.CheckHostDNS }),
		Example: "check_host_dns",
	},
	{
		Name: "host_ownership", Values: "shared | namespace",
		Parse: one(func(d *draft) *string { return &d.config.HostOwnership },
			words("", settings.HostOwnershipShared, settings.HostOwnershipNamespace)),
		Doc:     "For details, see [Tenants](tenants.md).",
		Example: "host_ownership namespace",
	},
	{
		Name: "host_owner", Values: "<host> <namespace>...", Parse: setHostOwner,
		Doc: "The namespaces that may own a host. Each namespace is a name, or a prefix of names followed by `*`. " +
			"Ingresses of other namespaces are not served on this host. The host is a name, `*` for every other " +
			"host, or a wildcard such as `*.shop.example`, which includes all names below `shop.example` and their " +
			"wildcards. The most specific entry takes precedence. The option may be repeated for different hosts.",
		Example: "host_owner *.shop.example shop team-*", Default: "every namespace may own every host",
	},
	{
		Name: "acme_solver_namespaces", Values: "<namespace>...",
		Parse:   many(func(d *draft) *[]string { return &d.config.ACMESolverNamespaces }, namespacePattern),
		Example: "acme_solver_namespaces cert-manager",
	},
}

// statusOptions configure the addresses in the status of Ingresses.
var statusOptions = option.Table[draft, *line]{
	{
		Name: "publish_service", Values: "<namespace/name>",
		Parse:   value(func(d *draft) *ir.Name { return &d.config.PublishService }, namespacedName),
		Example: "publish_service ingress-nginx/ingress-nginx-controller",
	},
	{
		Name: "publish_ports", Parse: enable(func(d *draft) *bool { return &d.config.PublishPorts }),
		Doc:     "For details, see [Ports of the Service](kubernetes.md#ports-of-the-service).",
		Example: "publish_ports",
	},
	{
		Name: "publish_address", Values: "<ip or host>...",
		Parse:   many(func(d *draft) *[]string { return &d.config.PublishAddress }, publicAddress),
		Example: "publish_address 203.0.113.7",
	},
	{
		Name: "publish_nodes", Values: "internal | external",
		Parse: one(func(d *draft) *string { return &d.config.PublishNodes },
			words("", settings.PublishNodesInternal, settings.PublishNodesExternal)),
		Example: "publish_nodes internal",
	},
	{
		Name: "status", Values: "off",
		Parse:   one(func(d *draft) *string { return &d.config.Status }, words("", settings.StatusOff)),
		Example: "status off",
	},
}

// electionOptions configure the election of a leader among replicas.
var electionOptions = option.Table[draft, *line]{
	{
		Name: "election_id", Values: "<name>",
		Parse:   one(func(d *draft) *string { return &d.config.ElectionID }, subdomain),
		Example: "election_id edge-leader",
	},
	{
		Name: "election_fallback", Values: "<name>",
		Parse:   one(func(d *draft) *string { return &d.config.ElectionFallback }, subdomain),
		Example: "election_fallback ingress-nginx-leader",
	},
	{
		Name: "election_namespace", Values: "<name>",
		Parse:   one(func(d *draft) *string { return &d.config.ElectionNamespace }, label),
		Example: "election_namespace ingress-nginx",
	},
	{
		Name: "election_ttl", Values: "<duration>",
		Parse:   duration(func(d *draft) *settings.Duration { return &d.config.ElectionTTL }, settings.MinElectionTTL),
		Example: "election_ttl 30s",
	},
	{
		Name: "election", Values: "off",
		Parse:   one(func(d *draft) *string { return &d.config.Election }, words("", settings.ElectionOff)),
		Example: "election off",
	},
}
