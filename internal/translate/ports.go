package translate

import (
	"reflect"
	"slices"

	"github.com/k8singress/k8singress/internal/ir"
	"github.com/k8singress/k8singress/internal/kinds"
	"github.com/k8singress/k8singress/internal/report"
	"github.com/k8singress/k8singress/internal/snapshot"
	"github.com/k8singress/k8singress/internal/streams"
)

// ports is the outcome for TCP and UDP ports. They are few, and are translated together.
type ports struct {
	Routes   []*ir.StreamRoute
	verdicts map[ir.Ref]*report.Verdict
	refs     set[ir.Ref]
}

// dependOn says whether an object that changed may change the ports. A Service that has got an annotation of our own may.
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
	o.Policy = t.defaults.global.Streams
	result, old := streams.Translate(s, o), t.streams
	t.streams = &ports{Routes: result.Routes, verdicts: keepVerdicts(c, old.verdicts, result.Verdicts), refs: make(set[ir.Ref], len(result.Refs))}
	for _, ref := range result.Refs {
		t.streams.refs[ref] = struct{}{}
	}
	// Backends that stay are not looked at again.
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

// keepVerdicts notes the objects of which something else is said than before.
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

// keepRoutes puts the old pointer into next for each route that is as it was, and returns those of either list that are not.
// Both are sorted.
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
