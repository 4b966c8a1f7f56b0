package live

import (
	"errors"
	"net/http"
	"time"

	"github.com/caddyserver/caddy/v2/modules/caddyhttp"

	"github.com/k8singress/k8singress/internal/balancer"
	"github.com/k8singress/k8singress/internal/ir"
	"github.com/k8singress/k8singress/internal/mtls"
	"github.com/k8singress/k8singress/internal/nginx"
	"github.com/k8singress/k8singress/internal/proxy"
	"github.com/k8singress/k8singress/internal/realip"
)

// Request is what the handlers of a chain may know of the request in their hands. It is for the goroutine that serves it.
type Request struct {
	Route *Route
	// Connections are those to the endpoints.
	Connections *proxy.Pool

	w http.ResponseWriter
	r *http.Request
	// to is where it goes.
	to *destination

	policy *realip.Policy
	global *ir.Global
	// peer is who the certificate of the connection is of; it is nil on hosts that ask for none.
	peer *mtls.Client
	// client is who the request comes from, once somebody has asked.
	client     realip.Client
	identified bool

	// tried begins in first, which is enough for most requests.
	tried []*balancer.Endpoint
	first [2]*balancer.Endpoint
	// choice is the attempt under way since began, while open is set.
	choice balancer.Choice
	began  time.Time
	open   bool
	// measured says that it has been told how fast the endpoint is.
	measured bool
	// id is known once somebody has asked.
	id    string
	named bool
	// cookie is the Set-Cookie header that was written last.
	cookie string
}

// requestVar is the name of the request variable that holds the *Request.
const requestVar = "k8singress.request"

// Next begins another attempt, and returns the address of its endpoint: one that this request has not tried, while there is
// one. It returns false if the backend has none. An earlier attempt that is not Done counts as failed. If the choice comes
// with a session cookie, Next writes it into the header of the answer, in place of that of the attempt before.
func (r *Request) Next() (address string, ok bool) {
	r.Done(true)
	if r.to.backend == nil {
		return "", false
	}
	choice, ok := r.to.backend.Pick(r, r.tried)
	if !ok {
		return "", false
	}
	if r.tried == nil {
		r.tried = r.first[:0]
	}
	r.tried = append(r.tried, choice.Endpoint)
	r.choice, r.began, r.open, r.measured = choice, time.Now(), true, false
	choice.Begin()
	r.setCookie(choice)
	return choice.Endpoint.Address(), true
}

// Done says that the attempt of the last Next is over, and whether its endpoint failed. Only the first call after a Next
// counts. Without any, what Serve's chain returns decides.
func (r *Request) Done(failed bool) {
	if !r.open {
		return
	}
	if r.measured {
		r.choice.Judge(failed)
	} else {
		r.choice.Observe(time.Since(r.began), failed)
	}
	r.end()
}

// Answered says that the head of the answer is there, for which the endpoint has been waited for since a time, zero being since
// Next. How long the rest takes says more of the client, or of what it has asked for.
func (r *Request) Answered(since time.Time) {
	if !r.open || r.measured {
		return
	}
	if since.IsZero() {
		since = r.began
	}
	r.measured = true
	r.choice.Measure(time.Since(since))
}

// Listed returns what tells, from any goroutine, whether the endpoint of the last Next is still one of its backend.
func (r *Request) Listed() func() bool { return r.choice.Endpoint.Listed }

// ID is that of the request, in whatever is said of it: the client's own if it can be used, else 32 hexadecimal digits, or
// nothing where the options say so.
func (r *Request) ID() string {
	if !r.named {
		r.id, r.named = proxy.RequestID(r.r, !r.global.NoRequestID), true
	}
	return r.id
}

// Secured returns how TLS is spoken with the endpoints; nil is without verification, and without a certificate.
func (r *Request) Secured() *proxy.Secured { return r.to.secured }

// Backend returns the backend that the request goes to; it is nil for one that its chain answers.
func (r *Request) Backend() *balancer.Backend { return r.to.backend }

// end takes the attempt off those that are under way, without a word on its endpoint.
func (r *Request) end() {
	if r.open {
		r.open = false
		r.choice.End()
	}
}

// conclude judges the last attempt by the error that the chain returned. When the client has gone, it says nothing.
func (r *Request) conclude(err error) {
	switch {
	case err == nil:
		r.Done(false)
	case r.r.Context().Err() != nil:
		r.end()
	default:
		r.blame(err)
	}
}

// blame takes the endpoint for the cause of an error that says so.
func (r *Request) blame(err error) {
	var status caddyhttp.HandlerError
	if errors.As(err, &status) && (status.StatusCode == http.StatusBadGateway || status.StatusCode == http.StatusGatewayTimeout) {
		r.Done(true)
		return
	}
	// What is wrong with the request says nothing of the endpoint.
	r.end()
}

// Has says whether the answer has a header already, by its canonical name.
func (r *Request) Has(header string) bool {
	_, ok := r.w.Header()[header]
	return ok
}

// Client tells who the request comes from.
func (r *Request) Client() *realip.Client {
	if !r.identified {
		r.client, r.identified = r.policy.Of(r.r), true
	}
	return &r.client
}

// ForwardedFor is what an endpoint gets for X-Forwarded-For.
func (r *Request) ForwardedFor() string { return r.policy.ForwardedFor(r.r, r.Client()) }

// Hash implements balancer.Asker.
func (r *Request) Hash(t *nginx.Template) string { return t.Expand(r.Variable) }

// Cookie implements balancer.Asker.
func (r *Request) Cookie(name string) string { return cookieOf(r.r, name) }

// ClientIP implements balancer.Asker.
func (r *Request) ClientIP() string { return r.Client().IP }
