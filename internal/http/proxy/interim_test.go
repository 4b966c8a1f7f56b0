package proxy_test

import (
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

// TestInterimResponseIsNotRetried checks that a request that must not be repeated is not repeated after an interim
// response either.
func TestInterimResponseIsNotRetried(t *testing.T) {
	e := serve(t, func(conn net.Conn, _ *http.Request) bool {
		_, _ = io.WriteString(conn, "HTTP/1.1 102 Processing\r\n\r\n")
		return false
	})
	if got := forward(pool(t), request(t, http.MethodPost, "body"), of(e)); got != "error 502" ||
		e.requests.Load() != 1 {
		t.Errorf("%s after %d requests", got, e.requests.Load())
	}
}

func TestManyInterimResponses(t *testing.T) {
	e := serve(t, respondWith(strings.Repeat("HTTP/1.1 102 Processing\r\n\r\n", 50)+fine))
	w := &interim{ResponseRecorder: httptest.NewRecorder()}
	if got := outcome(w.ResponseRecorder,
		forwardOnce(pool(t), w, request(t, http.MethodPut, "body"), settings(), of(e))); got != "200 ok" {
		t.Error(got)
	}
	if w.count != 50 {
		t.Errorf("%d interim answers", w.count)
	}
}

// interim counts interim responses, which httptest would record as the final response.
type interim struct {
	*httptest.ResponseRecorder
	count int
}

func (i *interim) WriteHeader(status int) {
	if status < http.StatusOK {
		i.count++
		return
	}
	i.ResponseRecorder.WriteHeader(status)
}
