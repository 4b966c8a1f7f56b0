// Package settings holds the options of the ingress controller, as they stand in the JSON of apps.k8singress. The global
// option of a Caddyfile writes them, and the engine reads them.
package settings

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/k8singress/k8singress/internal/ir"
)

// The defaults, where they are not those of ingress-nginx's own flags. The name of the Lease is one that ingress-nginx
// does not use, so that both can run side by side.
const (
	DefaultIngressClass   = "nginx"
	DefaultControllerName = "k8s.io/ingress-nginx"
	DefaultHTTP           = ":80"
	DefaultHTTPS          = ":443"
	DefaultElectionID     = "k8singress-leader"
	DefaultAdmin          = "localhost:2019"
)

// DefaultShutdownTimeout is ingress-nginx's worker-shutdown-timeout.
const DefaultShutdownTimeout = Duration(240 * time.Second)

// The defaults of what Services may ask for.
const (
	DefaultServicePortsPerNamespace = 32
	DefaultServiceMaxConnections    = 16 << 10
	DefaultServiceMaxIdleTimeout    = Duration(time.Hour)
)

// DefaultHostsPerNamespace keeps one namespace from using up what an authority issues in a week.
const DefaultHostsPerNamespace = 100

// LeastElectionTTL is the least value of Config.ElectionTTL: a Lease is renewed several times in it.
const LeastElectionTTL = 5 * time.Second

// AdminOff is Config.Admin of a Caddy whose admin API is turned off.
const AdminOff = "off"

// ExternalNamesAll and ExternalNamesOff are the values of Config.ExternalNames.
const (
	ExternalNamesAll = "all"
	ExternalNamesOff = "off"
)

// AccessLogOff is the value of Config.AccessLog that notes nothing.
const AccessLogOff = "off"

// SnippetsIgnore is the value of Config.Snippets that serves Ingresses without their snippets.
const SnippetsIgnore = "ignore"

// HTTP3Off is the value of Config.HTTP3 that leaves HTTP/3 out.
const HTTP3Off = "off"

// PublishNodesInternal and PublishNodesExternal are the values of Config.PublishNodes.
const (
	PublishNodesInternal = "internal"
	PublishNodesExternal = "external"
)

// ElectionOff is the value of Config.Election that asks for no Lease.
const ElectionOff = "off"

// StatusOff is the value of Config.Status that writes no addresses.
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

