package engine

import (
	"cmp"
	"context"
	"time"

	"go.uber.org/zap"

	"github.com/k8singress/k8singress/internal/issuance"
	"github.com/k8singress/k8singress/internal/settings"
	"github.com/k8singress/k8singress/internal/status"
	"github.com/k8singress/k8singress/internal/structure"
)

// leads says whether this replica asks issuers for certificates: one of those that share a Lease does, and every one that
// has none.
func (e *Engine) leads() bool { return e.publisher == nil || e.publisher.Leader() }

// configureIssuance makes the issuers of a Caddy configuration the ones that are asked. They are those that answer its
// challenges.
func (l *loop) configureIssuance(a *adoption) {
	err := l.issuance.Configure(a.ctx, issuance.Options{
		Issuers: structure.Issuers(a.settings), KeyType: a.settings.KeyType, HTTP: a.settings.HTTP, HTTPS: a.settings.HTTPS,
		NewHostsPerDay: newHostsPerDay(a.settings), Addresses: l.reachedAt(a.settings), Resolvers: a.settings.Resolvers,
	})
	if err != nil {
		l.log.Error("providing issuers of certificates under the new Caddy configuration", zap.Error(err))
	}
}

// newHostsPerDay lets a namespace replace all of its hosts a few times.
func newHostsPerDay(o settings.Config) int {
	return cmp.Or(o.NewHostsPerDay, 4*cmp.Or(o.HostsPerNamespace, settings.DefaultHostsPerNamespace))
}

// reachedAt returns the addresses that clients reach the controller at. It is nil where names need not lead there.
func (l *loop) reachedAt(o settings.Config) func() []string {
	if !o.CheckHostDNS {
		return nil
	}
	return func() (all []string) {
		s := l.latest.Load()
		if s == nil {
			return o.PublishAddress
		}
		for _, in := range status.Addresses(s, o.PublishAddress, o.PublishService) {
			all = append(all, cmp.Or(in.IP, in.Hostname))
		}
		return all
	}
}

// takeIssued shows the certificates that are new.
func (l *loop) takeIssued() {
	for host, pair := range l.issuance.Take() {
		l.live.Certificates.SetIssued(host, pair)
		l.applied = true
	}
}

// storageTime is how long a process that starts waits for the storage. Without it, it would be sent clients whose
// certificates it has not read yet.
const storageTime = 10 * time.Second

// awaitIssued shows what the storage has for the first hosts there are.
func (l *loop) awaitIssued() {
	// The loop has no context: it ends with the process.
	ctx, cancel := context.WithTimeout(context.Background(), storageTime) //nolint:forbidigo // see above
	defer cancel()
	l.issuance.Read(ctx)
	l.takeIssued()
}
