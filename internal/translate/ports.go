package translate

import (
	"reflect"
	"slices"

	"github.com/k8singress/k8singress/internal/model/ir"
	"github.com/k8singress/k8singress/internal/model/kinds"
	"github.com/k8singress/k8singress/internal/model/report"
	"github.com/k8singress/k8singress/internal/model/snapshot"
	"github.com/k8singress/k8singress/internal/translate/streams"
)

// ports is the result of translating all TCP and UDP ports. There are few ports, so all of them are translated again
// after a change.
type ports struct {
	Routes   []*ir.StreamRoute
	verdicts map[ir.Ref]*report.Verdict
	refs     set[ir.Ref]
}

// dependOn reports whether the ports must be translated again after the given object has changed. It also returns true
// for a Service that did not have an annotation of this controller before, and has one now.
func (p *ports) dependOn(s *snapshot.Snapshot, ref ir.Ref) bool {
	if _, ok := p.refs[ref]; ok {
		return true
	}
	if ref.Kind != kinds.Service {
		return false
	}
	service, ok := s.OfKind(kinds.Service).Get(ref.Namespace, ref.Name)
	return ok && kinds.HasOwnAnnotation(service)
}

func (t *Translator) readStreams(c *change, s *snapshot.Snapshot) {
	o := t.options.Streams
	o.Policy, o.Reserved = t.defaults.global.Streams, slices.Concat(o.Reserved, t.listeningPorts())
	result, old := streams.Translate(s, o), t.streams
	t.streams = &ports{Routes: result.Routes, verdicts: keepVerdicts(c, old.verdicts, result.Verdicts),
		refs: make(set[ir.Ref], len(result.Refs))}
	for _, ref := range result.Refs {
		t.streams.refs[ref] = struct{}{}
	}
	// Reuse the old pointers of unchanged routes, so that only new and removed routes change the reference counts of
	// backends.
	gone, fresh := keepRoutes(old.Routes, t.streams.Routes)
	for _, r := range gone {
		t.countBackends(c, r.Backends, -1)
		c.objects[r.Origin] = struct{}{}
	}
	for _, r := range fresh {
		t.countBackends(c, r.Backends, 1)
		c.objects[r.Origin] = struct{}{}
	}
}

// keepVerdicts returns a map from objects to their verdicts, which contain the objects' problems. If the problems of an
// object have not changed, the map contains the verdict from old. Otherwise the map contains the verdict from next, and
// the object is added to c.objects.
func keepVerdicts(c *change, old map[ir.Ref]*report.Verdict, next []*report.Verdict) map[ir.Ref]*report.Verdict {
	all := make(map[ir.Ref]*report.Verdict, len(next))
	for _, v := range next {
		if before := old[v.Object]; before != nil && slices.Equal(before.Problems, v.Problems) {
			v = before
		} else {
			c.objects[v.Object] = struct{}{}
		}
		all[v.Object] = v
	}
	for ref := range old {
		if all[ref] == nil {
			c.objects[ref] = struct{}{}
		}
	}
	return all
}

// keepRoutes replaces each route in next with the equal route in old, if there is one. gone contains the routes in old
// without an equal route in next, and fresh the routes in next without an equal route in old. Both lists must be
// sorted.
func keepRoutes(old, next []*ir.StreamRoute) (gone, fresh []*ir.StreamRoute) {
	for i, r := range next {
		for len(old) > 0 && streams.Compare(old[0], r) < 0 {
			gone, old = append(gone, old[0]), old[1:]
		}
		if len(old) > 0 && reflect.DeepEqual(old[0], r) {
			next[i], old = old[0], old[1:]
		} else {
			fresh = append(fresh, r)
		}
	}
	return append(gone, old...), fresh
}
