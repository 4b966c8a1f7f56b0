package cluster

import (
	"context"
	"errors"
	"io"
	"sync"
	"time"

	"go.uber.org/zap"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

// quiet is the minimum time between two log messages about failed watches of the same kind of object.
const quiet = time.Minute

// watchErrors counts and logs the errors of list and watch requests. It limits the number of log messages, because the
// requests for every kind fail every few seconds while the API server is unavailable.
type watchErrors struct {
	count func(kind string)
	log   *zap.Logger
	now   func() time.Time

	mu     sync.Mutex
	logged map[string]time.Time
}

func newWatchErrors(count func(kind string), log *zap.Logger) *watchErrors {
	if count == nil {
		count = func(string) {}
	}
	return &watchErrors{count: count, log: log, now: time.Now, logged: map[string]time.Time{}}
}

func (w *watchErrors) add(s scope, err error) {
	if routine(err) {
		w.log.Debug("a watch ended, and is started again", zap.String("kind", s.kind.Name), zap.Error(err))
		return
	}
	w.count(s.kind.Name)
	if !w.due(s.kind.Name) {
		return
	}
	w.log.Warn("cannot read "+s.kind.Resource+" "+s.where()+": "+advice(s, err),
		zap.String("kind", s.kind.Name), zap.String("namespace", s.namespace), zap.Error(err))
}

func (w *watchErrors) due(kind string) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	now := w.now()
	if last, ok := w.logged[kind]; ok && now.Sub(last) < quiet {
		return false
	}
	w.logged[kind] = now
	return true
}

// routine reports whether err is a normal end of a watch: the API server closed it, its resourceVersion is too old, or
// its context was canceled.
func routine(err error) bool {
	return errors.Is(err, io.EOF) || errors.Is(err, context.Canceled) ||
		apierrors.IsResourceExpired(err) || apierrors.IsGone(err)
}

func advice(s scope, err error) string {
	switch {
	case apierrors.IsForbidden(err):
		return "grant the controller's service account the verbs list and watch for this resource"
	case apierrors.IsUnauthorized(err):
		return "the API server rejected the controller's credentials: check its service account or kubeconfig"
	case apierrors.IsNotFound(err):
		return "the API server does not support " + s.kind.GroupVersion.String()
	default:
		return "the last known objects stay in use, and the request is retried"
	}
}
