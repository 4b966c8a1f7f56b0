// Package document defines the live part of Caddy's JSON configuration: apps.k8singress.live, which changes without a
// reload of Caddy. It is produced by package render and served by the packages live, l4app and certs. GET and PUT
// /k8singress/config read and replace it. The rest of the JSON configuration consists of ordinary Caddy modules.
package document

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/k8singress/k8singress/internal/model/ir"
)

// Live is the live configuration: the value of apps.k8singress.live in Caddy's JSON configuration.
type Live struct {
	// Hosts maps host names to virtual hosts. A key is a name in lower case, a wildcard such as "*.example.com", or "",
	// which stands for every other host.
	Hosts map[string]*Host `json:"hosts,omitempty"`
	// Backends maps backend IDs ("namespace/service/port") to backends.
	Backends map[string]*Backend `json:"backends,omitempty"`
	// Ports maps names such as "tcp/5432" to TCP and UDP ports.
	Ports map[string]*Port `json:"ports,omitempty"`
	// Certificates maps host names to TLS certificates. The key "" stands for the default certificate. Each value only
	// refers to a Secret or an issuer, so the configuration never contains private keys.
	Certificates map[string]*ir.Certificate `json:"certificates,omitempty"`
	// ListenerGroups maps names to groups of listeners on additional ports. Each group has its own virtual hosts.
	ListenerGroups map[string]*ListenerGroup `json:"listener_groups,omitempty"`
	// Global holds the settings for all requests. Nil means ingress-nginx's defaults.
	Global *ir.Global `json:"global,omitempty"`
}

// ListenerGroup is a set of listeners with their own virtual hosts. The listeners serve no other hosts.
type ListenerGroup struct {
	// Listeners are in the order in which the object in Origin lists them. If two listeners of the same group or of
	// different groups conflict, only the first one is used.
	Listeners []ir.Listener `json:"listeners"`
	// Hosts maps host names to virtual hosts. The keys have the same format as in Live.Hosts.
	Hosts map[string]*Host `json:"hosts,omitempty"`
	// Origin is the object that defines the listener group. In JSON it is "Kind/namespace/name".
	Origin ir.Ref `json:"origin,omitzero"`
}

// Host is one virtual host.
type Host struct {
	// AliasOf is set only if this host is an alias: it is the host whose routes and policies the alias uses. All other
	// fields of an alias except AliasBy and AliasSince are empty. The key of an alias in the map of hosts may be a
	// regular expression with the prefix "~".
	AliasOf string `json:"alias_of,omitempty"`
	// AliasBy is the object, as "Kind/namespace/name", that defines the alias if the alias is a regular expression.
	// AliasSince is the creation time of that object, in seconds since 1970. If several regular expressions match a
	// name, the alias of the oldest object is used.
	AliasBy    string `json:"alias_by,omitempty"`
	AliasSince int64  `json:"alias_since,omitempty"`
	// TLS is the TLS policy of the host. It is nil if the host uses the global TLS policy.
	TLS *ir.TLSPolicy `json:"tls,omitempty"`
	// For each request, the route with an exact path is tried first, then the route with the longest prefix, then the
	// routes with regular expressions in the order of the list. There is one exception: a regular expression that
	// precedes the matching exact path or prefix in the list is also tried before it. Then locations may take the
	// request, in nginx's order.
	Routes []*Route `json:"routes"`
	// HTTPSRedirect redirects requests without TLS that no route matches. Nil disables this redirect.
	HTTPSRedirect *ir.HTTPSRedirect `json:"https_redirect,omitempty"`
	// ClientAuth configures client certificates (mTLS). If it is nil, clients are not asked for a certificate.
	ClientAuth *ir.ClientAuth `json:"client_auth,omitempty"`
	// Passthrough is the ID of the backend to which TLS connections for the host are forwarded unchanged (TLS
	// passthrough). The routes then only apply to requests without TLS. If Passthrough and PassthroughSplit are empty,
	// the controller terminates TLS.
	Passthrough string `json:"passthrough,omitempty"`
	// PassthroughSplit lists the backends if several backends share the TLS connections for the host. Passthrough is
	// then empty.
	PassthroughSplit []StreamShare `json:"passthrough_split,omitempty"`
	// OnDemand is the object, as "Kind/namespace/name", that requests certificates on demand for the names that the
	// host serves. If it is empty, no certificates are ordered on demand.
	OnDemand string `json:"on_demand,omitempty"`
}

