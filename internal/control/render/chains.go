package render

import (
	"encoding/json"
	"maps"
	"reflect"

	"github.com/k8singress/k8singress/internal/model/ir"
)

// chains caches, for one rendering, the JSON of handler chains, so that routes with the same settings share it. Most
// routes of a cluster have no settings, or the same ones. The key is compared cheaply; candidates are then compared
// completely, so this code need not know the fields.
type chains map[ir.Forwarding][]made

// made is a rendered chain with the settings from which it was rendered.
type made struct {
	filters []ir.Filter
	proxy   ir.Proxy

	json   json.RawMessage
	access string
}

// remembered is the maximum number of cached chains per key. If there are more, most belong to a single route, and
// searching them would take more time than it saves.
const remembered = 8

// of returns the rendered chain for filters and settings, from the cache if possible. The caller must not change it.
func (m chains) of(filters []ir.Filter, proxy ir.Proxy) made {
	// TLS is not part of the chain: see document.Destination.
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
		// Drop the oldest chain.
		copy(list, list[1:])
		list[remembered-1] = next
	} else {
		m[same] = append(list, next)
	}
	return next
}
