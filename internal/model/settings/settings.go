// Package settings defines the options of the ingress controller, in the JSON form of apps.k8singress. The global
// option of a Caddyfile sets them, and package engine reads them.
package settings

//go:generate go test -run ^TestOptions$ -update

import (
	"encoding/json"

	"github.com/k8singress/k8singress/internal/model/ir"
)

// Config holds the options of the controller. The zero value of a field means its default. The documentation of the
// Caddyfile contains the first paragraph of each field's comment, without the name of the field. In JSON, a reference
// to an object is a string of the form namespace/name.
type Config struct {
	// Source is the source of Kubernetes objects. If it is nil, nothing is watched, and the process serves the live
	// configuration that it receives with PUT /k8singress/config.
	Source *Source `json:"source,omitempty"`

	// IngressClass is the value of the older annotation `kubernetes.io/ingress.class` with which an Ingress selects
	// this controller. The newer field `spec.ingressClassName` refers to an IngressClass instead. The controller serves
	// each IngressClass whose `spec.controller` is the value of `controller_name`, whatever the name of the
	// IngressClass is. With the option `manifests`, and only then, an Ingress may also use the value of `ingress_class`
	// in `spec.ingressClassName` if no IngressClass with this name exists. Default: nginx.
	IngressClass string `json:"ingress_class,omitempty"`
	// IngressClassByName also serves Ingresses whose `spec.ingressClassName` is the name in `ingress_class`, even if no
	// IngressClass with this name exists, or if its `spec.controller` names another controller. This is the default if
	// `namespaces` is set and the controller has no permission to read IngressClasses. Default: IngressClasses are
	// selected by `spec.controller`.
	IngressClassByName bool `json:"ingress_class_by_name,omitempty"`
	// ControllerName is the `spec.controller` of the IngressClasses that this controller serves. The default is the
	// value that ingress-nginx uses, because `spec.controller` of an existing IngressClass cannot be changed. Default:
	// k8s.io/ingress-nginx.
	ControllerName string `json:"controller_name,omitempty"`
	// WatchIngressWithoutClass also serves Ingresses without a class. Default: such Ingresses are served only if an
	// IngressClass of this controller is the default class.
	WatchIngressWithoutClass bool `json:"watch_ingress_without_class,omitempty"`

	// DisableCatchAll rejects rules without a host, Ingresses that only have a default backend, and aliases
	// (`server-alias`) that are regular expressions or wildcards below a public suffix, such as `*.com`. Each of these
	// would serve hosts that belong to other namespaces. Default: Ingresses without a host serve all hosts that are not
	// in another Ingress.
	DisableCatchAll bool `json:"disable_catch_all,omitempty"`
	// Snippets controls snippets of nginx configuration. With `ignore`, all Ingresses are served without their snippets
	// and without the snippets of the ConfigMap, and get a warning, even if a snippet would reject requests. The keys
	// annotations-risk-level and allow-snippet-annotations then do not apply to snippets. The option also applies to
	// ModSecurity. Default: [snippets](snippets.md) are interpreted, and an Ingress with a snippet that may reject
	// requests and is not supported gets 503.
	Snippets string `json:"snippets,omitempty"`

	// HTTP lists the addresses on which the HTTP servers listen. Default: :80.
	//
	// An empty list means that there are no HTTP servers.
	HTTP []string `json:"http,omitzero"`
	// HTTPS lists the addresses on which the HTTPS servers listen. The servers also serve HTTP/2 and HTTP/3. Default:
	// :443.
	//
	// An empty list means that there are no HTTPS servers.
	HTTPS []string `json:"https,omitzero"`
	// ServerNames maps the options `http` and `https` to the names of their servers in Caddy's configuration, metrics
	// and logs. In the Caddyfile, it is `name` in Caddy's global option `servers`. Default: k8singress_http and
	// k8singress_https.
	ServerNames map[string]string `json:"server_names,omitempty"`
	// HTTP3 disables HTTP/3 if it is `off`: nothing listens on UDP at the addresses of `https`, and no response has an
	// `Alt-Svc` header. Set `http3 off` if UDP packets do not reach the controller, for example behind a load balancer
	// that supports only TCP. Otherwise browsers try HTTP/3 without success. Default: HTTP/3 is on, with UDP on the
	// ports of `https`.
	HTTP3 string `json:"http3,omitempty"`
	// H2C accepts HTTP/2 without TLS (with prior knowledge) on the addresses in `http`. Some load balancers use HTTP/2
	// without TLS, and so do gRPC clients without TLS. Default: HTTP/2 without TLS gets 400.
	H2C bool `json:"h2c,omitempty"`

	// SharePorts allows another process to listen on the addresses in `http`, `https` and `health` at the same time,
	// including HTTP/3. The kernel distributes the connections among the processes. Use the option if a new process
	// replaces an old process on the same machine without an interruption, and set it in both processes. HTTP/3 clients
	// may have to connect again. The ports of `tcp_services` and `udp_services` cannot be shared, and a Unix socket
	// belongs to the process that opened it last. Default: a process does not start while another process listens on
	// the same addresses.
	SharePorts bool `json:"share_ports,omitempty"`

	// Health is the address on which health probes are served. `/healthz` returns 200 while the process works.
	// `/readyz` returns 503 until all objects have been applied, then 200, and 503 again after the shutdown has begun.
	// A process does not start while another process listens on the address, unless both processes have `share_ports`.
	// Default: none.
	Health string `json:"health,omitempty"`
	// HealthPath is the path that is used instead of `/healthz` on the address in `health`. Default: /healthz.
	HealthPath string `json:"health_path,omitempty"`
	// HealthReady makes `/healthz`, or the path in `health_path`, return the same status as `/readyz`. Use it for pods
	// whose liveness and readiness probes use the same path, as in ingress-nginx. Default: `/healthz` returns 200 while
	// the process works.
	HealthReady bool `json:"health_ready,omitempty"`
	// HealthMetrics also serves `/metrics` on the address in `health`, with the same metrics as the admin API. Every
	// client that can connect to this address can read the metrics. Default: only the admin API serves metrics.
	HealthMetrics bool `json:"health_metrics,omitempty"`
	// AdmissionWebhook answers the API server's questions whether an Ingress may be created or changed (a validating
	// admission webhook). An Ingress with a mistake that ingress-nginx refuses, such as an annotation that cannot be
	// read, is refused, and kubectl prints the reason. The address is also excluded from the ports of TCP services.
	// Default: off.
	AdmissionWebhook *AdmissionWebhook `json:"admission_webhook,omitempty"`
	// NginxMetrics adds metrics with the names of ingress-nginx, which begin with `nginx_ingress_controller_`, to
	// `/metrics` on the address in `health`. Dashboards, alerts and canary tools for ingress-nginx read them. The
	// option requires `health_metrics`. Default: on for `caddy k8singress run`, otherwise off.
	NginxMetrics *NginxMetrics `json:"nginx_metrics,omitempty"`
	// ShutdownDelay is how long new requests are still accepted after the shutdown has begun, so that load balancers
	// notice the shutdown by the status of `/readyz`. During this time, each response asks its client to open a new
	// connection, which a load balancer directs to another replica: by `Connection: close` in HTTP/1.1, or by a GOAWAY
	// frame in HTTP/2. The option sets Caddy's global option `shutdown_delay`, so it also applies to sites of your own.
	// Default: the value of Caddy's option `shutdown_delay` if it is set, otherwise 0s.
	ShutdownDelay Duration `json:"shutdown_delay,omitempty"`
	// ShutdownTimeout is how long requests in progress may take after `shutdown_delay`, including WebSockets and other
	// streams. The process exits as soon as these requests are complete. The option sets Caddy's global option
	// `grace_period`, so it also applies to sites of your own. In a pod, `terminationGracePeriodSeconds` has to be
	// longer than the sum of `shutdown_delay` and `shutdown_timeout`. Default: the value of Caddy's option
	// `grace_period` if it is set, otherwise 240s, as in ingress-nginx.
	ShutdownTimeout Duration `json:"shutdown_timeout,omitempty"`

	// ConfigMap is the ConfigMap with the global options of ingress-nginx. Changes take effect immediately. An
	// IngressClass can have its own ConfigMap in `spec.parameters`. If these parameters have the scope Cluster, they
	// name a ConfigMap in the namespace of the ConfigMap in this option. Default: none.
	ConfigMap ir.Name `json:"configmap,omitzero"`
	// TCPServices is the ConfigMap with the TCP ports to open, in the format of ingress-nginx. Default: none.
	TCPServices ir.Name `json:"tcp_services,omitzero"`
	// UDPServices is the ConfigMap with the UDP ports to open, in the format of ingress-nginx. Default: none.
	UDPServices ir.Name `json:"udp_services,omitzero"`
	// StreamBind lists the IP addresses on which TCP and UDP ports are opened. With `stream_bind 127.0.0.1`, the ports
	// can only be reached from inside the pod or the machine, and not through a Service. Default: all.
	StreamBind []string `json:"stream_bind,omitempty"`
	// ServiceTCPPorts lists the TCP ports that a Service may open with its annotation `k8singress.io/tcp-ports`. The
	// ports of `http`, `https`, `health` and the admin API are always excluded. If the ConfigMap of `tcp_services` also
	// defines a port, the ConfigMap takes precedence. Default: none.
	ServiceTCPPorts []string `json:"service_tcp_ports,omitempty"`
	// ServiceUDPPorts lists the UDP ports that a Service may open with its annotation `k8singress.io/udp-ports`. As
	// with `service_tcp_ports`, the controller's own ports are excluded, and the ConfigMap (`udp_services`) takes
	// precedence. Default: none.
	ServiceUDPPorts []string `json:"service_udp_ports,omitempty"`
	// ServicePortNamespaces lists the namespaces whose Services may open TCP and UDP ports with annotations. Each entry
	// is a name, or a prefix of names followed by `*`. The option requires `service_tcp_ports` or `service_udp_ports`.
	// Default: all.
	ServicePortNamespaces []string `json:"service_port_namespaces,omitempty"`
	// ServicePortsPerNamespace is the maximum number of TCP and UDP ports, added together, that all Services in one
	// namespace can open with annotations. If the Services request more ports, the oldest Services get their ports, and
	// the other Services get a warning. Ports in the ConfigMaps of `tcp_services` and `udp_services` do not count.
	// Default: 32.
	ServicePortsPerNamespace int `json:"service_ports_per_namespace,omitempty"`
	// ServiceMaxConnections is the maximum value of the annotation `k8singress.io/stream-max-connections` of a Service.
	// If a Service has a higher value, this maximum applies to its ports. Each client of a UDP port uses one file
	// descriptor, and each connection to a TCP port uses two. Default: 16384.
	ServiceMaxConnections int `json:"service_max_connections,omitempty"`
	// ServiceMaxIdleTimeout is the maximum value of the annotation `k8singress.io/stream-idle-timeout` of a Service. If
	// a Service has a higher value, this maximum applies to its ports. Default: 1h.
	ServiceMaxIdleTimeout Duration `json:"service_max_idle_timeout,omitempty"`

	// BodyFiles is the maximum total size of the request and response bodies that are buffered in temporary files. The
	// environment variable `TMPDIR` sets the folder of these files. The files have no names, so tools that sum up file
	// sizes do not see them. All namespaces share this space, and a single namespace can use about eight ninths of it.
	// If no space is left, a body is forwarded while it arrives. A slow client then also keeps its endpoint busy, and
	// the request cannot be retried at another endpoint. Default: 8GiB.
	//
	// In JSON, the size is in bytes.
	BodyFiles int64 `json:"body_files,omitempty"`
	// StrictPaths responds with 400 to all requests whose path is ambiguous. A path is ambiguous if servers can
	// interpret it in more than one way, because it contains a dot segment, two slashes in a row, a semicolon, a
	// backslash, a percent-encoded dot, slash, semicolon or backslash, or a double encoding such as `%252f`. Registries
	// and object stores use names with an encoded slash: requests for such names also get 400. Default: an ambiguous
	// path is rejected only if one interpretation leads to a route with different access control, or to no route.
	StrictPaths bool `json:"strict_paths,omitempty"`
	// AccessLog selects the access log. If it is `caddy`, requests are logged as Caddy logs the requests of sites: to
	// the logger `http.log.access`, with Caddy's fields and the fields `namespace`, `ingress`, `service`, `endpoint`
	// and `request_id`. If it is `off`, neither requests nor connections to TCP and UDP ports are logged, even if the
	// ConfigMap configures an access log. Default: requests and connections are logged to standard output, in the
	// formats of ingress-nginx.
	AccessLog string `json:"access_log,omitempty"`
	// LogCredentials writes the values of header fields with credentials, such as `Cookie` and `Authorization`, to the
	// access log in Caddy's format. In the Caddyfile, it is `log_credentials` in Caddy's global option `servers`.
	// Default: the values are `REDACTED`.
	LogCredentials bool `json:"log_credentials,omitempty"`
	// ErrorBodies set to `off` makes the error responses of the controller itself empty. Default: they have a short
	// body with the status, the word `k8singress` and the request ID of the log line, as text, HTML or JSON.
	ErrorBodies string `json:"error_bodies,omitempty"`
	// DisableRouteMetrics turns off the metrics `k8singress_route_*`, which have 24 series for each route with
	// traffic. Default: false.
	DisableRouteMetrics bool `json:"disable_route_metrics,omitempty"`
	// Via adds a Via header to responses, which shows clients that they passed through this server. Default: false.
	Via bool `json:"via,omitempty"`
	// ViaEndpoints adds this server to the Via header of requests to endpoints and to services such as auth-url. Some
	// servers compress no responses to such requests. Default: false, and a Via header of the client is forwarded.
	ViaEndpoints bool `json:"via_endpoints,omitempty"`

	// ExternalNames is the addresses to which the names in Services of type `ExternalName` may resolve. By default, all
	// addresses are allowed except loopback, link-local and multicast addresses, and the addresses of this machine, the
	// API server and cloud metadata services. With `all`, only the networks of `reach_deny` and the addresses that
	// Caddy itself listens on are forbidden; use `all` if Caddy runs on the same machine as the services. With `off`,
	// Services of type `ExternalName` are rejected. `reach_allow` does not apply to Services of type `ExternalName`.
	// Default: addresses of other machines.
	ExternalNames string `json:"external_names,omitempty"`
	// ReachAllow lists networks whose addresses are allowed for endpoints, although they are forbidden by default.
	// Loopback, link-local and multicast addresses, and the addresses of cloud metadata services, are forbidden by
	// default. If Caddy runs on the same machine as the services, set `reach_allow 127.0.0.0/8 ::1/128`. The addresses
	// that the process itself listens on stay forbidden. Default: none.
	ReachAllow []string `json:"reach_allow,omitempty"`
	// ReachDeny lists networks whose addresses are forbidden for endpoints and for the targets of `ExternalName`
	// Services. If networks in both `reach_allow` and `reach_deny` contain an address, the smallest of these networks
	// decides. Default: none.
	ReachDeny []string `json:"reach_deny,omitempty"`
	// Resolvers lists the DNS servers for the names of `ExternalName` Services, with a port if it is not 53. The search
	// domains still come from `/etc/resolv.conf`. Default: the servers in `/etc/resolv.conf`.
	Resolvers []string `json:"resolvers,omitempty"`
	// Zone is the topology zone in which Caddy runs. If the EndpointSlices of a Service have zone hints, its requests
	// are sent only to endpoints in this zone. The field `trafficDistribution` of the Service can enable these hints.
	// `{env.ZONE}` is replaced with the value of the environment variable ZONE, which the downward API can set from the
	// label `topology.kubernetes.io/zone` of the pod. If the variable is empty, no zone is configured. Default: none,
	// and zone hints are ignored.
	Zone string `json:"zone,omitempty"`

	// PublishService is the Service whose addresses are written to the status of Ingresses. Default: none.
	PublishService ir.Name `json:"publish_service,omitzero"`
	// PublishPorts keeps the ports of the Service in `publish_service` in sync with the open TCP and UDP ports. Other
	// ports of the Service are not changed. The option requires permission to patch the Service. Default: the Service
	// is not changed.
	PublishPorts bool `json:"publish_ports,omitempty"`
	// PublishAddress lists the IP addresses and host names that are written to the status of Ingresses, instead of the
	// addresses of a Service. Default: none.
	PublishAddress []string `json:"publish_address,omitempty"`

	// PublishNodes writes node addresses to the status of Ingresses: the addresses of the nodes with ready controller
	// pods. Use it for pods that use ports of their nodes, for example with `hostNetwork`. `internal` selects the
	// internal address of each node; `external` selects the external address, or the internal address if there is no
	// external address. The controller's pods are found by their labels. The option requires permission to list and
	// watch nodes, and the pods in the controller's namespace. If `publish_service` is also set, it only identifies the
	// controller's own Service, and the addresses of the Service are not written. Default: none.
	PublishNodes string `json:"publish_nodes,omitempty"`

	// Status disables the status if it is `off`: no addresses are written to the status of Ingresses, even if
	// `publish_service` or `publish_address` is set. `publish_service` still identifies the controller's own Service.
	// Default: addresses are written if one of the options `publish_*` configures them.
	Status string `json:"status,omitempty"`

	// SSLPassthrough enables the annotation `ssl-passthrough`, with which an Ingress forwards the TLS connections of
	// its hosts to a backend that terminates TLS itself. The option corresponds to the flag `--enable-ssl-passthrough`
	// of ingress-nginx. When an Ingress gets the annotation, no reload is necessary. Default: the annotation has no
	// effect, and the controller terminates TLS.
	SSLPassthrough bool `json:"ssl_passthrough,omitempty"`
	// DefaultBackend is the Service for requests that do not match a host and path of an Ingress. The option
	// corresponds to the flag `--default-backend-service` of ingress-nginx. The Service also provides the error pages
	// of `custom-http-errors` if an Ingress has no `default-backend`. The controller sends HTTP requests to the port in
	// the option or, without a port, to the first port of the Service. If the Service has no endpoints or does not
	// respond, clients get the original error. Annotations of Ingresses do not apply to the responses of the Service.
	// Default: none: requests that do not match an Ingress get 404.
	//
	// It is namespace/name, with ":port" appended if it is not the first port.
	DefaultBackend ir.ServicePort `json:"default_backend,omitzero"`
	// DefaultCertificate is the Secret with the certificate for server names for which there is no other certificate.
	// Default: a self-signed certificate.
	DefaultCertificate ir.Name `json:"default_certificate,omitzero"`
	// AutoHTTPS selects the hosts of Ingresses for which the controller gets certificates from an issuer. `off` selects
	// no hosts, even if an Ingress requests a certificate. `all` selects all hosts without a Secret. Default: the hosts
	// of an entry of `spec.tls` without `secretName`.
	AutoHTTPS string `json:"auto_https,omitempty"`
	// AutoHTTPSExcept lists the namespaces whose Ingresses get no certificates from an issuer, even if the Ingresses
	// request them. Default: none.
	AutoHTTPSExcept []string `json:"auto_https_except,omitempty"`
	// ACMEOnMissingSecret requests certificates from an issuer for the hosts of an entry in `spec.tls` whose Secret
	// does not exist. As soon as the Secret exists, its certificate is used instead. Default: hosts whose Secret does
	// not exist get the default certificate.
	ACMEOnMissingSecret bool `json:"acme_on_missing_secret,omitempty"`
	// Email is the contact address that the certificate authority for Ingress hosts gets. Default: Caddy's global
	// option `email`, which sites use, too.
	Email string `json:"email,omitempty"`
	// ACMECA is the URL of the ACME directory of the certificate authority for Ingress hosts. A private certificate
	// authority may issue certificates for any name, such as `web.local`. If this machine does not trust the TLS
	// certificate of the directory, use Caddy's global option `acme_ca_root`, or `issuer acme` with `dir` and
	// `trusted_roots` instead. Default: Caddy's global option `acme_ca`, or Caddy's default certificate authorities.
	ACMECA string `json:"acme_ca,omitempty"`
	// Issuers lists the issuers of certificates for Ingress hosts, which are modules of Caddy's namespace tls.issuance.
	// They are tried in order until one issues a certificate. Caddy's global options, such as `acme_dns` and
	// `acme_eab`, are the defaults of each issuer. Default: Caddy's global option `cert_issuer`, or ACME with Email and
	// ACMECA.
	Issuers []json.RawMessage `json:"issuers,omitempty" caddy:"namespace=tls.issuance inline_key=module"`
	// OnDemand decides for which names the annotation `k8singress.io/on-demand-tls` gets certificates. It is
	// a module of Caddy's namespace tls.permission. The module at `apps.tls.automation.on_demand`, which is Caddy's
	// global option `on_demand_tls`, takes precedence. Default: none, and no certificates are requested on demand.
	OnDemand json.RawMessage `json:"on_demand_permission,omitempty" caddy:"namespace=tls.permission inline_key=module"`
	// KeyType is the key type of certificates from issuers: `p256`, `p384`, `rsa2048`, `rsa4096` or `ed25519`. Default:
	// Caddy's global option `key_type`, or p256.
	KeyType string `json:"key_type,omitempty"`
	// HostsPerNamespace is the maximum number of hosts of one namespace for which the controller gets certificates from
	// an issuer. If a namespace has more hosts, wildcards take precedence over other hosts, and older hosts over newer
	// ones. The limit prevents one team from using up the rate limit of the certificate authority for all teams.
	// Default: 100.
	HostsPerNamespace int `json:"hosts_per_namespace,omitempty"`
	// NewHostsPerDay is the maximum number of new names of one namespace for which certificates are requested within 24
	// hours. A name counts even if the request fails or the host is deleted again. Renewals and retries for the same
	// name do not count. Certificate authorities limit the orders of an account, so a namespace that keeps replacing
	// its hosts would use up this limit for all namespaces. Caddy's storage keeps the count. Default: four times
	// `hosts_per_namespace`.
	NewHostsPerDay int `json:"new_hosts_per_day,omitempty"`
	// CheckHostDNS requests certificates only for names that resolve to this controller: the DNS servers in
	// `resolvers`, or of the system, must return an address of `publish_address` or `publish_service`. Do not set the
	// option if names resolve to different addresses inside the cluster and on the internet (split-horizon DNS), or if
	// the DNS records point to a proxy in front of the controller. Wildcard names are not checked. Default: off.
	CheckHostDNS bool `json:"check_host_dns,omitempty"`

	// HostOwnership is how Ingresses of several namespaces share a host. The owner of a host is the namespace of its
	// oldest Ingress. With `shared`, the paths of all namespaces are served, and only the owner can configure the whole
	// host. With `namespace`, only the owner's Ingresses are served on the host, and on all hosts that a wildcard of
	// the owner matches. Default: shared.
	HostOwnership string `json:"host_ownership,omitempty"`
	// HostOwners lists the namespaces that may own a host. The keys are a host name, a wildcard for all names below a
	// domain, or "*" for every other host. The values are names of namespaces, and prefixes of names such as team-*.
	// Default: all namespaces.
	HostOwners map[string][]string `json:"host_owners,omitempty"`
	// ACMESolverNamespaces lists the namespaces whose Ingresses may serve HTTP-01 challenges of certificate
	// authorities, below `/.well-known/acme-challenge`, even on hosts on which `host_ownership` or `host_owner`
	// excludes these namespaces. This does not apply to hosts that require client certificates. Default: none.
	ACMESolverNamespaces []string `json:"acme_solver_namespaces,omitempty"`

	// Chains maps names to lists of Caddy HTTP routes. An Ingress selects lists with the annotation
	// k8singress.io/chains, and the routes of these lists process a request before it goes to the backend. Only the
	// administrator can define the lists, so Caddy placeholders in them are replaced. Default: none.
	Chains map[string]json.RawMessage `json:"chains,omitempty"`
	// StreamChains maps names to lists of caddy-l4 routes. A Service selects lists with the annotation
	// k8singress.io/stream-chains, and the routes of these lists process each connection of a TCP port before it goes
	// to an endpoint. Only the administrator can define the lists. The form is the same as in caddy-l4's handler
	// `subroute`. Default: none.
	StreamChains map[string]json.RawMessage `json:"stream_chains,omitempty"`
	// DefaultChains lists the chains through which requests for Ingresses run whatever the annotations of the Ingresses
	// contain. They run in the order of this list. Default: none.
	DefaultChains []DefaultChain `json:"default_chains,omitempty"`

	// ElectionID is the name of the Lease for leader election. Only the replica that holds the Lease writes status and
	// Events. All replicas serve requests. Default: k8singress-leader.
	ElectionID string `json:"election_id,omitempty"`
	// ElectionFallback is the name of the Lease that is used if RBAC allows access to this Lease, and not to the Lease
	// in `election_id`. The RBAC rules of ingress-nginx allow access to its own Lease only. Default: none.
	ElectionFallback string `json:"election_fallback,omitempty"`
	// ElectionNamespace is the namespace of the Lease. Default: the namespace that Caddy runs in.
	ElectionNamespace string `json:"election_namespace,omitempty"`
	// ElectionTTL is how long the Lease stays valid if its holder does not renew it. The holder retries for two thirds
	// of this time. If the holder crashes, another replica starts to write status and Events after this time. Default:
	// 15s.
	ElectionTTL Duration `json:"election_ttl,omitempty"`
	// Election disables leader election if it is `off`: no Lease is used, and every replica writes status and Events,
	// and requests certificates. Use `off` for a controller with one replica and without permission to use Leases.
	// Default: only the holder of the Lease writes status and Events.
	Election string `json:"election,omitempty"`

	// Admin is the address of Caddy's admin API, from "listen" in "admin" of Caddy's JSON configuration, or "off".
	// Default: Caddy's default, which is the environment variable CADDY_ADMIN, or localhost:2019.
	Admin string `json:"admin,omitempty"`
}

