// Package document is the live part of the Caddy document. Package render produces it, packages live, l4app and certs
// serve it, and GET and PUT /k8singress/config exchange it. The other part, the structure, is plain Caddy JSON.
package document

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/k8singress/k8singress/internal/model/ir"
)

// Live is the value of apps.k8singress.live.
type Live struct {
	// Hosts are the virtual hosts by name: a name in lower case, "*.example.com", or "" for every other host.
	Hosts map[string]*Host `json:"hosts,omitempty"`
	// Backends are the endpoints by backend ID ("namespace/service/port").
	Backends map[string]*Backend `json:"backends,omitempty"`
	// Ports are the TCP and UDP ports by name, such as "tcp/5432".
	Ports map[string]*Port `json:"ports,omitempty"`
	// Certificates are the TLS certificates by host name. "" is the default certificate. They refer to Secrets: private
	// keys are never part of a document.
	Certificates map[string]*ir.Certificate `json:"certificates,omitempty"`
	// ListenerGroups are listeners on additional ports with their own hosts, by name.
	ListenerGroups map[string]*ListenerGroup `json:"listener_groups,omitempty"`
	// Global has the settings for all requests. Nil means ingress-nginx's defaults.
	Global *ir.Global `json:"global,omitempty"`
}

// ListenerGroup is a set of listeners that serve the hosts of the group and no others.
type ListenerGroup struct {
	// Listeners are in the order of their origin. If two listeners of any groups conflict, the first one is used.
	Listeners []ir.Listener `json:"listeners"`
	// Hosts has the form of Live.Hosts.
	Hosts map[string]*Host `json:"hosts,omitempty"`
	// Origin is the object that defines the group. In JSON it is "Kind/namespace/name".
	Origin ir.Ref `json:"origin,omitzero"`
}

// Host is one virtual host.
type Host struct {
	// AliasOf is the host whose routes and policies serve this name. If it is set, the fields below are empty, except
	// AliasBy and AliasSince. The name of an alias may be "~" and a regular expression.
	AliasOf string `json:"alias_of,omitempty"`
	// AliasBy is the object that defines an alias with a regular expression, as "Kind/namespace/name". AliasSince is
	// its creation time, in seconds since 1970. If several expressions match a name, the oldest wins.
	AliasBy    string `json:"alias_by,omitempty"`
	AliasSince int64  `json:"alias_since,omitempty"`
	// TLS is nil for a host that uses the global TLS policy.
	TLS *ir.TLSPolicy `json:"tls,omitempty"`
	// Routes are tried in this order: an exact path, then the longest prefix, then the first regex in the list that
	// matches. A regex that is in the list before that exact path or prefix takes precedence over it.
	Routes []*Route `json:"routes"`
	// ClientAuth configures client certificates. Nil means that none are requested.
	ClientAuth *ir.ClientAuth `json:"client_auth,omitempty"`
	// Passthrough is the ID of the backend to which TLS connections for the host are forwarded unchanged (TLS
	// passthrough). It is empty if TLS is terminated here. Otherwise the routes only apply to requests without TLS.
	Passthrough string `json:"passthrough,omitempty"`
	// PassthroughSplit has the backends if several share these connections. In this case Passthrough is empty.
	PassthroughSplit []StreamShare `json:"passthrough_split,omitempty"`
}

// Route is one path of a virtual host.
type Route struct {
	// Type is "exact", "prefix" (by path element) or "regex" (anchored at the start, case-insensitive).
	Type string `json:"type"`
	// Path is compared with the path of the request according to Type.
	Path string `json:"path"`
	// Match has additional conditions on the request. Nil means that there are none. If a request does not meet them,
	// the next route for its path is tried.
	Match *ir.Conditions `json:"match,omitempty"`
	// HTTPSRedirect redirects requests without TLS. Nil disables the redirect.
	HTTPSRedirect *ir.HTTPSRedirect `json:"https_redirect,omitempty"`
	Destination
	// Split has the destinations if several share the requests. In this case the fields of Destination are empty.
	Split []*Share `json:"split,omitempty"`
	// ErrorPages replaces error responses. Nil leaves them unchanged.
	ErrorPages *ErrorPages `json:"error_pages,omitempty"`
	// Origin is the object that defines the route, as "Kind/namespace/name".
	Origin string `json:"origin,omitempty"`
	// Unlogged keeps the requests of the route out of the access log.
	Unlogged bool `json:"unlogged,omitempty"`
	// Tracing configures traces of the requests. Nil disables tracing.
	Tracing *ir.Tracing `json:"tracing,omitempty"`
}

