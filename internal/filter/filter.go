// Package filter has what changes a request on its way to an endpoint, or answers in its place. Each filter is written once, as a
// value that the JSON of the document becomes; what it works on is the same for every version of HTTP.
package filter

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/k8singress/k8singress/internal/exchange"
	"github.com/k8singress/k8singress/internal/ir"
)

// Filter is one of them. It is immutable, and serves many requests at a time.
type Filter interface {
	// Apply does its part. It returns true where it has answered: nothing behind it gets the request then. An error is a request
	// that fails, with the status of exchange.StatusOf; nothing has been written then.
	Apply(x *exchange.Exchange) (answered bool, err error)
}

// known makes filters, by the names of the handlers in the document.
var known = map[string]maker{
	"k8singress_app_root":         with(newAppRoot),
	"k8singress_basic_auth":       sharing(newBasicAuth),
	"k8singress_bandwidth":        with(newBandwidth),
	"k8singress_cors":             with(newCORS),
	"k8singress_direct_response":  with(newDirectResponse),
	"k8singress_rate_limit":       sharing(newRateLimit),
	"k8singress_external_auth":    sharing(newExternalAuth),
	"k8singress_host_redirect":    with(newHostRedirect),
	"k8singress_mirror":           sharing(newMirror),
	"k8singress_redirect":         with(newRedirect),
	"k8singress_request_headers":  with(newRequestHeaders),
	"k8singress_response_headers": with(newResponseHeaders),
	"k8singress_rewrite":          with(newRewrite),
	"k8singress_rewrite_redirect": with(newRewriteRedirect),
	"k8singress_source_ranges":    with(newSourceRanges),
}

// maker makes one kind of filters. stateless says that the JSON is all that they are made of.
type maker struct {
	create    func(json.RawMessage, *Shared) (Filter, error)
	stateless bool
}

// Stateless says whether filters of a name are made of their JSON alone, so that those with the same JSON can be one.
func Stateless(name string) bool { return known[name].stateless }

// Names returns the names of the handlers that are filters, sorted.
func Names() []string {
	names := append(slices.Collect(maps.Keys(known)), anyOfName)
	slices.Sort(names)
	return names
}

// New makes the filter of a handler in a document. ok is false for a handler that is none. raw may have "handler", the name.
// shared is nil outside of chains.
func New(name string, raw json.RawMessage, shared *Shared) (f Filter, ok bool, err error) {
	create := known[name].create
	if name == anyOfName {
		create = newAnyOf
	}
	if create == nil {
		return nil, false, nil
	}
	if f, err = create(raw, shared); err != nil {
		return nil, true, fmt.Errorf("%s: %w", name, err)
	}
	return f, true, nil
}

// with is for a filter that is made of what its JSON says.
func with[T ir.Filter](newFilter func(T) (Filter, error)) maker {
	return maker{stateless: true, create: func(raw json.RawMessage, _ *Shared) (Filter, error) {
		settings, err := Decode[T](raw)
		if err != nil {
			return nil, err
		}
		return newFilter(settings)
	}}
}

var errNotShared = errors.New("this filter works in the chain of an Ingress path only")

// sharing is with for a filter that needs a part of what filters share.
func sharing[T ir.Filter](newFilter func(T, *Shared) (Filter, error)) maker {
	return maker{create: func(raw json.RawMessage, shared *Shared) (Filter, error) {
		if shared == nil {
			return nil, errNotShared
		}
		return with(func(settings T) (Filter, error) { return newFilter(settings, shared) }).create(raw, shared)
	}}
}

// Decode reads the settings of a handler in a document, and refuses fields that there are not. The name of the handler may be among
// them.
func Decode[T any](raw json.RawMessage) (settings T, err error) {
	var fields map[string]json.RawMessage
	if err := json.Unmarshal(raw, &fields); err != nil {
		return settings, err
	}
	delete(fields, "handler")
	rest, err := json.Marshal(fields)
	if err != nil {
		return settings, err
	}
	decoder := json.NewDecoder(bytes.NewReader(rest))
	decoder.DisallowUnknownFields()
	return settings, decoder.Decode(&settings)
}
