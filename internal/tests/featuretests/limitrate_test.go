package featuretests

import (
	"net/http"
	"testing"
	"time"
)

// TestLimitRate checks that a response takes at least the time that its size requires, and is complete. The first
// bytes are not limited.
func TestLimitRate(t *testing.T) {
	body := pattern(300 << 10)
	ip, port := endpointOf(t, func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/chunked" {
			_ = http.NewResponseController(w).Flush()
		}
		_, _ = w.Write(body)
	})
	in := start(t, class+service("one", port, ip)+
		annotated("a", "a.example", "one", "limit-rate", "200", "limit-rate-after", "100")+
		annotated("b", "b.example", "one", "limit-rate-after", "1")+
		annotated("c", "c.example", "one", "limit-rate", "0")+
		annotated("d", "d.example", "one", "limit-rate", "1", "limit-rate-after", "1024")+
		global(`limit-rate: "400"`),
		"configmap default/global")
	in.byEachAtOnce(t, func(t *testing.T, in *ingress) {
		for _, c := range []struct {
			host, path string
			atLeast    time.Duration
		}{
			{"a.example", "/sized", 700 * time.Millisecond}, {"a.example", "/chunked", 700 * time.Millisecond},
			{"b.example", "/sized", 450 * time.Millisecond}, {"c.example", "/sized", 0},
			// It would take five minutes.
			{"d.example", "/sized", 0},
		} {
			begin := time.Now()
			got := in.sendBy(in.client, in.origin(c.host)+c.path, http.MethodGet, nil)
			if got.status != http.StatusOK || hash([]byte(got.body)) != hash(body) {
				t.Errorf("%s%s: %d, and %d bytes", c.host, c.path, got.status, len(got.body))
			}
			took(t, c.host+c.path, begin, c.atLeast)
		}
	})
}
