// Package proxy sends an ordinary HTTP request to one of the endpoints of a backend, and the answer back, in the goroutine
// that the request has anyway and on connections that it keeps. That is most requests of most clusters, and costs half of
// what Caddy's reverse_proxy does, which knows all of HTTP and gets all the others.
package proxy

import (
	"context"
	"errors"
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
	// Tries counts the first one. Another one follows a failed one as ingress-nginx's proxy-next-upstream "error timeout"
	// says: nothing has reached the client, and the endpoint did not get the request or it may get it twice.
	Tries int
}

// Forward serves a request that is Ordinary. pick returns the address of an endpoint for each try, or false if there is
// none. An error carries the status for the client, to whom nothing has been written then; when the answer breaks off it
// panics with http.ErrAbortHandler, as net/http's own proxy does.
func (p *Pool) Forward(w http.ResponseWriter, r *http.Request, s *Settings, pick func() (string, bool)) error {
	body, err := readBody(r)
	if err != nil {
		return err
	}
	told := forwardedOf(r)
	for try := 1; ; try++ {
		address, ok := pick()
		if !ok {
			return caddyhttp.Error(http.StatusServiceUnavailable, errNoEndpoint)
		}
		a := attempt{pool: p, settings: s, w: w, r: r, body: body, forwarded: &told, address: address}
		err := a.run()
		switch {
		case err == nil:
			return nil
		case errors.Is(err, errCut):
			// What is there reaches the client, who notices that it is not all.
			_ = http.NewResponseController(w).Flush()
			panic(http.ErrAbortHandler)
		case r.Context().Err() != nil:
			return caddyhttp.Error(clientGone, context.Cause(r.Context()))
		case errors.Is(err, errBadRequest):
			return caddyhttp.Error(http.StatusBadRequest, err)
		case try >= s.Tries || !a.again():
			return caddyhttp.Error(statusOf(err), err)
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

// readBody reads the whole body, which is small.
func readBody(r *http.Request) ([]byte, error) {
	if r.ContentLength == 0 || r.Body == nil {
		return nil, nil
	}
	body := make([]byte, r.ContentLength)
	if _, err := io.ReadFull(r.Body, body); err != nil {
		if tooLarge := new(http.MaxBytesError); errors.As(err, &tooLarge) {
			return nil, caddyhttp.Error(http.StatusRequestEntityTooLarge, err)
		}
		if r.Context().Err() != nil {
			return nil, caddyhttp.Error(clientGone, err)
		}
		return nil, caddyhttp.Error(http.StatusBadRequest, err)
	}
	return body, nil
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
	// sent says that the endpoint may have got the request.
	sent bool
}

// again says whether another endpoint may get the request.
func (a *attempt) again() bool { return !a.sent || repeatable(a.r) }

// run asks on a connection that is there, and on a new one when that one turns out to be closed.
func (a *attempt) run() error {
	if c := a.pool.take(a.address); c != nil {
		err := a.on(c)
		if err == nil || c.touched || !a.again() || errors.Is(err, errBadRequest) || isTimeout(err) || a.r.Context().Err() != nil {
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
	stop := context.AfterFunc(a.r.Context(), c.interrupt)
	keep, err := a.exchange(c)
	// When it does not stop, the client has gone and somebody has interrupted the connection, or is about to.
	if !stop() || err != nil || !keep {
		c.close()
		return err
	}
	a.pool.keep(c)
	return nil
}

func (a *attempt) exchange(c *conn) (keep bool, err error) {
	c.begin(a.settings.Read, a.settings.Write)
	if err := writeHead(c.writer, a.r, a.forwarded, len(a.body)); err != nil {
		return false, err
	}
	a.sent = true
	_, _ = c.writer.Write(a.body) // An error stays in the writer until it is flushed.
	if err := c.writer.Flush(); err != nil {
		return false, err
	}
	response, err := c.readHead(a.w, a.r)
	if err != nil {
		return false, err
	}
	defer response.Body.Close()
	keep = reusable(response)
	return keep, c.pass(a.w, response)
}
