package live

import (
	"context"
	"errors"
	"net/http"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/modules/caddyhttp"

	"github.com/k8singress/k8singress/internal/http/exchange"
	"github.com/k8singress/k8singress/internal/http/filter"
	"github.com/k8singress/k8singress/internal/http/message"
	"github.com/k8singress/k8singress/internal/http/proxy"
	"github.com/k8singress/k8singress/internal/model/pools"
)

// step is one handler of a chain: a filter, a Caddy handler, or the proxy, which forwards the request to an endpoint.
// Exactly one field is set.
type step struct {
	filter  filter.Filter
	handler caddyhttp.MiddlewareHandler
	proxy   *proxy.Settings
}

// ChainRun is the state of one request on its way through a handler chain. Caddy handlers in the chain find it in the
// request context.
type ChainRun struct {
	x        *exchange.Exchange
	table    *Table
	instance *instance
	route    *Route
	to       *destination
	// pages are the error pages that apply to the request now, or nil.
	pages *errorPages
}

// chainRuns is a pool of ChainRun values. A ChainRun is not returned to the pool if the chain has Caddy handlers,
// because they may still use it.
var chainRuns = pools.NewStructs[ChainRun]("live: visit")

// v.run(from) runs the handlers of the chain, starting with the handler at the index from.
func (v *ChainRun) run(from int) error {
	steps := v.instance.steps
	for n := from; n < len(steps); n++ {
		switch s := &steps[n]; {
		case s.proxy != nil:
			return v.table.connections.Forward(v.x, s.proxy, v.to.secured)
		case s.handler != nil:
			return v.runHandler(s.handler, v.from(n+1))
		default:
			if responded, err := s.filter.Apply(v.x); responded || err != nil {
				return err
			}
		}
	}
	return exchange.Fail(http.StatusNotFound, nil)
}

// v.from(step) returns a function that runs the chain, starting with the handler at the index step. It is a separate
// method so that a closure is only allocated if the chain has Caddy handlers.
func (v *ChainRun) from(step int) func() error { return func() error { return v.run(step) } }

type chainRunKey struct{}

// ChainRunFrom returns the ChainRun in the context of a request to a Caddy handler. It returns nil if the context does
// not contain a ChainRun.
func ChainRunFrom(ctx context.Context) *ChainRun {
	v, _ := ctx.Value(chainRunKey{}).(*ChainRun)
	return v
}

// UseErrorPages makes the error pages of the route apply to the request from now on. It is called when a request has
// passed the default chains of the route.
func (v *ChainRun) UseErrorPages() {
	if v.route.errors != nil {
		v.use(v.route.errors)
	}
}

func (v *ChainRun) use(pages *errorPages) {
	v.pages = pages
	if !v.x.AtErrorPage() {
		v.x.Replaced, v.x.Pages = v.table.replaced(pages), v.table.pagesOf(pages)
	}
}

// Exchange returns the exchange: the request and the state of its response.
func (v *ChainRun) Exchange() *exchange.Exchange { return v.x }

// runHandler runs a Caddy handler with an http.ResponseWriter and an http.Request that it creates from the exchange.
// behind is a function that runs the rest of the chain; the Caddy handler calls it as its next handler.
func (v *ChainRun) runHandler(handler caddyhttp.MiddlewareHandler, behind func() error) error {
	x := v.x
	x.Retained = true
	before := *x.Request
	if ChainRunFrom(x.Context()) != v {
		x.SetContext(context.WithValue(x.Context(), chainRunKey{}, v))
	}
	head, giveBack := x.TakeChanges()
	w := message.NewResponseWriter(x.Writer, head)
	r := x.ToHTTP()
	if _, ok := r.Context().Value(caddy.ReplacerCtxKey).(*caddy.Replacer); !ok && x.Prepare != nil {
		r = x.Prepare(w, r)
		ShareClient(r.Context(), x)
		x.CaddyContext = r.Context()
		AddPlaceholders(x)
	}
	err := handler.ServeHTTP(w, r, caddyhttp.HandlerFunc(func(w http.ResponseWriter, r *http.Request) error {
		return v.enter(w, r, behind)
	}))
	giveBack()
	if errors.Is(err, exchange.ErrReroute) {
		x.Revert(&before)
	}
	if err != nil && !w.Started() || errors.Is(err, exchange.ErrAborted) {
		x.ErrorFields = append(x.ErrorFields, w.UnsentFields()...)
		return failureOf(err)
	}
	return errors.Join(err, w.Finish())
}

