package live

import (
	"errors"
	"fmt"
	"net/http"
	"slices"
	"time"

	"github.com/k8singress/k8singress/internal/balancer"
	"github.com/k8singress/k8singress/internal/document"
	"github.com/k8singress/k8singress/internal/exchange"
	"github.com/k8singress/k8singress/internal/ir"
	"github.com/k8singress/k8singress/internal/proxy"
)

// errorPages are what clients of a route get in place of errors.
type errorPages struct {
	statuses []int
	ownOnly  bool
	// own is the backend that the route names for them; it may be nil.
	own *balancer.Backend
}

func (t *Table) errorPages(d *document.ErrorPages) *errorPages {
	if d == nil {
		return nil
	}
	p := &errorPages{statuses: d.Statuses, ownOnly: d.OwnOnly}
	if d.Backend != "" {
		p.own = t.backends.Backend(d.Backend)
	}
	return p
}

// backendFor returns who is asked for the pages, or nil if there is none.
func (t *Table) backendFor(p *errorPages) *balancer.Backend {
	if p.own != nil && !p.own.Empty() {
		return p.own
	}
	if route := t.global.fallback.Load(); route != nil && !route.backend.Empty() {
		return route.backend
	}
	return nil
}

// pagesOf are the statuses of answers of the controller itself that clients get a page for: none while there is no backend for pages.
func (t *Table) pagesOf(p *errorPages) []int {
	if t.backendFor(p) == nil {
		return nil
	}
	return p.statuses
}

// replaced are the statuses of answers that do not reach the client. There are none while nobody can be asked for a page.
func (t *Table) replaced(p *errorPages) []int {
	if p.ownOnly || t.backendFor(p) == nil {
		return nil
	}
	return p.statuses
}

// asking is how pages are asked for: with less patience than requests are served, because the client has waited already.
var asking = mustSettings(ir.Proxy{
	Attempts: ir.Attempts{Connect: 2 * time.Second, Read: 10 * time.Second, Write: 10 * time.Second, Tries: 2, Total: 10 * time.Second},
})

func mustSettings(p ir.Proxy) *proxy.Settings {
	s, err := proxy.NewSettings(p.WithDefaults())
	if err != nil {
		panic(err)
	}
	return s
}

// serveErrorPage answers a request that has failed with the page of its error. Without one the error stays what it is.
func (t *Table) serveErrorPage(x *exchange.Exchange, p *errorPages, err error) error {
	if errors.Is(err, exchange.ErrCut) || x.Writer.Started() || x.Context().Err() != nil {
		return err
	}
	page := &exchange.Page{Backend: t.backendFor(p), Status: exchange.StatusOf(err), KeepStatus: !x.Forwarded}
	alone := p.own != nil && page.Backend == p.own && errors.Is(err, proxy.ErrNoEndpoint)
	if page.Backend == nil || !alone && !slices.Contains(p.statuses, page.Status) {
		return err
	}
	page.KeepPath = alone
	asked := x.ErrorPage(page)
	defer asked.Close()
	failed := t.connections.Forward(asked, asking, nil)
	asked.Conclude(failed)
	x.Status = asked.Status
	switch {
	case failed == nil:
		if !errors.Is(err, exchange.ErrReplaced) && !errors.Is(err, exchange.ErrRejected) {
			x.Hidden = err
		}
		return nil
	case errors.Is(failed, exchange.ErrCut) || x.Writer.Started():
		return failed
	}
	return fmt.Errorf("%w; asking for the error page: %w", err, failed)
}

// setDefault replaces the default backend. Requests under way end with the one that they began with.
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

// serveDefault leaves a request that no route is for to the default backend. Where that does not answer, it is as if there were none.
func (t *Table) serveDefault(x *exchange.Exchange) (Outcome, error) {
	route := t.global.fallback.Load()
	if route == nil || x.PassesOn || x.Conn.Listener != ServerPorts || route.backend.Empty() {
		return NoHost, nil
	}
	x.Route, x.Backend = &route.Route, route.backend
	err := t.serveOn(x, route.chain.acquire(), route, &route.destination)
	if err == nil || errors.Is(err, exchange.ErrCut) || x.Writer.Started() || exchange.StatusOf(err) < http.StatusInternalServerError {
		return Served, err
	}
	x.Hidden = err
	return NoHost, nil
}
