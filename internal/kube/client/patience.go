package client

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

// patient is a ListWatch that retries while the API server is unavailable. The retries of client-go's reflector are not
// sufficient: the reflector does not report refused connections, pauses for up to a minute, and does not end the pause
// when its context ends.
type patient struct {
	*cache.ListWatch
	failed func(error)
}

// Patient returns a ListerWatcher that sends list and watch requests through source. While the API server is
// unavailable, it retries until the context ends. Before each retry, it calls failed with the error.
func Patient(source *cache.ListWatch, failed func(error)) cache.ListerWatcher {
	return &patient{ListWatch: source, failed: failed}
}

// ListWithContext retries until the API server responds, and returns its response. It returns an error if the context
// ends.
func (p *patient) ListWithContext(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) {
	return Persist(ctx, p.failed, func() (runtime.Object, error) { return p.ListWatch.ListWithContext(ctx, o) })
}

// WatchWithContext starts a watch. Like ListWithContext, it retries until the API server responds or the context ends.
func (p *patient) WatchWithContext(ctx context.Context, o metav1.ListOptions) (watch.Interface, error) {
	return Persist(ctx, p.failed, func() (watch.Interface, error) { return p.ListWatch.WatchWithContext(ctx, o) })
}

// Persist calls ask until the API server responds or the context ends. ask must send one request to the API server.
// Before each retry, Persist calls failed with the error of ask. If the context ends, the returned error also contains
// the last error of ask.
func Persist[T any](ctx context.Context, failed func(error), ask func() (T, error)) (T, error) {
	pause := Backoff()
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

// Backoff returns the delays between requests to an API server that did not respond or rejected the requests.
func Backoff() wait.Backoff {
	return wait.Backoff{Duration: 500 * time.Millisecond, Factor: 2, Jitter: 0.5, Steps: 10, Cap: 15 * time.Second}
}

// Pause waits for the duration d. If the context ends first, it returns the error of the context at once.
func Pause(ctx context.Context, d time.Duration) error {
	select {
	case <-time.After(d):
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// Away reports whether err means that the API server did not respond, is overloaded, or has an internal error. Only
// requests that fail with such an error are retried here. Any other error is returned to the caller.
func Away(err error) bool {
	var status apierrors.APIStatus
	if !errors.As(err, &status) {
		return true
	}
	return apierrors.IsTooManyRequests(err) || status.Status().Code >= 500
}