// Config is the options of the controller. The zero value of a field stands for its default.
type Config struct {
	// Source is where the Kubernetes objects come from. Without one, nothing is followed, and the process serves the
	// documents that PUT /k8singress/config brings.
	Source *Source `json:"source,omitempty"`

	// IngressClass is the value of the older annotation kubernetes.io/ingress.class that is ours. spec.ingressClassName
	// names an IngressClass instead, and each one with our ControllerName is served, whatever its own name. Only with a
	// source of manifests, an Ingress may name this class there without such an object. Default: nginx.
	IngressClass string `json:"ingress_class,omitempty"`
	// IngressClassByName serves Ingresses whose spec.ingressClassName is IngressClass, too, whether there is such an IngressClass or not, and
	// whatever its spec.controller is. Default: false; where IngressClasses may not be read, and only some namespaces are followed, it holds
	// anyway.
	IngressClassByName bool `json:"ingress_class_by_name,omitempty"`
	// ControllerName is the spec.controller of the IngressClasses that are ours. Default: k8s.io/ingress-nginx, because
	// the field of an IngressClass cannot be changed later.
	ControllerName string `json:"controller_name,omitempty"`
	// WatchIngressWithoutClass serves Ingresses that name no class, too. Default: false.
	WatchIngressWithoutClass bool `json:"watch_ingress_without_class,omitempty"`

	// DisableCatchAll refuses rules without a host, and Ingresses that are only a default backend: what would answer for
	// every host. Default: false.
	DisableCatchAll bool `json:"disable_catch_all,omitempty"`
	// Snippets says what becomes of Ingresses with snippets of nginx configuration that may refuse requests: empty has all their requests
	// get 503, and `ignore` serves them without the snippets.
	Snippets string `json:"snippets,omitempty"`

	// HTTP are the addresses that answer HTTP. An empty list means none. Default: [":80"].
	HTTP []string `json:"http,omitzero"`
	// HTTPS are the addresses that answer HTTPS. An empty list means none. Default: [":443"].
	HTTPS []string `json:"https,omitzero"`
	// HTTP3 "off" leaves HTTP/3 out: nothing listens on UDP at the addresses of HTTPS, and no answer names it to clients. Default: it is on.
	HTTP3 string `json:"http3,omitempty"`
	// H2C lets clients begin with HTTP/2 at the addresses of HTTP, without TLS: h2c with prior knowledge. Default: false.
	H2C bool `json:"h2c,omitempty"`

	// Health is the address that answers /healthz and /readyz. Default: none.
	Health string `json:"health,omitempty"`
	// HealthPath is the path in place of /healthz there. Default: /healthz.
	HealthPath string `json:"health_path,omitempty"`
	// HealthReady has that path say what /readyz says. Default: false.
	HealthReady bool `json:"health_ready,omitempty"`
	// HealthMetrics answers /metrics there, too, as the admin API does. Default: false.
	HealthMetrics bool `json:"health_metrics,omitempty"`
	// ShutdownDelay is how long new requests are still taken once the process has been told to end, while /readyz says so
	// and every answer asks the client to leave. Default: 0.
	ShutdownDelay Duration `json:"shutdown_delay,omitempty"`
	// ShutdownTimeout is how long the requests and streams under way may take after that. Default: 240 s.
	ShutdownTimeout Duration `json:"shutdown_timeout,omitempty"`

	// ConfigMap is the namespace/name of the ConfigMap with the global options of ingress-nginx. Default: none.
	ConfigMap ir.Name `json:"configmap,omitzero"`
	// TCPServices is the namespace/name of the ConfigMap with the TCP ports. Default: none.
	TCPServices ir.Name `json:"tcp_services,omitzero"`
	// UDPServices is the namespace/name of the ConfigMap with the UDP ports. Default: none.
	UDPServices ir.Name `json:"udp_services,omitzero"`
	// StreamBind are the IP addresses that TCP and UDP ports listen on. Default: all.
	StreamBind []string `json:"stream_bind,omitempty"`
	// ServiceTCPPorts and ServiceUDPPorts are the ports that a Service may ask for in its annotations k8singress.io/tcp-ports
	// and k8singress.io/udp-ports: numbers, and ranges such as 5000-5999. Default: none.
	ServiceTCPPorts []string `json:"service_tcp_ports,omitempty"`
	ServiceUDPPorts []string `json:"service_udp_ports,omitempty"`
	// ServicePortNamespaces are the namespaces whose Services may: names, and beginnings of names such as team-*.
	// Default: all.
	ServicePortNamespaces []string `json:"service_port_namespaces,omitempty"`
	// ServicePortsPerNamespace is how many of those ports the Services of one namespace may have, TCP and UDP together: the oldest
	// Services have theirs. Default: 32.
	ServicePortsPerNamespace int `json:"service_ports_per_namespace,omitempty"`
	// ServiceMaxConnections is the most that a Service may ask for by stream-max-connections, and ServiceMaxIdleTimeout the most by
	// stream-idle-timeout. Defaults: 16384 and an hour.
	ServiceMaxConnections int      `json:"service_max_connections,omitempty"`
	ServiceMaxIdleTimeout Duration `json:"service_max_idle_timeout,omitempty"`

	// BodyFiles is how many bytes of the bodies of requests and answers may stand in temporary files at a time. Without room, a
	// body is passed on as it comes in. Default: 8 GiB.
	BodyFiles int64 `json:"body_files,omitempty"`
	// StrictPaths refuses, with 400, each path that servers read in more than one way: with dot segments, two slashes, a
	// semicolon, a backslash, or an escaped dot, slash, semicolon, backslash or escape. Default: such a path is refused where
	// one way to read it leads to a guard that the request has not met.
	StrictPaths bool `json:"strict_paths,omitempty"`
	// AccessLog "off" notes neither requests nor connections of TCP and UDP ports, whatever the ConfigMap says. Default: they are noted as the
	// ConfigMap says.
	AccessLog string `json:"access_log,omitempty"`
	// Via adds a Via header to answers, by which clients see that they came through here. Default: false.
	Via bool `json:"via,omitempty"`

	// ExternalNames says where the name of a Service of type ExternalName may lead: "all" is anywhere but to ReachDeny and to what the
	// process itself listens on, "off" nowhere, and such Services are refused. Default: anywhere but to loopback, link-local and
	// multicast addresses, to those of the machine itself, and to those of the API server and of the metadata of clouds.
	ExternalNames string `json:"external_names,omitempty"`
	// ReachAllow are networks that endpoints may have addresses in although they are usually closed: loopback, link-local and multicast
	// addresses, and those of the metadata of clouds. Of the networks that an address is in, the narrowest counts. What the process itself
	// listens on stays closed. Default: none.
	ReachAllow []string `json:"reach_allow,omitempty"`
	// ReachDeny are networks that neither endpoints may have addresses in, nor the names of Services of type ExternalName lead to.
	// Default: none.
	ReachDeny []string `json:"reach_deny,omitempty"`
	// Resolvers are the IP addresses of the DNS servers that are asked for those names, with a port if it is not 53.
	// Default: those of /etc/resolv.conf.
	Resolvers []string `json:"resolvers,omitempty"`
	// Zone is the topology zone that the process runs in. Where the EndpointSlices of a Service have hints for zones,
	// requests stay in it. It may be the placeholder of an environment variable, such as {env.ZONE}. Default: none, and
	// hints are not followed.
	Zone string `json:"zone,omitempty"`

	// PublishService is the namespace/name of the Service whose address is written to the status of Ingresses.
	// Default: none.
	PublishService ir.Name `json:"publish_service,omitzero"`
	// PublishPorts keeps the ports of that Service in line with the TCP and UDP ports that are open. It needs the right to
	// patch the Service. Default: false.
	PublishPorts bool `json:"publish_ports,omitempty"`
	// PublishAddress are the IP addresses and host names that are written to the status of Ingresses. Default: none.
	PublishAddress []string `json:"publish_address,omitempty"`

	// PublishNodes writes to the status the addresses of the nodes that the pods of the controller run on: those in the cluster, "internal",
	// or "external", with the internal ones where a node has no external one. Default: none.
	PublishNodes string `json:"publish_nodes,omitempty"`

	// Status "off" writes no addresses to the status of Ingresses, whatever PublishService and PublishAddress say. Default: they are written.
	Status string `json:"status,omitempty"`

	// SSLPassthrough lets Ingresses hand the TLS connections of their hosts to a backend, which ends TLS itself: the annotation
	// ssl-passthrough of ingress-nginx, and its flag enable-ssl-passthrough. Default: false.
	SSLPassthrough bool `json:"ssl_passthrough,omitempty"`
	// DefaultBackend is the namespace/name of the Service, with ":port" behind it if that is not the first, that answers requests which no
	// host or path is for, and errors whose Ingress names no Service for them. Default: none.
	DefaultBackend ir.ServicePort `json:"default_backend,omitzero"`
	// DefaultCertificate is the namespace/name of the Secret that answers for names without a certificate.
	// Default: a self-signed one.
	DefaultCertificate ir.Name `json:"default_certificate,omitzero"`
	// AutoHTTPS says which hosts of Ingresses get a certificate from an issuer: "off" is none, "all" is every host that no
	// Secret is for. Default: those of a tls entry without secretName.
	AutoHTTPS string `json:"auto_https,omitempty"`
	// AutoHTTPSExcept are the namespaces whose Ingresses get no certificate from an issuer. Default: none.
	AutoHTTPSExcept []string `json:"auto_https_except,omitempty"`
	// ACMEOnMissingSecret asks an issuer for the hosts of a tls entry whose Secret does not exist, too. Default: false.
	ACMEOnMissingSecret bool `json:"acme_on_missing_secret,omitempty"`
	// Email is the address that the certificate authority may write to about the certificates of Ingress hosts.
	// Default: none.
	Email string `json:"email,omitempty"`
	// ACMECA is the URL of the directory of the certificate authority for the certificates of Ingress hosts.
	// Default: those of Caddy.
	ACMECA string `json:"acme_ca,omitempty"`
	// Issuers are modules of Caddy's namespace tls.issuance that are asked for certificates of Ingress hosts, one after the
	// other until one issues. Default: ACME, as Email and ACMECA say.
	Issuers []json.RawMessage `json:"issuers,omitempty"`
	// KeyType is the type of the keys of those certificates, as Caddy names them. Default: p256.
	KeyType string `json:"key_type,omitempty"`
	// HostsPerNamespace is how many hosts of one namespace get a certificate from an issuer: the oldest ones.
	// Default: 100.
	HostsPerNamespace int `json:"hosts_per_namespace,omitempty"`
	// NewHostsPerDay is for how many new names of one namespace issuers are asked within 24 hours, whatever becomes of the hosts.
	// Default: four times HostsPerNamespace.
	NewHostsPerDay int `json:"new_hosts_per_day,omitempty"`
	// CheckHostDNS asks issuers only for names that the DNS leads to an address of this controller, as PublishAddress and
	// PublishService say. Default: false.
	CheckHostDNS bool `json:"check_host_dns,omitempty"`

	// HostOwnership says what Ingresses of several namespaces may do on one host: with "namespace" only the namespace that has the
	// host is served there. Default: the paths of all are served, and what holds for the whole host is up to the namespace that has
	// it: that of the oldest Ingress with a rule for it.
	HostOwnership string `json:"host_ownership,omitempty"`
	// HostOwners are the namespaces that may have a host, by its name, by a wildcard for all names below one, or by "*" for every
	// other host: names, and beginnings of names such as team-*. Default: all.
	HostOwners map[string][]string `json:"host_owners,omitempty"`
	// ACMESolverNamespaces are the namespaces whose Ingresses may answer HTTP-01 challenges on hosts of other namespaces, whatever
	// HostOwnership and HostOwners say. Default: none.
	ACMESolverNamespaces []string `json:"acme_solver_namespaces,omitempty"`

	// Chains are lists of Caddy HTTP routes by name, which an Ingress asks for in its annotation k8singress.io/chains. A
	// request meets them before it goes to the backend. They are the administrator's own: placeholders count in them.
	// Default: none.
	Chains map[string]json.RawMessage `json:"chains,omitempty"`

	// ElectionID is the name of the Lease whose holder writes status and Events. Default: k8singress-leader.
	ElectionID string `json:"election_id,omitempty"`
	// ElectionFallback is the name of the Lease that is used where that of ElectionID is forbidden, and this one is not: rights may name the
	// Lease that they allow. Default: none.
	ElectionFallback string `json:"election_fallback,omitempty"`
	// ElectionNamespace is the namespace of that Lease. Default: the namespace that the process runs in.
	ElectionNamespace string `json:"election_namespace,omitempty"`
	// ElectionTTL is how long that Lease is good when its holder does not renew it, which it tries for two thirds of this time.
	// Default: 15 s.
	ElectionTTL Duration `json:"election_ttl,omitempty"`
	// Election "off" asks for no Lease: every replica writes status and Events, and asks issuers. Default: the holder of the Lease does.
	Election string `json:"election,omitempty"`

	// Admin is the address of Caddy's admin API, or "off". Default: localhost:2019.
	Admin string `json:"admin,omitempty"`
}

