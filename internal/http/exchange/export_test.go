package exchange

import (
	"maps"
	"slices"
)

// VariableNames returns the names of all nginx variables except those of the families.
func VariableNames() []string { return slices.Sorted(maps.Keys(values)) }
