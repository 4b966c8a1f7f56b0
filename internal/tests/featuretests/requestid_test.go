package featuretests

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
)

// TestRequestID checks that a request has the same ID in every variable and header, whether the client or the
// controller generated it.
func TestRequestID(t *testing.T) {
	in := inFront(t, func(w http.ResponseWriter, r *http.Request) {
		fmt.Fprintf(w, "%s %s", r.Header.Get("X-Request-Id"), r.Host)
	}, "upstream-vhost: id-$request_id", "upstream-hash-by: $request_id")
	in.byEachVersion(t, func(t *testing.T, in *ingress) {
		own := in.send(http.MethodGet, "/", nil, "X-Request-ID: mine-1")
		if own.body != "mine-1 id-mine-1" {
			t.Errorf("the client's id becomes %q", own.body)
		}
		made := in.send(http.MethodGet, "/", nil)
		id, host, _ := strings.Cut(made.body, " ")
		if len(id) != 32 || host != "id-"+id {
			t.Errorf("the id that is made up: %q", made.body)
		}
		if another := in.send(http.MethodGet, "/", nil); another.body == made.body {
			t.Errorf("two requests have the id %s", id)
		}
	})
}

// TestNoRequestID checks that generate-request-id can be disabled.
func TestNoRequestID(t *testing.T) {
	ip, port := endpointOf(t, func(w http.ResponseWriter, r *http.Request) {
		fmt.Fprintf(w, "%q %s", r.Header["X-Request-Id"], r.Host)
	})
	in := start(t, class+service("one", port, ip)+oneWith("upstream-vhost: id-$request_id.example")+
		global(`generate-request-id: "false"`), "configmap default/global")
	in.byEachVersion(t, func(t *testing.T, in *ingress) {
		if got := in.send(http.MethodGet, "/", nil).body; got != `[] id-.example` {
			t.Errorf("without an id: %s", got)
		}
		if got := in.send(http.MethodGet, "/", nil, "X-Request-ID: mine").body; got != `["mine"] id-mine.example` {
			t.Errorf("with one: %s", got)
		}
	})
}