// AdmissionWebhook configures the validating admission webhook. Either Certificate and Key are set, or Configuration.
type AdmissionWebhook struct {
	// Listen is the address on which the webhook listens. Default: :8443.
	Listen string `json:"listen,omitempty"`
	// Certificate is the path of a PEM file with the certificate chain of the webhook. It is read again when it or the
	// file in Key changes. Default: none.
	Certificate string `json:"certificate,omitempty"`
	// Key is the path of a PEM file with the private key of the certificate. Default: none.
	Key string `json:"key,omitempty"`
	// Configuration is the name of the ValidatingWebhookConfiguration of the webhook. If it is set, the controller
	// creates a certificate authority, issues the certificate of the webhook, and writes the certificate of the
	// authority to caBundle in this object. Default: none.
	Configuration string `json:"configuration,omitempty"`
}

// DefaultChain is a chain that runs for all Ingresses, or for the Ingresses that its lists select.
type DefaultChain struct {
	// Chain is the name of the chain, a key of Chains.
	Chain string `json:"chain"`
	// Namespaces selects Ingresses by their namespace: names, and prefixes of names such as team-*. Default: all.
	Namespaces []string `json:"namespaces,omitempty"`
	// Classes selects Ingresses by the name of their IngressClass. Default: all, including Ingresses without a class.
	Classes []string `json:"classes,omitempty"`
	// Except lists the namespaces whose Ingresses are not selected: names, and prefixes of names such as team-*.
	// Default: none.
	Except []string `json:"except,omitempty"`
}

