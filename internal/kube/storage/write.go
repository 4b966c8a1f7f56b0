package storage

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	kubeclient "github.com/k8singress/k8singress/internal/kube/client"
)

const (
	// attempts is how often a write of a Secret is tried if other processes write the same Secret at the same time.
	attempts = 20
	// retryTimeout is how long a write is retried while the API server is unavailable. For example, a certificate that
	// was just issued must not be lost because the API server restarts.
	retryTimeout = time.Minute
	// requestTimeout is the time limit for one request to the API server.
	requestTimeout = 10 * time.Second
)

// Store writes the value of a key. Afterwards, Load returns the value in this process, and in other processes as soon
// as their watch has reported the write.
func (s *Storage) Store(ctx context.Context, key string, value []byte) error {
	clean, err := cleanFile(key)
	if err == nil {
		p := placeOf(clean)
		value = append([]byte{}, value...)
		err = s.change(ctx, p.secret, func(current *corev1.Secret) (*corev1.Secret, error) {
			return p.with(current, value)
		})
	}
	if err != nil {
		return fmt.Errorf("storing %s: %w", key, err)
	}
	return nil
}

// Delete removes the values of a key and of all keys below it. It returns no error if there is no value.
func (s *Storage) Delete(ctx context.Context, key string) error {
	clean, err := cleanFile(key)
	if err == nil {
		err = s.ready(ctx)
	}
	if err == nil {
		err = s.remove(ctx, clean)
	}
	if err != nil {
		return fmt.Errorf("deleting %s: %w", key, err)
	}
	return nil
}

// remove removes the values of a key and of all keys below it from their Secrets. It also looks for the Secret of the
// key itself if the Secret is not in the cache.
func (s *Storage) remove(ctx context.Context, key string) error {
	names := []string{placeOf(key).secret}
	for _, secret := range s.secrets.within(key) {
		names = append(names, secret.Name)
	}
	for _, name := range names {
		err := s.change(ctx, name, func(current *corev1.Secret) (*corev1.Secret, error) {
			return without(current, key), nil
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// change modifies a Secret. edit gets the current state and returns the new one; nil means that the Secret does not
// exist. edit is called again after a conflict. If edit changes nothing in the cached state, it is called again with
// the state from the API server, because another process may have just written the Secret.
func (s *Storage) change(ctx context.Context, name string, edit func(*corev1.Secret) (*corev1.Secret, error)) error {
	current := s.secrets.get(name)
	for attempt := range attempts {
		to, err := edit(current)
		if err != nil || to == current && attempt > 0 {
			return err
		}
		if to != current {
			if err = s.write(ctx, current, to); err == nil || !contested(err) {
				return err
			}
			if err = kubeclient.Pause(ctx, rand.N(time.Duration(attempt+1)*10*time.Millisecond)); err != nil {
				return err
			}
		}
		if current, err = s.fetch(ctx, name); err != nil {
			return err
		}
	}
	return fmt.Errorf("gave up after %d conflicts with other writers of the Secret %s/%s", attempts, s.namespace, name)
}

// contested reports whether a write failed because another process has changed, created or deleted the Secret in the
// meantime.
func contested(err error) bool {
	var status apierrors.APIStatus
	if apierrors.IsNotFound(err) && errors.As(err, &status) {
		// Retry only if the Secret was not found. If the namespace was not found, another attempt would also fail.
		details := status.Status().Details
		return details != nil && details.Kind == "secrets"
	}
	return apierrors.IsConflict(err) || apierrors.IsAlreadyExists(err)
}

// write creates, updates or deletes a Secret. current is the state of the Secret before the write, and the parameter to
// is the state after it; nil means that the Secret does not exist. write also stores the response in the cache.
func (s *Storage) write(ctx context.Context, current, to *corev1.Secret) error {
	saved, err := withRetry(ctx, func(ctx context.Context) (*corev1.Secret, error) {
		switch {
		case to == nil:
			return nil, s.api.Delete(ctx, current.Name, exactly(current))
		case current == nil:
			return s.api.Create(ctx, to, metav1.CreateOptions{})
		}
		return s.api.Update(ctx, to, metav1.UpdateOptions{})
	})
	switch {
	case err != nil:
		return err
	case to == nil:
		s.secrets.onGone(current)
		return nil
	}
	return s.secrets.onWrite(saved)
}

// fetch requests a Secret from the API server. It returns nil if the Secret does not exist.
func (s *Storage) fetch(ctx context.Context, name string) (*corev1.Secret, error) {
	known := s.secrets.get(name)
	secret, err := withRetry(ctx, func(ctx context.Context) (*corev1.Secret, error) {
		return s.api.Get(ctx, name, metav1.GetOptions{})
	})
	if apierrors.IsNotFound(err) {
		if known != nil {
			s.secrets.onGone(known)
		}
		return nil, nil
	}
	if err == nil {
		err = s.secrets.onRead(secret)
	}
	if err != nil {
		return nil, err
	}
	return secret, nil
}

// withRetry sends a request, and retries it while the API server is unavailable, for at most retryTimeout.
func withRetry[T any](ctx context.Context, request func(context.Context) (T, error)) (T, error) {
	ctx, cancel := context.WithTimeout(ctx, retryTimeout)
	defer cancel()
	return kubeclient.Persist(ctx, func(error) {}, func() (T, error) {
		ctx, cancel := context.WithTimeout(ctx, requestTimeout)
		defer cancel()
		return request(ctx)
	})
}
