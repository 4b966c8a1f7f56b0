package events

import (
	"context"
	"fmt"
	"sync"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/modules/caddyevents"
)

// Config passes events to the events app of one Caddy configuration.
type Config struct {
	ctx caddy.Context
	app *caddyevents.App
	// asked has an element for each goroutine that runs the handlers of an event for Bus.Ask.
	asked chan struct{}
	// started is closed when all apps of the configuration have started. Before that, the events app may not know all
	// handlers. stopped is closed when the configuration stops.
	started, stopped chan struct{}
	start, stop      func()
}

// Add returns the events app of the configuration that ctx belongs to. Modules call Add in Provision, and Config.Stop
// in Stop and in Cleanup. The origin of the events is the module that calls Add.
func Add(ctx caddy.Context) (*Config, error) {
	app, err := ctx.App("events")
	if err != nil {
		return nil, fmt.Errorf("the events app: %w", err)
	}
	c := &Config{
		ctx: ctx, app: app.(*caddyevents.App), asked: make(chan struct{}, maxAsked),
		started: make(chan struct{}), stopped: make(chan struct{}),
	}
	c.start = sync.OnceFunc(func() { close(c.started) })
	c.stop = sync.OnceFunc(func() { close(c.stopped) })
	// Caddy emits this event when all apps have started.
	if err := c.app.On("started", &onStarted{c}); err != nil {
		return nil, fmt.Errorf("subscribing to the start of the configuration: %w", err)
	}
	return c, nil
}

// onStarted is the handler of the event with which Caddy announces that all apps have started.
type onStarted struct{ config *Config }

// Handle implements caddyevents.Handler.
func (h *onStarted) Handle(context.Context, caddy.Event) error {
	h.config.start()
	return nil
}

// Stop must be called when the configuration stops. Its handlers get no more events. Stop may be called more than once,
// and on a nil Config.
func (c *Config) Stop() {
	if c != nil {
		c.stop()
	}
}

// observes reports whether a handler or the debug log may want an event. While the configuration is starting, it
// returns true, because the events app cannot be asked yet.
func (c *Config) observes(name string) bool {
	switch {
	case c == nil || isClosed(c.stopped):
		return false
	case isClosed(c.started):
		return c.app.ShouldEmit(name)
	}
	return true
}

// await waits until the configuration has started. It returns false if the configuration has stopped.
func (c *Config) await() bool {
	select {
	case <-c.started:
	case <-c.stopped:
	}
	return !isClosed(c.stopped)
}

// emit calls the handlers of an event, and returns the error of the handler that has aborted the event, or nil.
func (c *Config) emit(e event) error { return c.app.Emit(c.ctx, e.name, e.data).Aborted }

func isClosed(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}
