package render

import (
	"encoding/json"
	"maps"
	"reflect"

	"github.com/k8singress/k8singress/internal/ir"
)

// chains remembers, for one rendering, what chains were made from, so that routes which do the same share one piece of JSON.
// Most routes of a cluster do: they have no options, or all of them the same. What is remembered is found by what compares
// cheaply, and compared in whole; nothing here has to know the fields.
type chains map[ir.Forwarding][]made

// made is one chain and a route that has it.
type made struct {
	route  *ir.Route
	json   json.RawMessage
	access string
}

// remembered is how many chains of the same forwarding are. Where there are more, most are of one route only, and looking
// for them would cost more than it spares.
const remembered = 8

// of returns the chain of a route. Nobody may change it.
func (m chains) of(route *ir.Route) made {
	// The chain does not know how TLS is spoken: see document.Route.
	same := route.Proxy.Forwarding
	same.TLS = nil
	list := m[same]
	for _, known := range list {
		if reflect.DeepEqual(known.route.Filters, route.Filters) && reflect.DeepEqual(known.route.Proxy.Attempts, route.Proxy.Attempts) &&
			maps.Equal(known.route.Proxy.Params, route.Proxy.Params) {
			return known
		}
	}
	next := made{route: route}
	next.json, next.access = chain(route)
	if len(list) == remembered {
		// The oldest goes.
		copy(list, list[1:])
		list[remembered-1] = next
	} else {
		m[same] = append(list, next)
	}
	return next
}
