package issuance

import (
	"crypto/tls"
	"math/rand/v2"
	"path"
	"strings"
	"time"

	"github.com/caddyserver/certmagic"
	"golang.org/x/net/idna"

	"github.com/k8singress/k8singress/internal/ir"
)

// host is one that is to have a certificate.
type host struct {
	// name is that of the document; subject is what the issuer is asked for; stored is its name in the storage.
	name, subject, stored string
	origin                ir.Ref
	since                 time.Time

	// read says that the storage has been asked at least once.
	read bool
	// issued is what the storage has; nil is nothing.
	issued *issued
	// lastError is why there is no certificate, or no new one; nil is no known reason.
	lastError *failure
	// misses counts how often the storage had nothing.
	misses int

	// busy says that a task works on the host, ordering that the task is an order; again that its certificate is to be read once
	// more after the task.
	busy, ordering, again bool
	// ordered is when an issuer was asked for the certificate last, polled when for the time of the renewal.
	ordered, polled time.Time
	// got is the result of the last order, whose certificate has not been read from the storage yet; empty is none.
	got  string
	gone bool
}

func newHost(name string, origin ir.Ref) *host {
	subject, err := idna.ToASCII(name)
	if err != nil {
		// The issuer says what is wrong with it.
		subject = name
	}
	return &host{
		name: name, subject: subject, stored: certmagic.StorageKeys.Safe(subject), origin: origin, since: time.Now(),
	}
}

// wildcard says that only the DNS-01 challenge, or an authority of one's own, proves that the host may have a certificate.
func (h *host) wildcard() bool { return strings.HasPrefix(h.subject, "*.") }

// hostOf returns the name in the storage of the host that a key is about.
func hostOf(key string) (string, bool) {
	parts := strings.Split(key, "/")
	if len(parts) != 4 || parts[0] != certificatesFolder {
		return "", false
	}
	return parts[2], true
}

// certificatesFolder is the first part of the keys of certificates.
var certificatesFolder = path.Dir(certmagic.StorageKeys.CertsPrefix("issuer"))

// issued is a certificate from the storage.
type issued struct {
	pair      *tls.Certificate
	issuerKey string
	renewal   renewal
}

// Times between two looks into the storage.
const (
	// calm is for hosts that have what they need. The storage tells most changes by itself.
	calm = time.Hour
	// Replicas that do not order read the certificate of a host without one less and less often.
	firstPoll = time.Second
	lastPoll  = time.Minute
)

// nextRead returns when the certificate is to be read again, in a replica that does not order it now.
func (h *host) nextRead(now time.Time, leads bool) time.Time {
	if h.issued == nil {
		return now.Add(min(firstPoll<<min(h.misses, 10), lastPoll))
	}
	at := now.Add(jitter(calm))
	if renew := h.issued.renewal.at; leads && renew.Before(at) {
		at = renew
	}
	return at
}

// jitter returns between nine tenths of a time and all of it, so that what began together does not stay together.
func jitter(d time.Duration) time.Duration { return d - time.Duration(rand.Int64N(int64(d)/10+1)) }

// forgetOtherIssuers forgets the last error unless it is of the issuers with a mark, so that these are asked at once.
func (h *host) forgetOtherIssuers(mark string) {
	if h.lastError != nil && h.lastError.Issuers != mark {
		h.lastError, h.ordered = nil, time.Time{}
	}
}
