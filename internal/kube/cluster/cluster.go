// Package cluster watches the objects of a Kubernetes cluster: it lists and watches them through the API server and
// keeps a snapshot.Store up to date.
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

	kubeclient "github.com/k8singress/k8singress/internal/kube/client"
	"github.com/k8singress/k8singress/internal/model/ir"
	"github.com/k8singress/k8singress/internal/model/kinds"
	"github.com/k8singress/k8singress/internal/model/snapshot"
	"github.com/k8singress/k8singress/internal/process/panics"
)

// Options select the cluster and the objects to watch.
type Options struct {
	// Kubeconfig is the path of a kubeconfig file. Empty means the cluster that this process runs in.
	Kubeconfig string
	// Namespaces lists the namespaces to watch. An empty list means all namespaces.
	Namespaces []string
	// Optional lists the kinds to watch in addition to the kinds that are always watched.
	Optional []string
	// The field Also lists objects that are watched even if they are in none of the Namespaces, because options refer
	// to them, such as the default certificate.
	Also []ir.Ref
	// Referenced means that only the Secrets that are passed to Follow are watched, instead of all Secrets.
	Referenced bool
	// OnWatchError is called for every list or watch request that fails, with the kind of the objects. It is meant for
	// counting errors in a metric. It may be nil.
	OnWatchError func(kind string)
}

// Cluster watches the objects of one cluster with a set of informers.
type Cluster struct {
	client    kubernetes.Interface
	metadata  metadata.Interface
	namespace string
	pod       string
	store     *snapshot.Store
	informers []*informer
	// secrets watches the Secrets that are passed to Follow. It is nil if all Secrets are watched.
	secrets *byName
	heard   *heard
	synced  chan struct{}
	log     *zap.Logger
}

// New reads the kubeconfig or the configuration of the pod. It does no other I/O: no request is sent to the API server
// before Run.
func New(o Options, log *zap.Logger) (*Cluster, error) {
	kubeclient.QuietKlog(log)
	found, err := kubeclient.Find(o.Kubeconfig)
	if errors.Is(err, kubeclient.ErrNotInCluster) {
		return nil, fmt.Errorf("%w: set the option kubeconfig to connect to a cluster, or manifests to read a folder",
			err)
	}
	if err != nil {
		return nil, err
	}
	client, objects, err := writers(found.Config)
	if err != nil {
		return nil, fmt.Errorf("creating a client for the API server: %w", err)
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
	c.heard = f.heard
	c.informers, err = f.all(o, c.namespace)
	return c, err
}

// writers returns the clients for writing, which share one rate limit.
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

// Follow replaces the set of Secrets to watch. It reports whether the API server has already responded for each of
// them. If it returns false, the reader of the Store is notified when the last response has arrived. Secrets to which
// access is forbidden are marked as denied in the Store. Without the option Referenced, all Secrets are watched and
// Follow does nothing.
func (c *Cluster) Follow(secrets iter.Seq[ir.Ref]) (read bool) {
	return c.secrets == nil || c.secrets.follow(secrets)
}

// Client returns the client for writing Events, the Lease for leader election, and the ports of the controller's
// Service.
func (c *Cluster) Client() kubernetes.Interface { return c.client }

// Metadata returns the client for patching the status of objects of any kind. From its responses, only the metadata of
// the objects is decoded.
func (c *Cluster) Metadata() metadata.Interface { return c.metadata }

// Namespace returns the controller's namespace, which also contains its Lease.
func (c *Cluster) Namespace() string { return c.namespace }

// Pod returns the name of this process's pod, or "" if the name is unknown.
func (c *Cluster) Pod() string { return c.pod }

// Store returns the store that holds the objects. It is incomplete until the channel of Synced is closed.
func (c *Cluster) Store() *snapshot.Store { return c.store }

// Synced returns a channel that is closed when every informer has listed its objects and all of them are in the store.
// Secrets that were passed to Follow may still be missing.
func (c *Cluster) Synced() <-chan struct{} { return c.synced }

// Run watches the cluster until the context ends. While the API server is unavailable, Run retries and the objects that
// were read before stay in the store. Run must be called only once.
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

// all returns the informers that the options require: one for each combination of a kind and a watched namespace, and
// one for each object in o.Also that is in another namespace. own is the namespace of the controller.
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

// others returns a scope for each object in o.Also that is outside the watched namespaces. A scope describes what one
// informer reads.
func others(namespaces []string, o Options) []scope {
	var list []scope
	seen := map[ir.Ref]bool{}
	for _, ref := range o.Also {
		kind, ok := kinds.ByName(ref.Kind)
		if !ok || o.Referenced && ref.Kind == kinds.Secret || kind.ClusterScoped || seen[ref] ||
			slices.Contains(namespaces, ref.Namespace) {
			continue
		}
		seen[ref] = true
		list = append(list, scope{kind: kind, namespace: ref.Namespace, name: ref.Name})
	}
	return list
}
