package caddyfile

import (
	"strconv"

	"github.com/caddyserver/caddy/v2/caddyconfig/caddyfile"

	"github.com/k8singress/k8singress/internal/settings"
)

// option is one line inside the global option: how it is read, and what the documentation says of it.
type option struct {
	name string
	// args is what the documentation shows behind the name.
	args string
	// least and most are how many arguments there may be.
	least, most int
	set         func(*draft, []string) error
	// setBlock stands in place of set for an option with a block, which may be given more than once. It gets all tokens of
	// the option, too.
	setBlock func(*draft, []string, caddyfile.Segment) error
	// bare says that the block may be missing.
	bare bool

	doc     string
	example string
	// fallback is what counts without the option.
	fallback string
}

const anyNumber = 1 << 30

// options are in the order of the documentation.
var options = []option{
	{
		name: "kubeconfig", args: "<file>", least: 1, most: 1, set: one(func(d *draft) *string { return &d.kubeconfig }, nil),
		doc:      "A kubeconfig file that says how to reach the API server.",
		example:  "kubeconfig /etc/kubernetes/admin.conf",
		fallback: "the service account of the pod that Caddy runs in",
	},
	{
		name: "manifests", args: "<folder>", least: 1, most: 1, set: one(func(d *draft) *string { return &d.manifests }, nil),
		doc: "Takes a folder of Kubernetes YAML for the cluster, and follows changes of its files. There is no API server then. " +
			"A relative path counts from the directory that Caddy was started in. Of Ingresses without a `creationTimestamp`, the last by " +
			"namespace and name counts as the oldest, as in ingress-nginx.",
		example:  "manifests ./manifests",
		fallback: "none",
	},
	{
		name: "source", args: "none", least: 1, most: 1, set: setSource,
		doc: "Follows nothing. The process serves the document that `PUT /k8singress/config` brings, as `GET /k8singress/config` " +
			"of another process gave it.",
		example:  "source none",
		fallback: "a cluster, or the folder of `manifests`",
	},
	{
		name: "ingress_class", args: "<name>", least: 1, most: 1,
		set: one(func(d *draft) *string { return &d.config.IngressClass }, subdomain),
		doc: "The value of the older annotation `kubernetes.io/ingress.class` that is ours. `spec.ingressClassName` names an " +
			"IngressClass instead, and each one with our `controller_name` is served, whatever its own name. Only with `manifests`, " +
			"an Ingress may name this class there without such an object.",
		example:  "ingress_class edge",
		fallback: settings.DefaultIngressClass,
	},
	{
		name: "controller_name", args: "<domain/path>", least: 1, most: 1,
		set: one(func(d *draft) *string { return &d.config.ControllerName }, controllerName),
		doc: "The `spec.controller` of the IngressClasses that are ours. The default is that of ingress-nginx, because the field " +
			"of an IngressClass cannot be changed later.",
		example:  "controller_name example.com/edge",
		fallback: settings.DefaultControllerName,
	},
	{
		name: "watch_ingress_without_class", set: func(d *draft, _ []string) error {
			d.config.WatchIngressWithoutClass = true
			return nil
		},
		doc:      "Serves Ingresses that name no class, too.",
		example:  "watch_ingress_without_class",
		fallback: "they are left to the default class of the cluster",
	},
	{
		name: "namespaces", args: "<name>...", least: 1, most: anyNumber,
		set:      many(func(d *draft) *[]string { return &d.namespaces }, label),
		doc:      "Follows the objects of these namespaces only.",
		example:  "namespaces shop web",
		fallback: "all",
	},
	{
		name: "namespace_selector", args: "<selector>", least: 1, most: 1,
		set: one(func(d *draft) *string { return &d.selector }, selector),
		doc: "Serves Ingresses of those namespaces only whose labels match, such as `team=shop` or `\"team in (shop, web)\"`. It " +
			"needs the right to list and watch namespaces.",
		example:  "namespace_selector team=shop",
		fallback: "all",
	},
	{
		name: "secrets", args: "all | referenced", least: 1, most: 1,
		set: one(func(d *draft) *string { return &d.secrets }, secretsMode),
		doc: "Which Secrets are read: `all` of the namespaces, or only those that Ingresses and options refer to, each by a watch " +
			"for its name. The right to read no others is enough then. A Secret that may not be read is said in the verdict on its Ingress.",
		example:  "secrets referenced",
		fallback: "all",
	},
	{
		name: "disable_catch_all", set: func(d *draft, _ []string) error {
			d.config.DisableCatchAll = true
			return nil
		},
		doc:      "Refuses rules without a host, and Ingresses that are only a default backend: what would answer for every host.",
		example:  "disable_catch_all",
		fallback: "they answer for the hosts that no other Ingress has",
	},
	{
		name: "http", args: "<address>... | off", least: 1, most: anyNumber,
		set: addresses(func(d *draft) *[]string { return &d.config.HTTP }),
		doc: "Where HTTP is answered. With `off` it is not, and a site of your own may listen there and hand its requests over " +
			"with the directive.",
		example:  "http 127.0.0.1:8080",
		fallback: settings.DefaultHTTP,
	},
	{
		name: "https", args: "<address>... | off", least: 1, most: anyNumber,
		set:      addresses(func(d *draft) *[]string { return &d.config.HTTPS }),
		doc:      "Where HTTPS is answered, HTTP/2 and HTTP/3 included. `off` as for `http`.",
		example:  "https 127.0.0.1:8443",
		fallback: settings.DefaultHTTPS,
	},
	{
		name: "health", args: "<address>", least: 1, most: 1,
		set: one(func(d *draft) *string { return &d.config.Health }, probeAddress),
		doc: "Where probes are answered: `/healthz` with 200 while the process works, and `/readyz` with 200 once all there is has " +
			"been applied, and with 503 before, and from the moment the process has been told to end.",
		example:  "health :10254",
		fallback: "none",
	},
	{
		name: "shutdown_delay", args: "<duration>", least: 1, most: 1,
		set: duration(func(d *draft) *settings.Duration { return &d.config.ShutdownDelay }, 0),
		doc: "How long new requests are still taken once the process has been told to end, so that load balancers can find out " +
			"from `/readyz`. Each answer asks its client to leave: by `Connection: close`, or a GOAWAY in HTTP/2. It is Caddy's " +
			"global option `shutdown_delay`, and holds for sites of your own, too.",
		example:  "shutdown_delay 15s",
		fallback: "0s, or Caddy's own option",
	},
	{
		name: "shutdown_timeout", args: "<duration>", least: 1, most: 1,
		set: duration(func(d *draft) *settings.Duration { return &d.config.ShutdownTimeout }, 1),
		doc: "How long the requests under way may take after that, WebSockets and other streams included. The process ends as soon " +
			"as they have. It is Caddy's global option `grace_period`, and holds for sites of your own, too. In a pod, " +
			"`terminationGracePeriodSeconds` has to be more than this and `shutdown_delay` together.",
		example:  "shutdown_timeout 30s",
		fallback: "240s, as ingress-nginx, or Caddy's own option",
	},
	{
		name: "configmap", args: "<namespace/name>", least: 1, most: 1,
		set: one(func(d *draft) *string { return &d.config.ConfigMap }, namespacedName),
		doc: "The ConfigMap with the global options of ingress-nginx, which is followed: [ConfigMap](configmap.md) has its keys. An " +
			"IngressClass whose `spec.parameters` have the scope Cluster names a ConfigMap of the same namespace.",
		example:  "configmap ingress-nginx/ingress-nginx-controller",
		fallback: "none",
	},
	{
		name: "tcp_services", args: "<namespace/name>", least: 1, most: 1,
		set:      one(func(d *draft) *string { return &d.config.TCPServices }, namespacedName),
		doc:      "The ConfigMap with the TCP ports to open, in the format of ingress-nginx.",
		example:  "tcp_services ingress-nginx/tcp-services",
		fallback: "none",
	},
	{
		name: "udp_services", args: "<namespace/name>", least: 1, most: 1,
		set:      one(func(d *draft) *string { return &d.config.UDPServices }, namespacedName),
		doc:      "The ConfigMap with the UDP ports to open, in the format of ingress-nginx.",
		example:  "udp_services ingress-nginx/udp-services",
		fallback: "none",
	},
	{
		name: "stream_bind", args: "<ip>...", least: 1, most: anyNumber,
		set: many(func(d *draft) *[]string { return &d.config.StreamBind }, ipAddress),
		doc: "The IP addresses that those TCP and UDP ports are opened on. With `127.0.0.1` alone nobody outside of the pod, or of the machine, " +
			"reaches them, and no Service does.",
		example:  "stream_bind 127.0.0.1",
		fallback: "all",
	},
	{
		name: "service_tcp_ports", args: "<port or range>...", least: 1, most: anyNumber,
		set: many(func(d *draft) *[]string { return &d.config.ServiceTCPPorts }, portRange),
		doc: "The TCP ports that a Service may open by its annotation `k8singress.io/tcp-ports`: [TCP and UDP](tcp-udp.md) says how. The " +
			"ports of `http`, `https`, `health` and of the admin API are not among them, whatever stands here, and a port of the ConfigMap of " +
			"`tcp_services` stays its own.",
		example:  "service_tcp_ports 5000-5999 6379",
		fallback: "none",
	},
	{
		name: "service_udp_ports", args: "<port or range>...", least: 1, most: anyNumber,
		set:      many(func(d *draft) *[]string { return &d.config.ServiceUDPPorts }, portRange),
		doc:      "The UDP ports that a Service may open by its annotation `k8singress.io/udp-ports`. As for TCP.",
		example:  "service_udp_ports 5300-5399",
		fallback: "none",
	},
	{
		name: "service_port_namespaces", args: "<namespace>...", least: 1, most: anyNumber,
		set: many(func(d *draft) *[]string { return &d.config.ServicePortNamespaces }, namespacePattern),
		doc: "The namespaces whose Services may open those ports: names, and beginnings of names with a `*` behind them. It goes with " +
			"`service_tcp_ports` or `service_udp_ports`.",
		example:  "service_port_namespaces shop team-*",
		fallback: "all",
	},
	{
		name: "external_names", args: "off | all", least: 1, most: 1,
		set: one(func(d *draft) *string { return &d.config.ExternalNames }, externalNames),
		doc: "Where the names of Services of type `ExternalName` may lead. Without the option, they lead neither to loopback, " +
			"link-local or multicast addresses, nor to those of this machine, of the API server and of the metadata of clouds. With " +
			"`all`, they may lead anywhere: for a Caddy that runs beside its services. With `off`, such Services are refused.",
		example:  "external_names off",
		fallback: "to other machines",
	},
	{
		name: "resolvers", args: "<ip or ip:port>...", least: 1, most: anyNumber,
		set:      many(func(d *draft) *[]string { return &d.config.Resolvers }, dnsServer),
		doc:      "The DNS servers that are asked for those names. The domains to search are still those of `/etc/resolv.conf`.",
		example:  "resolvers 10.96.0.10 192.0.2.53:5353",
		fallback: "those of `/etc/resolv.conf`",
	},
	{
		name: "zone", args: "<name>", least: 1, most: 1, set: one(func(d *draft) *string { return &d.config.Zone }, zone),
		doc: "The topology zone that Caddy runs in. Requests stay in it where the EndpointSlices of a Service have hints for zones, " +
			"as `trafficDistribution` of the Service asks for. `{env.ZONE}` is the environment variable ZONE, which the downward API " +
			"sets in a pod that has its zone in the label `topology.kubernetes.io/zone`. An empty variable is no zone.",
		example:  "zone {env.ZONE}",
		fallback: "none: hints are not followed",
	},
	{
		name: "publish_service", args: "<namespace/name>", least: 1, most: 1,
		set:      one(func(d *draft) *string { return &d.config.PublishService }, namespacedName),
		doc:      "The Service whose address is written to the status of the Ingresses.",
		example:  "publish_service ingress-nginx/ingress-nginx-controller",
		fallback: "none",
	},
	{
		name: "publish_ports", set: func(d *draft, _ []string) error {
			d.config.PublishPorts = true
			return nil
		},
		doc: "Keeps the ports of the Service of `publish_service` in line with the TCP and UDP ports that are open, and leaves its other " +
			"ports alone. It needs the rights of `deploy/publish-ports.yaml`; [In a cluster](kubernetes.md#ports-of-the-service) says more.",
		example:  "publish_ports",
		fallback: "the Service is left alone",
	},
	{
		name: "publish_address", args: "<ip or host>...", least: 1, most: anyNumber,
		set:      many(func(d *draft) *[]string { return &d.config.PublishAddress }, publicAddress),
		doc:      "The addresses that are written to the status of the Ingresses, in place of those of a Service.",
		example:  "publish_address 203.0.113.7",
		fallback: "none",
	},
	{
		name: "ssl_passthrough", set: func(d *draft, _ []string) error {
			d.config.SSLPassthrough = true
			return nil
		},
		doc: "Lets Ingresses hand the TLS connections of their hosts to a backend, which ends TLS itself: the annotation `ssl-passthrough`, " +
			"and the flag `--enable-ssl-passthrough` of ingress-nginx. Nothing is reloaded when the first host asks for it. " +
			"[TLS](tls.md#passthrough) has the details.",
		example:  "ssl_passthrough",
		fallback: "the annotation has no effect, and TLS ends here",
	},
	{
		name: "default_certificate", args: "<namespace/name>", least: 1, most: 1,
		set:      one(func(d *draft) *string { return &d.config.DefaultCertificate }, namespacedName),
		doc:      "The Secret with the certificate for names that no other certificate is for.",
		example:  "default_certificate ingress-nginx/default-tls",
		fallback: "a self-signed certificate",
	},
	{
		name: "auto_https", args: "off | all", least: 1, most: 1,
		set: one(func(d *draft) *string { return &d.config.AutoHTTPS }, autoHTTPS),
		doc: "Which hosts of Ingresses get a certificate from an issuer: none with `off`, whatever an Ingress says; with `all` every host " +
			"that no Secret is for. [HTTPS](https.md) says more, and how an Ingress or a class says otherwise.",
		example:  "auto_https all",
		fallback: "those of an entry of `spec.tls` without `secretName`",
	},
	{
		name: "auto_https_except", args: "<namespace>...", least: 1, most: anyNumber,
		set:      many(func(d *draft) *[]string { return &d.config.AutoHTTPSExcept }, label),
		doc:      "The namespaces whose Ingresses get no certificate from an issuer, whatever they say.",
		example:  "auto_https_except preview sandbox",
		fallback: "none",
	},
	{
		name: "acme_on_missing_secret", set: func(d *draft, _ []string) error {
			d.config.ACMEOnMissingSecret = true
			return nil
		},
		doc: "Asks an issuer for the hosts of an entry of `spec.tls` whose Secret does not exist, too. The Secret is shown as soon as " +
			"there is one.",
		example:  "acme_on_missing_secret",
		fallback: "the default certificate is shown for them",
	},
	{
		name: "email", args: "<address>", least: 1, most: 1,
		set: one(func(d *draft) *string { return &d.config.Email }, emailAddress),
		doc: "Where the certificate authority may write to about the certificates of Ingress hosts. Sites of your own have Caddy's global " +
			"option `email`.",
		example:  "email ops@example.com",
		fallback: "none",
	},
	{
		name: "acme_ca", args: "<url>", least: 1, most: 1,
		set: one(func(d *draft) *string { return &d.config.ACMECA }, directoryURL),
		doc: "The directory of the ACME certificate authority for the certificates of Ingress hosts. One that is none of the public ones " +
			"may issue for any name, such as `web.local`; if this machine does not trust the certificate that it shows, write `issuer acme` " +
			"with `dir` and `trusted_roots` instead. Sites of your own have Caddy's global option `acme_ca`.",
		example:  "acme_ca https://localhost:14000/dir",
		fallback: "those of Caddy",
	},
	{
		name: "issuer", args: "<module> [<arguments...>] [{ <options...> }]", least: 1, most: anyNumber, setBlock: setIssuer, bare: true,
		doc: "Who issues the certificates of Ingress hosts, as in Caddy's directive `tls` and its global option `cert_issuer`: `acme`, " +
			"`zerossl`, `internal`, or one of a plugin. May be given more than once: the next one is asked where one fails. `acme` has the DNS " +
			"challenge, external accounts, profiles and preferred chains in its block. With `internal` Caddy is an authority of its own, whose " +
			"root no client knows; it is not put into the trust store of this machine.",
		example:  "issuer acme {\n\temail ops@example.com\n\tprofile shortlived\n}",
		fallback: "ACME, as `email` and `acme_ca` say",
	},
	{
		name: "key_type", args: "<type>", least: 1, most: 1, set: one(func(d *draft) *string { return &d.config.KeyType }, keyType),
		doc:      "The type of the keys of the certificates from issuers: `p256`, `p384`, `rsa2048`, `rsa4096` or `ed25519`.",
		example:  "key_type p384",
		fallback: "p256",
	},
	{
		name: "hosts_per_namespace", args: "<number>", least: 1, most: 1,
		set: number(func(d *draft) *int { return &d.config.HostsPerNamespace }),
		doc: "For how many hosts of one namespace an issuer is asked: the oldest ones, and wildcards before others. It keeps one team from " +
			"using up what an authority issues for all.",
		example:  "hosts_per_namespace 20",
		fallback: strconv.Itoa(settings.DefaultHostsPerNamespace),
	},
	{
		name: "chain", args: "<name> { <directives...> }", least: 1, most: 1, setBlock: setChain,
		doc: "Directives that a request meets before the backend, if its Ingress asks for the name in the annotation " +
			"`k8singress.io/chains`: any that a `route` block takes, of any plugin, in the order in which they are written. " +
			"[Chains](chains.md) has a whole example. May be given more than once, with different names.",
		example:  "chain staff {\n\t@outside not client_ip private_ranges\n\trespond @outside 403\n}",
		fallback: "none",
	},
	{
		name: "election_id", args: "<name>", least: 1, most: 1,
		set:      one(func(d *draft) *string { return &d.config.ElectionID }, subdomain),
		doc:      "The Lease whose holder writes status and Events. Every replica serves, whoever holds it.",
		example:  "election_id edge-leader",
		fallback: settings.DefaultElectionID,
	},
	{
		name: "election_namespace", args: "<name>", least: 1, most: 1,
		set:      one(func(d *draft) *string { return &d.config.ElectionNamespace }, label),
		doc:      "The namespace of that Lease.",
		example:  "election_namespace ingress-nginx",
		fallback: "the namespace that Caddy runs in",
	},
}

func optionNamed(name string) *option {
	for i := range options {
		if options[i].name == name {
			return &options[i]
		}
	}
	return nil
}
