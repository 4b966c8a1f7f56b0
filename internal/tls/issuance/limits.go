package issuance

import (
	"cmp"
	"crypto/x509"
	"errors"
	"math/rand/v2"
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"time"

	"github.com/mholt/acmez/v3/acme"

	"github.com/k8singress/k8singress/internal/model/nginx"
	"github.com/k8singress/k8singress/internal/model/report"
)

// The minimum and maximum delay between two attempts to order a certificate for the same host.
const (
	firstRetry = time.Minute
	lastRetry  = 6 * time.Hour
)

// backoff returns the delay before the next attempt, given the number of consecutive failed attempts. first is the
// delay after the first failure.
func backoff(first time.Duration, attempts int) time.Duration {
	d := min(first<<min(max(attempts, 1)-1, 20), lastRetry)
	return d*3/4 + time.Duration(rand.Int64N(int64(d)/2))
}

// limit is a rate limit that a certificate authority has reported.
type limit struct {
	until time.Time
	// all is true if the limit applies to the orders for all hosts, and false if it applies to a single host.
	all bool
}

// defaultPause is how long no orders are sent to a certificate authority that has reported a rate limit without saying
// when it ends.
const defaultPause = 15 * time.Minute

// maxPause is the maximum time for which no orders are sent after a rate limit. It protects against a certificate
// authority that reports a wrong end of the rate limit.
const maxPause = 8 * 24 * time.Hour

// limitOf returns the rate limit that an error describes, or nil if the error is not about a rate limit. The error is
// the result of an order for host. status and after are the status code and the Retry-After time of the certificate
// authority's last response.
func limitOf(host string, err error, status int, after, now time.Time) *limit {
	var p acme.Problem
	isProblem := errors.As(err, &p)
	switch {
	case isProblem && p.Type == acme.ProblemTypeRateLimited:
	case isProblem && p.Status != status:
		// The error has another status than the response, so it has another cause, such as a failed challenge. Do not
		// treat it as a rate limit.
		return nil
	case status == http.StatusTooManyRequests, status == http.StatusServiceUnavailable && !after.IsZero():
	default:
		return nil
	}
	after = later(after, timeIn(p.Detail))
	if after.IsZero() {
		after = now.Add(defaultPause)
	}
	return &limit{until: earlier(after, now.Add(maxPause)), all: !about(host, p)}
}

// times matches the time at which a rate limit ends, in the error messages of certificate authorities.
var times = regexp.MustCompile(`(?i)retry after (\d{4}-\d\d-\d\d)[T ](\d\d:\d\d:\d\d) ?(?:Z|UTC)`)

// timeIn returns the time in an error message such as "too many certificates already issued, retry after 2026-01-02
// 15:04:05 UTC". It returns the zero time if the message contains no time.
func timeIn(detail string) time.Time {
	found := times.FindStringSubmatch(detail)
	if found == nil {
		return time.Time{}
	}
	// Ignore the error: if the time cannot be parsed, Parse returns the zero time.
	at, _ := time.Parse(time.DateTime, found[1]+" "+found[2])
	return at
}

// about(host, p) reports whether the ACME error p concerns only this host or its parent domains. Orders for other hosts
// may then continue. Otherwise the owner of one host could stop the orders for all other hosts.
func about(host string, p acme.Problem) bool {
	if len(p.Subproblems) > 0 {
		return true
	}
	detail := strings.ToLower(p.Detail)
	if strings.Contains(detail, "identifiers") {
		return true
	}
	for domain := strings.TrimPrefix(host, "*."); strings.Contains(domain, "."); _, domain,
		_ = strings.Cut(domain, ".") {
		if strings.Contains(detail, domain) {
			return true
		}
	}
	return false
}

// maxText is the length in bytes to which error messages from certificate authorities are truncated. They are used in
// Kubernetes Events, whose notes have at most 1,024 bytes.
const maxText = 400

// issuerError returns a message for the owner of a host that says why an issuer has failed: the issuer's own error
// message, or the reason why the issuer could not be reached.
func issuerError(issuer string, err error) string {
	var noConnection *url.Error
	// A failed connection to a DNS provider can cause the same type of error, so check that the URL belongs to the
	// issuer.
	if !errors.As(err, &noConnection) || !strings.Contains(noConnection.URL, "//"+issuer+"/") {
		return issuer + " returned an error: " + errorText(err)
	}
	text := issuer + " cannot be reached: " + clean(noConnection.Error())
	var stranger x509.UnknownAuthorityError
	if errors.As(err, &stranger) {
		text += "; the administrator can trust the root of its certificate: issuer acme { trusted_roots <file> }"
	}
	return text
}

// errorText returns the details of an ACME problem, or the whole message of any other error.
func errorText(err error) string {
	text := err.Error()
	var p acme.Problem
	if errors.As(err, &p) {
		text = cmp.Or(p.Detail, p.Title, p.Type)
		for _, sub := range p.Subproblems {
			text += "; " + sub.Identifier.Value + ": " + sub.Detail
		}
	}
	return clean(text)
}

// clean makes an error message from a certificate authority safe to log: it replaces control characters and truncates
// the message.
func clean(s string) string {
	s = strings.Map(func(r rune) rune {
		if nginx.IsControl(r) {
			return ' '
		}
		return r
	}, strings.ToValidUTF8(s, "?"))
	return report.Cut(s, maxText+len("..."))
}
