// Package ownership decides which namespace owns a host name. The owner decides about the settings of the host for
// Ingresses and TCP ports. The package does no I/O. The same objects and options always result in the same owner,
// whatever the order of events is, in every replica, and after every restart.
package ownership

import (
	"iter"
	"strings"

	"github.com/k8singress/k8singress/internal/model/ir"
	"github.com/k8singress/k8singress/internal/model/kinds"
	"github.com/k8singress/k8singress/internal/model/settings"
	"github.com/k8singress/k8singress/internal/model/snapshot"
)

// Policy holds the administrator's settings for the ownership of hosts. With the zero value, every namespace may own
// every host, and may add paths to the hosts of other namespaces.
type Policy struct {
	// Exclusive means that only the owner of a host may have paths on it. The paths of other namespaces are rejected.
	Exclusive bool
	// Reserved contains the namespaces that may own a host or have paths on it, keyed by host. A key is a host name, a
	// wildcard such as "*.shop.example", which matches any number of labels, or "*" for all hosts without another key.
	// The most specific key applies. Namespaces are in the format of settings.MatchNamespace.
	Reserved map[string][]string
	// Solvers are the namespaces that may serve HTTP-01 challenges of certificate authorities on hosts that other
	// namespaces own.
	Solvers []string
}

// Owner is the namespace that owns a host. Settings for the host as a whole, such as its certificate, can only be
// configured in this namespace.
type Owner struct {
	// Namespace is empty if the host has no owner.
	Namespace string
	// By is the oldest object that makes the namespace the owner of the host, or nil if the host has no owner.
	By kinds.Object
}

// Is reports whether the given namespace is the owner.
func (o Owner) Is(namespace string) bool { return o.By != nil && o.Namespace == namespace }

// Same reports whether both owners own the host because of the same object. It returns false if the object was deleted
// and created again in the meantime, because its age then differs.
func (o Owner) Same(other Owner) bool {
	if o.By == nil || other.By == nil {
		return o.By == other.By
	}
	return snapshot.RefOf(o.By) == snapshot.RefOf(other.By) && snapshot.Older(o.By, other.By) == 0
}

// Of returns the owner of a host: the namespace of the oldest object that claims the host. Namespaces that are not
// allowed to own the host are skipped. above is the owner of the wildcard that covers the host. If p.Exclusive is true,
// this owner also claims the host.
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

// Admits reports whether p.Reserved allows a namespace to own a host and to have paths on it.
func (p *Policy) Admits(host, namespace string) bool {
	if len(p.Reserved) == 0 {
		return true
	}
	patterns, reserved := p.ReservedFor(host)
	return !reserved || settings.MatchNamespace(patterns, namespace)
}

// ReservedFor returns the namespaces for which a host is reserved. reserved is false if the host is not reserved.
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

// Serves reports whether a namespace may serve paths on a host with the given owner.
func (p *Policy) Serves(host string, owner Owner, namespace string) bool {
	return owner.Is(namespace) || !p.Exclusive && p.Admits(host, namespace)
}

// Solves reports whether a namespace may serve a path on hosts that other namespaces own. It may if the path is for
// HTTP-01 challenges and p.Solvers contains the namespace.
func (p *Policy) Solves(namespace string, path ir.PathMatch) bool {
	below := path.Path == Challenges || strings.HasPrefix(path.Path, Challenges+"/")
	return below && path.Type != ir.MatchRegex && settings.MatchNamespace(p.Solvers, namespace)
}

// Challenges is the path prefix below which certificate authorities fetch the responses to HTTP-01 challenges.
const Challenges = "/.well-known/acme-challenge"
