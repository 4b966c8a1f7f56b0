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

	"github.com/k8singress/k8singress/internal/nginx"
	"github.com/k8singress/k8singress/internal/report"
)

// Times between two attempts for one host.
const (
	firstRetry = time.Minute
	lastRetry  = 6 * time.Hour
)

// backoff returns how long to wait after so many attempts in a row have failed.
func backoff(first time.Duration, attempts int) time.Duration {
	d := min(first<<min(max(attempts, 1)-1, 20), lastRetry)
	return d*3/4 + time.Duration(rand.Int64N(int64(d)/2))
}

// limit is what an authority says of being asked too often.
type limit struct {
	until time.Time
	// all says that it is about everything that we ask for, not about one host.
	all bool
}

// unsaid is how long an authority rests that does not say for how long.
const unsaid = 15 * time.Minute

// longest is for how long an authority is believed at most, whose answer may be garbled.
const longest = 8 * 24 * time.Hour

// limitOf reads an error for a host and what came with it. It returns nil for an error that is no limit.
func limitOf(host string, err error, status int, after, now time.Time) *limit {
	var p acme.Problem
	isProblem := errors.As(err, &p)
	switch {
	case isProblem && p.Type == acme.ProblemTypeRateLimited:
	case isProblem && p.Status != status:
		// What came with the answer is not about this problem, such as one of a challenge.
		return nil
	case status == http.StatusTooManyRequests, status == http.StatusServiceUnavailable && !after.IsZero():
	default:
		return nil
	}
	after = later(after, saidIn(p.Detail))
	if after.IsZero() {
		after = now.Add(unsaid)
	}
	return &limit{until: earlier(after, now.Add(longest)), all: !about(host, p)}
}

// times are how authorities write the end of a limit into the text for people.
var times = regexp.MustCompile(`(?i)retry after (\d{4}-\d\d-\d\d)[T ](\d\d:\d\d:\d\d) ?(?:Z|UTC)`)

// saidIn finds the time in a text such as "too many certificates already issued, retry after 2026-01-02 15:04:05 UTC".
func saidIn(detail string) time.Time {
	found := times.FindStringSubmatch(detail)
	if found == nil {
		return time.Time{}
	}
	// With an error it is zero.
	at, _ := time.Parse(time.DateTime, found[1]+" "+found[2])
	return at
}

// about says whether a problem is about a host or a domain above it. If it were taken for one of everything, the
// owner of one host could stop the certificates of all others.
func about(host string, p acme.Problem) bool {
	if len(p.Subproblems) > 0 {
		return true
	}
	detail := strings.ToLower(p.Detail)
	if strings.Contains(detail, "identifiers") {
		return true
	}
	for domain := strings.TrimPrefix(host, "*."); strings.Contains(domain, "."); _, domain, _ = strings.Cut(domain, ".") {
		if strings.Contains(detail, domain) {
			return true
		}
	}
	return false
}

// most is how much of the words of an authority is repeated, in bytes. The note of an Event has 1,024.
const most = 400

// answer is what an issuer says, or why it could not be asked, in words for the owner of a host.
func answer(issuer string, err error) string {
	var unasked *url.Error
	// A DNS provider is asked by HTTP, too.
	if !errors.As(err, &unasked) || !strings.Contains(unasked.URL, "//"+issuer+"/") {
		return issuer + " says: " + words(err)
	}
	said := issuer + " cannot be asked: " + clean(unasked.Error())
	var stranger x509.UnknownAuthorityError
	if errors.As(err, &stranger) {
		said += "; the administrator can name the root of its certificate: issuer acme { trusted_roots <file> }"
	}
	return said
}

// words are those of an error that its reader can do something with.
func words(err error) string {
	said := err.Error()
	var p acme.Problem
	if errors.As(err, &p) {
		said = cmp.Or(p.Detail, p.Title, p.Type)
		for _, sub := range p.Subproblems {
			said += "; " + sub.Identifier.Value + ": " + sub.Detail
		}
	}
	return clean(said)
}

// clean makes the text of an authority fit for a line of a log.
func clean(s string) string {
	s = strings.Map(func(r rune) rune {
		if nginx.IsControl(r) {
			return ' '
		}
		return r
	}, strings.ToValidUTF8(s, "?"))
	return report.Cut(s, most+len("..."))
}
