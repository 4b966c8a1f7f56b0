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

// made is one chain, and what it was made from.
type made struct {
	filters []ir.Filter
	proxy   ir.Proxy

	json   json.RawMessage
	access string
}

// remembered is how many chains of the same forwarding are. Where there are more, most are of one route only, and looking
// for them would cost more than it spares.
const remembered = 8

// of returns the chain of filters and settings. It must not be changed.
func (m chains) of(filters []ir.Filter, proxy ir.Proxy) made {
	// The chain does not know how TLS is spoken: see document.Destination.
	proxy.TLS = nil
	same := proxy.Forwarding
	list := m[same]
	for _, known := range list {
		if reflect.DeepEqual(known.filters, filters) && reflect.DeepEqual(known.proxy.Attempts, proxy.Attempts) &&
			maps.Equal(known.proxy.Params, proxy.Params) {
			return known
		}
	}
	next := made{filters: filters, proxy: proxy}
	next.json, next.access = chain(filters, proxy)
	if len(list) == remembered {
		// The oldest goes.
		copy(list, list[1:])
		list[remembered-1] = next
	} else {
		m[same] = append(list, next)
	}
	return next
}
