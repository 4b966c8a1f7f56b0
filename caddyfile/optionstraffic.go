package caddyfile

import (
	"time"

	"github.com/k8singress/k8singress/internal/model/ir"
	"github.com/k8singress/k8singress/internal/model/option"
	"github.com/k8singress/k8singress/internal/model/settings"
)

// serverOptions configure the servers of the controller, and its shutdown.
var serverOptions = option.Table[draft, *line]{
	{
		Name: "http", Values: "<address>... | off",
		Parse: addresses(func(d *draft) *[]string { return &d.config.HTTP }),
		Doc: "Caddy's global options `http_port` and `default_bind` change the default. With `off`, there are no " +
			"HTTP servers. A site of your own may then listen on these addresses, and serve the Ingresses with " +
			"[the directive](#the-directive).",
		Example: "http 127.0.0.1:8080",
	},
	{
		Name: "https", Values: "<address>... | off",
		Parse: addresses(func(d *draft) *[]string { return &d.config.HTTPS }),
		Doc: "Caddy's global options `https_port` and `default_bind` change the default. With `off`, there are no " +
			"HTTPS servers.",
		Example: "https 127.0.0.1:8443",
	},
	{
		Name: "http3", Values: "off",
		Parse:   one(func(d *draft) *string { return &d.config.HTTP3 }, words("", settings.HTTP3Off)),
		Example: "http3 off",
	},
	{
		Name: "h2c", Parse: enable(func(d *draft) *bool { return &d.config.H2C }),
		Example: "h2c",
	},
	{
		Name: "share_ports", Parse: enable(func(d *draft) *bool { return &d.config.SharePorts }),
		Example: "share_ports",
	},
	{
		Name: "health", Values: "<address>",
		Parse:   one(func(d *draft) *string { return &d.config.Health }, probeAddress),
		Example: "health :10254",
	},
	{
		Name: "health_path", Values: "<path>",
		Parse:   one(func(d *draft) *string { return &d.config.HealthPath }, urlPath),
		Example: "health_path /alive",
	},
	{
		Name: "health_ready", Parse: enable(func(d *draft) *bool { return &d.config.HealthReady }),
		Example: "health_ready",
	},
	{
		Name: "health_metrics", Parse: enable(func(d *draft) *bool { return &d.config.HealthMetrics }),
		Doc:     "For the metrics, see [Metrics](metrics.md).",
		Example: "health_metrics",
	},
	{
		Name: "admission_webhook", Values: "[<address>] { certificate <file> <key file> | own <configuration> }",
		Parse: setAdmissionWebhook,
		Doc: "[The webhook](webhook.md) describes what is refused. The default address is `:8443`. The certificate " +
			"comes either from two PEM files, which are read again when they change, or from a certificate " +
			"authority that the controller creates. With `own`, the controller writes `caBundle` into the " +
			"ValidatingWebhookConfiguration with the given name.",
		Example: "admission_webhook :8443 {\n\tcertificate /etc/webhook/tls.crt /etc/webhook/tls.key\n}",
	},
	{
		Name: "nginx_metrics", Values: "[off] [{ <settings...> }]", Parse: setNginxMetrics,
		Doc: "[Names of ingress-nginx](metrics.md#names-of-ingress-nginx) lists the metrics, and the settings in the " +
			"block.",
		Example: "nginx_metrics {\n\tstatus_classes\n\texclude header_duration_seconds\n}",
	},
	{
		Name: "shutdown_delay", Values: "<duration>",
		Parse:   duration(func(d *draft) *settings.Duration { return &d.config.ShutdownDelay }, 0),
		Example: "shutdown_delay 15s",
	},
	{
		Name: "shutdown_timeout", Values: "<duration>",
		Parse:   duration(func(d *draft) *settings.Duration { return &d.config.ShutdownTimeout }, 1),
		Example: "shutdown_timeout 30s",
	},
}

