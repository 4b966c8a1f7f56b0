package cluster

import (
	"context"
	"maps"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"

	"github.com/k8singress/k8singress/internal/process/panics"
)

// heard records when the API server has last sent anything about each kind of object: a list, the start of a watch, a
// change, or a bookmark.
type heard struct {
	mu sync.Mutex
	at map[string]time.Time
}

func (h *heard) now(kind string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.at == nil {
		h.at = map[string]time.Time{}
	}
	h.at[kind] = time.Now()
}

// Heard returns, for each kind of object, when the API server has last sent anything about its objects. Kinds about
// which it has not sent anything are not included. Secrets that Follow has requested are not included either.
func (c *Cluster) Heard() map[string]time.Time {
	c.heard.mu.Lock()
	defer c.heard.mu.Unlock()
	return maps.Clone(c.heard.at)
}

// listened sends list and watch requests through a ListerWatcher, and records in the field to when the API server sends
// something.
type listened struct {
	cache.ListerWatcher
	kind string
	to   *heard
}

func (l *listened) ListWithContext(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) {
	list, err := cache.ToListerWatcherWithContext(l.ListerWatcher).ListWithContext(ctx, o)
	if err == nil {
		l.to.now(l.kind)
	}
	return list, err
}

func (l *listened) WatchWithContext(ctx context.Context, o metav1.ListOptions) (watch.Interface, error) {
	events, err := cache.ToListerWatcherWithContext(l.ListerWatcher).WatchWithContext(ctx, o)
	if err != nil {
		return nil, err
	}
	l.to.now(l.kind)
	f := &followed{Interface: events, events: make(chan watch.Event), stopped: make(chan struct{})}
	panics.Go("cluster/watch", func() {
		defer close(f.events)
		f.pass(func() { l.to.now(l.kind) })
	}, events.Stop)
	return f, nil
}

// followed is a watch whose events are recorded. watch.Filter would do the same, but leaks its goroutine if the watch
// is stopped while an event waits.
type followed struct {
	watch.Interface
	events  chan watch.Event
	stopped chan struct{}
	once    sync.Once
}

// pass calls heard for each event, and passes it on, until the watch ends.
func (f *followed) pass(heard func()) {
	for e := range f.Interface.ResultChan() {
		heard()
		select {
		case f.events <- e:
		case <-f.stopped:
			return
		}
	}
}

func (f *followed) ResultChan() <-chan watch.Event { return f.events }

func (f *followed) Stop() {
	f.once.Do(func() { close(f.stopped) })
	f.Interface.Stop()
}
