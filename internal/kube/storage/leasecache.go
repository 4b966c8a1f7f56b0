package storage

import (
	"strings"
	"sync"
	"time"

	"github.com/caddyserver/certmagic"
	coordinationv1 "k8s.io/api/coordination/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/leaderelection/resourcelock"

	"github.com/k8singress/k8singress/internal/model/shrinking"
	"github.com/k8singress/k8singress/internal/process/wake"
)

// byHost is the name of the index that finds, for a host, the Lease that is held while a certificate for the host is
// obtained.
const byHost = "host"

// leaseCache holds the Leases that an informer has listed, and records when each Lease last changed. A lock is free if
// its Lease has not changed for the duration of the Lease. This time is measured with the local clock, because the
// times in the Lease are from the clocks of other processes.
type leaseCache struct {
	informer cache.Controller
	listed   cache.Indexer

	mu       sync.Mutex
	observed shrinking.Map[string, observation]
	// waiting holds the channels that whenFree has returned, by the name of the Lease. For each Lease, at most one
	// goroutine of this process waits.
	waiting map[string]wake.Signal
}

// observation is the newest known state of a Lease, and the time when the Lease was first seen in this state.
type observation struct {
	lease *coordinationv1.Lease
	since time.Time
}

func (s *Storage) newLeaseCache(client rest.Interface) *leaseCache {
	c := &leaseCache{waiting: map[string]wake.Signal{}}
	listed, informer := cache.NewInformerWithOptions(cache.InformerOptions{
		ListerWatcher: s.source(client, "leases"), ObjectType: &coordinationv1.Lease{}, Handler: c, Transform: trim,
		Indexers: cache.Indexers{byHost: hostsOf},
	})
	c.informer, c.listed = informer, listed.(cache.Indexer)
	return c
}

// recordOf decodes the spec of a Lease like client-go's leader election.
func recordOf(lease *coordinationv1.Lease) *resourcelock.LeaderElectionRecord {
	return resourcelock.LeaseSpecToLeaderElectionRecord(&lease.Spec)
}

func holderOf(lease *coordinationv1.Lease) string { return recordOf(lease).HolderIdentity }

// durationOf returns how long a Lease is valid after a renewal. The holder of the Lease sets this duration.
func durationOf(lease *coordinationv1.Lease) time.Duration {
	if seconds := recordOf(lease).LeaseDurationSeconds; seconds > 0 {
		return time.Duration(seconds) * time.Second
	}
	return defaultTimes.Duration
}

// hostsOf is a cache.IndexFunc. It returns the host for which the holder of a Lease obtains a certificate, in the form
// that is used in keys.
func hostsOf(object any) ([]string, error) {
	lease := object.(*coordinationv1.Lease)
	if name, ok := strings.CutPrefix(lease.Annotations[lockAnnotation], issuing); ok && holderOf(lease) != "" {
		return []string{certmagic.StorageKeys.Safe(name)}, nil
	}
	return nil, nil
}

// OnAdd implements cache.ResourceEventHandler.
func (c *leaseCache) OnAdd(object any, _ bool) { c.OnUpdate(nil, object) }

// OnUpdate implements cache.ResourceEventHandler.
func (c *leaseCache) OnUpdate(_, object any) {
	lease := object.(*coordinationv1.Lease)
	c.mu.Lock()
	defer c.mu.Unlock()
	c.observe(lease)
	if holderOf(lease) == "" {
		c.waiting[lease.Name].Send()
	}
}

// OnDelete implements cache.ResourceEventHandler. The object may be a tombstone (cache.DeletedFinalStateUnknown) that
// only contains the key.
func (c *leaseCache) OnDelete(object any) {
	key, err := cache.DeletionHandlingObjectToName(object)
	if err != nil {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.observed.Delete(key.Name)
	c.waiting[key.Name].Send()
}

// remaining returns the time until the lock of a Lease is free, if the Lease does not change until then. lease is the
// current state of the Lease.
func (c *leaseCache) remaining(lease *coordinationv1.Lease) time.Duration {
	if holderOf(lease) == "" {
		return 0
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	return max(0, durationOf(lease)-time.Since(c.observe(lease)))
}

// observe records the state of a Lease, and returns the time when the Lease was first seen with this spec, which
// changes with each renewal. Changes of labels are ignored. The caller must hold c.mu.
func (c *leaseCache) observe(lease *coordinationv1.Lease) time.Time {
	since := time.Now()
	known, ok := c.observed.Find(lease.Name)
	if ok && known.lease.UID == lease.UID && equality.Semantic.DeepEqual(known.lease.Spec, lease.Spec) {
		since = known.since
	}
	c.observed.Set(lease.Name, observation{lease, since})
	return since
}

// has reports whether the cache contains the Lease.
func (c *leaseCache) has(name string) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.observed.Has(name)
}

// issues reports whether this or another process holds the lock for obtaining a certificate for a host.
func (c *leaseCache) issues(host string) bool {
	names, _ := c.listed.IndexKeys(byHost, host)
	return len(names) > 0
}

// whenFree returns a channel that receives a value when the Lease is deleted or has no holder any more.
func (c *leaseCache) whenFree(name string) (free <-chan struct{}, cancel func()) {
	woken := wake.New()
	c.mu.Lock()
	defer c.mu.Unlock()
	c.waiting[name] = woken
	return woken, func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		delete(c.waiting, name)
	}
}

// expired returns the Leases that have not changed for their duration plus the time after. It includes Leases without a
// holder.
func (c *leaseCache) expired(after time.Duration) []*coordinationv1.Lease {
	c.mu.Lock()
	defer c.mu.Unlock()
	var old []*coordinationv1.Lease
	for o := range c.observed.Values() {
		if time.Since(o.since) > durationOf(o.lease)+after {
			old = append(old, o.lease)
		}
	}
	return old
}
