// Package services replaces kube-proxy and the load balancer of a cloud. Services of type LoadBalancer get addresses.
// TCP and UDP traffic to the address of a Service is copied to an endpoint and back, so endpoints see the control plane
// as the client.
//
// It listens in a separate network namespace. Otherwise port 80 of a ClusterIP would prevent a controller outside of
// pods from listening on port 80 of all addresses.
package services

import (
	"context"
	"time"

	v1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	corelisters "k8s.io/client-go/listers/core/v1"
	discoverylisters "k8s.io/client-go/listers/discovery/v1"
	"k8s.io/client-go/tools/cache"

	"github.com/k8singress/k8singress/test/testbed/network"
)

// APIServerIP is the ClusterIP of the Service default/kubernetes. It is the first address of network.ServiceCIDR.
const APIServerIP = "10.96.0.1"

// proxyNameLabel names the proxy for a Service and its EndpointSlices. Like kube-proxy, this one ignores objects with
// that label.
const proxyNameLabel = "service.kubernetes.io/service-proxy-name"

// retry is the delay before a failed operation is retried.
const retry = time.Second

// Proxy is the load balancer and the kube-proxy of the cluster.
type Proxy struct {
	client    kubernetes.Interface
	namespace *network.Namespace
	factory   informers.SharedInformerFactory
	services  corelisters.ServiceLister
	slices    discoverylisters.EndpointSliceLister
	addresses *network.Pool
	changed   chan struct{}

	// Only Run uses these fields.
	forwards  map[Address]*Forward
	attracted map[string]bool
	given     map[string]string
}

// Address is a port to listen on. An empty IP means all addresses.
type Address struct {
	Protocol v1.Protocol
	IP       string
	Port     int32
}

// New creates the namespace of the Services. It forwards nothing before Run.
func New(client kubernetes.Interface) (*Proxy, error) {
	namespace, err := network.NewServices()
	if err != nil {
		return nil, err
	}
	factory := informers.NewSharedInformerFactoryWithOptions(client, 0,
		informers.WithTweakListOptions(func(o *metav1.ListOptions) { o.LabelSelector = "!" + proxyNameLabel }))
	return &Proxy{
		client: client, namespace: namespace, factory: factory,
		services: factory.Core().V1().Services().Lister(),
		slices:   factory.Discovery().V1().EndpointSlices().Lister(),
		// Lower addresses are for tests that choose an address.
		addresses: network.NewPool("172.18.128.1", "172.18.255.254"),
		changed:   make(chan struct{}, 1),
		forwards:  map[Address]*Forward{}, attracted: map[string]bool{}, given: map[string]string{},
	}, nil
}

// Run forwards traffic until ctx ends.
func (p *Proxy) Run(ctx context.Context) {
	defer p.namespace.Close()
	handler := cache.ResourceEventHandlerFuncs{
		AddFunc:    func(any) { p.wake() },
		UpdateFunc: func(any, any) { p.wake() },
		DeleteFunc: func(any) { p.wake() },
	}
	_, _ = p.factory.Core().V1().Services().Informer().AddEventHandler(handler)
	_, _ = p.factory.Discovery().V1().EndpointSlices().Informer().AddEventHandler(handler)
	p.factory.Start(ctx.Done())
	p.factory.WaitForCacheSync(ctx.Done())
	for {
		if !p.sync(ctx) {
			time.AfterFunc(retry, p.wake)
		}
		select {
		case <-ctx.Done():
			for _, f := range p.forwards {
				f.Close()
			}
			return
		case <-p.changed:
		}
	}
}

func (p *Proxy) wake() {
	select {
	case p.changed <- struct{}{}:
	default:
	}
}

// sync compares the whole current state with the desired state; both are small. It returns false if something must be
// retried.
func (p *Proxy) sync(ctx context.Context) bool {
	all, err := p.services.List(labels.Everything())
	if err != nil {
		return false
	}
	ok := p.assign(ctx, all)
	wanted := map[Address][]string{}
	attracted := map[string]bool{}
	for _, service := range all {
		p.collect(service, wanted, attracted)
	}
	p.route(attracted)
	return p.listen(wanted) && ok
}

// collect adds the addresses of one Service.
func (p *Proxy) collect(service *v1.Service, wanted map[Address][]string, attracted map[string]bool) {
	slices, _ := p.slices.EndpointSlices(service.Namespace).List(
		labels.SelectorFromSet(labels.Set{discoveryv1.LabelServiceName: service.Name}))
	for i := range service.Spec.Ports {
		port := &service.Spec.Ports[i]
		endpoints := ready(slices, port.Name)
		if len(endpoints) == 0 {
			continue
		}
		if ip := service.Spec.ClusterIP; ip != "" && ip != v1.ClusterIPNone {
			wanted[Address{port.Protocol, ip, port.Port}] = endpoints
		}
		if service.Spec.Type != v1.ServiceTypeLoadBalancer {
			continue
		}
		for _, ingress := range service.Status.LoadBalancer.Ingress {
			if ingress.IP != "" {
				attracted[ingress.IP] = true
				wanted[Address{port.Protocol, ingress.IP, port.Port}] = endpoints
			}
		}
	}
}

func (p *Proxy) route(wanted map[string]bool) {
	for ip := range p.attracted {
		if !wanted[ip] && network.Release(ip) == nil {
			delete(p.attracted, ip)
		}
	}
	for ip := range wanted {
		if !p.attracted[ip] && network.Attract(ip) == nil {
			p.attracted[ip] = true
		}
	}
}

// listen updates the listeners. It returns false if a listener could not be opened.
func (p *Proxy) listen(wanted map[Address][]string) bool {
	for a, f := range p.forwards {
		if _, ok := wanted[a]; !ok {
			f.Close()
			delete(p.forwards, a)
		}
	}
	ok := true
	for a, endpoints := range wanted {
		if f, known := p.forwards[a]; known {
			f.endpoints.Store(&endpoints)
			continue
		}
		f, err := Open(p.namespace, a, endpoints)
		if err != nil {
			ok = false
			continue
		}
		p.forwards[a] = f
	}
	return ok
}
