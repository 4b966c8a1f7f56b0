package issuance

import (
	"context"
	"errors"
	"maps"
	"strings"
	"time"

	"go.uber.org/zap"

	"github.com/k8singress/k8singress/internal/caddyinternals"
)

const (
	// storagePatience is how long the storage may take for one host.
	storagePatience = 30 * time.Second
	// patience is how long all issuers together may take for one host.
	patience = 10 * time.Minute
)

// patientReads is how often a certificate may be unreadable, as it is while another replica writes it.
const patientReads = 2

// fetch reads the certificate of a host.
func (m *Manager) fetch(ctx context.Context, s *setup, h *host) {
	ctx, cancel := context.WithTimeout(ctx, storagePatience)
	defer cancel()
	found, err := s.load(ctx, h)
	if err != nil && ctx.Err() == nil {
		m.log.Error("looking for a certificate", zap.String("host", h.name), zap.Error(err))
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if h.gone {
		return
	}
	m.wasRead(h)
	if found == nil {
		// What was there once goes on to be served: it is as good as it was.
		if h.misses++; err != nil && h.issued == nil && h.misses > patientReads {
			m.fail(h, &failure{Reason: clean(err.Error()), NotBefore: time.Now().Add(m.retry)})
		}
		return
	}
	h.misses = 0
	before := h.issued
	h.issued = found
	if before == nil || !before.pair.Leaf.Equal(found.pair.Leaf) {
		m.fresh[h.name] = h
		h.lastError = nil
		m.announce(s, h)
		signal(m.changed)
	}
	if h.lastError == nil {
		delete(m.problematic, h.name)
	}
}

// announce logs that a certificate was got that this replica has asked for. The others only read it.
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
	m.log.Info(announcements[h.got], zap.String("host", h.name), zap.String("issuer", issuer), zap.Time("until", h.issued.pair.Leaf.NotAfter))
	h.got = ""
}

// announcements has, by result, what is logged of a certificate. The words are those of Caddy, which people look for.
var announcements = map[string]string{
	issuedResult: "certificate obtained successfully", renewedResult: "certificate renewed successfully",
}

// poll asks when a certificate is to be renewed.
func (m *Manager) poll(ctx context.Context, s *setup, h *host) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	m.mu.Lock()
	of := h.issued
	m.mu.Unlock()
	err := s.askRenewal(ctx, h, of)
	if err != nil && ctx.Err() == nil {
		m.log.Info("the time of a renewal is not known from its authority", zap.String("host", h.name), zap.Error(err))
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	h.polled = time.Now()
	h.again = err == nil
}

// order gets a certificate for a host from an issuer, or sets its last error.
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
		// The process ends.
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
	m.noteOrder(h, failed, rest)
}

// postpone sets why no issuer may be asked for a host now.
func (m *Manager) postpone(h *host, why *failure) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.pace.refund()
	m.giveBack(h)
	m.fail(h, why)
}

// giveBack lets the namespace of a host have the next turn.
func (m *Manager) giveBack(h *host) {
	m.orders.GiveBack(h)
	m.renewals.GiveBack(h)
}

// refusal says why no issuer is asked for a host, though issuers could be; nil is that one is asked. It costs the namespace a new name.
func (m *Manager) refusal(ctx context.Context, s *setup, h *host) *failure {
	if h.issued != nil {
		return nil
	}
	m.mu.Lock()
	namespace, attempts := h.origin.Namespace, 1
	if h.lastError != nil {
		attempts += h.lastError.Attempts
	}
	m.mu.Unlock()
	if why := s.elsewhere(ctx, h); why != "" {
		m.metrics.refused.WithLabelValues(leadsElsewhere).Inc()
		return &failure{Attempts: attempts, Issuers: s.mark, Reason: why, NotBefore: time.Now().Add(backoff(s.retry, attempts))}
	}
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

// noteOrder sets the outcome of an order: why it failed, or nil; and until when an issuer wants to hear nothing of any host, or zero.
func (m *Manager) noteOrder(h *host, failed *failure, rest time.Time) {
	result := issuedResult
	m.mu.Lock()
	defer m.mu.Unlock()
	if !rest.IsZero() {
		m.careful = later(m.careful, rest.Add(carefulFor))
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

// fail notes why a host has to wait; nil is that it need not.
func (m *Manager) fail(h *host, why *failure) {
	h.lastError = why
	if why != nil && !h.gone {
		m.problematic[h.name] = h
		signal(m.changed)
	}
}

// logStorageError logs that the outcome of an order was not stored. It does not delay the next one.
func (m *Manager) logStorageError(err error, h *host) {
	if err != nil {
		m.log.Error("the storage does not remember how an attempt ended", zap.String("host", h.name), zap.Error(err))
	}
}

// errNeedsDNS is why a wildcard is not ordered.
const errNeedsDNS = "a wildcard needs an issuer with the DNS-01 challenge: give the option issuer a DNS provider, or name a " +
	"Secret with a certificate"

// usable returns the issuers that may be asked for a host now. If there are none, it returns why.
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

// attemptError is what one issuer said.
type attemptError struct {
	issuer *issuer
	err    error
	log    *caddyinternals.LogTap
}

// attempt asks the issuers, one after the other. It returns nothing when one has issued.
func (s *setup) attempt(ctx context.Context, h *host, usable []*issuer, log *zap.Logger) []attemptError {
	log = log.Named("issuance")
	own, said := caddyinternals.TapLog(log)
	config := *s.config
	config.Logger, config.Issuers = own, nil
	var answers []*caddyinternals.LogTap
	for _, i := range usable {
		theirs, heard := caddyinternals.TapLog(log)
		answers = append(answers, heard)
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
		if failed := said.ErrorOf(i.key); failed != nil {
			all = append(all, attemptError{i, failed, answers[n]})
		}
	}
	if len(all) == 0 {
		all = append(all, attemptError{usable[len(usable)-1], err, answers[len(usable)-1]})
	}
	return all
}

// judge makes of the errors what is to be remembered, of the host and of issuers that want a rest. It returns until when the last of
// those wants one.
func (s *setup) judge(ctx context.Context, h *host, last *failure, errs []attemptError, now time.Time) (*failure, time.Time) {
	var rest time.Time
	f := &failure{Attempts: last.Attempts + 1, Issuers: s.mark, Limits: map[string]time.Time{}}
	maps.Copy(f.Limits, last.Limits)
	f.NotBefore = now.Add(backoff(s.retry, f.Attempts))
	var reasons []string
	for _, e := range errs {
		reasons = append(reasons, answer(e.issuer.name(), e.err))
		status, after := e.log.LastError()
		l := limitOf(h.subject, e.err, status, after, now)
		switch {
		case l == nil:
		case l.all:
			p := pause{Until: l.until, Reason: reasons[len(reasons)-1]}
			s.pauses.Store(e.issuer.key, p)
			rest = later(rest, p.Until)
			// A replica that does not read it asks once more, and gets the same answer.
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
