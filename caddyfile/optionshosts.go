package caddyfile

import (
	"strconv"

	"github.com/k8singress/k8singress/internal/model/ir"
	"github.com/k8singress/k8singress/internal/model/option"
	"github.com/k8singress/k8singress/internal/model/settings"
)

// hostOptions configure the status, certificates and hosts of Ingresses, and the leader election.
var hostOptions = option.Table[draft, *line]{
	{
		Name: "publish_service", Values: "<namespace/name>",
		Parse:   value(func(d *draft) *ir.Name { return &d.config.PublishService }, namespacedName),
		Doc:     "The Service whose addresses are written to the status of Ingresses.",
		Example: "publish_service ingress-nginx/ingress-nginx-controller", Default: "none",
	},
	{
		Name: "publish_ports", Parse: enable(func(d *draft) *bool { return &d.config.PublishPorts }),
		Doc: "Keeps the ports of the Service in `publish_service` in sync with the open TCP and UDP ports. Other " +
			"ports of the Service are not changed. The option requires permission to patch the Service. For details, " +
			"see [In a cluster](kubernetes.md#ports-of-the-service).",
		Example: "publish_ports", Default: "the Service is not changed",
	},
	{
		Name: "publish_address", Values: "<ip or host>...",
		Parse:   many(func(d *draft) *[]string { return &d.config.PublishAddress }, publicAddress),
		Doc:     "The addresses that are written to the status of Ingresses, instead of the addresses of a Service.",
		Example: "publish_address 203.0.113.7", Default: "none",
	},
	{
		Name: "publish_nodes", Values: "internal | external",
		Parse: one(func(d *draft) *string { return &d.config.PublishNodes },
			words("", settings.PublishNodesInternal, settings.PublishNodesExternal)),
		Doc: "Writes the addresses of the nodes on which ready pods of the controller run to the status of " +
			"Ingresses. Use it for pods that use ports of their nodes, for example with `hostNetwork`. `internal` " +
			"selects the internal address of each node; `external` selects the external address, or the internal one " +
			"if there is no external address. The controller's pods are found by their labels. The option requires " +
			"permission to list and watch nodes, and the pods in the controller's namespace. If `publish_service` is " +
			"also set, it only identifies the controller's own Service, and the addresses of the Service are not " +
			"written.",
		Example: "publish_nodes internal", Default: "none",
	},
	{
		Name: "status", Values: "off",
		Parse: one(func(d *draft) *string { return &d.config.Status }, words("", settings.StatusOff)),
		Doc: "With `off`, no addresses are written to the status of Ingresses, even if `publish_service` or " +
			"`publish_address` is set. `publish_service` still identifies the controller's own Service.",
		Example: "status off", Default: "addresses are written if one of the options `publish_*` configures them",
	},
	{
		Name: "ssl_passthrough", Parse: enable(func(d *draft) *bool { return &d.config.SSLPassthrough }),
		Doc: "Enables the annotation `ssl-passthrough`, with which an Ingress forwards the TLS connections of its " +
			"hosts to a backend that terminates TLS itself. It corresponds to the flag `--enable-ssl-passthrough` of " +
			"ingress-nginx. When an Ingress gets the annotation, no reload is necessary. For details, see " +
			"[TLS](tls.md#passthrough).",
		Example: "ssl_passthrough", Default: "the annotation has no effect, and the controller terminates TLS",
	},
	{
		Name: "default_backend", Values: "<namespace/name[:port]>",
		Parse: value(func(d *draft) *ir.ServicePort { return &d.config.DefaultBackend }, servicePort),
		Doc: "The Service for requests that do not match a host and path of an Ingress. The option corresponds to " +
			"the flag `--default-backend-service` of ingress-nginx. The Service also provides the error pages of " +
			"[custom-http-errors](annotations.md#custom-http-errors) if an Ingress has no `default-backend`. " +
			"Requests are sent to it by HTTP, to the port in the option or, without a port, to its first port. If " +
			"the Service has no endpoints or does not respond, clients get the original error. Annotations of " +
			"Ingresses do not apply to its responses.",
		Example: "default_backend ingress-nginx/default-backend", Default: "none: requests that do not match an " +
			"Ingress get 404",
	},
	{
		Name: "default_certificate", Values: "<namespace/name>",
		Parse:   value(func(d *draft) *ir.Name { return &d.config.DefaultCertificate }, namespacedName),
		Doc:     "The Secret with the certificate for server names for which there is no other certificate.",
		Example: "default_certificate ingress-nginx/default-tls", Default: "a self-signed certificate",
	},
	{
		Name: "auto_https", Values: "off | all",
		Parse: one(func(d *draft) *string { return &d.config.AutoHTTPS },
			words("; without the option, hosts of a tls entry without "+
				"secretName get a certificate", settings.AutoHTTPSOff, settings.AutoHTTPSAll)),
		Doc: "Selects the hosts of Ingresses for which the controller gets certificates from an issuer. `off` " +
			"selects no hosts, even if an Ingress requests a certificate. `all` selects all hosts without a Secret. " +
			"[HTTPS](https.md) describes how an Ingress or a class can override this.",
		Example: "auto_https all", Default: "the hosts of an entry of `spec.tls` without `secretName`",
	},
	{
		Name: "auto_https_except", Values: "<namespace>...",
		Parse: many(func(d *draft) *[]string { return &d.config.AutoHTTPSExcept }, label),
		Doc: "The namespaces whose Ingresses get no certificates from an issuer, even if the Ingresses request " +
			"them.",
		Example: "auto_https_except preview sandbox", Default: "none",
	},
	{
		Name: "acme_on_missing_secret", Parse: enable(func(d *draft) *bool { return &d.config.ACMEOnMissingSecret }),
		Doc: "If the Secret of an entry in `spec.tls` does not exist, requests certificates for the hosts of this " +
			"entry from an issuer. As soon as the Secret exists, its certificate is used instead.",
		Example: "acme_on_missing_secret", Default: "hosts whose Secret does not exist get the default certificate",
	},
	{
		Name: "email", Values: "<address>",
		Parse: one(func(d *draft) *string { return &d.config.Email }, emailAddress),
		Doc: "The contact address that the certificate authority for Ingress hosts gets. For sites of your own, use " +
			"Caddy's global option `email`.",
		Example: "email ops@example.com", Default: "none",
	},
	{
		Name: "acme_ca", Values: "<url>",
		Parse: one(func(d *draft) *string { return &d.config.ACMECA }, directoryURL),
		Doc: "The URL of the ACME directory of the certificate authority for Ingress hosts. A private certificate " +
			"authority may issue certificates for any name, such as `web.local`. If this machine does not trust the " +
			"TLS certificate of the directory, use `issuer acme` with `dir` and `trusted_roots` instead. For sites " +
			"of your own, use Caddy's global option `acme_ca`.",
		Example: "acme_ca https://localhost:14000/dir", Default: "Caddy's default certificate authorities",
	},
	{
		Name: "issuer", Values: "<module> [<arguments...>] [{ <options...> }]", Parse: setIssuer,
		Doc: "The issuer of certificates for Ingress hosts, as in Caddy's directive `tls` and its global option " +
			"`cert_issuer`: `acme`, `zerossl`, `internal`, or an issuer of a plugin. The option may be repeated: if " +
			"one issuer fails, the next one is tried. The block of `acme` configures the DNS challenge, external " +
			"accounts, profiles and preferred chains. With `internal`, Caddy itself is the certificate authority. " +
			"Clients do not trust its root certificate until you install it, and it is not added to the trust store " +
			"of this machine.",
		Example: "issuer acme {\n\temail ops@example.com\n\tprofile shortlived\n}",
		Default: "ACME, with `email` and `acme_ca`",
	},
	{
		Name: "key_type", Values: "<type>", Parse: one(func(d *draft) *string { return &d.config.KeyType },
			words("", "p256", "p384", "rsa2048", "rsa4096", "ed25519")),
		Doc:     "The key type of certificates from issuers: `p256`, `p384`, `rsa2048`, `rsa4096` or `ed25519`.",
		Example: "key_type p384", Default: "p256",
	},
	{
		Name: "hosts_per_namespace", Values: "<number>",
		Parse: number(func(d *draft) *int { return &d.config.HostsPerNamespace }),
		Doc: "The maximum number of hosts of one namespace for which the controller gets certificates from an " +
			"issuer. If a namespace has more hosts, wildcards take precedence over other hosts, and older hosts over " +
			"newer ones. The limit prevents one team from using up the rate limit of the certificate authority for " +
			"all teams.",
		Example: "hosts_per_namespace 20", Default: strconv.Itoa(settings.DefaultHostsPerNamespace),
	},
	{
		Name: "new_hosts_per_day", Values: "<number>",
		Parse: number(func(d *draft) *int { return &d.config.NewHostsPerDay }),
		Doc: "The maximum number of new names of one namespace for which certificates are requested within 24 hours. " +
			"A name counts even if the request fails or the host is deleted again. Renewals and retries for the same " +
			"name do not count. Certificate authorities limit the orders of an account, so a namespace that keeps " +
			"replacing its hosts would use up this limit for all namespaces. Caddy's storage keeps the count.",
		Example: "new_hosts_per_day 50", Default: "four times `hosts_per_namespace`",
	},
	{
		Name: "check_host_dns", Parse: enable(func(d *draft) *bool { return &d.config.CheckHostDNS }),
		Doc: "Requests certificates only for names that resolve to this controller: the DNS servers in `resolvers`, " +
			"or of the system, must return an address of `publish_address` or `publish_service`. Do not use it if " +
			"names resolve to different addresses inside the cluster and on the internet (split-horizon DNS), or if " +
			"the DNS records point to a proxy in front of the controller. Wildcard names are not checked.",
		Example: "check_host_dns", Default: "off",
	},
	{
		Name: "host_ownership", Values: "shared | namespace",
		Parse: one(func(d *draft) *string { return &d.config.HostOwnership },
			words("", settings.HostOwnershipShared, settings.HostOwnershipNamespace)),
		Doc: "How Ingresses of several namespaces share a host. The owner of a host is the namespace of its oldest " +
			"Ingress. With `shared`, the paths of all namespaces are served, and only the owner can configure the " +
			"whole host. With `namespace`, only the owner's Ingresses are served on the host, and on all hosts that " +
			"a wildcard of the owner matches. For details, see [Tenants](tenants.md).",
		Example: "host_ownership namespace", Default: settings.HostOwnershipShared,
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
		Parse: many(func(d *draft) *[]string { return &d.config.ACMESolverNamespaces }, namespacePattern),
		Doc: "The namespaces whose Ingresses may serve HTTP-01 challenges of certificate authorities, below " +
			"`/.well-known/acme-challenge`, even on hosts on which `host_ownership` or `host_owner` excludes these " +
			"namespaces. This does not apply to hosts that require client certificates.",
		Example: "acme_solver_namespaces cert-manager", Default: "none",
	},
	{
		Name: "chain", Values: "<name> { <directives...> }", Parse: setChain,
		Doc: "Caddy directives that run before a request is sent to the backend, for Ingresses that list this chain " +
			"in the annotation `k8singress.io/chains`. Every directive that a `route` block accepts is allowed, " +
			"including directives of plugins. They run in the order in which they are written. [Chains](chains.md) " +
			"has a complete example. The option may be repeated with different names.",
		Example: "chain staff {\n\t@outside not client_ip private_ranges\n\trespond @outside 403\n}", Default: "none",
	},
	{
		Name: "election_id", Values: "<name>",
		Parse: one(func(d *draft) *string { return &d.config.ElectionID }, subdomain),
		Doc: "The name of the Lease for leader election. Only the replica that holds the Lease writes status and " +
			"Events. All replicas serve requests.",
		Example: "election_id edge-leader", Default: settings.DefaultElectionID,
	},
	{
		Name: "election_fallback", Values: "<name>",
		Parse: one(func(d *draft) *string { return &d.config.ElectionFallback }, subdomain),
		Doc: "The name of the Lease that is used if RBAC does not allow access to the Lease in `election_id`, and " +
			"allows access to this Lease. The RBAC rules of ingress-nginx allow access to its own Lease only.",
		Example: "election_fallback ingress-nginx-leader", Default: "none",
	},
	{
		Name: "election_namespace", Values: "<name>",
		Parse:   one(func(d *draft) *string { return &d.config.ElectionNamespace }, label),
		Doc:     "The namespace of the Lease.",
		Example: "election_namespace ingress-nginx", Default: "the namespace that Caddy runs in",
	},
	{
		Name: "election_ttl", Values: "<duration>",
		Parse: duration(func(d *draft) *settings.Duration { return &d.config.ElectionTTL }, settings.MinElectionTTL),
		Doc: "How long the Lease stays valid if its holder does not renew it. If the holder crashes, another replica " +
			"starts to write status and Events after this time.",
		Example: "election_ttl 30s", Default: "15s",
	},
	{
		Name: "election", Values: "off",
		Parse: one(func(d *draft) *string { return &d.config.Election }, words("", settings.ElectionOff)),
		Doc: "With `off`, no Lease is used: every replica writes status and Events, and requests certificates. Use " +
			"it for a controller with one replica and without permission to use Leases.",
		Example: "election off", Default: "only the holder of the Lease writes",
	},
}
