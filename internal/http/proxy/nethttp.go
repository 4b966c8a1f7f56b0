package proxy

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/k8singress/k8singress/internal/http/message"
	"github.com/k8singress/k8singress/internal/model/ir"
)

// transports holds one http.Transport per namespace. An http.Transport pools connections by address only. If the
// namespaces shared one http.Transport, a namespace could use connections that another namespace has opened, even to an
// address to which it must not connect itself. These connections would also count towards the other namespace's limit
// of file descriptors.
type transports struct {
	fresh func() *http.Transport
	// all maps each namespace to its *http.Transport.
	all sync.Map
}

// t.of(namespace) returns the transport of the namespace, and creates it on the first call.
func (t *transports) of(namespace string) *http.Transport {
	if found, ok := t.all.Load(namespace); ok {
		return found.(*http.Transport)
	}
	// If two goroutines create a transport at the same time, one of the two transports is kept. The other one has no
	// connections yet, so it does not have to be closed.
	kept, _ := t.all.LoadOrStore(namespace, t.fresh())
	return kept.(*http.Transport)
}

func (t *transports) closeIdle() {
	t.all.Range(func(_, transport any) bool {
		transport.(*http.Transport).CloseIdleConnections()
		return true
	})
}

// newTransport returns a transport that speaks HTTP/2: with TLS, or with prior knowledge if secure is nil. perAddress
// is the maximum number of idle connections per address; no connections are kept if it is negative. The transport has
// no timeouts for requests, because each request has its own.
func newTransport(secure *tls.Config, perAddress int, idleTimeout time.Duration) *http.Transport {
	dial := func(ctx context.Context, _, address string) (net.Conn, error) {
		return ctx.Value(dialerKey{}).(*dialer).openAccounted(ctx, address, secure)
	}
	t := &http.Transport{
		DialContext: dial, DialTLSContext: dial, DisableCompression: true,
		MaxIdleConnsPerHost: max(perAddress, 0), DisableKeepAlives: perAddress < 0, IdleConnTimeout: idleTimeout,
		Protocols: new(http.Protocols), MaxResponseHeaderBytes: maxHead,
	}
	t.Protocols.SetHTTP2(secure != nil)
	t.Protocols.SetUnencryptedHTTP2(secure == nil)
	return t
}

// roundTripNetHTTP sends the request to an endpoint that speaks gRPC or FastCGI, and forwards the response.
func (r *request) roundTripNetHTTP() error {
	r.hold()
	from := r.body.reader()
	idle := newIdleTimer(r.Context(), r.settings, func() {
		if from != nil {
			r.stopReading(from)
		}
	})
	defer idle.end()
	defer r.stopReadingAndWait(from)
	response, err := r.sendNetHTTP(idle, from)
	idle.pause()
	if err != nil {
		r.stopReadingAndWait(from)
		if _, broken := r.body.canResend(); broken != nil {
			return broken
		}
		return idle.explain(err)
	}
	defer response.Body.Close()
	if r.SetResponseStatus(response.StatusCode); r.retryAllowedFor(response.StatusCode) {
		return errTryNext
	}
	r.ResponseStarted(r.body.sentAt())
	return r.forwardNetHTTP(response, &timedResponseBody{body: response.Body, idle: idle})
}

func (r *request) sendNetHTTP(idle *idleTimer, from *bodyReader) (*http.Response, error) {
	d := r.dialer()
	request := r.netHTTPRequest(context.WithValue(idle.ctx, dialerKey{}, d))
	if from == nil {
		idle.reset(idle.read)
	} else {
		request.Body = &timedRequestBody{from, idle, r}
		idle.reset(idle.write)
	}
	var response *http.Response
	var err error
	switch {
	case r.settings.speaksCGI():
		response, err = r.roundTripCGI(d, request)
	case r.protocol == ir.GRPCS:
		response, err = r.tlsClient.secure.of(r.Backend.Namespace()).RoundTrip(request)
	default:
		response, err = r.tlsClient.clear.of(r.Backend.Namespace()).RoundTrip(request)
	}
	var failed dialFailed
	if r.sent = err == nil || !errors.As(err, &failed); err != nil && strings.Contains(err.Error(), "malformed") &&
		!errors.Is(err, errInvalid) {
		// net/http exports no error for malformed responses, so the text of the error is checked.
		err = fmt.Errorf("%w: %w", errInvalid, err)
	}
	return response, err
}

// netHTTPRequest returns the request as an http.Request.
func (r *request) netHTTPRequest(ctx context.Context) *http.Request {
	to := r.ToHTTP().WithContext(ctx)
	to.Header = r.outgoing(nil).Header()
	if r.Fields.HasToken(message.TE, "trailers") {
		// gRPC servers may require this field. As in ingress-nginx, HTTP/1.1 endpoints do not get it.
		to.Header["Te"] = []string{"trailers"}
	}
	to.URL.Scheme, to.URL.Host = "http", r.address
	if r.protocol == ir.GRPCS {
		to.URL.Scheme = "https"
	}
	to.Host, to.RequestURI, to.Body = cmp.Or(r.forwarded.host, r.address), "", http.NoBody
	to.Close = r.settings.closes()
	if r.body != nil {
		to.ContentLength = r.body.length
	}
	return to
}

// forwardNetHTTP forwards a response to the client, after net/http or package fastcgi has read its head.
func (r *request) forwardNetHTTP(response *http.Response, from *timedResponseBody) error {
	answer := message.Response{Status: response.StatusCode, Length: response.ContentLength}
	for _, field := range message.FieldsOf(response.Header) {
		if !field.Kind.Hop() {
			answer.Fields.Add(field)
		}
	}
	for name := range response.Trailer {
		answer.Trailers = append(answer.Trailers, name)
	}
	if r.flushes(&answer) {
		from.flushes = r.Writer
	}
	if err := r.writeHead(&answer); err != nil {
		return err
	}
	err := r.copy(from, answer.Length)
	if err == nil {
		err = clientWriteError(r.Writer.Trailer(message.FieldsOf(response.Trailer)))
	}
	if _, broken := r.body.canResend(); err != nil && !errors.Is(err, errClientWrite) && broken != nil {
		err = broken
	}
	return r.abort(err)
}
