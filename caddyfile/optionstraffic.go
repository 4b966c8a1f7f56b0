package caddyfile

import (
	"strconv"
	"time"

	"github.com/k8singress/k8singress/internal/model/ir"
	"github.com/k8singress/k8singress/internal/model/option"
	"github.com/k8singress/k8singress/internal/model/settings"
)

// trafficOptions configure the open ports, and the handling of requests and connections.
var trafficOptions = option.Table[draft, *line]{
	{
		Name: "http", Values: "<address>... | off",
		Parse: addresses(func(d *draft) *[]string { return &d.config.HTTP }),
		Doc: "The addresses on which the HTTP servers listen. With `off`, there are no HTTP servers. A site of your " +
			"own may then listen on these addresses, and serve the Ingresses with [the directive](#the-directive).",
		Example: "http 127.0.0.1:8080", Default: settings.DefaultHTTP,
	},
	{
		Name: "https", Values: "<address>... | off",
		Parse: addresses(func(d *draft) *[]string { return &d.config.HTTPS }),
		Doc: "The addresses on which the HTTPS servers listen. They also serve HTTP/2 and HTTP/3. With `off`, " +
			"there are no HTTPS servers.",
		Example: "https 127.0.0.1:8443", Default: settings.DefaultHTTPS,
	},
	{
		Name: "http3", Values: "off",
		Parse: one(func(d *draft) *string { return &d.config.HTTP3 }, words("", settings.HTTP3Off)),
		Doc: "`off` disables HTTP/3: nothing listens on UDP at the addresses of `https`, and no response has an " +
			"`Alt-Svc` header. Set it if UDP packets do not reach the controller, for example behind a load balancer " +
			"that supports only TCP. Otherwise browsers try HTTP/3 without success.",
		Example: "http3 off", Default: "HTTP/3 is on, with UDP on the ports of `https`",
	},
	{
		Name: "h2c", Parse: enable(func(d *draft) *bool { return &d.config.H2C }),
		Doc: "Accepts HTTP/2 without TLS (with prior knowledge) on the addresses in `http`. Some load balancers use " +
			"it, and so do gRPC clients without TLS.",
		Example: "h2c", Default: "HTTP/2 without TLS gets 400",
	},
	{
		Name: "share_ports", Parse: enable(func(d *draft) *bool { return &d.config.SharePorts }),
		Doc: "Allows another process to listen on the addresses in `http`, `https` and `health` at the same time, " +
			"including HTTP/3. The kernel distributes the connections among the processes. Use the option if a new " +
			"process replaces an old process on the same machine without an interruption, and set it in both " +
			"processes. HTTP/3 clients may then have to connect again. The ports of `tcp_services` and " +
			"`udp_services` cannot be shared, and a Unix socket belongs to the process that opened it last.",
		Example: "share_ports", Default: "a process does not start while another process listens on the same addresses",
	},
	{
		Name: "health", Values: "<address>",
		Parse: one(func(d *draft) *string { return &d.config.Health }, probeAddress),
		Doc: "The address on which health probes are served. `/healthz` returns 200 while the process works. " +
			"`/readyz` returns 503 until all objects have been applied, then 200, and 503 again after the shutdown " +
			"has begun. A process does not start while another process listens on the address, unless both processes " +
			"have [`share_ports`](#share_ports).",
		Example: "health :10254", Default: "none",
	},
	{
		Name: "health_path", Values: "<path>",
		Parse:   one(func(d *draft) *string { return &d.config.HealthPath }, urlPath),
		Doc:     "The path that is used instead of `/healthz` on the address in `health`.",
		Example: "health_path /alive", Default: "/healthz",
	},
	{
		Name: "health_ready", Parse: enable(func(d *draft) *bool { return &d.config.HealthReady }),
		Doc: "Makes `/healthz`, or the path in `health_path`, return the same status as `/readyz`. Use it for pods " +
			"whose liveness and readiness probes use the same path, as in ingress-nginx.",
		Example: "health_ready", Default: "`/healthz` returns 200 while the process works",
	},
	{
		Name: "health_metrics", Parse: enable(func(d *draft) *bool { return &d.config.HealthMetrics }),
		Doc: "Also serves `/metrics` on the address in `health`, with the same metrics as the [admin API](admin.md). " +
			"Every client that can connect to the address can read them.",
		Example: "health_metrics", Default: "only the admin API serves metrics",
	},
	{
		Name: "shutdown_delay", Values: "<duration>",
		Parse: duration(func(d *draft) *settings.Duration { return &d.config.ShutdownDelay }, 0),
		Doc: "How long new requests are still accepted after the shutdown has begun, so that load balancers notice " +
			"the shutdown by the status of `/readyz`. During this time, each response asks its client to open a new " +
			"connection, which a load balancer directs to another replica: by `Connection: close` in HTTP/1.1, or by " +
			"a GOAWAY frame in HTTP/2. The option sets Caddy's global option `shutdown_delay`, so it also applies to " +
			"sites of your own.",
		Example: "shutdown_delay 15s", Default: "0s, or the value of Caddy's option",
	},
	{
		Name: "shutdown_timeout", Values: "<duration>",
		Parse: duration(func(d *draft) *settings.Duration { return &d.config.ShutdownTimeout }, 1),
		Doc: "How long requests in progress may take after `shutdown_delay`, including WebSockets and other streams. " +
			"The process exits as soon as these requests are complete. The option sets Caddy's global option " +
			"`grace_period`, so it also applies to sites of your own. In a pod, `terminationGracePeriodSeconds` has " +
			"to be longer than the sum of `shutdown_delay` and `shutdown_timeout`.",
		Example: "shutdown_timeout 30s", Default: "240s, as in ingress-nginx, or the value of Caddy's option",
	},
	{
		Name: "configmap", Values: "<namespace/name>",
		Parse: value(func(d *draft) *ir.Name { return &d.config.ConfigMap }, namespacedName),
		Doc: "The ConfigMap with the global options of ingress-nginx. Changes take effect immediately. " +
			"[ConfigMap](configmap.md) lists its keys. An IngressClass can have its own ConfigMap in " +
			"`spec.parameters`. If these parameters have the scope Cluster, they name a ConfigMap in the namespace " +
			"of this one.",
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
		Doc: "The IP addresses on which TCP and UDP ports are opened. With only `127.0.0.1`, they cannot be reached " +
			"from outside the pod or the machine, nor through a Service.",
		Example: "stream_bind 127.0.0.1", Default: "all",
	},
	{
		Name: "service_tcp_ports", Values: "<port or range>...",
		Parse: many(func(d *draft) *[]string { return &d.config.ServiceTCPPorts }, portRange),
		Doc: "The TCP ports that a Service may open with its annotation `k8singress.io/tcp-ports`, as described in " +
			"[TCP and UDP](tcp-udp.md). The ports of `http`, `https`, `health` and the admin API are always " +
			"excluded. If the ConfigMap of `tcp_services` also defines a port, the ConfigMap takes precedence.",
		Example: "service_tcp_ports 5000-5999 6379", Default: "none",
	},
	{
		Name: "service_udp_ports", Values: "<port or range>...",
		Parse: many(func(d *draft) *[]string { return &d.config.ServiceUDPPorts }, portRange),
		Doc: "The UDP ports that a Service may open with its annotation `k8singress.io/udp-ports`. The rules of " +
			"`service_tcp_ports` also apply to UDP.",
		Example: "service_udp_ports 5300-5399", Default: "none",
	},
	{
		Name: "service_port_namespaces", Values: "<namespace>...",
		Parse: many(func(d *draft) *[]string { return &d.config.ServicePortNamespaces }, namespacePattern),
		Doc: "The namespaces whose Services may open TCP and UDP ports with annotations. Each entry is a name, or a " +
			"prefix of names followed by `*`. The option requires `service_tcp_ports` or `service_udp_ports`.",
		Example: "service_port_namespaces shop team-*", Default: "all",
	},
	{
		Name: "service_ports_per_namespace", Values: "<number>",
		Parse: number(func(d *draft) *int { return &d.config.ServicePortsPerNamespace }),
		Doc: "The maximum number of TCP and UDP ports, added together, that all Services in one namespace can open " +
			"with annotations. If the Services request more ports, the oldest Services get their ports, and the " +
			"other Services get a warning. Ports in the ConfigMaps of `tcp_services` and `udp_services` do not count.",
		Example: "service_ports_per_namespace 4", Default: strconv.Itoa(settings.DefaultServicePortsPerNamespace),
	},
	{
		Name: "service_max_connections", Values: "<number>",
		Parse: number(func(d *draft) *int { return &d.config.ServiceMaxConnections }),
		Doc: "The maximum value of the annotation `k8singress.io/stream-max-connections` of a Service. A Service " +
			"with a higher value gets this maximum. Each client of a UDP port uses one file descriptor, and each " +
			"connection to a TCP port uses two.",
		Example: "service_max_connections 1000", Default: strconv.Itoa(settings.DefaultServiceMaxConnections),
	},
	{
		Name: "service_max_idle_timeout", Values: "<duration>",
		Parse: duration(func(d *draft) *settings.Duration { return &d.config.ServiceMaxIdleTimeout }, time.Second),
		Doc: "The maximum value of the annotation `k8singress.io/stream-idle-timeout` of a Service. A Service with a " +
			"higher value gets this maximum.",
		Example: "service_max_idle_timeout 10m", Default: "1h",
	},
	{
		Name: "body_files", Values: "<size>",
		Parse: size(func(d *draft) *int64 { return &d.config.BodyFiles }),
		Doc: "The maximum total size of the request and response bodies that are buffered in temporary files, in the " +
			"folder in the environment variable `TMPDIR`. The files have no names, so tools that sum up file sizes " +
			"do not see them. All namespaces share this space, and a single namespace can use about eight ninths of " +
			"it. If no space is left, a body is forwarded while it arrives. A slow client then also keeps its " +
			"endpoint busy, and the request cannot be retried at another endpoint.",
		Example: "body_files 2GiB", Default: "8GiB",
	},
	{
		Name: "strict_paths", Parse: enable(func(d *draft) *bool { return &d.config.StrictPaths }),
		Doc: "Rejects all requests whose path is ambiguous with 400. A path is ambiguous if servers can interpret it " +
			"in more than one way, because it contains a dot segment, two slashes in a row, a semicolon, a " +
			"backslash, a percent-encoded dot, slash, semicolon or backslash, or a double encoding such as `%252f`. " +
			"This also rejects names with an encoded slash, which registries and object stores use.",
		Example: "strict_paths",
		Default: "an ambiguous path is rejected only if one interpretation leads to a route with different access " +
			"control, or to no route",
	},
	{
		Name: "access_log", Values: "off",
		Parse: one(func(d *draft) *string { return &d.config.AccessLog },
			words("; without the option, the ConfigMap decides what is logged", settings.AccessLogOff)),
		Doc: "With `off`, neither requests nor connections to TCP and UDP ports are logged, even if the ConfigMap " +
			"configures an access log. Without the option, they are logged to standard output, in the formats of " +
			"ingress-nginx. Keys of the ConfigMap can change the formats: " +
			"[log-format-upstream](configmap.md#log-format-upstream) and " +
			"[log-format-stream](configmap.md#log-format-stream).",
		Example: "access_log off", Default: "requests and connections are logged",
	},
	{
		Name: "via", Parse: enable(func(d *draft) *bool { return &d.config.Via }),
		Doc: "Adds a `Via` header to responses, which shows clients that the response came through a proxy. " +
			"Requests to endpoints always have a `Via` header.",
		Example: "via", Default: "a response has a `Via` header only if its endpoint adds one",
	},
	{
		Name: "external_names", Values: "off | all",
		Parse: one(func(d *draft) *string { return &d.config.ExternalNames },
			words("; without the option, only addresses of other machines are allowed", settings.ExternalNamesOff,
				settings.ExternalNamesAll)),
		Doc: "The addresses to which the names in Services of type `ExternalName` may resolve. Without the option, " +
			"these are all addresses except loopback, link-local and multicast addresses, and the addresses of this " +
			"machine, the API server and cloud metadata services. With `all`, only the networks of `reach_deny` and " +
			"the addresses that Caddy itself listens on are forbidden; use it if Caddy runs on the same machine as " +
			"the services. `reach_allow` does not apply to Services of type `ExternalName`. With `off`, such " +
			"Services are rejected.",
		Example: "external_names off", Default: "addresses of other machines",
	},
	{
		Name: "reach_allow", Values: "<network>...",
		Parse: many(func(d *draft) *[]string { return &d.config.ReachAllow }, network),
		Doc: "Networks whose addresses are allowed for endpoints, although they are forbidden by default. Loopback, " +
			"link-local and multicast addresses, and the addresses of cloud metadata services, are forbidden by " +
			"default. If Caddy runs on the same machine as the services, set it to `127.0.0.0/8 ::1/128`. " +
			"[Tenants](tenants.md#endpoints) describes the rules.",
		Example: "reach_allow 127.0.0.0/8 ::1/128", Default: "none",
	},
	{
		Name: "reach_deny", Values: "<network>...",
		Parse: many(func(d *draft) *[]string { return &d.config.ReachDeny }, network),
		Doc: "Networks whose addresses are forbidden for endpoints and for the targets of `ExternalName` Services. " +
			"If networks in both `reach_allow` and `reach_deny` contain an address, the smallest of these networks " +
			"decides.",
		Example: "reach_deny 10.0.0.0/16", Default: "none",
	},
	{
		Name: "resolvers", Values: "<ip or ip:port>...",
		Parse: many(func(d *draft) *[]string { return &d.config.Resolvers }, dnsServer),
		Doc: "The DNS servers for the names of `ExternalName` Services. The search domains still come from " +
			"`/etc/resolv.conf`.",
		Example: "resolvers 10.96.0.10 192.0.2.53:5353", Default: "the servers in `/etc/resolv.conf`",
	},
	{
		Name: "zone", Values: "<name>", Parse: one(func(d *draft) *string { return &d.config.Zone }, zone),
		Doc: "The topology zone in which Caddy runs. Requests for a Service are sent only to endpoints in this zone " +
			"if the EndpointSlices of the Service have zone hints. The field `trafficDistribution` of the Service " +
			"can enable these hints. `{env.ZONE}` is replaced with the value of the environment variable ZONE, which " +
			"the downward API can set from the label `topology.kubernetes.io/zone` of the pod. If the variable is " +
			"empty, no zone is configured.",
		Example: "zone {env.ZONE}", Default: "none, and zone hints are ignored",
	},
}
