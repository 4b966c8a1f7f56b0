package caddyfile

import (
	"strconv"
	"time"

	"github.com/caddyserver/caddy/v2/caddyconfig/caddyfile"

	"github.com/k8singress/k8singress/internal/model/ir"
	"github.com/k8singress/k8singress/internal/model/option"
	"github.com/k8singress/k8singress/internal/model/settings"
)

// line is one option in the Caddyfile.
type line struct {
	args []string
	// tokens are all tokens of the option, including its name and its block.
	tokens caddyfile.Segment
}

// options is sorted as in the documentation. The Values of a row are its grammar: the number of arguments, and whether
// it has a block.
var options = option.Table[draft, *line]{
	{
		Name: "kubeconfig", Values: "<file>", Parse: one(func(d *draft) *string { return &d.kubeconfig }, anything),
		Doc:     "A kubeconfig file that says how to reach the API server.",
		Example: "kubeconfig /etc/kubernetes/admin.conf", Default: "the service account of the pod that Caddy runs in",
	},
	{
		Name: "manifests", Values: "<folder>", Parse: one(func(d *draft) *string { return &d.manifests }, anything),
		Doc: "Reads a folder of Kubernetes YAML in place of a cluster, and follows changes of its files. There is " +
			"no API server then. A relative path counts from the directory that Caddy was started in. Of Ingresses " +
			"without a `creationTimestamp`, the last by namespace and name counts as the oldest, as in ingress-nginx.",
		Example: "manifests ./manifests", Default: "none",
	},
	{
		Name: "source", Values: "none", Parse: setSource,
		Doc: "Follows nothing. The process serves the document that `PUT /k8singress/config` brings, as `GET " +
			"/k8singress/config` of another process gave it.",
		Example: "source none", Default: "a cluster, or the folder of `manifests`",
	},
	{
		Name: "ingress_class", Values: "<name>",
		Parse: one(func(d *draft) *string { return &d.config.IngressClass }, subdomain),
		Doc: "The value of the older annotation `kubernetes.io/ingress.class` that is ours. `spec.ingressClassName` " +
			"names an IngressClass instead, and each one with our `controller_name` is served, whatever its own " +
			"name. Only with `manifests`, an Ingress may name this class there without such an object.",
		Example: "ingress_class edge", Default: settings.DefaultIngressClass,
	},
	{
		Name: "ingress_class_by_name", Parse: enable(func(d *draft) *bool { return &d.config.IngressClassByName }),
		Doc: "Serves Ingresses whose `spec.ingressClassName` is that of `ingress_class`, too, whether there is an " +
			"IngressClass of this name or not, and whatever its `spec.controller` is. With `namespaces`, where " +
			"IngressClasses may not be read, this holds without the option.",
		Example: "ingress_class_by_name", Default: "an IngressClass counts by its `spec.controller`",
	},
	{
		Name: "controller_name", Values: "<domain/path>",
		Parse: one(func(d *draft) *string { return &d.config.ControllerName }, controllerName),
		Doc: "The `spec.controller` of the IngressClasses that are ours. The default is that of ingress-nginx, " +
			"because the field of an IngressClass cannot be changed later.",
		Example: "controller_name example.com/edge", Default: settings.DefaultControllerName,
	},
	{
		Name:    "watch_ingress_without_class",
		Parse:   enable(func(d *draft) *bool { return &d.config.WatchIngressWithoutClass }),
		Doc:     "Serves Ingresses that name no class, too.",
		Example: "watch_ingress_without_class", Default: "they are left to the default class of the cluster",
	},
	{
		Name: "namespaces", Values: "<name>...",
		Parse:   many(func(d *draft) *[]string { return &d.namespaces }, label),
		Doc:     "Follows the objects of these namespaces only.",
		Example: "namespaces shop web", Default: "all",
	},
	{
		Name: "namespace_selector", Values: "<selector>",
		Parse: one(func(d *draft) *string { return &d.selector }, selector),
		Doc: "Serves Ingresses of those namespaces only whose labels match, such as `team=shop` or `\"team in " +
			"(shop, web)\"`. It needs the right to read namespaces, which [the chart](install.md) gives with " +
			"`controller.scope.namespaceSelector`.",
		Example: "namespace_selector team=shop", Default: "all",
	},
	{
		Name: "secrets", Values: "all | referenced",
		Parse: one(func(d *draft) *string { return &d.secrets },
			words("", settings.SecretsAll, settings.SecretsReferenced)),
		Doc: "Which Secrets are read: `all` of the namespaces, or only those that Ingresses and options refer to, " +
			"each by a watch for its name. The right to read no others is enough then. The verdict on an Ingress " +
			"says which Secret may not be read.",
		Example: "secrets referenced", Default: "all",
	},
	{
		Name: "disable_catch_all", Parse: enable(func(d *draft) *bool { return &d.config.DisableCatchAll }),
		Doc: "Refuses rules without a host, Ingresses that are only a default backend, and aliases (`server-alias`) " +
			"that are regular expressions or wildcards below a public suffix, such as `*.com`: each would answer " +
			"for hosts of any owner.",
		Example: "disable_catch_all", Default: "they answer for the hosts that no other Ingress has",
	},
	{
		Name: "snippets", Values: "ignore",
		Parse: one(func(d *draft) *string { return &d.config.Snippets }, words("", settings.SnippetsIgnore)),
		Doc: "With `ignore`, Ingresses whose snippets may refuse requests are served without these snippets, and " +
			"get a warning. Snippets of nginx configuration are not run: what they keep out, `ignore` lets in. The " +
			"same holds for the ConfigMap's snippets, and for ModSecurity.",
		Example: "snippets ignore",
		Default: "requests for such Ingresses get 503; [annotations](annotations.md#configuration-snippet) says " +
			"for which",
	},
	{
		Name: "http", Values: "<address>... | off",
		Parse: addresses(func(d *draft) *[]string { return &d.config.HTTP }),
		Doc: "Where HTTP is answered. With `off` it is not, and a site of your own may listen there and hand its " +
			"requests over with the directive.",
		Example: "http 127.0.0.1:8080", Default: settings.DefaultHTTP,
	},
	{
		Name: "https", Values: "<address>... | off",
		Parse:   addresses(func(d *draft) *[]string { return &d.config.HTTPS }),
		Doc:     "Where HTTPS is answered, HTTP/2 and HTTP/3 included. `off` as for `http`.",
		Example: "https 127.0.0.1:8443", Default: settings.DefaultHTTPS,
	},
	{
		Name: "http3", Values: "off",
		Parse: one(func(d *draft) *string { return &d.config.HTTP3 }, words("", settings.HTTP3Off)),
		Doc: "With `off`, HTTP/3 is left out: nothing listens on UDP at the addresses of `https`, and no answer has " +
			"an `Alt-Svc` header. Write it where no datagrams arrive, as behind a load balancer that takes TCP " +
			"only: browsers would try HTTP/3 in vain.",
		Example: "http3 off", Default: "HTTP/3 is on, with UDP on the ports of `https`",
	},
	{
		Name: "h2c", Parse: enable(func(d *draft) *bool { return &d.config.H2C }),
		Doc: "Lets clients begin with HTTP/2 at the addresses of `http`, without TLS and without having asked, as a " +
			"load balancer or a client of gRPC without TLS does.",
		Example: "h2c", Default: "such clients get 400",
	},
	{
		Name: "share_ports", Parse: enable(func(d *draft) *bool { return &d.config.SharePorts }),
		Doc: "Lets another process listen at the addresses of `http`, `https` and `health` at the same time, with " +
			"HTTP/3. The kernel gives each process a part of the connections. Write it in both processes where a " +
			"new one replaces an old one on the same machine without a gap. Clients of HTTP/3 may have to connect " +
			"again then. Ports of `tcp_services` and `udp_services` are not shared, and Unix sockets belong to the " +
			"process that has opened them last.",
		Example: "share_ports", Default: "a process does not start while another one listens there",
	},
	{
		Name: "health", Values: "<address>",
		Parse: one(func(d *draft) *string { return &d.config.Health }, probeAddress),
		Doc: "Where probes are answered: `/healthz` with 200 while the process works, and `/readyz` with 200 once " +
			"all there is has been applied, and with 503 before, and from the moment the process has been told to " +
			"end. A process does not start while another one listens there, without [`share_ports`](#share_ports).",
		Example: "health :10254", Default: "none",
	},
	{
		Name: "health_path", Values: "<path>",
		Parse:   one(func(d *draft) *string { return &d.config.HealthPath }, urlPath),
		Doc:     "The path in place of `/healthz` at the address of `health`.",
		Example: "health_path /alive", Default: "/healthz",
	},
	{
		Name: "health_ready", Parse: enable(func(d *draft) *bool { return &d.config.HealthReady }),
		Doc: "Has `/healthz`, or the path of `health_path`, answer as `/readyz` does: for pods whose two probes ask " +
			"one path, as those of ingress-nginx do.",
		Example: "health_ready", Default: "`/healthz` answers 200 while the process works",
	},
	{
		Name: "health_metrics", Parse: enable(func(d *draft) *bool { return &d.config.HealthMetrics }),
		Doc: "Answers `/metrics` at the address of `health`, too, with what the [admin API](admin.md) answers " +
			"there. Every client that reaches the address can read it.",
		Example: "health_metrics", Default: "metrics are at the admin API only",
	},
	{
		Name: "shutdown_delay", Values: "<duration>",
		Parse: duration(func(d *draft) *settings.Duration { return &d.config.ShutdownDelay }, 0),
		Doc: "How long new requests are still taken once the process has been told to end, so that load balancers " +
			"can find out from `/readyz`. Each answer asks its client to leave: by `Connection: close`, or a GOAWAY " +
			"in HTTP/2. It is Caddy's global option `shutdown_delay`, and holds for sites of your own, too.",
		Example: "shutdown_delay 15s", Default: "0s, or Caddy's own option",
	},
	{
		Name: "shutdown_timeout", Values: "<duration>",
		Parse: duration(func(d *draft) *settings.Duration { return &d.config.ShutdownTimeout }, 1),
		Doc: "How long the requests under way may take after that, WebSockets and other streams included. The " +
			"process ends as soon as they have. It is Caddy's global option `grace_period`, and holds for sites of " +
			"your own, too. In a pod, `terminationGracePeriodSeconds` has to be more than this and `shutdown_delay` " +
			"together.",
		Example: "shutdown_timeout 30s", Default: "240s, as ingress-nginx, or Caddy's own option",
	},
	{
		Name: "configmap", Values: "<namespace/name>",
		Parse: value(func(d *draft) *ir.Name { return &d.config.ConfigMap }, namespacedName),
		Doc: "The ConfigMap with the global options of ingress-nginx, which is followed: [ConfigMap](configmap.md) " +
			"has its keys. An IngressClass whose `spec.parameters` have the scope Cluster names a ConfigMap of the " +
			"same namespace.",
		Example: "configmap ingress-nginx/ingress-nginx-controller", Default: "none",
	},
	{
		Name: "tcp_services", Values: "<namespace/name>",
		Parse:   value(func(d *draft) *ir.Name { return &d.config.TCPServices }, namespacedName),
		Doc:     "The ConfigMap with the TCP ports to open, in the format of ingress-nginx.",
		Example: "tcp_services ingress-nginx/tcp-services", Default: "none",
	},
	{
		Name: "udp_services", Values: "<namespace/name>",
		Parse:   value(func(d *draft) *ir.Name { return &d.config.UDPServices }, namespacedName),
		Doc:     "The ConfigMap with the UDP ports to open, in the format of ingress-nginx.",
		Example: "udp_services ingress-nginx/udp-services", Default: "none",
	},
	{
		Name: "stream_bind", Values: "<ip>...",
		Parse: many(func(d *draft) *[]string { return &d.config.StreamBind }, ipAddress),
		Doc: "The IP addresses that TCP and UDP ports are opened on. With `127.0.0.1` alone they cannot be reached " +
			"from outside of the pod, or of the machine, nor through a Service.",
		Example: "stream_bind 127.0.0.1", Default: "all",
	},
	{
		Name: "service_tcp_ports", Values: "<port or range>...",
		Parse: many(func(d *draft) *[]string { return &d.config.ServiceTCPPorts }, portRange),
		Doc: "The TCP ports that a Service may open by its annotation `k8singress.io/tcp-ports`: [TCP and " +
			"UDP](tcp-udp.md) says how. The ports of `http`, `https`, `health` and of the admin API are not among " +
			"them, whatever stands here, and a port of the ConfigMap of `tcp_services` stays its own.",
		Example: "service_tcp_ports 5000-5999 6379", Default: "none",
	},
	{
		Name: "service_udp_ports", Values: "<port or range>...",
		Parse:   many(func(d *draft) *[]string { return &d.config.ServiceUDPPorts }, portRange),
		Doc:     "The UDP ports that a Service may open by its annotation `k8singress.io/udp-ports`. As for TCP.",
		Example: "service_udp_ports 5300-5399", Default: "none",
	},
	{
		Name: "service_port_namespaces", Values: "<namespace>...",
		Parse: many(func(d *draft) *[]string { return &d.config.ServicePortNamespaces }, namespacePattern),
		Doc: "The namespaces whose Services may open those ports: names, and beginnings of names with a `*` behind " +
			"them. It goes with `service_tcp_ports` or `service_udp_ports`.",
		Example: "service_port_namespaces shop team-*", Default: "all",
	},
	{
		Name: "service_ports_per_namespace", Values: "<number>",
		Parse: number(func(d *draft) *int { return &d.config.ServicePortsPerNamespace }),
		Doc: "How many of those ports the Services of one namespace may have, TCP and UDP together. The oldest " +
			"Services have theirs, and the others get a warning. Ports of the ConfigMaps do not count.",
		Example: "service_ports_per_namespace 4", Default: strconv.Itoa(settings.DefaultServicePortsPerNamespace),
	},
	{
		Name: "service_max_connections", Values: "<number>",
		Parse: number(func(d *draft) *int { return &d.config.ServiceMaxConnections }),
		Doc: "The most that a Service may ask for by the annotation `k8singress.io/stream-max-connections`; where " +
			"it asks for more, this counts. Each client of a UDP port costs a file descriptor, and each connection " +
			"of a TCP port two.",
		Example: "service_max_connections 1000", Default: strconv.Itoa(settings.DefaultServiceMaxConnections),
	},
	{
		Name: "service_max_idle_timeout", Values: "<duration>",
		Parse: duration(func(d *draft) *settings.Duration { return &d.config.ServiceMaxIdleTimeout }, time.Second),
		Doc: "The most that a Service may ask for by the annotation `k8singress.io/stream-idle-timeout`; where " +
			"it asks for more, this counts.",
		Example: "service_max_idle_timeout 10m", Default: "1h",
	},
	{
		Name: "body_files", Values: "<size>",
		Parse: size(func(d *draft) *int64 { return &d.config.BodyFiles }),
		Doc: "How much of the bodies of requests and answers, all together, may stand in temporary files at a " +
			"time, in the folder of the environment variable `TMPDIR`. The files have no name, so tools that add " +
			"up files do not see them. Namespaces share them: one alone gets about eight ninths. Without room a " +
			"body is passed on as it comes in: then a slow client keeps its endpoint waiting, and no other " +
			"endpoint can be asked.",
		Example: "body_files 2GiB", Default: "8GiB",
	},
	{
		Name: "strict_paths", Parse: enable(func(d *draft) *bool { return &d.config.StrictPaths }),
		Doc: "Refuses, with 400, each path that servers read in more than one way: with dot segments, two slashes, " +
			"a semicolon, a backslash, or an escaped dot, slash, semicolon, backslash or escape. Names with an " +
			"escaped slash in them, as registries and object stores have, are refused then, too.",
		Example: "strict_paths",
		Default: "such a path is refused where one way to read it leads to a route with another guard, or to none",
	},
	{
		Name: "access_log", Values: "off",
		Parse: one(func(d *draft) *string { return &d.config.AccessLog },
			words("; without the option, requests and connections are noted as the ConfigMap says",
				settings.AccessLogOff)),
		Doc: "With `off`, neither requests nor connections of TCP and UDP ports are noted, whatever the ConfigMap " +
			"says. Otherwise they are, on the standard output and in the formats of ingress-nginx, unless its keys " +
			"say otherwise: [log-format-upstream](configmap.md#log-format-upstream), " +
			"[log-format-stream](configmap.md#log-format-stream).",
		Example: "access_log off", Default: "they are noted",
	},
	{
		Name: "via", Parse: enable(func(d *draft) *bool { return &d.config.Via }),
		Doc: "Adds a `Via` header to answers, by which clients see that they came through a proxy. Endpoints " +
			"get one in any case.",
		Example: "via", Default: "answers have no `Via` header but that of an endpoint",
	},
	{
		Name: "external_names", Values: "off | all",
		Parse: one(func(d *draft) *string { return &d.config.ExternalNames },
			words("; without the option, names lead to other machines only", settings.ExternalNamesOff,
				settings.ExternalNamesAll)),
		Doc: "Where the names of Services of type `ExternalName` may lead. Without the option, they lead neither to " +
			"loopback, link-local or multicast addresses, nor to addresses of this machine, of the API server and " +
			"of the metadata of clouds. With `all`, they may lead anywhere but to `reach_deny` and to what Caddy " +
			"itself listens on: for a Caddy that runs beside its services. `reach_allow` opens nothing for names. " +
			"With `off`, such Services are refused.",
		Example: "external_names off", Default: "to other machines",
	},
	{
		Name: "reach_allow", Values: "<network>...",
		Parse: many(func(d *draft) *[]string { return &d.config.ReachAllow }, network),
		Doc: "Networks that endpoints may be in although they are usually closed: loopback, link-local and " +
			"multicast addresses, and those of the metadata of clouds. A Caddy that runs beside its services needs " +
			"`127.0.0.0/8 ::1/128`. [Tenants](tenants.md#endpoints) has the rules.",
		Example: "reach_allow 127.0.0.0/8 ::1/128", Default: "none",
	},
	{
		Name: "reach_deny", Values: "<network>...",
		Parse: many(func(d *draft) *[]string { return &d.config.ReachDeny }, network),
		Doc: "Networks that neither endpoints may be in, nor the names of `ExternalName` Services lead to. Of the " +
			"networks of both options that an address is in, the narrowest counts.",
		Example: "reach_deny 10.0.0.0/16", Default: "none",
	},
	{
		Name: "resolvers", Values: "<ip or ip:port>...",
		Parse: many(func(d *draft) *[]string { return &d.config.Resolvers }, dnsServer),
		Doc: "The DNS servers for the names of `ExternalName` Services. The domains to search are still read " +
			"from `/etc/resolv.conf`.",
		Example: "resolvers 10.96.0.10 192.0.2.53:5353", Default: "the servers in `/etc/resolv.conf`",
	},
	{
		Name: "zone", Values: "<name>", Parse: one(func(d *draft) *string { return &d.config.Zone }, zone),
		Doc: "The topology zone that Caddy runs in. Requests stay in it where the EndpointSlices of a Service have " +
			"hints for zones, as `trafficDistribution` of the Service asks for. `{env.ZONE}` is the environment " +
			"variable ZONE, which the downward API sets in a pod that has its zone in the label " +
			"`topology.kubernetes.io/zone`. An empty variable is no zone.",
		Example: "zone {env.ZONE}", Default: "none: hints are not followed",
	},
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
