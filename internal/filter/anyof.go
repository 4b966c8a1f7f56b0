package filter

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"

	"github.com/k8singress/k8singress/internal/document"
	"github.com/k8singress/k8singress/internal/exchange"
)

// anyOfName is not in known, because it is made of what stands there.
const anyOfName = "k8singress_any_of"

// anyOf lets in clients whom one of several filters lets in.
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
			return nil, fmt.Errorf("%q is no filter", named.Handler)
		}
		h = append(h, f)
	}
	if len(h) == 0 {
		// It would let in everybody.
		return nil, errors.New("there are no filters")
	}
	return h, nil
}

// Apply asks one after the other, as nginx does with "satisfy any".
func (h anyOf) Apply(x *exchange.Exchange) (bool, error) {
	var refused error
	left := x.Left
	for i, f := range h {
		answered, err := f.Apply(x)
		switch status := exchange.StatusOf(err); {
		case answered:
			return true, err
		case err == nil:
			// What others have asked for is not needed any more.
			x.Left = left
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

// skip has a request pass filters that are not asked about it.
func (h anyOf) skip(x *exchange.Exchange) {
	for _, f := range h {
		if external, ok := f.(*externalAuth); ok {
			external.skip(x)
		}
	}
}
