package issuance

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/modules/caddyevents"
	"github.com/google/go-cmp/cmp"
	"go.uber.org/zap/zaptest"

	"github.com/k8singress/k8singress/internal/process/events"
	"github.com/k8singress/k8singress/internal/tests/fixture"
)

// heard is an event handler that records the events of a test. It aborts orders for the hosts in denied.
type heard struct {
	denied []string

	mu     sync.Mutex
	events []string
}

// Handle implements caddyevents.Handler.
func (h *heard) Handle(ctx context.Context, e caddy.Event) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	host, _ := e.Data["identifier"].(string)
	text := e.Name() + " " + host
	if sans, ok := e.Data["sans"]; ok {
		text += fmt.Sprint(sans)
	}
	if _, ok := e.Data["error"]; ok {
		text += ": " + ctx.Value(caddy.ReplacerCtxKey).(*caddy.Replacer).ReplaceAll("{event.data.error}", "")
	}
	h.events = append(h.events, text)
	if e.Name() == "cert_obtaining" && slices.Contains(h.denied, host) {
		return fmt.Errorf("%s is not welcome\n: %w", host, caddy.ErrEventAborted)
	}
	return nil
}

func (h *heard) sorted() []string {
	h.mu.Lock()
	defer h.mu.Unlock()
	return slices.Sorted(slices.Values(h.events))
}

// hearing returns a configuration whose events about certificates have the handler h, and a bus that uses it.
func (b *bench) hearing(h *heard) (caddy.Context, *events.Bus) {
	b.Helper()
	ctx, err := caddy.ProvisionContext(&caddy.Config{StorageRaw: b.storage()})
	if err != nil {
		b.Fatal(err)
	}
	c, err := events.Add(ctx)
	if err != nil {
		b.Fatal(err)
	}
	app, err := ctx.App("events")
	if err != nil {
		b.Fatal(err)
	}
	for _, name := range []string{"cert_obtaining", "cert_obtained", "cert_failed", "cached_managed_cert"} {
		if err := app.(*caddyevents.App).On(name, h); err != nil {
			b.Fatal(err)
		}
	}
	app.(*caddyevents.App).Emit(ctx, "started", nil)
	bus := events.NewBus(zaptest.NewLogger(b))
	bus.Use(c)
	b.Cleanup(c.Stop)
	return ctx, bus
}

// TestAbortedOrders checks that a handler of the event cert_obtaining can prevent orders, that a verdict says so, and
// that the handlers of the next configuration are asked at once. A renewal is prevented in the same way.
func TestAbortedOrders(t *testing.T) {
	b := newBench(t)
	plan := b.issuer("one")
	plan.lifetime = 2 * time.Minute
	h := &heard{denied: []string{"bad.example"}}
	_, bus := b.hearing(h)
	r := b.with(time.Hour, func(o *Options) { o.Events = bus })
	r.want("bad.example", "good.example")
	r.expectProblem("bad.example", "ACMEFailed: there is no certificate for bad.example, and the default certificate "+
		"is used: the event cert_obtaining was aborted: bad.example is not welcome : event aborted; the next attempt")
	r.gets("good.example")
	if names := plan.orderedNames(); !slices.Equal(names, []string{"good.example"}) {
		t.Errorf("certificates were ordered for %v", names)
	}
	want := []string{"cert_obtained good.example", "cert_obtaining bad.example", "cert_obtaining good.example"}
	r.eventually("the events", func() error {
		if diff := cmp.Diff(want, h.sorted()); diff != "" {
			return errors.New(diff)
		}
		return nil
	})

	ctx, bus := b.hearing(&heard{denied: []string{"good.example"}})
	if err := r.Configure(ctx, Options{Issuers: b.issuers, Events: bus}); err != nil {
		t.Fatal(err)
	}
	r.gets("bad.example")
	r.stop()
	next := b.with(time.Hour, func(o *Options) { o.Events = bus })
	next.want("good.example")
	next.expectProblem("good.example", "is not renewed: the event cert_obtaining was aborted: good.example is not")
}

// TestEventOfFailure checks that a failed order emits an event with the error, which handlers can read with a
// placeholder. Placeholders in the error are not replaced.
func TestEventOfFailure(t *testing.T) {
	b := newBench(t)
	b.issuer("one").set(errors.New("the sea is rough {env.HOME}"))
	h := &heard{}
	_, bus := b.hearing(h)
	r := b.with(time.Hour, func(o *Options) { o.Events = bus })
	r.want("a.example")
	fixture.Holds(t, "the event", func() bool {
		return slices.ContainsFunc(h.sorted(), func(text string) bool {
			return strings.HasPrefix(text, "cert_failed a.example: ") &&
				strings.HasSuffix(text, "the sea is rough {env.HOME}")
		})
	})
}

// TestEventOfCertificateOnDemand checks that a replica that does not order certificates emits the event that it uses a
// certificate on demand, once for each certificate. It does not emit the event for other certificates, because it does
// not know when they are in use.
func TestEventOfCertificateOnDemand(t *testing.T) {
	b := newBench(t)
	b.issuer("one")
	b.gate(allow)
	b.replica(true, time.Second).want("b.example")
	h := &heard{}
	_, bus := b.hearing(h)
	r := b.replica(false, time.Second)
	o := b.options()
	o.Events = bus
	r.configure(o)
	r.want("b.example")
	r.gets("b.example")
	if r.shakes("a.example") == nil {
		t.Fatal("there is no certificate")
	}
	// Configuring the replica again makes it read all certificates again.
	r.configure(o)
	if r.shakes("c.example") == nil {
		t.Fatal("there is no certificate")
	}
	want := []string{"cached_managed_cert [a.example]", "cached_managed_cert [c.example]"}
	r.eventually("the events", func() error {
		if diff := cmp.Diff(want, h.sorted()); diff != "" {
			return errors.New(diff)
		}
		return nil
	})
}
