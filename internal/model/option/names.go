package option

import (
	"maps"
	"slices"
)

// Names returns the names of values in the order in which they must be read: the names in first that have a value, and
// then all others in the order of the alphabet.
func Names(values map[string]string, first ...string) []string {
	names := slices.Sorted(maps.Keys(values))
	for _, name := range slices.Backward(first) {
		if i := slices.Index(names, name); i > 0 {
			names = slices.Insert(slices.Delete(names, i, i+1), 0, name)
		}
	}
	return names
}
