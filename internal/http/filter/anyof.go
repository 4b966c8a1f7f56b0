package filter

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"

	"github.com/k8singress/k8singress/internal/http/exchange"
	"github.com/k8singress/k8singress/internal/model/document"
)

// anyOfName is not in known, because newAnyOf uses known.
const anyOfName = "k8singress_any_of"

// anyOf accepts a client if one of several filters accepts it.
type anyOf []Filter

func newAnyOf(raw json.RawMessage, shared *Shared) (Filter, error) {
	of, err := Decode[document.AnyOf](raw)
	if err != nil {
		return nil, err
	}
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
		// An empty list would accept every client.
		return nil, errors.New("the list of filters is empty")
	}
	return h, nil
}

// Apply tries the filters in order, like "satisfy any" in nginx.
func (h anyOf) Apply(x *exchange.Exchange) (bool, error) {
	var refused error
	left := x.ErrorFields
	for i, f := range h {
		responded, err := f.Apply(x)
		switch status := exchange.StatusOf(err); {
		case responded:
			return true, err
		case err == nil:
			// The fields that rejecting filters added are not needed any more.
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

// skip removes the request fields that only the skipped external authentication filters may set.
func (h anyOf) skip(x *exchange.Exchange) {
	for _, f := range h {
		if external, ok := f.(*externalAuth); ok {
			external.skip(x)
		}
	}
}