// First returns the only destination of a route, or the first destination of Split.
func (r *Route) First() *Destination {
	if len(r.Split) > 0 {
		return &r.Split[0].Destination
	}
	return &r.Destination
}

// ErrorPages is ir.ErrorPages with the ID of the backend. The ID is empty if there is no backend.
type ErrorPages struct {
	ir.ErrorPages
	Backend string `json:"backend,omitempty"`
}

// Share is one of several destinations of a route.
type Share struct {
	Destination
	// Weight is the share relative to the sum of all weights. Zero means no share.
	Weight int `json:"weight,omitempty"`
	// Fallback also sends the requests for backends without endpoints to this destination.
	Fallback bool `json:"fallback,omitempty"`
}

// Destination has the handlers that process a request, and the backend that it goes to.
type Destination struct {
	// Chain is the handler chain for the request: a list of Caddy HTTP routes. Equal chains are provisioned only once.
	Chain json.RawMessage `json:"chain,omitempty"`
	// Backend is the ID of the backend that the last handler of the chain sends requests to.
	Backend string `json:"backend,omitempty"`
	// TLS configures TLS connections to the endpoints of the backend. Nil uses no client certificate and does not
	// verify certificates.
	TLS *ir.BackendTLS `json:"tls,omitempty"`
	// Users has the Users of all filters in Chain that require a password, which Chain contains, too. They are repeated
	// here so that their Secrets are watched.
	Users []ir.Users `json:"users,omitempty"`
	// Access is a digest of the parts of Chain that restrict access to the backend. It is empty if access is not
	// restricted. If Access of a route changes, its open streams are ended, because their clients may no longer be
	// allowed.
	Access string `json:"access,omitempty"`
	// Refused is the reason if there is no Chain. Requests get 503.
	Refused string `json:"refused,omitempty"`
}

// AnyOf is the JSON of the handler for ir.AnyOf.
type AnyOf struct {
	// Filters is a list of handlers.
	Filters []json.RawMessage `json:"filters"`
}

// Backend is a set of endpoints.
type Backend struct {
	// Endpoints are addresses of the form host:port.
	Endpoints []string `json:"endpoints"`
	// ExternalName is "name:port" for a backend whose endpoints are the addresses of a DNS name. The server of the
	// document resolves the name.
	ExternalName string `json:"external_name,omitempty"`
	// LoadBalancing configures how an endpoint is chosen. Nil means round robin.
	LoadBalancing *ir.LoadBalancing `json:"load_balancing,omitempty"`
}

// Port is one TCP or UDP port.
type Port struct {
	// Server is a caddy-l4 server.
	Server json.RawMessage `json:"server"`
	// StreamBackends has the backends of the server's terminal handler, which contains them, too.
	StreamBackends
	// BackendTLS is the TLS configuration of that handler, which contains it, too. It is repeated here so that its
	// Secret is watched.
	BackendTLS *ir.BackendTLS `json:"backend_tls,omitempty"`
	// TLS is the source of the certificate if the server terminates TLS. Server contains it, too. It is repeated here
	// so that its Secret is watched.
	TLS *ir.StreamTLS `json:"tls,omitempty"`
	// Origin is the object that defines the port. In JSON it is "Kind/namespace/name".
	Origin ir.Ref `json:"origin,omitzero"`
}

// Encode returns a value as JSON. It panics if the value cannot be encoded. That is a programming error, because all
// encoded values consist of strings and numbers.
func Encode(v any) json.RawMessage {
	data, err := json.Marshal(v)
	if err != nil {
		panic(err)
	}
	return data
}

// EncodeModule returns the JSON of a Caddy module. It adds the module's name in the field from which Caddy reads it.
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

// StreamBackends has the destination of connections: one backend, or several that share them.
type StreamBackends struct {
	// Backend is the ID of the only backend: "namespace/service/port".
	Backend string `json:"backend,omitempty"`
	// Split has the backends if there are several. In this case Backend is empty.
	Split []StreamShare `json:"split,omitempty"`
}

// Namespace returns the namespace of the backends. All backends of a port are in one namespace.
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

// StreamShare is one of several backends that share connections, or clients of UDP, by weight.
type StreamShare struct {
	Backend string `json:"backend"`
	// Weight is the share relative to the sum of all weights. Zero means no share.
	Weight int `json:"weight,omitempty"`
	// Fallback also sends the connections for backends without endpoints to this backend.
	Fallback bool `json:"fallback,omitempty"`
}

// StreamsTo returns the destination of the connections of a stream route.
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