// NginxMetrics configures the metrics with the names of ingress-nginx. The zero value of a field means its default.
type NginxMetrics struct {
	// Off removes the metrics.
	Off bool `json:"off,omitempty"`
	// WithoutHost removes the label host from the metrics of requests. Default: false.
	WithoutHost bool `json:"without_host,omitempty"`
	// UndefinedHosts also counts requests that match no route, with the label host "_". Without the label host, they
	// are always counted. Default: false.
	UndefinedHosts bool `json:"undefined_hosts,omitempty"`
	// StatusClasses replaces the status in the label status by its class, such as 2xx. Default: false.
	StatusClasses bool `json:"status_classes,omitempty"`
	// Exclude lists the metrics of requests that are not counted, without the prefix nginx_ingress_controller_.
	// NginxRequestMetrics has the names. Default: none.
	Exclude []string `json:"exclude,omitempty"`
	// TimeBuckets are the upper bounds of the buckets of durations, in seconds. Default: .005 .01 .025 .05 .1 .25 .5 1
	// 2.5 5 10.
	TimeBuckets []float64 `json:"time_buckets,omitempty"`
	// LengthBuckets are the upper bounds of the buckets of request_size and response_size, in bytes. Default: 10 20 30
	// 40 50 60 70 80 90 100.
	LengthBuckets []float64 `json:"length_buckets,omitempty"`
	// SizeBuckets are the upper bounds of the buckets of bytes_sent, in bytes. Default: 10 100 1000 10000 100000 1e+06
	// 1e+07.
	SizeBuckets []float64 `json:"size_buckets,omitempty"`
	// BucketFactor adds native histograms, in which each bound is at most this factor above the one before. It must be
	// above 1. Prometheus gets them in its protobuf format only. Default: no native histograms.
	BucketFactor float64 `json:"bucket_factor,omitempty"`
	// MaxBuckets is the maximum number of buckets of a native histogram. Default: 100.
	MaxBuckets int `json:"max_buckets,omitempty"`
	// MaxLabelSets is the maximum number of different label sets of requests of one namespace. All namespaces together
	// can have an eighth more. Further label sets have the value _other for path and method. Default: 5000.
	MaxLabelSets int `json:"max_label_sets,omitempty"`
}

