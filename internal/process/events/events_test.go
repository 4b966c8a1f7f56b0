package events_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/caddyserver/caddy/v2"
	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"
	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"

	"github.com/k8singress/k8singress/internal/process/events"
	"github.com/k8singress/k8singress/internal/tests/fixture"
)

func init() {
	caddy.RegisterModule(new(app))
	caddy.RegisterModule(new(handler))
}

// app makes the bus of the test use its configuration, as the k8singress app does.
type app struct{ config *events.Config }

// tested holds the bus of the running test, and the apps that were started and not stopped yet, oldest first.
var tested struct {
	bus  *events.Bus
	apps []*app
}

func (*app) CaddyModule() caddy.ModuleInfo {
	return caddy.ModuleInfo{ID: "events_test", New: func() caddy.Module { return new(app) }}
}

func (a *app) Provision(ctx caddy.Context) (err error) {
	a.config, err = events.Add(ctx)
	return err
}

func (a *app) Start() error {
	if tested.apps = append(tested.apps, a); len(tested.apps) == 1 {
		tested.bus.Use(a.config)
	}
	return nil
}

func (a *app) Stop() error {
	if tested.apps = tested.apps[1:]; len(tested.apps) > 0 {
		tested.bus.Use(tested.apps[0].config)
	}
	a.config.Stop()
	return nil
}

// handler is an event handler that calls a function of the test.
type handler struct {
	Name string `json:"name"`
}

// handling is the function that a handler calls.
type handling func(context.Context, caddy.Event) error

// handlings maps the names of handlers to their functions.
var handlings sync.Map

func (*handler) CaddyModule() caddy.ModuleInfo {
	return caddy.ModuleInfo{ID: "events.handlers.events_test", New: func() caddy.Module { return new(handler) }}
}

func (h *handler) Handle(ctx context.Context, e caddy.Event) error {
	do, _ := handlings.Load(h.Name)
	return do.(handling)(ctx, e)
}

// newBus returns the bus of the test. Caddy stops at the end of the test.
func newBus(t *testing.T) (*events.Bus, *observer.ObservedLogs) {
	core, logs := observer.New(zap.InfoLevel)
	tested.bus, tested.apps = events.NewBus(zap.New(core)), nil
	t.Cleanup(func() {
		if err := caddy.Stop(); err != nil {
			t.Error(err)
		}
	})
	return tested.bus, logs
}

// load makes Caddy load a configuration in which a function of the test handles the event "said".
func load(t *testing.T, name string, do handling) {
	t.Helper()
	handlings.Store(name, do)
	config := fmt.Sprintf(`{"admin": {"disabled": true, "config": {"persist": false}}, "apps": {"events_test": {},
		"events": {"subscriptions": [{"events": ["said"], "handlers": [{"handler": "events_test", "name": %q}]}]}}}`,
		name)
	if err := caddy.Load([]byte(config), true); err != nil {
		t.Fatal(err)
	}
}

// to returns a handler that sends the word of each event to a channel. The word may contain placeholders, which must
// not be replaced.
func to(words chan<- string) handling {
	return func(ctx context.Context, _ caddy.Event) error {
		replacer := ctx.Value(caddy.ReplacerCtxKey).(*caddy.Replacer)
		words <- replacer.ReplaceAll("{event.module}: {event.data.word}", "")
		return nil
	}
}

func say(b *events.Bus, word string) {
	b.Emit("said", func() map[string]any { return map[string]any{"word": word} })
}

func expect(t *testing.T, words <-chan string, want ...string) {
	t.Helper()
	for _, word := range want {
		if got := fixture.Receive(t, word, words); got != "events_test: "+word {
			t.Errorf("the handler got %q, want %q", got, word)
		}
	}
}

func TestEmit(t *testing.T) {
	b, _ := newBus(t)
	say(b, "before the first configuration")
	words := make(chan string, 8)
	load(t, "first", to(words))
	b.Emit("unheard", func() map[string]any {
		t.Error("the data of an event without handlers was made")
		return nil
	})
	say(b, "hello")
	say(b, "{env.HOME} {event.name}")
	expect(t, words, "hello", "{env.HOME} {event.name}")

	others := make(chan string, 8)
	load(t, "second", to(others))
	say(b, "after a reload")
	expect(t, others, "after a reload")
	if len(words) > 0 {
		t.Errorf("the handler of the stopped configuration got %q", <-words)
	}
	(*events.Bus)(nil).Emit("said", nil)
}

// TestPanickingHandler checks that a handler that panics gets the next event.
func TestPanickingHandler(t *testing.T) {
	b, _ := newBus(t)
	words := make(chan string, 8)
	load(t, "first", func(ctx context.Context, e caddy.Event) error {
		if e.Data["word"] == "bad" {
			panic("a bad word")
		}
		return to(words)(ctx, e)
	})
	say(b, "bad")
	say(b, "good")
	expect(t, words, "good")
}

// blocked returns a handler that sends a value to called, and then waits until end is closed.
func blocked(called chan<- bool, end <-chan bool) handling {
	return func(context.Context, caddy.Event) error {
		called <- true
		<-end
		return nil
	}
}

