package ratelimit

import (
	"runtime"
	"strings"
	"sync"
	"weak"

	"github.com/k8singress/k8singress/internal/process/budget"
)

// Zones holds the zones by name. A zone exists as long as it is referenced, for example by the filter of a chain or by
// a request in flight. If a new filter gets the zone before the old filter is gone, both share the zone. It is safe for
// concurrent use.
type Zones struct {
	mu          sync.Mutex
	requests    map[requestsID]weak.Pointer[Requests]
	connections map[string]weak.Pointer[Connections]
	// entries is the budget for the entries of all zones.
	entries *budget.Budget
}

// requestsID identifies a zone. If a rate changes, a new zone is used, and all clients start again.
type requestsID struct {
	name  string
	rates Rates
}

// NewZones returns an empty Zones.
func NewZones() *Zones {
	return &Zones{
		requests: map[requestsID]weak.Pointer[Requests]{}, connections: map[string]weak.Pointer[Connections]{},
		entries: budget.New(maxTotal),
	}
}

// namespaceOf returns the namespace of the Ingress in the name of a zone: "namespace/name".
func namespaceOf(zone string) string {
	namespace, _, _ := strings.Cut(zone, "/")
	return namespace
}

// Requests returns the zone with this name and these rates, and creates it if it does not exist.
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

// Connections returns the zone with this name, and creates it if it does not exist.
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

// keep stores a weak pointer to a zone, and removes it when the zone is garbage collected.
func keep[ID comparable, T any](z *Zones, in map[ID]weak.Pointer[T], id ID, zone *T) {
	pointer := weak.Make(zone)
	in[id] = pointer
	runtime.AddCleanup(zone, func(id ID) {
		z.mu.Lock()
		defer z.mu.Unlock()
		if in[id] == pointer {
			// The map does not yet contain a new zone with this ID.
			delete(in, id)
		}
	}, id)
}
