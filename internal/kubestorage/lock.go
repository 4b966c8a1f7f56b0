package kubestorage

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

	"github.com/k8singress/k8singress/internal/kubeclient"
)

// Times are those of a lock: how long it is good when its holder renews it no more, how often the holder does, and how often
// those who wait ask whether it is free. They are woken up earlier by the watch, if it works.
type Times struct{ Duration, Renew, Poll time.Duration }

var usual = Times{Duration: 15 * time.Second, Renew: 5 * time.Second, Poll: 3 * time.Second}

// errForeign says that an object has a name that only ours have, and is not ours.
var errForeign = errors.New("it has not the label " + selector)

// swept is how long a Lease stays that nobody holds. Until then it says what was written under the lock.
const swept = 10 * time.Minute

// Lock waits until nobody holds the lock, here or in another process. A lock whose holder has died is free when it has run
// out. It is renewed until Unlock.
func (s *Storage) Lock(ctx context.Context, name string) error {
	if err := s.locks.lock(ctx, name); err != nil {
		return fmt.Errorf("waiting for the lock %s: %w", name, err)
	}
	return nil
}

// TryLock is Lock that gives up in place of waiting. A lock whose holder has died is free only if this process has seen
// for long enough that it is not renewed.
func (s *Storage) TryLock(ctx context.Context, name string) (bool, error) {
	ok, err := s.locks.tryLock(ctx, name)
	if err != nil {
		err = fmt.Errorf("taking the lock %s: %w", name, err)
	}
	return ok, err
}

// Unlock gives a lock back. It is an error if the lock was lost meanwhile, and others may have had it: then what was done
// under it was not done alone.
func (s *Storage) Unlock(ctx context.Context, name string) error {
	if err := s.locks.unlock(ctx, name); err != nil {
		return fmt.Errorf("releasing the lock %s: %w", name, err)
	}
	return nil
}

// RenewLockLease is an error if the lock is not held any more. The duration does not matter: a lock is renewed as long as it
// is held, and when its holder dies, others need not wait until a long duration has passed.
func (s *Storage) RenewLockLease(ctx context.Context, name string, _ time.Duration) error {
	h := s.locks.find(name)
	if h == nil {
		return fmt.Errorf("renewing the lock %s: it is not held", name)
	}
	if err := h.renew(ctx); err != nil {
		return fmt.Errorf("renewing the lock %s: %w", name, err)
	}
	return nil
}

// locks are those of one process.
type locks struct {
	api   client.LeaseInterface
	table *table
	index *index
	times Times
	// process is in the identities of all holds of this process.
	process string
	log     *zap.Logger

	mu sync.Mutex
	// queues let one goroutine at a time compete with other processes.
	queues map[string]*queue
	held   map[string]*hold
}

type queue struct {
	turn  chan struct{}
	users int
}

// newLocks leaves index for the caller to set.
func newLocks(api client.LeaseInterface, t *table, times Times, log *zap.Logger) *locks {
	if times == (Times{}) {
		times = usual
	}
	host, err := os.Hostname()
	if err != nil {
		host = "unknown"
	}
	return &locks{
		api: api, table: t, times: times, process: host + "_" + rand.Text(), log: log,
		queues: map[string]*queue{}, held: map[string]*hold{},
	}
}

func (l *locks) lock(ctx context.Context, name string) error {
	q := l.join(name)
	select {
	case q.turn <- struct{}{}:
	case <-ctx.Done():
		l.leave(name)
		return ctx.Err()
	}
	h, err := l.acquire(ctx, name)
	return l.took(ctx, name, h, err)
}

func (l *locks) tryLock(ctx context.Context, name string) (bool, error) {
	if ctx.Err() != nil {
		return false, ctx.Err()
	}
	q := l.join(name)
	select {
	case q.turn <- struct{}{}:
	default:
		l.leave(name)
		return false, nil
	}
	h, _, err := l.claim(name).attempt(ctx)
	err = l.took(ctx, name, h, err)
	return h != nil && err == nil, err
}

