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
// PHP-FPM worker serves only one connection at a time, so idle connections would occupy workers. The end of the context
// interrupts all waits.
func (r *request) roundTripCGI(d *dialing, to *http.Request) (*http.Response, error) {
	params, err := r.params()
	if err != nil {
		return nil, err
	}
	conn, err := d.lend(to.Context(), r.address, nil)
	if err != nil {
		return nil, err
	}
	// The connection is also closed when the request has ended.
	panics.AfterContext(to.Context(), "proxy/fastcgi", func() { _ = conn.Close() })
	response, err := ask(conn, params, to)
	if errors.Is(err, fastcgi.ErrInvalid) {
		err = noCGI{err}
	}
	return response, err
}

// noCGI is an errInvalid with the message of the FastCGI error.
type noCGI struct{ error }

func (n noCGI) Unwrap() []error { return []error{errInvalid, n.error} }

// ask sends the request and reads the head of the response. An application may respond before it has read the whole
// body.
func ask(conn net.Conn, params []fastcgi.Param, r *http.Request) (*http.Response, error) {
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
		panics.Go("proxy/fastcgi", func() { send(conn, r.Body) }, func() { _ = conn.Close() })
	}
	return fastcgi.ReadResponse(conn, r)
}

// send sends the body until it ends or the connection fails. An application that stops reading may still respond, so a
// failed write is ignored. If the body itself cannot be read, the connection is closed, since an incomplete request
// must not get a response.
func send(conn net.Conn, body io.Reader) {
	if err := fastcgi.WriteBody(conn, body); errors.Is(err, fastcgi.ErrBody) {
		_ = conn.Close()
	}
}
