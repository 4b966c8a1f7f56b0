package settings

import (
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
)

// MatchNamespace reports whether a namespace is in a list of names and prefixes. A prefix ends with "*".
func MatchNamespace(patterns []string, namespace string) bool {
	return slices.ContainsFunc(patterns, func(pattern string) bool {
		begin, open := strings.CutSuffix(pattern, "*")
		return pattern == namespace || open && strings.HasPrefix(namespace, begin)
	})
}

// Selects reports whether the chain runs for Ingresses of a namespace and a class. The class is empty for Ingresses
// without a class.
func (d *DefaultChain) Selects(namespace, class string) bool {
	return (d.Namespaces == nil || MatchNamespace(d.Namespaces, namespace)) &&
		(d.Classes == nil || slices.Contains(d.Classes, class)) && !MatchNamespace(d.Except, namespace)
}

// checkDefaultChains returns an error if a default chain can never run, because its lists select no namespace.
func (c Config) checkDefaultChains() error {
	for _, d := range c.DefaultChains {
		selected := d.Namespaces
		if selected == nil {
			selected = []string{"*"}
		}
		// A pattern in the list except includes another one if it matches its text.
		if !slices.ContainsFunc(selected, func(pattern string) bool { return !MatchNamespace(d.Except, pattern) }) {
			return fmt.Errorf("chain_default %s selects no namespace, so the chain would never run: except lists all "+
				"namespaces that it selects", d.Chain)
		}
	}
	return nil
}

// PortRange is a range of ports. Both ends are included.
type PortRange struct{ First, Last uint16 }

// ParsePortRange parses a port such as 5432, or a range such as 5000-5999.
func ParsePortRange(text string) (PortRange, error) {
	first, last, isRange := strings.Cut(text, "-")
	if !isRange {
		last = first
	}
	from, err := strconv.ParseUint(first, 10, 16)
	to, errLast := strconv.ParseUint(last, 10, 16)
	if err != nil || errLast != nil || from == 0 || from > to {
		return PortRange{}, fmt.Errorf(
			"%q is neither a port from 1 to 65535 nor a range of ports such as 5000-5999", text)
	}
	return PortRange{First: uint16(from), Last: uint16(to)}, nil
}

// Has reports whether a port is in the range.
func (r PortRange) Has(port uint16) bool { return r.First <= port && port <= r.Last }

// String returns the range in the form that ParsePortRange parses.
func (r PortRange) String() string {
	if r.First == r.Last {
		return strconv.Itoa(int(r.First))
	}
	return fmt.Sprintf("%d-%d", r.First, r.Last)
}

// Duration is a duration that JSON represents as Caddy does: "10s", or a number of nanoseconds.
type Duration time.Duration

// UnmarshalJSON parses a string such as "10s", or a number of nanoseconds.
func (d *Duration) UnmarshalJSON(data []byte) error {
	var text string
	if json.Unmarshal(data, &text) != nil {
		return json.Unmarshal(data, (*int64)(d))
	}
	parsed, err := time.ParseDuration(text)
	if err != nil {
		return fmt.Errorf("%q is not a duration, such as 10s or 4m: %w", text, err)
	}
	*d = Duration(parsed)
	return nil
}
