package ratelimit

import (
	"runtime"
	"strings"
	"sync"
	"weak"

	"github.com/k8singress/k8singress/internal/budget"
)

// Zones are the zones by their names. A zone lives as long as anybody has it, such as the filter of a chain or a request under way: those who
// follow each other, one before the other lets go, count in one zone. It is for any goroutine.
type Zones struct {
	mu          sync.Mutex
	requests    map[requestsID]weak.Pointer[Requests]
	connections map[string]weak.Pointer[Connections]
	// entries are those of all zones.
	entries *budget.Budget
}

// requestsID is what makes a zone: where a rate changes, every client begins anew.
type requestsID struct {
	name  string
	rates Rates
}

// NewZones returns none.
func NewZones() *Zones {
	return &Zones{
		requests: map[requestsID]weak.Pointer[Requests]{}, connections: map[string]weak.Pointer[Connections]{}, entries: budget.New(mostOfAll),
	}
}

// namespaceOf is that of the Ingress that a zone has its name from: "namespace/name".
func namespaceOf(zone string) string {
	namespace, _, _ := strings.Cut(zone, "/")
	return namespace
}

// Requests returns the zone of a name and of rates.
func (z *Zones) Requests(name string, rates Rates) *Requests {
	z.mu.Lock()
	defer z.mu.Unlock()
	id := requestsID{name, rates}
	zone := z.requests[id].Value()
	if zone == nil {
		zone = newRequests(rates, z.entries.Share(namespaceOf(name), ""))
		runtime.AddCleanup(zone, (*room).giveBack, zone.room)
		keep(z, z.requests, id, zone)
	}
	return zone
}

// Connections returns the zone of a name.
func (z *Zones) Connections(name string) *Connections {
	z.mu.Lock()
	defer z.mu.Unlock()
	zone := z.connections[name].Value()
	if zone == nil {
		zone = new(Connections)
		keep(z, z.connections, name, zone)
	}
	return zone
}

// keep has a zone found by its name until nobody has it any more.
func keep[ID comparable, T any](z *Zones, in map[ID]weak.Pointer[T], id ID, zone *T) {
	pointer := weak.Make(zone)
	in[id] = pointer
	runtime.AddCleanup(zone, func(id ID) {
		z.mu.Lock()
		defer z.mu.Unlock()
		if in[id] == pointer {
			// No other zone has the name meanwhile.
			delete(in, id)
		}
	}, id)
}