// TestBlockedHandler checks that a handler that never returns delays only other events of its configuration, that the
// number of waiting events is limited, and that they are handled after a reload.
func TestBlockedHandler(t *testing.T) {
	b, logs := newBus(t)
	called, end := make(chan bool), make(chan bool)
	defer close(end)
	load(t, "first", blocked(called, end))
	say(b, "blocked")
	fixture.Receive(t, "the call of the handler", called)
	for n := range events.MaxQueued + 10 {
		say(b, fmt.Sprint("waiting ", n))
	}
	if got := counted(t, b); got != 10 {
		t.Errorf("%v events were dropped, want 10", got)
	}
	if got := logs.FilterMessageSnippet("too slow").Len(); got != 1 {
		t.Errorf("the log has %d messages about dropped events", got)
	}
	words := make(chan string, events.MaxQueued)
	load(t, "second", to(words))
	for n := range events.MaxQueued {
		expect(t, words, fmt.Sprint("waiting ", n))
	}
	say(b, "later")
	expect(t, words, "later")
	if got := counted(t, b); got != 10 {
		t.Errorf("%v events were dropped, want 10", got)
	}
}

// counted returns the number of dropped events.
func counted(t *testing.T, b *events.Bus) float64 {
	t.Helper()
	var m dto.Metric
	if err := b.Collectors()[0].(prometheus.Counter).Write(&m); err != nil {
		t.Fatal(err)
	}
	return m.GetCounter().GetValue()
}

func TestAsk(t *testing.T) {
	b, _ := newBus(t)
	ask := func() error { return b.Ask(t.Context(), "said", map[string]any{"word": "hello"}) }
	if err := ask(); err != nil {
		t.Errorf("without a configuration, there is the error %v", err)
	}
	for _, c := range []struct {
		name, want string
		do         handling
	}{
		{"returns", "", func(context.Context, caddy.Event) error { return nil }},
		{"fails", "", func(context.Context, caddy.Event) error { return errors.New("it fails") }},
		{"aborts", "the event said was aborted: not this host: event aborted",
			func(context.Context, caddy.Event) error {
				return fmt.Errorf("not this host: %w", caddy.ErrEventAborted)
			}},
		{"panics", "the event said was aborted: its handler has panicked",
			func(context.Context, caddy.Event) error { panic("in a handler") }},
	} {
		t.Run(c.name, func(t *testing.T) {
			load(t, c.name, c.do)
			err := ask()
			var aborted *events.Aborted
			if (err != nil) != errors.As(err, &aborted) {
				t.Errorf("the error has the type %T", err)
			}
			if got := strings.TrimPrefix(fmt.Sprint(err), "<nil>"); got != c.want {
				t.Errorf("the error is %q, want %q", got, c.want)
			}
		})
	}
}

// TestAskBlockedHandler checks that an event is aborted if its context ends while a handler is blocked.
func TestAskBlockedHandler(t *testing.T) {
	b, _ := newBus(t)
	called, end := make(chan bool), make(chan bool)
	defer close(end)
	load(t, "blocks", blocked(called, end))
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	answer := make(chan error, 1)
	go func() { answer <- b.Ask(ctx, "said", nil) }()
	fixture.Receive(t, "the call of the handler", called)
	cancel()
	err := fixture.Receive(t, "the answer", answer)
	var aborted *events.Aborted
	if !errors.As(err, &aborted) || err.Error() != "the event said was aborted: context canceled" {
		t.Errorf("the error is %v, with the type %T", err, err)
	}
}

// TestManyBlockedHandlers checks that the number of goroutines that handlers block is limited.
func TestManyBlockedHandlers(t *testing.T) {
	b, _ := newBus(t)
	called, end := make(chan bool, 2*events.MaxAsked), make(chan bool)
	defer close(end)
	load(t, "blocks", blocked(called, end))
	ctx, cancel := context.WithCancel(t.Context())
	var asking sync.WaitGroup
	for range 2 * events.MaxAsked {
		asking.Go(func() {
			if b.Ask(ctx, "said", nil) == nil {
				t.Error("there is no error")
			}
		})
	}
	for range events.MaxAsked {
		fixture.Receive(t, "the call of a handler", called)
	}
	cancel()
	asking.Wait()
	if len(called) > 0 {
		t.Errorf("%d more handlers were called", len(called))
	}
}

// TestAskDuringReload checks that the handlers of the new configuration decide, if the old configuration has stopped
// before its handlers have returned.
func TestAskDuringReload(t *testing.T) {
	b, _ := newBus(t)
	called := make(chan bool)
	load(t, "old", func(ctx context.Context, _ caddy.Event) error {
		called <- true
		<-ctx.Done()
		return nil
	})
	answer := make(chan error, 1)
	go func() { answer <- b.Ask(t.Context(), "said", nil) }()
	fixture.Receive(t, "the call of the handler", called)
	load(t, "new", func(context.Context, caddy.Event) error { return caddy.ErrEventAborted })
	if err := fixture.Receive(t, "the answer", answer); !errors.Is(err, caddy.ErrEventAborted) {
		t.Errorf("the error is %v", err)
	}
}

// TestAskWhileStopping checks that an event is aborted if its handlers cannot be asked because Caddy stops.
func TestAskWhileStopping(t *testing.T) {
	b, _ := newBus(t)
	load(t, "stops", func(context.Context, caddy.Event) error { return nil })
	if err := caddy.Stop(); err != nil {
		t.Fatal(err)
	}
	if err := b.Ask(t.Context(), "said", nil); err == nil {
		t.Error("there is no error")
	}
	say(b, "too late")
}
