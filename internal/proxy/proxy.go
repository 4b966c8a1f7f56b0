// Package proxy sends an ordinary HTTP request to one of the endpoints of a backend, and the answer back, in the goroutine
// that the request has anyway and on connections that it keeps. That is most requests of most clusters, and costs half of
// what Caddy's reverse_proxy does, which knows all of HTTP and gets all the others.
package proxy

import (
	"cmp"
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/caddyserver/caddy/v2/modules/caddyhttp"
)

// Forward serves a request that is Ordinary. An error carries the status for the client, to whom nothing has been written
// then, unless it wraps ErrCut.
func (p *Pool) Forward(w http.ResponseWriter, r *http.Request, x *Exchange) error {
	for {
		address, ok := x.Next()
		if !ok {
			return cmp.Or[error](x.failed, caddyhttp.Error(http.StatusServiceUnavailable, errNoEndpoint))
		}
		a := attempt{Exchange: x, pool: p, w: w, r: r, address: address}
		again, err := a.run()
		switch {
		case again:
			continue
		case err == nil:
			return nil
		case errors.Is(err, ErrCut):
			return fmt.Errorf("endpoint %s: %w", address, err)
		}
		return x.failed
	}
}

// attempt is one request to one endpoint.
type attempt struct {
	*Exchange
	pool    *Pool
	w       http.ResponseWriter
	r       *http.Request
	address string
	// sent says that the endpoint may have got the request.
	sent bool
}

func (a *attempt) length() int64 {
	if a.body == nil {
		return 0
	}
	return a.body.size
}

// errPassedOn is for an answer that is not passed on, because another endpoint may have a better one.
var errPassedOn = errors.New("the answer has a status that another endpoint is asked for")

// run asks on a connection that is there, and on a new one when that one turns out to be closed. It returns whether another
// endpoint is to be asked.
func (a *attempt) run() (again bool, err error) {
	if c := a.pool.take(a.address); c != nil {
		err := a.on(c)
		if err == nil || c.touched || !a.sentTwice(err) {
			return a.judge(err)
		}
		a.sent = false
	}
	c, err := a.pool.dial(a.r.Context(), a.address, &dialing{a.settings.Connect, a.endpoints.Listed()})
	if err == nil {
		err = a.on(c)
	}
	return a.judge(err)
}

// sentTwice says whether the same endpoint may get the request once more, on a new connection: the old one may have been
// closed before the request came.
func (a *attempt) sentTwice(err error) bool {
	return !errors.Is(err, errBadRequest) && !errors.Is(err, errPassedOn) && !isTimeout(err) && a.r.Context().Err() == nil &&
		(!a.sent || a.settings.retry.repeatable(a.r.Method))
}

// judge tells load balancing how the endpoint did, unless the client is the reason: nobody may have endpoints ejected that
// are well.
func (a *attempt) judge(err error) (again bool, _ error) {
	switch {
	case err == nil || errors.Is(err, errPassedOn):
		a.endpoints.Done(false)
		return err != nil, err
	case errors.Is(err, ErrCut):
		if !errors.Is(err, errNotTaken) && a.r.Context().Err() == nil {
			a.endpoints.Done(true)
		}
		return false, err
	}
	kind := a.fail(a.r.Context(), a.address, err)
	if kind != refused {
		a.endpoints.Done(true)
	}
	return a.again(a.r.Method, kind, a.sent), err
}

// on asks on one connection, and gives it back to the pool if it is of further use.
func (a *attempt) on(c *conn) error {
	c.begin(a.r, a.settings.Read, a.settings.Write)
	if a.body != nil {
		// To write it may take long.
		c.watch()
	}
	keep := false
	defer func() {
		if !c.end() || !keep {
			c.close()
			return
		}
		a.pool.keep(c)
	}()
	answer, err := a.ask(c)
	if err != nil {
		return err
	}
	if a.againFor(a.r.Method, answer.status) {
		return errPassedOn
	}
	a.endpoints.Answered(time.Time{})
	a.editHead(&answer)
	if a.settings.BufferResponse && answer.body != nil {
		// The body may be read by another goroutine.
		c.watch()
	}
	if err := answer.pass(a.w, a.settings.BufferResponse); err != nil {
		// Close of the body would read all that is left of it.
		c.close()
		return err
	}
	keep = answer.reusable() && !a.settings.closes()
	return nil
}

// ask sends the request, and reads the head of the answer.
func (a *attempt) ask(c *conn) (answer, error) {
	if err := a.writeHead(c.writer); err != nil {
		return answer{}, err
	}
	a.sent = true
	if a.body != nil {
		_, _ = c.writer.Write(a.body.memory) // An error stays in the writer until it is flushed.
	}
	if err := c.writer.Flush(); err != nil {
		return answer{}, err
	}
	return c.readHead(a.w, a.r)
}
