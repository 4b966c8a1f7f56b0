// Package ir is the model of the configuration that the controller serves. Translators of Kubernetes objects produce
// it, and package render translates it into Caddy's JSON. Package ir depends on neither of them: it only holds values
// and imports only the standard library.
//
// Values of this package are immutable after a translation has returned them. The next translation returns the same
// pointers for unchanged values, so changes can be found by comparing pointers.
package ir

import (
	"iter"
	"strings"
)

// Config is the complete configuration to serve.
type Config struct {
	// ListenerGroup contains the listeners and virtual hosts of all Ingresses. Its name is empty.
	ListenerGroup
	// MoreGroups are additional groups with their own listeners, on other ports than the Ingresses. They are sorted by
	// name.
	MoreGroups []*ListenerGroup
	// Backends contains all backends to which a route, a stream route or an element of Followed refers, sorted by ID.
	Backends []*Backend
	// Followed are the backends that Caddy modules use although no Kubernetes object refers to them.
	Followed []FollowedBackend
	// StreamRoutes are the routes of TCP and UDP ports, sorted by protocol and port.
	StreamRoutes []*StreamRoute
	// Certificates lists the certificates of all hosts, sorted by host name.
	Certificates []*Certificate
	// DefaultCertificate is used for server names that match no entry of Certificates. If it is nil, a self-signed
	// certificate is used.
	DefaultCertificate *Certificate
	// Global is never nil.
	Global *Global
}

// ListenerGroup is a set of listeners and the virtual hosts that they serve. Each listener serves all virtual hosts of
// its group and no others.
type ListenerGroup struct {
	// Name identifies the listener group. It is unique, and empty for the group that serves the Ingresses.
	Name string
	// Origin is the object that defines the listener group.
	Origin    Origin
	Listeners []Listener
	// VirtualHosts lists the virtual hosts that the listeners serve, sorted by host name.
	VirtualHosts []*VirtualHost
}

// Listener is one port that accepts connections.
type Listener struct {
	// Name identifies the listener within its ListenerGroup.
	Name string `json:"name"`
	// Port is the port number. Several listeners with the same protocol and different host names can share a port.
	Port     uint16           `json:"port"`
	Protocol ListenerProtocol `json:"protocol"`
	// Hostname limits the listener to matching hosts. It has the form of VirtualHost.Host. Empty means every host.
	Hostname string `json:"hostname,omitempty"`
	// Certificates lists the Secrets with the listener's own certificates. A TLS handshake uses the certificate that
	// matches the server name, or the first certificate if none of them matches. If the list is empty, the listener
	// uses Config.Certificates.
	Certificates []Name `json:"certificates,omitempty"`
}

// AllVirtualHosts yields the virtual hosts of all listener groups.
func (c *Config) AllVirtualHosts() iter.Seq[*VirtualHost] {
	return func(yield func(*VirtualHost) bool) {
		for _, h := range c.VirtualHosts {
			if !yield(h) {
				return
			}
		}
		for _, g := range c.MoreGroups {
			for _, h := range g.VirtualHosts {
				if !yield(h) {
					return
				}
			}
		}
	}
}

// ListenerProtocol is the protocol that clients use with a listener. The values are defined by Gateway API.
type ListenerProtocol string

// The protocols of listeners.
const (
	ListenerHTTP  ListenerProtocol = "HTTP"
	ListenerHTTPS ListenerProtocol = "HTTPS"
)

// VirtualHost is one host name and its routes.
type VirtualHost struct {
	// Host is a name in lower case without a trailing dot, a wildcard, or empty. The virtual host with an empty Host
	// serves requests whose host matches no other virtual host. The wildcard "*.example.com" matches names with one
	// more label, and "**.example.com" names with one or more labels.
	Host string
	// AliasOf is set only if Host is an alias: it is the host whose routes and policies the alias uses. All other
	// fields of an alias except Host, AliasBy and AliasSince are empty. An alias may be a regular expression with the
	// prefix "~", which may match any part of a requested name. It is used only for names that match no other host.
	AliasOf string
	// AliasBy is the object that defines the alias if the alias is a regular expression. AliasSince is the creation
	// time of that object, in seconds since 1970. If several regular expressions match a name, the alias of the oldest
	// object is used.
	AliasBy    Ref
	AliasSince int64
	// TLS is the TLS policy of the host. It is nil if the host uses the global TLS policy.
	TLS *TLSPolicy
	// TLSOrigin is the object, as "Kind/namespace/name", that defines the cipher suites in the field TLS.
	TLSOrigin string
	// Routes are in the order in which they are tried. The first matching route serves the request. Among routes with
	// the same path, the routes with conditions come first.
	Routes []*Route
	// HTTPSRedirect redirects requests without TLS that no route matches. Nil disables this redirect.
	HTTPSRedirect *HTTPSRedirect
	// ClientAuth configures client certificates (mTLS). It is nil if the host does not request client certificates.
	ClientAuth *ClientAuth
	// Passthrough is the route for TLS passthrough: TLS connections for the host are forwarded to its backend, which
	// terminates TLS. No other field applies to these connections. Passthrough is nil if the controller terminates TLS.
	Passthrough *StreamRoute
	// OnDemand is the object that requests certificates on demand: the certificate for a name that the host serves is
	// ordered during the first TLS handshake for the name. Host is then a wildcard or empty. OnDemand is the zero value
	// for hosts without certificates on demand.
	OnDemand Origin
}

