package annotations

import (
	"github.com/k8singress/k8singress/internal/model/ir"
	"github.com/k8singress/k8singress/internal/model/option"
)

// Table lists the supported annotations in the order of the documentation. To add an annotation, declare it in the file
// of its feature, and add it here. If several annotations determine one setting, also add a field for the value to the
// type Asked, and a function to the slice named finishers. If the annotation adds a filter, add a function to the slice
// named phases.
var Table = option.Table[Settings, string]{
	AutoHTTPS, OnDemandTLS,
	sslRedirect, forceSSLRedirect, preserveTrailingSlash, usePortInRedirects,
	sslCiphers, sslPreferServerCiphers, sslPassthrough,
	authTLSSecret, authTLSVerifyClient, authTLSVerifyDepth, authTLSErrorPage, authTLSPassCertificate, authTLSMatchCN,
	canary, canaryWeight, canaryWeightTotal, canaryByHeader, canaryByHeaderValue, canaryByHeaderPattern, canaryByCookie,
	enableCORS, corsAllowOrigin, corsAllowMethods, corsAllowHeaders, corsExposeHeaders,
	corsAllowCredentials, corsMaxAge,
	permanentRedirect, permanentRedirectCode, temporalRedirect, temporalRedirectCode,
	maintenance, maintenanceAllowlist,
	allowlistSourceRange, whitelistSourceRange, denylistSourceRange,
	limitRPS, limitRPM, limitBurstMultiplier, limitConnections, limitAllowlist, limitWhitelist,
	authType, authSecret, authSecretType, authRealm, satisfy,
	authURL, authMethod, authSignIn, authSignInParam, authResponseHeaders, authRequestRedirect, authProxySetHeaders,
	authCacheKey, authCacheDuration, authAlwaysSetCookie, authKeepalive, authKeepaliveRequests, authKeepaliveTimeout,
	authKeepaliveShareVars,
	enableGlobalAuth,
	chainNames,
	configurationSnippet, serverSnippet, authSnippet, streamSnippet, modSecuritySnippet, enableModSecurity,
	enableCoreRules,
	customHTTPErrors, defaultBackend, disableProxyInterceptErrors, retryAfter,
	useRegex, rewriteTarget, appRoot, relativeRedirects,
	serverAlias, fromToWWW,
	enableAccessLog,
	enableOpenTelemetry, openTelemetryTrust, openTelemetryOperation,
	mirrorTarget, mirrorHost, mirrorRequestBody,
	proxyBodySize, proxyRequestBuffering,
	loadBalance, upstreamHashBy, upstreamHashBySubset, upstreamHashBySubsetSize, serviceUpstream,
	affinity, affinityMode, affinityCanaryBehavior,
	sessionCookieName, sessionCookiePath, sessionCookieDomain, sessionCookieExpires, sessionCookieMaxAge,
	sessionCookieSameSite,
	sessionCookieConditionalSameSiteNone, sessionCookieSecure, sessionCookieChangeOnFailure,
	slowStart, ejectAfterFailures,
	healthCheckPath, healthCheckInterval, healthCheckTimeout, healthCheckHealthyAfter, healthCheckUnhealthyAfter,
	healthCheckStatus,
	healthCheckHost,
	backendProtocol, proxyHTTPVersion, upstreamVhost, connectionProxyHeader, xForwardedPrefix, proxyCookiePath,
	proxyCookieDomain,
	proxyRedirectFrom, proxyRedirectTo,
	fastcgiIndex, fastcgiParams, customHeaders,
	proxySSLSecret, proxySSLVerify, proxySSLVerifyDepth, proxySSLName, proxySSLServerName, proxySSLProtocols,
	proxySSLCiphers,
	proxyConnectTimeout, proxySendTimeout, proxyReadTimeout,
	proxyNextUpstream, proxyNextUpstreamTimeout, proxyNextUpstreamTries,
	proxyBuffering, limitRate, limitRateAfter,
	proxyBufferSize, proxyBuffersNumber, proxyBusyBuffersSize, proxyMaxTempFileSize, clientBodyBufferSize,
	http2PushPreload, enableRewriteLog,
}

