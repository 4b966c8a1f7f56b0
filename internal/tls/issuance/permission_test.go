package issuance

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"
	"time"
)

// TestAsk checks that only a 2xx response of the URL of ask, before askPatience has passed, allows a certificate, and
// that the URL is not requested again for a denied name. Caddy's module does not cancel its request, so the handshake
// must not wait for its end, and a response that comes too late must not allow the name.
func TestAsk(t *testing.T) {
	late := make(chan bool)
	for name, test := range map[string]struct {
		respond http.HandlerFunc
		allowed bool
	}{
		"200": {func(http.ResponseWriter, *http.Request) {}, true},
		"204": {func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusNoContent) }, true},
		"404": {http.NotFound, false},
		"500": {func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusInternalServerError) }, false},
		"a redirect": {func(w http.ResponseWriter, r *http.Request) {
			if r.URL.Path == "/may" {
				http.Redirect(w, r, "/yes", http.StatusFound)
			}
		}, false},
		"no response": {func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }, false},
		"200 too late": {func(_ http.ResponseWriter, r *http.Request) {
			select {
			case <-late:
			case <-r.Context().Done():
				t.Error("the handshake waited until the module ended its request")
			}
		}, false},
	} {
		t.Run(name, func(t *testing.T) {
			var asked atomic.Int64
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				asked.Add(1)
				if got := r.URL.Query().Get("domain"); got != "a.example" {
					t.Errorf("the URL was requested for the name %q", got)
				}
				test.respond(w, r)
			}))
			t.Cleanup(server.Close)
			b := newBench(t)
			plan := b.issuer("one")
			b.permission = fmt.Appendf(nil, `{"module":"http","endpoint":%q}`, server.URL+"/may")
			r := b.replica(true, time.Second)
			orders := 0
			if test.allowed {
				orders = 1
			}
			for handshake := range 2 {
				if handshake == 1 && name == "200 too late" {
					close(late)
				}
				if got := r.shakes("a.example") != nil; got != test.allowed {
					t.Errorf("the name has a certificate: %t", got)
				}
			}
			if plan.count() != orders || asked.Load() != 1 {
				t.Errorf("%d orders, the URL was requested %d times", plan.count(), asked.Load())
			}
		})
	}
}
