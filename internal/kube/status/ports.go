package status

import (
	"context"
	"maps"
	"net/netip"
	"slices"
	"sync/atomic"
	"time"

	"go.uber.org/zap"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/k8singress/k8singress/internal/kube/serviceports"
	"github.com/k8singress/k8singress/internal/model/ir"
	"github.com/k8singress/k8singress/internal/model/report"
	"github.com/k8singress/k8singress/internal/model/snapshot"
	"github.com/k8singress/k8singress/internal/process/wake"
)

// ports keeps the ports of the controller's own Service in sync with the open TCP and UDP ports.
type ports struct {
	client  kubernetes.Interface
	options Options
	wake    wake.Signal
	// changed is called when verdicts has changed.
	changed func()
	// verdicts is never nil.
	verdicts atomic.Pointer[[]*report.Verdict]

	// Only the goroutine of lead uses the fields below.

	// services holds each Service to which the option publish_service has referred since the process started. When the
	// option refers to another Service, the ports are removed from the previous one. Services from before the start of
	// the process are not changed, because another controller may publish ports in them.
	services map[ir.Name]*ownService
	// pod is the pod of this process, or nil if it is unknown. podKnown is set if the pod need not be read again.
	pod      *corev1.Pod
	podKnown bool
}

func newPorts(client kubernetes.Interface, changed func(), o Options) *ports {
	p := &ports{
		client: client, options: o, wake: wake.New(), changed: changed,
		services: map[ir.Name]*ownService{},
	}
	p.verdicts.Store(&[]*report.Verdict{})
	return p
}

// lead keeps the ports of the Services up to date until ctx ends. newest holds the arguments of the last call of
// Writer.Publish.
func (p *ports) lead(ctx context.Context, newest *atomic.Pointer[desired]) {
	defer p.setVerdicts(nil)
	p.podKnown = p.options.Pod == ""
	for _, service := range p.services {
		// Forget what this replica has written, because another replica may have written other ports while it was the
		// leader.
		*service = ownService{}
	}
	p.wake.Loop(ctx, func() time.Duration {
		if d := newest.Load(); d != nil {
			return p.reconcile(ctx, d)
		}
		return wake.Never
	})
}

// reconcile plans the ports of the Services and writes them. It must be called again after the returned duration.
func (p *ports) reconcile(ctx context.Context, d *desired) time.Duration {
	current := d.options.PublishService
	if d.options.PublishPorts && !current.IsZero() && p.services[current] == nil {
		p.services[current] = &ownService{}
	}
	s := serviceports.Situation{Name: current, Publish: d.options.PublishPorts && !current.IsZero(), Routes: d.open}
	s.Service, s.Pod, s.Loopback = serviceIn(d.snapshot, current), p.ownPod(ctx, d), loopbackOnly(d.options.StreamBind)
	plan := serviceports.Make(s)
	verdicts := plan.Verdicts
	again := wake.Never
	for _, name := range slices.SortedFunc(maps.Keys(p.services), ir.Name.Compare) {
		object, plan := s.Service, plan
		if name != current {
			object = serviceIn(d.snapshot, name)
			plan = serviceports.Make(serviceports.Situation{Name: name, Service: object})
		}
		service := p.services[name]
		again = min(again, p.apply(ctx, service, object, plan))
		if service.refused != nil {
			verdicts = append(verdicts, service.refused)
		}
		if name != current && (object == nil || !plan.Write) {
			delete(p.services, name)
		}
	}
	p.setVerdicts(verdicts)
	return again
}

// loopbackOnly reports whether all listen addresses are loopback addresses. It returns false for an empty list, which
// means all addresses.
func loopbackOnly(addresses []string) bool {
	return len(addresses) > 0 && !slices.ContainsFunc(addresses, func(text string) bool {
		address, err := netip.ParseAddr(text)
		return err != nil || !address.IsLoopback()
	})
}

func serviceIn(s *snapshot.Snapshot, name ir.Name) *corev1.Service {
	service, _ := snapshot.Of[*corev1.Service](s).Get(name.Namespace, name.Name)
	return service
}

// setVerdicts sets the problems of the ports. If they have changed, setVerdicts calls changed.
func (p *ports) setVerdicts(verdicts []*report.Verdict) {
	if !slices.EqualFunc(*p.verdicts.Load(), verdicts, (*report.Verdict).Equal) {
		p.verdicts.Store(&verdicts)
		p.changed()
	}
}

// ownPod returns the pod of this process, or nil if it cannot be read. The pod is read only once, because its spec does
// not change.
func (p *ports) ownPod(ctx context.Context, d *desired) *corev1.Pod {
	if p.podKnown || len(d.open) == 0 {
		return p.pod
	}
	pod, err := p.client.CoreV1().Pods(p.options.PodNamespace).Get(ctx, p.options.Pod, metav1.GetOptions{})
	switch {
	case err == nil:
		p.pod, p.podKnown = pod, true
	case apierrors.IsForbidden(err) || apierrors.IsNotFound(err):
		p.podKnown = true
	default:
		p.options.Log.Debug("cannot read the pod that this process runs in; trying again", zap.Error(err))
	}
	return p.pod
}
