package engine

import (
	"iter"
	"time"

	"github.com/k8singress/k8singress/internal/ir"
	"github.com/k8singress/k8singress/internal/kinds"
	"github.com/k8singress/k8singress/internal/snapshot"
)

// secretsTimeout is how long a change waits for the Secrets that it refers to. At the start there is no limit.
const secretsTimeout = 2 * time.Second

// secretsWait is the wait for Secrets: a source may begin to read them only when an Ingress refers to them. Without the wait
// a Secret would be reported, and served, as missing until then.
type secretsWait struct {
	// since is when the wait began; it is zero without one.
	since time.Time
	// changed are the objects that were translated meanwhile, and wait to be applied.
	changed []ir.Ref
	// gaveUp says that the wait took too long. There is no other one until all Secrets have been read.
	gaveUp bool
}

func (u *secretsWait) waiting() bool { return !u.since.IsZero() }

// takeChanged returns the objects that wait, and forgets them.
func (u *secretsWait) takeChanged() []ir.Ref {
	changed := u.changed
	u.changed = nil
	return changed
}

// secretsRead asks the source for the Secrets that are needed, and says whether the pipeline may go on.
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

// restartPipeline ends the wait: the Secrets that were read last may be newer than the snapshot.
func (l *loop) restartPipeline(s *snapshot.Snapshot) {
	l.postponeApply(s)
	l.observe()
	l.hold.now()
}

// postponeApply keeps the objects that were translated until they are applied.
func (l *loop) postponeApply(s *snapshot.Snapshot) {
	l.secretsWait.changed = s.Changed
	rest := *s
	rest.Changed, rest.Since = nil, s.Sequence
	l.pending = &rest
}

// releaseSecrets has the source forget the Secrets that only the previous configuration needed.
func (l *loop) releaseSecrets() {
	if source, ok := l.source.(Follower); ok {
		source.Follow(l.needed())
	}
}

// needed yields the Secrets that Ingresses and options refer to, and those of the configuration in effect: a source forgets a
// Secret that it is not asked for, and no client is to be refused for the lack of one during a wait.
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
