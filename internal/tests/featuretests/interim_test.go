package featuretests

import (
	"net/http"
	"testing"
)

// TestNoInterimResponsesOverHTTP10 checks that clients of HTTP/1.0 get no interim responses, since they would mistake
// the first one for the final response.
func TestNoInterimResponsesOverHTTP10(t *testing.T) {
	in := inFront(t, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Link", "</a.css>")
		w.WriteHeader(http.StatusEarlyHints)
		w.WriteHeader(http.StatusProcessing)
		w.Header().Set("X-Last", "yes")
		_, _ = w.Write([]byte("ok"))
	})
	in.byHTTP1(t, func(t *testing.T, in *ingress) {
		for version, want := range map[string]string{"HTTP/1.0": "200 ok", "HTTP/1.1": "103"} {
			d := in.connect()
			d.say("%s", head("GET / "+version, "X-A: 1"))
			if got := d.hear(http.MethodGet); got != want {
				t.Errorf("%s: the first answer is %q, want %q", version, got, want)
			}
		}
	})
}
