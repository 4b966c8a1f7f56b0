package issuance

import (
	"context"
	"errors"
	"maps"
	"strings"
	"time"

	"go.uber.org/zap"

	"github.com/k8singress/k8singress/internal/process/caddyinternals"
)

const (
	// storagePatience is the maximum time that a task may spend on reading from, or writing to, the storage.
	storagePatience = 30 * time.Second
	// patience is the maximum duration of an order, including the attempts with all issuers.
	patience = 10 * time.Minute
)

// patientReads is how many times in a row reading a certificate may fail before an error is reported. Single failures
// are normal: a certificate cannot be read while another replica is writing it.
const patientReads = 2

// fetch reads the certificate of a host from the storage.
func (m *Manager) fetch(ctx context.Context, s *setup, h *host) {
	ctx, cancel := context.WithTimeout(ctx, storagePatience)
	defer cancel()
	found, err := s.load(ctx, h)
	if err != nil && ctx.Err() == nil {
		m.log.Error("reading a certificate from the storage", zap.String("host", h.name), zap.Error(err))
	}
	var refused *failure
	if h.demand != nil {
		found, refused = m.handOver(ctx, s, h, found)
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if h.gone {
		return
	}
	m.wasRead(h)
	if refused != nil {
		m.fail(h, refused)
	}
	if found == nil {
		// Report an error only if the host has no certificate. Otherwise the certificate that was read earlier stays in
		// use.
		if h.misses++; err != nil && h.issued == nil && h.misses > patientReads {
			m.fail(h, &failure{Reason: clean(err.Error()), NotBefore: time.Now().Add(m.retry)})
		}
		return
	}
	h.misses = 0
	before := h.issued
	h.issued = found
	m.supply(h, time.Now())
	if before == nil || !before.pair.Leaf.Equal(found.pair.Leaf) {
		if h.demand == nil {
			m.fresh.Set(h.name, h)
		} else {
			EmitLoaded(s.events, found.pair)
		}
		h.lastError = nil
		m.announce(s, h)
		m.changed.Send()
	}
	if h.lastError == nil {
		m.problematic.Delete(h.name)
	}
}

// announce logs that a certificate was issued. It does nothing on replicas that have not ordered the certificate.
func (m *Manager) announce(s *setup, h *host) {
	if h.got == "" {
		return
	}
	issuer := h.issued.issuerKey
	for _, i := range s.issuers {
		if i.key == issuer {
			issuer = i.name()
		}
	}
	m.log.Info(announcements[h.got], zap.String("host", h.name), zap.String("issuer", issuer),
		zap.Time("until", h.issued.pair.Leaf.NotAfter))
	h.got = ""
}

// announcements maps the result of an order to its log message. The messages are the same as Caddy's, because users may
// search for them.
var announcements = map[string]string{
	issuedResult: "certificate obtained successfully", renewedResult: "certificate renewed successfully",
}

// poll asks the certificate authority for the renewal time of a host's certificate.
func (m *Manager) poll(ctx context.Context, s *setup, h *host) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	m.mu.Lock()
	of := h.issued
	m.mu.Unlock()
	err := s.fetchRenewal(ctx, h, of)
	if err != nil && ctx.Err() == nil {
		m.log.Info("the certificate authority returned no renewal time", zap.String("host", h.name), zap.Error(err))
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	h.polled = time.Now()
	h.again = err == nil
}

// order orders a certificate for a host from an issuer. If it fails, it sets the host's last error.
func (m *Manager) order(ctx context.Context, s *setup, h *host) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	last := &failure{}
	known, err := recall(ctx, s.storage, failureKey(h), last)
	m.logStorageError(err, h)
	last = last.under(s.mark)
	usable, resting := s.usable(ctx, h, last)
	if time.Now().Before(last.NotBefore) {
		usable, resting = nil, last
	}
	if len(usable) > 0 {
		resting = m.refusal(ctx, s, h)
	}
	if resting != nil {
		m.postpone(h, resting)
		return
	}
	errs := s.attempt(ctx, h, usable, m.log)
	if errors.Is(ctx.Err(), context.Canceled) {
		// The process is ending.
		return
	}
	if why := m.aborted(s, h, errs); why != nil {
		m.postpone(h, why)
		return
	}
	var failed *failure
	var rest time.Time
	keep, done := context.WithTimeout(context.WithoutCancel(ctx), storagePatience)
	defer done()
	switch {
	case len(errs) > 0:
		failed, rest = s.judge(keep, h, last, errs, time.Now())
		m.logStorageError(remember(keep, s.storage, failureKey(h), failed), h)
	case known:
		m.logStorageError(s.storage.Delete(keep, failureKey(h)), h)
	}
	m.recordOrder(h, failed, rest)
}

