// Package proxy sends an ordinary HTTP request to one of the endpoints of a backend, and the answer back, in the goroutine
// that the request has anyway and on connections that it keeps. That is most requests of most clusters, and costs half of
// what Caddy's reverse_proxy does, which knows all of HTTP and gets all the others.
package proxy

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"time"

	"github.com/caddyserver/caddy/v2/modules/caddyhttp"
)

// Settings are how long to wait for an endpoint, and how many to ask.
type Settings struct {
	// Connect is for a new connection; Read and Write are for times in which nothing comes in or goes out.
	Connect, Read, Write time.Duration
	// Tries counts the first one. Another one follows a failed one as with ingress-nginx's proxy-next-upstream "error timeout":
	// the endpoint has not said a word, and it did not get the request or may get it twice.
	Tries int
}

// Forward serves a request that is Ordinary. pick returns the address of an endpoint for each try, or false if there is
// none. An error carries the status for the client, to whom nothing has been written then, unless it wraps ErrCut.
func (p *Pool) Forward(w http.ResponseWriter, r *http.Request, s *Settings, pick func() (string, bool)) error {
	body, err := readBody(r)
	if err != nil {
		return err
	}
	told := forwardedOf(r)
	failed := caddyhttp.Error(http.StatusServiceUnavailable, errNoEndpoint)
	for try := 1; ; try++ {
		address, ok := pick()
		if !ok {
			return failed
		}
		a := attempt{pool: p, settings: s, w: w, r: r, body: body, forwarded: &told, address: address}
		err := a.run()
		switch {
		case err == nil:
			return nil
		case errors.Is(err, ErrCut):
			return fmt.Errorf("endpoint %s: %w", address, err)
		case r.Context().Err() != nil:
			return caddyhttp.Error(clientGone, context.Cause(r.Context()))
		case errors.Is(err, errBadRequest):
			return caddyhttp.Error(http.StatusBadRequest, err)
		}
		failed = caddyhttp.Error(statusOf(err), fmt.Errorf("endpoint %s: %w", address, err))
		if try >= s.Tries || !a.again() {
			return failed
		}
	}
}

// clientGone is what nginx writes into its log for a client that does not wait for the answer.
const clientGone = 499

var errNoEndpoint = errors.New("there is no endpoint")

// statusOf tells an endpoint that takes too long from one that fails.
func statusOf(err error) int {
	if timeout := net.Error(nil); errors.As(err, &timeout) && timeout.Timeout() {
		return http.StatusGatewayTimeout
	}
	return http.StatusBadGateway
}

// readBody reads the whole body, which is small. It takes the memory as the body comes in.
func readBody(r *http.Request) ([]byte, error) {
	if r.ContentLength == 0 || r.Body == nil {
		return nil, nil
	}
	var body bytes.Buffer
	n, err := body.ReadFrom(io.LimitReader(r.Body, r.ContentLength))
	if err == nil && n < r.ContentLength {
		err = io.ErrUnexpectedEOF
	}
	if err == nil {
		return body.Bytes(), nil
	}
	status := http.StatusBadRequest
	switch tooLarge := new(http.MaxBytesError); {
	case errors.As(err, &tooLarge):
		status = http.StatusRequestEntityTooLarge
	case r.Context().Err() != nil:
		status = clientGone
	case isTimeout(err):
		status = http.StatusRequestTimeout
	}
	return nil, caddyhttp.Error(status, fmt.Errorf("reading the request: %w", err))
}

// attempt is one request to one endpoint.
type attempt struct {
	pool     *Pool
	settings *Settings
	w        http.ResponseWriter
	r        *http.Request
	body     []byte
	// forwarded is what the endpoint is told of the client.
	forwarded *forwarded
	address   string
	// sent says that the endpoint may have got the request, and answered that it has said something.
	sent, answered bool
}

// again says whether another endpoint may get the request.
func (a *attempt) again() bool { return !a.sent || !a.answered && repeatable(a.r) }

// run asks on a connection that is there, and on a new one when that one turns out to be closed.
func (a *attempt) run() error {
	if c := a.pool.take(a.address); c != nil {
		err := a.on(c)
		if err == nil || !a.again() || errors.Is(err, errBadRequest) || isTimeout(err) || a.r.Context().Err() != nil {
			return err
		}
		a.sent = false
	}
	c, err := a.pool.dial(a.r.Context(), a.address, a.settings.Connect)
	if err != nil {
		return err
	}
	return a.on(c)
}

func isTimeout(err error) bool { return statusOf(err) == http.StatusGatewayTimeout }

// on asks on one connection, and gives it back to the pool if it is of further use.
func (a *attempt) on(c *conn) error {
	c.begin(a.settings.Read, a.settings.Write)
	stop, keep := context.AfterFunc(a.r.Context(), c.interrupt), false
	defer func() {
		// When it does not stop, somebody has interrupted the connection, or is about to.
		if !stop() || !keep {
			c.close()
			return
		}
		a.pool.keep(c)
	}()
	response, err := a.ask(c) //nolint:bodyclose // It is read to its end, or its connection is closed.
	a.answered = c.touched
	if err != nil {
		return err
	}
	may := reusable(response)
	if err := c.pass(a.w, response); err != nil {
		// Close of the body would read all that is left of it.
		c.close()
		return err
	}
	keep = may
	return nil
}

// ask sends the request, and reads the head of the answer.
func (a *attempt) ask(c *conn) (*http.Response, error) {
	if err := writeHead(c.writer, a); err != nil {
		return nil, err
	}
	a.sent = true
	_, _ = c.writer.Write(a.body) // An error stays in the writer until it is flushed.
	if err := c.writer.Flush(); err != nil {
		return nil, err
	}
	return c.readHead(a.w, a.r)
}
