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

// Delays between two attempts for one host.
const (
	firstRetry = time.Minute
	lastRetry  = 6 * time.Hour
)

// backoff returns the delay after the given number of consecutive failed attempts.
func backoff(first time.Duration, attempts int) time.Duration {
	d := min(first<<min(max(attempts, 1)-1, 20), lastRetry)
	return d*3/4 + time.Duration(rand.Int64N(int64(d)/2))
}

// limit is a rate limit that an authority has reported.
type limit struct {
	until time.Time
	// all means that the limit applies to all our orders, not to one host.
	all bool
}

// defaultPause is how long to pause an authority that does not say for how long its limit lasts.
const defaultPause = 15 * time.Minute

// maxPause is the maximum pause. An authority can send a wrong time.
const maxPause = 8 * 24 * time.Hour

// limitOf returns the rate limit in an error for a host, or nil if the error is not a rate limit. status and after are
// the status code and the Retry-After time of the last response.
func limitOf(host string, err error, status int, after, now time.Time) *limit {
	var p acme.Problem
	isProblem := errors.As(err, &p)
	switch {
	case isProblem && p.Type == acme.ProblemTypeRateLimited:
	case isProblem && p.Status != status:
		// The status code belongs to another response than this problem, such as the problem of a challenge.
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

// times matches the end of a rate limit in the error texts of authorities.
var times = regexp.MustCompile(`(?i)retry after (\d{4}-\d\d-\d\d)[T ](\d\d:\d\d:\d\d) ?(?:Z|UTC)`)

// timeIn returns the time in a text such as "too many certificates already issued, retry after 2026-01-02 15:04:05
// UTC", or the zero time.
func timeIn(detail string) time.Time {
	found := times.FindStringSubmatch(detail)
	if found == nil {
		return time.Time{}
	}
	// The time is zero after an error.
	at, _ := time.Parse(time.DateTime, found[1]+" "+found[2])
	return at
}

// about reports whether a problem concerns the host or one of its parent domains. Without this check, the owner of one
// host could stop the orders for all others.
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

// maxText is the maximum length, in bytes, of an authority's text in a message. The note of an Event is limited to
// 1,024.
const maxText = 400

// issuerError returns the error of an issuer, or why the issuer could not be reached, worded for the owner of a host.
func issuerError(issuer string, err error) string {
	var noConnection *url.Error
	// Requests to a DNS provider also use HTTP, so compare the URL with the issuer.
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

// errorText returns the part of an error that helps the reader.
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

// clean makes the text of an authority safe for a line of a log: it replaces control characters and shortens the text.
func clean(s string) string {
	s = strings.Map(func(r rune) rune {
		if nginx.IsControl(r) {
			return ' '
		}
		return r
	}, strings.ToValidUTF8(s, "?"))
	return report.Cut(s, maxText+len("..."))
}
