package render

import (
	"encoding/json"
	"maps"
	"reflect"

	"github.com/k8singress/k8singress/internal/model/ir"
)

// chains caches the JSON of handler chains during one rendering, so that routes with the same filters and proxy
// settings share it. In most clusters, most routes have the default settings. The map key consists of the proxy
// settings that are cheap to compare. All other settings of chains with the same key are compared with
// reflect.DeepEqual, so that new filters need no code here.
type chains map[ir.Forwarding][]made

// made is a rendered handler chain, together with the filters and proxy settings from which it was rendered.
type made struct {
	filters []ir.Filter
	proxy   ir.Proxy

	json   json.RawMessage
	access string
}

// remembered is the maximum number of cached chains per map key. If a key has more chains than this, most of the chains
// are used by a single route, and searching the cache would take more time than rendering them.
const remembered = 8

// The method of returns the handler chain for the given filters and proxy settings. It takes the chain from the cache,
// or renders it. The caller must not modify the result.
func (m chains) of(filters []ir.Filter, proxy ir.Proxy) made {
	// The TLS settings are not part of the chain: they are in document.Destination.
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
