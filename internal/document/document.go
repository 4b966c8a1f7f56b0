// Package document is the live half of the Caddy document: what package render emits, what packages live, l4app and
// certs serve, and what GET and PUT /k8singress/config exchange. The other half, the structure, is plain Caddy JSON.
package document

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/k8singress/k8singress/internal/ir"
)

// Live is the value of apps.k8singress.live.
type Live struct {
	// Hosts are the virtual hosts by name: a name in lower case, "*.example.com", or "" for every other host.
	Hosts map[string]*Host `json:"hosts,omitempty"`
	// Backends are the endpoints by backend ID ("namespace/service/port").
	Backends map[string]*Backend `json:"backends,omitempty"`
	// Ports are the TCP and UDP ports by name, such as "tcp/5432".
	Ports map[string]*Port `json:"ports,omitempty"`
	// Certificates are the TLS certificates by host name; "" is the default one. They name Secrets: private keys are
	// never part of a document.
	Certificates map[string]*ir.Certificate `json:"certificates,omitempty"`
	// ListenerGroups are listeners on ports beside those of the servers, with hosts of their own, by name.
	ListenerGroups map[string]*ListenerGroup `json:"listener_groups,omitempty"`
	// Global is what holds for every request; nil is ingress-nginx's defaults.
	Global *ir.Global `json:"global,omitempty"`
}

// ListenerGroup is listeners that serve the same hosts, and no others.
type ListenerGroup struct {
	// Listeners are in the order of their origin. Where two of all groups want the same, the first gets it.
	Listeners []ir.Listener `json:"listeners"`
	// Hosts are as those of Live.
	Hosts map[string]*Host `json:"hosts,omitempty"`
	// Origin is the object that the group comes from. JSON has it as "Kind/namespace/name".
	Origin ir.Ref `json:"origin,omitzero"`
}

// Host is one virtual host.
type Host struct {
	// AliasOf is the host that answers for this name; there is nothing else here then. The name of such a host may be "~" and a regular
	// expression.
	AliasOf string `json:"alias_of,omitempty"`
	// AliasBy is the object that asks for an expression, as "Kind/namespace/name", and AliasSince when it was made, in seconds since 1970. Of
	// several expressions that are found in a name, that of the oldest object counts.
	AliasBy    string `json:"alias_by,omitempty"`
	AliasSince int64  `json:"alias_since,omitempty"`
	// TLS is nil for a host that has what the global options say.
	TLS *ir.TLSPolicy `json:"tls,omitempty"`
	// Routes answer in this order: an exact path, else the longest prefix, else the first regex of the list that matches. A regex that
	// stands before that exact path or prefix comes before it.
	Routes []*Route `json:"routes"`
	// ClientAuth asks the clients for a certificate; nil is without.
	ClientAuth *ir.ClientAuth `json:"client_auth,omitempty"`
	// Passthrough is the ID of the backend that TLS connections for the host go to as they are. It is empty where TLS ends
	// here; the routes are for requests without TLS otherwise.
	Passthrough string `json:"passthrough,omitempty"`
	// PassthroughSplit are the backends where several share those connections. There is no Passthrough then.
	PassthroughSplit []StreamShare `json:"passthrough_split,omitempty"`
}

// Route is one path of a virtual host.
type Route struct {
	// Type is "exact", "prefix" (by path element) or "regex" (anchored at the start, case-insensitive).
	Type string `json:"type"`
	// Path is what Type compares with the path of the request.
	Path string `json:"path"`
	// Match is what else a request must have; nil is nothing. A request that has it not falls to the next route for its path.
	Match *ir.Conditions `json:"match,omitempty"`
	// HTTPSRedirect is for requests that come without TLS; nil is without.
	HTTPSRedirect *ir.HTTPSRedirect `json:"https_redirect,omitempty"`
	Destination
	// Split is where the requests go, in shares. There is no other Destination then.
	Split []*Share `json:"split,omitempty"`
	// ErrorPages are what clients get in place of errors; nil is without.
	ErrorPages *ErrorPages `json:"error_pages,omitempty"`
	// Origin is the object that the route comes from, as "Kind/namespace/name".
	Origin string `json:"origin,omitempty"`
	// Unlogged keeps its requests out of the access log.
	Unlogged bool `json:"unlogged,omitempty"`
	// Tracing is how its requests are traced; nil is not at all.
	Tracing *ir.Tracing `json:"tracing,omitempty"`
}

