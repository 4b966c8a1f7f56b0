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

	"github.com/k8singress/k8singress/internal/ir"
	"github.com/k8singress/k8singress/internal/kinds"
	"github.com/k8singress/k8singress/internal/kubeclient"
	"github.com/k8singress/k8singress/internal/panics"
	"github.com/k8singress/k8singress/internal/report"
	"github.com/k8singress/k8singress/internal/settings"
	"github.com/k8singress/k8singress/internal/snapshot"
)

// Options of a Writer.
type Options struct {
	// LeaseName and LeaseNamespace name the Lease whose holder writes.
	LeaseName, LeaseNamespace string
	// LeaseFallback, if there is one, is the name of the Lease that is used where that of LeaseName is forbidden, and this one is not.
	LeaseFallback string
	// NoElection has this replica write without a Lease.
	NoElection bool
	// Times of the Lease; the zero value is client-go's own defaults for controllers.
	Times Times
	// Pod and PodNamespace name the pod that this process runs in, if that is known.
	Pod, PodNamespace string
	Log               *zap.Logger
}

// Writer writes what Plan says, as long as it holds the Lease, or at once without an election. Publish may be called from any goroutine.
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
	// updates says that statuses are updated as a whole, and coreEvents that Events are those of the core API: the rights have nothing else.
	updates, coreEvents atomic.Bool
}

// desired is what was published last.
type desired struct {
	report   *report.Report
	snapshot *snapshot.Snapshot
	options  settings.Config
	open     []*ir.StreamRoute
}

// New returns a writer that does nothing before Run. Statuses are patched through objects, whatever their kind; everything else
// goes through client.
func New(client kubernetes.Interface, objects metadata.Interface, o Options) (*Writer, error) {
	name, err := os.Hostname()
	if err != nil {
		return nil, fmt.Errorf("reading the host name, which names this replica in the Lease: %w", err)
	}
	return &Writer{
		client: client, objects: objects, options: o, identity: name + "_" + string(uuid.NewUUID()), wake: make(chan struct{}, 1),
		memory: newMemory(), ports: newPorts(client, o),
	}, nil
}

// Publish hands over the outcome of a run of the pipeline, and the TCP and UDP ports that are open after it. It does not
// block, and the newest outcome counts.
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

// Verdicts are on the controller's own Service, where clients cannot reach its ports. Only the leader has some.
func (w *Writer) Verdicts() []*report.Verdict { return *w.ports.verdicts.Load() }

// Changed receives when Verdicts returns others than before.
func (w *Writer) Changed() <-chan struct{} { return w.ports.changed }

// Leader says whether this replica may write.
func (w *Writer) Leader() bool { return w.leader.Load() }

// lead writes until ctx ends, which it does when the Lease is lost.
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
			_ = kubeclient.Pause(ctx, planShare*time.Since(begin)) // The loop asks the context.
		}
	}
	working.Wait()
}

// planShare is how many times longer than a plan took the writer pauses after it: in a large cluster that changes all the time,
// status must not take the processor from requests.
const planShare = 100

// enqueue plans for the newest outcome, and queues the objects of which it differs from the plan before; the others are done or
// in their backoff.
func (w *Writer) enqueue(q *queue) {
	d := w.desired.Load()
	if d == nil {
		return
	}
	plan := Plan(d.report, d.snapshot, w.addressesOf(d))
	q.add(w.memory.setPlan(plan))
}

// addressesOf are those that are to be written; none leaves the status alone.
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

// write does what the newest plan says of one object.
func (w *Writer) write(ctx context.Context, t task) error {
	err := w.try(ctx, t)
	if err != nil && ctx.Err() == nil {
		w.options.Log.Warn("cannot write status or Events; trying again", zap.String("object", t.object.String()), zap.Error(err))
	}
	return err
}

// try does a task. An Event that fails does not keep the others from being written.
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

// patcher returns the JSON merge patch that gives an object the status that follows from the verdict on it, or an empty string
// if it has that status.
type patcher func(v *report.Verdict, object kinds.Object) string

// patchers has a row for each kind with kinds.Kind.WritesStatus. A row gets the addresses of the ingress, and returns the patcher
// for all objects of its kind.
var patchers = map[string]func(addresses []networkingv1.IngressLoadBalancerIngress) patcher{
	kinds.Ingress: ingressPatcher,
}

// ingressPatcher writes the addresses to each Ingress of this controller. As long as none is known, the status stays as it is.
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
