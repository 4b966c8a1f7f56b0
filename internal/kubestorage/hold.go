package kubestorage

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
)

// errLost says that somebody else has, or had, a lock that was held here.
var errLost = errors.New("it was lost: its Lease could not be renewed in time, and others may have had the lock meanwhile")

// hold is a lock that is held. Its Lease is renewed in the background.
type hold struct {
	*claim
	// stop ends the renewal, and done is closed when it has ended.
	stop context.CancelFunc
	done chan struct{}

	mu sync.Mutex
	// lease is its newest state, and renewed when it was asked for.
	lease   *coordinationv1.Lease
	renewed time.Time
	overdue bool
	lost    bool
}

func (c *claim) hold(lease *coordinationv1.Lease, begun time.Time) *hold {
	return &hold{claim: c, lease: lease, renewed: begun, done: make(chan struct{})}
}

// start renews the Lease until end, whatever becomes of the context.
func (h *hold) start(ctx context.Context) {
	ctx, h.stop = context.WithCancel(context.WithoutCancel(ctx))
	go func() {
		defer close(h.done)
		h.keep(ctx)
	}()
}

func (h *hold) keep(ctx context.Context) {
	next := h.times.Renew
	for pause(ctx, next) == nil {
		next = h.times.Renew
		err := h.renew(ctx)
		if errors.Is(err, errLost) {
			h.log.Error("a lock was lost: what is done under it is not done alone", zap.String("lock", h.name))
			return
		}
		if err != nil {
			next = h.times.Renew / 5
		}
	}
}

// renew says that the lock is still held. As long as nobody else took it, it is not lost, however late that is.
func (h *hold) renew(ctx context.Context) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.lost {
		return errLost
	}
	ctx, cancel := context.WithTimeout(ctx, h.times.Renew)
	defer cancel()
	err := h.update(ctx)
	if apierrors.IsConflict(err) || apierrors.IsNotFound(err) {
		// An update of ours whose answer was lost, somebody who put a label on it, or somebody who took it.
		if err = h.refresh(ctx); err == nil {
			err = h.update(ctx)
		}
	}
	if err != nil {
		h.late(err)
	}
	return err
}

func (h *hold) update(ctx context.Context) error {
	begun := time.Now()
	next := h.lease.DeepCopy()
	now := metav1.NowMicro()
	next.Spec.RenewTime = &now
	lease, err := h.api.Update(ctx, next, metav1.UpdateOptions{})
	if err == nil {
		h.lease, h.renewed, h.overdue = lease, begun, false
	}
	return err
}

// late warns once.
func (h *hold) late(err error) {
	if !h.overdue && time.Since(h.renewed) > h.times.Duration {
		h.overdue = true
		h.log.Warn("a lock could not be renewed, and others may take it", zap.String("lock", h.name), zap.Error(err))
	}
}

// refresh asks who has the Lease now.
func (h *hold) refresh(ctx context.Context) error {
	lease, err := h.api.Get(ctx, h.lease.Name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		h.lost = true
		return errLost
	}
	if err != nil {
		return err
	}
	h.lease = lease
	if holderOf(lease) != h.identity() {
		h.lost = true
		return errLost
	}
	return nil
}

// catchUp waits until the index has what was written under the lock before. Without the news it is an error: rather no
// certificate now than one more for the same host.
func (h *hold) catchUp(ctx context.Context) error {
	h.mu.Lock()
	written := h.lease.Annotations[writtenAnnotation]
	h.mu.Unlock()
	if written == "" {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	if err := h.index.await(ctx, written); err != nil {
		return fmt.Errorf("waiting for what was written under it before: %w", err)
	}
	return nil
}

// end stops the renewal and gives the Lease back. It stays for a while, for the next holder to know what was written.
func (h *hold) end(ctx context.Context) error {
	h.stop()
	<-h.done
	h.mu.Lock()
	defer h.mu.Unlock()
	ctx, cancel := context.WithTimeout(ctx, h.times.Duration)
	defer cancel()
	for !h.lost {
		err := h.release(ctx)
		if err == nil {
			return nil
		}
		if !apierrors.IsConflict(err) && !apierrors.IsNotFound(err) {
			return fmt.Errorf("it runs out by itself after %v: %w", h.times.Duration, err)
		}
		err = h.refresh(ctx)
		if h.lease.Annotations[releasedAnnotation] == h.identity() {
			// The answer to an earlier request was lost.
			return nil
		}
		if err != nil {
			return err
		}
	}
	return errLost
}

func (h *hold) identity() string { return holderOf(h.claim.lease) }

func (h *hold) release(ctx context.Context) error {
	next := h.lease.DeepCopy()
	now := metav1.NowMicro()
	next.Spec.HolderIdentity, next.Spec.RenewTime = nil, &now
	if written := h.index.written(); written != "" && !newer(next.Annotations[writtenAnnotation], written) {
		next.Annotations[writtenAnnotation] = written
	}
	next.Annotations[releasedAnnotation] = h.identity()
	_, err := ask(ctx, func(ctx context.Context) (*coordinationv1.Lease, error) {
		return h.api.Update(ctx, next, metav1.UpdateOptions{})
	})
	return err
}
