package proxy

import (
	"context"
	"crypto/tls"
	"fmt"
	"net/netip"
	"time"

	"github.com/k8singress/k8singress/internal/http/callout"
	"github.com/k8singress/k8singress/internal/http/http1"
	"github.com/k8singress/k8singress/internal/http/message"
	"github.com/k8singress/k8singress/internal/upstream/reach"
)

// The backend IDs for connections to external services. reach.Guard decides by the ID which addresses are allowed.
// serviceByAddress is the ID if the URL of the service contains an IP address. serviceByName is the ID if it contains a
// DNS name, which may resolve to any address. serviceByRequestHost is the ID if the host is taken from the client's
// request, so that this process itself may serve it.
const (
	serviceByAddress     = "service/address"
	serviceByName        = "service/name"
	serviceByRequestHost = "service/own"
)

// NewServicePool returns a pool for calls to external services, such as authentication services. It must not be used
// for connections to endpoints.
func NewServicePool(guard *reach.Guard) *Pool {
	if guard != nil {
		guard.SetName(serviceByName, true)
		guard.SetName(serviceByRequestHost, true)
		guard.AllowOwnAddresses(serviceByRequestHost)
	}
	p := NewPool(guard)
	p.descriptors = calls
	return p
}

// Call calls an external service on behalf of a request. The call is canceled when the request ends. Call reads at most
// max(callout.MaxResponse, q.Drain) bytes of the response. It does not follow redirects. As in ingress-nginx, the
// certificate of an HTTPS service is not verified.
func (p *Pool) Call(r *message.Request, q *callout.Call) (callout.Response, error) {
	to, config := key{namespace: q.Namespace, address: q.Address, own: q.Own}, (*tls.Config)(nil)
	if q.Secure {
		g := p.defaultClient.Load()
		to.secured, config = g, g.http1Config
	}
	if c := p.reuse(to, q.Dispensable); c != nil {
		response, err := p.callOn(c, r, q)
		// The service may have closed the idle connection before the call arrived. The call is then sent again on a new
		// connection, unless it has a body.
		if err == nil || c.touched || len(q.Body) > 0 || isTimeout(err) || context.Cause(r.Context()) != nil {
			return response, callError(q, err)
		}
	}
	d := dialer{
		pool: p, backend: serviceByName, namespace: q.Namespace, timeout: q.Connect, spare: q.Dispensable,
		listed: func() bool { return true },
	}
	if _, err := netip.ParseAddrPort(q.Address); err == nil {
		d.backend = serviceByAddress
	} else if q.Own {
		d.backend = serviceByRequestHost
	}
	socket, share, err := d.open(r.Context(), q.Address, config)
	if err != nil {
		return callout.Response{}, callError(q, err)
	}
	c := newConn(socket, to)
	c.share = share
	response, err := p.callOn(c, r, q)
	return response, callError(q, err)
}

func callError(q *callout.Call, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("%s at %s: %w", q.Purpose, q.Address, err)
}

// callOn makes the call on one connection. It returns the connection to the pool if it can be reused.
func (p *Pool) callOn(c *conn, r *message.Request, q *callout.Call) (callout.Response, error) {
	over := false
	defer c.closeUnless(&over)
	c.begin(r, q.Read, q.Write)
	if q.Drain > 0 {
		c.watch()
	}
	c.calls++
	last := q.Idle < 0 || p.keepsNone.Load() || q.Requests > 0 && c.calls >= q.Requests
	response, size, err := c.roundTripCall(q, last)
	if err == nil && (q.Drain > 0 || !last && c.head.KeepAlive) {
		last = !c.discard(max(callout.MaxResponse, q.Drain)-size, q.Drain > 0) || last
	}
	over = true
	if !c.finish() || err != nil || last || !c.head.KeepAlive {
		c.close()
		return response, err
	}
	c.maxIdle, c.lifetime = q.Idle, q.IdleTimeout
	p.keep(c)
	return response, nil
}

// roundTripCall sends the request for a call to an external service, and reads the head of the response. size is the
// size in bytes of all response heads, including interim responses. If last is true, the request asks the service to
// close the connection.
func (c *conn) roundTripCall(q *callout.Call, last bool) (response callout.Response, size int, err error) {
	if err := c.writeCall(q, last); err != nil {
		return response, 0, err
	}
	for {
		n, err := c.readHead(q.Method, callout.MaxResponse-size)
		if err != nil {
			return response, 0, err
		}
		size += n
		switch status := c.response.Status; {
		case status == 101:
			return response, 0, errSwitches
		case status >= 200:
			return q.NewResponse(status, c.response.Fields), size, nil
		}
	}
}

// writeCall sends the request for a call to an external service. If last is true, the request asks the service to close
// the connection.
func (c *conn) writeCall(q *callout.Call, last bool) error {
	buffer := small.Get()
	err := c.writeCallWith(buffer.Bytes(), q, last)
	buffer.Release()
	return err
}

func (c *conn) writeCallWith(buffer []byte, q *callout.Call, last bool) error {
	line := http1.RequestLine{Method: q.Method, Target: q.Target, Host: q.Host, Close: last}
	if len(q.Body) > 0 {
		line.Framing, line.Length = http1.Sized, int64(len(q.Body))
	}
	head, err := http1.AppendRequestHead(buffer[:0], &line, q.Fields)
	if err != nil {
		return err
	}
	if err = c.write(head); err == nil && len(q.Body) > 0 {
		err = c.write(q.Body)
	}
	return err
}

// discard reads and discards the rest of a response, so that the connection can be reused. It returns false if the rest
// has more than limit bytes, or if reading it fails. If patience is true, discard waits for the rest until the read
// timeout or the end of the request, otherwise for at most watchDelay.
func (c *conn) discard(limit int, patience bool) bool {
	var chunks http1.Decoder
	left := c.response.Length
	for waits := false; !c.skipBody(&chunks, &left); waits = true {
		switch {
		case patience:
			c.extendRead()
		case !waits:
			_ = c.bare.SetReadDeadline(time.Now().Add(watchDelay))
			c.in.moved = time.Time{}
			c.keepInterrupted()
		}
		c.at, c.end = 0, 0
		n, err := c.socket.Read(c.buffer.Bytes())
		if limit -= n; err != nil || limit < 0 {
			return false
		}
		c.end = n
	}
	return true
}

// skipBody discards the part of the response body that is in the connection's buffer. It returns true if this part
// contains the end of the body.
func (c *conn) skipBody(chunks *http1.Decoder, left *int64) bool {
	switch c.head.Framing {
	case http1.NoBody:
		return true
	case http1.UntilClose:
		return false
	case http1.Chunked:
		return c.skipChunks(chunks)
	case http1.Sized:
		n := min(*left, int64(c.end-c.at))
		c.at += int(n)
		*left -= n
		return *left == 0
	}
	return false
}

func (c *conn) skipChunks(chunks *http1.Decoder) bool {
	for c.at < c.end {
		_, n, done, err := chunks.Next(c.buffered())
		c.at += n
		if done || err != nil {
			return done
		}
	}
	return false
}
