// Package cluster follows the objects of a Kubernetes cluster: it lists and watches them at the API server and keeps a
// snapshot.Store up to date.
package cluster

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"

	"go.uber.org/zap"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/util/flowcontrol"

	"github.com/k8singress/k8singress/internal/ir"
	"github.com/k8singress/k8singress/internal/kinds"
	"github.com/k8singress/k8singress/internal/kubeclient"
	"github.com/k8singress/k8singress/internal/panics"
	"github.com/k8singress/k8singress/internal/snapshot"
)

// Options says which cluster is followed, and how much of it.
type Options struct {
	// Kubeconfig is the path of a kubeconfig file. Empty means the cluster that this process runs in.
	Kubeconfig string
	// Namespaces are the namespaces to read. None means all of them.
	Namespaces []string
	// Optional are the kinds that are followed, too, of those that an option has to ask for.
	Optional []string
	// Also are objects that are read whatever their namespace: those that options name, such as the default
	// certificate. Their kind decides the resource.
	Also []ir.Ref
	// Referenced says that no Secret is read but those that Follow names.
	Referenced bool
	// OnWatchError, if there is one, is called with the kind for every list or watch that failed, for a metric.
	OnWatchError func(kind string)
}

// Cluster is a running or runnable set of informers.
type Cluster struct {
	client    kubernetes.Interface
	metadata  metadata.Interface
	namespace string
	pod       string
	store     *snapshot.Store
	informers []*informer
	// secrets is nil if all Secrets are read.
	secrets *byName
	synced  chan struct{}
	log     *zap.Logger
}

// New reads the kubeconfig or the configuration of the pod, and does no other input or output: nothing is asked of the
// API server before Run.
func New(o Options, log *zap.Logger) (*Cluster, error) {
	kubeclient.QuietKlog(log)
	found, err := kubeclient.Find(o.Kubeconfig)
	if errors.Is(err, kubeclient.ErrNotInCluster) {
		return nil, fmt.Errorf("%w: set the option kubeconfig to reach one, or manifests to serve a folder", err)
	}
	if err != nil {
		return nil, err
	}
	client, objects, err := writers(found.Config)
	if err != nil {
		return nil, fmt.Errorf("making a client for the API server: %w", err)
	}
	c := &Cluster{
		client: client, metadata: objects, namespace: found.Namespace, pod: found.Pod,
		store: snapshot.NewStore(), synced: make(chan struct{}), log: log,
	}
	f, err := newFactory(found.Config, o, c.store, log)
	if err != nil {
		return nil, err
	}
	if o.Referenced {
		if c.secrets, err = f.byName(kinds.Secret); err != nil {
			return nil, err
		}
	}
	c.informers, err = f.all(o, c.namespace)
	return c, err
}

// writers returns clients that have one limit of requests per second together.
func writers(config *rest.Config) (kubernetes.Interface, metadata.Interface, error) {
	limited := rest.CopyConfig(config)
	limited.RateLimiter = flowcontrol.NewTokenBucketRateLimiter(config.QPS, config.Burst)
	client, err := kubernetes.NewForConfig(limited)
	if err != nil {
		return nil, nil, err
	}
	objects, err := metadata.NewForConfig(limited)
	return client, objects, err
}

// Follow says which Secrets are to be read from now on, by their names, and whether the API server has answered for each
// of them: the Store is not complete before, and wakes its reader then. A Secret that may not be read is noted in the
// Store. Without the option Referenced all Secrets are read anyway.
func (c *Cluster) Follow(secrets iter.Seq[ir.Ref]) (read bool) {
	return c.secrets == nil || c.secrets.follow(secrets)
}

// Client is for writers: of Events, the Lease, and the ports of the controller's own Service.
func (c *Cluster) Client() kubernetes.Interface { return c.client }

// Metadata is for writers that patch the status of objects of any kind, and read nothing but their metadata.
func (c *Cluster) Metadata() metadata.Interface { return c.metadata }

// Namespace is the controller's own one, where its Lease belongs.
func (c *Cluster) Namespace() string { return c.namespace }

// Pod is the name of the pod in that namespace that this process runs in, or empty.
func (c *Cluster) Pod() string { return c.pod }

// Store holds the objects. It is incomplete until Synced.
func (c *Cluster) Store() *snapshot.Store { return c.store }

// Synced is closed when every informer has delivered the objects of its first list to the store. Secrets that Follow names
// are not waited for.
func (c *Cluster) Synced() <-chan struct{} { return c.synced }

// Run follows the cluster until the context ends. An API server that is away, at the start or later, is asked again
// and again; the objects stay as they are known. Run is called once.
func (c *Cluster) Run(ctx context.Context) {
	var group panics.Group
	for _, i := range c.informers {
		group.Go("cluster/informer", func() { i.shared.RunWithContext(ctx) })
	}
	if c.secrets != nil {
		group.Go("cluster/secrets", func() { c.secrets.run(ctx) })
	}
	if c.wait(ctx) {
		c.log.Info("read all objects of the cluster", zap.Int("informers", len(c.informers)))
		close(c.synced)
	}
	group.Wait()
}

func (c *Cluster) wait(ctx context.Context) bool {
	for _, i := range c.informers {
		select {
		case <-i.registration.HasSyncedChecker().Done():
		case <-i.denied:
		case <-ctx.Done():
			return false
		}
	}
	return true
}

// all makes one informer for each kind and namespace, and one for each object outside of them. own is the namespace of the controller.
func (f *factory) all(o Options, own string) ([]*informer, error) {
	namespaces := slices.Compact(slices.Sorted(slices.Values(o.Namespaces)))
	var list []scope
	for _, kind := range kinds.All {
		if kind.Optional && !slices.Contains(o.Optional, kind.Name) || o.Referenced && kind.Name == kinds.Secret {
			continue
		}
		switch {
		case kind.OwnNamespace:
			list = append(list, scope{kind: kind, namespace: own})
			continue
		case kind.ClusterScoped || len(namespaces) == 0:
			list = append(list, scope{kind: kind})
			continue
		}
		for _, namespace := range namespaces {
			list = append(list, scope{kind: kind, namespace: namespace})
		}
	}
	if len(namespaces) > 0 {
		list = append(list, others(namespaces, o)...)
	}
	return f.informers(list)
}

// others are the scopes of single objects that the namespaces do not have.
func others(namespaces []string, o Options) []scope {
	var list []scope
	seen := map[ir.Ref]bool{}
	for _, ref := range o.Also {
		kind, ok := kinds.ByName(ref.Kind)
		if !ok || o.Referenced && ref.Kind == kinds.Secret || kind.ClusterScoped || seen[ref] || slices.Contains(namespaces, ref.Namespace) {
			continue
		}
		seen[ref] = true
		list = append(list, scope{kind: kind, namespace: ref.Namespace, name: ref.Name})
	}
	return list
}
