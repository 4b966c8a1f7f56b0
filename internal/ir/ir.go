// Package ir is the model of what the controller serves. Translators of Kubernetes objects produce it, package render
// turns it into Caddy's words, and it knows neither of them: it holds values only, and imports the standard library.
//
// Values of this package are immutable once a translation has returned them. The next translation returns the same
// pointer for what did not change, so that comparing pointers finds what did.
package ir

import (
	"iter"
	"strings"
)

// Config is everything that is to be served.
type Config struct {
	// ListenerGroup is that of all Ingresses. It has no name.
	ListenerGroup
	// MoreGroups have listeners of their own, on other ports than the servers. They are sorted by name.
	MoreGroups []*ListenerGroup
	// Backends are all backends that a route or a stream route refers to, sorted by ID.
	Backends []*Backend
	// StreamRoutes are those of ports of their own, sorted by protocol and port.
	StreamRoutes []*StreamRoute
	// Certificates are sorted by host name.
	Certificates []*Certificate
	// DefaultCertificate answers for every other name. Nil means a self-signed one.
	DefaultCertificate *Certificate
	// Global is never nil.
	Global *Global
}

// ListenerGroup is listeners that serve the same virtual hosts, and no others.
type ListenerGroup struct {
	// Name is unique.
	Name string
	// Origin is the object that the group comes from.
	Origin    Origin
	Listeners []Listener
	// VirtualHosts are sorted by host name.
	VirtualHosts []*VirtualHost
}

// Listener is one port that accepts connections.
type Listener struct {
	// Name is unique in its group.
	Name string `json:"name"`
	// Port may be that of several listeners with the same protocol, whose host names differ.
	Port     uint16           `json:"port"`
	Protocol ListenerProtocol `json:"protocol"`
	// Hostname limits the listener to the hosts that it covers, as VirtualHost.Host does; empty is every host.
	Hostname string `json:"hostname,omitempty"`
	// Certificates are Secrets, for listeners that have certificates of their own: that for the name is shown, or else the first.
	// The others show those of Config.Certificates.
	Certificates []Name `json:"certificates,omitempty"`
}

// AllVirtualHosts yields those of every group.
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

// ListenerProtocol is what clients speak to a listener, in the words of Gateway API.
type ListenerProtocol string

// The protocols there are.
const (
	ListenerHTTP  ListenerProtocol = "HTTP"
	ListenerHTTPS ListenerProtocol = "HTTPS"
)

// VirtualHost is one host name and its routes.
type VirtualHost struct {
	// Host is a name in lower case without trailing dot, a wildcard, or empty for requests whose host no other virtual host
	// has. The wildcard "*.example.com" is for names with one more label, "**.example.com" for names with any number of them.
	Host string
	// AliasOf is the host whose routes and policies answer for this name. There is nothing else here then. It is empty for a host of
	// its own. The name may be "~" and a regular expression that is searched in names which no other host has.
	AliasOf string
	// AliasBy is the object that asks for a name that is an expression, and AliasSince its age, in seconds since 1970: of several that are
	// found in a name, the oldest counts.
	AliasBy    Ref
	AliasSince int64
	// TLS is nil for a host that has what Global says.
	TLS *TLSPolicy
	// TLSOrigin is the object whose ciphers TLS has, as "Kind/namespace/name".
	TLSOrigin string
	// Routes are in the order in which they are tried: the first that matches answers. Of those with one path, the routes with
	// conditions come first.
	Routes []*Route
	// ClientAuth is nil for a host that asks its clients for no certificate.
	ClientAuth *ClientAuth
	// Passthrough is the route of the TLS connections of the host, whose backend ends TLS itself: nothing else that is said here
	// counts for them. It is nil where TLS ends here.
	Passthrough *StreamRoute
}

// Route sends the requests that match to one of its backends, through filters.
type Route struct {
	Match Match
	// Filters are in the order in which a request meets them.
	Filters []Filter
	// Backends share the requests by their weights. There is at least one.
	Backends []WeightedBackend
	Proxy    Proxy
	// ErrorPages are nil for a route whose clients get errors as they are.
	ErrorPages *ErrorPages
	Origin     Origin
	// Unlogged keeps its requests out of the access log.
	Unlogged bool
	// Tracing is nil for a route whose requests are not traced.
	Tracing *Tracing
}

// WeightedBackend is one of the backends that share the requests of a route, or the connections of a stream route.
type WeightedBackend struct {
	// Backend is never nil: a backend that does not exist is one without endpoints. It names the one of Config.Backends that
	// has the same ID; how an endpoint is chosen stands only there, because all routes to a backend share it.
	Backend *Backend
	// Weight is the share of the backend in the sum of all weights. With zero it gets none.
	Weight int
	// Fallback gives the backend, besides its own share, the requests for others that have no endpoints.
	Fallback bool
	// Filters come after those of the route.
	Filters []Filter
}

// To returns the only backend of a route or a stream route.
func To(b *Backend) []WeightedBackend { return []WeightedBackend{{Backend: b, Weight: 1}} }

// Protocol of a port.
type Protocol string

const (
	// TCP is the protocol of HTTP and of most stream routes.
	TCP Protocol = "tcp"
	// UDP is for stream routes only.
	UDP Protocol = "udp"
)

// Certificate says where the certificate of a host name comes from: a Secret, or an issuer. Its contents are not part of
// the model: package certs reads them, so that private keys appear nowhere else.
type Certificate struct {
	// Host is a name or a wildcard of one label. It is empty for the default certificate.
	Host string `json:"-"`
	// Secret has the certificate and its key.
	Secret Name `json:"secret,omitzero"`
	// SecondSecret is another Secret with a certificate for the host, so that one can have an ECDSA key and the other an RSA
	// key. Nearly every host is without.
	SecondSecret Name `json:"second_secret,omitzero"`
	// Automated says that an issuer is asked for the certificate. There is no Secret of the Ingress then.
	Automated bool   `json:"automated,omitempty"`
	Origin    Origin `json:"origin,omitzero"`
}

// Origin is the object that something comes from, for verdicts, logs and metrics.
type Origin = Ref

// Ref names one Kubernetes object.
type Ref struct {
	Kind      string `json:"kind"`
	Namespace string `json:"namespace,omitempty"`
	Name      string `json:"name"`
}

// String returns "Kind/namespace/name", or "Kind/name" for objects of the whole cluster.
func (r Ref) String() string {
	if r.Namespace == "" {
		return r.Kind + "/" + r.Name
	}
	return r.Kind + "/" + r.Namespace + "/" + r.Name
}

// MarshalText is what JSON calls: documents have String.
func (r Ref) MarshalText() ([]byte, error) { return []byte(r.String()), nil }

// UnmarshalText reads what MarshalText returns.
func (r *Ref) UnmarshalText(text []byte) error {
	*r = ParseRef(string(text))
	return nil
}

// ParseRef reads what String returns.
func ParseRef(s string) Ref {
	kind, rest, _ := strings.Cut(s, "/")
	namespace, name, ok := strings.Cut(rest, "/")
	if !ok {
		return Ref{Kind: kind, Name: namespace}
	}
	return Ref{Kind: kind, Namespace: namespace, Name: name}
}
