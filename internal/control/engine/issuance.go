package engine

import (
	"cmp"
	"context"
	"crypto/tls"
	"time"

	"github.com/caddyserver/caddy/v2/modules/caddytls"
	"go.uber.org/zap"

	"github.com/k8singress/k8singress/internal/control/structure"
	"github.com/k8singress/k8singress/internal/http/live"
	"github.com/k8singress/k8singress/internal/kube/status"
	"github.com/k8singress/k8singress/internal/model/ir"
	"github.com/k8singress/k8singress/internal/model/settings"
	"github.com/k8singress/k8singress/internal/tls/issuance"
)

// Leads reports whether this replica orders certificates. If replicas share a Lease, only the leader orders
// certificates; without leader election, every replica does.
func (e *Engine) Leads() bool { return e.publisher == nil || e.publisher.Leader() }

// configureIssuance provisions the certificate issuers under a new Caddy configuration. This configuration then also
// handles the ACME challenges of the issuers.
func (l *loop) configureIssuance(a *adoption) {
	app, _ := a.ctx.AppIfConfigured("tls") // Without the app, there are no defaults.
	policy, automation := tlsDefaults(app)
	err := l.issuance.Configure(a.ctx, issuance.Options{
		Issuers: structure.Issuers(a.settings), KeyType: cmp.Or(a.settings.KeyType, policy.KeyType),
		RenewalRatio: policy.RenewalWindowRatio, RenewInterval: time.Duration(automation.RenewCheckInterval),
		HTTP: a.settings.HTTP, HTTPS: a.settings.HTTPS,
		NewHostsPerDay: newHostsPerDay(a.settings), Addresses: l.reachedAt(a.settings), Resolvers: a.settings.Resolvers,
		Events:     l.events,
		Permission: a.settings.OnDemand, OnDemand: l.onDemand(a.settings),
	})
	if err != nil {
		l.log.Error("cannot provision the certificate issuers of the new Caddy configuration", zap.Error(err))
	}
}

// tlsDefaults returns settings of Caddy's TLS app that also apply to certificates for hosts of Ingresses: the policy
// for names without a policy of their own, and the settings for all names.
func tlsDefaults(app any) (*caddytls.AutomationPolicy, *caddytls.AutomationConfig) {
	tls, ok := app.(*caddytls.TLS)
	if !ok || tls.Automation == nil {
		return &caddytls.AutomationPolicy{}, &caddytls.AutomationConfig{}
	}
	for _, policy := range tls.Automation.Policies {
		if len(policy.SubjectsRaw) == 0 {
			return policy, tls.Automation
		}
	}
	return &caddytls.AutomationPolicy{}, tls.Automation
}

// newHostsPerDay returns the maximum number of host names per namespace and day for which new certificates are ordered.
// The default allows a namespace to replace all of its hosts a few times a day.
func newHostsPerDay(o settings.Config) int {
	return cmp.Or(o.NewHostsPerDay, 4*cmp.Or(o.HostsPerNamespace, settings.DefaultHostsPerNamespace))
}

// reachedAt returns a function that returns the addresses at which clients reach the controller. It returns nil if the
// option check_host_dns is off.
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

// onDemand returns a function that returns the object that requests certificates on demand for a name. The function
// returns false if no object does, or if no issuer can issue a certificate for the name.
func (l *loop) onDemand(o settings.Config) func(name string) (ir.Ref, bool) {
	issuers, table := issuing(o), l.live.Table
	return func(name string) (ir.Ref, bool) {
		origin, ok := table.HostFor(live.ServerPorts, name).OnDemand()
		if !ok {
			return ir.Ref{}, false
		}
		_, refusal := issuers.Refuse(name)
		return origin, refusal == ""
	}
}

// CertificateOnDemand returns a certificate for the server name of a TLS handshake, if an Ingress requests certificates
// on demand for this name. It may wait for an issuer for several seconds, until ctx ends. It returns nil if there is no
// certificate in the end.
func (e *Engine) CertificateOnDemand(ctx context.Context, server string) *tls.Certificate {
	return e.issuance.OnDemand(ctx, server)
}

// takeIssued loads newly issued certificates into the certificate store, from which TLS handshakes get their
// certificates.
func (l *loop) takeIssued() {
	for host, pair := range l.issuance.Take() {
		l.live.Certificates.SetIssued(host, pair)
		issuance.EmitLoaded(l.events, pair)
		l.applied = true
	}
}

// storageTime is how long a starting process waits for the certificate storage. Without the wait, the process would be
// ready before it has read the certificates of its hosts.
const storageTime = 10 * time.Second

// awaitIssued loads the stored certificates of all hosts at startup. It waits for the storage for at most storageTime.
func (l *loop) awaitIssued() {
	// No context is passed to this function, and the wait is limited by the timeout.
	ctx, cancel := context.WithTimeout(context.Background(), storageTime) //nolint:forbidigo // see above
	defer cancel()
	l.issuance.Read(ctx)
	l.takeIssued()
}
