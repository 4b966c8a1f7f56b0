package kubestorage

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"go.uber.org/zap"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"

	"github.com/k8singress/k8singress/internal/kubeclient"
)

// quiet is how long a watch that fails says nothing more in the log.
const quiet = time.Minute

// watcher is one list and watch of the objects with our label in the namespace.
type watcher struct {
	reflector *cache.Reflector
	// synced is closed when the first list has been taken.
	synced chan struct{}
	first  sync.Once
	log    *zap.Logger
	// logged is when a failure was last logged, in nanoseconds.
	logged atomic.Int64
}

func (s *Storage) watcher(client rest.Interface, resource string, example runtime.Object, sink sink) *watcher {
	w := &watcher{synced: make(chan struct{}), log: s.log.With(zap.String("namespace", s.namespace))}
	source := cache.NewFilteredListWatchFromClient(client, resource, s.namespace,
		func(o *metav1.ListOptions) { o.LabelSelector = selector })
	sink.listed = func() { w.first.Do(func() { close(w.synced) }) }
	failed := func(err error) { w.failed(resource, err) }
	w.reflector = cache.NewReflectorWithOptions(kubeclient.Patient(source, failed), example, sink,
		cache.ReflectorOptions{Name: "storage " + resource})
	return w
}

func (w *watcher) run(ctx context.Context) { w.reflector.RunWithContext(ctx) }

func (w *watcher) failed(resource string, err error) {
	now, last := time.Now().UnixNano(), w.logged.Load()
	if time.Duration(now-last) > quiet && w.logged.CompareAndSwap(last, now) {
		w.log.Warn("cannot read the "+resource+" of the storage: what is known of them stays in use, "+
			"and the API server is asked again", zap.Error(err))
	}
}

// sink is where a reflector puts objects, in the order of their versions, from one goroutine.
type sink struct {
	set     func(object any)
	drop    func(object any)
	replace func(objects []any, version string)
	listed  func()
}

func (s sink) Add(object any) error {
	s.set(object)
	return nil
}

func (s sink) Update(object any) error { return s.Add(object) }

func (s sink) Delete(object any) error {
	s.drop(object)
	return nil
}

func (s sink) Replace(objects []any, version string) error {
	s.replace(objects, version)
	s.listed()
	return nil
}

func (s sink) Resync() error { return nil }

func (s *Storage) watchSecrets(client rest.Interface) *watcher {
	return s.watcher(client, "secrets", &corev1.Secret{}, sink{
		set: func(object any) {
			if r := s.read(object); r != nil {
				s.index.see(r)
			}
		},
		drop: func(object any) {
			secret := object.(*corev1.Secret)
			s.index.miss(secret.Name, secret.ResourceVersion)
		},
		replace: func(objects []any, version string) {
			all := make(map[string]*record, len(objects))
			for _, object := range objects {
				if r := s.read(object); r != nil {
					all[r.secret.Name] = r
				}
			}
			s.index.replace(all, version)
		},
	})
}

func (s *Storage) read(object any) *record {
	r, err := readRecord(object.(*corev1.Secret))
	if err != nil {
		s.log.Warn("left out of the storage", zap.Error(err))
		return nil
	}
	return r
}

func (s *Storage) watchLeases(client rest.Interface) *watcher {
	return s.watcher(client, "leases", &coordinationv1.Lease{}, sink{
		set:  func(object any) { s.table.see(object.(*coordinationv1.Lease)) },
		drop: func(object any) { s.table.miss(object.(*coordinationv1.Lease)) },
		replace: func(objects []any, _ string) {
			all := make([]*coordinationv1.Lease, len(objects))
			for i, object := range objects {
				all[i] = object.(*coordinationv1.Lease)
			}
			s.table.replace(all)
		},
	})
}
