package caddyfile

import (
	"strconv"

	"github.com/k8singress/k8singress/internal/model/ir"
	"github.com/k8singress/k8singress/internal/model/option"
	"github.com/k8singress/k8singress/internal/model/settings"
)

// hostOptions decide what Ingresses get: their status, certificates and hosts. They also configure the leader election.
var hostOptions = option.Table[draft, *line]{
	{
		Name: "publish_service", Values: "<namespace/name>",
		Parse:   value(func(d *draft) *ir.Name { return &d.config.PublishService }, namespacedName),
		Doc:     "The Service whose address is written to the status of the Ingresses.",
		Example: "publish_service ingress-nginx/ingress-nginx-controller", Default: "none",
	},
	{
		Name: "publish_ports", Parse: enable(func(d *draft) *bool { return &d.config.PublishPorts }),
		Doc: "Keeps the ports of the Service of `publish_service` in line with the TCP and UDP ports that are open, " +
			"and leaves its other ports alone. It needs the right to patch that Service: [In a " +
			"cluster](kubernetes.md#ports-of-the-service) says more.",
		Example: "publish_ports", Default: "the Service is left alone",
	},
	{
		Name: "publish_address", Values: "<ip or host>...",
		Parse: many(func(d *draft) *[]string { return &d.config.PublishAddress }, publicAddress),
		Doc: "The addresses that are written to the status of the Ingresses, in place of the addresses of a " +
			"Service.",
		Example: "publish_address 203.0.113.7", Default: "none",
	},
	{
		Name: "publish_nodes", Values: "internal | external",
		Parse: one(func(d *draft) *string { return &d.config.PublishNodes },
			words("", settings.PublishNodesInternal, settings.PublishNodesExternal)),
		Doc: "Writes to the status of the Ingresses the addresses of the nodes that ready pods of the controller " +
			"run on, for pods with ports of their nodes, as with `hostNetwork`: of each node the internal address, " +
			"or the external one where it has one. Pods belong together by their labels. It needs the right to list " +
			"and watch nodes, and the pods of the controller's namespace. Where `publish_service` stands beside it, " +
			"that Service counts as the controller's own, and its addresses do not count.",
		Example: "publish_nodes internal", Default: "none",
	},
	{
		Name: "status", Values: "off",
		Parse: one(func(d *draft) *string { return &d.config.Status }, words("", settings.StatusOff)),
		Doc: "With `off` no addresses are written to the status of Ingresses, whatever `publish_service` and " +
			"`publish_address` say. The Service of `publish_service` counts as that of the controller all the same.",
		Example: "status off", Default: "addresses are written where an option says which",
	},
	{
		Name: "ssl_passthrough", Parse: enable(func(d *draft) *bool { return &d.config.SSLPassthrough }),
		Doc: "Lets Ingresses hand the TLS connections of their hosts to a backend, which ends TLS itself: the " +
			"annotation `ssl-passthrough`, and the flag `--enable-ssl-passthrough` of ingress-nginx. Nothing is " +
			"reloaded when the first host asks for it. [TLS](tls.md#passthrough) has the details.",
		Example: "ssl_passthrough", Default: "the annotation has no effect, and TLS ends here",
	},
	{
		Name: "default_backend", Values: "<namespace/name[:port]>",
		Parse: value(func(d *draft) *ir.ServicePort { return &d.config.DefaultBackend }, servicePort),
		Doc: "The Service that answers requests which no host or path of an Ingress is for: the flag " +
			"`--default-backend-service` of ingress-nginx. It also answers in place of the errors of " +
			"[custom-http-errors](annotations.md#custom-http-errors) where an Ingress has no default-backend. It is " +
			"asked by HTTP, on its first port where none is named. Without endpoints, or where it does not answer, " +
			"clients get the error. No annotation of an Ingress holds for what it answers.",
		Example: "default_backend ingress-nginx/default-backend", Default: "none: such requests get 404",
	},
	{
		Name: "default_certificate", Values: "<namespace/name>",
		Parse:   value(func(d *draft) *ir.Name { return &d.config.DefaultCertificate }, namespacedName),
		Doc:     "The Secret with the certificate for names that no other certificate is for.",
		Example: "default_certificate ingress-nginx/default-tls", Default: "a self-signed certificate",
	},
	{
		Name: "auto_https", Values: "off | all",
		Parse: one(func(d *draft) *string { return &d.config.AutoHTTPS },
			words("; without the option, hosts of a tls entry without "+
				"secretName get a certificate", settings.AutoHTTPSOff, settings.AutoHTTPSAll)),
		Doc: "Which hosts of Ingresses get a certificate from an issuer: none with `off`, whatever an Ingress says; " +
			"with `all` every host that no Secret is for. [HTTPS](https.md) says more, and how an Ingress or a " +
			"class says otherwise.",
		Example: "auto_https all", Default: "the hosts of an entry of `spec.tls` without `secretName`",
	},
	{
		Name: "auto_https_except", Values: "<namespace>...",
		Parse:   many(func(d *draft) *[]string { return &d.config.AutoHTTPSExcept }, label),
		Doc:     "The namespaces whose Ingresses get no certificate from an issuer, whatever they say.",
		Example: "auto_https_except preview sandbox", Default: "none",
	},
	{
		Name: "acme_on_missing_secret", Parse: enable(func(d *draft) *bool { return &d.config.ACMEOnMissingSecret }),
		Doc: "Asks an issuer for the hosts of an entry of `spec.tls` whose Secret does not exist, too. The Secret " +
			"is shown as soon as there is one.",
		Example: "acme_on_missing_secret", Default: "the default certificate is shown for them",
	},
	{
		Name: "email", Values: "<address>",
		Parse: one(func(d *draft) *string { return &d.config.Email }, emailAddress),
		Doc: "Where the certificate authority may write to about the certificates of Ingress hosts. Sites of your " +
			"own have Caddy's global option `email`.",
		Example: "email ops@example.com", Default: "none",
	},
	{
		Name: "acme_ca", Values: "<url>",
		Parse: one(func(d *draft) *string { return &d.config.ACMECA }, directoryURL),
		Doc: "The directory of the ACME certificate authority for the certificates of Ingress hosts. An authority " +
			"that is not a public one may issue for any name, such as `web.local`; if this machine does not trust " +
			"the certificate that it shows, write `issuer acme` with `dir` and `trusted_roots` instead. Sites of " +
			"your own have Caddy's global option `acme_ca`.",
		Example: "acme_ca https://localhost:14000/dir", Default: "Caddy's own",
	},
	{
		Name: "issuer", Values: "<module> [<arguments...>] [{ <options...> }]", Parse: setIssuer,
		Doc: "Who issues the certificates of Ingress hosts, as in Caddy's directive `tls` and its global option " +
			"`cert_issuer`: `acme`, `zerossl`, `internal`, or one of a plugin. May be given more than once: the " +
			"next one is asked where one fails. `acme` has the DNS challenge, external accounts, profiles and " +
			"preferred chains in its block. With `internal` Caddy is an authority of its own, whose root no client " +
			"knows; it is not put into the trust store of this machine.",
		Example: "issuer acme {\n\temail ops@example.com\n\tprofile shortlived\n}",
		Default: "ACME, as `email` and `acme_ca` say",
	},
	{
		Name: "key_type", Values: "<type>", Parse: one(func(d *draft) *string { return &d.config.KeyType },
			words("", "p256", "p384", "rsa2048", "rsa4096", "ed25519")),
		Doc: "The type of the keys of the certificates from issuers: `p256`, `p384`, `rsa2048`, `rsa4096` or " +
			"`ed25519`.",
		Example: "key_type p384", Default: "p256",
	},
	{
		Name: "hosts_per_namespace", Values: "<number>",
		Parse: number(func(d *draft) *int { return &d.config.HostsPerNamespace }),
		Doc: "For how many hosts of one namespace an issuer is asked: the oldest ones, and wildcards before others. " +
			"It keeps one team from using up what an authority issues for all.",
		Example: "hosts_per_namespace 20", Default: strconv.Itoa(settings.DefaultHostsPerNamespace),
	},
	{
		Name: "new_hosts_per_day", Values: "<number>",
		Parse: number(func(d *draft) *int { return &d.config.NewHostsPerDay }),
		Doc: "For how many new names of one namespace an issuer is asked within 24 hours, whether it gives a " +
			"certificate or not, and whether the hosts are still there or not. A renewal is not new, nor is another " +
			"attempt for the same name. Authorities count the orders of an account, so a namespace that replaces " +
			"its hosts all the time would use them up for all. The storage has the count.",
		Example: "new_hosts_per_day 50", Default: "four times `hosts_per_namespace`",
	},
	{
		Name: "check_host_dns", Parse: enable(func(d *draft) *bool { return &d.config.CheckHostDNS }),
		Doc: "Asks issuers only for names that lead here: the DNS servers of `resolvers`, or of the system, have to " +
			"answer with an address of `publish_address` or `publish_service`. Leave it off where the cluster sees " +
			"other addresses than the internet, or where the DNS leads to a proxy in front. Wildcards are not checked.",
		Example: "check_host_dns", Default: "off",
	},
	{
		Name: "host_ownership", Values: "shared | namespace",
		Parse: one(func(d *draft) *string { return &d.config.HostOwnership },
			words("", settings.HostOwnershipShared, settings.HostOwnershipNamespace)),
		Doc: "What Ingresses of several namespaces may do on one host, which belongs to the namespace of its oldest " +
			"Ingress. With `shared`, the paths of all are served, and what holds for the whole host is up to its " +
			"owner. With `namespace`, only the owner is served there, and below a wildcard that it has. " +
			"[Tenants](tenants.md) says more.",
		Example: "host_ownership namespace", Default: settings.HostOwnershipShared,
	},
	{
		Name: "host_owner", Values: "<host> <namespace>...", Parse: setHostOwner,
		Doc: "The namespaces that may have a host at all: names, and beginnings of names with a `*` behind them. " +
			"The host is a name, a wildcard such as `*.shop.example`, which stands for all names below " +
			"`shop.example` and for their wildcards, or `*` for every other host; what says the most counts. " +
			"Ingresses of other namespaces are not served there. May be given more than once.",
		Example: "host_owner *.shop.example shop team-*", Default: "every namespace may have every host",
	},
	{
		Name: "acme_solver_namespaces", Values: "<namespace>...",
		Parse: many(func(d *draft) *[]string { return &d.config.ACMESolverNamespaces }, namespacePattern),
		Doc: "The namespaces whose Ingresses may answer the HTTP-01 challenges of certificate authorities, below " +
			"`/.well-known/acme-challenge`, on hosts that `host_ownership` or `host_owner` keeps from them. On a " +
			"host that asks its clients for certificates they may not.",
		Example: "acme_solver_namespaces cert-manager", Default: "none",
	},
	{
		Name: "chain", Values: "<name> { <directives...> }", Parse: setChain,
		Doc: "Directives that a request meets before the backend, if its Ingress asks for the name in the annotation " +
			"`k8singress.io/chains`: any that a `route` block takes, of any plugin, in the order in which they are " +
			"written. [Chains](chains.md) has a whole example. May be given more than once, with different names.",
		Example: "chain staff {\n\t@outside not client_ip private_ranges\n\trespond @outside 403\n}", Default: "none",
	},
	{
		Name: "election_id", Values: "<name>",
		Parse:   one(func(d *draft) *string { return &d.config.ElectionID }, subdomain),
		Doc:     "The Lease whose holder writes status and Events. Every replica serves, with or without it.",
		Example: "election_id edge-leader", Default: settings.DefaultElectionID,
	},
	{
		Name: "election_fallback", Values: "<name>",
		Parse: one(func(d *draft) *string { return &d.config.ElectionFallback }, subdomain),
		Doc: "The Lease that is used in place of that of `election_id`, where the rights forbid that one and allow " +
			"this one: those of ingress-nginx name its own Lease.",
		Example: "election_fallback ingress-nginx-leader", Default: "none",
	},
	{
		Name: "election_namespace", Values: "<name>",
		Parse:   one(func(d *draft) *string { return &d.config.ElectionNamespace }, label),
		Doc:     "The namespace of that Lease.",
		Example: "election_namespace ingress-nginx", Default: "the namespace that Caddy runs in",
	},
	{
		Name: "election_ttl", Values: "<duration>",
		Parse: duration(func(d *draft) *settings.Duration { return &d.config.ElectionTTL }, settings.LeastElectionTTL),
		Doc: "How long that Lease is good when its holder does not renew it: after a holder that ended without a " +
			"word, the next replica writes after this time.",
		Example: "election_ttl 30s", Default: "15s",
	},
	{
		Name: "election", Values: "off",
		Parse: one(func(d *draft) *string { return &d.config.Election }, words("", settings.ElectionOff)),
		Doc: "With `off`, there is no Lease: every replica writes status and Events, and asks issuers for " +
			"certificates. It is for a controller with one replica that may use no Lease.",
		Example: "election off", Default: "the holder of the Lease writes",
	},
}
