// Code generated from internal/http/filter and internal/model/ir by "make generate"; DO NOT EDIT.

package k8singress

import (
	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/modules/caddyhttp"

	"github.com/k8singress/k8singress/internal/model/document"
	"github.com/k8singress/k8singress/internal/model/ir"
)

func init() {
	caddy.RegisterModule(new(AccessRules))
	caddy.RegisterModule(new(AnyOf))
	caddy.RegisterModule(new(AppRoot))
	caddy.RegisterModule(new(Bandwidth))
	caddy.RegisterModule(new(BasicAuth))
	caddy.RegisterModule(new(CORS))
	caddy.RegisterModule(new(DirectResponse))
	caddy.RegisterModule(new(ExternalAuth))
	caddy.RegisterModule(new(HostRedirect))
	caddy.RegisterModule(new(Internal))
	caddy.RegisterModule(new(Maintenance))
	caddy.RegisterModule(new(Mirror))
	caddy.RegisterModule(new(PathGroups))
	caddy.RegisterModule(new(Program))
	caddy.RegisterModule(new(RateLimit))
	caddy.RegisterModule(new(Redirect))
	caddy.RegisterModule(new(ResponseHeaders))
	caddy.RegisterModule(new(RewriteRedirect))
	caddy.RegisterModule(new(SourceRanges))
	caddy.RegisterModule(new(Substitution))
	caddy.RegisterModule(new(TryFiles))
	caddy.RegisterModule(new(URLRewrite))
	caddy.RegisterModule(new(WithoutAuthorization))
	caddy.RegisterModule(new(ZoneLimits))
}

// AccessRules accepts clients by address, as nginx's directives allow and deny do. The first rule whose network
// contains the address of the client decides: the client is accepted, or gets 403. If no rule matches, the client is
// accepted.
//
// It only works behind the k8singress handler.
type AccessRules struct {
	ir.AccessRules

	filterModule
}

// CaddyModule returns the Caddy module information.
func (*AccessRules) CaddyModule() caddy.ModuleInfo {
	return caddy.ModuleInfo{
		ID:  "http.handlers.k8singress_access_rules",
		New: func() caddy.Module { return new(AccessRules) },
	}
}

// Provision creates the filter.
func (m *AccessRules) Provision(ctx caddy.Context) error { return m.provision(ctx, m.AccessRules) }

// AnyOf accepts a client if at least one of its filters accepts the client. The filters are tried in order. If all of
// them reject the request, the response is 401 if a filter returned 401, otherwise the first response with 403. If a
// filter returns any other error, AnyOf returns this error and does not try the remaining filters.
//
// It only works behind the k8singress handler.
type AnyOf struct {
	document.AnyOf

	filterModule
}

// CaddyModule returns the Caddy module information.
func (*AnyOf) CaddyModule() caddy.ModuleInfo {
	return caddy.ModuleInfo{
		ID:  "http.handlers.k8singress_any_of",
		New: func() caddy.Module { return new(AnyOf) },
	}
}

// Provision creates the filter.
func (m *AnyOf) Provision(ctx caddy.Context) error { return m.provision(ctx, m.AnyOf) }

// AppRoot redirects requests for "/" to another path of the same host, without the query.
//
// It only works behind the k8singress handler.
type AppRoot struct {
	ir.AppRoot

	filterModule
}

// CaddyModule returns the Caddy module information.
func (*AppRoot) CaddyModule() caddy.ModuleInfo {
	return caddy.ModuleInfo{
		ID:  "http.handlers.k8singress_app_root",
		New: func() caddy.Module { return new(AppRoot) },
	}
}

// Provision creates the filter.
func (m *AppRoot) Provision(ctx caddy.Context) error { return m.provision(ctx, m.AppRoot) }

// Bandwidth limits the rate of each response, in bytes per second. The first After bytes are not limited.
//
// It only works behind the k8singress handler.
type Bandwidth struct {
	ir.Bandwidth

	filterModule
}

// CaddyModule returns the Caddy module information.
func (*Bandwidth) CaddyModule() caddy.ModuleInfo {
	return caddy.ModuleInfo{
		ID:  "http.handlers.k8singress_bandwidth",
		New: func() caddy.Module { return new(Bandwidth) },
	}
}

