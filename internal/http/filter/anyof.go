package filter

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"reflect"

	"github.com/k8singress/k8singress/internal/http/exchange"
	"github.com/k8singress/k8singress/internal/model/document"
	"github.com/k8singress/k8singress/internal/model/ir"
)

// Add anyOf to the list of filters here, because newAnyOf itself uses the list, and Go rejects initialization cycles.
func init() {
	r := rowOf("k8singress_any_of", newAnyOf)
	r.model = reflect.TypeFor[ir.AnyOf]()
	rows = append(rows, r)
}

// anyOf accepts a request if at least one of its filters accepts it.
type anyOf []Filter

func newAnyOf(of document.AnyOf, shared *Shared) (Filter, error) {
	var h anyOf
	for _, one := range of.Filters {
		var named struct {
			Handler string `json:"handler"`
		}
		if err := json.Unmarshal(one, &named); err != nil {
			return nil, err
		}
		f, ok, err := New(named.Handler, one, shared)
		if err != nil {
			return nil, err
		}
		if !ok {
			return nil, fmt.Errorf("%q is not a filter", named.Handler)
		}
		h = append(h, f)
	}
	if len(h) == 0 {
		// An empty list is an error, because nothing would restrict access.
		return nil, errors.New("the list of filters is empty")
	}
	return h, nil
}

// Apply tries the filters in order until a filter accepts the request, like "satisfy any" in nginx. If no filter
// accepts it, Apply returns the error of a filter that rejected it, preferably one with status 401.
func (h anyOf) Apply(x *exchange.Exchange) (bool, error) {
	var refused error
	left := x.ErrorFields
	for i, f := range h {
		responded, err := f.Apply(x)
		switch status := exchange.StatusOf(err); {
		case responded:
			return true, err
		case err == nil:
			// Drop the error fields that the filters before f have added, because the request is accepted.
			x.ErrorFields = left
			h[i+1:].skip(x)
			return false, nil
		case status == http.StatusUnauthorized:
			refused = err
		case status != http.StatusForbidden:
			return false, err
		case refused == nil:
			refused = err
		}
	}
	return false, refused
}

// skip is called with the filters that follow the filter that accepted the request. It removes the request header
// fields that only an external authentication service may set.
func (h anyOf) skip(x *exchange.Exchange) {
	for _, f := range h {
		if external, ok := f.(*externalAuth); ok {
			external.skip(x)
		}
	}
}
