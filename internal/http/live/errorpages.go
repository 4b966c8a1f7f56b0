package live

import (
	"errors"
	"fmt"
	"net/http"
	"slices"
	"time"

	"github.com/k8singress/k8singress/internal/http/exchange"
	"github.com/k8singress/k8singress/internal/http/proxy"
	"github.com/k8singress/k8singress/internal/model/document"
	"github.com/k8singress/k8singress/internal/model/ir"
	"github.com/k8singress/k8singress/internal/upstream/balancer"
)

// errorPages configures the error pages of a route.
type errorPages struct {
	statuses []int
	ownOnly  bool
	// own is the route's own backend for error pages. It is nil if only the default backend can serve them.
	own *balancer.Backend
	// before are the error pages for requests that have not passed the default chains of the route: the route's own
	// backend must not get them. It is the errorPages itself if there are no default chains.
	before *errorPages
}

func (t *Table) errorPages(d *document.ErrorPages) *errorPages {
	if d == nil {
		return nil
	}
	p := &errorPages{statuses: d.Statuses, ownOnly: d.OwnOnly}
	if d.Backend != "" {
		p.own = t.backends.Backend(d.Backend)
	}
	p.before = p
	if d.AfterDefaultChains {
		p.before = &errorPages{statuses: d.Statuses, ownOnly: d.OwnOnly}
	}
	return p
}

// backendFor returns the backend that serves the error pages of a route: the route's own backend, or the default
// backend if the route has no own backend with endpoints. It returns nil if the default backend has no endpoints
// either.
func (t *Table) backendFor(p *errorPages) *balancer.Backend {
	if p.own != nil && !p.own.Empty() {
		return p.own
	}
	if route := t.global.fallback.Load(); route != nil && !route.backend.Empty() {
		return route.backend
	}
	return nil
}

// pagesOf returns the status codes for which an error page replaces an error response of the controller itself. It
// returns nil if no backend can serve error pages.
func (t *Table) pagesOf(p *errorPages) []int {
	if t.backendFor(p) == nil {
		return nil
	}
	return p.statuses
}

// replaced returns the status codes for which an error page replaces the response of an endpoint. It returns nil if no
// backend can serve error pages.
func (t *Table) replaced(p *errorPages) []int {
	if p.ownOnly || t.backendFor(p) == nil {
		return nil
	}
	return p.statuses
}

// errorPageProxy holds the proxy settings for requesting error pages. The timeouts are shorter than for other requests,
// because the client has already waited for the failed request.
var errorPageProxy = mustSettings(ir.Proxy{
	Attempts: ir.Attempts{Connect: 2 * time.Second, Read: 10 * time.Second, Write: 10 * time.Second, Tries: 2,
		Total: 10 * time.Second},
})

func mustSettings(p ir.Proxy) *proxy.Settings {
	s, err := proxy.NewSettings(p.WithDefaults())
	if err != nil {
		panic(err)
	}
	return s
}

// serveErrorPage responds to a failed request with the error page for its status. If there is no error page for the
// status, it returns err unchanged.
func (t *Table) serveErrorPage(x *exchange.Exchange, p *errorPages, err error) error {
	if !replaceable(x, err) {
		return err
	}
	page := &exchange.Page{Backend: t.backendFor(p), Status: exchange.StatusOf(err), KeepStatus: !x.Forwarded,
		Own: !errors.Is(err, exchange.ErrReplaced)}
	alone := p.own != nil && page.Backend == p.own && errors.Is(err, proxy.ErrNoEndpoint)
	if page.Backend == nil || !alone && (x.AtErrorPage() || !slices.Contains(p.statuses, page.Status)) {
		return err
	}
	page.KeepPath = alone
	request := x.ErrorPage(page)
	defer request.Close()
	failed := t.connections.Forward(request, errorPageProxy, nil)
	request.Conclude(failed)
	x.EndErrorPage(request)
	switch {
	case failed == nil:
		x.HideError(err)
		return nil
	case errors.Is(failed, exchange.ErrAborted) || x.Writer.Started():
		return failed
	}
	return fmt.Errorf("%w; requesting the error page: %w", err, failed)
}

// replaceable reports whether an error page can replace the response to a request that has failed with err.
func replaceable(x *exchange.Exchange, err error) bool {
	return !errors.Is(err, exchange.ErrAborted) && !x.Writer.Started() && x.Context().Err() == nil
}

// setDefault sets the default backend, which serves requests that match no route. An empty ID removes the default
// backend. Requests in flight continue with the old backend.
func (t *Table) setDefault(id string) {
	old := t.global.fallback.Load()
	if old != nil && old.backend.ID() == id {
		return
	}
	var next *Route
	if id != "" {
		next = t.newDefault(id)
	}
	t.global.fallback.Store(next)
	if old != nil {
		t.drain([]endingStreams{{streams: old.streams}})
	}
}

func (t *Table) newDefault(id string) *Route {
	i := &instance{steps: []step{{proxy: mustSettings(ir.Proxy{})}}, cancel: func() {}, parts: &configDigest{}}
	i.holders.Store(1)
	c := &chain{users: 1}
	c.current.Store(i)
	return &Route{
		Route: exchange.Route{Path: "/", Type: "prefix"}, streams: &streams{all: &t.open},
		destination: destination{backend: t.backends.Backend(id), chain: c},
	}
}

// serveDefault forwards a request that matches no route to the default backend. It returns NoHost if there is no
// default backend, or if the default backend fails before a response was started.
func (t *Table) serveDefault(x *exchange.Exchange) (Outcome, error) {
	route := t.global.fallback.Load()
	if route == nil || x.PassesOn || x.Conn.Listener != ServerPorts || route.backend.Empty() {
		return NoHost, nil
	}
	x.Route, x.Backend = &route.Route, route.backend
	err := t.serveOn(x, route.chain.acquire(), route, &route.destination)
	if err == nil || errors.Is(err, exchange.ErrAborted) || x.Writer.Started() ||
		exchange.StatusOf(err) < http.StatusInternalServerError {
		return Served, err
	}
	x.Hidden = err
	return NoHost, nil
}
