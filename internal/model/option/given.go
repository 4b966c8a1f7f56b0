package option

import (
	"fmt"
	"maps"
	"slices"

	"github.com/k8singress/k8singress/internal/model/suggest"
)

// Given is the set of names that a block has set. Its zero value is not usable.
type Given map[string]bool

// Select returns the value of a name in known, and records that a block has set the name. subject is the block, such as
// "the handler k8singress". Select returns an error if the name is not in known, or if the block has set it before;
// remedy says what to write in place of the second line.
func Select[T any](g Given, known map[string]T, subject, name, remedy string) (value T, err error) {
	value, ok := known[name]
	switch {
	case !ok:
		return value, fmt.Errorf("%s has no option %q%s", subject, name,
			suggest.Hint(name, slices.Sorted(maps.Keys(known))))
	case g[name]:
		return value, fmt.Errorf("%s is set twice: %s", name, remedy)
	}
	g[name] = true
	return value, nil
}
