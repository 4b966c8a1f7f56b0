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
	// name is the host name in the configuration, subject is the name for which the certificate is ordered (in
	// Punycode), and stored is the name in storage keys.
	name, subject, stored string
	origin                ir.Ref
	since                 time.Time

	// read is true after the storage was searched for the certificate at least once.
	read bool
	// issued is the certificate that was read from the storage, or nil if no certificate was found.
	issued *issued
	// lastError is the reason why the host has no certificate, or why its certificate was not renewed. It is nil if
	// there was no error.
	lastError *failure
	// misses is the number of consecutive reads of the storage that found no certificate.
	misses int

	// busy is true while a task is working on the host, and ordering is true if this task orders a certificate. again
	// is true if the certificate must be read from the storage once more after the task.
	busy, ordering, again bool
	// ordered is the time of the last order, and polled is the time when the certificate authority was last asked for
	// the renewal time.
	ordered, polled time.Time
	// got is the result of the last order, for the log message. It is cleared when the new certificate has been read
	// from the storage.
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

// wildcard reports whether the host is a wildcard. A certificate for a wildcard needs the DNS-01 challenge or a private
// certificate authority.
func (h *host) wildcard() bool { return strings.HasPrefix(h.subject, "*.") }

// hostOf returns the host in the storage key of a certificate, in the form that storage keys use. It returns false for
// all other keys.
func hostOf(key string) (string, bool) {
	parts := strings.Split(key, "/")
	if len(parts) != 4 || parts[0] != certificatesFolder {
		return "", false
	}
	return parts[2], true
}

// certificatesFolder is the first path element of the storage keys of certificates.
var certificatesFolder = path.Dir(certmagic.StorageKeys.CertsPrefix("issuer"))

// issued is a certificate that was read from the storage, with the issuer that has issued it.
type issued struct {
	pair      *tls.Certificate
	issuerKey string
	renewal   renewal
}

// Intervals between two reads of a host's certificate from the storage.
const (
	// calm is the interval for hosts that have a certificate. It is long, because the storage reports most changes
	// itself.
	calm = time.Hour
	// While a host has no certificate, replicas that do not order certificates poll the storage for it. The interval
	// doubles from firstPoll to lastPoll.
	firstPoll = time.Second
	lastPoll  = time.Minute
)

// nextRead returns when to read the host's certificate from the storage again, on a replica that is not ordering the
// certificate now.
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

// jitter returns a random duration between 90% and 100% of d, so that hosts that were added at the same time are not
// all read at the same time.
func jitter(d time.Duration) time.Duration { return d - time.Duration(rand.Int64N(int64(d)/10+1)) }

// forgetOtherIssuers clears the last error unless it came from the issuers with the given mark, so that a host is
// ordered from new issuers at once.
func (h *host) forgetOtherIssuers(mark string) {
	if h.lastError != nil && h.lastError.Issuers != mark {
		h.lastError, h.ordered = nil, time.Time{}
	}
}