// Asked holds the parsed values of single annotations and ConfigMap keys. Some settings depend on several of these
// values, so Finish derives the settings when all values are known. Annotations can therefore be parsed in any order.
// The types of the fields are declared in the files of their features.
type Asked struct {
	Retries    retries
	Rate       rate
	Prefix     string
	Balancing  balancing
	Affinity   stickiness
	Check      ir.HealthCheck
	ClientAuth clientAuth
	BackendTLS backendTLS
	Canary     canaryAsked
	// Maintenance holds the switch for maintenance, and the clients that are still served.
	Maintenance maintenanceAsked
	Sources     sources
	Redirects   redirects
	CORS        cors
	Limits      limits
	BasicAuth   basicAuth
	// SatisfyAny is true if a client is allowed as soon as it passes one of the filters for access control.
	SatisfyAny bool
	// Auth is the external authentication that annotations of the Ingress configure. GlobalAuth is the external
	// authentication that the ConfigMap configures. GlobalAuth applies to Ingresses without auth-url, unless
	// NoGlobalAuth is set. NoAuth lists the paths that need no authentication. No annotation changes GlobalAuth or
	// NoAuth.
	Auth, GlobalAuth externalAuth
	NoGlobalAuth     bool
	NoAuth           []string

	// Snippets holds the settings for nginx snippets and ModSecurity.
	Snippets snippetSettings

	// Mirror configures the server that gets a copy of each request. If its URL is empty, requests are not copied.
	Mirror ir.Mirror
	// ProxyRedirect configures how redirects in the responses of endpoints are rewritten.
	ProxyRedirect proxyRedirect
	Tracing       tracing
}

// guardians return the filters for basic and external authentication, in the order in which these filters run. They run
// after the filter for client addresses. If the annotation satisfy is any, a client only has to pass one of these
// filters or the filter for client addresses.
var guardians = []func(s *Settings, path string) []ir.Filter{(*Settings).basicAuth, (*Settings).externalAuth}

// finishers derive settings from the values of several annotations. Settings.Finish calls them, possibly several times,
// so calling them again must not change the result.
//
// The snippets come first, because they set values of annotations.
var finishers = []func(*Settings){
	(*Settings).finishLocation, (*Settings).finishRetries, (*Settings).finishPrefix, (*Settings).finishBalancing,
	(*Settings).finishClientAuth,
	(*Settings).finishBackendTLS, (*Settings).finishAffinity, (*Settings).finishHealthCheck, (*Settings).finishCanary,
	(*Settings).finishSourceRanges, (*Settings).finishProxyRedirect, (*Settings).finishTracing,
}

// phase is one step in the handling of a request. Name and Doc are for the documentation, which lists all phases.
type phase struct {
	Name, Doc string
	// filters returns the filters that the annotations add in this phase for one path. It is nil if the phase is
	// implemented elsewhere; a comment on the element of the slice phases then says where.
	filters func(s *Settings, path string) []ir.Filter
	// temporary is true if users set the filters of the phase only for some time. If such a filter ends a TLS
	// passthrough, the verdict is a warning instead of an error.
	temporary bool
	// mandatory is true if the filters of the phase prevent TLS passthrough even if they decide by what a request
	// contains.
	mandatory bool
}

// of returns the filters that the phase adds for one path.
func (p *phase) of(s *Settings, path string) []ir.Filter {
	if p.filters == nil {
		return nil
	}
	return p.filters(s, path)
}

