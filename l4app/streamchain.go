package l4app

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/caddyconfig/caddyfile"
	"github.com/mholt/caddy-l4/layer4"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"

	"github.com/k8singress/k8singress/internal/http/accesslog"
	"github.com/k8singress/k8singress/internal/model/document"
)

func init() { caddy.RegisterModule(new(StreamChain)) }

// StreamChain runs a TCP connection through caddy-l4 routes that the administrator has configured under a name, in the
// option stream_chains of the app. A route whose last handler keeps the connection, such as close, ends the chain.
// Otherwise the next handler of the port gets the connection, also if no route matches. A connection that no route has
// matched or skipped within the matching timeout is closed.
//
// Each port has its own copy of the routes. Their state, such as limits, is lost when Caddy loads another
// configuration.
type StreamChain struct {
	// Name is the name of the routes in the option stream_chains. An unknown name is an error, so that connections are
	// never forwarded without the intended routes.
	Name string `json:"name"`

	streamRoutes
	log *zap.Logger
}

// streamRoutes is the definition of a stream chain, which has the form of caddy-l4's handler subroute.
type streamRoutes struct {
	// Routes are caddy-l4 routes.
	Routes layer4.RouteList `json:"routes,omitempty"`
	// MatchingTimeout is the maximum time until the matchers have decided about a connection. Default: 3s.
	MatchingTimeout caddy.Duration `json:"matching_timeout,omitempty"`
}

// provisionStreamRoutes decodes and provisions the definition of a stream chain.
func provisionStreamRoutes(ctx caddy.Context, raw json.RawMessage) (s streamRoutes, err error) {
	if err := caddy.StrictUnmarshalJSON(raw, &s); err != nil {
		return s, fmt.Errorf("decoding its routes: %w", err)
	}
	if len(s.Routes) == 0 {
		return s, errNoRoutes
	}
	if s.MatchingTimeout <= 0 {
		s.MatchingTimeout = caddy.Duration(layer4.MatchingTimeoutDefault)
	}
	ctx.Context = context.WithValue(ctx.Context, insideChainKey{}, true)
	return s, s.Routes.Provision(ctx)
}

var errNoRoutes = errors.New("the chain has no routes: add a route, or remove the chain")

// CaddyModule returns the Caddy module information.
func (*StreamChain) CaddyModule() caddy.ModuleInfo {
	return caddy.ModuleInfo{ID: "layer4.handlers.k8singress_chain",
		New: func() caddy.Module { return new(StreamChain) }}
}

// Provision creates and provisions this port's own copy of the routes.
func (c *StreamChain) Provision(ctx caddy.Context) error {
	scope := scopeOf(ctx)
	switch {
	case insideChain(ctx):
		return errors.New("a stream chain cannot contain another one: put the routes of both into one chain")
	case scope == nil:
		return errors.New("this handler works only on ports that the ingress controller opens: annotate the Service " +
			"of the port")
	}
	raw, ok := scope.chains[c.Name]
	if !ok {
		return fmt.Errorf("there is no stream chain %q: use the name of a stream_chain in the k8singress option of "+
			"the Caddyfile, or add it there", c.Name)
	}
	var err error
	if c.streamRoutes, err = provisionStreamRoutes(ctx, raw); err != nil {
		return fmt.Errorf("the stream chain %s: %w", c.Name, err)
	}
	c.log, scope.chained = oncePerQuiet(scope.log), true
	return nil
}

type insideChainKey struct{}

// insideChain reports whether the module that is being provisioned with ctx belongs to the routes of a stream chain.
func insideChain(ctx context.Context) bool { return ctx.Value(insideChainKey{}) != nil }

// Handle runs the connection through the routes. It calls next unless one of them keeps the connection.
func (c *StreamChain) Handle(cx *layer4.Connection, next layer4.Handler) error {
	passed := false
	err := c.Routes.Compile(c.log, time.Duration(c.MatchingTimeout), layer4.HandlerFunc(
		func(cx *layer4.Connection) error {
			passed = true
			return next.Handle(cx)
		})).Handle(cx)
	if n := recordOf(cx); !passed && n != nil && n.Status == accesslog.StreamUnread {
		n.setStatus(accesslog.StreamForbidden)
	}
	return err
}

// oncePerQuiet returns a logger that writes equal messages only once within the time in quiet. caddy-l4's routes log an
// error for each connection that ends before they have matched it, which clients can cause as often as they like.
func oncePerQuiet(log *zap.Logger) *zap.Logger {
	return log.WithOptions(zap.WrapCore(func(core zapcore.Core) zapcore.Core {
		return zapcore.NewSamplerWithOptions(core, quiet, 1, 0)
	}))
}

// CheckStreamChains returns an error if one of the stream chains cannot be provisioned in the configuration that ctx
// belongs to. chains maps the names of stream chains to their definitions. CheckStreamChains must not be called while
// the tls app is being provisioned.
func CheckStreamChains(ctx caddy.Context, chains map[string]json.RawMessage) error {
	trial, cancel := caddy.NewContext(ctx)
	defer cancel()
	for _, name := range slices.Sorted(maps.Keys(chains)) {
		if _, err := provisionStreamRoutes(trial, chains[name]); err != nil {
			return fmt.Errorf("the stream chain %s of the k8singress app: %w", name, err)
		}
	}
	return nil
}

// ParseStreamChain returns the definition of a stream chain from its block in a Caddyfile, which has the same syntax as
// the block of a server of caddy-l4. The first token of the block is the name of the chain.
func ParseStreamChain(block caddyfile.Segment) (json.RawMessage, error) {
	for d := caddyfile.NewDispenser(block); d.Next(); {
		for nesting := d.Nesting(); d.NextBlock(nesting); {
			if word := d.Val(); word != "route" && word != "matching_timeout" && !strings.HasPrefix(word, "@") {
				return nil, d.Errf("%q is not expected here: write matchers as @name, and handlers in the block of a "+
					"route", word)
			}
			d.NextSegment()
		}
	}
	d := caddyfile.NewDispenser(block)
	d.Next()
	var s streamRoutes
	if err := layer4.ParseCaddyfileNestedRoutes(d, &s.Routes, &s.MatchingTimeout, nil); err != nil {
		return nil, err
	}
	if len(s.Routes) == 0 {
		return nil, errNoRoutes
	}
	return document.Encode(s), nil
}

var (
	_ caddy.Provisioner  = (*StreamChain)(nil)
	_ layer4.NextHandler = (*StreamChain)(nil)
)
