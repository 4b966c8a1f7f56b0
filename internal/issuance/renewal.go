package issuance

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"fmt"
	"time"

	"github.com/caddyserver/certmagic"
	"github.com/mholt/acmez/v3/acme"
)

// renewal says when a certificate is to be renewed.
type renewal struct {
	at time.Time
	// info is what the authority says of it; nil is nothing.
	info *acme.RenewalInfo
}

// renewalOf follows the rules of certmagic, which looks again whether a certificate is to be renewed when it is asked to: the
// time that the authority suggests, but not when the end is very near; without one, when a third of the lifetime is left.
func renewalOf(leaf *x509.Certificate, meta []byte) renewal {
	var r renewal
	var m certmagic.CertificateResource
	var issuer acme.Certificate
	if json.Unmarshal(meta, &m) == nil && json.Unmarshal(m.IssuerData, &issuer) == nil {
		r.info = issuer.RenewalInfo
	}
	lifetime := leaf.NotAfter.Sub(leaf.NotBefore)
	r.at = leaf.NotAfter.Add(-lifetime / 3)
	if r.info != nil && !suggested(r.info).IsZero() {
		r.at = earliest(suggested(r.info).Add(-renewCheck), leaf.NotAfter.Add(-lifetime/20))
	}
	r.at = earliest(r.at, leaf.NotAfter.Add(-5*renewCheck))
	return r
}

func suggested(info *acme.RenewalInfo) time.Time {
	if info.SelectedTime.IsZero() {
		return info.SuggestedWindow.Start
	}
	return info.SelectedTime
}

func earliest(a, b time.Time) time.Time {
	if a.Before(b) {
		return a
	}
	return b
}

// pollEvery is how often an authority that does not say is asked when it wants a renewal.
const pollEvery = 6 * time.Hour

// poll returns when the authority is to be asked whether it wants another time, if it is.
func (r *renewal) poll(last time.Time) (time.Time, bool) {
	switch {
	case r.info == nil || !r.info.HasWindow():
		return time.Time{}, false
	case r.info.RetryAfter == nil:
		return last.Add(pollEvery), true
	}
	at := *r.info.RetryAfter
	if soonest := last.Add(renewCheck); at.Before(soonest) {
		at = soonest
	}
	return at, true
}

// askRenewal asks the authority of a certificate when it is to be renewed, and keeps the answer where certmagic reads it.
func (s *setup) askRenewal(ctx context.Context, h *host, of *issued) error {
	for _, i := range s.issuers {
		getter, ok := i.Issuer.(certmagic.RenewalInfoGetter)
		if !ok || i.key != of.issuerKey {
			continue
		}
		info, err := getter.GetRenewalInfo(ctx, certmagic.Certificate{Certificate: tls.Certificate{Leaf: of.pair.Leaf}})
		if err != nil {
			return fmt.Errorf("asking %s when to renew: %w", i.key, err)
		}
		if old := of.renewal.info; old != nil && info.SameWindow(*old) && !old.SelectedTime.IsZero() {
			info.SelectedTime = old.SelectedTime
		}
		return s.keepRenewal(ctx, certmagic.StorageKeys.SiteMeta(i.key, h.subject), info)
	}
	return nil
}

func (s *setup) keepRenewal(ctx context.Context, key string, info acme.RenewalInfo) error {
	data, err := s.storage.Load(ctx, key)
	if err != nil {
		return fmt.Errorf("reading %s from the storage: %w", key, err)
	}
	var m certmagic.CertificateResource
	var issuer acme.Certificate
	if err := json.Unmarshal(data, &m); err != nil {
		return fmt.Errorf("decoding %s: %w", key, err)
	}
	if err := json.Unmarshal(m.IssuerData, &issuer); err != nil {
		return fmt.Errorf("decoding %s: %w", key, err)
	}
	issuer.RenewalInfo = &info
	if m.IssuerData, err = json.Marshal(issuer); err != nil {
		return err
	}
	return remember(ctx, s.storage, key, m)
}
