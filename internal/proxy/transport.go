package proxy

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"

	"github.com/caddyserver/caddy/v2/modules/caddyhttp/reverseproxy"

	"github.com/k8singress/k8singress/internal/ir"
)

// transports are one for each protocol that is spoken with endpoints.
type transports map[ir.BackendProtocol]*http.Transport

func (t transports) closeIdle() {
	for _, one := range t {
		one.CloseIdleConnections()
	}
}

// newTransports makes one transport for each protocol, which all routes share that do not say how TLS is spoken. Timeouts
// belong to requests, and are not here.
func newTransports(perAddress int, idleTimeout time.Duration) transports {
	all := transports{}
	for _, protocol := range []ir.BackendProtocol{ir.HTTP, ir.HTTPS, ir.GRPC, ir.GRPCS} {
		all[protocol] = newTransport(protocol, secure(protocol), perAddress, idleTimeout)
	}
	return all
}

func newTransport(protocol ir.BackendProtocol, secure *tls.Config, perAddress int, idleTimeout time.Duration) *http.Transport {
	t := &http.Transport{
		DialContext: dial, DialTLSContext: dialTLS(secure), DisableCompression: true,
		MaxIdleConnsPerHost: max(perAddress, 0), DisableKeepAlives: perAddress < 0, IdleConnTimeout: idleTimeout,
		Protocols: new(http.Protocols), MaxResponseHeaderBytes: maxHead,
	}
	t.Protocols.SetHTTP1(protocol == ir.HTTP || protocol == ir.HTTPS)
	t.Protocols.SetHTTP2(protocol == ir.GRPCS)
	t.Protocols.SetUnencryptedHTTP2(protocol == ir.GRPC)
	return t
}

// secure is how the TLS of a protocol is spoken where nobody says otherwise.
func secure(protocol ir.BackendProtocol) *tls.Config {
	return speaking(protocol, &tls.Config{
		// As ingress-nginx: an endpoint is verified when proxy-ssl-verify asks for it.
		InsecureSkipVerify: true,
		ClientSessionCache: tls.NewLRUClientSessionCache(0),
	})
}

// transport returns that of an exchange which is not secured in a way of its own.
func (p *Pool) transport(x *Exchange, protocol ir.BackendProtocol) *http.Transport {
	if x.transports != nil {
		return x.transports[protocol]
	}
	return (*p.transports.Load())[protocol]
}

// RoundTrip sends a request that Caddy's reverse_proxy has prepared to the endpoint that it has been given by Next. An error
// that is a DialError lets reverse_proxy ask for another endpoint; what the client is to be told stands in Failure.
func (p *Pool) RoundTrip(r *http.Request, x *Exchange) (*http.Response, error) {
	address := r.URL.Host
	protocol := x.settings.protocol(r)
	x.address(r, protocol)
	var inner http.RoundTripper = applications{x}
	if protocol != ir.FastCGI {
		inner = p.transport(x, protocol)
	}
	client := r.Context()
	idle := newIdle(client, x.settings)
	r = r.WithContext(context.WithValue(idle.ctx, dialingKey{}, &dialing{x.settings.Connect, x.endpoints.Listed()}))
	x.sends(r, idle)
	response, err := inner.RoundTrip(r)
	idle.pause()
	if err == nil && response.StatusCode == http.StatusSwitchingProtocols && !switches(r, response) {
		_ = response.Body.Close()
		err = errSwitches
	}
	again, broken := idle.sent()
	switch {
	case err == nil && again && response.StatusCode != http.StatusSwitchingProtocols && x.againFor(r.Method, response.StatusCode):
		_ = response.Body.Close()
		idle.end()
		x.endpoints.Done(false)
		return nil, reverseproxy.NewDialError(errPassedOn)
	case err != nil:
		err = cmp.Or(broken, idle.explain(err))
		idle.end()
		return nil, x.retried(client, r.Method, address, err, again)
	}
	x.endpoints.Answered(idle.asked())
	x.edit(response.Header)
	idle.receives(response)
	if x.settings.BufferResponse && response.StatusCode != http.StatusSwitchingProtocols {
		response.Body = &buffered{newElastic(response.Body), response.Body}
	}
	return response, nil
}

// address makes a request one to the endpoint.
func (x *Exchange) address(r *http.Request, protocol ir.BackendProtocol) {
	x.told.apply(r)
	r.URL.Scheme = "http"
	if speaksTLS(protocol) {
		r.URL.Scheme = "https"
	}
	if x.settings.closes() && !Upgrades(r) {
		r.Close = true
	}
}

// switches says whether an answer switches to the protocol that was asked for. reverse_proxy would say nothing to any other.
func switches(r *http.Request, response *http.Response) bool {
	return Upgrades(r) && strings.EqualFold(response.Header.Get("Upgrade"), "websocket")
}

// buffered is an answer that the endpoint gets rid of at once.
type buffered struct {
	*elastic
	source io.Closer
}

func (b *buffered) Close() error {
	return errors.Join(b.elastic.Close(), b.source.Close())
}

// retried tells load balancing of a failure, and turns it into what reverse_proxy understands. whole says that there is all
// of the request for another endpoint.
func (x *Exchange) retried(ctx context.Context, method, address string, err error, whole bool) error {
	var dialing reverseproxy.DialError
	unsent := errors.As(err, &dialing)
	if strings.Contains(err.Error(), "malformed") && !errors.Is(err, errInvalid) {
		// net/http has no other word for it.
		err = fmt.Errorf("%w: %w", errInvalid, err)
	}
	kind := x.fail(ctx, address, err)
	if kind != refused {
		x.endpoints.Done(true)
	}
	if whole && x.again(method, kind, !unsent) {
		return reverseproxy.NewDialError(err)
	}
	if unsent {
		// It would be taken for one that may be repeated.
		return fmt.Errorf("endpoint %s: %s", address, err.Error())
	}
	return err
}

// sends gives an attempt the body from its beginning, and moves the time limit as the body goes.
func (x *Exchange) sends(r *http.Request, idle *idle) {
	r.GetBody = nil
	if x.body != nil {
		// net/http would go by TransferEncoding, which is how the client sent it.
		r.Body, r.ContentLength, r.TransferEncoding = x.body.reader(), x.body.size, nil
		r.GetBody = func() (io.ReadCloser, error) { return &sending{ReadCloser: x.body.reader(), idle: idle}, nil }
		switch {
		case len(r.Trailer) > 0 && !x.settings.speaksCGI():
			// Only a chunked body has trailers.
			r.ContentLength = -1
		case x.body.size == 0:
			r.Body, r.GetBody = http.NoBody, nil
		}
	}
	if r.Body == nil || r.Body == http.NoBody {
		idle.reset(idle.read)
		return
	}
	r.Body = &sending{ReadCloser: r.Body, idle: idle, once: x.body == nil}
	idle.reset(idle.write)
}