// Provision creates the filter.
func (m *Bandwidth) Provision(ctx caddy.Context) error { return m.provision(ctx, m.Bandwidth) }

// BasicAuth accepts clients by user name and password. Other clients get 401.
//
// It only works behind the k8singress handler.
type BasicAuth struct {
	ir.BasicAuth

	filterModule
}

// CaddyModule returns the Caddy module information.
func (*BasicAuth) CaddyModule() caddy.ModuleInfo {
	return caddy.ModuleInfo{
		ID:  "http.handlers.k8singress_basic_auth",
		New: func() caddy.Module { return new(BasicAuth) },
	}
}

// Provision creates the filter.
func (m *BasicAuth) Provision(ctx caddy.Context) error { return m.provision(ctx, m.BasicAuth) }

// CORS adds the header fields that allow scripts from other origins to read responses in browsers, and responds to
// OPTIONS requests with 204. Origins lists the allowed origins in lower case, in the form of the Origin header. The
// first label of a host may be "*". The string "*" allows every origin.
//
// It only works behind the k8singress handler.
type CORS struct {
	ir.CORS

	filterModule
}

// CaddyModule returns the Caddy module information.
func (*CORS) CaddyModule() caddy.ModuleInfo {
	return caddy.ModuleInfo{
		ID:  "http.handlers.k8singress_cors",
		New: func() caddy.Module { return new(CORS) },
	}
}

// Provision creates the filter.
func (m *CORS) Provision(ctx caddy.Context) error { return m.provision(ctx, m.CORS) }

// DirectResponse responds with a status code. Neither the filters after it nor the backend get the request.
//
// It only works behind the k8singress handler.
type DirectResponse struct {
	ir.DirectResponse

	filterModule
}

// CaddyModule returns the Caddy module information.
func (*DirectResponse) CaddyModule() caddy.ModuleInfo {
	return caddy.ModuleInfo{
		ID:  "http.handlers.k8singress_direct_response",
		New: func() caddy.Module { return new(DirectResponse) },
	}
}

// Provision creates the filter.
func (m *DirectResponse) Provision(ctx caddy.Context) error {
	return m.provision(ctx, m.DirectResponse)
}

// ExternalAuth sends each request to an external authentication service first. The service accepts the request, rejects
// it with 401 or 403, or redirects the client.
//
// It only works behind the k8singress handler.
type ExternalAuth struct {
	ir.ExternalAuth

	filterModule
}

// CaddyModule returns the Caddy module information.
func (*ExternalAuth) CaddyModule() caddy.ModuleInfo {
	return caddy.ModuleInfo{
		ID:  "http.handlers.k8singress_external_auth",
		New: func() caddy.Module { return new(ExternalAuth) },
	}
}

// Provision creates the filter.
func (m *ExternalAuth) Provision(ctx caddy.Context) error { return m.provision(ctx, m.ExternalAuth) }

// HostRedirect redirects to the same path and query on another host, without the slash at the end of the URL. The
// scheme and the port are taken from the request.
//
// It only works behind the k8singress handler.
type HostRedirect struct {
	ir.HostRedirect

	filterModule
}

// CaddyModule returns the Caddy module information.
func (*HostRedirect) CaddyModule() caddy.ModuleInfo {
	return caddy.ModuleInfo{
		ID:  "http.handlers.k8singress_host_redirect",
		New: func() caddy.Module { return new(HostRedirect) },
	}
}

// Provision creates the filter.
func (m *HostRedirect) Provision(ctx caddy.Context) error { return m.provision(ctx, m.HostRedirect) }

// Internal responds with 404 unless another route of the same namespace has passed the request on, with a rewrite or an
// error page. If Everywhere is true, the other route may belong to any namespace.
//
// It only works behind the k8singress handler.
type Internal struct {
	ir.Internal

	filterModule
}

// CaddyModule returns the Caddy module information.
func (*Internal) CaddyModule() caddy.ModuleInfo {
	return caddy.ModuleInfo{
		ID:  "http.handlers.k8singress_internal",
		New: func() caddy.Module { return new(Internal) },
	}
}

// Provision creates the filter.
func (m *Internal) Provision(ctx caddy.Context) error { return m.provision(ctx, m.Internal) }

// Maintenance rejects all clients with 503, except those whose addresses are in Allow, a list of CIDRs.
//
// It only works behind the k8singress handler.
type Maintenance struct {
	ir.Maintenance

	filterModule
}

