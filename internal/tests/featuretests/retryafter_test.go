package featuretests

import (
	"fmt"
	"strings"
	"testing"
)

// TestRetryAfter checks that responses with status 503 have the header of k8singress.io/retry-after if the controller
// itself sends them, in each version of HTTP. Responses of endpoints do not have it.
func TestRetryAfter(t *testing.T) {
	const retryAfter = "k8singress.io/retry-after"
	waiting := func(name, service string, more ...string) string {
		return annotated(name, name+".example", service, append(more, retryAfter, "30")...)
	}
	limit := []string{"limit-rpm", "1", "limit-burst-multiplier", "1"}
	ip, port := erring(t)
	_, pages := errorPages(t, sameStatus)
	_, lax := errorPages(t, fine)
	in := startChains(t, class+service("app", port, ip)+service("none", "1")+service("pages", pages, ip)+
		service("lax", lax, ip)+
		waiting("app", "app")+waiting("none", "none")+waiting("chained", "app")+waiting("limited", "app", limit...)+
		waiting("closed", "app", "allowlist-source-range", "nowhere", "app-root", "/app")+
		waiting("kept", "app", append(limit, "custom-http-errors", "503", "default-backend", "lax")...)+
		waiting("paged", "none", "custom-http-errors", "503", "default-backend", "pages")+
		waiting("lax", "none", "custom-http-errors", "503", "default-backend", "lax")+
		waiting("replaced", "app", "custom-http-errors", "503", "default-backend", "pages")+
		annotated("zero", "zero.example", "none", retryAfter, "0")+
		annotated("absent", "absent.example", "none"),
		staffOne, map[string][]string{"chained.example": {"missing"}})
	in.byEachVersion(t, func(_ *testing.T, in *ingress) {
		for _, c := range []struct {
			host, path string
			status     int
			body, want string
		}{
			{"none", "/", 503, "", "30"},
			{"closed", "/", 503, "", "30"},
			{"closed", "/x", 503, "", "30"},
			{"chained", "/", 503, "", "30"},
			{"limited", "/", 503, "", "30"},
			{"kept", "/", 503, "page of 503", "30"},
			{"paged", "/", 503, "page of 503", "30"},
			{"lax", "/", 200, "page of 503", ""},
			{"replaced", "/503", 503, "page of 503", ""},
			{"app", "/503", 503, "app 503", ""},
			{"app", "/404", 404, "app 404", ""},
			{"zero", "/", 503, "", ""},
			{"absent", "/", 503, "", ""},
		} {
			in.retriesAfter(c.host+".example", c.path, c.status, c.body, c.want)
		}
	})
}

// TestRetryAfterOfAll checks that the ConfigMap sets the header for Ingresses without the annotation.
func TestRetryAfterOfAll(t *testing.T) {
	in := start(t, class+service("none", "1")+annotated("a", "a.example", "none")+
		annotated("own", "own.example", "none", "k8singress.io/retry-after", "30")+
		annotated("zero", "zero.example", "none", "k8singress.io/retry-after", "0")+
		global(`retry-after: "5"`), "configmap default/global")
	in.byEachVersion(t, func(_ *testing.T, in *ingress) {
		in.retriesAfter("a.example", "/", 503, "", "5")
		in.retriesAfter("own.example", "/", 503, "", "30")
		in.retriesAfter("zero.example", "/", 503, "", "")
	})
}

// retriesAfter sends requests until the response has the given status, because a rate limit lets the first ones pass.
// It then checks the body and the values of Retry-After.
func (in *ingress) retriesAfter(host, path string, status int, body, want string) {
	in.Helper()
	var got answer
	in.eventually("a response", func() error {
		if got = in.get(host, path); got.status != status {
			return fmt.Errorf("%s%s: %d instead of %d", host, path, got.status, status)
		}
		return nil
	})
	values := strings.Join(got.header.Values("Retry-After"), ", ")
	if got.body != body || values != want {
		in.Errorf("%s%s: %q with Retry-After %q, want %q with %q", host, path, got.body, values, body, want)
	}
}
