package engine

import (
	"iter"
	"time"

	"github.com/k8singress/k8singress/internal/model/ir"
	"github.com/k8singress/k8singress/internal/model/kinds"
	"github.com/k8singress/k8singress/internal/model/snapshot"
)

// secretsTimeout is how long a change waits for the Secrets to which it refers. During startup there is no limit.
const secretsTimeout = 2 * time.Second

// secretsWait is the state of a wait for Secrets. A source may read Secrets only after an Ingress refers to them.
// Without waiting, such a Secret would be treated and reported as missing until it is read.
type secretsWait struct {
	// since is the start of the wait. Zero means that no change is waiting.
	since time.Time
	// changed are the objects that were translated during the wait and must still be applied.
	changed []ir.Ref
	// gaveUp means that the wait timed out. No new wait starts until all Secrets have been read.
	gaveUp bool
}

func (u *secretsWait) waiting() bool { return !u.since.IsZero() }

// takeChanged returns the waiting objects and clears the list.
func (u *secretsWait) takeChanged() []ir.Ref {
	changed := u.changed
	u.changed = nil
	return changed
}

// secretsRead requests the needed Secrets from the source, and reports whether the pipeline may continue.
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

// waitForSecrets postpones the rest of the pipeline for a snapshot.
func (l *loop) waitForSecrets(s *snapshot.Snapshot) {
	if !l.secretsWait.waiting() {
		l.secretsWait.since = time.Now()
	}
	l.postponeApply(s)
	l.hold.timer.Reset(secretsTimeout)
}

// restartPipeline ends the wait and runs the pipeline again, because the Secrets may be newer than the snapshot.
func (l *loop) restartPipeline(s *snapshot.Snapshot) {
	l.postponeApply(s)
	l.observe()
	l.hold.now()
}

// postponeApply keeps the list of translated objects until they are applied.
func (l *loop) postponeApply(s *snapshot.Snapshot) {
	l.secretsWait.changed = s.Changed
	rest := *s
	rest.Changed, rest.Since = nil, s.Sequence
	l.pending = &rest
}

// releaseSecrets makes the source forget the Secrets that only the previous configuration needed.
func (l *loop) releaseSecrets() {
	if source, ok := l.source.(Follower); ok {
		source.Follow(l.needed())
	}
}

// needed yields the Secrets to which Ingresses and options refer, and the Secrets that the configuration in effect
// uses. The latter are included because a source forgets Secrets that are not requested, and clients must not be
// rejected during a wait.
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
