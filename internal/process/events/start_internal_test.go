package events

import (
	"context"
	"errors"
	"testing"

	"github.com/caddyserver/caddy/v2"
	"go.uber.org/zap/zaptest"

	"github.com/k8singress/k8singress/internal/tests/fixture"
)

// The limits, for tests of the package events_test.
const (
	MaxQueued = maxQueued
	MaxAsked  = maxAsked
)

// recorder is a handler that aborts each event, and sends its name to a channel.
type recorder chan string

func (r recorder) Handle(_ context.Context, e caddy.Event) error {
	r <- e.Name()
	return caddy.ErrEventAborted
}

// TestWhileStarting checks that events are kept until all apps have started, because the events app knows all handlers
// only then.
func TestWhileStarting(t *testing.T) {
	ctx, err := caddy.ProvisionContext(&caddy.Config{})
	if err != nil {
		t.Fatal(err)
	}
	c, err := Add(ctx)
	if err != nil {
		t.Fatal(err)
	}
	b := NewBus(zaptest.NewLogger(t))
	b.Use(c)
	answer := make(chan error, 1)
	b.Emit("early", func() map[string]any { return nil })
	go func() { answer <- b.Ask(t.Context(), "asked", nil) }()
	names := make(recorder, 2)
	for _, name := range []string{"early", "asked"} {
		if err := c.app.On(name, names); err != nil {
			t.Fatal(err)
		}
	}
	c.app.Emit(ctx, "started", nil)
	if err := fixture.Receive(t, "the answer", answer); !errors.Is(err, caddy.ErrEventAborted) {
		t.Errorf("the error is %v", err)
	}
	for range 2 {
		fixture.Receive(t, "an event", names)
	}
	c.Stop()
	c.Stop()
}
