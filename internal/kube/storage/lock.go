package storage

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	random "math/rand/v2"
	"os"
	"strings"
	"sync"
	"time"

	"go.uber.org/zap"
	coordinationv1 "k8s.io/api/coordination/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	client "k8s.io/client-go/kubernetes/typed/coordination/v1"
	"k8s.io/client-go/tools/leaderelection/resourcelock"

	kubeclient "github.com/k8singress/k8singress/internal/kube/client"
	"github.com/k8singress/k8singress/internal/process/panics"
)

// Times are the durations of a lock. Duration is how long the lock stays valid after its holder has stopped renewing
// it. Renew is the interval between renewals. Poll is the interval at which a waiting process checks whether the lock
// is free; usually the watch wakes the process earlier.
type Times struct{ Duration, Renew, Poll time.Duration }

var defaultTimes = Times{Duration: 15 * time.Second, Renew: 5 * time.Second, Poll: 3 * time.Second}

// errForeign means that a Lease has the name of a Lease of this storage but lacks the storage's label.
var errForeign = errors.New("it lacks the label " + selector)

// sweepAfter is how long a Lease without a holder is kept. It is not deleted at once, because it contains the
// resourceVersion of the previous holder's last write, which the next holder needs.
const sweepAfter = 10 * time.Minute

// Lock acquires the lock. It waits until no other goroutine or process holds the lock. If the holder has died, the lock
// is free when its Lease expires. The lock is renewed automatically until Unlock is called.
func (s *Storage) Lock(ctx context.Context, name string) error {
	err := s.awaitCopy(ctx)
	if err == nil {
		_, err = s.locks.lock(ctx, name, true)
	}
	if err != nil {
		return fmt.Errorf("waiting for the lock %s: %w", name, err)
	}
	return nil
}

// TryLock is like Lock, but returns false instead of waiting. If the holder has died, TryLock succeeds only if this
// process has watched the Lease without seeing a renewal until it expired.
func (s *Storage) TryLock(ctx context.Context, name string) (bool, error) {
	err := s.awaitCopy(ctx)
	ok := false
	if err == nil {
		ok, err = s.locks.lock(ctx, name, false)
	}
	if err != nil {
		err = fmt.Errorf("taking the lock %s: %w", name, err)
	}
	return ok, err
}

// Unlock releases a lock. It returns an error if the lock was lost in the meantime, in which case another process may
// have done the same work at the same time.
func (s *Storage) Unlock(ctx context.Context, name string) error {
	if err := s.locks.unlock(ctx, name); err != nil {
		return fmt.Errorf("releasing the lock %s: %w", name, err)
	}
	return nil
}

// RenewLockLease renews a lock. It returns an error if this process does not hold the lock any more. The duration is
// ignored: a lock is renewed automatically while it is held, and a longer duration would only make other processes wait
// longer if the holder dies.
func (s *Storage) RenewLockLease(ctx context.Context, name string, _ time.Duration) error {
	h := s.locks.find(name)
	if h == nil {
		return fmt.Errorf("renewing the lock %s: this process does not hold it", name)
	}
	if err := h.renew(ctx); err != nil {
		return fmt.Errorf("renewing the lock %s: %w", name, err)
	}
	return nil
}

// locks manages the locks of one process.
type locks struct {
	api     client.LeaseInterface
	leases  *leaseCache
	secrets *secretCache
	times   Times
	// process identifies this process. It is part of the holder identity in the Leases that this process acquires.
	process string
	log     *zap.Logger

	mu sync.Mutex
	// turns ensures that at most one goroutine of this process at a time holds a lock, or waits until other processes
	// release the lock. The key is the name of the lock. The channel is closed when the goroutine is done.
	turns map[string]chan struct{}
	held  map[string]*hold
}

func newLocks(api client.LeaseInterface, leases *leaseCache, secrets *secretCache, times Times,
	log *zap.Logger) *locks {
	if times == (Times{}) {
		times = defaultTimes
	}
	// The error is ignored, because the random part makes the identity unique even without a host name.
	host, _ := os.Hostname()
	return &locks{
		api: api, leases: leases, secrets: secrets, times: times, process: host + "_" + rand.Text(), log: log,
		turns: map[string]chan struct{}{}, held: map[string]*hold{},
	}
}

