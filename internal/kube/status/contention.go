package status

import (
	"cmp"
	"slices"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/k8singress/k8singress/internal/model/ir"
	"github.com/k8singress/k8singress/internal/model/report"
	"github.com/k8singress/k8singress/internal/process/panics"
)

const (
	// maxOverwrites is how often the status of an object may be overwritten by another controller within
	// contentionWindow. With one more, this controller stops writing the status for contentionPause. Otherwise two
	// controllers that serve the same class would write forever.
	maxOverwrites    = 5
	contentionWindow = 10 * time.Minute
	contentionPause  = time.Hour
)

// contention decides for which objects the status is not written for some time, because another controller keeps
// overwriting it. It is safe for concurrent use.
type contention struct {
	// changed is called when a pause has begun or ended, which changes the result of verdicts.
	changed func()

	mu      sync.Mutex
	objects map[ir.Ref]*contended
}

// contended describes the writes to the status of one object.
type contended struct {
	uid types.UID
	// patch is the status that was written last. overwrites are the times at which it was written again.
	patch      string
	overwrites []time.Time
	// until is when the pause ends. It is zero if there is no pause. resumed then calls contention.changed.
	until   time.Time
	resumed *time.Timer
}

func newContention(changed func()) *contention {
	return &contention{changed: changed, objects: map[ir.Ref]*contended{}}
}

// allows reports whether the status in a change of an object may be written now.
func (c *contention) allows(ref ir.Ref, change *Change, now time.Time) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	o := c.objects[ref]
	switch {
	case o == nil:
		return true
	case o.uid != change.UID || o.paused() && !now.Before(o.until):
		c.remove(ref)
		return true
	case o.paused():
		return false
	case o.patch != change.Status:
		return true
	}
	o.overwrites = slices.DeleteFunc(o.overwrites, func(t time.Time) bool { return now.Sub(t) > contentionWindow })
	if len(o.overwrites) < maxOverwrites {
		return true
	}
	o.until = now.Add(contentionPause)
	c.changed()
	// The verdict must end with the pause, also if there is nothing to write then.
	o.resumed = panics.AfterFunc("status/contention", contentionPause, c.changed)
	return false
}

// remove removes an object. If its pause has not ended yet, it ends now. The caller holds the lock.
func (c *contention) remove(ref ir.Ref) {
	if timer := c.objects[ref].resumed; timer != nil && timer.Stop() {
		c.changed()
	}
	delete(c.objects, ref)
}

func (o *contended) paused() bool { return !o.until.IsZero() }

// wrote records that the status in a change of an object was written.
func (c *contention) wrote(ref ir.Ref, change *Change, now time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	o := c.objects[ref]
	if o == nil || o.uid != change.UID || o.patch != change.Status {
		c.objects[ref] = &contended{uid: change.UID, patch: change.Status}
		return
	}
	o.overwrites = append(o.overwrites, now)
}

// forget removes the objects that no longer exist, and the pauses that have ended.
func (c *contention) forget(exists func(ir.Ref) bool, now time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for ref, o := range c.objects {
		if !exists(ref) || o.paused() && !now.Before(o.until) {
			c.remove(ref)
		}
	}
}

// reset removes all objects. It is called when this replica becomes the leader or is no longer the leader.
func (c *contention) reset() {
	c.mu.Lock()
	defer c.mu.Unlock()
	for ref := range c.objects {
		c.remove(ref)
	}
}

// verdicts returns a problem for each object whose status is not written now.
func (c *contention) verdicts(now time.Time) (all []*report.Verdict) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for ref, o := range c.objects {
		if !o.paused() || !now.Before(o.until) {
			continue
		}
		all = append(all, &report.Verdict{Object: ref, Problems: []report.Problem{{
			Severity: report.Warning, Reason: report.StatusConflict, Field: "status",
			Message: "another controller has overwritten the status more than five times in ten minutes, so it is " +
				"not written for an hour: let only one controller serve the class, or disable the status of one of " +
				"them (here with the option status off)",
		}}})
	}
	slices.SortFunc(all, func(a, b *report.Verdict) int { return cmp.Compare(a.Object.String(), b.Object.String()) })
	return all
}
