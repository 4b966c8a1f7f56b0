package issuance

import (
	"crypto/tls"
	"math/rand/v2"
	"path"
	"strings"
	"time"

	"github.com/caddyserver/certmagic"
	"golang.org/x/net/idna"

	"github.com/k8singress/k8singress/internal/model/ir"
)

// host is a host that needs a certificate from an issuer.
type host struct {
	// name is the name in the document, subject is the name to order, and stored is the name in the storage.
	name, subject, stored string
	origin                ir.Ref
	since                 time.Time

	// read means that the storage was searched at least once.
	read bool
	// issued is the certificate in the storage, or nil.
	issued *issued
	// lastError is the reason why there is no certificate or no renewed one. Nil means that no reason is known.
	lastError *failure
	// misses is the number of consecutive searches that found no certificate in the storage.
	misses int

	// busy means that a task is working on the host, and ordering that this task is an order. again means that the
	// certificate must be read once more after the task.
	busy, ordering, again bool
	// ordered is the time of the last order, and polled the time of the last query for the renewal time.
	ordered, polled time.Time
	// got is the result of the last order, until its certificate has been read from the storage. Otherwise it is empty.
	got  string
	gone bool
}

func newHost(name string, origin ir.Ref) *host {
	subject, err := idna.ToASCII(name)
	if err != nil {
		// The issuer will report the invalid name.
		subject = name
	}
	return &host{
		name: name, subject: subject, stored: certmagic.StorageKeys.Safe(subject), origin: origin, since: time.Now(),
	}
}

// wildcard reports whether the host is a wildcard, for which an order needs the DNS-01 challenge or a private
// authority.
func (h *host) wildcard() bool { return strings.HasPrefix(h.subject, "*.") }

// hostOf returns the storage name of the host to which a storage key belongs. It returns false for keys that are not of
// certificates.
func hostOf(key string) (string, bool) {
	parts := strings.Split(key, "/")
	if len(parts) != 4 || parts[0] != certificatesFolder {
		return "", false
	}
	return parts[2], true
}

// certificatesFolder is the first element of the storage keys of certificates.
var certificatesFolder = path.Dir(certmagic.StorageKeys.CertsPrefix("issuer"))

// issued is a certificate from the storage.
type issued struct {
	pair      *tls.Certificate
	issuerKey string
	renewal   renewal
}

// Intervals between two reads of the storage.
const (
	// calm is the interval for hosts that have a certificate. The storage reports most changes itself.
	calm = time.Hour
	// A replica that does not order reads the certificate of a host without one at growing intervals.
	firstPoll = time.Second
	lastPoll  = time.Minute
)

// nextRead returns when to read the certificate again, in a replica that is not ordering it now.
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

// jitter returns a random duration between 90% and 100% of d, so that hosts with the same start do not stay in step.
func jitter(d time.Duration) time.Duration { return d - time.Duration(rand.Int64N(int64(d)/10+1)) }

// forgetOtherIssuers clears the last error unless it came from the issuers with the given mark, so that new issuers are
// used at once.
func (h *host) forgetOtherIssuers(mark string) {
	if h.lastError != nil && h.lastError.Issuers != mark {
		h.lastError, h.ordered = nil, time.Time{}
	}
}
