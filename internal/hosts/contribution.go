// Package hosts joins what objects ask of one host name: the paths, the certificate, and what holds for the host as a whole.
// It knows no kind of object: package ingress reads Ingresses into Contributions, and other kinds of routes can do the same.
// It is pure.
package hosts

import (
	"strings"

	"github.com/k8singress/k8singress/internal/ir"
	"github.com/k8singress/k8singress/internal/kinds"
	"github.com/k8singress/k8singress/internal/report"
	"github.com/k8singress/k8singress/internal/snapshot"
)

// Contribution is what one object asks of its hosts. Nothing changes it once Merge has seen it.
type Contribution struct {
	Object kinds.Object
	// Paths are by host. A host without paths is there, too, if a rule names it.
	Paths map[string][]*Path
	// Fallback answers for every host where no path does. It is nil for an object that has rules.
	Fallback *Path
	// Root answers requests for "/" itself on all hosts that the object has paths of; it has neither a backend nor a match. It is nil
	// without.
	Root *Path
	// Aliases are more names of the hosts: names, wildcards, and regular expressions after "~". WWW is the status of the redirect between
	// the host with "www." and the one without; it is zero without.
	Aliases []string
	WWW     int
	// Certificates are by host: those of the hosts that the object lists for TLS. Absent are the hosts among them whose Secret
	// does not exist.
	Certificates map[string]*ir.Certificate
	Absent       []string
	// Implied are by host: the certificates of hosts that are not listed for TLS. They count where no object lists the host.
	Implied map[string]*Implied
	// TLSHosts are the hosts and wildcards that the object lists for TLS, whatever becomes of their certificates; AllTLS lists
	// all hosts of its rules.
	TLSHosts []string
	AllTLS   bool
	// PassesThrough hands the TLS connections of the hosts to the backend of the path "/".
	PassesThrough bool
	// Closed says that every path answers 503.
	Closed bool
	// ClientAuth asks the clients of the hosts for certificates; it is nil without.
	ClientAuth *ir.ClientAuth
	// Unsecured says that the endpoints speak TLS, that the object does not say how, and that its owner may not know.
	Unsecured bool
	// TLS is the handshake of the hosts. AsksCiphers says that the object itself asks for the ciphers.
	TLS         ir.TLSPolicy
	AsksCiphers bool
	// Canary shares requests of other objects. The object has nothing else then but Paths and a Fallback. It is nil for one
	// that answers by itself.
	Canary *ir.Canary
	// PatternSize is what the regular expressions of the object come to that are no paths: one that is compiled several times counts
	// as often.
	PatternSize int
	// AliasSize is what those of the aliases come to, which PatternSize has in it.
	AliasSize int
	// PatternsRefused says that no path of the object is taken as a regular expression.
	PatternsRefused bool
}

// Path is one path of one host.
type Path struct {
	Match ir.PathMatch
	// Redirect is for hosts with a certificate, or with RedirectAlways for every host. It is nil without.
	Redirect       *ir.HTTPSRedirect
	RedirectAlways bool

	Filters []ir.Filter
	Proxy   ir.Proxy
	Backend *ir.Backend
	// ErrorPages are nil without.
	ErrorPages *ir.ErrorPages
	// Unlogged keeps its requests out of the access log.
	Unlogged bool
	// Tracing is nil without.
	Tracing *ir.Tracing
	// Regex says that the path makes all paths that its namespace has on the host regular expressions.
	Regex bool
	// Last says that the path answers where no other path of the host matches.
	Last bool
	// Field is where it stands in its object.
	Field string
}

// Implied is the certificate of a host that is not listed for TLS.
type Implied struct {
	Certificate *ir.Certificate
	// Refusal says why no issuer is asked for it. It is nil where one is.
	Refusal *report.Problem
}

// Ref names the object.
func (c *Contribution) Ref() ir.Ref { return snapshot.RefOf(c.Object) }

func (c *Contribution) namespace() string { return c.Object.GetNamespace() }

// Rules says whether a rule of the object names the host.
func (c *Contribution) Rules(host string) bool {
	_, ok := c.Paths[host]
	return ok
}

// secures says whether the object lists a host of its rules for TLS, or asks an issuer for a certificate of it. What the
// certificate is worth does not matter: with a Secret that is missing, too, the host is meant for HTTPS.
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

// catchesAll says whether the object answers for every host that no rule has.
func (c *Contribution) catchesAll() bool { return c.Fallback != nil || c.Rules("") }

// WildcardOf returns the wildcard that covers a host: "*.example.com" for "www.example.com". It is empty if none does.
func WildcardOf(host string) string {
	dot := strings.IndexByte(host, '.')
	if dot <= 0 || strings.HasPrefix(host, "*.") {
		return ""
	}
	return "*" + host[dot:]
}

// OrEvery names a host in a message; the empty one is every host.
func OrEvery(host string) string {
	if host == "" {
		return "every host"
	}
	return host
}