// CaddyModule returns the Caddy module information.
func (*Maintenance) CaddyModule() caddy.ModuleInfo {
	return caddy.ModuleInfo{
		ID:  "http.handlers.k8singress_maintenance",
		New: func() caddy.Module { return new(Maintenance) },
	}
}

// Provision creates the filter.
func (m *Maintenance) Provision(ctx caddy.Context) error { return m.provision(ctx, m.Maintenance) }

// Mirror sends a copy of each request to another service.
//
// It only works behind the k8singress handler.
type Mirror struct {
	ir.Mirror

	filterModule
}

// CaddyModule returns the Caddy module information.
func (*Mirror) CaddyModule() caddy.ModuleInfo {
	return caddy.ModuleInfo{
		ID:  "http.handlers.k8singress_mirror",
		New: func() caddy.Module { return new(Mirror) },
	}
}

// Provision creates the filter.
func (m *Mirror) Provision(ctx caddy.Context) error { return m.provision(ctx, m.Mirror) }

// PathGroups sets variables to named groups of the route's regular expression.
//
// It only works behind the k8singress handler.
type PathGroups struct {
	ir.PathGroups

	filterModule
}

// CaddyModule returns the Caddy module information.
func (*PathGroups) CaddyModule() caddy.ModuleInfo {
	return caddy.ModuleInfo{
		ID:  "http.handlers.k8singress_path_groups",
		New: func() caddy.Module { return new(PathGroups) },
	}
}

// Provision creates the filter.
func (m *PathGroups) Provision(ctx caddy.Context) error { return m.provision(ctx, m.PathGroups) }

// Program is the nginx configuration that an author of an Ingress or the administrator has written for one location,
// as typed directives. A value of type string whose comment calls it a template may contain variables of the form $name
// or ${name}: nginx variables, the capture groups $1 to $9 of the last regular expression that matched, and variables
// that the program sets. The value of a variable is data: variables in it are not expanded.
//
// It only works behind the k8singress handler.
type Program struct {
	ir.Program

	filterModule
}

// CaddyModule returns the Caddy module information.
func (*Program) CaddyModule() caddy.ModuleInfo {
	return caddy.ModuleInfo{
		ID:  "http.handlers.k8singress_program",
		New: func() caddy.Module { return new(Program) },
	}
}

// Provision creates the filter.
func (m *Program) Provision(ctx caddy.Context) error { return m.provision(ctx, m.Program) }

// RateLimit limits the request rate and the number of concurrent requests of each client. Zero means no limit.
//
// It only works behind the k8singress handler.
type RateLimit struct {
	ir.RateLimit

	filterModule
}

// CaddyModule returns the Caddy module information.
func (*RateLimit) CaddyModule() caddy.ModuleInfo {
	return caddy.ModuleInfo{
		ID:  "http.handlers.k8singress_rate_limit",
		New: func() caddy.Module { return new(RateLimit) },
	}
}

// Provision creates the filter.
func (m *RateLimit) Provision(ctx caddy.Context) error { return m.provision(ctx, m.RateLimit) }

// Redirect redirects to another URL. Empty fields are taken from the request. The query is kept.
//
// It only works behind the k8singress handler.
type Redirect struct {
	ir.Redirect

	filterModule
}

// CaddyModule returns the Caddy module information.
func (*Redirect) CaddyModule() caddy.ModuleInfo {
	return caddy.ModuleInfo{
		ID:  "http.handlers.k8singress_redirect",
		New: func() caddy.Module { return new(Redirect) },
	}
}

// Provision creates the filter.
func (m *Redirect) Provision(ctx caddy.Context) error { return m.provision(ctx, m.Redirect) }

// ResponseHeaders changes the header fields of responses to the client.
//
// It only works behind the k8singress handler.
type ResponseHeaders struct {
	ir.ResponseHeaders

	filterModule
}

// CaddyModule returns the Caddy module information.
func (*ResponseHeaders) CaddyModule() caddy.ModuleInfo {
	return caddy.ModuleInfo{
		ID:  "http.handlers.k8singress_response_headers",
		New: func() caddy.Module { return new(ResponseHeaders) },
	}
}

// Provision creates the filter.
func (m *ResponseHeaders) Provision(ctx caddy.Context) error {
	return m.provision(ctx, m.ResponseHeaders)
}