// Source is where the Kubernetes objects come from: one of its fields.
type Source struct {
	// Kubernetes is an API server.
	Kubernetes *Kubernetes `json:"kubernetes,omitempty"`
	// Manifests is a folder of files.
	Manifests *Manifests `json:"manifests,omitempty"`
}

// Kubernetes is an API server that objects come from.
type Kubernetes struct {
	// Kubeconfig is the path of a kubeconfig file. Default: the service account of the pod that the process runs in.
	Kubeconfig string `json:"kubeconfig,omitempty"`
	// Namespaces limits what is followed to these. Default: all.
	Namespaces []string `json:"namespaces,omitempty"`
	// NamespaceSelector is a label selector, such as "team=shop,tier!=test". Ingresses in namespaces whose labels it does
	// not match are not served, and their status is left alone. Default: all.
	NamespaceSelector string `json:"namespace_selector,omitempty"`
	// Secrets says which Secrets are read: "all" of the namespaces, or only those "referenced" by Ingresses and options, each
	// by a watch for its name, so that the right to read no others is enough. Default: all.
	Secrets string `json:"secrets,omitempty"`
}

// Manifests is a folder that objects come from.
type Manifests struct {
	// Dir is the folder. Its YAML and JSON files are read, and followed when they change.
	Dir string `json:"dir"`
}

