// Package kubelet runs the containers of pods as processes of this machine, in place of the real kubelet. One Kubelet
// serves all nodes; the real scheduler assigns pods to nodes.
//
// A pod has its own network, or uses the network of its node (hostNetwork). hostPort and hostIP are supported. Each
// node supports kubectl logs, exec without a terminal, and port-forward. Changes of a Node by tests are kept, and the
// scheduler uses them, but pods are never evicted.
package kubelet

import (
	"context"
	"crypto/tls"
	"fmt"
	"sync"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/scheme"
	typedv1 "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/record"

	"github.com/k8singress/k8singress/test/testbed/network"
)

// Port is the port of the kubelet's API.
const Port = 10250

// shutdownGrace is the time that containers get to end when the cluster ends.
const shutdownGrace = 2 * time.Second

// Kubelet runs pods. The exported fields must be set before Run.
type Kubelet struct {
	// Client must have the rights of an administrator.
	Client kubernetes.Interface
	// Dir has a folder for each pod, with logs, volumes and the roots of its containers.
	Dir string
	// Images determines the program that a container runs.
	Images *Images
	// Nodes is the number of nodes.
	Nodes int
	// TLS is the configuration of the kubelet's API. It must require client certificates, because the API accepts every
	// client.
	TLS *tls.Config

	nodes  map[string]*node
	pool   *network.Pool
	events record.EventRecorder

	mu   sync.Mutex
	pods map[types.UID]*podWorker
}

// Run registers the nodes, calls ready once, and runs pods until ctx ends. Then it ends all containers and returns.
func (k *Kubelet) Run(ctx context.Context, ready func()) error {
	k.pool = network.NewPodPool()
	k.pods = map[types.UID]*podWorker{}
	broadcaster := record.NewBroadcaster(record.WithContext(ctx))
	broadcaster.StartRecordingToSink(&typedv1.EventSinkImpl{Interface: k.Client.CoreV1().Events("")})
	k.events = broadcaster.NewRecorder(scheme.Scheme, v1.EventSource{Component: "kubelet"})
	if err := k.makeNodes(ctx); err != nil {
		return err
	}
	if err := k.serve(ctx); err != nil {
		return err
	}
	if err := k.watch(ctx); err != nil {
		return err
	}
	ready()
	<-ctx.Done()
	k.shutDown()
	return nil
}

// watch watches the pods that the scheduler has bound.
func (k *Kubelet) watch(ctx context.Context) error {
	bound := fields.OneTermNotEqualSelector("spec.nodeName", "").String()
	factory := informers.NewSharedInformerFactoryWithOptions(k.Client, 0,
		informers.WithTweakListOptions(func(o *metav1.ListOptions) { o.FieldSelector = bound }))
	informer := factory.Core().V1().Pods().Informer()
	_, err := informer.AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc:    func(object any) { k.sync(ctx, object.(*v1.Pod)) },
		UpdateFunc: func(_, object any) { k.sync(ctx, object.(*v1.Pod)) },
		DeleteFunc: func(object any) {
			if gone, ok := object.(cache.DeletedFinalStateUnknown); ok {
				object = gone.Obj
			}
			k.forget(object.(*v1.Pod).UID)
		},
	})
	if err != nil {
		return err
	}
	factory.Start(ctx.Done())
	factory.WaitForCacheSync(ctx.Done())
	return ctx.Err()
}

// sync passes a pod to its worker. Workers keep running after ctx ends, until shutDown ends them.
func (k *Kubelet) sync(ctx context.Context, pod *v1.Pod) {
	node, ok := k.nodes[pod.Spec.NodeName]
	if !ok {
		return
	}
	k.mu.Lock()
	worker, known := k.pods[pod.UID]
	if !known {
		killed, kill := context.WithCancel(context.WithoutCancel(ctx))
		stopping, stop := context.WithCancel(killed)
		worker = newPodWorker(k, node, pod)
		worker.stop, worker.kill = stop, kill
		k.pods[pod.UID] = worker
		go worker.run(stopping, killed)
	}
	k.mu.Unlock()
	worker.update(pod)
}

// forget ends a pod without a grace period after its object was removed.
func (k *Kubelet) forget(uid types.UID) {
	k.mu.Lock()
	worker, known := k.pods[uid]
	delete(k.pods, uid)
	k.mu.Unlock()
	if known {
		worker.kill()
	}
}

func (k *Kubelet) find(namespace, name string) (*podWorker, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	for _, worker := range k.pods {
		if pod := worker.current(); pod.Namespace == namespace && pod.Name == name {
			return worker, nil
		}
	}
	return nil, fmt.Errorf("there is no pod %s/%s here", namespace, name)
}

func (k *Kubelet) shutDown() {
	k.mu.Lock()
	workers := make([]*podWorker, 0, len(k.pods))
	for _, worker := range k.pods {
		workers = append(workers, worker)
		worker.stop()
	}
	k.mu.Unlock()
	deadline := time.After(shutdownGrace)
	for _, worker := range workers {
		select {
		case <-worker.done:
			continue
		case <-deadline:
		}
		break
	}
	for _, worker := range workers {
		worker.kill()
		<-worker.done
	}
}
