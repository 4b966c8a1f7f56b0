package proxy_test

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"testing"
)

// deaf is a client that takes no more than the head.
type deaf struct{ *httptest.ResponseRecorder }

func (deaf) Write([]byte) (int, error) { return 0, errors.New("broken pipe") }

// TestClientsAreNoFailures holds that what a client does is not held against the endpoint.
func TestClientsAreNoFailures(t *testing.T) {
	ctx, leave := context.WithCancel(t.Context())
	leave()
	bad := request(t, http.MethodGet, "")
	bad.Header["X-A"] = []string{"a\r\nb"}
	for name, c := range map[string]struct {
		w http.ResponseWriter
		r *http.Request
	}{
		"does not read": {deaf{httptest.NewRecorder()}, request(t, http.MethodGet, "")},
		"goes away":     {httptest.NewRecorder(), request(t, http.MethodGet, "").WithContext(ctx)},
		"bad request":   {httptest.NewRecorder(), bad},
	} {
		t.Run(name, func(t *testing.T) {
			endpoints := of(serve(t, says(fine)))
			if err := send(pool(t), c.w, c.r, settings(), endpoints); err == nil {
				t.Error("it succeeds")
			}
			if len(endpoints.failed) > 0 {
				t.Errorf("the endpoint is judged: %v", endpoints.failed)
			}
		})
	}
}