// lock acquires a lock and reports whether it succeeded. If wait is false, it returns false at once if another
// goroutine or process holds the lock.
//
// A new holder first checks whether the previous holder has already done the work. So lock returns only after the cache
// contains everything that the previous holder wrote.
func (l *locks) lock(ctx context.Context, name string, wait bool) (bool, error) {
	if ok, err := l.beginTurn(ctx, name, wait); !ok {
		return false, err
	}
	h, err := l.acquire(ctx, name, wait)
	if h == nil {
		l.endTurn(name)
		return false, err
	}
	l.mu.Lock()
	l.held[name] = h
	l.mu.Unlock()
	if err = h.catchUp(ctx); err != nil {
		return false, errors.Join(err, l.unlock(context.WithoutCancel(ctx), name))
	}
	return true, nil
}

// beginTurn waits until no other goroutine of this process uses the lock, and returns true. It returns false if the
// context ends first, or if another goroutine uses the lock and wait is false.
func (l *locks) beginTurn(ctx context.Context, name string, wait bool) (bool, error) {
	for ctx.Err() == nil {
		l.mu.Lock()
		ended, busy := l.turns[name]
		if !busy {
			l.turns[name] = make(chan struct{})
		}
		l.mu.Unlock()
		if !busy || !wait {
			return !busy, nil
		}
		select {
		case <-ended:
		case <-ctx.Done():
		}
	}
	return false, ctx.Err()
}

func (l *locks) endTurn(name string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	close(l.turns[name])
	delete(l.turns, name)
}

// find returns the hold of the lock with the given name, or nil if this process does not hold the lock.
func (l *locks) find(name string) *hold {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.held[name]
}

func (l *locks) unlock(ctx context.Context, name string) error {
	l.mu.Lock()
	h := l.held[name]
	delete(l.held, name)
	l.mu.Unlock()
	if h == nil {
		return errors.New("this process does not hold it")
	}
	defer l.endTurn(name)
	return h.end(ctx)
}

// acquire tries to acquire the lock in competition with other processes. If wait is false, it tries only once and
// returns nil if the lock is not free.
func (l *locks) acquire(ctx context.Context, name string, wait bool) (*hold, error) {
	c := l.claim(name)
	free, cancel := l.leases.whenFree(c.lease)
	defer cancel()
	for ctx.Err() == nil {
		h, left, err := c.attempt(ctx)
		final := err != nil && (errors.Is(err, errForeign) || !kubeclient.Away(err))
		if h != nil || final || !wait {
			return h, err
		}
		select {
		case <-free:
		case <-time.After(l.next(left, err)):
		case <-ctx.Done():
		}
	}
	return nil, ctx.Err()
}

// next returns the delay before the next attempt to acquire a lock. It is random, so that processes do not try at the
// same time. It is not much longer than left, the time until the Lease of the holder expires.
func (l *locks) next(left time.Duration, err error) time.Duration {
	switch poll := l.times.Poll; {
	case err != nil:
		return poll + random.N(poll)
	case left == 0:
		return random.N(poll / 10)
	default:
		return min(poll, left) + random.N(poll/4)
	}
}

// claim is the attempt of one goroutine to acquire a lock.
type claim struct {
	*locks
	name string
	// lease is the name of the Lease. exists is false if the Lease is not known to exist.
	lease  string
	exists bool
	// identity is the holder identity in the Lease. It is different for each claim, so that a Lease that a request of
	// an earlier claim has acquired is not mistaken for a Lease of this claim.
	identity string
}

func (l *locks) claim(name string) *claim {
	lease := nameOf("lock", name, name)
	return &claim{locks: l, name: name, lease: lease, exists: l.leases.has(lease),
		identity: l.process + "_" + rand.Text()}
}

