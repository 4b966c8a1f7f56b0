package k8singress

import (
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"net/http"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/modules/caddyhttp"

	"github.com/k8singress/k8singress/internal/http/message"
)

// routeMetrics records the requests on the direct way in Caddy's HTTP metrics, if the configuration enables them. The
// metrics are private to Caddy's HTTP app. Therefore each request passes through a Caddy route, which records the
// request, and whose only handler responds to it.
type routeMetrics struct {
	direct  *direct
	route   caddyhttp.Handler
	perHost bool
}

// newRouteMetrics returns the metrics for the requests to d, or nil if the configuration of Caddy's HTTP app enables no
// metrics. It must be called after the HTTP app was provisioned. ctx is a context of the HTTP app.
func newRouteMetrics(ctx caddy.Context, d *direct) (*routeMetrics, error) {
	app, err := ctx.App("http")
	if err != nil {
		return nil, err
	}
	metrics := app.(*caddyhttp.App).Metrics
	if metrics == nil {
		return nil, nil
	}
	route := caddyhttp.Route{Handlers: []caddyhttp.MiddlewareHandler{observed{}}}
	if err := route.ProvisionHandlers(ctx, metrics); err != nil {
		return nil, fmt.Errorf("provisioning Caddy's HTTP metrics: %w", err)
	}
	end := caddyhttp.HandlerFunc(func(http.ResponseWriter, *http.Request) error { return nil })
	return &routeMetrics{direct: d, route: route.Compile(end), perHost: metrics.PerHost}, nil
}

// answer responds to a request as direct.answer does, and records it.
func (m *routeMetrics) answer(w message.Writer, r *message.Request, added *message.Changes) {
	o := &observation{Writer: w, metrics: m, request: r, added: added}
	ctx := context.WithValue(r.Context(), caddyhttp.ServerCtxKey, m.direct.server)
	request := r.ToHTTP().WithContext(context.WithValue(ctx, observationKey{}, o))
	if m.perHost {
		m.label(request, r)
	}
	_ = m.route.ServeHTTP(discarded{w}, request) // The client has got its response, even if there is an error.
}

// label changes the fields of a request from which Caddy derives the label for its host. Caddy uses a host that a route
// names, and any host of a request with TLS if there is a server for HTTPS. All other hosts share a label, unless the
// option observe_catchall_hosts is set. Clients could therefore create labels, because no route names the hosts of
// Ingresses. So a request counts as a request with TLS only if an Ingress names its host.
func (m *routeMetrics) label(request *http.Request, r *message.Request) {
	request.TLS = nil
	if name := message.Hostname(r.Host); m.direct.table.Defines(r.Conn.Listener, name) {
		request.TLS, request.Host = new(tls.ConnectionState), name
	}
}

// observationKey is the key under which the context of a request contains its *observation.
type observationKey struct{}

// observation is the writer for the response to a request that is recorded.
type observation struct {
	message.Writer
	metrics  *routeMetrics
	request  *message.Request
	added    *message.Changes
	recorder http.ResponseWriter
	// status is the status of the response, or 0 until its head is written.
	status int
}

// Head writes the head of the response, and records its status and time.
func (o *observation) Head(response *message.Response) error {
	err := o.Writer.Head(response)
	if err == nil {
		o.status = response.Status
		o.recorder.WriteHeader(o.status)
	}
	return err
}

// observed is the handler of the route. It responds to the request of the observation in the context.
type observed struct{}

// CaddyModule returns the information of the module Handler, so that the label for the handler is the same as for
// requests that Caddy's HTTP server handles.
func (observed) CaddyModule() caddy.ModuleInfo { return new(Handler).CaddyModule() }

// ServeHTTP responds to the request, and passes the size of the response to Caddy's recorder w.
func (observed) ServeHTTP(w http.ResponseWriter, r *http.Request, _ caddyhttp.Handler) error {
	o := r.Context().Value(observationKey{}).(*observation)
	o.recorder = w
	_, err := o.metrics.direct.answer(o, o.request, o.added)
	// The recorder would replace the status 101, because more heads may follow it.
	if o.Sent() > 0 && o.status >= http.StatusOK {
		if recorder, ok := w.(io.ReaderFrom); ok {
			_, _ = recorder.ReadFrom(nil) // See discarded.ReadFrom.
		}
	}
	return caddyError(err, "")
}

// discarded is the http.ResponseWriter behind Caddy's recorder. It writes nothing, because the response is written to
// the message.Writer.
type discarded struct{ message.Writer }

// Header returns an empty header.
func (discarded) Header() http.Header { return http.Header{} }

// WriteHeader does nothing.
func (discarded) WriteHeader(int) {}

// ReadFrom returns the number of body bytes that were written to the message.Writer. It does not use its argument.
func (d discarded) ReadFrom(io.Reader) (int64, error) { return d.Sent(), nil }