// requestOptions configure how requests are handled.
var requestOptions = option.Table[draft, *line]{
	{
		Name: "body_files", Values: "<size>",
		Parse:   size(func(d *draft) *int64 { return &d.config.BodyFiles }),
		Example: "body_files 2GiB",
	},
	{
		Name: "strict_paths", Parse: enable(func(d *draft) *bool { return &d.config.StrictPaths }),
		Example: "strict_paths",
	},
	{
		Name: "access_log", Values: "caddy | off",
		Parse: one(func(d *draft) *string { return &d.config.AccessLog },
			words("; without the option, the ConfigMap decides what is logged", settings.AccessLogCaddy,
				settings.AccessLogOff)),
		Doc: "Without the option, keys of the ConfigMap can change the formats: " +
			"[log-format-upstream](configmap.md#log-format-upstream) and " +
			"[log-format-stream](configmap.md#log-format-stream). " +
			"[For Caddy users](caddy.md#access-logs) shows how to write Caddy's format to a file, and how to " +
			"filter it.",
		Example: "access_log caddy",
	},
	{
		Name: "error_bodies", Values: "off",
		Parse: one(func(d *draft) *string { return &d.config.ErrorBodies },
			words("; without the option, error responses have a body", settings.ErrorBodiesOff)),
		Doc:     "For details, see [Error pages](error-pages.md#errors-of-the-controller).",
		Example: "error_bodies off",
	},
	{
		Name:    "disable_route_metrics",
		Parse:   enable(func(d *draft) *bool { return &d.config.DisableRouteMetrics }),
		Example: "disable_route_metrics",
	},
	{
		Name: "via", Values: "[answers | endpoints]...", Parse: setVia,
		Doc: "Adds a `Via` header. The word `answers` adds it to responses, so that clients see that the response " +
			"came through a proxy. The word `endpoints` adds it to requests to endpoints and to services such as " +
			"`auth-url`. Both words can be given. Without a word, the option has the same meaning as `via answers`. " +
			"RFC 9110, section 7.6.3, requires gateways to send `Via` with requests. It is disabled by default, as " +
			"in ingress-nginx, because some servers do not compress responses to requests with this header: nginx " +
			"unless `gzip_proxied` allows it, and IIS unless `noCompressionForProxies` is false. Loops are detected " +
			"by the header `CDN-Loop` (RFC 8586), which requests to endpoints always have.",
		Example: "via answers endpoints",
		Default: "responses have a `Via` header only if the endpoint adds one, and requests only if the client adds " +
			"one",
	},
	{
		Name: "ssl_passthrough", Parse: enable(func(d *draft) *bool { return &d.config.SSLPassthrough }),
		Doc:     "For details, see [TLS](tls.md#passthrough).",
		Example: "ssl_passthrough",
	},
	{
		Name: "default_backend", Values: "<namespace/name[:port]>",
		Parse:   value(func(d *draft) *ir.ServicePort { return &d.config.DefaultBackend }, servicePort),
		Doc:     "For the error pages, see [custom-http-errors](annotations.md#custom-http-errors).",
		Example: "default_backend ingress-nginx/default-backend",
	},
	{
		Name: "chain", Values: "<name> { <directives...> }", Parse: setChain,
		Doc: "Caddy directives that run before a request is sent to the backend, for Ingresses that list this chain " +
			"in the annotation `k8singress.io/chains`. Every directive that a `route` block accepts is allowed, " +
			"including directives of plugins. The directives run in the order in which they are written. " +
			"[Chains](chains.md) has a complete example. The option may be repeated with different names.",
		Example: "chain staff {\n\t@outside not client_ip private_ranges\n\trespond @outside 403\n}", Default: "none",
	},
	{
		Name: "chain_default", Values: "<name> [{ <selection...> }]", Parse: setDefaultChain,
		Doc: "Runs a chain for all Ingresses, whatever their annotations contain. The block selects Ingresses: " +
			"`namespaces` and `except` take names of namespaces, and prefixes of names followed by `*`, and " +
			"`classes` takes names of IngressClasses. The option may be repeated for different chains, which run in " +
			"the order of the Caddyfile. [Default chains](chains.md#default-chains) describes what a default chain " +
			"covers.",
		Example: "chain_default waf {\n\tnamespaces team-*\n\texcept team-waf\n}", Default: "none",
	},
}

