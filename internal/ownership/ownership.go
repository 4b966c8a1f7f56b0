// Package ownership decides which namespace has a host name. Everything that asks for a name asks here: rules of Ingresses, default
// backends and TCP ports today. It is pure: equal objects and options give the same owner, in every order of events, in every
// replica and after every restart.
package ownership

import (
	"iter"
	"strings"

	"github.com/k8singress/k8singress/internal/ir"
	"github.com/k8singress/k8singress/internal/kinds"
	"github.com/k8singress/k8singress/internal/settings"
	"github.com/k8singress/k8singress/internal/snapshot"
)

// Policy is what the administrator says of hosts. With the zero value every namespace may have every host, and may have paths on the
// hosts of others.
type Policy struct {
	// Exclusive keeps the paths of all other namespaces off a host.
	Exclusive bool
	// Reserved are the namespaces that may have a host at all, by its name, by a wildcard such as "*.shop.example", which stands for
	// names with any number of labels before that, or by "*" for every other host. Namespaces are as settings.MatchNamespace takes
	// them. The name that says the most counts.
	Reserved map[string][]string
	// Solvers are namespaces that answer the HTTP-01 challenges of certificate authorities for the hosts of others.
	Solvers []string
}

// Owner is the namespace that has a host. Its word alone counts for what holds for the host as a whole.
type Owner struct {
	// Namespace is empty for a host without an owner.
	Namespace string
	// By is the object by which the namespace has the host: its oldest one.
	By kinds.Object
}

// Is says whether a namespace is that of the owner.
func (o Owner) Is(namespace string) bool { return o.By != nil && o.Namespace == namespace }

// Same says whether two owners have a host by the same object, with the same age.
func (o Owner) Same(other Owner) bool {
	if o.By == nil || other.By == nil {
		return o.By == other.By
	}
	return snapshot.RefOf(o.By) == snapshot.RefOf(other.By) && snapshot.Older(o.By, other.By) == 0
}

// Of returns the owner of a host: the namespace of the oldest object with a claim to it, among those that may have it. above is the
// owner of the wildcard that covers the host. Where hosts are exclusive, it has a claim to the host too.
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

// Admits says whether a namespace may have a host, as far as Reserved says.
func (p *Policy) Admits(host, namespace string) bool {
	if len(p.Reserved) == 0 {
		return true
	}
	patterns, reserved := p.ReservedFor(host)
	return !reserved || settings.MatchNamespace(patterns, namespace)
}

// ReservedFor returns the namespaces that a host is reserved for.
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

// Serves says whether the paths of a namespace may answer on a host that has this owner.
func (p *Policy) Serves(host string, owner Owner, namespace string) bool {
	return owner.Is(namespace) || !p.Exclusive && p.Admits(host, namespace)
}

// Solves says whether a path of a namespace may answer on a host of another one, because it is one of those where authorities look
// for the answers to their challenges.
func (p *Policy) Solves(namespace string, path ir.PathMatch) bool {
	below := path.Path == Challenges || strings.HasPrefix(path.Path, Challenges+"/")
	return below && path.Type != ir.MatchRegex && settings.MatchNamespace(p.Solvers, namespace)
}

// Challenges is where certificate authorities look for the answers to HTTP-01 challenges.
const Challenges = "/.well-known/acme-challenge"
