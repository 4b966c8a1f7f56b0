package annotations

// Table lists the annotations that work, in the order in which a request meets them. A new one is a line here and a file
// of its own.
var Table = []Annotation{
	AutoHTTPS,
	sslRedirect, forceSSLRedirect, preserveTrailingSlash, usePortInRedirects,
	sslCiphers, sslPreferServerCiphers, sslPassthrough,
	authTLSSecret, authTLSVerifyClient, authTLSVerifyDepth, authTLSErrorPage, authTLSPassCertificate, authTLSMatchCN,
	chains,
	rewriteTarget,
	proxyBodySize, proxyRequestBuffering,
	loadBalance, upstreamHashBy, upstreamHashBySubset, upstreamHashBySubsetSize, serviceUpstream,
	affinity, affinityMode,
	sessionCookieName, sessionCookiePath, sessionCookieDomain, sessionCookieExpires, sessionCookieMaxAge, sessionCookieSameSite,
	sessionCookieConditionalSameSiteNone, sessionCookieSecure, sessionCookieChangeOnFailure,
	slowStart, ejectAfterFailures,
	healthCheckPath, healthCheckInterval, healthCheckTimeout, healthCheckHealthyAfter, healthCheckUnhealthyAfter, healthCheckStatus,
	healthCheckHost,
	backendProtocol, proxyHTTPVersion, upstreamVhost, connectionProxyHeader, xForwardedPrefix, fastcgiIndex, fastcgiParams,
	proxySSLSecret, proxySSLVerify, proxySSLVerifyDepth, proxySSLName, proxySSLServerName, proxySSLProtocols, proxySSLCiphers,
	proxyConnectTimeout, proxySendTimeout, proxyReadTimeout,
	proxyNextUpstream, proxyNextUpstreamTimeout, proxyNextUpstreamTries,
	proxyBuffering,
	proxyBufferSize, proxyBuffersNumber, proxyBusyBuffersSize, proxyMaxTempFileSize, clientBodyBufferSize, http2PushPreload,
}
