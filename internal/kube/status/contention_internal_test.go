package status

import (
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/k8singress/k8singress/internal/model/ir"
	"github.com/k8singress/k8singress/internal/model/kinds"
)

// TestContention checks when a status that is overwritten again and again is written.
func TestContention(t *testing.T) {
	ref := ir.Ref{Kind: kinds.Ingress, Namespace: "a", Name: "web"}
	begin := time.Unix(1, 0)
	change := func(uid, patch string) *Change { return &Change{UID: types.UID(uid), Status: patch} }
	// step is an attempt to write, some time after the begin.
	type step struct {
		after      time.Duration
		uid, patch string
		want       bool
	}
	each := func(every time.Duration, n int) (all []step) {
		for i := range n {
			all = append(all, step{time.Duration(i) * every, "1", "ours", true})
		}
		return all
	}
	for name, steps := range map[string][]step{
		"five times in ten minutes": each(time.Minute, 6),
		"slowly":                    each(3*time.Minute, 20),
		"six times": append(each(time.Second, 6), step{6 * time.Second, "1", "ours", false},
			step{59 * time.Minute, "1", "ours", false}, step{59 * time.Minute, "1", "other", false},
			step{61 * time.Minute, "1", "ours", true}, step{62 * time.Minute, "1", "ours", true}),
		"another address": append(each(time.Second, 6), step{6 * time.Second, "1", "other", true}),
		"another object":  append(each(time.Second, 6), step{6 * time.Second, "2", "ours", true}),
		"another object after a pause": append(each(time.Second, 6), step{7 * time.Second, "1", "ours", false},
			step{8 * time.Second, "2", "ours", true}),
	} {
		changes := 0
		c := newContention(func() { changes++ })
		paused := false
		for _, s := range steps {
			now := begin.Add(s.after)
			got := c.allows(ref, change(s.uid, s.patch), now)
			if got {
				c.wrote(ref, change(s.uid, s.patch), now)
			}
			if got != s.want || (len(c.verdicts(now)) == 1) != !got {
				t.Errorf("%s: after %s: %v with %v", name, s.after, got, c.verdicts(now))
			}
			if paused == got {
				changes--
			}
			paused = !got
		}
		if changes != 0 {
			t.Errorf("%s: %d changes too many are reported", name, changes)
		}
		c.forget(func(ir.Ref) bool { return false }, begin)
		if len(c.objects) > 0 {
			t.Errorf("%s: an object that was deleted is kept", name)
		}
	}
}

// TestVerdictEndsWithThePause checks that the verdict about an object ends after an hour, and that this is reported,
// also if there is nothing to write for the object.
func TestVerdictEndsWithThePause(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		changes := make(chan int, 2)
		c := newContention(func() { changes <- 1 })
		ref, change := ir.Ref{Kind: kinds.Ingress, Namespace: "a", Name: "web"}, &Change{UID: "1", Status: "ours"}
		for c.allows(ref, change, time.Now()) {
			c.wrote(ref, change, time.Now())
		}
		<-changes
		<-time.After(contentionPause - time.Second) // The test uses the fake clock of synctest.
		synctest.Wait()
		if n := len(c.verdicts(time.Now())); n != 1 || len(changes) != 0 {
			t.Errorf("before the end of the pause: %d verdicts, %d changes", n, len(changes))
		}
		<-time.After(time.Second)
		synctest.Wait()
		if n := len(c.verdicts(time.Now())); n != 0 || len(changes) != 1 {
			t.Errorf("after the pause: %d verdicts, %d changes", n, len(changes))
		}
	})
}

// TestResetEndsPauses checks that the end of the term ends all pauses, and that this is reported once.
func TestResetEndsPauses(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		changes := make(chan int, 3)
		c := newContention(func() { changes <- 1 })
		ref, change := ir.Ref{Kind: kinds.Ingress, Namespace: "a", Name: "web"}, &Change{UID: "1", Status: "ours"}
		for c.allows(ref, change, time.Now()) {
			c.wrote(ref, change, time.Now())
		}
		<-changes
		if c.reset(); len(changes) != 1 {
			t.Errorf("at the end of the term, %d changes are reported", len(changes))
		}
		<-time.After(2 * contentionPause)
		synctest.Wait()
		if n := len(c.verdicts(time.Now())); n != 0 || len(changes) != 1 {
			t.Errorf("there are %d verdicts, and %d changes are reported", n, len(changes))
		}
	})
}
