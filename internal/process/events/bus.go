// Package events emits events to the events app of the running Caddy configuration. It is for code that continues to
// run when Caddy loads a new configuration: the handlers of the new configuration then get all further events.
//
// Handlers of Caddy's events run on the goroutine of the code that emits the event. A handler of a plugin may be slow,
// block or panic, which must not affect requests or the main loop. So the handlers run on goroutines of this package.
package events

import (
	"sync"

	"github.com/prometheus/client_golang/prometheus"
	"go.uber.org/zap"

	"github.com/k8singress/k8singress/internal/process/panics"
)

// maxQueued is the maximum number of events that wait for their handlers. It is enough for one event for each object
// and certificate of a large cluster when the process starts.
const maxQueued = 20_000

// Bus emits events of one component, such as the engine. All methods are safe for concurrent use. A nil Bus emits no
// events.
type Bus struct {
	log     *zap.Logger
	dropped prometheus.Counter

	mu sync.Mutex
	// config is the configuration whose handlers get the events. It is nil before the first call of Use.
	config *Config
	// queue holds the events that wait for their handlers, oldest first.
	queue []event
	// delivering is the configuration for which a goroutine delivers the queue, or nil.
	delivering *Config
	// full is true from the time when an event was dropped until the queue is empty.
	full bool
}

type event struct {
	name string
	data map[string]any
}

// NewBus returns a bus that drops all events until Use is called.
func NewBus(log *zap.Logger) *Bus {
	return &Bus{log: log, dropped: prometheus.NewCounter(prometheus.CounterOpts{
		Name: "k8singress_events_dropped_total",
		Help: "The number of events for the handlers of Caddy's events app that were dropped, because earlier events " +
			"were still waiting for slow handlers.",
	})}
}

// Collectors returns the metrics of the bus, for registration in the metrics registry of a Caddy configuration.
func (b *Bus) Collectors() []prometheus.Collector { return []prometheus.Collector{b.dropped} }

// Use makes the handlers of a configuration get all further events, and the events that are still waiting. A handler of
// the previous configuration that is running may continue to run.
func (b *Bus) Use(c *Config) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.config = c
	b.deliverSoon()
}

// Emit passes an event to its handlers. It does not wait for them. data returns the data of the event. It is not called
// if there are no handlers for the event.
func (b *Bus) Emit(name string, data func() map[string]any) {
	if b == nil || !b.current().observes(name) {
		return
	}
	e := event{name, data()}
	b.mu.Lock()
	defer b.mu.Unlock()
	if len(b.queue) >= maxQueued {
		b.drop(name)
		return
	}
	b.queue = append(b.queue, e)
	b.deliverSoon()
}

// drop counts an event that is dropped, and logs the first one. The caller holds the lock.
func (b *Bus) drop(name string) {
	b.dropped.Inc()
	if !b.full {
		b.full = true
		b.log.Error("the handlers of events are too slow: events are dropped until all waiting events are handled",
			zap.String("event", name), zap.Int("waiting", len(b.queue)))
	}
}

func (b *Bus) current() *Config {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.config
}

// deliverSoon starts a goroutine that delivers the queue to the current configuration, unless it is already running or
// there is nothing to deliver. The caller holds the lock.
func (b *Bus) deliverSoon() {
	c := b.config
	if len(b.queue) == 0 || c == nil || b.delivering == c {
		return
	}
	b.delivering = c
	panics.Go("events/queue", func() { b.deliver(c) })
}

// deliver calls the handlers of a configuration for the events in the queue. It ends when the queue is empty or another
// configuration is used. A panic of a handler ends only the handling of its event.
func (b *Bus) deliver(c *Config) {
	for c.await() {
		e, ok := b.next(c)
		if !ok {
			return
		}
		// The error is ignored: the event has already happened, so a handler cannot abort it.
		_ = panics.Run("events/handler", func() error { return c.emit(e) })
	}
}

// next removes the first event from the queue, for the handlers of c. It returns false if there is no event or if c is
// not the configuration that gets the events.
func (b *Bus) next(c *Config) (e event, ok bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.delivering != c {
		return event{}, false
	}
	if len(b.queue) == 0 {
		b.queue, b.full, b.delivering = nil, false, nil
		return event{}, false
	}
	e, b.queue[0] = b.queue[0], event{}
	b.queue = b.queue[1:]
	return e, true
}
