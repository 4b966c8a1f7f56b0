// Package hosts merges the settings that several objects configure for the same host name: paths, certificates, and
// settings for the host as a whole. It is independent of the kind of object: package ingress translates each Ingress
// into a Contribution, and other kinds of objects with routes can do the same. It does no I/O.
package hosts

import (
	"strings"

	"github.com/k8singress/k8singress/internal/model/ir"
	"github.com/k8singress/k8singress/internal/model/kinds"
	"github.com/k8singress/k8singress/internal/model/report"
	"github.com/k8singress/k8singress/internal/model/snapshot"
)

// Contribution holds the settings that one object configures for its hosts. It must not be changed after it was passed
// to Merge.
type Contribution struct {
	Object kinds.Object
	// Paths maps each host to the object's paths for this host. A host with an empty list has a rule without paths.
	Paths map[string][]*Path
	// Fallback is the default backend of an object without rules. It serves requests that no path matches. It is nil if
	// the object has rules.
	Fallback *Path
	// Redirect is the redirect to HTTPS for requests that no path of their host matches, or nil. RedirectAlways has the
	// same meaning as in Path.
	Redirect       *ir.HTTPSRedirect
	RedirectAlways bool
	// Root handles requests for exactly "/" on all hosts for which the object has paths. Its fields Backend and Match
	// are not set. If Root is nil, no route for "/" is added.
	Root *Path
	// Aliases are additional names of the hosts. An alias is a name, a wildcard, or "~" followed by a regular
	// expression. WWW is the status code of the redirect between a host with the prefix "www." and the host without
	// this prefix. If it is zero, there is no redirect.
	Aliases []string
	WWW     int
	// DefaultChains is the filter that runs the default chains of the object, or nil. The filters of the paths contain
	// it, too.
	DefaultChains []ir.Filter
	// Certificates maps each host in spec.tls to its certificate. Absent lists the hosts whose Secret in spec.tls does
	// not exist.
	Certificates map[string]*ir.Certificate
	Absent       []string
	// Implied contains certificates to obtain from an issuer, keyed by host, for hosts that are not in the object's
	// spec.tls. Such a certificate is only used if no other object lists the host in its spec.tls.
	Implied map[string]*Implied
	// TLSHosts are the hosts and wildcards in the object's spec.tls, whether or not they get a certificate. AllTLS is
	// true if an entry of spec.tls applies to all hosts of the object's rules.
	TLSHosts []string
	AllTLS   bool
	// PassesThrough is true if TLS connections for the hosts are forwarded to the backend of the path "/" without
	// terminating TLS.
	PassesThrough bool
	// Closed is true if all paths return 503, because of invalid settings or a fault.
	Closed bool
	// Guard is the guard that TLS connections would bypass if they were passed through. It is the zero value if there
	// is no such guard.
	Guard Guard
	// OnDemand is true if certificates are ordered on demand for names that the wildcards of the object, or its rules
	// without a host, serve.
	OnDemand bool
	// ClientAuth configures client certificates for the hosts. If it is nil, the object does not request client
	// certificates.
	ClientAuth *ir.ClientAuth
	// Unsecured is true if the endpoints use TLS and the object has no proxy-ssl-secret. The object then gets a warning
	// if another object for the same host has a proxy-ssl-secret. The ConfigMap key proxy-ssl-location-only disables
	// the warning: if it is true, Unsecured is false.
	Unsecured bool
	// TLS configures the TLS handshakes for the hosts. AsksCiphers is true if the object itself sets the ciphers, and
	// false if the ciphers come from the default settings.
	TLS         ir.TLSPolicy
	AsksCiphers bool
	// Canary configures which share of the main objects' requests this object gets. It is nil if the object is not a
	// canary. The Contribution of a canary contains only Canary, Paths, Fallback and DefaultChains.
	Canary *ir.Canary
	// PatternSize is the total size of all regular expressions in the object's settings other than paths, counted in
	// instructions of the compiled expressions. An expression that is compiled several times is counted each time.
	PatternSize int
	// AliasSize is the part of PatternSize for the regular expressions in Aliases.
	AliasSize int
	// Server is what snippets configure for the hosts as a whole. It is nil if there are no such snippets.
	Server *Server
	// PatternsRefused is true if all paths that are regular expressions are rejected, because the limit for the
	// namespace is exceeded.
	PatternsRefused bool
}

