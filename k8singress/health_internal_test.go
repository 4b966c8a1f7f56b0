package k8singress

import (
	"net/http"
	"net/http/httptest"
	"testing"
)

// TestUnknownHealthPath checks that a 404 lists the paths that exist.
func TestUnknownHealthPath(t *testing.T) {
	for want, h := range map[string]*Health{
		"unknown path: the paths are /healthz and /readyz\n":         {},
		"unknown path: the paths are /alive, /readyz and /metrics\n": {Path: "/alive", Metrics: true},
	} {
		w := httptest.NewRecorder()
		err := h.ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/x", nil), nil)
		if err != nil || w.Code != http.StatusNotFound || w.Body.String() != want {
			t.Errorf("%d %q, error %v, want %q", w.Code, w.Body, err, want)
		}
	}
}
