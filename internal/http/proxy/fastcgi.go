package proxy

import (
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"

	"github.com/k8singress/k8singress/internal/http/fastcgi"
	"github.com/k8singress/k8singress/internal/process/panics"
)

// roundTripCGI sends the request to a FastCGI application on a new connection. As in nginx, connections are not kept: a
// PHP-FPM worker serves only one connection at a time, so idle connections would occupy workers. When the context of
// the request ends, the connection is closed, which ends all reads and writes.
func (r *request) roundTripCGI(d *dialer, to *http.Request) (*http.Response, error) {
	params, err := r.params()
	if err != nil {
		return nil, err
	}
	conn, err := d.openAccounted(to.Context(), r.address, nil)
	if err != nil {
		return nil, err
	}
	// The context ends when the request ends, at the latest, so the connection is always closed.
	panics.AfterContext(to.Context(), "proxy/fastcgi", func() { _ = conn.Close() })
	response, err := sendCGI(conn, params, to)
	if errors.Is(err, fastcgi.ErrInvalid) {
		err = invalidCGI{err}
	}
	return response, err
}

// invalidCGI is the error for an invalid response of a FastCGI application. It wraps errInvalid, and has the message of
// the error of package fastcgi.
type invalidCGI struct{ error }

func (n invalidCGI) Unwrap() []error { return []error{errInvalid, n.error} }

// sendCGI sends the request and reads the head of the response. An application may respond before it has read the whole
// body.
func sendCGI(conn net.Conn, params []fastcgi.Param, r *http.Request) (*http.Response, error) {
	if err := fastcgi.WriteParams(conn, params); err != nil {
		if errors.Is(err, fastcgi.ErrTooLarge) {
			err = fmt.Errorf("%w: %w", errBadRequest, err)
		}
		return nil, err
	}
	if r.Body == http.NoBody {
		if err := fastcgi.WriteBody(conn, nil); err != nil {
			return nil, err
		}
	} else {
		panics.Go("proxy/fastcgi", func() { sendCGIBody(conn, r.Body) }, func() { _ = conn.Close() })
	}
	return fastcgi.ReadResponse(conn, r)
}

// sendCGIBody sends the body until it ends or the connection fails. An application that stops reading may still
// respond, so a failed write is ignored. If the body itself cannot be read, the connection is closed, since an
// incomplete request must not get a response.
func sendCGIBody(conn net.Conn, body io.Reader) {
	if err := fastcgi.WriteBody(conn, body); errors.Is(err, fastcgi.ErrBody) {
		_ = conn.Close()
	}
}
