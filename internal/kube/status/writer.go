package status

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"slices"
	"sync/atomic"
	"time"

	"go.uber.org/zap"
	networkingv1 "k8s.io/api/networking/v1"
	"k8s.io/apimachinery/pkg/util/uuid"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/metadata"

	kubeclient "github.com/k8singress/k8singress/internal/kube/client"
	"github.com/k8singress/k8singress/internal/model/ir"
	"github.com/k8singress/k8singress/internal/model/kinds"
	"github.com/k8singress/k8singress/internal/model/report"
	"github.com/k8singress/k8singress/internal/model/settings"
	"github.com/k8singress/k8singress/internal/model/snapshot"
	"github.com/k8singress/k8singress/internal/process/panics"
)

// Options configure a Writer.
type Options struct {
	// LeaseName and LeaseNamespace are the name and namespace of the Lease whose holder writes.
	LeaseName, LeaseNamespace string
	// LeaseFallback is the name of the Lease to use if RBAC forbids LeaseName and allows this one. If it is empty,
	// there is no fallback.
	LeaseFallback string
	// NoElection makes this replica write without a Lease.
	NoElection bool
	// Times configures the Lease. The zero value uses client-go's defaults for controllers.
	Times Times
	// Pod and PodNamespace are the name and namespace of this process's pod. They are empty if they are unknown.
	Pod, PodNamespace string
	Log               *zap.Logger
}

// Writer writes the changes that Plan returns while it holds the Lease, or at once without leader election. Publish is
// safe for concurrent use.
type Writer struct {
	client   kubernetes.Interface
	objects  metadata.Interface
	options  Options
	identity string
	leader   atomic.Bool
	desired  atomic.Pointer[desired]
	wake     chan struct{}
	memory   *memory
	ports    *ports
	// updates is set if statuses have to be written with update instead of patch. coreEvents is set if Events have to
	// be written with the core API. RBAC allows only these in this case.
	updates, coreEvents atomic.Bool
}

// desired has the arguments of the last Publish.
type desired struct {
	report   *report.Report
	snapshot *snapshot.Snapshot
	options  settings.Config
	open     []*ir.StreamRoute
}

// New returns a writer that does nothing before Run. It uses objects to patch the status of any kind, and client for
// everything else.
func New(client kubernetes.Interface, objects metadata.Interface, o Options) (*Writer, error) {
	name, err := os.Hostname()
	if err != nil {
		return nil, fmt.Errorf("reading the host name, which identifies this replica in the Lease: %w", err)
	}
	return &Writer{
		client: client, objects: objects, options: o, identity: name + "_" + string(uuid.NewUUID()),
		wake:   make(chan struct{}, 1),
		memory: newMemory(), ports: newPorts(client, o),
	}, nil
}

// Publish sets the outcome of a pipeline run, and the TCP and UDP ports that are open after it. It does not block. Only
// the newest outcome is used.
func (w *Writer) Publish(r *report.Report, s *snapshot.Snapshot, o settings.Config, open []*ir.StreamRoute) {
	w.desired.Store(&desired{r, s, o, open})
	signal(w.wake)
	signal(w.ports.wake)
}

func signal(c chan<- struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}

// Verdicts returns verdicts on the controller's own Service if clients cannot reach its ports. Only the leader has
// verdicts.
func (w *Writer) Verdicts() []*report.Verdict { return *w.ports.verdicts.Load() }

// Changed returns a channel that receives a value when Verdicts has changed.
func (w *Writer) Changed() <-chan struct{} { return w.ports.changed }

// Leader reports whether this replica is the leader and may write.
func (w *Writer) Leader() bool { return w.leader.Load() }

