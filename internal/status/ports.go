package status

import (
	"context"
	"maps"
	"net/netip"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"go.uber.org/zap"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/k8singress/k8singress/internal/report"
	"github.com/k8singress/k8singress/internal/serviceports"
	"github.com/k8singress/k8singress/internal/snapshot"
)

// ports keeps the ports of the controller's own Service in line with those that are open.
type ports struct {
	client  kubernetes.Interface
	options Options
	wake    chan struct{}
	changed chan struct{}
	// verdicts are never nil.
	verdicts atomic.Pointer[[]*report.Verdict]

	// What follows belongs to the goroutine that leads.

	// services are those, by "namespace/name", that the options have named since the process began. One that they name no
	// more loses its ports. So does none of a process that has never had the option: it does not know who else publishes.
	services map[string]*ownService
	// pod is the one that this process runs in, and podKnown says that there is no point in asking again.
	pod      *corev1.Pod
	podKnown bool
}

func newPorts(client kubernetes.Interface, o Options) *ports {
	p := &ports{
		client: client, options: o, wake: make(chan struct{}, 1), changed: make(chan struct{}, 1), services: map[string]*ownService{},
	}
	p.verdicts.Store(&[]*report.Verdict{})
	return p
}

// lead writes until ctx ends.
func (p *ports) lead(ctx context.Context, newest *atomic.Pointer[desired]) {
	defer p.tell(nil)
	p.podKnown = p.options.Pod == ""
	for _, service := range p.services {
		// While another replica led, it may have written over what is remembered.
		*service = ownService{}
	}
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-p.wake:
		case <-timer.C:
		}
		if d := newest.Load(); d != nil {
			if wait := p.look(ctx, d); wait > 0 {
				timer.Reset(wait)
			}
		}
	}
}

// look plans and writes, and returns when it has to be done again, or 0.
func (p *ports) look(ctx context.Context, d *desired) time.Duration {
	current := d.options.PublishService
	if d.options.PublishPorts && current != "" && p.services[current] == nil {
		p.services[current] = &ownService{}
	}
	s := serviceports.Situation{Name: current, Publish: d.options.PublishPorts && current != "", Routes: d.open}
	s.Service, s.Pod, s.Loopback = serviceIn(d.snapshot, current), p.ownPod(ctx, d), loopbackOnly(d.options.StreamBind)
	plan := serviceports.Make(s)
	verdicts := plan.Verdicts
	var again time.Duration
	for _, name := range slices.Sorted(maps.Keys(p.services)) {
		object, plan := s.Service, plan
		if name != current {
			object = serviceIn(d.snapshot, name)
			plan = serviceports.Make(serviceports.Situation{Name: name, Service: object})
		}
		service := p.services[name]
		if wait := p.bring(ctx, service, object, plan); wait > 0 && (again == 0 || wait < again) {
			again = wait
		}
		if service.refused != nil {
			verdicts = append(verdicts, service.refused)
		}
		if name != current && (object == nil || !plan.Write) {
			delete(p.services, name)
		}
	}
	p.tell(verdicts)
	return again
}

// loopbackOnly says that none of the addresses is to be reached from elsewhere. No address stands for all.
func loopbackOnly(addresses []string) bool {
	return len(addresses) > 0 && !slices.ContainsFunc(addresses, func(text string) bool {
		address, err := netip.ParseAddr(text)
		return err != nil || !address.IsLoopback()
	})
}

func serviceIn(s *snapshot.Snapshot, name string) *corev1.Service {
	namespace, name, _ := strings.Cut(name, "/")
	service, _ := snapshot.Of[*corev1.Service](s).Get(namespace, name)
	return service
}

// tell makes the verdicts known, if they are others than before.
func (p *ports) tell(verdicts []*report.Verdict) {
	if !slices.EqualFunc(*p.verdicts.Load(), verdicts, (*report.Verdict).Equal) {
		p.verdicts.Store(&verdicts)
		signal(p.changed)
	}
}

// ownPod asks for the pod that this process runs in, whose spec does not change. Whoever may not read it goes without.
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
		p.options.Log.Debug("reading the own pod; trying again", zap.Error(err))
	}
	return p.pod
}
