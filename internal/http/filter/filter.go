// Package filter implements the filters of a handler chain. A filter changes a request before it is forwarded to an
// endpoint, or responds to it. Filters are created from their JSON configuration, and work in the same way for all HTTP
// versions.
package filter

//go:generate go test -run ^TestModules$ -update

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
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

// row defines one filter.
type row struct {
	// name is the handler name in the JSON configuration. model is the type of the filter in package ir.
	name  string
	model reflect.Type
	// settings is the type of the JSON configuration. It is nil if a separate Caddy module implements the filter.
	settings reflect.Type
	// decode decodes the JSON configuration to a value of the type settings. create creates the filter from this value.
	decode func(json.RawMessage) (any, error)
	create func(settings any, shared *Shared) (Filter, error)
	// stateless is true if the filter depends only on its JSON configuration.
	stateless bool
}

// rows lists all filters; anyof.go adds the filter anyOf. Each constructor, such as newAppRoot, takes the settings of
// the filter as its argument. The type of the settings comes from package ir.
var rows = []row{
	with("k8singress_access_rules", newAccessRules),
	with("k8singress_app_root", newAppRoot),
	sharing("k8singress_basic_auth", newBasicAuth),
	with("k8singress_bandwidth", newBandwidth),
	{name: "k8singress_chain", model: reflect.TypeFor[ir.HandlerChain]()},
	with("k8singress_cors", newCORS),
	{name: "k8singress_default_chains", model: reflect.TypeFor[ir.DefaultChains]()},
	with("k8singress_direct_response", newDirectResponse),
	sharing("k8singress_rate_limit", newRateLimit),
	sharing("k8singress_external_auth", newExternalAuth),
	with("k8singress_host_redirect", newHostRedirect),
	with("k8singress_internal", newInternal),
	with("k8singress_maintenance", newMaintenance),
	sharing("k8singress_mirror", newMirror),
	with("k8singress_path_groups", newPathGroups),
	with("k8singress_program", newProgram),
	with("k8singress_redirect", newRedirect),
	with("k8singress_response_headers", newResponseHeaders),
	with("k8singress_rewrite", newRewrite),
	with("k8singress_rewrite_redirect", newRewriteRedirect),
	with("k8singress_source_ranges", newSourceRanges),
	{name: "k8singress_stub_status", model: reflect.TypeFor[ir.StubStatus]()},
	with("k8singress_substitution", newSubstitution),
	with("k8singress_try_files", newTryFiles),
	with("k8singress_without_authorization", newWithoutAuthorization),
	sharing("k8singress_zone_limits", newZoneLimits),
}

// find returns the row of the filter with the given handler name, or an empty row if there is no such filter.
func find(name string) (found row) {
	if i := slices.IndexFunc(rows, func(r row) bool { return r.name == name }); i >= 0 {
		found = rows[i]
	}
	return found
}

// HandlerName returns the name of the Caddy handler that implements a filter. It panics if there is no such handler.
func HandlerName(f ir.Filter) string {
	i := slices.IndexFunc(rows, func(r row) bool { return r.model == reflect.TypeOf(f) })
	if i < 0 {
		panic(fmt.Sprintf("the filter %T has no Caddy handler", f))
	}
	return rows[i].name
}

// Stateless reports whether filters with this handler name depend only on their JSON configuration. Two such filters
// with the same JSON can be replaced by a single one.
func Stateless(name string) bool { return find(name).stateless }

// Names returns the sorted handler names of all filters that New creates.
func Names() (names []string) {
	for _, r := range rows {
		if r.create != nil {
			names = append(names, r.name)
		}
	}
	slices.Sort(names)
	return names
}

// New creates a filter from the JSON configuration of a handler. ok is false if name is not the name of a filter. raw
// may contain the key "handler" with the name. shared may be nil only for stateless filters.
func New(name string, raw json.RawMessage, shared *Shared) (f Filter, ok bool, err error) {
	r := find(name)
	if r.create == nil {
		return nil, false, nil
	}
	settings, err := r.decode(raw)
	if err == nil {
		f, err = r.create(settings, shared)
	}
	if err != nil {
		return nil, true, fmt.Errorf("%s: %w", name, err)
	}
	return f, true, nil
}

// Create creates a filter from its decoded JSON configuration, such as an ir.BasicAuth. shared may be nil only for
// stateless filters. Create panics if no filter has a configuration of this type.
func Create(settings any, shared *Shared) (Filter, error) {
	i := slices.IndexFunc(rows, func(r row) bool { return r.settings == reflect.TypeOf(settings) })
	if i < 0 {
		panic(fmt.Sprintf("no filter has settings of the type %T", settings))
	}
	f, err := rows[i].create(settings, shared)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", rows[i].name, err)
	}
	return f, nil
}

// The function with returns the row for a filter that needs no resources except its JSON configuration.
func with[T ir.Filter](name string, newFilter func(T) (Filter, error)) row {
	r := rowOf[T](name, func(settings T, _ *Shared) (Filter, error) { return newFilter(settings) })
	r.model, r.stateless = r.settings, true
	return r
}

var errNotShared = errors.New("this filter works only in the handler chain of an Ingress path")

// The function sharing returns the row for a filter that also uses the resources in Shared, such as caches.
func sharing[T ir.Filter](name string, newFilter func(T, *Shared) (Filter, error)) row {
	r := rowOf[T](name, func(settings T, s *Shared) (Filter, error) {
		if s == nil {
			return nil, errNotShared
		}
		return newFilter(settings, s)
	})
	r.model = r.settings
	return r
}

// rowOf returns a row without a model for a filter with JSON configurations of the type T.
func rowOf[T any](name string, newFilter func(T, *Shared) (Filter, error)) row {
	return row{
		name: name, settings: reflect.TypeFor[T](),
		decode: func(raw json.RawMessage) (any, error) { return Decode[T](raw) },
		create: func(settings any, s *Shared) (Filter, error) { return newFilter(settings.(T), s) },
	}
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
