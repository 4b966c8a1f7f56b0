package events

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/k8singress/k8singress/internal/process/panics"
)

const (
	// answerTime is the maximum time that Ask waits for the handlers of an event.
	answerTime = time.Minute
	// maxAsked is the maximum number of goroutines of a configuration that run handlers for Ask. It bounds the number
	// of goroutines that handlers can block.
	maxAsked = 32
)

// Aborted is the error of Ask if an event was aborted.
type Aborted struct {
	// Event is the name of the event.
	Event string
	// Reason says why the event was aborted, such as the error of a handler.
	Reason error
}

// Error implements error.
func (a *Aborted) Error() string {
	return fmt.Sprintf("the event %s was aborted: %v", a.Event, a.Reason)
}

// Unwrap returns the reason.
func (a *Aborted) Unwrap() error { return a.Reason }

var (
	errPanicked = errors.New("its handler has panicked")
	errSlow     = fmt.Errorf("its handlers have not returned within %s", answerTime)
	errStopped  = errors.New("the configuration with its handlers has stopped")
)

// Ask passes an event to its handlers and waits for them. It returns an error of type *Aborted if a handler has aborted
// the event. It also returns such an error if the handlers cannot decide: because one of them has panicked, they do not
// return in time, or ctx ends.
func (b *Bus) Ask(ctx context.Context, name string, data map[string]any) error {
	if b == nil {
		return nil
	}
	ctx, cancel := context.WithTimeoutCause(ctx, answerTime, errSlow)
	defer cancel()
	for {
		c := b.current()
		err := c.ask(ctx, event{name, data})
		if errors.Is(err, errStopped) && b.current() != c {
			// Caddy has loaded another configuration meanwhile. Its handlers decide.
			continue
		}
		if err != nil {
			return &Aborted{name, err}
		}
		return nil
	}
}

// ask calls the handlers of an event on another goroutine, and waits for them until ctx ends. It returns the error of
// the handler that has aborted the event, or the reason why the handlers cannot decide.
func (c *Config) ask(ctx context.Context, e event) error {
	if c == nil {
		return nil
	}
	select {
	case <-c.started:
	case <-c.stopped:
		return errStopped
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	if !c.app.ShouldEmit(e.name) {
		return nil
	}
	select {
	case c.asked <- struct{}{}:
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	answer := make(chan error, 1)
	panics.Go("events/handler", func() {
		defer func() { <-c.asked }()
		answer <- c.emit(e)
	}, func() { answer <- errPanicked })
	select {
	case err := <-answer:
		if err == nil && isClosed(c.stopped) {
			// The events app calls no handlers after the configuration has stopped.
			return errStopped
		}
		return err
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}