// ShareClient sets Caddy's variables about the client of a request, such as client_ip, to the values that filters,
// limits and logs use. ctx is the context of a request that was prepared for Caddy handlers; without variables,
// ShareClient does nothing.
func ShareClient(ctx context.Context, x *exchange.Exchange) {
	variables, ok := ctx.Value(caddyhttp.VarsCtxKey).(map[string]any)
	if !ok {
		return
	}
	client := x.Client()
	// Caddy has usually found the same address. Setting it again would allocate memory for each request.
	if variables[caddyhttp.ClientIPVarKey] != client.IP {
		variables[caddyhttp.ClientIPVarKey] = client.IP
	}
	variables[caddyhttp.TrustedProxyVarKey] = client.Believed
}

// AddPlaceholders adds the placeholders of a request to the replacer of x.CaddyContext. The caller must call the method
// End of the result if x is used for another request later. The result is nil if there is no replacer.
func AddPlaceholders(x *exchange.Exchange) *exchange.Placeholders {
	replacer, ok := x.CaddyContext.Value(caddy.ReplacerCtxKey).(*caddy.Replacer)
	if !ok {
		return nil
	}
	p := x.Placeholders()
	replacer.Map(p.Value)
	return p
}

// enter is called when a Caddy handler passes a request on to a filter, the proxy or the rest of the chain. It copies
// the changes that Caddy handlers made to the request into the exchange, and then calls fn, which writes its response
// to w.
func (v *ChainRun) enter(w http.ResponseWriter, r *http.Request, fn func() error) error {
	x := v.x
	writer, ends, target, conn := x.Writer, x.ResponseEnds, x.Target, x.Conn
	inner := message.NewHTTPWriter(w, r)
	x.Update(r)
	x.Target, x.Conn, x.Writer, x.ResponseEnds = target, conn, inner, nil
	defer func() { x.Writer, x.ResponseEnds = writer, ends }()
	err := x.EndResponse(fn())
	if inner.Aborted() {
		writer.Abort()
	}
	return err
}

// Apply applies a filter to a request that a Caddy handler is processing. It then calls next, unless the filter has
// responded or has returned an error.
func (v *ChainRun) Apply(f filter.Filter, w http.ResponseWriter, r *http.Request, next caddyhttp.Handler) error {
	return v.enter(w, r, func() error {
		responded, err := f.Apply(v.x)
		if responded || err != nil {
			return err
		}
		return v.runHandler(caddyhttp.MiddlewareHandler(last{next}), nil)
	})
}

// Forward forwards a request that a Caddy handler is processing to an endpoint.
func (v *ChainRun) Forward(s *proxy.Settings, w http.ResponseWriter, r *http.Request) error {
	return v.enter(w, r, func() error { return v.table.connections.Forward(v.x, s, v.to.secured) })
}

// last turns a caddyhttp.Handler into a caddyhttp.MiddlewareHandler, which ignores its next handler.
type last struct{ caddyhttp.Handler }

func (l last) ServeHTTP(w http.ResponseWriter, r *http.Request, _ caddyhttp.Handler) error {
	return l.Handler.ServeHTTP(w, r)
}

// failureOf converts a caddyhttp.HandlerError to an exchange.Failure with the same status. It returns other errors
// unchanged.
func failureOf(err error) error {
	var theirs caddyhttp.HandlerError
	if errors.As(err, &theirs) && !errors.As(err, new(*exchange.Failure)) {
		return exchange.Fail(theirs.StatusCode, err)
	}
	return err
}
