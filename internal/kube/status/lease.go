package status

import (
	"context"
	"sync"
	"time"

	"go.uber.org/zap"
	coordinationv1 "k8s.io/api/coordination/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/leaderelection"
	"k8s.io/client-go/tools/leaderelection/resourcelock"

	kubeclient "github.com/k8singress/k8singress/internal/kube/client"
	"github.com/k8singress/k8singress/internal/process/panics"
)

// Times are the durations of leader election. Duration is how long a Lease is valid without renewal, Renew is how long
// its holder tries to renew it before giving up, and Retry is the interval at which replicas try to acquire it.
type Times struct{ Duration, Renew, Retry time.Duration }

// defaultTimes are the values that Kubernetes' own controllers use.
var defaultTimes = Times{Duration: 15 * time.Second, Renew: 10 * time.Second, Retry: 2 * time.Second}

// TimesOf returns the Times for a Lease with the given duration, in the same proportions as defaultTimes. If duration
// is zero, it returns zero Times, which mean the defaults.
func TimesOf(duration time.Duration) Times {
	return Times{Duration: duration, Renew: duration * 2 / 3, Retry: duration * 2 / 15}
}

// Run waits for the Lease, and writes status and Events while this replica holds the Lease, until ctx ends. Then it
// releases the Lease, so that the next leader does not have to wait until the Lease expires. Written statuses are not
// removed.
//
// Without leader election, Run starts to write at once. Run also watches the certificate of the webhook, whether this
// replica is the leader or not.
func (w *Writer) Run(ctx context.Context) {
	ctx, stop := context.WithCancel(ctx)
	var watching panics.Group
	defer watching.Wait()
	defer stop()
	watching.Go("status/certificate", func() { w.webhook.Run(ctx) })
	if w.options.NoElection {
		w.options.Log.Info("leader election is off: this replica writes status and Events")
		w.lead(ctx)
		return
	}
	for ctx.Err() == nil {
		if err := w.elect(ctx); err != nil {
			w.options.Log.Error("the Lease cannot be used, so no status is written", zap.Error(err))
			return
		}
	}
}

func (w *Writer) elect(ctx context.Context) error {
	times := w.options.Times
	if times == (Times{}) {
		times = defaultTimes
	}
	name := w.lease(ctx, times.Retry)
	if ctx.Err() != nil {
		return nil
	}
	var t term
	elector, err := leaderelection.NewLeaderElector(leaderelection.LeaderElectionConfig{
		Name: name,
		Lock: &resourcelock.LeaseLock{
			LeaseMeta:  metav1.ObjectMeta{Name: name, Namespace: w.options.LeaseNamespace},
			Client:     w.client.CoordinationV1(),
			LockConfig: resourcelock.ResourceLockConfig{Identity: w.identity},
		},
		LeaseDuration: times.Duration, RenewDeadline: times.Renew, RetryPeriod: times.Retry,
		ReleaseOnCancel: true,
		Callbacks: leaderelection.LeaderCallbacks{
			OnStartedLeading: func(ctx context.Context) {
				w.options.Log.Info("elected as leader: this replica writes status and Events",
					zap.String("lease", name))
				t.serve(func() { w.lead(ctx) })
			},
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

// lease returns the Lease name: the configured one, or the fallback if RBAC allows only the fallback. It waits until
// the API server responds and access to one of the two Leases is allowed. If ctx ends first, the result is not valid.
func (w *Writer) lease(ctx context.Context, pause time.Duration) string {
	if w.options.LeaseFallback == "" {
		return w.options.LeaseName
	}
	leases := w.client.CoordinationV1().Leases(w.options.LeaseNamespace)
	for warned := false; ctx.Err() == nil; warned = true {
		for _, name := range []string{w.options.LeaseName, w.options.LeaseFallback} {
			_, err := kubeclient.Persist(ctx, func(error) {}, func() (*coordinationv1.Lease, error) {
				return leases.Get(ctx, name, metav1.GetOptions{})
			})
			if !apierrors.IsForbidden(err) {
				return name
			}
		}
		if !warned {
			w.options.Log.Warn("no status is written, because RBAC allows access to neither Lease",
				zap.String("lease", w.options.LeaseName),
				zap.String("fallback", w.options.LeaseFallback), zap.String("namespace", w.options.LeaseNamespace))
		}
		_ = kubeclient.Pause(ctx, pause) // The loop checks the context.
	}
	return ""
}

// term tracks the time during which one leader elector runs. client-go's elector calls OnStartedLeading in a goroutine
// and does not wait for it, so the call may even happen after the elector has ended.
type term struct {
	mu     sync.Mutex
	over   bool
	active sync.WaitGroup
}

// serve calls lead, unless the term has already ended.
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

// end ends the term and waits until lead has returned.
func (t *term) end() {
	t.mu.Lock()
	t.over = true
	t.mu.Unlock()
	t.active.Wait()
}