// Source is a source of Kubernetes objects. Exactly one field is set.
type Source struct {
	// Kubernetes configures how objects are read from an API server.
	Kubernetes *Kubernetes `json:"kubernetes,omitempty"`
	// Manifests reads objects from the files in a folder.
	Manifests *Manifests `json:"manifests,omitempty"`
}

// Kubernetes configures the access to an API server.
type Kubernetes struct {
	// Kubeconfig is the path of a kubeconfig file for access to the API server. Default: the service account of the pod
	// that Caddy runs in.
	Kubeconfig string `json:"kubeconfig,omitempty"`
	// Namespaces limits the watch to these namespaces. Default: all.
	Namespaces []string `json:"namespaces,omitempty"`
	// NamespaceSelector serves only Ingresses of namespaces whose labels match, such as `team=shop` or `"team in (shop,
	// web)"`. Default: all.
	//
	// The status of other Ingresses is not changed.
	NamespaceSelector string `json:"namespace_selector,omitempty"`
	// Secrets is the Secrets that the controller reads. With `all`, the controller reads all Secrets in the namespaces
	// that it watches. With `referenced`, it reads only the Secrets to which Ingresses and options refer. It watches
	// each of these Secrets by name, and needs no permission to read other Secrets. If it has no permission to read a
	// Secret to which an Ingress refers, it reports a problem of the Ingress. Default: all.
	Secrets string `json:"secrets,omitempty"`
}

// Manifests configures a folder with manifests.
type Manifests struct {
	// Dir is the path of the folder. Its YAML and JSON files are read at the start, and again when they change.
	Dir string `json:"dir"`
}
