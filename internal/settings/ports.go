package settings

import (
	"fmt"
	"strconv"
	"strings"
)

// PortRange is some neighbouring ports, both ends included.
type PortRange struct{ First, Last uint16 }

// ParsePortRange reads a port such as 5432, or a range such as 5000-5999.
func ParsePortRange(text string) (PortRange, error) {
	first, last, isRange := strings.Cut(text, "-")
	if !isRange {
		last = first
	}
	from, err := strconv.ParseUint(first, 10, 16)
	to, errLast := strconv.ParseUint(last, 10, 16)
	if err != nil || errLast != nil || from == 0 || from > to {
		return PortRange{}, fmt.Errorf("%q is neither a port from 1 to 65535 nor a range of them, such as 5000-5999", text)
	}
	return PortRange{First: uint16(from), Last: uint16(to)}, nil
}

// Has says whether a port is one of the range.
func (r PortRange) Has(port uint16) bool { return r.First <= port && port <= r.Last }

// String is how ParsePortRange reads it.
func (r PortRange) String() string {
	if r.First == r.Last {
		return strconv.Itoa(int(r.First))
	}
	return fmt.Sprintf("%d-%d", r.First, r.Last)
}