// RewriteRedirect redirects to a URL that may contain parts of the request.
//
// It only works behind the k8singress handler.
type RewriteRedirect struct {
	ir.RewriteRedirect

	filterModule
}

// CaddyModule returns the Caddy module information.
func (*RewriteRedirect) CaddyModule() caddy.ModuleInfo {
	return caddy.ModuleInfo{
		ID:  "http.handlers.k8singress_rewrite_redirect",
		New: func() caddy.Module { return new(RewriteRedirect) },
	}
}

// Provision creates the filter.
func (m *RewriteRedirect) Provision(ctx caddy.Context) error {
	return m.provision(ctx, m.RewriteRedirect)
}

// SourceRanges accepts clients by address. It rejects with 403 all addresses in Deny and, if Allow is not nil, all
// addresses outside Allow. Both lists contain CIDRs.
//
// It only works behind the k8singress handler.
type SourceRanges struct {
	ir.SourceRanges

	filterModule
}

// CaddyModule returns the Caddy module information.
func (*SourceRanges) CaddyModule() caddy.ModuleInfo {
	return caddy.ModuleInfo{
		ID:  "http.handlers.k8singress_source_ranges",
		New: func() caddy.Module { return new(SourceRanges) },
	}
}

// Provision creates the filter.
func (m *SourceRanges) Provision(ctx caddy.Context) error { return m.provision(ctx, m.SourceRanges) }

// Substitution replaces texts in the bodies of responses (nginx's sub_filter).
//
// It only works behind the k8singress handler.
type Substitution struct {
	ir.Substitution

	filterModule
}

// CaddyModule returns the Caddy module information.
func (*Substitution) CaddyModule() caddy.ModuleInfo {
	return caddy.ModuleInfo{
		ID:  "http.handlers.k8singress_substitution",
		New: func() caddy.Module { return new(Substitution) },
	}
}

// Provision creates the filter.
func (m *Substitution) Provision(ctx caddy.Context) error { return m.provision(ctx, m.Substitution) }

// TryFiles passes requests to another location, or responds with a status, as nginx does after it has found no file
// (try_files).
//
// It only works behind the k8singress handler.
type TryFiles struct {
	ir.TryFiles

	filterModule
}

// CaddyModule returns the Caddy module information.
func (*TryFiles) CaddyModule() caddy.ModuleInfo {
	return caddy.ModuleInfo{
		ID:  "http.handlers.k8singress_try_files",
		New: func() caddy.Module { return new(TryFiles) },
	}
}

// Provision creates the filter.
func (m *TryFiles) Provision(ctx caddy.Context) error { return m.provision(ctx, m.TryFiles) }

// URLRewrite changes the path or the host of the request to the backend. The query is kept. At most one of Target and
// Prefix is set. If both are empty, the path is not changed.
//
// It only works behind the k8singress handler.
type URLRewrite struct {
	ir.URLRewrite

	filterModule
}

// CaddyModule returns the Caddy module information.
func (*URLRewrite) CaddyModule() caddy.ModuleInfo {
	return caddy.ModuleInfo{
		ID:  "http.handlers.k8singress_rewrite",
		New: func() caddy.Module { return new(URLRewrite) },
	}
}

// Provision creates the filter.
func (m *URLRewrite) Provision(ctx caddy.Context) error { return m.provision(ctx, m.URLRewrite) }

// WithoutAuthorization removes the client's Authorization header from requests to the backend. Filters and variables
// still have it.
//
// It only works behind the k8singress handler.
type WithoutAuthorization struct {
	ir.WithoutAuthorization

	filterModule
}

// CaddyModule returns the Caddy module information.
func (*WithoutAuthorization) CaddyModule() caddy.ModuleInfo {
	return caddy.ModuleInfo{
		ID:  "http.handlers.k8singress_without_authorization",
		New: func() caddy.Module { return new(WithoutAuthorization) },
	}
}

// Provision creates the filter.
func (m *WithoutAuthorization) Provision(ctx caddy.Context) error {
	return m.provision(ctx, m.WithoutAuthorization)
}

// ZoneLimits limits the request rate and the number of concurrent requests of clients with zones of the administrator,
// as nginx's directives limit_req and limit_conn do. All limits apply. A request that exceeds one of them counts for
// none of them.
//
// It only works behind the k8singress handler.
type ZoneLimits struct {
	ir.ZoneLimits

	filterModule
}

