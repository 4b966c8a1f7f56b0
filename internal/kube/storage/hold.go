package storage

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"go.uber.org/zap"
	coordinationv1 "k8s.io/api/coordination/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	kubeclient "github.com/k8singress/k8singress/internal/kube/client"
	"github.com/k8singress/k8singress/internal/process/panics"
)

// errLost means that this process has lost a lock: the Lease has expired, and another process may have held the lock.
var errLost = errors.New(
	"the Lease of the lock was not renewed in time, so another process may have held the lock in the meantime")

// hold is a lock that this process holds. A goroutine renews its Lease.
type hold struct {
	*claim
	// stop ends the goroutine that renews the Lease, and renewal waits for its end.
	stop    context.CancelFunc
	renewal panics.Group

	mu sync.Mutex
	// lease is the newest state of the Lease. renewed is the time when the last successful renewal was sent.
	lease   *coordinationv1.Lease
	renewed time.Time
	overdue bool
	lost    bool
}

// hold starts a goroutine that renews the Lease until end is called. The goroutine continues when ctx ends.
func (c *claim) hold(ctx context.Context, lease *coordinationv1.Lease, renewed time.Time) *hold {
	h := &hold{claim: c, lease: lease, renewed: renewed}
	ctx, h.stop = context.WithCancel(context.WithoutCancel(ctx))
	h.renewal.Go("kubestorage/renewal", func() { h.keep(ctx) })
	return h
}

func (h *hold) keep(ctx context.Context) {
	next := h.times.Renew
	for kubeclient.Pause(ctx, next) == nil {
		next = h.times.Renew
		err := h.renew(ctx)
		if errors.Is(err, errLost) {
			h.log.Error("lost a lock: another process may do the same work at the same time",
				zap.String("lock", h.name))
			return
		}
		if err != nil {
			next = h.times.Renew / 5
		}
	}
}

// renew renews the Lease. It succeeds even after the Lease has expired, if no other process has acquired the lock.
func (h *hold) renew(ctx context.Context) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	ctx, cancel := context.WithTimeout(ctx, h.times.Renew)
	defer cancel()
	begun := time.Now()
	err := h.update(ctx, func(*coordinationv1.Lease) {})
	if err == nil {
		h.renewed, h.overdue = begun, false
	} else if !h.lost && !h.overdue && time.Since(h.renewed) > h.times.Duration {
		h.overdue = true
		h.log.Warn("cannot renew a lock in time: another process may take it over",
			zap.String("lock", h.name), zap.Error(err))
	}
	return err
}

// update changes the Lease. It returns an error if the lock is lost. A conflict does not mean that the lock is lost:
// the response to an earlier update may have been lost, or a user may have changed the labels of the Lease. So after a
// conflict, update reads the Lease, and retries if this process still holds the lock.
func (h *hold) update(ctx context.Context, edit func(*coordinationv1.Lease)) error {
	for !h.lost {
		next, now := h.lease.DeepCopy(), metav1.NowMicro()
		next.Spec.RenewTime = &now
		edit(next)
		lease, err := h.api.Update(ctx, next, metav1.UpdateOptions{})
		if err == nil {
			h.lease = lease
			return nil
		}
		if !apierrors.IsConflict(err) && !apierrors.IsNotFound(err) {
			return err
		}
		lease, err = h.api.Get(ctx, h.lease.Name, metav1.GetOptions{})
		switch {
		case apierrors.IsNotFound(err):
			h.lost = true
		case err != nil:
			return err
		default:
			h.lease, h.lost = lease, holderOf(lease) != h.identity
		}
	}
	return errLost
}

// catchUp waits until the cache contains everything that the previous holder wrote while it held the lock. It returns
// an error if this takes too long. Without these writes, this process might order a certificate that the previous
// holder has already obtained.
func (h *hold) catchUp(ctx context.Context) error {
	h.mu.Lock()
	written := h.lease.Annotations[writtenAnnotation]
	h.mu.Unlock()
	if written == "" {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, syncTimeout)
	defer cancel()
	if err := h.secrets.await(ctx, written); err != nil {
		return fmt.Errorf("waiting for the changes of the previous holder: %w", err)
	}
	return nil
}

// end stops the renewal and releases the Lease. The Lease is not deleted at once, because it tells the next holder the
// resourceVersion of the last write.
func (h *hold) end(ctx context.Context) error {
	h.stop()
	h.renewal.Wait()
	h.mu.Lock()
	defer h.mu.Unlock()
	ctx, cancel := context.WithTimeout(ctx, h.times.Duration)
	defer cancel()
	_, err := withRetry(ctx, func(ctx context.Context) (struct{}, error) {
		err := h.update(ctx, h.release)
		if h.lost {
			// The lock is lost, so retrying is useless.
			err = nil
		}
		return struct{}{}, err
	})
	switch {
	case err != nil:
		return fmt.Errorf("its Lease expires after %v: %w", h.times.Duration, err)
	case h.lost && h.lease.Annotations[releasedAnnotation] != h.identity:
		return errLost
	}
	// The Lease is already released, perhaps by an earlier request whose response was lost.
	return nil
}

func (h *hold) release(lease *coordinationv1.Lease) {
	lease.Spec.HolderIdentity = nil
	if written := h.secrets.lastWritten(); written != "" && !newer(lease.Annotations[writtenAnnotation], written) {
		lease.Annotations[writtenAnnotation] = written
	}
	lease.Annotations[releasedAnnotation] = h.identity
}
