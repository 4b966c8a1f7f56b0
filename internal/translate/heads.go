package translate

import (
	"maps"
	"slices"

	"github.com/k8singress/k8singress/internal/model/ir"
)

// heads counts for each size of request headers, in bytes, the hosts with a snippet for this size.
type heads map[int]int

// count adds n to the number of hosts with a size. It ignores the size 0.
func (h heads) count(size, n int) {
	if size == 0 {
		return
	}
	if h[size] += n; h[size] == 0 {
		delete(h, size)
	}
}

// in returns the settings of the process with the largest size. It returns g itself if no host has a size.
func (h heads) in(g *ir.Global) *ir.Global {
	if len(h) == 0 {
		return g
	}
	whole := *g
	whole.Connections.SnippetHead = slices.Max(slices.Collect(maps.Keys(h)))
	return &whole
}
