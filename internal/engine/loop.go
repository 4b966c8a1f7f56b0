package engine

import (
	"context"
	"errors"
	"strings"
	"time"

	"go.uber.org/zap"

	"github.com/k8singress/k8singress/internal/document"
	"github.com/k8singress/k8singress/internal/ir"
	"github.com/k8singress/k8singress/internal/kinds"
	"github.com/k8singress/k8singress/internal/snapshot"
)

// statusPeriod is how often the status of objects is compared with what it should be. A change of nothing but a status
// wakes nobody.
const statusPeriod = time.Minute

// loop runs until ctx ends.
func (e *Engine) loop(ctx context.Context) {
	defer e.live.Close()
	var synced <-chan struct{}
	var changed <-chan struct{}
	if e.source != nil {
		synced = e.source.Synced()
	}
	again := time.NewTicker(statusPeriod)
	defer again.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-e.adopted:
			e.adopt(ctx)
		case <-synced:
			// Not before: an Ingress whose Secret has not arrived is not an Ingress without a Secret.
			synced, changed = nil, e.source.Store().Changed()
			e.observe()
			e.hold.now()
		case <-changed:
			e.observe()
		case <-again.C:
			if changed != nil {
				e.observe()
				e.publishStatus(e.state.Load().report)
			}
		case l := <-e.loads:
			l.outcome <- e.serve(l.document)
		case <-e.hold.fired():
			e.hold.done()
			e.pipeline()
		case <-e.retry.timer.C:
			e.tryAgain(ctx)
		}
	}
}

// adopt provisions everything under the newest Caddy configuration.
func (e *Engine) adopt(ctx context.Context) {
	a := e.adoption.Load()
	first := !e.live.Table.Ready()
	e.settings = a.settings
	if err := e.live.Adopt(a.ctx); err != nil {
		e.log.Error("providing chains under the new Caddy configuration", zap.Error(err))
	}
	if e.source == nil {
		if a.document == nil || !first {
			return
		}
		if err := e.serve(a.document); err != nil {
			e.log.Error("serving the document of the configuration", zap.Error(err))
		}
		return
	}
	e.mend(ctx)
	// The options may be others.
	e.hold.now()
}

// observe takes what changed. Endpoints and the contents of Secrets go into effect here and now; the rest waits for the
// pipeline.
func (e *Engine) observe() {
	s := e.source.Store().Take()
	before := e.latest
	e.latest = s
	var slow []ir.Ref
	// A wake without a change is the source's way to say that its own verdicts did.
	_, reports := e.source.(Reporter)
	tell := reports && len(s.Changed) == 0
	for _, ref := range s.Changed {
		switch {
		case ref.Kind == kinds.EndpointSlice:
			e.refreshEndpoints(s, ref.Namespace, ref.Name)
		case ref.Kind == kinds.Secret && e.refreshSecret(before, s, ref):
			tell = true
		default:
			slow = append(slow, ref)
		}
	}
	work := *s
	work.Changed = slow
	if e.pending != nil {
		work = *work.Joined(e.pending)
	}
	e.pending = &work
	switch {
	case len(slow) > 0:
		e.hold.change()
	case tell && e.live.Table.Ready():
		e.publishState(e.state.Load().document)
	}
}

// refreshEndpoints brings the backends of one Service up to date.
func (e *Engine) refreshEndpoints(s *snapshot.Snapshot, namespace, service string) {
	for _, b := range backendsOf(e.config.Backends, namespace+"/"+service+"/") {
		e.endpoints.Set(b.ID, resolve(s, b))
		e.metrics.endpointUpdates.Inc()
	}
}

// backendsOf returns the backends whose ID begins with prefix; they are neighbours in the sorted list.
func backendsOf(all []*ir.Backend, prefix string) []*ir.Backend {
	low, high := 0, len(all)
	for low < high {
		if middle := (low + high) / 2; all[middle].ID < prefix {
			low = middle + 1
		} else {
			high = middle
		}
	}
	for high < len(all) && strings.HasPrefix(all[high].ID, prefix) {
		high++
	}
	return all[low:high]
}

// refreshSecret hands the contents of a Secret to the certificates. It returns false when more depends on it: whether
// there is such a Secret is a question for the translation.
func (e *Engine) refreshSecret(before, now *snapshot.Snapshot, ref ir.Ref) bool {
	e.loadSecret(now, ref.Namespace, ref.Name)
	if before == nil {
		return false
	}
	_, was := before.Secrets.Get(ref.Namespace, ref.Name)
	_, is := now.Secrets.Get(ref.Namespace, ref.Name)
	return was == is
}

func (e *Engine) loadSecret(s *snapshot.Snapshot, namespace, name string) {
	secret, ok := s.Secrets.Get(namespace, name)
	if !ok {
		e.live.Certificates.SetSecret(namespace, name, nil, false)
		return
	}
	e.live.Certificates.SetSecret(namespace, name, secret.Data, true)
}

// tryAgain tries what failed: ports that another process held, and the structure.
func (e *Engine) tryAgain(ctx context.Context) {
	e.retry.armed = false
	e.live.RetryPorts()
	e.mend(ctx)
	e.publishState(e.state.Load().document)
}

var errNotStarted = errors.New("no Caddy configuration uses the engine yet")

// ErrHasSource is why Load refuses a document.
var ErrHasSource = errors.New("this process follows a cluster or a folder of manifests, and takes no documents; " +
	"set \"source none\" for one that does")

// Load serves a document in place of what was served before. It waits until the document is in effect.
func (e *Engine) Load(ctx context.Context, d *document.Live) error {
	if e.HasSource() {
		return ErrHasSource
	}
	l := load{document: d, outcome: make(chan error, 1)}
	select {
	case e.loads <- l:
		return <-l.outcome
	case <-ctx.Done():
		return ctx.Err()
	case <-e.done:
		return errors.New("the engine has ended")
	}
}
