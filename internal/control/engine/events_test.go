package engine_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/modules/caddyevents"

	"github.com/k8singress/k8singress/internal/process/events"
	"github.com/k8singress/k8singress/internal/tests/fixture"
)

// handler is a handler of Caddy's events.
type handler func(caddy.Event)

// Handle implements caddyevents.Handler.
func (h handler) Handle(_ context.Context, e caddy.Event) error {
	h(e)
	return nil
}

// startHandled runs an engine whose events have a handler, and waits until the engine has applied everything.
func startHandled(t *testing.T, s *source, h handler) *running {
	t.Helper()
	ctx := provisioned(t)
	config, err := events.Add(ctx)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(config.Stop)
	value, err := ctx.App("events")
	if err != nil {
		t.Fatal(err)
	}
	app := value.(*caddyevents.App)
	for _, name := range []string{"k8singress.ready", "k8singress.applied", "k8singress.verdict"} {
		if err := app.On(name, h); err != nil {
			t.Fatal(err)
		}
	}
	app.Emit(ctx, "started", nil)
	e := newEngine(t, s)
	e.Events().Use(config)
	e.Adopt(ctx, options(), nil)
	close(s.synced)
	e.await(1)
	return e
}

func TestEvents(t *testing.T) {
	s := newSource(ingress("web", "web.example"))
	texts := make(chan string, 16)
	e := startHandled(t, s, func(e caddy.Event) {
		text := e.Name()
		switch text {
		case "k8singress.applied":
			text += fmt.Sprintf(": %v hosts, %v backends, took time: %v", e.Data["hosts"], e.Data["backends"],
				e.Data["duration"].(time.Duration) > 0)
		case "k8singress.verdict":
			text += fmt.Sprintf(": %v %v %v %v %v", e.Data["object"], e.Data["severity"], e.Data["reason"],
				e.Data["field"], e.Data["message"])
		}
		texts <- text
	})
	expect := func(want ...string) {
		t.Helper()
		for _, text := range want {
			if got := fixture.Receive(t, text, texts); got != text {
				t.Errorf("the event is %q, want %q", got, text)
			}
		}
	}
	expect("k8singress.ready", "k8singress.applied: 1 hosts, 1 backends, took time: true",
		"k8singress.verdict: Ingress/a/web error ServiceNotFound spec.rules[0].http.paths[0].backend.service.name "+
			"the Service a/web does not exist: requests get 503 until it exists")
	s.set(service(), ingress("other", "other.example"))
	e.await(2)
	expect("k8singress.applied: 2 hosts, 1 backends, took time: true")
	s.store.Delete(ingress("other", "other.example"))
	e.await(3)
	expect("k8singress.applied: 1 hosts, 0 backends, took time: true")
}

// TestBlockedEventHandler checks that the engine keeps applying changes while a handler is blocked, and ends.
func TestBlockedEventHandler(t *testing.T) {
	s := newSource(service(), ingress("web", "web.example"))
	called, end := make(chan bool, 1), make(chan bool)
	defer close(end)
	e := startHandled(t, s, func(caddy.Event) {
		select {
		case called <- true:
		default:
			// The test waits for the first call only. Events that are handled after the end of the test must not wait.
		}
		<-end
	})
	fixture.Receive(t, "the call of the handler", called)
	for n := range 3 {
		generation := e.Generation()
		s.set(ingress("web", fmt.Sprintf("web-%d.example", n)))
		e.await(generation + 1)
	}
	e.end()
}
