package kubestorage

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

// byHost is the index of Leases by the host that a certificate is asked for under the lock.
const byHost = "host"

// leaseCache holds the Leases that an informer has listed, and for each Lease the time since when it has not changed. A lock
// whose Lease has not been renewed for its duration, by the clock here and not by the times that others wrote into it, may
// be taken over.
type leaseCache struct {
	informer cache.Controller
	listed   cache.Indexer

	mu       sync.Mutex
	observed map[string]observation
	// waiting are the channels of whenFree by the name of the Lease: one goroutine of the process waits for each.
	waiting map[string]chan struct{}
}

// observation is the newest state of a Lease, and when it was first seen.
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

// recordOf reads a Lease as client-go's leader election does.
func recordOf(lease *coordinationv1.Lease) *resourcelock.LeaderElectionRecord {
	return resourcelock.LeaseSpecToLeaderElectionRecord(&lease.Spec)
}

func holderOf(lease *coordinationv1.Lease) string { return recordOf(lease).HolderIdentity }

// durationOf is how long a Lease is good without renewal, as its holder wants it.
func durationOf(lease *coordinationv1.Lease) time.Duration {
	if seconds := recordOf(lease).LeaseDurationSeconds; seconds > 0 {
		return time.Duration(seconds) * time.Second
	}
	return defaultTimes.Duration
}

// hostsOf is a cache.IndexFunc: the host that the holder of a Lease asks a certificate for, in the form that it has in keys.
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

// OnDelete is called by the informer, which may know no more than the key.
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

// remaining takes a Lease as it is now, and returns how long it must not change until its lock is free.
func (c *leaseCache) remaining(lease *coordinationv1.Lease) time.Duration {
	if holderOf(lease) == "" {
		return 0
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	return max(0, durationOf(lease)-time.Since(c.observe(lease)))
}

// observe returns since when a Lease was neither taken nor renewed. Changes of its labels do not count.
func (c *leaseCache) observe(lease *coordinationv1.Lease) time.Time {
	since := time.Now()
	known, ok := c.observed[lease.Name]
	if ok && known.lease.UID == lease.UID && equality.Semantic.DeepEqual(known.lease.Spec, lease.Spec) {
		since = known.since
	}
	c.observed[lease.Name] = observation{lease, since}
	return since
}

// has returns whether the Lease has been seen, and not its deletion.
func (c *leaseCache) has(name string) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	_, ok := c.observed[name]
	return ok
}

// issues returns whether a lock is held, here or elsewhere, under which a certificate is asked for a host.
func (c *leaseCache) issues(host string) bool {
	names, _ := c.listed.IndexKeys(byHost, host)
	return len(names) > 0
}

// whenFree returns a channel that receives a value when a Lease is deleted, or has no holder any more.
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

// expired returns the Leases that have not changed for some time after their duration, with or without a holder.
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
