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
		Doc: "The addresses of the HTTP servers. With `off` there are none. A site of your own may then listen on " +
			"these addresses, and serve the Ingresses with [the directive](#the-directive).",
		Example: "http 127.0.0.1:8080", Default: settings.DefaultHTTP,
	},
	{
		Name: "https", Values: "<address>... | off",
		Parse:   addresses(func(d *draft) *[]string { return &d.config.HTTPS }),
		Doc:     "The addresses of the HTTPS servers, which also serve HTTP/2 and HTTP/3. `off` works as for `http`.",
		Example: "https 127.0.0.1:8443", Default: settings.DefaultHTTPS,
	},
	{
		Name: "http3", Values: "off",
		Parse: one(func(d *draft) *string { return &d.config.HTTP3 }, words("", settings.HTTP3Off)),
		Doc: "`off` disables HTTP/3: nothing listens on UDP at the addresses of `https`, and no response has an " +
			"`Alt-Svc` header. Set it if UDP packets do not arrive, for example behind a load balancer that " +
			"supports only TCP. Otherwise browsers try HTTP/3 in vain.",
		Example: "http3 off", Default: "HTTP/3 is on, with UDP on the ports of `https`",
	},
	{
		Name: "h2c", Parse: enable(func(d *draft) *bool { return &d.config.H2C }),
		Doc: "Accepts HTTP/2 with prior knowledge at the addresses of `http`, without TLS. Some load balancers, and " +
			"gRPC clients without TLS, use it.",
		Example: "h2c", Default: "HTTP/2 without TLS gets 400",
	},
	{
		Name: "share_ports", Parse: enable(func(d *draft) *bool { return &d.config.SharePorts }),
		Doc: "Lets another process listen at the addresses of `http`, `https` and `health` at the same time, HTTP/3 " +
			"included. The kernel distributes the connections among the processes. Set it in both processes if a " +
			"new process replaces an old one on the same machine without an interruption. HTTP/3 clients may then " +
			"have to connect again. The ports of `tcp_services` and `udp_services` cannot be shared, and a Unix " +
			"socket belongs to the process that opened it last.",
		Example: "share_ports", Default: "a process does not start while another one listens on these addresses",
	},
	{
		Name: "health", Values: "<address>",
		Parse: one(func(d *draft) *string { return &d.config.Health }, probeAddress),
		Doc: "The address of the probes. `/healthz` returns 200 while the process works. `/readyz` returns 200 " +
			"after all objects have been applied; it returns 503 before that, and from the start of the shutdown " +
			"on. A process does not start while another one listens on the address, unless both have " +
			"[`share_ports`](#share_ports).",
		Example: "health :10254", Default: "none",
	},
	{
		Name: "health_path", Values: "<path>",
		Parse:   one(func(d *draft) *string { return &d.config.HealthPath }, urlPath),
		Doc:     "The path that replaces `/healthz` at the address of `health`.",
		Example: "health_path /alive", Default: "/healthz",
	},
	{
		Name: "health_ready", Parse: enable(func(d *draft) *bool { return &d.config.HealthReady }),
		Doc: "Makes `/healthz`, or the path of `health_path`, return the same status as `/readyz`. It is for pods " +
			"whose liveness and readiness probes use the same path, as in ingress-nginx.",
		Example: "health_ready", Default: "`/healthz` returns 200 while the process works",
	},
	{
		Name: "health_metrics", Parse: enable(func(d *draft) *bool { return &d.config.HealthMetrics }),
		Doc: "Also serves `/metrics` at the address of `health`, with the metrics of the [admin API](admin.md). " +
			"Every client that can connect to the address can read them.",
		Example: "health_metrics", Default: "only the admin API serves metrics",
	},
	{
		Name: "shutdown_delay", Values: "<duration>",
		Parse: duration(func(d *draft) *settings.Duration { return &d.config.ShutdownDelay }, 0),
		Doc: "How long new requests are still accepted after the shutdown has begun, so that load balancers learn " +
			"about it from `/readyz`. During this time, each response asks its client to reconnect elsewhere: by " +
			"`Connection: close` in HTTP/1.1, or by a GOAWAY frame in HTTP/2. It sets Caddy's global option " +
			"`shutdown_delay`, and so also applies to sites of your own.",
		Example: "shutdown_delay 15s", Default: "0s, or the value of Caddy's option",
	},
	{
		Name: "shutdown_timeout", Values: "<duration>",
		Parse: duration(func(d *draft) *settings.Duration { return &d.config.ShutdownTimeout }, 1),
		Doc: "How long requests in progress may take after `shutdown_delay`, including WebSockets and other " +
			"streams. The process exits as soon as they are complete. It sets Caddy's global option `grace_period`, " +
			"and so also applies to sites of your own. In a pod, `terminationGracePeriodSeconds` has to be longer " +
			"than the sum of this and `shutdown_delay`.",
		Example: "shutdown_timeout 30s", Default: "240s, as in ingress-nginx, or the value of Caddy's option",
	},
	{
		Name: "configmap", Values: "<namespace/name>",
		Parse: value(func(d *draft) *ir.Name { return &d.config.ConfigMap }, namespacedName),
		Doc: "The ConfigMap with the global options of ingress-nginx. Changes take effect immediately. " +
			"[ConfigMap](configmap.md) lists its keys. An IngressClass whose `spec.parameters` have the scope " +
			"Cluster can name another ConfigMap of the same namespace.",
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
		Parse:   many(func(d *draft) *[]string { return &d.config.ServiceUDPPorts }, portRange),
		Doc:     "The UDP ports that a Service may open with its annotation `k8singress.io/udp-ports`, as for TCP.",
		Example: "service_udp_ports 5300-5399", Default: "none",
	},
	{
		Name: "service_port_namespaces", Values: "<namespace>...",
		Parse: many(func(d *draft) *[]string { return &d.config.ServicePortNamespaces }, namespacePattern),
		Doc: "The namespaces whose Services may open these ports: names, and prefixes of names followed by `*`. It " +
			"requires `service_tcp_ports` or `service_udp_ports`.",
		Example: "service_port_namespaces shop team-*", Default: "all",
	},
	{
		Name: "service_ports_per_namespace", Values: "<number>",
		Parse: number(func(d *draft) *int { return &d.config.ServicePortsPerNamespace }),
		Doc: "The maximum number of such ports of all Services in one namespace, TCP and UDP together. If there are " +
			"more, the oldest Services get their ports, and the others get a warning. Ports of the ConfigMaps do " +
			"not count.",
		Example: "service_ports_per_namespace 4", Default: strconv.Itoa(settings.DefaultServicePortsPerNamespace),
	},
	{
		Name: "service_max_connections", Values: "<number>",
		Parse: number(func(d *draft) *int { return &d.config.ServiceMaxConnections }),
		Doc: "The maximum value of the annotation `k8singress.io/stream-max-connections` of a Service. A higher " +
			"value is reduced to this one. Each client of a UDP port takes one file descriptor, and each connection " +
			"to a TCP port takes two.",
		Example: "service_max_connections 1000", Default: strconv.Itoa(settings.DefaultServiceMaxConnections),
	},
	{
		Name: "service_max_idle_timeout", Values: "<duration>",
		Parse: duration(func(d *draft) *settings.Duration { return &d.config.ServiceMaxIdleTimeout }, time.Second),
		Doc: "The maximum value of the annotation `k8singress.io/stream-idle-timeout` of a Service. A higher value " +
			"is reduced to this one.",
		Example: "service_max_idle_timeout 10m", Default: "1h",
	},
	{
		Name: "body_files", Values: "<size>",
		Parse: size(func(d *draft) *int64 { return &d.config.BodyFiles }),
		Doc: "The maximum size of all request and response bodies in temporary files, in the folder of the " +
			"environment variable `TMPDIR`. The files have no names, so tools that sum up file sizes do not see " +
			"them. Namespaces share this space, and a single namespace can use about eight ninths of it. If there " +
			"is no space left, a body is forwarded while it arrives. Then a slow client also occupies its endpoint, " +
			"and the request cannot be retried at another endpoint.",
		Example: "body_files 2GiB", Default: "8GiB",
	},
	{
		Name: "strict_paths", Parse: enable(func(d *draft) *bool { return &d.config.StrictPaths }),
		Doc: "Rejects, with 400, each path that servers can interpret in more than one way: with dot segments, two " +
			"slashes, a semicolon, a backslash, or an escaped dot, slash, semicolon, backslash or escape. This " +
			"includes names with an escaped slash, which registries and object stores use.",
		Example: "strict_paths",
		Default: "an ambiguous path is rejected only if one interpretation leads to a route with other guards, or to " +
			"no route",
	},
	{
		Name: "access_log", Values: "off",
		Parse: one(func(d *draft) *string { return &d.config.AccessLog },
			words("; without the option, the ConfigMap decides what is logged", settings.AccessLogOff)),
		Doc: "With `off`, neither requests nor connections to TCP and UDP ports are logged, whatever the ConfigMap " +
			"says. Otherwise they are logged to standard output, in the formats of ingress-nginx. Keys of the " +
			"ConfigMap can change the formats: [log-format-upstream](configmap.md#log-format-upstream) and " +
			"[log-format-stream](configmap.md#log-format-stream).",
		Example: "access_log off", Default: "requests and connections are logged",
	},
	{
		Name: "via", Parse: enable(func(d *draft) *bool { return &d.config.Via }),
		Doc: "Adds a `Via` header to responses, which shows clients that the response came through a proxy. " +
			"Requests to endpoints always have a `Via` header.",
		Example: "via", Default: "a response only has the `Via` header of its endpoint",
	},
	{
		Name: "external_names", Values: "off | all",
		Parse: one(func(d *draft) *string { return &d.config.ExternalNames },
			words("; without the option, only addresses of other machines are allowed", settings.ExternalNamesOff,
				settings.ExternalNamesAll)),
		Doc: "Which addresses Services of type `ExternalName` may resolve to. Without the option, these are all " +
			"addresses except loopback, link-local and multicast addresses, and the addresses of this machine, the " +
			"API server and cloud metadata services. With `all`, only the networks of `reach_deny` and the " +
			"addresses that Caddy itself listens on are forbidden: use it if Caddy runs beside its services. " +
			"`reach_allow` does not apply to these Services. With `off`, such Services are rejected.",
		Example: "external_names off", Default: "addresses of other machines",
	},
	{
		Name: "reach_allow", Values: "<network>...",
		Parse: many(func(d *draft) *[]string { return &d.config.ReachAllow }, network),
		Doc: "Networks in which endpoints may have addresses that are forbidden by default: loopback, link-local " +
			"and multicast addresses, and cloud metadata services. A Caddy that runs beside its services needs " +
			"`127.0.0.0/8 ::1/128`. [Tenants](tenants.md#endpoints) describes the rules.",
		Example: "reach_allow 127.0.0.0/8 ::1/128", Default: "none",
	},
	{
		Name: "reach_deny", Values: "<network>...",
		Parse: many(func(d *draft) *[]string { return &d.config.ReachDeny }, network),
		Doc: "Networks in which neither endpoints nor the targets of `ExternalName` Services may have addresses. If " +
			"networks of `reach_allow` and `reach_deny` contain the same address, the smallest network decides.",
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
		Doc: "The topology zone that Caddy runs in. Requests stay in this zone if the EndpointSlices of a Service " +
			"have zone hints, which the field `trafficDistribution` of the Service can enable. `{env.ZONE}` is " +
			"replaced by the environment variable ZONE; the downward API can set it from the label " +
			"`topology.kubernetes.io/zone` of the pod. If the variable is empty, no zone is configured.",
		Example: "zone {env.ZONE}", Default: "none, and zone hints are ignored",
	},
}