// Route sends matching requests through its filters to one of its backends.
type Route struct {
	Match Match
	// Filters are in the order in which they process a request.
	Filters []Filter
	// Backends share the requests by weight. There is at least one backend.
	Backends []WeightedBackend
	Proxy    Proxy
	// ErrorPages replaces error responses. Nil leaves them unchanged.
	ErrorPages *ErrorPages
	Origin     Origin
	RoutePolicy
}

// WeightedBackend is one of the backends that share the requests of a route or the connections of a stream route.
type WeightedBackend struct {
	// Backend is never nil. A backend that does not exist is represented by a Backend without endpoints.
	// Config.Backends contains a Backend with the same ID. The load balancing settings are only in Config.Backends,
	// because all routes to a backend share them.
	Backend *Backend
	// Weight is the share of the backend relative to the sum of all weights. A backend with weight zero gets no share.
	Weight int
	// If Fallback is set, this backend also gets the requests of the other backends while they have no endpoints.
	Fallback bool
	// Canary is the canary that gets the share. It is the zero value if the share belongs to the object that defines
	// the route.
	Canary Origin
	// Filters process the requests that go to this backend, after the filters of the route.
	Filters []Filter
}

// To makes b the only backend of a route or stream route: it returns a list that contains only b.
func To(b *Backend) []WeightedBackend { return []WeightedBackend{{Backend: b, Weight: 1}} }

// Protocol is the transport protocol of a port.
type Protocol string

const (
	// TCP is the protocol of HTTP and of most stream routes.
	TCP Protocol = "tcp"
	// UDP is only used by stream routes.
	UDP Protocol = "udp"
)

// Certificate refers to the source of the certificate of a host name: a Secret or an issuer. The model does not contain
// the certificate itself. Package certs reads it, so that private keys do not appear anywhere else.
type Certificate struct {
	// Host is a name, or a wildcard of one label. It is empty for the default certificate.
	Host string `json:"-"`
	// Secret is the name of the Secret with the certificate and its key.
	Secret Name `json:"secret,omitzero"`
	// SecondSecret is a second Secret with a certificate for the same host, so that a host can have both an ECDSA and
	// an RSA key. It is empty for most hosts.
	SecondSecret Name `json:"second_secret,omitzero"`
	// Automated is set if an issuer provides the certificate. Secret and SecondSecret are then empty.
	Automated bool   `json:"automated,omitempty"`
	Origin    Origin `json:"origin,omitzero"`
}

// Origin is the object that defines a part of the configuration. Logs, metrics and the reports on objects mention it.
type Origin = Ref

// Ref identifies one Kubernetes object.
type Ref struct {
	Kind      string `json:"kind"`
	Namespace string `json:"namespace,omitempty"`
	Name      string `json:"name"`
}

// String returns "Kind/namespace/name", or "Kind/name" for cluster-scoped objects.
func (r Ref) String() string {
	if r.Namespace == "" {
		return r.Kind + "/" + r.Name
	}
	return r.Kind + "/" + r.Namespace + "/" + r.Name
}

// MarshalText returns the result of String, so that a Ref is a string in JSON.
func (r Ref) MarshalText() ([]byte, error) { return []byte(r.String()), nil }

// UnmarshalText parses a string in the form that MarshalText returns.
func (r *Ref) UnmarshalText(text []byte) error {
	*r = ParseRef(string(text))
	return nil
}

// ParseRef parses a string in the form that Ref.String returns.
func ParseRef(s string) Ref {
	kind, rest, _ := strings.Cut(s, "/")
	namespace, name, ok := strings.Cut(rest, "/")
	if !ok {
		return Ref{Kind: kind, Name: namespace}
	}
	return Ref{Kind: kind, Namespace: namespace, Name: name}
}
