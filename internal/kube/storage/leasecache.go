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
)

// byHost is the index of Leases by the host for which a certificate is obtained under the lock.
const byHost = "host"

// leaseCache holds the Leases that an informer has listed, and records for each Lease when it last changed. A lock may
// be taken over if its Lease was not renewed for its duration. This is measured with the local clock and not with the
// times in the Lease, which other processes have written.
type leaseCache struct {
	informer cache.Controller
	listed   cache.Indexer

	mu       sync.Mutex
	observed map[string]observation
	// waiting has the channels of whenFree by the name of the Lease. Only one goroutine of the process waits for each
	// Lease.
	waiting map[string]chan struct{}
}

// observation is the newest state of a Lease and the time when it was first seen.
type observation struct {
	lease *coordinationv1.Lease
	since time.Time
}

func (s *Storage) newLeaseCache(client rest.Interface) *leaseCache {
	c := &leaseCache{observed: map[string]observation{}, waiting: map[string]chan struct{}{}}
	listed, informer := cache.NewInformerWithOptions(cache.InformerOptions{
		ListerWatcher: s.source(client, "leases"), ObjectType: &coordinationv1.Lease{}, Handler: c, Transform: trim,
		Indexers: cache.Indexers{byHost: hostsOf},
	})
	c.informer, c.listed = informer, listed.(cache.Indexer)
	return c
}

// recordOf decodes a Lease as client-go's leader election does.
func recordOf(lease *coordinationv1.Lease) *resourcelock.LeaderElectionRecord {
	return resourcelock.LeaseSpecToLeaderElectionRecord(&lease.Spec)
}

func holderOf(lease *coordinationv1.Lease) string { return recordOf(lease).HolderIdentity }

// durationOf returns how long a Lease is valid without renewal, as set by its holder.
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

// OnAdd is called by the informer.
func (c *leaseCache) OnAdd(object any, _ bool) { c.OnUpdate(nil, object) }

// OnUpdate is called by the informer.
func (c *leaseCache) OnUpdate(_, object any) {
	lease := object.(*coordinationv1.Lease)
	c.mu.Lock()
	defer c.mu.Unlock()
	c.observe(lease)
	if holderOf(lease) == "" {
		c.wake(lease.Name)
	}
}

// OnDelete is called by the informer. The object may be a tombstone that only has the key.
func (c *leaseCache) OnDelete(object any) {
	key, err := cache.DeletionHandlingObjectToName(object)
	if err != nil {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.observed, key.Name)
	c.wake(key.Name)
}

// remaining returns how long the Lease has to stay unchanged from now until its lock is free. The argument is the
// current state of the Lease.
func (c *leaseCache) remaining(lease *coordinationv1.Lease) time.Duration {
	if holderOf(lease) == "" {
		return 0
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	return max(0, durationOf(lease)-time.Since(c.observe(lease)))
}

// observe records a state of a Lease and returns the time since when it was neither acquired nor renewed. Changes of
// labels are ignored.
func (c *leaseCache) observe(lease *coordinationv1.Lease) time.Time {
	since := time.Now()
	known, ok := c.observed[lease.Name]
	if ok && known.lease.UID == lease.UID && equality.Semantic.DeepEqual(known.lease.Spec, lease.Spec) {
		since = known.since
	}
	c.observed[lease.Name] = observation{lease, since}
	return since
}

// has reports whether the Lease exists as far as the cache knows.
func (c *leaseCache) has(name string) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	_, ok := c.observed[name]
	return ok
}

// issues reports whether this or another process holds the lock for obtaining a certificate for a host.
func (c *leaseCache) issues(host string) bool {
	names, _ := c.listed.IndexKeys(byHost, host)
	return len(names) > 0
}

// whenFree returns a channel that receives a value when the Lease is deleted or has no holder any more.
func (c *leaseCache) whenFree(name string) (free <-chan struct{}, cancel func()) {
	woken := make(chan struct{}, 1)
	c.mu.Lock()
	defer c.mu.Unlock()
	c.waiting[name] = woken
	return woken, func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		delete(c.waiting, name)
	}
}

func (c *leaseCache) wake(name string) {
	select {
	case c.waiting[name] <- struct{}{}:
	default:
	}
}

// expired returns the Leases, with or without a holder, that have not changed for their duration plus the given time.
func (c *leaseCache) expired(after time.Duration) []*coordinationv1.Lease {
	c.mu.Lock()
	defer c.mu.Unlock()
	var old []*coordinationv1.Lease
	for _, o := range c.observed {
		if time.Since(o.since) > durationOf(o.lease)+after {
			old = append(old, o.lease)
		}
	}
	return old
}
