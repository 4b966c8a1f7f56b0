package status

import (
	"context"
	"time"

	"go.uber.org/zap"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/leaderelection"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
)

// Times of a Lease: how long it is good without renewal, how long its holder tries to renew it before it gives up, and
// how often everybody tries.
type Times struct{ Duration, Renew, Retry time.Duration }

// defaultTimes are those of Kubernetes' own controllers.
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
	// OnStartedLeading runs in a goroutine that the elector does not wait for.
	ended := make(chan struct{})
	leading := false
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
			OnStartedLeading: func(ctx context.Context) {
				defer close(ended)
				w.lead(ctx)
			},
			OnStoppedLeading: func() {},
			OnNewLeader:      func(identity string) { leading = leading || identity == w.identity },
		},
	})
	if err != nil {
		return err
	}
	elector.Run(ctx)
	if leading {
		<-ended
	}
	return nil
}
