package annotations

import (
	"github.com/k8singress/k8singress/internal/model/ir"
	"github.com/k8singress/k8singress/internal/model/option"
)

// Table lists the supported annotations in the order of the documentation. To add an annotation, declare it in the file
// of its feature and add it here.
var Table = option.Table[Settings, string]{
	AutoHTTPS,
	sslRedirect, forceSSLRedirect, preserveTrailingSlash, usePortInRedirects,
	sslCiphers, sslPreferServerCiphers, sslPassthrough,
	authTLSSecret, authTLSVerifyClient, authTLSVerifyDepth, authTLSErrorPage, authTLSPassCertificate, authTLSMatchCN,
	canary, canaryWeight, canaryWeightTotal, canaryByHeader, canaryByHeaderValue, canaryByHeaderPattern, canaryByCookie,
	enableCORS, corsAllowOrigin, corsAllowMethods, corsAllowHeaders, corsExposeHeaders,
	corsAllowCredentials, corsMaxAge,
	permanentRedirect, permanentRedirectCode, temporalRedirect, temporalRedirectCode,
	allowlistSourceRange, whitelistSourceRange, denylistSourceRange,
	limitRPS, limitRPM, limitBurstMultiplier, limitConnections, limitAllowlist, limitWhitelist,
	authType, authSecret, authSecretType, authRealm, satisfy,
	authURL, authMethod, authSignIn, authSignInParam, authResponseHeaders, authRequestRedirect, authProxySetHeaders,
	authCacheKey, authCacheDuration, authAlwaysSetCookie, authKeepalive, authKeepaliveRequests, authKeepaliveTimeout,
	authKeepaliveShareVars,
	enableGlobalAuth,
	chainNames,
	configurationSnippet, serverSnippet, authSnippet, modSecuritySnippet, enableModSecurity, enableCoreRules,
	customHTTPErrors, defaultBackend, disableProxyInterceptErrors,
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

// guardians return the filters for basic and external authentication, in the order in which these filters run, after
// the filter for client addresses. With the annotation satisfy, a client may have to pass only one of all these
// filters.
var guardians = []func(s *Settings, path string) []ir.Filter{(*Settings).basicAuth, (*Settings).externalAuth}

// finishers derive settings from the values of several annotations. Settings.Finish calls them, possibly several times,
// so calling them again must not change the result.
var finishers = []func(*Settings){
	(*Settings).finishRetries, (*Settings).finishPrefix, (*Settings).finishBalancing, (*Settings).finishClientAuth,
	(*Settings).finishBackendTLS, (*Settings).finishAffinity, (*Settings).finishHealthCheck, (*Settings).finishCanary,
	(*Settings).finishSourceRanges, (*Settings).finishProxyRedirect,
}
