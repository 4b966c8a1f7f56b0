// Package filter implements the filters that change a request on its way to an endpoint, or respond to it. A filter is
// created from its JSON in the document. It works in the same way for all HTTP versions.
package filter

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/k8singress/k8singress/internal/http/exchange"
	"github.com/k8singress/k8singress/internal/model/ir"
)

// Filter is a step of a handler chain. It is immutable, and several requests may use it concurrently.
type Filter interface {
	// Apply applies the filter. responded is true if the filter has responded; the rest of the chain is then skipped.
	// If it returns an error, the request fails with the status exchange.StatusOf(err), and nothing was written.
	Apply(x *exchange.Exchange) (responded bool, err error)
}

// known holds the makers of filters, by the names of their handlers in the document.
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

// maker creates filters of one kind. stateless is true if a filter depends only on its JSON.
type maker struct {
	create    func(json.RawMessage, *Shared) (Filter, error)
	stateless bool
}

// Stateless reports whether filters with this name depend only on their JSON. Filters with equal JSON can then share
// one value.
func Stateless(name string) bool { return known[name].stateless }

// Names returns the sorted handler names of all filters.
func Names() []string {
	names := append(slices.Collect(maps.Keys(known)), anyOfName)
	slices.Sort(names)
	return names
}

// New creates the filter for a handler in a document. ok is false if the handler is not a filter. raw may contain
// "handler", the name. shared is nil outside of chains.
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

// with returns the maker of a filter that depends only on its JSON.
func with[T ir.Filter](newFilter func(T) (Filter, error)) maker {
	return maker{stateless: true, create: func(raw json.RawMessage, _ *Shared) (Filter, error) {
		settings, err := Decode[T](raw)
		if err != nil {
			return nil, err
		}
		return newFilter(settings)
	}}
}

var errNotShared = errors.New("this filter works only in the handler chain of an Ingress path")

// sharing is like with, for a filter that also uses resources in Shared.
func sharing[T ir.Filter](newFilter func(T, *Shared) (Filter, error)) maker {
	return maker{create: func(raw json.RawMessage, shared *Shared) (Filter, error) {
		if shared == nil {
			return nil, errNotShared
		}
		return with(func(settings T) (Filter, error) { return newFilter(settings, shared) }).create(raw, shared)
	}}
}

// Decode decodes the settings of a handler in a document. Unknown fields are an error, except "handler", the name.
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
