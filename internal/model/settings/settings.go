// Package settings defines the options of the ingress controller, in the JSON form of apps.k8singress. The global
// option of a Caddyfile sets them, and package engine reads them.
package settings

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/k8singress/k8singress/internal/model/ir"
)

// The default values of the most important options, and of options whose defaults differ from ingress-nginx's flags.
// DefaultElectionID differs from the name of ingress-nginx's Lease, so that both controllers can run side by side.
const (
	DefaultIngressClass   = "nginx"
	DefaultControllerName = "k8s.io/ingress-nginx"
	DefaultHTTP           = ":80"
	DefaultHTTPS          = ":443"
	DefaultElectionID     = "k8singress-leader"
)

// DefaultShutdownTimeout is the default of ingress-nginx's worker-shutdown-timeout.
const DefaultShutdownTimeout = Duration(240 * time.Second)

// The default limits for TCP and UDP ports that Services open with annotations.
const (
	DefaultServicePortsPerNamespace = 32
	DefaultServiceMaxConnections    = 16 << 10
	DefaultServiceMaxIdleTimeout    = Duration(time.Hour)
)

// DefaultHostsPerNamespace is the default of Config.HostsPerNamespace. It prevents one namespace from using up the
// weekly rate limit of a certificate authority.
const DefaultHostsPerNamespace = 100

// MinElectionTTL is the minimum value of Config.ElectionTTL. The holder of the Lease renews it several times within
// this time.
const MinElectionTTL = 5 * time.Second

// AdminOff is the value of Config.Admin if the admin API is turned off.
const AdminOff = "off"

// ExternalNamesAll and ExternalNamesOff are the values of Config.ExternalNames.
const (
	ExternalNamesAll = "all"
	ExternalNamesOff = "off"
)

// AccessLogOff is the value of Config.AccessLog that disables the access log.
const AccessLogOff = "off"

// SnippetsIgnore is the value of Config.Snippets that serves Ingresses without their snippets.
const SnippetsIgnore = "ignore"

// HTTP3Off is the value of Config.HTTP3 that disables HTTP/3.
const HTTP3Off = "off"

// PublishNodesInternal and PublishNodesExternal are the values of Config.PublishNodes.
const (
	PublishNodesInternal = "internal"
	PublishNodesExternal = "external"
)

// ElectionOff is the value of Config.Election that disables leader election.
const ElectionOff = "off"

// StatusOff is the value of Config.Status that disables writing addresses to the status.
const StatusOff = "off"

// AutoHTTPSAll and AutoHTTPSOff are the values of Config.AutoHTTPS.
const (
	AutoHTTPSAll = "all"
	AutoHTTPSOff = "off"
)

// HostOwnershipShared and HostOwnershipNamespace are the values of Config.HostOwnership.
const (
	HostOwnershipShared    = "shared"
	HostOwnershipNamespace = "namespace"
)

// SecretsAll and SecretsReferenced are the values of Kubernetes.Secrets.
const (
	SecretsAll        = "all"
	SecretsReferenced = "referenced"
)

