package certs

import "context"

type contextKey struct{}

// WithStore returns a context with which Caddy modules are provisioned that need the store.
func WithStore(ctx context.Context, s *Store) context.Context {
	return context.WithValue(ctx, contextKey{}, s)
}

// FromContext returns the store of WithStore, or nil.
func FromContext(ctx context.Context) *Store {
	s, _ := ctx.Value(contextKey{}).(*Store)
	return s
}
