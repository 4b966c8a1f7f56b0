package kubeclient

import (
	"context"
	"errors"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"
)

// patient is a ListWatch that asks again by itself when the API server is away. The reflector above it would say nothing
// of a refused connection, would wait for up to a minute, and would not stop waiting when it is told to.
type patient struct {
	*cache.ListWatch
	failed func(error)
}

// Patient makes lists and watches ask again while the API server is away, until their context ends. It calls failed with
// each error that it waits out.
func Patient(source *cache.ListWatch, failed func(error)) cache.ListerWatcher {
	return &patient{ListWatch: source, failed: failed}
}

// ListWithContext returns what an API server answers, or the error of the context.
func (p *patient) ListWithContext(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) {
	return Persist(ctx, p.failed, func() (runtime.Object, error) { return p.ListWatch.ListWithContext(ctx, o) })
}

// WatchWithContext is like ListWithContext.
func (p *patient) WatchWithContext(ctx context.Context, o metav1.ListOptions) (watch.Interface, error) {
	return Persist(ctx, p.failed, func() (watch.Interface, error) { return p.ListWatch.WatchWithContext(ctx, o) })
}

// Persist asks until an API server answers, or the context ends: then the error is that of the last answer, too. It calls
// failed with each error that it waits out.
func Persist[T any](ctx context.Context, failed func(error), ask func() (T, error)) (T, error) {
	pause := wait.Backoff{Duration: 500 * time.Millisecond, Factor: 2, Jitter: 0.5, Steps: 10, Cap: 15 * time.Second}
	for {
		answer, err := ask()
		if err == nil || ctx.Err() != nil || !Away(err) {
			return answer, err
		}
		failed(err)
		if ended := Pause(ctx, pause.Step()); ended != nil {
			return answer, fmt.Errorf("%w: %w", ended, err)
		}
	}
}

// Pause returns after a time, or with an error as soon as the context ends.
func Pause(ctx context.Context, d time.Duration) error {
	select {
	case <-time.After(d):
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// Away says that there was no answer, or one of a server that is overloaded or has lost its storage. Every other
// answer decides how the reflector goes on.
func Away(err error) bool {
	var status apierrors.APIStatus
	if !errors.As(err, &status) {
		return true
	}
	return apierrors.IsTooManyRequests(err) || status.Status().Code >= 500
}