// Config holds the options of the controller. The zero value of a field means its default.
type Config struct {
	// Source is the source of Kubernetes objects. If it is nil, nothing is watched, and the process serves the live
	// configuration that it receives with PUT /k8singress/config.
	Source *Source `json:"source,omitempty"`

	// IngressClass is the value of the older annotation kubernetes.io/ingress.class that selects this controller. The
	// field spec.ingressClassName works differently: it refers to an IngressClass, and Ingresses of every IngressClass
	// with our ControllerName are served, whatever its name. If objects are read from manifests, spec.ingressClassName
	// may also be this value without an IngressClass object. Default: nginx.
	IngressClass string `json:"ingress_class,omitempty"`
	// IngressClassByName also serves Ingresses whose spec.ingressClassName is IngressClass, even if the IngressClass
	// does not exist or has another spec.controller. Default: false. It is always on if reading IngressClasses is not
	// permitted and only some namespaces are watched.
	IngressClassByName bool `json:"ingress_class_by_name,omitempty"`
	// ControllerName is the spec.controller of the IngressClasses that this controller serves. Default:
	// k8s.io/ingress-nginx, because the field of an existing IngressClass cannot be changed.
	ControllerName string `json:"controller_name,omitempty"`
	// WatchIngressWithoutClass also serves Ingresses without a class. Default: false.
	WatchIngressWithoutClass bool `json:"watch_ingress_without_class,omitempty"`

	// DisableCatchAll rejects rules without a host and Ingresses that only have a default backend, because they would
	// match every host. Default: false.
	DisableCatchAll bool `json:"disable_catch_all,omitempty"`
	// Snippets controls Ingresses with snippets of nginx configuration that may restrict access. If it is empty, all
	// requests to such an Ingress get 503. With `ignore`, the Ingress is served without the snippets.
	Snippets string `json:"snippets,omitempty"`

	// HTTP lists the addresses that serve HTTP. An empty list means that HTTP is not served. Default: [":80"].
	HTTP []string `json:"http,omitzero"`
	// HTTPS lists the addresses that serve HTTPS. An empty list means that HTTPS is not served. Default: [":443"].
	HTTPS []string `json:"https,omitzero"`
	// HTTP3 is "off" to disable HTTP/3: the HTTPS addresses then do not listen on UDP, and responses do not advertise
	// HTTP/3. Default: HTTP/3 is enabled.
	HTTP3 string `json:"http3,omitempty"`
	// H2C enables HTTP/2 without TLS at the HTTP addresses: h2c with prior knowledge. Default: false.
	H2C bool `json:"h2c,omitempty"`

	// SharePorts allows another process to listen on the addresses of HTTP, HTTPS and Health at the same time; each
	// process gets a part of the requests. Default: the process does not start while another process listens there.
	SharePorts bool `json:"share_ports,omitempty"`

	// Health is the address that serves /healthz and /readyz. Default: none.
	Health string `json:"health,omitempty"`
	// HealthPath is the path of the liveness probe at the address Health. Default: /healthz.
	HealthPath string `json:"health_path,omitempty"`
	// HealthReady makes HealthPath return the same status as /readyz. Default: false.
	HealthReady bool `json:"health_ready,omitempty"`
	// HealthMetrics also serves /metrics at the address Health. The admin API always serves it. Default: false.
	HealthMetrics bool `json:"health_metrics,omitempty"`
	// ShutdownDelay is how long new requests are still accepted after the process has received the signal to stop.
	// During this time /readyz fails, and every response asks the client to close its connection. Default: 0.
	ShutdownDelay Duration `json:"shutdown_delay,omitempty"`
	// ShutdownTimeout is how long active requests and streams may continue after ShutdownDelay. Default: 240 s.
	ShutdownTimeout Duration `json:"shutdown_timeout,omitempty"`

	// ConfigMap is the namespace/name of the ConfigMap with the global options of ingress-nginx. Default: none.
	ConfigMap ir.Name `json:"configmap,omitzero"`
	// TCPServices is the namespace/name of the ConfigMap with the TCP ports. Default: none.
	TCPServices ir.Name `json:"tcp_services,omitzero"`
	// UDPServices is the namespace/name of the ConfigMap with the UDP ports. Default: none.
	UDPServices ir.Name `json:"udp_services,omitzero"`
	// StreamBind lists the IP addresses that TCP and UDP ports listen on. Default: all.
	StreamBind []string `json:"stream_bind,omitempty"`
	// ServiceTCPPorts and ServiceUDPPorts list the ports that Services may open with the annotations
	// k8singress.io/tcp-ports and k8singress.io/udp-ports: numbers, and ranges such as 5000-5999. Default: none.
	ServiceTCPPorts []string `json:"service_tcp_ports,omitempty"`
	ServiceUDPPorts []string `json:"service_udp_ports,omitempty"`
	// ServicePortNamespaces lists the namespaces whose Services may open ports with these annotations: names of
	// namespaces, and prefixes of names such as team-*. Default: all.
	ServicePortNamespaces []string `json:"service_port_namespaces,omitempty"`
	// ServicePortsPerNamespace is the maximum number of TCP and UDP ports that the Services of one namespace may open
	// with these annotations in total. If there are more, the ports of the oldest Services are opened. Default: 32.
	ServicePortsPerNamespace int `json:"service_ports_per_namespace,omitempty"`
	// ServiceMaxConnections is the maximum value of a Service's annotation stream-max-connections.
	// ServiceMaxIdleTimeout is the maximum value of its annotation stream-idle-timeout. Defaults: 16384 and 1 h.
	ServiceMaxConnections int      `json:"service_max_connections,omitempty"`
	ServiceMaxIdleTimeout Duration `json:"service_max_idle_timeout,omitempty"`

	// BodyFiles is the maximum total size, in bytes, of the request and response bodies that are buffered in temporary
	// files. Namespaces share it. If it is reached, bodies are not buffered but forwarded while they arrive. Default: 8
	// GiB.
	BodyFiles int64 `json:"body_files,omitempty"`
	// StrictPaths rejects, with 400, every path that servers can interpret in more than one way: with dot segments, two
	// slashes, a semicolon, a backslash, or an escaped dot, slash, semicolon, backslash or escape. Default: such a path
	// is rejected only if one interpretation leads to a route with access control that the request has not passed.
	StrictPaths bool `json:"strict_paths,omitempty"`
	// AccessLog is "off" to log neither requests nor connections to TCP and UDP ports, whatever the ConfigMap says.
	// Default: the ConfigMap decides.
	AccessLog string `json:"access_log,omitempty"`
	// Via adds a Via header to responses, which shows clients that they passed through this server. Default: false.
	Via bool `json:"via,omitempty"`

	// ExternalNames limits the targets of Services of type ExternalName. "all" allows every address, except networks in
	// ReachDeny and the addresses that the process itself listens on. "off" rejects such Services. Default: all
	// addresses are allowed, except loopback, link-local and multicast addresses and the addresses of this machine, the
	// API server and cloud metadata services.
	ExternalNames string `json:"external_names,omitempty"`
	// ReachAllow lists networks in which endpoints may have addresses that are forbidden by default: loopback,
	// link-local and multicast addresses, and cloud metadata services. If an address is in several networks, the
	// narrowest network decides. The addresses that the process itself listens on stay forbidden. Default: none.
	ReachAllow []string `json:"reach_allow,omitempty"`
	// ReachDeny lists networks. Addresses in these networks are not allowed as endpoints or as targets of ExternalName
	// Services. Default: none.
	ReachDeny []string `json:"reach_deny,omitempty"`
	// Resolvers lists the IP addresses of the DNS servers for ExternalName Services, with a port if it is not 53.
	// Default: the servers in /etc/resolv.conf.
	Resolvers []string `json:"resolvers,omitempty"`
	// Zone is the topology zone of the process. If the EndpointSlices of a Service have topology hints, requests stay
	// in this zone. It may be a placeholder for an environment variable, such as {env.ZONE}. Default: none, and hints
	// are ignored.
	Zone string `json:"zone,omitempty"`

	// PublishService is the namespace/name of the Service whose address is written to the status of Ingresses. Default:
	// none.
	PublishService ir.Name `json:"publish_service,omitzero"`
	// PublishPorts keeps the ports of the Service PublishService in sync with the open TCP and UDP ports. It requires
	// permission to patch the Service. Default: false.
	PublishPorts bool `json:"publish_ports,omitempty"`
	// PublishAddress lists the IP addresses and host names that are written to the status of Ingresses. Default: none.
	PublishAddress []string `json:"publish_address,omitempty"`

	// PublishNodes writes the addresses of the nodes that run the controller's pods to the status of Ingresses. It is
	// "internal" or "external". With "external", a node without an external address is listed with its internal
	// address. Default: none.
	PublishNodes string `json:"publish_nodes,omitempty"`

	// Status is "off" to disable writing addresses to the status of Ingresses, whatever PublishService and
	// PublishAddress say. Default: they are written.
	Status string `json:"status,omitempty"`

	// SSLPassthrough enables ingress-nginx's annotation ssl-passthrough, like ingress-nginx's flag
	// enable-ssl-passthrough. With this annotation, the backend of an Ingress terminates TLS itself. Default: false.
	SSLPassthrough bool `json:"ssl_passthrough,omitempty"`
	// DefaultBackend is the namespace/name of a Service, with ":port" appended if it is not the first port. It serves
	// requests that match no host or path, and the error pages of Ingresses that do not configure a Service for error
	// pages. Default: none.
	DefaultBackend ir.ServicePort `json:"default_backend,omitzero"`
	// DefaultCertificate is the namespace/name of the Secret with the certificate for host names that have no
	// certificate of their own. Default: a self-signed certificate.
	DefaultCertificate ir.Name `json:"default_certificate,omitzero"`
	// AutoHTTPS selects the Ingress hosts that get a certificate from an issuer: "off" means none, and "all" every host
	// without a Secret. Default: the hosts of tls entries without secretName.
	AutoHTTPS string `json:"auto_https,omitempty"`
	// AutoHTTPSExcept lists the namespaces whose Ingresses get no certificates from an issuer. Default: none.
	AutoHTTPSExcept []string `json:"auto_https_except,omitempty"`
	// ACMEOnMissingSecret also obtains certificates for the hosts of a tls entry whose Secret does not exist. Default:
	// false.
	ACMEOnMissingSecret bool `json:"acme_on_missing_secret,omitempty"`
	// Email is the contact address for the certificate authority of Ingress hosts. Default: none.
	Email string `json:"email,omitempty"`
	// ACMECA is the URL of the ACME directory of the certificate authority for Ingress hosts. Default: Caddy's
	// certificate authorities.
	ACMECA string `json:"acme_ca,omitempty"`
	// Issuers lists the issuers of certificates for Ingress hosts, which are modules of Caddy's namespace tls.issuance.
	// They are tried in order until one issues a certificate. Default: ACME with Email and ACMECA.
	Issuers []json.RawMessage `json:"issuers,omitempty"`
	// KeyType is the key type of the certificates from issuers. The names of key types are defined by Caddy. Default:
	// p256.
	KeyType string `json:"key_type,omitempty"`
	// HostsPerNamespace is the maximum number of hosts of one namespace that get a certificate from an issuer. The
	// oldest hosts take precedence. Default: 100.
	HostsPerNamespace int `json:"hosts_per_namespace,omitempty"`
	// NewHostsPerDay is the maximum number of new host names of one namespace for which certificates are requested
	// within 24 hours. Hosts that were deleted since then are counted, too. Default: four times HostsPerNamespace.
	NewHostsPerDay int `json:"new_hosts_per_day,omitempty"`
	// CheckHostDNS requests certificates only for names that resolve to an address of this controller, according to
	// PublishAddress and PublishService. Default: false.
	CheckHostDNS bool `json:"check_host_dns,omitempty"`

	// HostOwnership controls hosts with Ingresses in several namespaces. With "namespace", only the paths of the
	// namespace that owns the host are served. Default: the paths of all namespaces are served, but the settings for
	// the whole host come from its owner, which is the namespace of the oldest Ingress with a rule for it.
	HostOwnership string `json:"host_ownership,omitempty"`
	// HostOwners lists the namespaces that may own a host. The keys are a host name, a wildcard for all names below a
	// domain, or "*" for every other host. The values are names of namespaces, and prefixes of names such as team-*.
	// Default: all namespaces.
	HostOwners map[string][]string `json:"host_owners,omitempty"`
	// ACMESolverNamespaces lists the namespaces whose Ingresses may serve HTTP-01 challenges on hosts of other
	// namespaces, whatever HostOwnership and HostOwners say. Default: none.
	ACMESolverNamespaces []string `json:"acme_solver_namespaces,omitempty"`

	// Chains maps names to lists of Caddy HTTP routes. An Ingress selects lists with the annotation
	// k8singress.io/chains, and they process a request before it goes to the backend. Only the administrator can define
	// them, so Caddy placeholders in them are replaced. Default: none.
	Chains map[string]json.RawMessage `json:"chains,omitempty"`

	// ElectionID is the name of the Lease whose holder writes status and Events. Default: k8singress-leader.
	ElectionID string `json:"election_id,omitempty"`
	// ElectionFallback is the name of the Lease that is used if RBAC forbids the Lease ElectionID and allows this
	// Lease. This is necessary where an RBAC rule is limited to the name of one Lease. Default: none.
	ElectionFallback string `json:"election_fallback,omitempty"`
	// ElectionNamespace is the namespace of the Lease. Default: the namespace of the process.
	ElectionNamespace string `json:"election_namespace,omitempty"`
	// ElectionTTL is how long the Lease stays valid if its holder does not renew it. The holder retries for two thirds
	// of this time. Default: 15 s.
	ElectionTTL Duration `json:"election_ttl,omitempty"`
	// Election is "off" to disable leader election: every replica then writes status and Events and requests
	// certificates. Default: only the holder of the Lease does this.
	Election string `json:"election,omitempty"`

	// Admin is the address of Caddy's admin API, from "listen" in "admin" of Caddy's JSON configuration, or "off".
	// Default: Caddy's default, which is the environment variable CADDY_ADMIN, or localhost:2019.
	Admin string `json:"admin,omitempty"`
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
	// Kubeconfig is the path of a kubeconfig file. Default: the service account of the pod that the process runs in.
	Kubeconfig string `json:"kubeconfig,omitempty"`
	// Namespaces limits the watch to these namespaces. Default: all.
	Namespaces []string `json:"namespaces,omitempty"`
	// NamespaceSelector is a label selector, such as "team=shop,tier!=test". Ingresses in namespaces with other labels
	// are not served, and their status is not changed. Default: all.
	NamespaceSelector string `json:"namespace_selector,omitempty"`
	// Secrets selects which Secrets are read: "all" Secrets in the watched namespaces, or only the Secrets that
	// Ingresses and options refer to ("referenced"). Referenced Secrets are watched by name, so no permission to read
	// other Secrets is necessary. Default: all.
	Secrets string `json:"secrets,omitempty"`
}

