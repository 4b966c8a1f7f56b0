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
	// name is the host name in the configuration. subject is the same name in Punycode, for which the certificate is
	// ordered. stored is subject in the form that is used in storage keys.
	name, subject, stored string
	origin                ir.Ref
	// demand is set if the certificate is ordered on demand, otherwise nil. It never changes.
	demand *demand
	since  time.Time

	// read is true after the storage was searched for the certificate at least once.
	read bool
	// issued is the certificate that was read from the storage, or nil if no certificate was found.
	issued *issued
	// lastError is the reason why the host has no certificate, or why its certificate was not renewed. It is nil if
	// there was no error.
	lastError *failure
	// misses is the number of consecutive times that the certificate was not found in the storage.
	misses int

	// busy is true while a task runs for the host, such as reading its certificate or ordering a new one. ordering is
	// true if this task orders a certificate. again is true if the certificate must be read from the storage again
	// after the task.
	busy, ordering, again bool
	// ordered is the time of the last order. polled is the time of the last query for the renewal time, which the
	// certificate authority suggests.
	ordered, polled time.Time
	// got is the result of the last order, for example that a certificate was renewed. It is logged, and then cleared,
	// after the new certificate has been read from the storage.
	got  string
	gone bool
}

func newHost(name string, origin ir.Ref) *host {
	subject, err := idna.ToASCII(name)
	if err != nil {
		// The name is invalid. Keep it unchanged: the issuer returns an error for it.
		subject = name
	}
	return &host{
		name: name, subject: subject, stored: certmagic.StorageKeys.Safe(subject), origin: origin, since: time.Now(),
	}
}

// wildcard reports whether the host is a wildcard, such as *.example.com. To get a certificate for a wildcard, the
// DNS-01 challenge or a private certificate authority must be configured.
func (h *host) wildcard() bool { return strings.HasPrefix(h.subject, "*.") }

// hostOf returns the host name in the storage key of a certificate, in the form of host.stored. It returns false if key
// is not the key of a certificate.
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
	// calm is the interval for hosts that have a certificate. It is long, because the storage notifies the manager of
	// most changes.
	calm = time.Hour
	// A replica that does not order certificates reads the storage repeatedly until another replica has stored the
	// certificate. The interval doubles from firstPoll to lastPoll.
	firstPoll = time.Second
	lastPoll  = time.Minute
)

// nextRead returns when the host's certificate must be read from the storage again. It is not called while this replica
// orders a certificate for the host.
func (h *host) nextRead(now time.Time, leads bool) time.Time {
	switch {
	case h.demand != nil && h.demand.pending:
		// Handshakes wait for the certificate.
		return now.Add(firstPoll)
	case h.issued == nil && h.demand == nil:
		return now.Add(min(firstPoll<<min(h.misses, 10), lastPoll))
	}
	at := now.Add(jitter(calm))
	if leads && h.issued != nil && h.issued.renewal.at.Before(at) {
		at = h.issued.renewal.at
	}
	return at
}

// wanted reports whether the leader must order or renew the certificate when this is due. A certificate on demand is
// only ordered and renewed if there are handshakes for its name.
func (h *host) wanted() bool { return h.demand == nil || h.demand.pending }

// jitter returns a random duration between 90% and 100% of d. Without it, the certificates of hosts that were added at
// the same time would all be read at the same time.
func jitter(d time.Duration) time.Duration { return d - time.Duration(rand.Int64N(int64(d)/10+1)) }

// forgetOtherIssuers clears the host's last error if other issuers than the configured ones have caused it. A
// certificate is then ordered from the configured issuers at once. mark identifies these issuers.
func (h *host) forgetOtherIssuers(mark string) {
	if h.lastError != nil && h.lastError.Issuers != mark {
		h.lastError, h.ordered = nil, time.Time{}
	}
}