// postpone is called if no certificate can be ordered for a host now. It records the reason in the host. The attempt
// does not count towards the rate limit for orders.
func (m *Manager) postpone(h *host, why *failure) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.pace.refund()
	m.giveBack(h)
	m.fail(h, why)
}

// giveBack makes the queues serve the namespace of the host next, because its last turn was in vain: no order was made,
// or the order failed because of a rate limit for all hosts.
func (m *Manager) giveBack(h *host) {
	m.orders.GiveBack(h)
	m.renewals.GiveBack(h)
}

// refusal checks whether a certificate may be ordered for a host. It returns nil if so, otherwise the reason why not. A
// new host name is counted towards the daily limit of its namespace.
func (m *Manager) refusal(ctx context.Context, s *setup, h *host) *failure {
	if h.issued != nil {
		return nil
	}
	if why := s.elsewhere(ctx, h); why != "" {
		f := m.refused(s, h, leadsElsewhere, why)
		f.Issuers = s.mark
		return f
	}
	m.mu.Lock()
	namespace := h.origin.Namespace
	m.mu.Unlock()
	if namespace == "" || s.newHostsPerDay <= 0 {
		return nil
	}
	over, err := m.budgets.spend(ctx, s.storage, newName{namespace, h.stored}, s.newHostsPerDay, time.Now())
	m.logStorageError(err, h)
	if over != nil {
		m.metrics.refused.WithLabelValues(overBudget).Inc()
		over.Issuers = s.mark
	}
	return over
}

// refused counts an order that is not made, by its cause, and returns the failure of the host. The delay until the next
// attempt grows with each attempt.
func (m *Manager) refused(s *setup, h *host, cause, reason string) *failure {
	m.metrics.refused.WithLabelValues(cause).Inc()
	m.mu.Lock()
	defer m.mu.Unlock()
	attempts := 1
	if h.lastError != nil {
		attempts += h.lastError.Attempts
	}
	return &failure{Attempts: attempts, Reason: reason, NotBefore: time.Now().Add(backoff(s.retry, attempts))}
}

// recordOrder records the result of an order. failed is nil if a certificate was issued. If an issuer has reported a
// rate limit for all hosts, rest is the time when this limit ends; otherwise rest is the zero time.
func (m *Manager) recordOrder(h *host, failed *failure, rest time.Time) {
	result := issuedResult
	m.mu.Lock()
	defer m.mu.Unlock()
	if !rest.IsZero() {
		m.careful = later(m.careful, rest.Add(pacedAfterStart))
		m.giveBack(h)
	}
	switch {
	case failed != nil:
		result = failedResult
	case h.issued != nil:
		result = renewedResult
	}
	if h.got = ""; failed == nil {
		h.got = result
	}
	m.metrics.orders.WithLabelValues(result).Inc()
	h.ordered = time.Now()
	m.fail(h, failed)
}

// fail sets the last error of a host: why the host has no new certificate, and when the next attempt may start. nil
// clears the last error.
func (m *Manager) fail(h *host, why *failure) {
	h.lastError = why
	if why != nil && !h.gone {
		m.problematic.Set(h.name, h)
		m.changed.Send()
	}
	if why != nil && h.demand != nil {
		m.settle(h.demand)
	}
}

// logStorageError logs an error of the storage that has occurred during an order. Such an error does not delay the next
// order. err may be nil.
func (m *Manager) logStorageError(err error, h *host) {
	if err != nil {
		m.log.Error("cannot store the result of an attempt", zap.String("host", h.name), zap.Error(err))
	}
}

// errNeedsDNS is the error message for a wildcard if no issuer can issue a certificate for it.
const errNeedsDNS = "a wildcard needs an issuer with the DNS-01 challenge: configure a DNS provider in the option " +
	"issuer, or use a Secret with a certificate"

