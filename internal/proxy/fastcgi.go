package proxy

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"

	"github.com/k8singress/k8singress/internal/fastcgi"
)

// applications carries requests to FastCGI applications, each on a connection of its own, which is what nginx does and what
// a PHP-FPM with few workers needs: a worker keeps to its connection.
type applications struct{ exchange *Exchange }

var errNoLength = errors.New("the length of the body is not known, which FastCGI demands, and there is no room to wait for its end")

// RoundTrip keeps to what http.RoundTripper asks for. The end of the context ends whatever the connection waits for.
func (a applications) RoundTrip(r *http.Request) (*http.Response, error) {
	if r.ContentLength < 0 {
		return nil, errNoLength
	}
	params, err := a.exchange.params(r)
	if err != nil {
		return nil, err
	}
	ctx := r.Context()
	conn, err := dial(ctx, "tcp", r.URL.Host)
	if err != nil {
		return nil, err
	}
	unwatch := context.AfterFunc(ctx, func() { _ = conn.Close() })
	end := func() error {
		unwatch()
		return conn.Close()
	}
	response, err := ask(conn, params, r)
	if err != nil {
		_ = end()
		if ctx.Err() != nil {
			err = context.Cause(ctx)
		}
		if errors.Is(err, fastcgi.ErrInvalid) {
			err = noCGI{err}
		}
		return nil, err
	}
	response.Body = &lasting{response.Body, end}
	return response, nil
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
	if r.Body == nil || r.Body == http.NoBody {
		if err := fastcgi.WriteBody(conn, nil); err != nil {
			return nil, err
		}
	} else {
		go send(conn, r.Body)
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

// lasting is a body that does something more at its end.
type lasting struct {
	io.ReadCloser
	end func() error
}

func (e *lasting) Close() error { return errors.Join(e.ReadCloser.Close(), e.end()) }