// lead writes until ctx ends, which is also the case when the Lease is lost.
func (w *Writer) lead(ctx context.Context) {
	w.leader.Store(true)
	defer w.leader.Store(false)
	w.updates.Store(false)
	w.coreEvents.Store(false)
	queue := newQueue()
	var working panics.Group
	working.Go("status/queue", func() { queue.run(ctx, w.write) })
	working.Go("status/ports", func() { w.ports.lead(ctx, &w.desired) })
	w.memory.newTerm()
	w.enqueue(queue)
	for ctx.Err() == nil {
		select {
		case <-ctx.Done():
		case <-w.wake:
			begin := time.Now()
			w.enqueue(queue)
			_ = kubeclient.Pause(ctx, planShare*time.Since(begin)) // The loop checks the context.
		}
	}
	working.Wait()
}

// planShare limits the share of planning in the processor time: after each plan, the writer pauses planShare times as
// long as planning took. In a large cluster with constant changes, status must not slow down requests.
const planShare = 100

// enqueue plans for the newest outcome and queues the objects whose change differs from the previous plan. All other
// objects are already written or wait for a retry.
func (w *Writer) enqueue(q *queue) {
	d := w.desired.Load()
	if d == nil {
		return
	}
	plan := Plan(d.report, d.snapshot, w.addressesOf(d))
	q.add(w.memory.setPlan(plan))
}

// addressesOf returns the addresses to write. If it returns none, the status is not changed.
func (w *Writer) addressesOf(d *desired) []networkingv1.IngressLoadBalancerIngress {
	switch {
	case d.options.Status == settings.StatusOff:
		return nil
	case d.options.PublishNodes != "":
		pod := ir.Name{Namespace: w.options.PodNamespace, Name: w.options.Pod}
		return NodeAddresses(d.snapshot, pod, d.options.PublishNodes == settings.PublishNodesInternal)
	}
	return Addresses(d.snapshot, d.options.PublishAddress, d.options.PublishService)
}

// write executes a task for the newest plan.
func (w *Writer) write(ctx context.Context, t task) error {
	err := w.try(ctx, t)
	if err != nil && ctx.Err() == nil {
		w.options.Log.Warn("cannot write status or Events; trying again", zap.String("object", t.object.String()),
			zap.Error(err))
	}
	return err
}

// try executes a task. If an Event fails, the others are still written.
func (w *Writer) try(ctx context.Context, t task) error {
	change, done := w.memory.change(t.object)
	switch {
	case change == nil:
		return nil
	case t.events:
		var failed error
		for _, event := range change.Events {
			failed = errors.Join(failed, w.writeEvent(ctx, event))
		}
		return failed
	case done:
		return nil
	}
	return w.writeStatus(ctx, t.object, change)
}

// patcher returns the JSON merge patch for the status of an object according to its verdict. It returns "" if the
// object already has that status.
type patcher func(v *report.Verdict, object kinds.Object) string

// patchers has a row for each kind with kinds.Kind.WritesStatus. A row takes the addresses of the controller and
// returns the patcher for all objects of its kind.
var patchers = map[string]func(addresses []networkingv1.IngressLoadBalancerIngress) patcher{
	kinds.Ingress: ingressPatcher,
}

// ingressPatcher writes the addresses to each Ingress of this controller. If no addresses are known, the status is not
// changed.
func ingressPatcher(addresses []networkingv1.IngressLoadBalancerIngress) patcher {
	patch := mergePatch(map[string]any{"loadBalancer": networkingv1.IngressLoadBalancerStatus{Ingress: addresses}})
	return func(v *report.Verdict, object kinds.Object) string {
		current := object.(*networkingv1.Ingress).Status.LoadBalancer.Ingress
		if len(v.Parents) == 0 || len(addresses) == 0 || slices.EqualFunc(current, addresses, same) {
			return ""
		}
		return patch
	}
}

// mergePatch panics if the status cannot be encoded.
func mergePatch(status map[string]any) string {
	patch, err := json.Marshal(map[string]any{"status": status})
	if err != nil {
		panic(err)
	}
	return string(patch)
}