// Manifests configures a folder with manifests.
type Manifests struct {
	// Dir is the path of the folder. Its YAML and JSON files are read at the start, and again when they change.
	Dir string `json:"dir"`
}

// Defaults returns the options that apply if nothing is configured.
func Defaults() Config {
	return Config{
		IngressClass:   DefaultIngressClass,
		ControllerName: DefaultControllerName,
		HTTP:           []string{DefaultHTTP},
		HTTPS:          []string{DefaultHTTPS},
		ElectionID:     DefaultElectionID,
		HostOwnership:  HostOwnershipShared,

		ShutdownTimeout: DefaultShutdownTimeout,
	}
}

// WithDefaults returns the options with defaults in place of zero values. ElectionNamespace is not set, because only
// the process knows its namespace.
func (c Config) WithDefaults() Config {
	d := Defaults()
	setDefault(&c.IngressClass, d.IngressClass)
	setDefault(&c.ControllerName, d.ControllerName)
	setDefault(&c.ElectionID, d.ElectionID)
	setDefault(&c.HostOwnership, d.HostOwnership)
	setDefault(&c.ShutdownTimeout, d.ShutdownTimeout)
	if c.HTTP == nil {
		c.HTTP = d.HTTP
	}
	if c.HTTPS == nil {
		c.HTTPS = d.HTTPS
	}
	return c
}

