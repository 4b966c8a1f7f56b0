package kubestorage

import (
	"fmt"
	"sync"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// table is what is known of the Leases: since when each of them has not changed. A lock whose Lease has not been renewed for
// its duration, by the clock here and not by the times that others wrote into it, may be taken over.
type table struct {
	mu sync.Mutex
	// sightings are the Leases by name; those that are listed are known from the watch.
	sightings map[string]*sighting
	// hosts are those that a listed lock says a certificate is asked for, with the number of locks.
	hosts map[string]int
	// waiting are woken up when a Lease is gone, or nobody has it any more.
	waiting map[string]map[chan struct{}]bool
}

// sighting is the newest state of a Lease, and when it was first seen.
type sighting struct {
	state  string
	since  time.Time
	lease  *coordinationv1.Lease
	listed bool
}

func newTable() *table {
	return &table{sightings: map[string]*sighting{}, hosts: map[string]int{}, waiting: map[string]map[chan struct{}]bool{}}
}

// stateOf changes whenever a Lease is taken or renewed, and not by what people do to its labels.
func stateOf(lease *coordinationv1.Lease) string {
	return fmt.Sprint(lease.UID, holderOf(lease), timeOf(lease.Spec.AcquireTime), timeOf(lease.Spec.RenewTime))
}

func timeOf(t *metav1.MicroTime) int64 {
	if t == nil {
		return 0
	}
	return t.UnixMicro()
}

func holderOf(lease *coordinationv1.Lease) string {
	if lease.Spec.HolderIdentity == nil {
		return ""
	}
	return *lease.Spec.HolderIdentity
}

// durationOf is how long a Lease is good without renewal, as its holder wants it.
func durationOf(lease *coordinationv1.Lease) time.Duration {
	if lease.Spec.LeaseDurationSeconds == nil || *lease.Spec.LeaseDurationSeconds <= 0 {
		return usual.Duration
	}
	return time.Duration(*lease.Spec.LeaseDurationSeconds) * time.Second
}

// left takes a Lease as it is now, and returns how long it must not change until nobody holds it any more.
func (t *table) left(lease *coordinationv1.Lease) time.Duration {
	if holderOf(lease) == "" {
		return 0
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	seen := t.sight(lease, false)
	return max(0, durationOf(lease)-time.Since(seen.since))
}

func (t *table) sight(lease *coordinationv1.Lease, listed bool) *sighting {
	state := stateOf(lease)
	known := t.sightings[lease.Name]
	if known == nil || known.state != state {
		if known != nil {
			t.count(known, -1)
			listed = listed || known.listed
		}
		known = &sighting{state: state, since: time.Now(), lease: lease, listed: listed}
		t.sightings[lease.Name] = known
		t.count(known, 1)
	}
	if listed && !known.listed {
		known.listed = true
		t.count(known, 1)
	}
	return known
}

// count keeps the hosts of listed Leases that somebody holds.
func (t *table) count(s *sighting, change int) {
	host, ok := issued(s.lease.Annotations[lockAnnotation])
	if !ok || !s.listed || holderOf(s.lease) == "" {
		return
	}
	if t.hosts[host] += change; t.hosts[host] <= 0 {
		delete(t.hosts, host)
	}
}

// listed says whether the watch has told of a Lease.
func (t *table) listed(name string) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	known := t.sightings[name]
	return known != nil && known.listed
}

func (t *table) issues(host string) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.hosts[host] > 0
}

func (t *table) see(lease *coordinationv1.Lease) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.sight(lease, true)
	if holderOf(lease) == "" {
		t.wake(lease.Name)
	}
}

func (t *table) miss(lease *coordinationv1.Lease) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.drop(lease.Name)
}

func (t *table) drop(name string) {
	if known := t.sightings[name]; known != nil {
		t.count(known, -1)
		delete(t.sightings, name)
	}
	t.wake(name)
}

func (t *table) replace(all []*coordinationv1.Lease) {
	t.mu.Lock()
	defer t.mu.Unlock()
	there := map[string]bool{}
	for _, lease := range all {
		there[lease.Name] = true
		t.sight(lease, true)
	}
	for name := range t.sightings {
		if !there[name] {
			t.drop(name)
		}
	}
}

// wait returns a channel that gets something when a Lease is gone, or nobody has it.
func (t *table) wait(name string) (gone chan struct{}, cancel func()) {
	gone = make(chan struct{}, 1)
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.waiting[name] == nil {
		t.waiting[name] = map[chan struct{}]bool{}
	}
	t.waiting[name][gone] = true
	return gone, func() {
		t.mu.Lock()
		defer t.mu.Unlock()
		delete(t.waiting[name], gone)
		if len(t.waiting[name]) == 0 {
			delete(t.waiting, name)
		}
	}
}

func (t *table) wake(name string) {
	for gone := range t.waiting[name] {
		select {
		case gone <- struct{}{}:
		default:
		}
	}
}

// old returns the listed Leases that have not changed for some time after they ran out, or would have.
func (t *table) old(after time.Duration) []*coordinationv1.Lease {
	t.mu.Lock()
	defer t.mu.Unlock()
	var old []*coordinationv1.Lease
	for _, known := range t.sightings {
		if known.listed && time.Since(known.since) > durationOf(known.lease)+after {
			old = append(old, known.lease)
		}
	}
	return old
}
