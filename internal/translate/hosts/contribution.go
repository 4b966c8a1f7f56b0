// Package hosts merges the settings of all objects for one host name: the paths, the certificate, and the settings for
// the host as a whole. It is independent of the kind of object: package ingress translates Ingresses into
// Contributions, and other kinds of routes can do the same. It does no I/O.
package hosts

import (
	"strings"

	"github.com/k8singress/k8singress/internal/model/ir"
	"github.com/k8singress/k8singress/internal/model/kinds"
	"github.com/k8singress/k8singress/internal/model/report"
	"github.com/k8singress/k8singress/internal/model/snapshot"
)

// Contribution holds the settings of one object for its hosts. It must not be changed after it was passed to Merge.
type Contribution struct {
	Object kinds.Object
	// Paths holds the paths by host. A host that a rule names without paths has an empty entry.
	Paths map[string][]*Path
	// Fallback is the default backend of an object without rules. It serves requests that no path matches. It is nil
	// for an object with rules.
	Fallback *Path
	// Root handles requests for exactly "/" on all hosts for which the object has paths. It has neither a backend nor a
	// match. Nil adds no such route.
	Root *Path
	// Aliases are additional names of the hosts: names, wildcards, and regular expressions after "~". WWW is the status
	// code of the redirect between the host with "www." and the host without it. Zero disables the redirect.
	Aliases []string
	WWW     int
	// Certificates holds, by host, the certificates of the hosts that the object lists for TLS. Absent lists the hosts
	// among them whose Secret does not exist.
	Certificates map[string]*ir.Certificate
	Absent       []string
	// Implied holds, by host, the certificates of hosts that the object does not list for TLS. They are used if no
	// object lists the host.
	Implied map[string]*Implied
	// TLSHosts are the hosts and wildcards that the object lists for TLS, whether or not they get a certificate. AllTLS
	// means that the object lists all hosts of its rules.
	TLSHosts []string
	AllTLS   bool
	// PassesThrough forwards the TLS connections of the hosts, without terminating TLS, to the backend of the path "/".
	PassesThrough bool
	// Closed means that all paths return 503.
	Closed bool
	// ClientAuth requests client certificates on the hosts. Nil disables it.
	ClientAuth *ir.ClientAuth
	// Unsecured means that the endpoints speak TLS and that the object has no proxy-ssl-secret, so that it gets a
	// warning if another object of the host has one. It is false if the key proxy-ssl-location-only is true.
	Unsecured bool
	// TLS is the policy for TLS handshakes of the hosts. AsksCiphers means that the object itself configures the
	// ciphers.
	TLS         ir.TLSPolicy
	AsksCiphers bool
	// Canary shares the requests of other objects. An object with a Canary has, besides this, only Paths and a
	// Fallback. Nil means that the object is not a canary.
	Canary *ir.Canary
	// PatternSize is the total size, in instructions, of the object's regular expressions that are not paths. An
	// expression that is compiled several times is counted as often.
	PatternSize int
	// AliasSize is the part of PatternSize that belongs to Aliases.
	AliasSize int
	// PatternsRefused rejects all paths of the object that are regular expressions.
	PatternsRefused bool
}

// Path is one path of one host.
type Path struct {
	Match ir.PathMatch
	// Redirect redirects requests to HTTPS on hosts whose owner wants HTTPS, or on every host with RedirectAlways. Nil
	// disables the redirect.
	Redirect       *ir.HTTPSRedirect
	RedirectAlways bool

	Filters []ir.Filter
	Proxy   ir.Proxy
	Backend *ir.Backend
	// ErrorPages replaces error responses. Nil leaves them unchanged.
	ErrorPages *ir.ErrorPages
	// Unlogged excludes requests for the path from the access log.
	Unlogged bool
	// Tracing is nil if requests for the path are not traced.
	Tracing *ir.Tracing
	// Regex turns all paths of the same namespace on the host into regular expressions.
	Regex bool
	// Last marks a default backend: it serves requests that no other path of the host matches.
	Last bool
	// Field is the position of the path in its object, such as "spec.rules[0].http.paths[0]".
	Field string
}

// Implied is the certificate of a host that is not listed for TLS.
type Implied struct {
	Certificate *ir.Certificate
	// Refusal explains why no issuer can issue the certificate. It is nil if an issuer can.
	Refusal *report.Problem
}

// Ref returns the reference to the object.
func (c *Contribution) Ref() ir.Ref { return snapshot.RefOf(c.Object) }

func (c *Contribution) namespace() string { return c.Object.GetNamespace() }

// Rules reports whether a rule of the object names the host.
func (c *Contribution) Rules(host string) bool {
	_, ok := c.Paths[host]
	return ok
}

// secures reports whether the object lists a host of its rules for TLS, or requests a certificate for it from an
// issuer. It does not matter whether the certificate is valid: a host whose Secret is missing is meant for HTTPS, too.
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

// catchesAll reports whether the object serves all hosts that no rule names.
func (c *Contribution) catchesAll() bool { return c.Fallback != nil || c.Rules("") }

// WildcardOf returns the wildcard that covers a host: "*.example.com" for "www.example.com". It returns "" if no
// wildcard can cover the host.
func WildcardOf(host string) string {
	dot := strings.IndexByte(host, '.')
	if dot <= 0 || strings.HasPrefix(host, "*.") {
		return ""
	}
	return "*" + host[dot:]
}

// OrEvery returns the name of a host for a message: "every host" for the empty host.
func OrEvery(host string) string {
	if host == "" {
		return "every host"
	}
	return host
}
