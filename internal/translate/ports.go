package translate

import (
	"cmp"
	"reflect"

	"github.com/k8singress/k8singress/internal/ir"
	"github.com/k8singress/k8singress/internal/kinds"
	"github.com/k8singress/k8singress/internal/report"
	"github.com/k8singress/k8singress/internal/snapshot"
	"github.com/k8singress/k8singress/internal/streams"
)

// ports is the outcome for TCP and UDP ports. They are few, and are translated together.
type ports struct {
	routes   []*ir.StreamRoute
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
	_, annotated := s.Annotated.Get(ref.Namespace, ref.Name)
	return annotated
}

func (t *Translator) readStreams(c *change, s *snapshot.Snapshot) {
	for _, r := range t.streams.routes {
		t.countBackend(c, r.Backend, -1)
	}
	o := t.options.Streams
	o.Policy = t.defaults.streams
	result := streams.Translate(s, o)
	next := &ports{
		routes: keepRoutes(t.streams.routes, result.Routes), verdicts: make(map[ir.Ref]*report.Verdict, len(result.Verdicts)),
		refs: make(set[ir.Ref], len(result.Refs)),
	}
	for _, r := range next.routes {
		t.countBackend(c, r.Backend, 1)
	}
	for _, v := range result.Verdicts {
		next.verdicts[v.Object] = v
		c.objects[v.Object] = struct{}{}
	}
	for _, ref := range result.Refs {
		next.refs[ref] = struct{}{}
	}
	for ref := range t.streams.verdicts {
		c.objects[ref] = struct{}{}
	}
	t.streams = next
}

// keepRoutes returns the old pointer for each route that is as it was. Both lists are sorted.
func keepRoutes(old, next []*ir.StreamRoute) []*ir.StreamRoute {
	for i, r := range next {
		for len(old) > 0 && comparePorts(old[0], r) < 0 {
			old = old[1:]
		}
		if len(old) > 0 && reflect.DeepEqual(old[0], r) {
			next[i] = old[0]
		}
	}
	return next
}

func comparePorts(a, b *ir.StreamRoute) int {
	return cmp.Or(cmp.Compare(a.Protocol, b.Protocol), cmp.Compare(a.Port, b.Port))
}
