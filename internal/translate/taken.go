package translate

import (
	"github.com/k8singress/k8singress/internal/model/ir"
	"github.com/k8singress/k8singress/internal/model/report"
	"github.com/k8singress/k8singress/internal/model/snapshot"
	"github.com/k8singress/k8singress/internal/translate/annotations"
	"github.com/k8singress/k8singress/internal/translate/hosts"
)

// Taken is a path that another Ingress has on the same host, with the same type. One of the two paths is not served.
type Taken struct {
	// Field is the position of the path in the Ingress, as in the problem about it.
	Field, Host, Path string
	By                ir.Ref
	// Wins is true if the Ingress itself would get the requests, because the other one is younger.
	Wins bool
}

// HostText returns the host for use in a message.
func (t *Taken) HostText() string { return hosts.OrEvery(t.Host) }

// site identifies a path by its object and by its position in the object, as in a problem about it.
type site struct {
	object ir.Ref
	field  string
}

// taken returns the paths of the Ingress on a host that another Ingress has. Two paths are the same if they are written
// in the same way and have the same type. As in ingress-nginx, the age of the other Ingress does not matter: the author
// of an older Ingress must not take over the path of a younger one. But if the Ingress itself has the path already and
// serves it, then a younger Ingress that was stored without a review does not prevent changes of the older one.
//
// Also as in ingress-nginx, a path is not taken if one of the two Ingresses has the annotation "canary", whatever its
// value: Flagger sets it to "false" while the canary gets no requests.
func (p *preview) taken(host string, m merge) (all []Taken) {
	conflicts := conflictsIn(m.merged)
	if conflicts == nil || mayBeCanary(&p.Contribution) {
		return nil
	}
	owners := p.owners(host, m, conflicts)
	for _, path := range p.Paths[host] {
		if by := owners[path.Match]; by != nil && !path.Last {
			all = append(all, Taken{Field: path.Field, Host: host, Path: path.Match.Path, By: by.Ref(),
				Wins: snapshot.Older(p.Object, by.Object) < 0})
		}
	}
	return all
}

// owners returns the oldest other Ingress for each path of the Ingress that is taken. conflicts is not empty.
func (p *preview) owners(host string, m merge, conflicts map[site]bool) map[ir.PathMatch]*hosts.Contribution {
	mine, served := pathsByMatch(&p.Contribution, host), p.served(host)
	owners := map[ir.PathMatch]*hosts.Contribution{}
	for _, c := range m.contributions {
		if mayBeCanary(c) || p.isStored(c) {
			continue
		}
		older := snapshot.Older(c.Object, p.Object) < 0
		for _, path := range c.Paths[host] {
			own := mine[path.Match]
			if own == nil || path.Last {
				continue
			}
			lost := older && conflicts[site{p.ref, own.Field}]
			won := !older && served[path.Match] == nil && conflicts[site{c.Ref(), path.Field}]
			if by := owners[path.Match]; (lost || won) && (by == nil || snapshot.Older(c.Object, by.Object) < 0) {
				owners[path.Match] = c
			}
		}
	}
	return owners
}

// conflictsIn returns the paths of a host that are not served, because another object has the same path. It returns nil
// if there are none.
func conflictsIn(m *hosts.Merged) map[site]bool {
	var conflicts map[site]bool
	for object, problems := range m.Problems {
		for i := range problems {
			if problems[i].Reason != report.PathConflict {
				continue
			}
			if conflicts == nil {
				conflicts = map[site]bool{}
			}
			conflicts[site{object, problems[i].Field}] = true
		}
	}
	return conflicts
}

// mayBeCanary reports whether an Ingress is a canary, or is one at other times.
func mayBeCanary(c *hosts.Contribution) bool {
	_, set := c.Object.GetAnnotations()[annotations.Key("canary")]
	return set || c.Canary != nil
}

// served returns the paths on a host of the stored version of the Ingress. It returns nil if there is no such version,
// or if it is a canary.
func (p *preview) served(host string) map[ir.PathMatch]*hosts.Path {
	stored, _ := p.inputs.hosts.Get(host)
	for _, c := range stored.contributions {
		if p.isStored(c) && c.Canary == nil {
			return pathsByMatch(c, host)
		}
	}
	return nil
}

// pathsByMatch returns the paths of an object on a host, except default backends. If the object has a path twice, the
// result contains the first one.
func pathsByMatch(c *hosts.Contribution, host string) map[ir.PathMatch]*hosts.Path {
	paths := make(map[ir.PathMatch]*hosts.Path, len(c.Paths[host]))
	for _, path := range c.Paths[host] {
		if !path.Last && paths[path.Match] == nil {
			paths[path.Match] = path
		}
	}
	return paths
}
