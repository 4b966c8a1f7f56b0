package proxy

import (
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"

	"github.com/k8singress/k8singress/internal/fastcgi"
	"github.com/k8singress/k8singress/internal/panics"
)

// roundTripCGI asks a FastCGI application, on a connection of its own, which is what nginx does and what a PHP-FPM with few workers
// needs: a worker keeps to its connection. The end of the context ends whatever that waits for.
func (r *request) roundTripCGI(d *dialing, to *http.Request) (*http.Response, error) {
	params, err := r.params()
	if err != nil {
		return nil, err
	}
	conn, err := d.lend(to.Context(), r.address, nil)
	if err != nil {
		return nil, err
	}
	// It is closed when the request has ended, too.
	panics.AfterContext(to.Context(), "proxy/fastcgi", func() { _ = conn.Close() })
	response, err := ask(conn, params, to)
	if errors.Is(err, fastcgi.ErrInvalid) {
		err = noCGI{err}
	}
	return response, err
}

// noCGI is an errInvalid that says so in its own words.
type noCGI struct{ error }

func (n noCGI) Unwrap() []error { return []error{errInvalid, n.error} }

// ask sends the request and reads the head of the answer. An application may answer before it has read all of the body.
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

// send ends when the body does, or the connection. That an application takes no more of a body says nothing about its answer;
// but without all of the body there is none.
func send(conn net.Conn, body io.Reader) {
	if err := fastcgi.WriteBody(conn, body); errors.Is(err, fastcgi.ErrBody) {
		_ = conn.Close()
	}
}
