package issuance

import (
	"context"
	"crypto/tls"
	"errors"

	"github.com/k8singress/k8singress/internal/process/events"
)

// certificateEvents returns the function that passes certmagic's events to a bus. The function returns an error if
// certmagic must not order a certificate, because a handler has aborted the event cert_obtaining. Handlers cannot abort
// other events, so the function does not wait for them.
func certificateEvents(b *events.Bus) func(ctx context.Context, name string, data map[string]any) error {
	return func(ctx context.Context, name string, data map[string]any) error {
		if name == abortedByHandler {
			return b.Ask(ctx, name, data)
		}
		b.Emit(name, func() map[string]any { return data })
		return nil
	}
}

// EmitLoaded emits certmagic's event that a certificate from an issuer has been loaded. A Manager emits the event only
// for certificates on demand. For the certificates that Take returns, the caller of Take must do so.
func EmitLoaded(b *events.Bus, pair *tls.Certificate) {
	b.Emit("cached_managed_cert", func() map[string]any { return map[string]any{"sans": pair.Leaf.DNSNames} })
}

// aborted returns a failure if an event handler has aborted an order, and otherwise nil. errs are the errors of the
// order. The failure is not stored, and names no issuers: the handlers of the next Caddy configuration are asked at
// once.
func (m *Manager) aborted(s *setup, h *host, errs []attemptError) *failure {
	var event *events.Aborted
	if len(errs) == 0 || !errors.As(errs[0].err, &event) {
		return nil
	}
	return m.refused(s, h, abortedByHandler, clean(event.Error()))
}