func (l *locks) join(name string) *queue {
	l.mu.Lock()
	defer l.mu.Unlock()
	q := l.queues[name]
	if q == nil {
		q = &queue{turn: make(chan struct{}, 1)}
		l.queues[name] = q
	}
	q.users++
	return q
}

func (l *locks) leave(name string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	q := l.queues[name]
	if q.users--; q.users == 0 {
		delete(l.queues, name)
	}
}

// took ends an attempt. The turn stays taken while the lock is held.
//
// Who gets a lock looks first what was done under it before: it must not do that again. So the news of what the holder
// before wrote are waited for.
func (l *locks) took(ctx context.Context, name string, h *hold, err error) error {
	if h == nil {
		l.pass(name)
		return err
	}
	h.start(ctx)
	l.mu.Lock()
	l.held[name] = h
	l.mu.Unlock()
	err = h.catchUp(ctx)
	if err == nil {
		return nil
	}
	return errors.Join(err, l.unlock(context.WithoutCancel(ctx), name))
}

func (l *locks) pass(name string) {
	l.mu.Lock()
	q := l.queues[name]
	l.mu.Unlock()
	<-q.turn
	l.leave(name)
}

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
		return errors.New("it is not held")
	}
	defer l.pass(name)
	return h.end(ctx)
}

// acquire competes with other processes until it wins.
func (l *locks) acquire(ctx context.Context, name string) (*hold, error) {
	c := l.claim(name)
	gone, cancel := l.table.wait(c.lease.Name)
	defer cancel()
	for {
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		h, left, err := c.attempt(ctx)
		if h != nil {
			return h, nil
		}
		if err != nil && (ctx.Err() != nil || errors.Is(err, errForeign) || !kubeclient.Away(err)) {
			return nil, err
		}
		// Not all at the same time, and not much later than the Lease runs out.
		poll := min(l.times.Poll, left) + random.N(l.times.Poll/4)
		if left == 0 {
			poll = random.N(l.times.Poll / 10)
		}
		if err != nil {
			poll = l.times.Poll + random.N(l.times.Poll)
		}
		timer := time.NewTimer(poll)
		select {
		case <-gone:
		case <-timer.C:
		case <-ctx.Done():
		}
		timer.Stop()
	}
}

// claim is the wish for a lock.
type claim struct {
	*locks
	name string
	// lease is what it would be.
	lease *coordinationv1.Lease
	// contended says that a Lease is probably there.
	contended bool
}

// claim has an identity of its own, so that no answer of the API server to an earlier request can be mistaken for one to
// this.
func (l *locks) claim(name string) *claim {
	identity := l.process + "_" + rand.Text()
	seconds := int32((l.times.Duration + time.Second - 1) / time.Second)
	lease := nameOf("lock", name, name)
	return &claim{locks: l, name: name, contended: l.table.listed(lease), lease: &coordinationv1.Lease{
		ObjectMeta: metav1.ObjectMeta{
			Name: lease, Labels: map[string]string{Label: LabelValue},
			Annotations: map[string]string{lockAnnotation: shortened(name)},
		},
		Spec: coordinationv1.LeaseSpec{HolderIdentity: &identity, LeaseDurationSeconds: &seconds},
	}}
}

// attempt returns a hold if it won, and otherwise how long the Lease of somebody else is good.
func (c *claim) attempt(ctx context.Context) (*hold, time.Duration, error) {
	begun := time.Now()
	var found *coordinationv1.Lease
	var err error
	if c.contended {
		if found, err = c.find(ctx); err != nil {
			return nil, 0, err
		}
	}
	if found == nil {
		lease, err := c.create(ctx)
		if err == nil {
			return c.hold(lease, begun), 0, nil
		}
		if !apierrors.IsAlreadyExists(err) {
			return nil, 0, c.undo(ctx, err)
		}
		if found, err = c.find(ctx); found == nil {
			return nil, 0, err
		}
	}
	// The Lease is ours if the answer to its creation was lost. It may have run out since, so it is no other case.
	if left := c.table.left(found); left > 0 && holderOf(found) != holderOf(c.lease) {
		return nil, left, nil
	}
	return c.takeOver(ctx, found)
}

