package l4app

import (
	"context"
	"net"
	"strings"
	"testing"

	"github.com/mholt/caddy-l4/layer4"
	"go.uber.org/zap/zaptest"

	"github.com/k8singress/k8singress/internal/model/document"
	"github.com/k8singress/k8singress/internal/model/ir"
	"github.com/k8singress/k8singress/internal/tests/fixture"
	"github.com/k8singress/k8singress/internal/upstream/services"
)

// guestOf returns a handler in a layer4 app of the user. It forwards connections to the backend of a route.
func (w *world) guestOf(t *testing.T, r *ir.StreamRoute) *Handler {
	t.Helper()
	registry, port := services.New(), ir.FollowedPort{Protocol: ir.TCP}
	h := &Handler{service: registry.Follow(port), log: zaptest.NewLogger(t)}
	registry.Update(func(ir.FollowedPort) *services.Found {
		return &services.Found{Backend: w.Endpoints.Backend(r.Backends[0].Backend.ID)}
	})
	h.guest = &guest{handler: h, ports: w.ports}
	return h
}

// TestGuestsDrain checks that open connections of the user's layer4 app get time to end when the process shuts down,
// while new ones are rejected, and that they are closed after that time.
func TestGuestsDrain(t *testing.T) {
	w := newWorld(t)
	w.ports.Outlast()
	r := route(ir.TCP, 0, "a")
	w.endpoints(r, named(t, "a"))
	h := w.guestOf(t, r)
	listener := fixture.Listen(t)
	fixture.Serve(listener, func(conn net.Conn) {
		if err := h.Handle(layer4.WrapConnection(conn, nil, h.log), nil); err != nil {
			t.Error(err)
		}
	})
	r.Port = uint16(listener.Addr().(*net.TCPAddr).Port)
	open := dial(t, r)
	expect(t, open, "a")

	ctx, cancel := context.WithCancel(t.Context())
	drained := make(chan struct{})
	w.ports.Refuse()
	go func() {
		w.ports.Drain(ctx)
		close(drained)
	}()
	await(t, "new connections are rejected", func() bool {
		conn := dial(t, r)
		n, err := conn.Read(make([]byte, 1))
		return n == 0 && err != nil
	})
	send(t, open, "still there")
	expect(t, open, "still there")
	cancel()
	expectEnd(t, open)
	<-drained
	if got := w.ports.accounts.keep(portName(r)).active.Load(); got != 0 {
		t.Errorf("%d connections are counted as open", got)
	}
}

// TestHandlerRejected checks the errors for settings of a handler with a Service.
func TestHandlerRejected(t *testing.T) {
	service := ir.ServicePort{Service: ir.Name{Namespace: "default", Name: "db"}}
	for words, h := range map[string]*Handler{
		"needs a Service":           {},
		"is not configured":         {Service: service},
		"cannot have a backend":     {Service: service, StreamBackends: document.StreamBackends{Backend: "a/b/1"}},
		`"v3" is not supported`:     {Service: service, ProxyProtocol: "v3"},
		"idle_timeout must not be ": {Service: service, Policy: ir.StreamPolicy{IdleTimeout: -1}},
	} {
		if err := h.Provision(newWorld(t).ctx); err == nil || !strings.Contains(err.Error(), words) {
			t.Errorf("the error is %v, want one about %q", err, words)
		}
	}
}
