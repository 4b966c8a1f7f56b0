package status

import (
	"context"
	"crypto/tls"
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
	"github.com/k8singress/k8singress/internal/kube/webhook"
	"github.com/k8singress/k8singress/internal/model/ir"
	"github.com/k8singress/k8singress/internal/model/kinds"
	"github.com/k8singress/k8singress/internal/model/report"
	"github.com/k8singress/k8singress/internal/model/settings"
	"github.com/k8singress/k8singress/internal/model/snapshot"
	"github.com/k8singress/k8singress/internal/process/panics"
	"github.com/k8singress/k8singress/internal/process/wake"
)

// Options configure a Writer.
type Options struct {
	// LeaseName and LeaseNamespace identify the Lease for leader election. Only its holder writes.
	LeaseName, LeaseNamespace string
	// LeaseFallback is the name of the Lease to use if RBAC forbids access to LeaseName but allows access to
	// LeaseFallback. If it is empty, there is no fallback.
	LeaseFallback string
	// NoElection disables leader election: this replica writes without a Lease.
	NoElection bool
	// Times configures the Lease. The zero value uses client-go's defaults for controllers.
	Times Times
	// Pod and PodNamespace are the name and namespace of this process's pod, or empty if they are unknown.
	Pod, PodNamespace string
	Log               *zap.Logger
}

// Writer writes the status and the Events that Plan returns. It writes only while this replica holds the Lease, or if
// leader election is disabled. Publish is safe for concurrent use.
type Writer struct {
	client   kubernetes.Interface
	objects  metadata.Interface
	options  Options
	identity string
	leader   atomic.Bool
	desired  atomic.Pointer[desired]
	wake     wake.Signal
	memory   *memory
	rivals   *contention
	ports    *ports
	webhook  *webhook.Keeper
	// reported receives a value when the result of Verdicts has changed.
	reported wake.Signal
	// updates is set if RBAC only allows writing statuses with an update, not with a patch. coreEvents is set if RBAC
	// only allows writing Events with the core API.
	updates, coreEvents atomic.Bool
}

// desired holds the arguments of the last call of Publish.
type desired struct {
	report   *report.Report
	snapshot *snapshot.Snapshot
	options  settings.Config
	open     []*ir.StreamRoute
}

// New returns a Writer that does nothing until Run is called. It uses objects to patch the status of objects of any
// kind, and client for all other requests.
func New(client kubernetes.Interface, objects metadata.Interface, o Options) (*Writer, error) {
	name, err := os.Hostname()
	if err != nil {
		return nil, fmt.Errorf("reading the host name, which identifies this replica in the Lease: %w", err)
	}
	w := &Writer{
		client: client, objects: objects, options: o, identity: name + "_" + string(uuid.NewUUID()),
		wake: wake.New(), reported: wake.New(),
		memory: newMemory(),
	}
	w.rivals, w.ports = newContention(w.reported.Send), newPorts(client, w.reported.Send, o)
	w.webhook = webhook.New(client, o.PodNamespace, w.reported.Send, o.Log)
	return w, nil
}

// Publish sets the newest report, from which the Writer derives the status and Events to write. s is the snapshot to
// which the report refers, and open lists the TCP and UDP ports that are open. Publish does not block. If it is called
// several times before the Writer gets to work, only the last call counts.
func (w *Writer) Publish(r *report.Report, s *snapshot.Snapshot, o settings.Config, open []*ir.StreamRoute) {
	w.desired.Store(&desired{r, s, o, open})
	w.wake.Send()
	w.ports.wake.Send()
}

// Verdicts returns the problems that the leader found with the ports of the controller's own Service, with the
// certificates of the webhook, and with other controllers that write the same statuses. It is empty if this replica is
// not the leader.
func (w *Writer) Verdicts() []*report.Verdict {
	return slices.Concat(*w.ports.verdicts.Load(), w.webhook.Verdicts(), w.rivals.verdicts(time.Now()))
}

