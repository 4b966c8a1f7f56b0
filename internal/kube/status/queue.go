package status

import (
	"context"
	"sync"
	"time"

	"github.com/k8singress/k8singress/internal/model/ir"
	"github.com/k8singress/k8singress/internal/model/shrinking"
	"github.com/k8singress/k8singress/internal/process/delayqueue"
	"github.com/k8singress/k8singress/internal/process/panics"
	"github.com/k8singress/k8singress/internal/process/turns"
	"github.com/k8singress/k8singress/internal/process/wake"
)

const (
	// statusWriters and eventWriters are the maximum numbers of concurrent writes of statuses and of Events. The rate
	// limit of the client also applies. There are fewer writers for Events, because other controllers wait for the
	// status.
	statusWriters = 4
	eventWriters  = 2
	// firstRetry is the delay before a failed write is retried for the first time. The delay doubles with each failure,
	// up to lastRetry.
	firstRetry = 200 * time.Millisecond
	lastRetry  = time.Minute
)

// task identifies a pending write: the status of an object, or its Events.
type task struct {
	object ir.Ref
	// events is set if the task is to write the Events of the object instead of its status.
	events bool
}

// queue holds the pending tasks. Statuses and Events have separate queues, so that statuses do not wait for Events.
// Both queues take turns between namespaces, so that a namespace whose objects have thousands of problems does not
// delay the status of other namespaces.
type queue struct {
	kick wake.Signal

	mu       sync.Mutex
	statuses *turns.Queue[task]
	events   *turns.Queue[task]
	// delayed holds the failed tasks until they are retried. failures is the number of consecutive failures of each
	// task.
	delayed  *delayqueue.Queue[task]
	failures shrinking.Map[task, int]
}

func newQueue() *queue {
	return &queue{
		kick: wake.New(), statuses: turns.New[task](statusWriters, statusWriters),
		events:  turns.New[task](eventWriters, eventWriters),
		delayed: delayqueue.New[task](),
	}
}

// add queues two tasks for each object: one for its status and one for its Events.
func (q *queue) add(objects []ir.Ref) {
	q.mu.Lock()
	defer q.mu.Unlock()
	for _, ref := range objects {
		q.push(task{object: ref})
		q.push(task{object: ref, events: true})
	}
	q.kick.Send()
}

func (q *queue) push(t task) {
	q.delayed.Remove(t)
	q.of(t).Push(t.object.Namespace, t, false)
}

func (q *queue) of(t task) *turns.Queue[task] {
	if t.events {
		return q.events
	}
	return q.statuses
}

// run executes tasks until ctx ends, and then waits until the running tasks have finished.
func (q *queue) run(ctx context.Context, write func(context.Context, task) error) {
	var writing panics.Group
	defer writing.Wait()
	q.kick.Loop(ctx, func() time.Duration {
		begun, rest := q.next(time.Now())
		for _, t := range begun {
			writing.Go("status/write", func() {
				q.done(t, panics.Run("status/write", func() error { return write(ctx, t) }))
			})
		}
		return rest
	})
}

// next returns the tasks to start now, and the time until the next retry.
func (q *queue) next(now time.Time) (begun []task, rest time.Duration) {
	q.mu.Lock()
	defer q.mu.Unlock()
	for t, ok := q.delayed.Pop(now); ok; t, ok = q.delayed.Pop(now) {
		q.push(t)
	}
	for _, of := range []*turns.Queue[task]{q.statuses, q.events} {
		for t, ok := of.Pop(); ok; t, ok = of.Pop() {
			begun = append(begun, t)
		}
	}
	if at, ok := q.delayed.Next(); ok {
		return begun, max(at.Sub(now), 0)
	}
	return begun, wake.Never
}

// done records the result of a task. A failed task is retried after a delay. A task that was added again while it was
// running is executed again without a delay.
func (q *queue) done(t task, err error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if err == nil {
		q.failures.Delete(t)
	} else {
		n := q.failures.Get(t)
		q.failures.Set(t, n+1)
		q.delayed.Set(t, time.Now().Add(min(firstRetry<<min(n, 10), lastRetry)))
	}
	q.of(t).Done(t)
	q.kick.Send()
}