// find returns the Lease as it is now, or nil if there is none.
func (c *claim) find(ctx context.Context) (*coordinationv1.Lease, error) {
	ctx, cancel := context.WithTimeout(ctx, answerTime)
	defer cancel()
	found, err := c.api.Get(ctx, c.lease.Name, metav1.GetOptions{})
	c.contended = !apierrors.IsNotFound(err)
	switch {
	case !c.contended:
		return nil, nil
	case err == nil && found.Labels[Label] != LabelValue:
		return nil, fmt.Errorf("the Lease %s/%s does not belong to this storage: delete it: %w", found.Namespace, found.Name, errForeign)
	}
	return found, err
}

func (c *claim) create(ctx context.Context) (*coordinationv1.Lease, error) {
	lease := c.lease.DeepCopy()
	now := metav1.NowMicro()
	lease.Spec.AcquireTime, lease.Spec.RenewTime = &now, &now
	ctx, cancel := context.WithTimeout(ctx, answerTime)
	defer cancel()
	return c.api.Create(ctx, lease, metav1.CreateOptions{})
}

// takeOver wins if nobody else is faster.
func (c *claim) takeOver(ctx context.Context, found *coordinationv1.Lease) (*hold, time.Duration, error) {
	begun := time.Now()
	next := found.DeepCopy()
	next.Spec = *c.lease.Spec.DeepCopy()
	now := metav1.NowMicro()
	next.Spec.AcquireTime, next.Spec.RenewTime = &now, &now
	transitions := int32(1)
	if found.Spec.LeaseTransitions != nil {
		transitions = *found.Spec.LeaseTransitions + 1
	}
	next.Spec.LeaseTransitions = &transitions
	asking, cancel := context.WithTimeout(ctx, answerTime)
	defer cancel()
	lease, err := c.api.Update(asking, next, metav1.UpdateOptions{})
	if apierrors.IsConflict(err) || apierrors.IsNotFound(err) {
		return nil, 0, nil
	}
	if err != nil {
		return nil, 0, c.undo(ctx, err)
	}
	if holder := holderOf(found); holder != "" && holder != holderOf(c.lease) {
		c.log.Info("took over a lock: its holder has not renewed it", zap.String("lock", c.name), zap.String("holder", holder))
	}
	return c.hold(lease, begun), 0, nil
}

// undo removes a Lease that may have been made by a request whose caller is gone. It returns the error that it is given.
func (c *claim) undo(ctx context.Context, err error) error {
	if ctx.Err() == nil {
		return err
	}
	go func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), answerTime)
		defer cancel()
		lease, err := c.api.Get(ctx, c.lease.Name, metav1.GetOptions{})
		if err == nil && holderOf(lease) == holderOf(c.lease) {
			_ = remove(ctx, c.api, lease)
		}
	}()
	return err
}

// remove deletes a Lease in this very state.
func remove(ctx context.Context, api client.LeaseInterface, lease *coordinationv1.Lease) error {
	return api.Delete(ctx, lease.Name, metav1.DeleteOptions{Preconditions: &metav1.Preconditions{
		UID: &lease.UID, ResourceVersion: &lease.ResourceVersion,
	}})
}

// sweep deletes Leases that nobody holds, some time after they were released or ran out. It has a client of its own: locks
// that are held must not wait for it.
func (l *locks) sweep(ctx context.Context, api client.LeaseInterface) {
	// All replicas do it, and one of them is the first.
	for pause(ctx, swept/2+random.N(swept)) == nil {
		for _, lease := range l.table.old(swept) {
			if err := remove(ctx, api, lease); err == nil {
				l.log.Debug("deleted the Lease of a lock that nobody holds", zap.String("lease", lease.Name))
			}
		}
	}
}

// shortened is for people: an annotation need not hold more.
func shortened(name string) string {
	return strings.ToValidUTF8(name[:min(len(name), longestKey)], "")
}
