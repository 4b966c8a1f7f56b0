// Package ownership decides which namespace owns a host name, for the rules and default backends of Ingresses and for
// TCP ports. It does no I/O: equal objects and options give the same owner, in every order of events, in every replica
// and after every restart.
package ownership

import (
	"iter"
	"strings"

	"github.com/k8singress/k8singress/internal/model/ir"
	"github.com/k8singress/k8singress/internal/model/kinds"
	"github.com/k8singress/k8singress/internal/model/settings"
	"github.com/k8singress/k8singress/internal/model/snapshot"
)

// Policy holds the administrator's settings for the ownership of hosts. With the zero value each namespace may own
// every host, and may have paths on hosts of others.
type Policy struct {
	// Exclusive rejects the paths of all namespaces other than the owner.
	Exclusive bool
	// Reserved lists the namespaces that may own a host or have paths on it. The key is a host name, a wildcard such as
	// "*.shop.example", which matches any number of labels before the suffix, or "*" for every other host. The most
	// specific key applies. Namespaces have the form that settings.MatchNamespace expects.
	Reserved map[string][]string
	// Solvers are the namespaces that may serve the HTTP-01 challenges of certificate authorities on the hosts of
	// others.
	Solvers []string
}

// Owner is the namespace that owns a host. It alone decides about settings for the host as a whole.
type Owner struct {
	// Namespace is empty for a host without an owner.
	Namespace string
	// By is the oldest object through which the namespace owns the host.
	By kinds.Object
}

// Is reports whether a namespace is the owner.
func (o Owner) Is(namespace string) bool { return o.By != nil && o.Namespace == namespace }

// Same reports whether two owners own a host through the same object with the same age.
func (o Owner) Same(other Owner) bool {
	if o.By == nil || other.By == nil {
		return o.By == other.By
	}
	return snapshot.RefOf(o.By) == snapshot.RefOf(other.By) && snapshot.Older(o.By, other.By) == 0
}

// Of returns the owner of a host: the namespace of the oldest object that claims it, among the namespaces that may own
// it. above is the owner of the wildcard that covers the host. If p is exclusive, above claims the host, too.
func (p *Policy) Of(host string, claims iter.Seq[kinds.Object], above Owner) Owner {
	var oldest kinds.Object
	if p.Exclusive && above.By != nil && p.Admits(host, above.Namespace) {
		oldest = above.By
	}
	for object := range claims {
		if p.Admits(host, object.GetNamespace()) && (oldest == nil || snapshot.Older(object, oldest) < 0) {
			oldest = object
		}
	}
	if oldest == nil {
		return Owner{}
	}
	return Owner{Namespace: oldest.GetNamespace(), By: oldest}
}

// Admits reports whether Reserved lets a namespace own a host.
func (p *Policy) Admits(host, namespace string) bool {
	if len(p.Reserved) == 0 {
		return true
	}
	patterns, reserved := p.ReservedFor(host)
	return !reserved || settings.MatchNamespace(patterns, namespace)
}

// ReservedFor returns the namespaces for which a host is reserved.
func (p *Policy) ReservedFor(host string) (namespaces []string, reserved bool) {
	if namespaces, reserved = p.Reserved[host]; reserved && host != "" {
		return namespaces, true
	}
	for rest, found := strings.TrimPrefix(host, "*."), true; found; {
		if _, rest, found = strings.Cut(rest, "."); found {
			if namespaces, reserved = p.Reserved["*."+rest]; reserved {
				return namespaces, true
			}
		}
	}
	namespaces, reserved = p.Reserved["*"]
	return namespaces, reserved
}

// Serves reports whether the paths of a namespace may be served on a host with this owner.
func (p *Policy) Serves(host string, owner Owner, namespace string) bool {
	return owner.Is(namespace) || !p.Exclusive && p.Admits(host, namespace)
}

// Solves reports whether a path of a namespace may be served on a host of another namespace, because it is a challenge
// path and the namespace is one of the Solvers.
func (p *Policy) Solves(namespace string, path ir.PathMatch) bool {
	below := path.Path == Challenges || strings.HasPrefix(path.Path, Challenges+"/")
	return below && path.Type != ir.MatchRegex && settings.MatchNamespace(p.Solvers, namespace)
}

// Challenges is the path at which certificate authorities fetch the responses to HTTP-01 challenges.
const Challenges = "/.well-known/acme-challenge"