// phases lists the steps of handling a request, in the order in which they are executed. It also determines the order
// of the filters, with and without app-root. See design/016 for the reasons.
var phases = []phase{
	// This phase is implemented by Serve in package live.
	{Name: "blocked",
		Doc: "returns 403 for clients and requests in the [keys](configmap.md) `block-cidrs`, `block-user-agents` " +
			"and `block-referers`"},
	// This phase is implemented by checkPath in package live.
	{Name: "ambiguous paths",
		Doc: "returns 400 for a path that an endpoint might interpret as another path, with different access control"},
	// This phase is implemented by beforeRoute in package live. It applies to routes for which RedirectFor returns a
	// redirect.
	{Name: "redirect to HTTPS",
		Doc: "redirects HTTP requests, as described in [TLS](tls.md#redirects), except on paths that return 503 " +
			"to all clients or redirect to another URL"},
	// This phase is implemented by beforeRoute and admit in package live.
	{Name: "client certificates",
		Doc: "verifies them according to `auth-tls-*`, as described in [Client " +
			"certificates](client-certificates.md#rejected-requests)"},
	{Name: "invalid access control", Doc: "returns 503 if the access control of the Ingress is invalid or not " +
		"supported",
		filters: (*Settings).closed},
	{Name: "default chains", Doc: "runs the chains of the option [`chain_default`](caddyfile.md#chain_default)",
		filters: (*Settings).defaultChains, mandatory: true},
	{Name: "maintenance", Doc: "returns 503 if `k8singress.io/maintenance` is `true`, except for clients in " +
		"`k8singress.io/maintenance-allowlist`",
		filters: (*Settings).maintenance, temporary: true},
	// Package hosts adds the filters of this phase, because they apply to all paths of a host.
	{Name: serverPhase, Doc: "runs `server-snippet`, the one of the Ingress before the one of the ConfigMap, for all " +
		"paths of the host, including the locations in it"},
	// This phase is implemented by FiltersOfRoot. It applies only to requests for exactly "/", which also pass the
	// filters of the earlier phases.
	{Name: appRoot.Name, Doc: "redirects requests for `/`; the later steps do not apply to them"},
	{Name: "CORS", Doc: "responds to OPTIONS requests, and adds headers to all responses from this step on",
		filters: (*Settings).cors},
	{
		Name: "snippets", filters: (*Settings).locationFilters,
		Doc: "runs `configuration-snippet` and then `location-snippet` of the ConfigMap: `return`, `rewrite` and " +
			"`if` take effect in this step, and other directives when the request or the response is sent",
	},
	{Name: "redirects", Doc: "redirects because of `temporal-redirect`, `permanent-redirect`, or `rewrite-target` " +
		"with a URL",
		filters: (*Settings).redirects},
	// Package hosts adds the limits that apply to all paths of a host.
	{Name: limitsPhase, Doc: "rejects requests that exceed `limit-connections`, `limit-rps` or `limit-rpm`, or " +
		"`limit_req` and `limit_conn` in snippets",
		filters: (*Settings).limits},
	{
		Name: "access control", filters: (*Settings).access,
		Doc: "checks `denylist-source-range`, `allowlist-source-range`, `auth-type` and `auth-url`; with `satisfy: " +
			"any`, a client has to pass only one of these checks",
	},
	{Name: "try_files", Doc: "passes all requests on because of `try_files` in a snippet",
		filters: (*Settings).passedOn},
	{Name: "bandwidth", Doc: "applies `limit-rate` and `limit-rate-after` to responses from this step on",
		filters: (*Settings).bandwidth},
	{Name: "chains", Doc: "runs the chains in `k8singress.io/chains`, in the order of the annotation",
		filters: (*Settings).chains},
	{Name: "Authorization", Doc: "keeps the `Authorization` header from endpoints and mirrors if `auth-type` used it",
		filters: (*Settings).withoutPassword},
	{Name: "rewrite", Doc: "rewrites the path according to `rewrite-target`; earlier steps use the path of the " +
		"client's request",
		filters: (*Settings).rewrite},
	{Name: "custom headers", Doc: "adds the headers in `custom-headers` to responses from this step on",
		filters: (*Settings).customHeaders},
	{
		Name: "mirror", filters: (*Settings).mirror,
		Doc: "sends a copy of the request to `mirror-target`, without the password for `auth-type`",
	},
	// See package proxy.
	{Name: "endpoints",
		Doc: "returns 503 if there are no endpoints, or 413 if the body is too large; otherwise sends the request to " +
			"an endpoint, with retries"},
}
