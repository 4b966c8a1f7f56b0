package variables

import (
	"cmp"
	"fmt"
	"net/netip"
	"slices"

	"github.com/k8singress/k8singress/internal/model/ir"
	"github.com/k8singress/k8singress/internal/model/nginx"
	"github.com/k8singress/k8singress/internal/model/pattern"
)

// geo is a compiled ir.Geo. Its segments are sorted and do not overlap.
type geo struct {
	segments []segment
	fallback *nginx.Template
}

type segment struct {
	first, last netip.Addr
	value       *nginx.Template
}

func newGeo(of *ir.Geo) (func(string, *pattern.Budget) found, error) {
	all := make([]segment, 0, len(of.Ranges))
	for i := range of.Ranges {
		r := &of.Ranges[i]
		if !r.First.IsValid() || r.First.BitLen() != r.Last.BitLen() || r.First.Compare(r.Last) > 0 {
			return nil, fmt.Errorf("%s-%s is not a range of addresses", r.First, r.Last)
		}
		all = append(all, segment{r.First, r.Last, literal(r.Value)})
	}
	segments, err := flatten(all)
	g := &geo{segments, literal(of.Default)}
	return g.find, err
}

// literal returns the template of a value without variables. In nginx, the values of geo and split_clients contain
// none.
func literal(text string) *nginx.Template { return nginx.Literal(text) }

// flatten cuts ranges that contain each other into sorted segments that do not overlap. A segment has the value of the
// smallest range that contains it.
func flatten(ranges []segment) (cut []segment, err error) {
	slices.SortFunc(ranges, func(a, b segment) int { return cmp.Or(a.first.Compare(b.first), b.last.Compare(a.last)) })
	// open are the ranges that contain the address at, the smallest one last.
	var open []segment
	var at netip.Addr
	upTo := func(last netip.Addr) {
		top := open[len(open)-1]
		if at.IsValid() && last.IsValid() && at.Compare(last) <= 0 {
			cut = append(cut, segment{at, last, top.value})
		}
	}
	closeTop := func() {
		last := open[len(open)-1].last
		upTo(last)
		at, open = last.Next(), open[:len(open)-1]
	}
	for _, r := range ranges {
		for len(open) > 0 && open[len(open)-1].last.Compare(r.first) < 0 {
			closeTop()
		}
		if len(open) > 0 {
			if top := open[len(open)-1]; top.last.Compare(r.last) < 0 || top.first == r.first && top.last == r.last {
				return nil, fmt.Errorf("%s-%s overlaps %s-%s", r.first, r.last, top.first, top.last)
			}
			upTo(r.first.Prev())
		}
		at, open = r.first, append(open, r)
	}
	for len(open) > 0 {
		closeTop()
	}
	return cut, nil
}

func (g *geo) find(text string, _ *pattern.Budget) found {
	address, err := netip.ParseAddr(text)
	if err != nil {
		return found{value: g.fallback}
	}
	address = address.Unmap().WithZone("")
	i, exact := slices.BinarySearchFunc(g.segments, address, func(s segment, a netip.Addr) int {
		return s.first.Compare(a)
	})
	if !exact {
		i--
	}
	if i >= 0 && address.Compare(g.segments[i].last) <= 0 {
		return found{value: g.segments[i].value}
	}
	return found{value: g.fallback}
}