// usable returns the issuers that accept orders for a host now. If there are no such issuers, the returned failure
// contains the reason and the time of the next attempt.
func (s *setup) usable(ctx context.Context, h *host, f *failure) ([]*issuer, *failure) {
	resting := &failure{Attempts: f.Attempts, Reason: errNeedsDNS, NotBefore: time.Now().Add(calm)}
	var all []*issuer
	for _, i := range s.issuers {
		if h.wildcard() && !i.wildcards() {
			continue
		}
		until, reason := f.Limits[i.key], f.Reason
		if p := s.pauseOf(ctx, i.key); p.Until.After(until) {
			until, reason = p.Until, p.Reason
		}
		switch {
		case !until.After(time.Now()):
			all = append(all, i)
		case resting.Reason == errNeedsDNS || until.Before(resting.NotBefore):
			resting.Reason, resting.NotBefore = reason, until
		}
	}
	return all, resting
}

func (s *setup) pauseOf(ctx context.Context, issuer string) pause {
	if p, ok := s.pauses.Load(issuer); ok && p.(pause).Until.After(time.Now()) {
		return p.(pause)
	}
	var p pause
	if found, err := recall(ctx, s.storage, pauseKey(issuer), &p); found && err == nil {
		s.pauses.Store(issuer, p)
	}
	return p
}

// attemptError is the error with which one issuer has rejected an order.
type attemptError struct {
	issuer *issuer
	err    error
	log    *caddyinternals.LogTap
}

// attempt orders a certificate from the usable issuers, one after the other, until one of them has issued the
// certificate. It then returns nil. If all issuers have failed, it returns their errors.
func (s *setup) attempt(ctx context.Context, h *host, usable []*issuer, log *zap.Logger) []attemptError {
	log = log.Named("issuance")
	own, results := caddyinternals.TapLog(log)
	config := *s.config
	config.Logger, config.Issuers = own, nil
	var taps []*caddyinternals.LogTap
	for _, i := range usable {
		theirs, tap := caddyinternals.TapLog(log)
		taps = append(taps, tap)
		config.Issuers = append(config.Issuers, i.once(theirs))
	}
	order := config.ObtainCertSync
	if h.issued != nil {
		order = func(ctx context.Context, name string) error { return config.RenewCertSync(ctx, name, false) }
	}
	err := order(ctx, h.subject)
	if err == nil {
		return nil
	}
	var all []attemptError
	for n, i := range usable {
		if failed := results.ErrorOf(i.key); failed != nil {
			all = append(all, attemptError{i, failed, taps[n]})
		}
	}
	if len(all) == 0 {
		all = append(all, attemptError{usable[len(usable)-1], err, taps[len(usable)-1]})
	}
	return all
}

// judge combines the errors of the issuers into a failure of the host. For each issuer that has reported a rate limit
// for all hosts, judge stores a pause. The returned time is when the last of these pauses ends, or the zero time if
// there are no pauses.
func (s *setup) judge(ctx context.Context, h *host, last *failure, errs []attemptError,
	now time.Time) (*failure, time.Time) {
	var rest time.Time
	f := &failure{Attempts: last.Attempts + 1, Issuers: s.mark, Limits: map[string]time.Time{}}
	maps.Copy(f.Limits, last.Limits)
	f.NotBefore = now.Add(backoff(s.retry, f.Attempts))
	var reasons []string
	for _, e := range errs {
		reasons = append(reasons, issuerError(e.issuer.name(), e.err))
		status, after := e.log.LastError()
		l := limitOf(h.subject, e.err, status, after, now)
		switch {
		case l == nil:
		case l.all:
			p := pause{Until: l.until, Reason: reasons[len(reasons)-1]}
			s.pauses.Store(e.issuer.key, p)
			rest = later(rest, p.Until)
			// Ignore the error. It only means that other replicas do not know about the pause: they send one more
			// order, and get the same rate limit from the issuer.
			_ = remember(ctx, s.storage, pauseKey(e.issuer.key), p)
		default:
			f.Limits[e.issuer.key] = l.until
		}
	}
	f.Reason = strings.Join(reasons, "; ")
	if usable, resting := s.usable(ctx, h, f); len(usable) == 0 {
		f.NotBefore = later(f.NotBefore, resting.NotBefore)
	}
	return f, rest
}
