package engine

import (
	"iter"
	"time"

	"github.com/k8singress/k8singress/internal/model/ir"
	"github.com/k8singress/k8singress/internal/model/kinds"
	"github.com/k8singress/k8singress/internal/model/snapshot"
)

// secretsTimeout is how long a changed configuration waits until the Secrets to which it refers have been read. During
// startup there is no limit.
const secretsTimeout = 2 * time.Second

// secretsWait is the state of the wait for Secrets to which a changed configuration refers. Some sources read a Secret
// only after an Ingress refers to it. Without the wait, the Secret would be treated and reported as missing until it
// has been read.
type secretsWait struct {
	// since is the time when the wait started. It is zero if the loop is not waiting for Secrets.
	since time.Time
	// changed lists the changed objects that have been translated but are not applied yet, because their Secrets are
	// still being read.
	changed []ir.Ref
	// gaveUp is true if the wait timed out. In this case, the loop does not wait for Secrets again until all of them
	// have been read.
	gaveUp bool
}

func (u *secretsWait) waiting() bool { return !u.since.IsZero() }

// takeChanged returns the translated objects that have not been applied, and clears the list.
func (u *secretsWait) takeChanged() []ir.Ref {
	changed := u.changed
	u.changed = nil
	return changed
}

// secretsRead requests the needed Secrets from the source. It reports whether the configuration may be applied now: all
// of them have been read, or the wait has timed out.
func (l *loop) secretsRead() bool {
	u := &l.secretsWait
	source, ok := l.source.(Follower)
	switch {
	case !ok || source.Follow(l.needed()):
		u.gaveUp = false
	case !l.live.Table.Ready():
		return false
	case u.gaveUp:
	case u.waiting() && time.Since(u.since) >= secretsTimeout:
		u.gaveUp = true
	default:
		return false
	}
	u.since = time.Time{}
	return true
}

// waitForSecrets keeps a translated snapshot of the objects until the Secrets to which it refers have been read. The
// snapshot is rendered and applied afterwards.
func (l *loop) waitForSecrets(s *snapshot.Snapshot) {
	if !l.secretsWait.waiting() {
		l.secretsWait.since = time.Now()
	}
	l.postponeApply(s)
	l.hold.timer.Reset(secretsTimeout)
}

// restartPipeline ends the wait for Secrets and schedules another translation, with the newest snapshot, because the
// Secrets may have been read after the snapshot s was taken.
func (l *loop) restartPipeline(s *snapshot.Snapshot) {
	l.postponeApply(s)
	l.observe()
	l.hold.now()
}

// postponeApply stores which objects have changed in a snapshot that was translated but not applied. The list is needed
// when the snapshot is applied later.
func (l *loop) postponeApply(s *snapshot.Snapshot) {
	l.secretsWait.changed = s.Changed
	rest := *s
	rest.Changed, rest.Since = nil, s.Sequence
	l.pending = &rest
}

// releaseSecrets makes the source read only the Secrets that are needed now. The source then forgets Secrets to which
// only the previous configuration referred.
func (l *loop) releaseSecrets() {
	if source, ok := l.source.(Follower); ok {
		source.Follow(l.needed())
	}
}

// needed yields the Secrets to which Ingresses, options and the configuration in effect refer. A source forgets Secrets
// that are not requested, but the configuration in effect must keep working while a new configuration waits for its
// Secrets.
func (l *loop) needed() iter.Seq[ir.Ref] {
	return func(yield func(ir.Ref) bool) {
		for name := range l.config.Secrets() {
			if !yield(name.Of(kinds.Secret)) {
				return
			}
		}
		if name := l.settings.DefaultCertificate; !name.IsZero() && !yield(name.Of(kinds.Secret)) {
			return
		}
		l.translator.Secrets()(yield)
	}
}
