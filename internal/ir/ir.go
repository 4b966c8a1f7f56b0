// Package ir is the model of what the controller serves. Translators of Kubernetes objects produce it, package render
// turns it into Caddy's words, and it knows neither of them: it holds values only, and imports the standard library.
//
// Values of this package are immutable once a translation has returned them. The next translation returns the same
// pointer for what did not change, so that comparing pointers finds what did.
package ir

import "strings"

// Config is everything that is to be served.
type Config struct {
	// VirtualHosts are sorted by host name.
	VirtualHosts []*VirtualHost
	// Backends are all backends that a route or a stream route refers to, sorted by ID.
	Backends []*Backend
	// StreamRoutes are sorted by protocol and port.
	StreamRoutes []*StreamRoute
	// Certificates are sorted by host name.
	Certificates []*Certificate
	// DefaultCertificate answers for every other name. Nil means a self-signed one.
	DefaultCertificate *Certificate
	// Global is never nil.
	Global *Global
}

// VirtualHost is one host name and its routes.
type VirtualHost struct {
	// Host is a name in lower case without trailing dot, a wildcard of one label such as "*.example.com", or empty for
	// requests whose host no other virtual host has.
	Host string
	// Regex says that every path of this host is a regular expression. It is a property of the host in ingress-nginx.
	Regex bool
	// TLS is nil for a host that has what Global says.
	TLS *TLSPolicy
	// TLSOrigin is the object whose ciphers TLS has, as "Kind/namespace/name".
	TLSOrigin string
	// Routes are in the order in which they are tried: the first that matches answers.
	Routes []*Route
	// ClientAuth is nil for a host that asks its clients for no certificate.
	ClientAuth *ClientAuth
	// Passthrough is the backend that ends the TLS of the host: connections go there as they are, and nothing else that is
	// said here counts for them. It is that of one of the routes, and nil where TLS ends here.
	Passthrough *Backend
}

// Route sends the requests that match to a backend, through filters.
type Route struct {
	Match Match
	// HTTPSRedirect comes before the filters; nil is without.
	HTTPSRedirect *HTTPSRedirect
	// Filters are in the order in which a request meets them.
	Filters []Filter
	// Backend is never nil: a backend that does not exist is one without endpoints. It names the one of Config.Backends that
	// has the same ID; how an endpoint is chosen stands only there, because all routes to a backend share it.
	Backend *Backend
	Proxy   Proxy
	Origin  Origin
}

// MatchType says how Match.Path is compared with the path of a request.
type MatchType string

const (
	// MatchExact is equal, case included.
	MatchExact MatchType = "exact"
	// MatchPrefix is equal element by element: /foo matches /foo, /foo/ and /foo/bar, and not /foobar.
	MatchPrefix MatchType = "prefix"
	// MatchRegex is ingress-nginx's: anchored at the start only, case-insensitive.
	MatchRegex MatchType = "regex"
)

// Match is a condition on the path of a request.
type Match struct {
	Type MatchType
	// Path begins with a slash; with MatchRegex it is an RE2 pattern.
	Path string
}

// Filter changes a request or its response, or answers in place of the backend. Each kind of filter is one type here
// and one case in package render.
type Filter interface{ filter() }

// URLRewrite replaces the whole path by Target. The query stays.
type URLRewrite struct {
	// Target may refer to the groups of the route's regular expression: $1 to $9.
	Target string
}

func (URLRewrite) filter() {}

// HandlerChain is a list of Caddy handlers that the administrator has put into the Caddyfile under a name.
type HandlerChain struct{ Name string }

func (HandlerChain) filter() {}

// DirectResponse answers in place of the backend, and of the filters behind it.
type DirectResponse struct{ Status int }

func (DirectResponse) filter() {}

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
	Host            string
	SecretNamespace string
	SecretName      string
	// SecondSecretName is another Secret of the same namespace with a certificate for the host, so that one can have an
	// ECDSA key and the other an RSA key. It is empty for nearly every host.
	SecondSecretName string
	// Automated says that an issuer is asked for the certificate. There is no Secret of the Ingress then.
	Automated bool
	Origin    Origin
}

// Origin is the object that something comes from, for verdicts, logs and metrics.
type Origin = Ref

// Ref names one Kubernetes object.
type Ref struct {
	Kind      string
	Namespace string
	Name      string
}

// String returns "Kind/namespace/name", or "Kind/name" for objects of the whole cluster.
func (r Ref) String() string {
	if r.Namespace == "" {
		return r.Kind + "/" + r.Name
	}
	return r.Kind + "/" + r.Namespace + "/" + r.Name
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
