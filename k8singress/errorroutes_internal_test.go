package k8singress

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

// TestErrorResponse checks that a failed request is recorded with the status and the size that the client got, whatever
// the error routes do with the response.
func TestErrorResponse(t *testing.T) {
	flush := func(w http.ResponseWriter) { _ = http.NewResponseController(w).Flush() }
	for name, do := range map[string]func(w http.ResponseWriter){
		"nothing":           func(http.ResponseWriter) {},
		"a status":          func(w http.ResponseWriter) { w.WriteHeader(http.StatusTeapot) },
		"a body":            func(w http.ResponseWriter) { _, _ = w.Write([]byte("body")) },
		"a copied body":     func(w http.ResponseWriter) { _, _ = io.Copy(w, strings.NewReader("body")) },
		"a flush":           flush,
		"a flush, a status": func(w http.ResponseWriter) { flush(w); w.WriteHeader(http.StatusTeapot) },
		"a status, a flush": func(w http.ResponseWriter) { w.WriteHeader(http.StatusTeapot); flush(w) },
		"an interim response, a flush": func(w http.ResponseWriter) {
			w.WriteHeader(http.StatusEarlyHints)
			flush(w)
		},
		"a flush, a body": func(w http.ResponseWriter) { flush(w); _, _ = w.Write([]byte("body")) },
	} {
		recorded := make(chan *errorResponse, 1)
		server := httptest.NewServer(accountErrorRoutes(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			e := w.(*errorResponse)
			e.record = func() { recorded <- e }
			do(w)
		})))
		got, err := http.Get(server.URL)
		if err != nil {
			t.Fatal(name, err)
		}
		body, err := io.ReadAll(got.Body)
		_ = got.Body.Close()
		server.Close()
		if e := <-recorded; err != nil || e.status != got.StatusCode || e.sent != int64(len(body)) {
			t.Errorf("%s: the client got %d and %q, and %d and %d bytes are recorded, error %v", name, got.StatusCode,
				body, e.status, e.sent, err)
		}
	}
}