// Defaults returns the options of somebody who gives none.
func Defaults() Config {
	return Config{
		IngressClass:   DefaultIngressClass,
		ControllerName: DefaultControllerName,
		HTTP:           []string{DefaultHTTP},
		HTTPS:          []string{DefaultHTTPS},
		ElectionID:     DefaultElectionID,
		Admin:          DefaultAdmin,
		HostOwnership:  HostOwnershipShared,

		ShutdownTimeout: DefaultShutdownTimeout,
	}
}

// WithDefaults returns the options with the defaults in place of what is not given. The namespace of the Lease is left
// as it is, because only the process knows where it runs.
func (c Config) WithDefaults() Config {
	d := Defaults()
	setDefault(&c.IngressClass, d.IngressClass)
	setDefault(&c.ControllerName, d.ControllerName)
	setDefault(&c.ElectionID, d.ElectionID)
	setDefault(&c.Admin, d.Admin)
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

// Check refuses an option that lacks another one, which a Caddyfile may leave to the command line.
func (c Config) Check() error {
	if c.PublishPorts && c.PublishService.IsZero() {
		return errors.New("publish_ports needs publish_service, which names the Service that gets the ports")
	}
	return nil
}

// WithoutDefaults returns the options without those that say what the default says.
func (c Config) WithoutDefaults() Config {
	d := Defaults()
	dropDefault(&c.IngressClass, d.IngressClass)
	dropDefault(&c.ControllerName, d.ControllerName)
	dropDefault(&c.ElectionID, d.ElectionID)
	dropDefault(&c.Admin, d.Admin)
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

// MatchNamespace says whether a namespace is one of a list of names, and of beginnings of names with a star behind them.
func MatchNamespace(patterns []string, namespace string) bool {
	return slices.ContainsFunc(patterns, func(pattern string) bool {
		begin, open := strings.CutSuffix(pattern, "*")
		return pattern == namespace || open && strings.HasPrefix(namespace, begin)
	})
}

// PortRange is some neighbouring ports, both ends included.
type PortRange struct{ First, Last uint16 }

// ParsePortRange reads a port such as 5432, or a range such as 5000-5999.
func ParsePortRange(text string) (PortRange, error) {
	first, last, isRange := strings.Cut(text, "-")
	if !isRange {
		last = first
	}
	from, err := strconv.ParseUint(first, 10, 16)
	to, errLast := strconv.ParseUint(last, 10, 16)
	if err != nil || errLast != nil || from == 0 || from > to {
		return PortRange{}, fmt.Errorf("%q is neither a port from 1 to 65535 nor a range of them, such as 5000-5999", text)
	}
	return PortRange{First: uint16(from), Last: uint16(to)}, nil
}

// Has says whether a port is one of the range.
func (r PortRange) Has(port uint16) bool { return r.First <= port && port <= r.Last }

// String is how ParsePortRange reads it.
func (r PortRange) String() string {
	if r.First == r.Last {
		return strconv.Itoa(int(r.First))
	}
	return fmt.Sprintf("%d-%d", r.First, r.Last)
}

// Duration is a time in JSON as Caddy has it: "10s", or a number of nanoseconds.
type Duration time.Duration

// UnmarshalJSON reads either form.
func (d *Duration) UnmarshalJSON(data []byte) error {
	var text string
	if json.Unmarshal(data, &text) != nil {
		return json.Unmarshal(data, (*int64)(d))
	}
	parsed, err := time.ParseDuration(text)
	if err != nil {
		return fmt.Errorf("%q is no duration, such as 10s or 4m: %w", text, err)
	}
	*d = Duration(parsed)
	return nil
}