// Check returns an error if an option is set without another option that it requires. It is called after the Caddyfile
// is parsed, because the other option may come from the command line.
func (c Config) Check() error {
	if c.PublishPorts && c.PublishService.IsZero() {
		return errors.New("publish_ports needs publish_service, which names the Service that gets the ports")
	}
	return nil
}

// WithoutDefaults returns the options with zero values in place of defaults.
func (c Config) WithoutDefaults() Config {
	d := Defaults()
	dropDefault(&c.IngressClass, d.IngressClass)
	dropDefault(&c.ControllerName, d.ControllerName)
	dropDefault(&c.ElectionID, d.ElectionID)
	dropDefault(&c.HostOwnership, d.HostOwnership)
	dropDefault(&c.ShutdownTimeout, d.ShutdownTimeout)
	if slices.Equal(c.HTTP, d.HTTP) {
		c.HTTP = nil
	}
	if slices.Equal(c.HTTPS, d.HTTPS) {
		c.HTTPS = nil
	}
	return c
}

func setDefault[T comparable](field *T, value T) {
	var none T
	if *field == none {
		*field = value
	}
}

func dropDefault[T comparable](field *T, value T) {
	var none T
	if *field == value {
		*field = none
	}
}

// MatchNamespace reports whether a namespace is in a list of names and prefixes. A prefix ends with "*".
func MatchNamespace(patterns []string, namespace string) bool {
	return slices.ContainsFunc(patterns, func(pattern string) bool {
		begin, open := strings.CutSuffix(pattern, "*")
		return pattern == namespace || open && strings.HasPrefix(namespace, begin)
	})
}

