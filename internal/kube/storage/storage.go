// Package storage implements certmagic.Storage in a Kubernetes namespace. It stores certificates, accounts and
// challenge tokens in Secrets, and implements locks with Leases. All replicas share the storage: each replica can
// complete a challenge that another replica has started, and gets each certificate as soon as it is issued.
//
// The certificate of a site, its private key and its metadata are stored in one Secret of type kubernetes.io/tls. The
// value of every other key has its own Secret. Secrets and Leases without the label of this package are never changed.
//
// Reads are served from a cache in memory, which contains what the watch has reported and what this process has
// written. While the API server is unavailable, reads keep working and writes wait.
package storage

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/caddyserver/certmagic"
	"go.uber.org/zap"
	"golang.org/x/time/rate"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	coordinationv1 "k8s.io/client-go/kubernetes/typed/coordination/v1"
	corev1client "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"

	kubeclient "github.com/k8singress/k8singress/internal/kube/client"
	"github.com/k8singress/k8singress/internal/process/panics"
)

// Options select the cluster and the namespace of a storage.
type Options struct {
	// Kubeconfig is the path of a kubeconfig file. Empty means the cluster that this process runs in.
	Kubeconfig string
	// Namespace is the namespace of the Secrets and Leases. Empty means the namespace of the pod or of the kubeconfig.
	Namespace string
	// CopyFrom is the namespace of another storage. Its Secrets are copied to Namespace once, before the first read
	// from Namespace. If CopyFrom is empty, nothing is copied.
	CopyFrom string
	// Times are the durations of the locks. The zero value means defaultTimes.
	Times Times
}

// Storage implements certmagic.Storage.
type Storage struct {
	namespace string
	log       *zap.Logger
	api       corev1client.SecretInterface
	secrets   *secretCache
	// reflector fills secrets.
	reflector *cache.Reflector
	leases    *leaseCache
	locks     *locks
	lookups   *lookups
	// copier is nil if there is no other storage to copy. copied is closed when the copy is complete or not needed.
	copier *copier
	copied chan struct{}
	// sweeper is the client with which old Leases are deleted.
	sweeper coordinationv1.LeaseInterface

	mu          sync.Mutex
	subscribers map[*func(key string)]bool
}

// New reads the kubeconfig or the configuration of the pod. It does no other I/O. Reads from the storage wait until Run
// is called.
func New(o Options, log *zap.Logger) (*Storage, error) {
	kubeclient.QuietKlog(log)
	found, err := kubeclient.Find(o.Kubeconfig)
	if errors.Is(err, kubeclient.ErrNotInCluster) {
		return nil, fmt.Errorf("%w: set kubeconfig to connect to one", err)
	}
	if err != nil {
		return nil, err
	}
	if o.Namespace == "" {
		o.Namespace = found.Namespace
	}
	return newStorage(o, found.Config, log)
}

// newStorage creates a Storage with separate clients for Secrets, Leases, watches and the deletion of old Leases. Each
// client has its own rate limit, so that a queue of writes delays neither the renewal of a lock nor the watches.
func newStorage(o Options, config *rest.Config, log *zap.Logger) (*Storage, error) {
	var clients [4]kubernetes.Interface
	for i := range clients {
		var err error
		if clients[i], err = kubernetes.NewForConfig(config); err != nil {
			return nil, fmt.Errorf("creating a client for the API server: %w", err)
		}
	}
	s := &Storage{
		namespace: o.Namespace, log: log, api: clients[0].CoreV1().Secrets(o.Namespace), copied: make(chan struct{}),
		lookups: newLookups(), subscribers: map[*func(string)]bool{},
		sweeper: clients[3].CoordinationV1().Leases(o.Namespace),
	}
	s.secrets = newSecretCache(log, s.notify)
	s.reflector = cache.NewReflectorWithOptions(s.source(clients[2].CoreV1().RESTClient(), "secrets"), &corev1.Secret{},
		s.secrets, cache.ReflectorOptions{Name: "storage secrets"})
	s.leases = s.newLeaseCache(clients[2].CoordinationV1().RESTClient())
	s.locks = newLocks(clients[1].CoordinationV1().Leases(o.Namespace), s.leases, s.secrets, o.Times, log)
	var err error
	if s.copier, err = s.newCopier(o.CopyFrom, config); s.copier == nil {
		close(s.copied)
	}
	return s, err
}

// Run watches the Secrets and Leases until the context ends. It must be called only once. Locks that are still held
// when the context ends continue to be renewed until they are unlocked or the process ends.
func (s *Storage) Run(ctx context.Context) {
	if s.copier != nil {
		if s.copier.run(ctx) != nil {
			return
		}
		close(s.copied)
	}
	var group panics.Group
	group.Go("kubestorage/secrets", func() { s.reflector.RunWithContext(ctx) })
	group.Go("kubestorage/leases", func() { s.leases.informer.RunWithContext(ctx) })
	group.Go("kubestorage/locks", func() { s.locks.sweep(ctx, s.sweeper) })
	group.Wait()
}

// String returns the location of the storage for log messages.
func (s *Storage) String() string { return "kubernetes:" + s.namespace }

// Subscribe registers a function that is called with each key whose value was added, changed or removed by any process,
// until cancel is called. After the first list of Secrets, the function is called with all keys. It is called on
// several goroutines, and a slow function delays all other subscribers, so it must not block and must not write to the
// storage.
func (s *Storage) Subscribe(changed func(key string)) (cancel func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.subscribers[&changed] = true
	return func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		delete(s.subscribers, &changed)
	}
}

func (s *Storage) notify(keys []string) {
	s.mu.Lock()
	subscribers := slices.Collect(maps.Keys(s.subscribers))
	s.mu.Unlock()
	for _, changed := range subscribers {
		for _, key := range keys {
			(*changed)(key)
		}
	}
}

var (
	_ certmagic.Storage          = (*Storage)(nil)
	_ certmagic.TryLocker        = (*Storage)(nil)
	_ certmagic.LockLeaseRenewer = (*Storage)(nil)
)

// logInterval is the minimum time between two log messages about errors of a list or watch.
const logInterval = time.Minute

// source returns a ListerWatcher for the objects in the namespace that have the label of the storage. It retries while
// the API server is unavailable.
func (s *Storage) source(client rest.Interface, resource string) cache.ListerWatcher {
	source := cache.NewFilteredListWatchFromClient(client, resource, s.namespace,
		func(o *metav1.ListOptions) { o.LabelSelector = selector })
	logged := rate.Sometimes{Interval: logInterval}
	return kubeclient.Patient(source, func(err error) {
		logged.Do(func() {
			s.log.Warn("cannot read the "+resource+
				" of the storage: the last known ones stay in use, and the request is retried",
				zap.String("namespace", s.namespace), zap.Error(err))
		})
	})
}
