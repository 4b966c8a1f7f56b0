package k8singress

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/modules/caddyhttp"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"

	"github.com/k8singress/k8singress/internal/ir"
	"github.com/k8singress/k8singress/internal/live"
	"github.com/k8singress/k8singress/internal/proxy"
	"github.com/k8singress/k8singress/internal/variables"
)

func init() { caddy.RegisterModule(new(Proxy)) }

// Proxy sends a request to an endpoint of the backend that its Ingress path names. Ordinary requests go the short way of
// package proxy, on connections that outlive the configuration; upgrades, streams, large bodies and other protocols than
// HTTP/1.1 are left to the handler in ReverseProxy, whose transport and upstreams are those of this project. It works behind
// the k8singress handler only.
type Proxy struct {
	// ConnectTimeout is for a new connection; ReadTimeout and WriteTimeout end a connection on which nothing moves.
	ConnectTimeout caddy.Duration `json:"connect_timeout,omitempty"`
	ReadTimeout    caddy.Duration `json:"read_timeout,omitempty"`
	WriteTimeout   caddy.Duration `json:"write_timeout,omitempty"`
	// Tries is how many endpoints are asked at most, RetryTimeout how long after the request another one may be.
	Tries        int            `json:"tries,omitempty"`
	RetryTimeout caddy.Duration `json:"retry_timeout,omitempty"`
	// RetryOn lets another endpoint be asked: error, timeout, invalid_header, http_500 and so on, non_idempotent. Default: none.
	RetryOn []ir.RetryOn `json:"retry_on,omitempty"`
	// Protocol is what the endpoints speak: http, https, auto (as the client), grpc, grpcs or fastcgi. Default: http.
	Protocol ir.BackendProtocol `json:"protocol,omitempty"`
	// Host is the Host header for the endpoint, with nginx variables in it. Default: what the client sent.
	Host string `json:"host,omitempty"`
	// Connection is "close" for endpoints that are to close the connection. Default: it is kept.
	Connection string `json:"connection,omitempty"`
	// MaxBody is how many bytes the body of a request may have. Default: any number.
	MaxBody int64 `json:"max_body,omitempty"`
	// StreamRequest sends the body of a request on as it comes in. Default: all of it is read first.
	StreamRequest bool `json:"stream_request,omitempty"`
	// BufferResponse does not hurry to send a piece of an answer on. Default: each piece is sent on as it comes in.
	BufferResponse bool `json:"buffer_response,omitempty"`
	// Prefix is the X-Forwarded-Prefix header for the endpoint. Default: what the client sent.
	Prefix string `json:"prefix,omitempty"`
	// Index is the file that a path with a slash at its end means to FastCGI. Default: none.
	Index string `json:"index,omitempty"`
	// ReverseProxyRaw is the handler for everything that is not ordinary.
	ReverseProxyRaw json.RawMessage `json:"reverse_proxy,omitempty" caddy:"namespace=http.handlers inline_key=handler"`

	log      *zap.Logger
	settings proxy.Settings
	fallback caddyhttp.MiddlewareHandler
}

// CaddyModule returns the Caddy module information.
func (*Proxy) CaddyModule() caddy.ModuleInfo {
	return caddy.ModuleInfo{ID: "http.handlers.k8singress_proxy", New: func() caddy.Module { return new(Proxy) }}
}

// Provision loads the other handler.
func (p *Proxy) Provision(ctx caddy.Context) error {
	p.log = ctx.Logger()
	if err := p.settle(); err != nil {
		return err
	}
	module, err := ctx.LoadModule(p, "ReverseProxyRaw")
	if err != nil {
		return fmt.Errorf("loading reverse_proxy: %w", err)
	}
	p.fallback = module.(caddyhttp.MiddlewareHandler)
	return nil
}

// settle checks the settings, and brings them into the form of package proxy.
func (p *Proxy) settle() error {
	retry, err := proxy.NewRetry(p.RetryOn)
	if err != nil {
		return fmt.Errorf("retry_on: %w", err)
	}
	p.settings = proxy.Settings{
		Connect: time.Duration(p.ConnectTimeout), Read: time.Duration(p.ReadTimeout), Write: time.Duration(p.WriteTimeout),
		Tries: max(p.Tries, 1), Total: time.Duration(p.RetryTimeout), Retry: retry,
		Protocol: p.Protocol, Close: p.Connection == "close", MaxBody: p.MaxBody, Prefix: p.Prefix, Index: p.Index,
		StreamRequest: p.StreamRequest || p.Protocol == ir.GRPC || p.Protocol == ir.GRPCS, BufferResponse: p.BufferResponse,
	}
	if p.MaxBody == 0 {
		p.settings.MaxBody = ir.NoLimit
	}
	if p.settings.Connect <= 0 || p.settings.Read <= 0 || p.settings.Write <= 0 {
		return errors.New("connect_timeout, read_timeout and write_timeout are above zero")
	}
	if p.Host != "" {
		if p.settings.Host, err = variables.Parse(p.Host); err != nil {
			return fmt.Errorf("host: %w", err)
		}
	}
	return nil
}

// ServeHTTP answers with what an endpoint answers.
func (p *Proxy) ServeHTTP(w http.ResponseWriter, r *http.Request, next caddyhttp.Handler) error {
	request := live.FromContext(r.Context())
	if request == nil {
		return caddyhttp.Error(http.StatusInternalServerError, errNoRequest)
	}
	proxy.DropUpgrade(r)
	x := proxy.NewExchange(&p.settings, request)
	defer x.Close()
	if err := x.LimitBody(w, r); err != nil {
		return err
	}
	if err := x.ReadBody(r); err != nil {
		return err
	}
	x.Tell(r, request.Client(), request.ID(), request.ForwardedFor(), request.Variable)
	if !x.Ordinary(r) {
		return p.long(w, r, x, next)
	}
	err := request.Connections.Forward(w, r, x)
	if errors.Is(err, proxy.ErrCut) {
		p.abort(w, r, err)
	}
	return err
}

// exchangeVar is the name of the request variable by which Upstreams and Transport find the exchange.
const exchangeVar = "k8singress.exchange"

// long hands a request to reverse_proxy. What an endpoint failed with is known better here than there.
func (p *Proxy) long(w http.ResponseWriter, r *http.Request, x *proxy.Exchange, next caddyhttp.Handler) error {
	if err := x.Secure(r, live.FromContext(r.Context()).Route.Secured()); err != nil {
		return err
	}
	caddyhttp.SetVar(r.Context(), exchangeVar, x)
	if p.settings.StreamRequest {
		w = early(w, r)
	}
	err := settled(w, p.fallback.ServeHTTP(w, r, next))
	if err != nil && x.Failure() != nil {
		return x.Failure()
	}
	return err
}

// abort ends the connection of a client who has got a part of an answer, as net/http's own proxy does.
func (p *Proxy) abort(w http.ResponseWriter, r *http.Request, err error) {
	level := zapcore.WarnLevel
	if r.Context().Err() != nil {
		level = zapcore.DebugLevel
	}
	p.log.Log(level, "an answer is cut off", zap.String("host", r.Host), zap.Error(err))
	_ = http.NewResponseController(w).Flush() // What is there may as well arrive.
	panic(http.ErrAbortHandler)
}

var (
	_ caddy.Provisioner           = (*Proxy)(nil)
	_ caddyhttp.MiddlewareHandler = (*Proxy)(nil)
)