// CaddyModule returns the Caddy module information.
func (*ZoneLimits) CaddyModule() caddy.ModuleInfo {
	return caddy.ModuleInfo{
		ID:  "http.handlers.k8singress_zone_limits",
		New: func() caddy.Module { return new(ZoneLimits) },
	}
}

// Provision creates the filter.
func (m *ZoneLimits) Provision(ctx caddy.Context) error { return m.provision(ctx, m.ZoneLimits) }

var (
	_ caddy.Provisioner           = (*AccessRules)(nil)
	_ caddyhttp.MiddlewareHandler = (*AccessRules)(nil)
	_ caddy.Provisioner           = (*AnyOf)(nil)
	_ caddyhttp.MiddlewareHandler = (*AnyOf)(nil)
	_ caddy.Provisioner           = (*AppRoot)(nil)
	_ caddyhttp.MiddlewareHandler = (*AppRoot)(nil)
	_ caddy.Provisioner           = (*Bandwidth)(nil)
	_ caddyhttp.MiddlewareHandler = (*Bandwidth)(nil)
	_ caddy.Provisioner           = (*BasicAuth)(nil)
	_ caddyhttp.MiddlewareHandler = (*BasicAuth)(nil)
	_ caddy.Provisioner           = (*CORS)(nil)
	_ caddyhttp.MiddlewareHandler = (*CORS)(nil)
	_ caddy.Provisioner           = (*DirectResponse)(nil)
	_ caddyhttp.MiddlewareHandler = (*DirectResponse)(nil)
	_ caddy.Provisioner           = (*ExternalAuth)(nil)
	_ caddyhttp.MiddlewareHandler = (*ExternalAuth)(nil)
	_ caddy.Provisioner           = (*HostRedirect)(nil)
	_ caddyhttp.MiddlewareHandler = (*HostRedirect)(nil)
	_ caddy.Provisioner           = (*Internal)(nil)
	_ caddyhttp.MiddlewareHandler = (*Internal)(nil)
	_ caddy.Provisioner           = (*Maintenance)(nil)
	_ caddyhttp.MiddlewareHandler = (*Maintenance)(nil)
	_ caddy.Provisioner           = (*Mirror)(nil)
	_ caddyhttp.MiddlewareHandler = (*Mirror)(nil)
	_ caddy.Provisioner           = (*PathGroups)(nil)
	_ caddyhttp.MiddlewareHandler = (*PathGroups)(nil)
	_ caddy.Provisioner           = (*Program)(nil)
	_ caddyhttp.MiddlewareHandler = (*Program)(nil)
	_ caddy.Provisioner           = (*RateLimit)(nil)
	_ caddyhttp.MiddlewareHandler = (*RateLimit)(nil)
	_ caddy.Provisioner           = (*Redirect)(nil)
	_ caddyhttp.MiddlewareHandler = (*Redirect)(nil)
	_ caddy.Provisioner           = (*ResponseHeaders)(nil)
	_ caddyhttp.MiddlewareHandler = (*ResponseHeaders)(nil)
	_ caddy.Provisioner           = (*RewriteRedirect)(nil)
	_ caddyhttp.MiddlewareHandler = (*RewriteRedirect)(nil)
	_ caddy.Provisioner           = (*SourceRanges)(nil)
	_ caddyhttp.MiddlewareHandler = (*SourceRanges)(nil)
	_ caddy.Provisioner           = (*Substitution)(nil)
	_ caddyhttp.MiddlewareHandler = (*Substitution)(nil)
	_ caddy.Provisioner           = (*TryFiles)(nil)
	_ caddyhttp.MiddlewareHandler = (*TryFiles)(nil)
	_ caddy.Provisioner           = (*URLRewrite)(nil)
	_ caddyhttp.MiddlewareHandler = (*URLRewrite)(nil)
	_ caddy.Provisioner           = (*WithoutAuthorization)(nil)
	_ caddyhttp.MiddlewareHandler = (*WithoutAuthorization)(nil)
	_ caddy.Provisioner           = (*ZoneLimits)(nil)
	_ caddyhttp.MiddlewareHandler = (*ZoneLimits)(nil)
)