// attempt tries once to acquire the lock. If the lock is not free, it returns a nil hold and the time until the
// holder's Lease expires.
func (c *claim) attempt(ctx context.Context) (*hold, time.Duration, error) {
	begun := time.Now()
	found, err := c.read(ctx)
	if err != nil {
		return nil, 0, err
	}
	// If the holder is our identity, an earlier request of this claim has created the Lease, but its response was lost.
	// The Lease may have expired since, so acquire it again like any other Lease.
	if left := c.leases.remaining(found); left > 0 && holderOf(found) != c.identity {
		return nil, left, nil
	}
	lease, err := c.take(ctx, found)
	switch {
	case err == nil:
		return c.hold(ctx, lease, begun), 0, nil
	case apierrors.IsAlreadyExists(err) && !c.exists:
		c.exists = true
		return c.attempt(ctx)
	case c.exists && (apierrors.IsConflict(err) || apierrors.IsNotFound(err)):
		return nil, 0, nil
	case ctx.Err() != nil:
		panics.Go("kubestorage/undo", func() { c.undo(context.WithoutCancel(ctx)) })
	}
	return nil, 0, err
}

// read returns the current Lease from the API server. If the Lease does not exist, it returns a new one.
func (c *claim) read(ctx context.Context) (*coordinationv1.Lease, error) {
	fresh := &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{
		Name: c.lease, Labels: map[string]string{Label: LabelValue},
		Annotations: map[string]string{lockAnnotation: strings.ToValidUTF8(c.name[:min(len(c.name), longestKey)], "")},
	}}
	if !c.exists {
		return fresh, nil
	}
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	found, err := c.api.Get(ctx, c.lease, metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(err):
		c.exists = false
		return fresh, nil
	case err == nil && found.Labels[Label] != LabelValue:
		return nil, fmt.Errorf("the Lease %s/%s does not belong to this storage: delete it: %w",
			found.Namespace, found.Name, errForeign)
	}
	return found, err
}

// take creates the Lease, or acquires a Lease that is free. It returns an error if another process has created or
// acquired it in the meantime.
func (c *claim) take(ctx context.Context, found *coordinationv1.Lease) (*coordinationv1.Lease, error) {
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	next := c.taken(found)
	if !c.exists {
		return c.api.Create(ctx, next, metav1.CreateOptions{})
	}
	lease, err := c.api.Update(ctx, next, metav1.UpdateOptions{})
	if holder := holderOf(found); err == nil && holder != "" && holder != c.identity {
		c.log.Info("took over a lock that its holder had not renewed", zap.String("lock", c.name),
			zap.String("holder", holder))
	}
	return lease, err
}

// taken returns a copy of a Lease in which this claim is the holder.
func (c *claim) taken(found *coordinationv1.Lease) *coordinationv1.Lease {
	now, lease := metav1.Now(), found.DeepCopy()
	lease.Spec = resourcelock.LeaderElectionRecordToLeaseSpec(&resourcelock.LeaderElectionRecord{
		HolderIdentity: c.identity, LeaseDurationSeconds: int((c.times.Duration + time.Second - 1) / time.Second),
		AcquireTime: now, RenewTime: now, LeaderTransitions: recordOf(found).LeaderTransitions + 1,
	})
	return lease
}

// undo deletes the Lease if this claim holds it. It is called after a request was canceled, which may have created the
// Lease nevertheless.
func (c *claim) undo(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	lease, err := c.api.Get(ctx, c.lease, metav1.GetOptions{})
	if err == nil && holderOf(lease) == c.identity {
		_ = c.api.Delete(ctx, lease.Name, exactly(lease))
	}
}

// sweep deletes Leases that have been released or expired for at least sweepAfter. It uses a separate client, so that
// its requests do not delay the renewal of held locks.
func (l *locks) sweep(ctx context.Context, api client.LeaseInterface) {
	// All replicas sweep, at random times, so that usually only one of them deletes a Lease.
	for kubeclient.Pause(ctx, sweepAfter/2+random.N(sweepAfter)) == nil {
		for _, lease := range l.leases.expired(sweepAfter) {
			err := api.Delete(ctx, lease.Name, exactly(lease))
			if err == nil {
				l.log.Debug("deleted the Lease of a lock without a holder", zap.String("lease", lease.Name))
			}
			if err == nil || apierrors.IsNotFound(err) {
				l.leases.OnDelete(lease)
			}
		}
	}
}
