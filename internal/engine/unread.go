package engine

import (
	"iter"
	"time"

	"github.com/k8singress/k8singress/internal/ir"
	"github.com/k8singress/k8singress/internal/kinds"
	"github.com/k8singress/k8singress/internal/snapshot"
)

// patience is how long what is served waits for Secrets that are new to it. At the start it waits for as long as it takes.
const patience = 2 * time.Second

// unread is what waits for Secrets to be read: a source may begin to read them only when an Ingress refers to them. It
// would be wrong to say, and to serve, that there are none until then.
type unread struct {
	// since is when the waiting began; it is zero while nothing waits.
	since time.Time
	// changed is what was translated meanwhile, and waits to be applied.
	changed []ir.Ref
	// inVain says that the waiting took too long. Nothing waits again until all Secrets have been read.
	inVain bool
}

func (u *unread) waiting() bool { return !u.since.IsZero() }

// left returns what waited, and begins anew.
func (u *unread) left() []ir.Ref {
	changed := u.changed
	u.changed = nil
	return changed
}

// secretsRead tells the source which Secrets are needed, and says whether to go on without waiting for them.
func (e *Engine) secretsRead() bool {
	u := &e.unread
	source, ok := e.source.(Follower)
	switch {
	case !ok || source.Follow(e.needed()):
		u.inVain = false
	case !e.live.Table.Ready():
		return false
	case u.inVain:
	case u.waiting() && time.Since(u.since) >= patience:
		u.inVain = true
	default:
		return false
	}
	u.since = time.Time{}
	return true
}

// awaitSecrets leaves the work on a snapshot for later.
func (e *Engine) awaitSecrets(s *snapshot.Snapshot) {
	if !e.unread.waiting() {
		e.unread.since = time.Now()
	}
	e.setAside(s)
	e.hold.later(patience)
}

// lookAgain ends the waiting: the Secrets that were read last may be newer than the snapshot.
func (e *Engine) lookAgain(s *snapshot.Snapshot) {
	e.setAside(s)
	e.observe()
	e.hold.now()
}

// setAside keeps what was translated until it is applied.
func (e *Engine) setAside(s *snapshot.Snapshot) {
	e.unread.changed = s.Changed
	rest := *s
	rest.Changed, rest.Since = nil, s.Sequence
	e.pending = &rest
}

// dropSecrets tells the source which Secrets were needed by what has just been replaced only.
func (e *Engine) dropSecrets() {
	if source, ok := e.source.(Follower); ok {
		source.Follow(e.needed())
	}
}

// needed are the Secrets that Ingresses and options refer to, and those of what is in effect: a source has nothing of those that
// it is not asked for, and while others are waited for, nobody is to be turned away for the lack of them.
func (e *Engine) needed() iter.Seq[ir.Ref] {
	return func(yield func(ir.Ref) bool) {
		for name := range e.config.Secrets() {
			if !yield(name.Of(kinds.Secret)) {
				return
			}
		}
		if namespace, name, ok := splitName(e.settings.DefaultCertificate); ok &&
			!yield(ir.Ref{Kind: kinds.Secret, Namespace: namespace, Name: name}) {
			return
		}
		e.translator.Secrets()(yield)
	}
}
