// Package filter implements the filters of a handler chain. A filter changes a request before it is forwarded to an
// endpoint, or responds to it. Filters are created from their JSON configuration, and work in the same way for all HTTP
// versions.
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

// Filter is one step of a handler chain. It is immutable and safe for concurrent use.
type Filter interface {
	// Apply applies the filter to a request. If responded is true, the filter has sent a response, and the rest of the
	// chain must be skipped. If err is not nil, nothing was sent, and the request fails with the status
	// exchange.StatusOf(err).
	Apply(x *exchange.Exchange) (responded bool, err error)
}

// known contains the factory for each filter, keyed by the handler name in the JSON configuration.
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

// maker is a factory for one kind of filter. stateless is true if such a filter depends only on its JSON configuration.
type maker struct {
	create    func(json.RawMessage, *Shared) (Filter, error)
	stateless bool
}

// Stateless reports whether filters with this handler name depend only on their JSON configuration. Two such filters
// with the same JSON can be replaced by a single one.
func Stateless(name string) bool { return known[name].stateless }

// Names returns the sorted handler names of all filters.
func Names() []string {
	names := append(slices.Collect(maps.Keys(known)), anyOfName)
	slices.Sort(names)
	return names
}

// New creates a filter from the JSON configuration of a handler. ok is false if name is not the name of a filter. raw
// may contain the key "handler" with the name. shared may be nil only for stateless filters.
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

// The function with returns the factory for a filter that depends only on its JSON configuration.
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

// The function sharing returns the factory for a filter that also uses the resources in Shared.
func sharing[T ir.Filter](newFilter func(T, *Shared) (Filter, error)) maker {
	return maker{create: func(raw json.RawMessage, shared *Shared) (Filter, error) {
		if shared == nil {
			return nil, errNotShared
		}
		return with(func(settings T) (Filter, error) { return newFilter(settings, shared) }).create(raw, shared)
	}}
}

// Decode decodes the JSON configuration of a handler. The key "handler", which contains the handler's name, is ignored.
// Other unknown keys are an error.
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
