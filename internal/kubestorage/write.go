package kubestorage

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/k8singress/k8singress/internal/kubeclient"
)

const (
	// attempts is how often a write is tried again because somebody else wrote the same Secret.
	attempts = 20
	// outage is how long a write waits for an API server that is away: what has been issued must not be lost to a restart
	// of it.
	outage = time.Minute
	// answerTime is how long one request may take.
	answerTime = 10 * time.Second
)

// Store writes a value. The next Load here has it; those of other processes have it when the API server has told them.
func (s *Storage) Store(ctx context.Context, key string, value []byte) error {
	clean, err := cleanFile(key)
	if err == nil {
		p := placeOf(clean)
		value = append([]byte{}, value...)
		err = s.change(ctx, p.secret, s.index.record(p.secret), func(current *corev1.Secret) (*corev1.Secret, error) {
			return p.with(current, value)
		})
	}
	if err != nil {
		return fmt.Errorf("storing %s: %w", key, err)
	}
	return nil
}

// Delete removes a value, and all that is below the key. It is no error if there is nothing.
func (s *Storage) Delete(ctx context.Context, key string) error {
	clean, err := cleanFile(key)
	if err == nil {
		err = s.ready(ctx)
	}
	if err != nil {
		return fmt.Errorf("deleting %s: %w", key, err)
	}
	for _, group := range s.affected(clean) {
		if err := s.remove(ctx, group.secret, group.fields); err != nil {
			return fmt.Errorf("deleting %s: %w", key, err)
		}
	}
	return nil
}

// group are the fields of one Secret.
type group struct {
	secret string
	fields []string
}

// affected returns the fields of a key and of all below it. The key's own is among them even if it is not known.
func (s *Storage) affected(key string) []group {
	var groups []group
	at := map[string]int{}
	add := func(key string) string {
		p := placeOf(key)
		i, ok := at[p.secret]
		if !ok {
			i = len(groups)
			at[p.secret] = i
			groups = append(groups, group{secret: p.secret})
		}
		groups[i].fields = append(groups[i].fields, p.field)
		return ""
	}
	add(key)
	s.index.below(key, add)
	return groups
}

func (s *Storage) remove(ctx context.Context, name string, fields []string) error {
	current := s.index.record(name)
	if current == nil {
		// Another process may have written it a moment ago.
		var err error
		if current, err = s.look(ctx, name); err != nil {
			return err
		}
	}
	return s.change(ctx, name, current, func(current *corev1.Secret) (*corev1.Secret, error) {
		return without(current, fields), nil
	})
}

// change brings a Secret into another state: edit makes it from the current one, and nil is a Secret that is not there.
// Edit is called again if the Secret turns out to be in yet another state.
func (s *Storage) change(ctx context.Context, name string, current *record, edit func(*corev1.Secret) (*corev1.Secret, error)) error {
	for attempt := range attempts {
		var from *corev1.Secret
		if current != nil {
			from = current.secret
		}
		to, err := edit(from)
		if err != nil || from == nil && to == nil {
			return err
		}
		err = s.write(ctx, current, to)
		if err == nil || !contested(err) {
			return err
		}
		if current, err = s.look(ctx, name); err != nil {
			return err
		}
		if err := pause(ctx, rand.N(time.Duration(attempt+1)*10*time.Millisecond)); err != nil {
			return err
		}
	}
	return fmt.Errorf("the Secret %s/%s was changed by others %d times meanwhile", s.namespace, name, attempts)
}

// contested says that a Secret is not in the state that a write was made for.
func contested(err error) bool {
	var status apierrors.APIStatus
	if apierrors.IsNotFound(err) && errors.As(err, &status) {
		// Otherwise it is the namespace that is missing.
		details := status.Status().Details
		return details != nil && details.Kind == "secrets"
	}
	return apierrors.IsConflict(err) || apierrors.IsAlreadyExists(err)
}

// write asks the API server to replace one state by another, and remembers the answer.
func (s *Storage) write(ctx context.Context, current *record, to *corev1.Secret) error {
	switch {
	case to == nil:
		return s.delete(ctx, current)
	case current == nil:
		return s.save(ctx, func(ctx context.Context) (*corev1.Secret, error) {
			return s.api.Create(ctx, to, metav1.CreateOptions{})
		})
	}
	return s.save(ctx, func(ctx context.Context) (*corev1.Secret, error) {
		return s.api.Update(ctx, to, metav1.UpdateOptions{})
	})
}

func (s *Storage) save(ctx context.Context, request func(context.Context) (*corev1.Secret, error)) error {
	saved, err := ask(ctx, request)
	if err != nil {
		return err
	}
	r, err := readRecord(saved)
	if err == nil {
		s.index.write(r)
	}
	return err
}

func (s *Storage) delete(ctx context.Context, current *record) error {
	options := metav1.DeleteOptions{Preconditions: &metav1.Preconditions{
		UID: &current.secret.UID, ResourceVersion: &current.secret.ResourceVersion,
	}}
	_, err := ask(ctx, func(ctx context.Context) (struct{}, error) {
		return struct{}{}, s.api.Delete(ctx, current.secret.Name, options)
	})
	if err == nil {
		s.index.forget(current)
	}
	return err
}

// look asks the API server for the state of a Secret. Without an error and a record, there is no such Secret.
func (s *Storage) look(ctx context.Context, name string) (*record, error) {
	known := s.index.record(name)
	secret, err := ask(ctx, func(ctx context.Context) (*corev1.Secret, error) {
		return s.api.Get(ctx, name, metav1.GetOptions{})
	})
	r, err := s.found(secret, err)
	if err == nil && r == nil && known != nil {
		s.index.forget(known)
	}
	return r, err
}

func (s *Storage) found(secret *corev1.Secret, err error) (*record, error) {
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	r, err := readRecord(secret)
	if err == nil {
		s.index.learn(r)
	}
	return r, err
}

// ask waits for an API server that is away, though not for ever.
func ask[T any](ctx context.Context, request func(context.Context) (T, error)) (T, error) {
	ctx, cancel := context.WithTimeout(ctx, outage)
	defer cancel()
	return kubeclient.Persist(ctx, func(error) {}, func() (T, error) {
		ctx, cancel := context.WithTimeout(ctx, answerTime)
		defer cancel()
		return request(ctx)
	})
}

// pause returns early, with an error, if the context ends.
func pause(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
