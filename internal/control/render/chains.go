package render

import (
	"encoding/json"
	"maps"
	"reflect"

	"github.com/k8singress/k8singress/internal/model/ir"
)

// chains caches the JSON of handler chains during one rendering, so that routes with the same filters and settings
// share it. In most clusters, most routes have the default settings. The map key is cheap to compare; the chains under
// one key are then compared with reflect.DeepEqual, so that this code does not depend on the fields of filters.
type chains map[ir.Forwarding][]made

// made is a rendered chain, with the filters and settings from which it was rendered.
type made struct {
	filters []ir.Filter
	proxy   ir.Proxy

	json   json.RawMessage
	access string
}

// remembered is the maximum number of cached chains per map key. If a key has more chains, most of them are used by a
// single route, and searching them would take more time than it saves.
const remembered = 8

// of returns the rendered chain for the given filters and proxy settings, from the cache if possible. The caller must
// not modify it.
func (m chains) of(filters []ir.Filter, proxy ir.Proxy) made {
	// The TLS settings are not part of the chain: see document.Destination.
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
