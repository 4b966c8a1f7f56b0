package proxy

import (
	"cmp"
	"crypto/tls"
	"errors"
	"fmt"
	"net/http"
	"time"

	"golang.org/x/net/http/httpguts"

	"github.com/k8singress/k8singress/internal/http/exchange"
	"github.com/k8singress/k8singress/internal/http/http1"
	"github.com/k8singress/k8singress/internal/http/message"
	"github.com/k8singress/k8singress/internal/model/ir"
)

// roundTripHTTP1 sends the request to an endpoint that speaks HTTP/1.1. It uses an idle connection if there is one, and
// retries on a new connection if the idle one turns out to be closed.
func (r *request) roundTripHTTP1() error {
	to, config := key{namespace: r.Backend.Namespace(), address: r.address}, (*tls.Config)(nil)
	if r.protocol == ir.HTTPS {
		to.secured, config = r.tlsClient, r.tlsClient.http1Config
	}
	if c := r.pool.reuse(to, r.withoutRoom()); c != nil {
		err := r.roundTripOn(c)
		if err == nil || c.touched || !r.sentTwice(err) {
			return err
		}
		r.sent = false
	}
	began := time.Now()
	socket, share, err := r.dialer().open(r.Context(), r.address, config)
	if err != nil {
		return err
	}
	r.Connected(time.Since(began))
	c := newConn(socket, to)
	c.share = share
	return r.roundTripOn(c)
}

// sentTwice reports whether the request may be sent to the same endpoint again, on a new connection, after it failed
// with err on an idle connection. Such a request may have failed only because the endpoint closed the idle connection
// before the request arrived.
func (r *request) sentTwice(err error) bool {
	whole, broken := r.body.canResend()
	return whole && broken == nil && !errors.Is(err, errBadRequest) && !errors.Is(err, errTryNext) &&
		!isTimeout(err) &&
		r.gone() == nil && (!r.sent || r.settings.retry.repeatable(r.Method))
}

// roundTripOn sends the request on one connection. It returns the connection to the pool if it can be reused.
func (r *request) roundTripOn(c *conn) error {
	over := false
	defer c.closeUnless(&over)
	c.begin(r.Request, r.settings.Read, r.settings.Write)
	up, err := r.send(c)
	if err == nil {
		if err = r.readHead(c); err == nil {
			err = r.forwardResponse(c)
		}
	}
	complete := true
	if up != nil {
		complete, err = up.join(c, r, err)
	}
	over = true
	if !c.finish() || err != nil || !complete || !c.head.KeepAlive || r.settings.closes() {
		c.close()
		return err
	}
	r.pool.keep(c)
	return nil
}

// send sends the request head, together with the body if the body is short and in memory. Any other body is sent by
// another goroutine: send then returns the upload, which is still running. Otherwise it returns a nil upload.
func (r *request) send(c *conn) (*upload, error) {
	memory, kept := r.body.shortInMemory()
	if len(memory) > 0 {
		// The write may take long.
		c.watch()
	}
	buffer := large.Get()
	err := r.sendHead(c, buffer.Bytes(), memory)
	buffer.Release()
	if err != nil || kept {
		return nil, err
	}
	return r.upload(c), nil
}

// sendHead sends the request head, followed by memory, which contains the whole body or is empty.
func (r *request) sendHead(c *conn, buffer, memory []byte) error {
	head, err := r.appendHead(buffer[:0], c)
	if err != nil {
		return fmt.Errorf("%w: %w", errBadRequest, err)
	}
	r.sent = true
	if len(memory) <= cap(head)-len(head) {
		head, memory = append(head, memory...), nil
	}
	if err = c.write(head); err == nil && len(memory) > 0 {
		err = c.write(memory)
	}
	return err
}

// appendHead appends the request line and the header fields to buffer. Package http1 validates the values that come
// from clients and filters when it writes them.
func (r *request) appendHead(buffer []byte, c *conn) ([]byte, error) {
	// HTTP/1.0 clients may omit the host, but HTTP/1.1 endpoints require it.
	line := http1.RequestLine{Method: r.Method, Target: r.OutTarget(), Host: cmp.Or(r.forwarded.host, r.address)}
	if !httpguts.ValidHostHeader(line.Host) {
		return nil, fmt.Errorf("the Host header %q is not valid", line.Host)
	}
	line.Framing, line.Length = r.body.framing()
	if r.IsWebSocket() {
		line.Upgrade = r.UpgradeProtocol()
	} else {
		line.Close = r.settings.closes() || r.pool.keepsNone.Load()
	}
	c.fields = r.outgoing(c.fields[:0])
	return http1.AppendRequestHead(buffer, &line, c.fields)
}

// readHead reads the head of the response. It forwards interim responses, as RFC 9110 section 15.2 requires. maxHead
// limits the total size of the interim responses and the final head.
func (r *request) readHead(c *conn) error {
	for size := 0; ; {
		n, err := c.readHead(r.Method, maxHead-size)
		if err != nil {
			return err
		}
		size += n
		switch status := c.response.Status; {
		case status == http.StatusSwitchingProtocols:
			if !r.IsWebSocket() || !isWebSocket(c.response.Fields) {
				return errSwitches
			}
			return nil
		case status >= http.StatusOK:
			return nil
		case status > http.StatusContinue:
			// Ignore the error: if the client has disconnected, writing the final response fails, too.
			_ = r.Writer.Interim(status, c.response.Fields)
		}
	}
}

var errSwitches = fmt.Errorf("%w: the endpoint switches to a protocol that was not requested", errInvalid)

// forwardResponse forwards the response to the client.
func (r *request) forwardResponse(c *conn) error {
	status := c.response.Status
	r.SetResponseStatus(status)
	if status == http.StatusSwitchingProtocols {
		return r.switched(c)
	}
	if r.retryAllowedFor(status) {
		return errTryNext
	}
	r.ResponseStarted(r.body.sentAt())
	c.body.begin(c)
	if r.Replaces(status) {
		r.replace(c)
		return nil
	}
	if err := r.writeHead(&c.response); err != nil {
		return err
	}
	return r.abort(r.forwardBody(c))
}

// writeHead writes the head of a response to the client.
func (r *request) writeHead(a *message.Response) error {
	r.Hide(&a.Fields)
	r.edit(a.Fields)
	r.FlagCookies(&a.Fields)
	// While the body of an HTTP/1.1 request is still arriving, the server cannot tell where the next request begins, so
	// it closes the connection after the response.
	a.Close = r.Major == 1 && r.body.arriving()
	if err := r.Head(a); err != nil {
		if !r.Writer.Started() {
			return exchange.Fail(http.StatusInternalServerError, fmt.Errorf("writing the response: %w", err))
		}
		return r.abort(fmt.Errorf("%w: %w", errClientWrite, err))
	}
	return nil
}

// abort cuts off the response to the client, whose head has already been written, and returns an error that wraps err
// and exchange.ErrAborted. If err is nil, abort does nothing and returns nil.
func (r *request) abort(err error) error {
	if err == nil {
		return nil
	}
	if !errors.Is(err, errClientWrite) {
		_ = r.Writer.Flush() // Send the data that is already buffered.
	}
	r.Writer.Abort()
	return fmt.Errorf("%w: %w", exchange.ErrAborted, err)
}