// First returns the only destination of a route, or the first one of its shares.
func (r *Route) First() *Destination {
	if len(r.Split) > 0 {
		return &r.Split[0].Destination
	}
	return &r.Destination
}

// ErrorPages are ir.ErrorPages, with the ID of the backend; it may be empty.
type ErrorPages struct {
	ir.ErrorPages
	Backend string `json:"backend,omitempty"`
}

// Share is one of several destinations of a route.
type Share struct {
	Destination
	// Weight is its part of the sum of all weights; zero is none.
	Weight int `json:"weight,omitempty"`
	// Fallback gets, besides its share, the requests for backends without endpoints.
	Fallback bool `json:"fallback,omitempty"`
}

// Destination is what a request meets, and where it goes.
type Destination struct {
	// Chain is what handles the request: a list of Caddy HTTP routes. Equal chains are provisioned once.
	Chain json.RawMessage `json:"chain,omitempty"`
	// Backend is the ID of the backend whose endpoints the handler at the end of the chain asks.
	Backend string `json:"backend,omitempty"`
	// TLS is how TLS is spoken with the endpoints of the backend; nil is without verification, and without a certificate.
	TLS *ir.BackendTLS `json:"tls,omitempty"`
	// Users are those whom a filter of Chain asks for a password, as they stand there, too. Their Secret is followed because of these.
	Users []ir.Users `json:"users,omitempty"`
	// Access is a digest of all in Chain that decides who gets to the backend; it is empty where nothing does. Streams of a
	// route with another Access than before are ended: the clients that opened them may not get in any more.
	Access string `json:"access,omitempty"`
	// Refused says why there is no Chain. Requests get 503.
	Refused string `json:"refused,omitempty"`
}

// AnyOf is the handler that stands for ir.AnyOf.
type AnyOf struct {
	// Filters are handlers, too.
	Filters []json.RawMessage `json:"filters"`
}

// Backend is a set of endpoints.
type Backend struct {
	// Endpoints are addresses, host:port.
	Endpoints []string `json:"endpoints"`
	// ExternalName is "name:port" for a backend whose endpoints are the addresses of a DNS name. Whoever serves the document
	// looks them up.
	ExternalName string `json:"external_name,omitempty"`
	// LoadBalancing is how one of them is chosen; nil is round robin.
	LoadBalancing *ir.LoadBalancing `json:"load_balancing,omitempty"`
}

// Port is one TCP or UDP port.
type Port struct {
	// Server is a caddy-l4 server.
	Server json.RawMessage `json:"server"`
	// StreamBackends are those that the server's terminal handler asks for endpoints, as they stand there, too.
	StreamBackends
	// BackendTLS is how that handler speaks TLS with them, as it stands there, too. Its Secret is followed because of this one.
	BackendTLS *ir.BackendTLS `json:"backend_tls,omitempty"`
	// TLS is where the certificate comes from with which the server ends the TLS of clients, as it stands there, too. Its Secret
	// is followed because of this one.
	TLS *ir.StreamTLS `json:"tls,omitempty"`
	// Origin is the object that the port comes from. JSON has it as "Kind/namespace/name".
	Origin ir.Ref `json:"origin,omitzero"`
}

// Encode returns a value as JSON. It panics for a value that cannot be JSON, which is a programming error: what is encoded is
// made of strings and numbers.
func Encode(v any) json.RawMessage {
	data, err := json.Marshal(v)
	if err != nil {
		panic(err)
	}
	return data
}

// EncodeModule returns the JSON of a Caddy module, with its name in the field that Caddy reads it from.
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

// StreamBackends is where connections go: to one backend, or to several in shares.
type StreamBackends struct {
	// Backend is the ID of the only backend: "namespace/service/port".
	Backend string `json:"backend,omitempty"`
	// Split are several backends. There is no Backend then.
	Split []StreamShare `json:"split,omitempty"`
}

// Namespace is that of the backends, of which a port has one.
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
	// Weight is its part of the sum of all weights; zero is none.
	Weight int `json:"weight,omitempty"`
	// Fallback gets, besides its share, the connections for backends without endpoints.
	Fallback bool `json:"fallback,omitempty"`
}

// StreamsTo returns where the connections of a stream route go.
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
