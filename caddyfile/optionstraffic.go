package caddyfile

import (
	"strconv"
	"time"

	"github.com/k8singress/k8singress/internal/model/ir"
	"github.com/k8singress/k8singress/internal/model/option"
	"github.com/k8singress/k8singress/internal/model/settings"
)

// trafficOptions decide which ports are open, and how requests and connections are handled.
var trafficOptions = option.Table[draft, *line]{
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
}
