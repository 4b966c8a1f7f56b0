package ratelimit

import (
	"runtime"
	"strings"
	"sync"
	"weak"

	"github.com/k8singress/k8singress/internal/model/shrinking"
	"github.com/k8singress/k8singress/internal/process/budget"
)

// Zones holds all zones, by name. A zone stores the state of the clients of one Ingress. It exists as long as it is in
// use, for example by a filter or by a request in flight. If a filter is replaced, the new filter uses the same zone as
// requests that still use the old filter. Zones is safe for concurrent use.
type Zones struct {
	mu          sync.Mutex
	requests    shrinking.Map[requestsID, weak.Pointer[Requests]]
	connections shrinking.Map[string, weak.Pointer[Connections]]
	// entries is the budget of table entries that all zones share. Each stored client takes one entry.
	entries *budget.Budget
}

// requestsID is the key of a zone. It contains the rates and the maximum number of clients: if one of them changes, a
// new zone is used, in which all clients start without an excess.
type requestsID struct {
	name       string
	rates      Rates
	maxClients int
}

// NewZones returns a Zones without zones.
func NewZones() *Zones { return &Zones{entries: budget.New(maxTotal)} }

// namespaceOf returns the namespace in the name of a zone, which is the "namespace/name" of an Ingress. It is empty for
// the zones of the administrator, whose names begin with a slash.
func namespaceOf(zone string) string {
	namespace, _, _ := strings.Cut(zone, "/")
	return namespace
}

// Requests returns the zone that limits request rates, for the given zone name and rates. It creates the zone if it
// does not exist.
func (z *Zones) Requests(name string, rates Rates) *Requests {
	return z.SizedRequests(name, rates, maxEntries)
}

// SizedRequests is like Requests for a zone with another maximum number of clients, which is rounded down to a power of
// two, and is at least 128.
func (z *Zones) SizedRequests(name string, rates Rates, maxClients int) *Requests {
	z.mu.Lock()
	defer z.mu.Unlock()
	id := requestsID{name, rates, maxClients}
	zone := z.requests.Get(id).Value()
	if zone == nil {
		zone = newRequests(rates, maxClients, z.entries.Share(namespaceOf(name), ""))
		runtime.AddCleanup(zone, (*room).giveBack, zone.room)
		keep(z, &z.requests, id, zone)
	}
	return zone
}

// Connections returns the zone that limits concurrent requests, for the given zone name. It creates the zone if it does
// not exist.
func (z *Zones) Connections(name string) *Connections {
	z.mu.Lock()
	defer z.mu.Unlock()
	zone := z.connections.Get(name).Value()
	if zone == nil {
		zone = new(Connections)
		keep(z, &z.connections, name, zone)
	}
	return zone
}

// keep adds a weak pointer to a zone to a map. The pointer is removed from the map when the zone is garbage collected.
func keep[ID comparable, T any](z *Zones, in *shrinking.Map[ID, weak.Pointer[T]], id ID, zone *T) {
	pointer := weak.Make(zone)
	in.Set(id, pointer)
	runtime.AddCleanup(zone, func(id ID) {
		z.mu.Lock()
		defer z.mu.Unlock()
		if in.Get(id) == pointer {
			// Delete the pointer only if it still points to this zone, and not to a newer zone with the same ID.
			in.Delete(id)
		}
	}, id)
}