// portOptions configure TCP and UDP ports.
var portOptions = option.Table[draft, *line]{
	{
		Name: "tcp_services", Values: "<namespace/name>",
		Parse:   value(func(d *draft) *ir.Name { return &d.config.TCPServices }, namespacedName),
		Example: "tcp_services ingress-nginx/tcp-services",
	},
	{
		Name: "udp_services", Values: "<namespace/name>",
		Parse:   value(func(d *draft) *ir.Name { return &d.config.UDPServices }, namespacedName),
		Example: "udp_services ingress-nginx/udp-services",
	},
	{
		Name: "stream_bind", Values: "<ip>...",
		Parse:   many(func(d *draft) *[]string { return &d.config.StreamBind }, ipAddress),
		Example: "stream_bind 127.0.0.1",
	},
	{
		Name: "service_tcp_ports", Values: "<port or range>...",
		Parse:   many(func(d *draft) *[]string { return &d.config.ServiceTCPPorts }, portRange),
		Doc:     "[TCP and UDP](tcp-udp.md) describes the annotation.",
		Example: "service_tcp_ports 5000-5999 6379",
	},
	{
		Name: "service_udp_ports", Values: "<port or range>...",
		Parse:   many(func(d *draft) *[]string { return &d.config.ServiceUDPPorts }, portRange),
		Example: "service_udp_ports 5300-5399",
	},
	{
		Name: "service_port_namespaces", Values: "<namespace>...",
		Parse:   many(func(d *draft) *[]string { return &d.config.ServicePortNamespaces }, namespacePattern),
		Example: "service_port_namespaces shop team-*",
	},
	{
		Name: "service_ports_per_namespace", Values: "<number>",
		Parse:   number(func(d *draft) *int { return &d.config.ServicePortsPerNamespace }),
		Example: "service_ports_per_namespace 4",
	},
	{
		Name: "service_max_connections", Values: "<number>",
		Parse:   number(func(d *draft) *int { return &d.config.ServiceMaxConnections }),
		Example: "service_max_connections 1000",
	},
	{
		Name: "service_max_idle_timeout", Values: "<duration>",
		Parse:   duration(func(d *draft) *settings.Duration { return &d.config.ServiceMaxIdleTimeout }, time.Second),
		Example: "service_max_idle_timeout 10m",
	},
	{
		Name: "stream_chain", Values: "<name> { <routes...> }", Parse: setStreamChain,
		Doc: "Routes of [caddy-l4](https://github.com/mholt/caddy-l4) through which the connections of a TCP port " +
			"pass before they are forwarded, for Services that list this chain in the annotation " +
			"`k8singress.io/stream-chains`. The block contains matchers and routes, as in the global option " +
			"`layer4`. [TCP and UDP](tcp-udp.md#chains) has a complete example. The option may be repeated with " +
			"different names.",
		Example: "stream_chain office {\n\t@outside not remote_ip 10.0.0.0/8\n\troute @outside {\n\t\tclose\n\t}\n}",
		Default: "none",
	},
}

// endpointOptions configure which endpoints requests can reach.
var endpointOptions = option.Table[draft, *line]{
	{
		Name: "external_names", Values: "off | all",
		Parse: one(func(d *draft) *string { return &d.config.ExternalNames },
			words("; without the option, only addresses of other machines are allowed", settings.ExternalNamesOff,
				settings.ExternalNamesAll)),
		Example: "external_names off",
	},
	{
		Name: "reach_allow", Values: "<network>...",
		Parse:   many(func(d *draft) *[]string { return &d.config.ReachAllow }, network),
		Doc:     "[Tenants](tenants.md#endpoints) describes the rules.",
		Example: "reach_allow 127.0.0.0/8 ::1/128",
	},
	{
		Name: "reach_deny", Values: "<network>...",
		Parse:   many(func(d *draft) *[]string { return &d.config.ReachDeny }, network),
		Example: "reach_deny 10.0.0.0/16",
	},
	{
		Name: "resolvers", Values: "<ip or ip:port>...",
		Parse:   many(func(d *draft) *[]string { return &d.config.Resolvers }, dnsServer),
		Example: "resolvers 10.96.0.10 192.0.2.53:5353",
	},
	{
		Name: "zone", Values: "<name>", Parse: one(func(d *draft) *string { return &d.config.Zone }, zone),
		Example: "zone {env.ZONE}",
	},
}
