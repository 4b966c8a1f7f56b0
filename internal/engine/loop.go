package engine

import (
	"context"
	"slices"
	"time"

	"go.uber.org/zap"

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
	defer e.mending.running.Wait()
	// The first Adopt has started the loop.
	<-e.adopted
	e.adopt(ctx)
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
			if e.live.Table.Ready() {
				e.check()
			}
		case l := <-e.loads:
			e.serve(l.document)
			e.offer(ctx)
			close(l.served)
		case <-e.issuance.Changed():
			e.takeIssued()
			e.publish()
		case <-e.otherProblems():
			e.publish()
		case <-e.hold.fired():
			e.hold.done()
			e.pipeline()
			e.offer(ctx)
		case <-e.retry.timer.C:
			e.tryAgain(ctx)
		case m := <-e.mending.ended:
			e.hasMended(ctx, m)
		}
	}
}

// otherProblems tells when the publisher has other verdicts than before.
func (e *Engine) otherProblems() <-chan struct{} {
	if e.publisher == nil {
		return nil
	}
	return e.publisher.Changed()
}

// check looks at what wakes nobody: a status that somebody else has written, and the validity of certificates.
func (e *Engine) check() {
	if e.publisher != nil {
		e.observe()
	}
	if !e.live.Stale() || !e.publish() {
		e.publishStatus()
	}
}

// adopt makes the newest Caddy configuration the one under which everything is provisioned.
func (e *Engine) adopt(ctx context.Context) {
	a := e.adoption.Load()
	if !slices.Equal(e.settings.StreamBind, a.settings.StreamBind) {
		e.config = rebound(e.config)
	}
	if e.settings.Zone != a.settings.Zone {
		e.config = moved(e.config)
	}
	e.settings = a.settings
	e.configureIssuance(a)
	e.live.Names.Configure(naming(a.settings))
	if err := e.live.Adopt(a.ctx); err != nil {
		e.log.Error("providing chains under the new Caddy configuration", zap.Error(err))
	}
	ready := e.live.Table.Ready()
	e.applied = e.applied || ready
	switch {
	case e.source != nil:
		// The options may be others.
		e.hold.now()
	case ready:
		e.publish()
	case a.document != nil:
		e.serve(a.document)
		e.offer(ctx)
	}
	e.mend(ctx, structureReason)
}

// observe takes what changed. Endpoints and the contents of Secrets go into effect here and now; the rest waits for the
// pipeline.
func (e *Engine) observe() {
	s := e.source.Store().Take()
	// The list of what changed is long at first, and nobody asks the latest snapshot for it.
	latest := *s
	latest.Changed = nil
	before := e.latest.Swap(&latest)
	var slow []ir.Ref
	for _, ref := range s.Changed {
		switch {
		case ref.Kind == kinds.EndpointSlice && e.refreshEndpoints(s, ref.Namespace, ref.Name):
		case ref.Kind == kinds.Secret && e.refreshSecret(before, s, ref):
		default:
			slow = append(slow, ref)
		}
	}
	e.postpone(s, slow)
	_, reports := e.source.(Reporter)
	switch {
	case len(slow) > 0 || e.unread.waiting():
		e.hold.change()
	case e.applied:
		e.publish()
	case reports && len(s.Changed) == 0:
		// A wake without a change is the source's way to say that its own verdicts did.
		e.publish()
	}
}

// postpone leaves a snapshot to the pipeline, with what changed in those before that are still left to it.
func (e *Engine) postpone(s *snapshot.Snapshot, changed []ir.Ref) {
	work := *s
	work.Changed = changed
	if e.pending != nil {
		work = *work.Joined(e.pending)
	}
	e.pending = &work
}

// tryAgain tries what failed: ports that another process held, and the structure.
func (e *Engine) tryAgain(ctx context.Context) {
	e.retry.armed = false
	e.live.RetryPorts()
	e.mend(ctx, structureReason)
	e.publish()
}