// Guard describes a guard of an object that clients cannot pass, whatever their requests contain.
type Guard struct {
	// Step is the name of the step in which the guard runs.
	Step string
	// Rejects is ir.SomeClients or ir.AllRequests, or ir.SomeRequests for default chains.
	Rejects ir.Guard
	// Temporary is true if the guard is set only for some time, so that it is not a mistake beside other settings.
	Temporary bool
}

// Path is one path of a host, with its backend and settings.
type Path struct {
	Match ir.PathMatch
	// Redirect is the redirect from HTTP to HTTPS, or nil. It applies only to hosts that are served over HTTPS, or to
	// every host if RedirectAlways is true.
	Redirect       *ir.HTTPSRedirect
	RedirectAlways bool

	// Filters are the filters for the path. The filters that snippets add for the whole host follow the first ones, as
	// many as Early. The limits of the path follow the first ones, as many as BeforeLimits.
	Filters      []ir.Filter
	Early        int
	BeforeLimits int
	Proxy        ir.Proxy
	Backend      *ir.Backend
	// ErrorPages configures which error responses are replaced, and by which backend. If it is nil, error responses are
	// not replaced.
	ErrorPages *ir.ErrorPages
	ir.RoutePolicy
	// Regex is true if the path causes all paths of the same host and namespace to be matched as regular expressions.
	Regex bool
	// Last is true for a default backend, which serves requests that match no other path of the host.
	Last bool
	// Everywhere and Within are only set for locations. See ir.Match.
	Everywhere bool
	Within     *ir.PathMatch
	// Line is the line of a location in the snippet. It is 0 for other paths.
	Line int
	// Field is the position of the path in its object, such as "spec.rules[0].http.paths[0]".
	Field string
}

// Implied is a certificate that an issuer should provide for a host, although spec.tls does not list the host.
type Implied struct {
	Certificate *ir.Certificate
	// Refusal is the reason why no issuer can issue the certificate, or nil if an issuer can.
	Refusal *report.Problem
}

// Ref returns the reference to the object.
func (c *Contribution) Ref() ir.Ref { return snapshot.RefOf(c.Object) }

func (c *Contribution) namespace() string { return c.Object.GetNamespace() }

// Rules reports whether the object has a rule for the host.
func (c *Contribution) Rules(host string) bool {
	_, ok := c.Paths[host]
	return ok
}

// The result of the method secures is true if the host should use HTTPS because of this object: the object has a rule
// for the host, and either its spec.tls covers the host, or it requests a certificate for the host from an issuer. The
// certificate does not have to exist.
func (c *Contribution) secures(host string) bool {
	if !c.Rules(host) || host == "" {
		return false
	}
	if implied := c.Implied[host]; c.Certificates[host] != nil || c.AllTLS || implied != nil && implied.Refusal == nil {
		return true
	}
	above := WildcardOf(host)
	for _, name := range c.TLSHosts {
		if name == host || name == above {
			return true
		}
	}
	return false
}

// catchesAll reports whether the object serves requests for hosts that are not in any rule.
func (c *Contribution) catchesAll() bool { return c.Fallback != nil || c.Rules("") }

// WildcardOf returns the wildcard that covers a host, such as "*.example.com" for "www.example.com". It returns "" if
// the host cannot be covered by a wildcard.
func WildcardOf(host string) string {
	dot := strings.IndexByte(host, '.')
	if dot <= 0 || strings.HasPrefix(host, "*.") {
		return ""
	}
	return "*" + host[dot:]
}

// OrEvery returns "the host HOST" for use in a message, or "every host" if host is empty.
func OrEvery(host string) string {
	if host == "" {
		return "every host"
	}
	return "the host " + host
}
