package engine

import (
	"cmp"
	"context"
	"time"

	"go.uber.org/zap"

	"github.com/k8singress/k8singress/internal/control/structure"
	"github.com/k8singress/k8singress/internal/kube/status"
	"github.com/k8singress/k8singress/internal/model/settings"
	"github.com/k8singress/k8singress/internal/tls/issuance"
)

// leads reports whether this replica orders certificates. Of the replicas that share a Lease, only the leader does; a
// replica without a Lease always does.
func (e *Engine) leads() bool { return e.publisher == nil || e.publisher.Leader() }

// configureIssuance creates the issuers of a Caddy configuration. The same configuration also handles their challenges.
func (l *loop) configureIssuance(a *adoption) {
	err := l.issuance.Configure(a.ctx, issuance.Options{
		Issuers: structure.Issuers(a.settings), KeyType: a.settings.KeyType, HTTP: a.settings.HTTP,
		HTTPS:          a.settings.HTTPS,
		NewHostsPerDay: newHostsPerDay(a.settings), Addresses: l.reachedAt(a.settings), Resolvers: a.settings.Resolvers,
	})
	if err != nil {
		l.log.Error("cannot provision the certificate issuers of the new Caddy configuration", zap.Error(err))
	}
}

// newHostsPerDay returns the maximum number of new names per namespace and day. By default a namespace can replace all
// of its hosts a few times.
func newHostsPerDay(o settings.Config) int {
	return cmp.Or(o.NewHostsPerDay, 4*cmp.Or(o.HostsPerNamespace, settings.DefaultHostsPerNamespace))
}

// reachedAt returns a function for the addresses at which clients reach the controller. It returns nil if
// check_host_dns is off.
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

// takeIssued puts new certificates into use.
func (l *loop) takeIssued() {
	for host, pair := range l.issuance.Take() {
		l.live.Certificates.SetIssued(host, pair)
		l.applied = true
	}
}

// storageTime is how long a starting process waits for the storage. Without waiting, it would become ready before it
// has read the certificates of its hosts.
const storageTime = 10 * time.Second

// awaitIssued loads the stored certificates of the first hosts.
func (l *loop) awaitIssued() {
	// The loop has no context here: it ends with the process.
	ctx, cancel := context.WithTimeout(context.Background(), storageTime) //nolint:forbidigo // see above
	defer cancel()
	l.issuance.Read(ctx)
	l.takeIssued()
}