// Route is one path of a virtual host.
type Route struct {
	// Type is "exact", "prefix" (by path element) or "regex" (anchored at the start, case-insensitive). The routes of
	// snippets have the types "location =", "location ^~", "location", "location ~" and "location ~*", as in nginx.
	Type string `json:"type"`
	// Path is compared with the path of the request according to Type.
	Path string `json:"path"`
	// Everywhere is only set for locations. Without it, a location applies to requests that a route of its own
	// namespace, or no route, would serve.
	Everywhere bool `json:"everywhere,omitempty"`
	// Within is only set for locations that stand in another location, which precedes them in the list.
	Within *ir.PathMatch `json:"within,omitempty"`
	// Match contains conditions on the request besides the path. If a request does not meet them, the next route for
	// its path is tried. Nil means that there are no such conditions.
	Match *ir.Conditions `json:"match,omitempty"`
	// HTTPSRedirect redirects requests without TLS. Nil disables the redirect.
	HTTPSRedirect *ir.HTTPSRedirect `json:"https_redirect,omitempty"`
	Destination
	// Split lists the destinations if several destinations share the requests. The fields of Destination are then
	// empty.
	Split []*Share `json:"split,omitempty"`
	// ErrorPages replaces error responses. Nil leaves them unchanged.
	ErrorPages *ErrorPages `json:"error_pages,omitempty"`
	// Origin is the object that defines the route, as "Kind/namespace/name".
	Origin string `json:"origin,omitempty"`
	ir.RoutePolicy
}

// First returns the only destination of a route, or the first destination of Split.
func (r *Route) First() *Destination {
	if len(r.Split) > 0 {
		return &r.Split[0].Destination
	}
	return &r.Destination
}

// ErrorPages is the JSON form of ir.ErrorPages. Backend is the ID of the backend that serves the error pages, or empty
// if the route has no such backend.
type ErrorPages struct {
	ir.ErrorPages
	// AfterDefaultChains is true if Backend only gets requests that have passed the default chains of the route.
	AfterDefaultChains bool   `json:"after_default_chains,omitempty"`
	Backend            string `json:"backend,omitempty"`
}

// Share is one of several destinations that share the requests of a route.
type Share struct {
	Destination
	// Weight is the share of this destination, relative to the sum of all weights. Zero means no share.
	Weight int `json:"weight,omitempty"`
	// If Fallback is set, this destination also gets the requests of the other destinations while their backends have
	// no endpoints.
	Fallback bool `json:"fallback,omitempty"`
	// Canary is the canary that gets this share, as "Kind/namespace/name". It is empty if the share belongs to the
	// object in the Origin of the route.
	Canary string `json:"canary,omitempty"`
}

// Destination defines how a request is processed: by a handler chain, whose last handler sends it to a backend.
type Destination struct {
	// Chain is the handler chain for the request: a list of Caddy HTTP routes. Equal chains are provisioned only once.
	Chain json.RawMessage `json:"chain,omitempty"`
	// Backend is the ID of the backend that the last handler of the chain sends requests to.
	Backend string `json:"backend,omitempty"`
	// TLS configures TLS connections to the endpoints of the backend. If it is nil, these connections use no client
	// certificate, and the certificates of the endpoints are not verified.
	TLS *ir.BackendTLS `json:"tls,omitempty"`
	// Users lists the Secrets with user names and passwords that the basic authentication handlers in Chain use. The
	// list exists so that these Secrets can be found without parsing Chain.
	Users []ir.Users `json:"users,omitempty"`
	// Access is a digest of the parts of Chain that restrict access to the backend. It is empty if access is not
	// restricted. If Access changes, the open streams of the route are ended, because their clients may no longer be
	// allowed.
	Access string `json:"access,omitempty"`
	// Refused is the reason why there is no Chain; requests then get 503. It is empty if there is a Chain.
	Refused string `json:"refused,omitempty"`
}

// AnyOf is the JSON configuration of the Caddy handler that implements the filter ir.AnyOf.
type AnyOf struct {
	// Filters contains the JSON configuration of one Caddy handler for each filter.
	Filters []json.RawMessage `json:"filters"`
}

