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

// Times are the durations of a lock: how long it stays valid if its holder stops renewing it, how often the holder
// renews it, and how often a waiting process checks whether it is free. The watch usually wakes a waiting process
// earlier.
type Times struct{ Duration, Renew, Poll time.Duration }

var defaultTimes = Times{Duration: 15 * time.Second, Renew: 5 * time.Second, Poll: 3 * time.Second}

// errForeign means that an object with the name of a Lease of the storage does not belong to the storage.
var errForeign = errors.New("it lacks the label " + selector)

// sweepAfter is how long a Lease without a holder is kept. The Lease contains the version of the last write under the
// lock.
const sweepAfter = 10 * time.Minute

// Lock waits until the lock is free in this and all other processes, and acquires it. A lock whose holder has died is
// free when its Lease has expired. The lock is renewed until Unlock.
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

// TryLock is like Lock, but returns false instead of waiting. It acquires a dead holder's lock only if this process has
// observed for long enough that the lock was not renewed.
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

// Unlock releases a lock. It returns an error if the lock was lost in the meantime, because another process may have
// worked under the same lock at the same time.
func (s *Storage) Unlock(ctx context.Context, name string) error {
	if err := s.locks.unlock(ctx, name); err != nil {
		return fmt.Errorf("releasing the lock %s: %w", name, err)
	}
	return nil
}

// RenewLockLease renews a lock. It returns an error if this process does not hold the lock any more. It ignores the
// duration: a lock is renewed automatically while it is held, and if its holder dies, others do not have to wait for a
// long duration.
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
	// process is a part of the identities of all holds of this process.
	process string
	log     *zap.Logger

	mu sync.Mutex
	// turns ensures that only one goroutine of this process at a time competes for a lock or holds it. The channel is
	// closed when the turn of the goroutine ends.
	turns map[string]chan struct{}
	held  map[string]*hold
}

func newLocks(api client.LeaseInterface, leases *leaseCache, secrets *secretCache, times Times,
	log *zap.Logger) *locks {
	if times == (Times{}) {
		times = defaultTimes
	}
	// An error is ignored, because the identity is unique even without a host name.
	host, _ := os.Hostname()
	return &locks{
		api: api, leases: leases, secrets: secrets, times: times, process: host + "_" + rand.Text(), log: log,
		turns: map[string]chan struct{}{}, held: map[string]*hold{},
	}
}

// lock reports whether it has acquired the lock. Without wait, it returns false if another goroutine or process holds
// the lock.
//
// A new holder first checks whether the previous holder has already done the work. Therefore lock returns only when the
// cache contains the writes of the previous holder.
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

// beginTurn waits until no other goroutine of this process uses the lock. It returns false if another goroutine does
// and wait is false, or if the context ends.
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

// find returns the hold of a lock, or nil.
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

// acquire competes with other processes for the lock. Without wait, it tries only once.
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

// next returns the time until the next attempt. It is random, so that processes do not try at the same time, and not
// much longer than the remaining validity of the Lease.
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
	// lease is the name of the Lease. exists is set if the Lease probably exists.
	lease  string
	exists bool
	// identity is unique for this claim, so that a Lease that an earlier request has acquired is not mistaken for this
	// claim's.
	identity string
}

func (l *locks) claim(name string) *claim {
	lease := nameOf("lock", name, name)
	return &claim{locks: l, name: name, lease: lease, exists: l.leases.has(lease),
		identity: l.process + "_" + rand.Text()}
}

// attempt returns a hold if it acquires the lock. Otherwise it returns the time until another process's Lease expires.
func (c *claim) attempt(ctx context.Context) (*hold, time.Duration, error) {
	begun := time.Now()
	found, err := c.read(ctx)
	if err != nil {
		return nil, 0, err
	}
	// The Lease may have our identity, if it was created but the response was lost. It may have expired since, so it is
	// taken again like any other Lease.
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

// read returns the current Lease, or a new Lease if none exists.
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

// take creates the Lease, or acquires a free one. It returns an error if another process was faster.
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

// taken returns a copy of a Lease with this claim as the holder.
func (c *claim) taken(found *coordinationv1.Lease) *coordinationv1.Lease {
	now, lease := metav1.Now(), found.DeepCopy()
	lease.Spec = resourcelock.LeaderElectionRecordToLeaseSpec(&resourcelock.LeaderElectionRecord{
		HolderIdentity: c.identity, LeaseDurationSeconds: int((c.times.Duration + time.Second - 1) / time.Second),
		AcquireTime: now, RenewTime: now, LeaderTransitions: recordOf(found).LeaderTransitions + 1,
	})
	return lease
}

// undo deletes the Lease that a canceled request may have created.
func (c *claim) undo(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	lease, err := c.api.Get(ctx, c.lease, metav1.GetOptions{})
	if err == nil && holderOf(lease) == c.identity {
		_ = c.api.Delete(ctx, lease.Name, exactly(lease))
	}
}

// sweep deletes Leases some time after they were released or have expired. It uses its own client, so that held locks
// do not wait for it.
func (l *locks) sweep(ctx context.Context, api client.LeaseInterface) {
	// All replicas sweep at random times. Each Lease has to be deleted only once.
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
