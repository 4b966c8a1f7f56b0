package k8singress

import (
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/caddyserver/caddy/v2"
)

func TestReadDocument(t *testing.T) {
	const limit = 10
	for name, c := range map[string]struct {
		body   io.Reader
		length int64
		status int
	}{
		"as large as allowed": {strings.NewReader("0123456789"), 10, 0},
		"length not told":     {strings.NewReader("0123456789"), -1, 0},
		"too large": {iotest.ErrReader(errors.New("the body was read")), 11,
			http.StatusRequestEntityTooLarge},
		"too large and not told": {strings.NewReader("0123456789x"), -1, http.StatusRequestEntityTooLarge},
		"broken off":             {iotest.ErrReader(io.ErrUnexpectedEOF), 5, http.StatusBadRequest},
	} {
		t.Run(name, func(t *testing.T) {
			r := httptest.NewRequest(http.MethodPut, "/", c.body)
			r.ContentLength = c.length
			got, err := readDocument(httptest.NewRecorder(), r, limit)
			var failure caddy.APIError
			errors.As(err, &failure)
			if failure.HTTPStatus != c.status || c.status == 0 && string(got) != "0123456789" {
				t.Errorf("%q, error %v, want status %d", got, err, c.status)
			}
		})
	}
}
