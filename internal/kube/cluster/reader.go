package cluster

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"

	kubeclient "github.com/k8singress/k8singress/internal/kube/client"
	"github.com/k8singress/k8singress/internal/model/ir"
	"github.com/k8singress/k8singress/internal/model/kinds"
)

const (
	// watchTime is the minimum timeout that is requested for a watch; informers request the same. After the timeout,
	// the API server ends the watch, and the reader starts a new one.
	watchTime = 5 * time.Minute
	// shortWatch is the minimum duration of a successful watch. A shorter watch counts as failed, and the next one is
	// delayed.
	shortWatch = time.Second
	// firstPause and lastPause are the minimum and maximum delay after the API server has rejected a request for an
	// object.
	firstPause = time.Second
	lastPause  = time.Minute
)

// reader lists and watches one object.
type reader struct {
	of    *byName
	ref   ir.Ref
	one   *single
	scope scope
	lists *cache.ListWatch
	trim  cache.TransformFunc
	// version is the resourceVersion at which the next watch starts. If it is empty, the object must be listed first.
	version string
	pause   time.Duration
}

func newReader(b *byName, ref ir.Ref, one *single) *reader {
	return &reader{
		of: b, ref: ref, one: one, trim: transform(b.kind, b.store), pause: firstPause,
		scope: scope{kind: b.kind, namespace: ref.Namespace, name: ref.Name},
		lists: cache.NewListWatchFromClient(b.client, b.kind.Resource, ref.Namespace,
			fields.OneTermEqualSelector(metav1.ObjectNameField, ref.Name)),
	}
}

// run keeps the object in the store up to date until the context ends.
func (r *reader) run(ctx context.Context) {
	// With resourceVersion 0, the API server may respond from its cache. The response may be outdated, but the watch
	// then delivers the changes since.
	from := "0"
	for ctx.Err() == nil {
		var err error
		if r.version == "" {
			err = r.list(ctx, from)
			from = ""
		} else {
			err = r.watch(ctx)
		}
		if err != nil && ctx.Err() == nil {
			r.failed(ctx, err)
		}
	}
}

// failed handles the error of a list or watch request: it logs the error, waits if necessary, and decides whether the
// object must be listed again.
func (r *reader) failed(ctx context.Context, err error) {
	r.of.errors.add(r.scope, err)
	switch {
	case apierrors.IsResourceExpired(err) || apierrors.IsGone(err):
		r.version = ""
		return
	case kubeclient.Away(err) && !errors.Is(err, errShortWatch):
		// Do not wait here: the gate, which limits the request rate of all readers, delays the next request.
		return
	case apierrors.IsForbidden(err):
		r.of.update(r.ref, r.one, func() { r.of.store.Deny(r.ref, true) })
	}
	r.version = ""
	_ = kubeclient.Pause(ctx, r.pause+rand.N(r.pause)) // run checks the context.
	r.pause = min(2*r.pause, lastPause)
}

func (r *reader) list(ctx context.Context, from string) error {
	var answer runtime.Object
	err := r.of.gate.pass(ctx, func() (err error) {
		answer, err = r.lists.ListWithContext(ctx, metav1.ListOptions{ResourceVersion: from})
		return err
	})
	if err != nil {
		return err
	}
	list, err := meta.ListAccessor(answer)
	if err != nil {
		return fmt.Errorf("reading a list of %s: %w", r.scope.kind.Resource, err)
	}
	objects, err := meta.ExtractList(answer)
	if err != nil {
		return fmt.Errorf("reading a list of %s: %w", r.scope.kind.Resource, err)
	}
	r.version, r.pause = list.GetResourceVersion(), firstPause
	if len(objects) == 0 {
		r.gone()
		return nil
	}
	return r.set(objects[0])
}

var errShortWatch = errors.New("the watch ended immediately")

// watch watches the object until the watch ends. It returns nil if the API server has ended the watch after the
// requested time.
func (r *reader) watch(ctx context.Context) error {
	begin := time.Now()
	var events watch.Interface
	err := r.of.gate.pass(ctx, func() (err error) {
		seconds := int64((watchTime + rand.N(watchTime)).Seconds())
		events, err = r.lists.WatchWithContext(ctx, metav1.ListOptions{
			ResourceVersion: r.version, AllowWatchBookmarks: true, TimeoutSeconds: &seconds,
		})
		return err
	})
	if err != nil {
		return err
	}
	defer events.Stop()
	for event := range events.ResultChan() {
		if err := r.event(event); err != nil {
			return err
		}
	}
	if time.Since(begin) < shortWatch {
		return errShortWatch
	}
	return nil
}

func (r *reader) event(e watch.Event) error {
	if e.Type == watch.Error {
		return apierrors.FromObject(e.Object)
	}
	o, err := meta.Accessor(e.Object)
	if err != nil {
		return fmt.Errorf("reading a watch of %s: %w", r.scope.kind.Resource, err)
	}
	r.version = o.GetResourceVersion()
	switch e.Type {
	case watch.Added, watch.Modified:
		return r.set(e.Object)
	case watch.Deleted:
		r.gone()
	case watch.Bookmark, watch.Error:
	}
	return nil
}

func (r *reader) set(object runtime.Object) error {
	trimmed, err := r.trim(object)
	o, ok := trimmed.(kinds.Object)
	if err != nil || !ok {
		return fmt.Errorf("the API server sent a %T instead of an object of %s: %w", object, r.scope.kind.Resource, err)
	}
	r.of.update(r.ref, r.one, func() {
		r.of.store.Set(o)
		r.of.store.Deny(r.ref, false)
	})
	return nil
}

func (r *reader) gone() {
	r.of.update(r.ref, r.one, func() {
		r.of.store.Delete(r.of.kind.Named(r.ref.Namespace, r.ref.Name))
		r.of.store.Deny(r.ref, false)
	})
}
