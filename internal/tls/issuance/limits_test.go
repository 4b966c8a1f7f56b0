package issuance

import (
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/mholt/acmez/v3/acme"
	"go.uber.org/zap"
)

const limited = acme.ProblemTypeRateLimited

func TestLimits(t *testing.T) {
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	header := now.Add(time.Hour)
	said := time.Date(2026, 1, 3, 4, 5, 6, 0, time.UTC)
	for name, c := range map[string]struct {
		err    error
		status int
		after  time.Time
		want   *limit
	}{
		"another error": {acme.Problem{Type: "urn:ietf:params:acme:error:unauthorized", Status: 403}, 403,
			time.Time{}, nil},
		"a text": {errors.New("connection refused"), 0, time.Time{}, nil},
		"everything, by header": {
			acme.Problem{Type: limited, Status: 429, Detail: "Too many requests from this account"}, 429, header,
			&limit{header, true},
		},
		"everything, by its text": {
			acme.Problem{Type: limited, Detail: "too many new orders (300) from this account in the last 3h0m0s, " +
				"retry after 2026-01-03 04:05:06 UTC: see https://letsencrypt.org/docs/rate-limits"}, 429, header,
			&limit{said, true},
		},
		"the host": {
			acme.Problem{Type: limited,
				Detail: `too many failed authorizations (5) for "www.shop.example" in the last 1h0m0s, ` +
					"retry after 2026-01-03T04:05:06Z"}, 429, time.Time{}, &limit{said, false},
		},
		"its domain": {
			acme.Problem{Type: limited, Detail: `too many certificates (50) already issued for "shop.example"`}, 429,
			header,
			&limit{header, false},
		},
		"its set of names": {
			acme.Problem{Type: limited,
				Detail: "too many certificates (5) already issued for this exact set of identifiers"}, 429, header,
			&limit{header, false},
		},
		"no time":             {acme.Problem{Type: limited}, 429, time.Time{}, &limit{now.Add(defaultPause), true}},
		"no problem document": {errors.New("HTTP 429: slow down"), 429, header, &limit{header, true}},
		"maintenance":         {errors.New("HTTP 503: "), 503, header, &limit{header, true}},
		"a challenge, after a fault": {
			acme.Problem{Type: "urn:ietf:params:acme:error:connection", Status: 400, Detail: "refused"},
			503, header, nil,
		},
		"a fault":   {errors.New("HTTP 503: "), 503, time.Time{}, nil},
		"centuries": {acme.Problem{Type: limited}, 429, now.AddDate(300, 0, 0), &limit{now.Add(maxPause), true}},
	} {
		got := limitOf("www.shop.example", fmt.Errorf("ordering: %w", c.err), c.status, c.after, now)
		if (got == nil) != (c.want == nil) || got != nil && (!got.until.Equal(c.want.until) || got.all != c.want.all) {
			t.Errorf("%s: %v, want %v", name, got, c.want)
		}
	}
}

func TestBackoffGrowsUpToItsEnd(t *testing.T) {
	for attempts, base := range map[int]time.Duration{
		0: firstRetry, 1: firstRetry, 2: 2 * firstRetry, 5: 16 * firstRetry, 9: 256 * firstRetry, 10: lastRetry,
		5000: lastRetry,
	} {
		for range 100 {
			if got := backoff(firstRetry, attempts); got < base*3/4 || got > base*5/4 {
				t.Errorf("after %d attempts %v, want about %v", attempts, got, base)
			}
		}
	}
}

// TestWordsAreFitForALog checks that the text of an authority is made short and printable for logs and Events.
func TestWordsAreFitForALog(t *testing.T) {
	got := errorText(acme.Problem{Detail: "line\n\x1b[31mred\u2028" + strings.Repeat("ü", 500)})
	if strings.ContainsAny(got, "\n\x1b\u2028") || len(got) > maxText+3 || !strings.HasSuffix(got, "ü…") {
		t.Errorf("%q", got)
	}
	if got := errorText(fmt.Errorf("x: %w", acme.Problem{Type: "t", Title: "the title"})); got != "the title" {
		t.Errorf("%q", got)
	}
}

func TestAnswer(t *testing.T) {
	server := httptest.NewUnstartedServer(http.NotFoundHandler())
	server.Config.ErrorLog = zap.NewStdLog(zap.NewNop())
	server.StartTLS()
	defer server.Close()
	authority := strings.TrimPrefix(server.URL, "https://")
	response, err := (&http.Client{}).Get(server.URL + "/dir")
	if err == nil {
		response.Body.Close()
		t.Fatal("a client trusts a server that it cannot know")
	}
	err = fmt.Errorf("registering: %w", err)
	for issuer, want := range map[string][]string{
		authority: {authority + " cannot be reached: Get", "unknown authority", "trusted_roots"},
		"other":   {"other returned an error: registering: Get"},
	} {
		got := issuerError(issuer, err)
		for _, part := range want {
			if !strings.Contains(got, part) {
				t.Errorf("%q has no %q", got, part)
			}
		}
		if issuer == "other" && strings.Contains(got, "trusted_roots") {
			t.Errorf("%q is not about the authority", got)
		}
	}
}