// PortRange is a range of ports. Both ends are included.
type PortRange struct{ First, Last uint16 }

// ParsePortRange parses a port such as 5432, or a range such as 5000-5999.
func ParsePortRange(text string) (PortRange, error) {
	first, last, isRange := strings.Cut(text, "-")
	if !isRange {
		last = first
	}
	from, err := strconv.ParseUint(first, 10, 16)
	to, errLast := strconv.ParseUint(last, 10, 16)
	if err != nil || errLast != nil || from == 0 || from > to {
		return PortRange{}, fmt.Errorf("%q is neither a port from 1 to 65535 nor a range of them, such as 5000-5999",
			text)
	}
	return PortRange{First: uint16(from), Last: uint16(to)}, nil
}

// Has reports whether a port is in the range.
func (r PortRange) Has(port uint16) bool { return r.First <= port && port <= r.Last }

// String returns the range in the form that ParsePortRange parses.
func (r PortRange) String() string {
	if r.First == r.Last {
		return strconv.Itoa(int(r.First))
	}
	return fmt.Sprintf("%d-%d", r.First, r.Last)
}

// Duration is a duration that JSON represents as Caddy does: "10s", or a number of nanoseconds.
type Duration time.Duration

// UnmarshalJSON parses a string such as "10s", or a number of nanoseconds.
func (d *Duration) UnmarshalJSON(data []byte) error {
	var text string
	if json.Unmarshal(data, &text) != nil {
		return json.Unmarshal(data, (*int64)(d))
	}
	parsed, err := time.ParseDuration(text)
	if err != nil {
		return fmt.Errorf("%q is not a duration, such as 10s or 4m: %w", text, err)
	}
	*d = Duration(parsed)
	return nil
}
