package issuance

import (
	"cmp"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"github.com/caddyserver/certmagic"
	"github.com/mholt/acmez/v3/acme"
)

// schedule determines when certificates are renewed. Its fields have the meaning of the fields of certmagic's
// configuration, which checks again whether a renewal is due.
type schedule struct {
	// check is the interval between checks for renewals. It determines how early certmagic agrees to renew a
	// certificate: up to check before the renewal time, or when less than five times check is left until the
	// certificate expires. The controller renews certificates at their time, without periodic checks.
	check time.Duration
	// ratio is the part of a certificate's lifetime that is left at the renewal time, if the certificate authority
	// suggests no time.
	ratio float64
}

// renewCheck is the default and the minimum of schedule.check.
const renewCheck = time.Minute

func scheduleOf(o Options) schedule {
	return schedule{check: max(o.RenewInterval, renewCheck), ratio: cmp.Or(o.RenewalRatio,
		certmagic.DefaultRenewalWindowRatio)}
}

// renewal describes when a certificate must be renewed.
type renewal struct {
	at time.Time
	// info is the ACME renewal information (ARI) from the certificate authority, or nil if it provides no such
	// information.
	info *acme.RenewalInfo
	// check is copied from the schedule.
	check time.Duration
}

// of calculates when a certificate must be renewed. If the certificate authority suggests a time, this time is used.
// Otherwise it is the time when the ratio of the certificate's lifetime is left. In both cases, it is before the
// certificate expires. The rules are the same as certmagic's.
func (s schedule) of(leaf *x509.Certificate, meta []byte) renewal {
	r := renewal{check: s.check}
	if _, issuer, err := decodeMeta(meta); err == nil {
		r.info = issuer.RenewalInfo
	}
	lifetime := leaf.NotAfter.Sub(leaf.NotBefore)
	r.at = leaf.NotAfter.Add(-time.Duration(float64(lifetime) * s.ratio))
	if r.info != nil && !suggested(r.info).IsZero() {
		r.at = earlier(suggested(r.info).Add(-s.check), leaf.NotAfter.Add(-lifetime/20))
	}
	r.at = earlier(r.at, leaf.NotAfter.Add(-5*s.check))
	return r
}

func suggested(info *acme.RenewalInfo) time.Time {
	if info.SelectedTime.IsZero() {
		return info.SuggestedWindow.Start
	}
	return info.SelectedTime
}

func earlier(a, b time.Time) time.Time { return slices.MinFunc([]time.Time{a, b}, time.Time.Compare) }

func later(a, b time.Time) time.Time { return slices.MaxFunc([]time.Time{a, b}, time.Time.Compare) }

// pollEvery is the default interval between two queries for the renewal time. A certificate authority can request
// another interval.
const pollEvery = 6 * time.Hour

// poll returns when to ask the certificate authority again for the renewal time, which the certificate authority may
// have changed. last is the time of the last query. poll returns false if the certificate authority does not suggest
// renewal times.
func (r *renewal) poll(last time.Time) (time.Time, bool) {
	switch {
	case r.info == nil || !r.info.HasWindow():
		return time.Time{}, false
	case r.info.RetryAfter == nil:
		return last.Add(pollEvery), true
	}
	return later(*r.info.RetryAfter, last.Add(r.check)), true
}

// fetchRenewal asks the certificate authority for the renewal time of a certificate, and stores the response where
// certmagic reads it.
func (s *setup) fetchRenewal(ctx context.Context, h *host, of *issued) error {
	for _, i := range s.issuers {
		getter, ok := i.Issuer.(certmagic.RenewalInfoGetter)
		if !ok || i.key != of.issuerKey {
			continue
		}
		info, err := getter.GetRenewalInfo(ctx, certmagic.Certificate{Certificate: tls.Certificate{Leaf: of.pair.Leaf}})
		if err != nil {
			return fmt.Errorf("requesting the renewal time from %s: %w", i.key, err)
		}
		if old := of.renewal.info; old != nil && info.SameWindow(*old) && !old.SelectedTime.IsZero() {
			info.SelectedTime = old.SelectedTime
		}
		return s.keepRenewal(ctx, certmagic.StorageKeys.SiteMeta(i.key, h.subject), info)
	}
	return nil
}

// decodeMeta decodes the metadata that certmagic stores with a certificate. The result issuer is the part of the
// metadata that comes from the ACME issuer.
func decodeMeta(data []byte) (m certmagic.CertificateResource, issuer acme.Certificate, err error) {
	if err = json.Unmarshal(data, &m); err == nil {
		err = json.Unmarshal(m.IssuerData, &issuer)
	}
	return m, issuer, err
}

func (s *setup) keepRenewal(ctx context.Context, key string, info acme.RenewalInfo) error {
	data, err := s.storage.Load(ctx, key)
	if err != nil {
		return fmt.Errorf("reading %s from the storage: %w", key, err)
	}
	m, issuer, err := decodeMeta(data)
	if err != nil {
		return fmt.Errorf("decoding %s: %w", key, err)
	}
	issuer.RenewalInfo = &info
	if m.IssuerData, err = json.Marshal(issuer); err != nil {
		return err
	}
	return remember(ctx, s.storage, key, m)
}
