package status

import (
	"context"
	"sync"
	"time"

	"go.uber.org/zap"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/leaderelection"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
)

// Times of a Lease: how long it is good without renewal, how long its holder tries to renew it before it gives up, and
// how often every replica tries to take it.
type Times struct{ Duration, Renew, Retry time.Duration }

// defaultTimes are the times of Kubernetes' own controllers.
var defaultTimes = Times{Duration: 15 * time.Second, Renew: 10 * time.Second, Retry: 2 * time.Second}

// Run waits for the Lease, and writes while it has it, until ctx ends. Then it gives the Lease back, so that the next
// replica need not wait for it to run out. What was written stays.
func (w *Writer) Run(ctx context.Context) {
	for ctx.Err() == nil {
		if err := w.elect(ctx); err != nil {
			w.options.Log.Error("no status will be written: the Lease cannot be used", zap.Error(err))
			return
		}
	}
}

func (w *Writer) elect(ctx context.Context) error {
	times := w.options.Times
	if times == (Times{}) {
		times = defaultTimes
	}
	var t term
	elector, err := leaderelection.NewLeaderElector(leaderelection.LeaderElectionConfig{
		Name: w.options.LeaseName,
		Lock: &resourcelock.LeaseLock{
			LeaseMeta:  metav1.ObjectMeta{Name: w.options.LeaseName, Namespace: w.options.LeaseNamespace},
			Client:     w.client.CoordinationV1(),
			LockConfig: resourcelock.ResourceLockConfig{Identity: w.identity},
		},
		LeaseDuration: times.Duration, RenewDeadline: times.Renew, RetryPeriod: times.Retry,
		ReleaseOnCancel: true,
		Callbacks: leaderelection.LeaderCallbacks{
			OnStartedLeading: func(ctx context.Context) { t.serve(func() { w.lead(ctx) }) },
			OnStoppedLeading: func() {},
		},
	})
	if err != nil {
		return err
	}
	elector.Run(ctx)
	t.end()
	return nil
}

// term is the time of one elector, which runs OnStartedLeading in a goroutine that it does not wait for, and which may
// begin only after the elector has ended.
type term struct {
	mu     sync.Mutex
	over   bool
	active sync.WaitGroup
}

// serve calls a function, unless the term is over.
func (t *term) serve(lead func()) {
	t.mu.Lock()
	if t.over {
		t.mu.Unlock()
		return
	}
	t.active.Add(1)
	t.mu.Unlock()
	defer t.active.Done()
	lead()
}

// end waits until the function has returned.
func (t *term) end() {
	t.mu.Lock()
	t.over = true
	t.mu.Unlock()
	t.active.Wait()
}
