package filter

import (
	"github.com/k8singress/k8singress/internal/http/exchange"
	"github.com/k8singress/k8singress/internal/model/ir"
)

// withoutAuthorization removes the client's Authorization header from requests to the backend. The exchange keeps the
// header, because variables such as $remote_user depend on it, and because a request that gets another route needs it
// again.
type withoutAuthorization struct{}

func newWithoutAuthorization(ir.WithoutAuthorization) (Filter, error) {
	return withoutAuthorization{}, nil
}

func (withoutAuthorization) Apply(x *exchange.Exchange) (bool, error) {
	x.WithoutAuthorization = true
	return false, nil
}