// Changed returns a channel that receives a value when the problems that Verdicts returns have changed.
func (w *Writer) Changed() <-chan struct{} { return w.reported }

// KeepCertificates sets the name of the ValidatingWebhookConfiguration for which certificates are kept. If it is empty,
// none are kept.
func (w *Writer) KeepCertificates(configuration string) { w.webhook.Configure(configuration) }

// GetCertificate returns the certificate that is kept for the webhook. It returns an error until there is one.
func (w *Writer) GetCertificate(hello *tls.ClientHelloInfo) (*tls.Certificate, error) {
	return w.webhook.GetCertificate(hello)
}

// Leader reports whether this replica is the leader. Only the leader writes.
func (w *Writer) Leader() bool { return w.leader.Load() }

// lead writes status and Events until ctx ends. ctx also ends when this replica loses the Lease.
func (w *Writer) lead(ctx context.Context) {
	w.leader.Store(true)
	defer w.leader.Store(false)
	w.updates.Store(false)
	w.coreEvents.Store(false)
	queue := newQueue()
	var working panics.Group
	working.Go("status/queue", func() { queue.run(ctx, w.write) })
	working.Go("status/ports", func() { w.ports.lead(ctx, &w.desired) })
	working.Go("status/webhook", func() { w.webhook.Lead(ctx) })
	w.memory.newTerm()
	w.rivals.reset()
	defer w.rivals.reset()
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

// planShare limits the processor time of planning: after each plan, the writer pauses for planShare times the duration
// of the planning. In a large cluster with constant changes, writing status must not slow down requests.
const planShare = 100

// enqueue makes a plan for the arguments of the last Publish, and queues the objects whose planned change differs from
// the previous plan. The changes of all other objects have already been written or wait for a retry.
func (w *Writer) enqueue(q *queue) {
	d := w.desired.Load()
	if d == nil {
		return
	}
	w.rivals.forget(func(ref ir.Ref) bool {
		_, ok := d.snapshot.OfKind(ref.Kind).Get(ref.Namespace, ref.Name)
		return ok
	}, time.Now())
	plan := Plan(d.report, d.snapshot, w.addressesOf(d))
	q.add(w.memory.setPlan(plan))
}

// addressesOf returns the addresses to write to the status of Ingresses. If it returns no addresses, the status is not
// changed.
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

// write executes a task, and logs the error if it fails. A task writes the status or the Events of one object.
func (w *Writer) write(ctx context.Context, t task) error {
	err := w.try(ctx, t)
	if err != nil && ctx.Err() == nil && !errors.Is(err, errContended) {
		w.options.Log.Warn("cannot write status or Events; trying again", zap.String("object", t.object.String()),
			zap.Error(err))
	}
	return err
}

// try writes the status or the Events of an object as the newest plan requires. If the write of one Event fails, the
// other Events are still written.
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
	if !w.rivals.allows(t.object, change, time.Now()) {
		return errContended
	}
	return w.writeStatus(ctx, t.object, change)
}

// errContended makes the queue try again later to write a status that another controller keeps overwriting.
var errContended = errors.New("another controller keeps overwriting the status")

// patcher returns the JSON merge patch that sets the status of an object, or "" if the object already has this status.
// v contains the conditions and problems that the controller has determined for the object.
type patcher func(v *report.Verdict, object kinds.Object) string

// patchers contains a function for each kind whose field WritesStatus is set in kinds.Table. The function takes the
// addresses of the controller and returns the patcher for the objects of this kind.
var patchers = map[string]func(addresses []networkingv1.IngressLoadBalancerIngress) patcher{
	kinds.Ingress: ingressPatcher,
}

// ingressPatcher returns a patcher that sets the addresses of each Ingress that this controller serves. If addresses is
// empty, the patcher does not change the status.
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

// mergePatch returns a JSON merge patch that sets the given status. It panics if the status cannot be encoded.
func mergePatch(status map[string]any) string {
	patch, err := json.Marshal(map[string]any{"status": status})
	if err != nil {
		panic(err)
	}
	return string(patch)
}
