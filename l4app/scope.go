package l4app

import (
	"context"
	"time"

	"go.uber.org/zap"

	"github.com/k8singress/k8singress/internal/certs"
	"github.com/k8singress/k8singress/internal/endpoints"
	"github.com/k8singress/k8singress/internal/trust"
)

// Tables are what the handlers of ports look endpoints, certificates and authorities up in.
type Tables struct {
	Endpoints    *endpoints.Table
	Certificates *certs.Store
	Trust        *trust.Store
}

// scope is what the handlers of a port know of it, and what they tell it.
type scope struct {
	tables  *Tables
	account *account
	log     *zap.Logger
	workers *workerPool
	// most is how many connections there may be at once. It is said by a handler while it is provisioned.
	most int
	// ends is over when open connections have to end.
	ends context.Context //nolint:containedctx // it is the one of the port, for those who are provisioned with it
	// drain returns for how long a connection may go on that nobody wants any more.
	drain func() time.Duration
}

type scopeKey struct{}

func withScope(ctx context.Context, s *scope) context.Context {
	return context.WithValue(ctx, scopeKey{}, s)
}

// scopeOf returns nil for a handler on a port that is none of ours.
func scopeOf(ctx context.Context) *scope {
	s, _ := ctx.Value(scopeKey{}).(*scope)
	return s
}
