package option

import (
	"fmt"
	"maps"
	"slices"
	"strings"

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
		return value, fmt.Errorf("%s has no option %q%s", subject, name, hint(name, slices.Sorted(maps.Keys(known))))
	case g[name]:
		return value, fmt.Errorf("%s is set twice: %s", name, remedy)
	}
	g[name] = true
	return value, nil
}

// hint returns the end of the message about an unknown option: the option that the user probably meant, or all options.
func hint(name string, known []string) string {
	if meant := suggest.Hint(name, known); meant != "" {
		return meant
	}
	if last := len(known) - 1; last > 0 {
		return ": its options are " + strings.Join(known[:last], ", ") + " and " + known[last]
	}
	return ": its only option is " + known[0]
}