// Backend is a set of endpoints.
type Backend struct {
	// Endpoints are addresses of the form host:port.
	Endpoints []string `json:"endpoints"`
	// ExternalName is "name:port" for a backend whose endpoints are the addresses of a DNS name. The process that
	// serves the configuration resolves the name.
	ExternalName string `json:"external_name,omitempty"`
	// LoadBalancing configures how an endpoint is chosen. Nil means round robin.
	LoadBalancing *ir.LoadBalancing `json:"load_balancing,omitempty"`
}

// Port is one TCP or UDP port.
type Port struct {
	// Server is the JSON configuration of a caddy-l4 server.
	Server json.RawMessage `json:"server"`
	// StreamBackends are the backends to which the last handler of Server forwards connections. They are copied from
	// Server, so that they can be found without parsing it.
	StreamBackends
	// BackendTLS is the TLS configuration of the last handler of Server, for its connections to the endpoints. It is
	// copied from Server, so that its Secret can be found without parsing Server.
	BackendTLS *ir.BackendTLS `json:"backend_tls,omitempty"`
	// TLS is the source of the certificate if Server terminates TLS. It is copied from Server, so that its Secret can
	// be found without parsing Server.
	TLS *ir.StreamTLS `json:"tls,omitempty"`
	// Origin is the object that defines the port. In JSON it is "Kind/namespace/name".
	Origin ir.Ref `json:"origin,omitzero"`
}

// OfService reports whether a Service defines the port with its annotations. Otherwise a ConfigMap defines it.
func (p *Port) OfService() bool { return p.Origin.Kind == "Service" }

// Encode returns a value as JSON. It panics if the value cannot be encoded. This would be a programming error, because
// all encoded values consist of strings and numbers.
func Encode(v any) json.RawMessage {
	data, err := json.Marshal(v)
	if err != nil {
		panic(err)
	}
	return data
}

// EncodeModule returns the JSON configuration of a Caddy module. field is the JSON field from which Caddy reads the
// name of the module.
func EncodeModule(field, name string, module any) json.RawMessage {
	fields, ok := bytes.CutPrefix(Encode(module), []byte("{"))
	if !ok {
		panic(fmt.Sprintf("a module that is no object: %T", module))
	}
	object := make(json.RawMessage, 0, len(fields)+len(field)+len(name)+len(`{"":"",`))
	object = append(append(append(object, '{'), Encode(field)...), ':')
	object = append(object, Encode(name)...)
	if len(fields) > 1 {
		object = append(object, ',')
	}
	return append(object, fields...)
}

// StreamBackends holds the backends of TCP connections or UDP clients: one backend, or several backends that share the
// connections or clients.
type StreamBackends struct {
	// Backend is the ID of the backend ("namespace/service/port"). It is empty if there are several backends.
	Backend string `json:"backend,omitempty"`
	// Split lists the backends if there are several of them. Backend is then empty.
	Split []StreamShare `json:"split,omitempty"`
}

// Namespace returns the namespace of the backends. All backends of a port are in the same namespace.
func (b *StreamBackends) Namespace() string {
	if len(b.Split) > 0 {
		return NamespaceOf(b.Split[0].Backend)
	}
	return NamespaceOf(b.Backend)
}

// NamespaceOf returns the namespace in the ID of a backend.
func NamespaceOf(backend string) string {
	namespace, _, _ := strings.Cut(backend, "/")
	return namespace
}

// StreamShare is one of several backends that share TCP connections, or UDP clients, by weight.
type StreamShare struct {
	Backend string `json:"backend"`
	// Weight is the share of this backend, relative to the sum of all weights. Zero means no share.
	Weight int `json:"weight,omitempty"`
	// If Fallback is set, this backend also gets the connections of the other backends while they have no endpoints.
	Fallback bool `json:"fallback,omitempty"`
}

// StreamsTo converts the backends of a stream route to a StreamBackends.
func StreamsTo(backends []ir.WeightedBackend) (to StreamBackends) {
	if len(backends) == 1 {
		to.Backend = backends[0].Backend.ID
		return to
	}
	for _, b := range backends {
		to.Split = append(to.Split, StreamShare{Backend: b.Backend.ID, Weight: b.Weight, Fallback: b.Fallback})
	}
	return to
}
