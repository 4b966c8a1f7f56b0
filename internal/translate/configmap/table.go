package configmap

import (
	"slices"

	"github.com/k8singress/k8singress/internal/model/option"
	"github.com/k8singress/k8singress/internal/translate/annotations"
)

// Key is one row of Table: a ConfigMap key with its documentation and its parser.
type Key = option.Row[Config, string]

// process is the scope of keys that apply to the whole process, so they have no effect in the ConfigMap of one class.
// All other keys provide default settings for Ingresses.
const process option.Scope = "the process"

// Table lists the supported keys. The keys that an annotation can override come first. To add a key, add it here, and
// declare it in the file of its feature, unless it has the name of an annotation. If ingress-nginx does not have the
// key, Doc begins with notOfNginx.
var Table = slices.Concat(option.Table[Config, string]{
	annotation("ssl-redirect"), annotation("force-ssl-redirect"), annotation("preserve-trailing-slash"),
	annotation("use-port-in-redirects"), httpRedirectCode, noTLSRedirectLocations, annotation("relative-redirects"),
	annotation("app-root"),
	sslProtocols, annotation("ssl-ciphers"),
	annotation("load-balance"),
	annotation("upstream-hash-by"), annotation("upstream-hash-by-subset"), annotation("upstream-hash-by-subset-size"),
	annotation("service-upstream"),
	annotation("proxy-connect-timeout"), annotation("proxy-send-timeout"), annotation("proxy-read-timeout"),
	annotation("proxy-next-upstream"), annotation("proxy-next-upstream-timeout"),
	annotation("proxy-next-upstream-tries"),
	retryNonIdempotent,
	own("auto-https"),
	annotation("proxy-body-size"), annotation("proxy-request-buffering"), annotation("proxy-buffering"),
	annotation("proxy-http-version"), annotation("proxy-cookie-path"), annotation("proxy-cookie-domain"),
	annotation("proxy-redirect-from"), annotation("proxy-redirect-to"),
	annotation("whitelist-source-range"), annotation("denylist-source-range"),
	own("maintenance"), own("maintenance-allowlist"),
	annotation("limit-rate"), annotation("limit-rate-after"),
	ofIngresses(&annotations.LimitStatus), ofIngresses(&annotations.LimitConnectionsStatus),
	ofIngresses(&annotations.LimitKey),
	globalAuth("auth-url"), globalAuth("auth-method"), globalAuth("auth-signin"),
	globalAuth("auth-signin-redirect-param"),
	globalAuth("auth-response-headers"), globalAuth("auth-request-redirect"), globalAuth("auth-cache-key"),
	globalAuth("auth-cache-duration"),
	globalAuth("auth-always-set-cookie"), ofIngresses(&annotations.NoAuthLocations),
	ofIngresses(&annotations.ServersSnippet), ofIngresses(&annotations.LocationsSnippet),
	ofIngresses(&annotations.GlobalAuthSnippet),
	ofIngresses(&annotations.FirewallRules), annotation("enable-modsecurity"),
	named("enable-owasp-modsecurity-crs", "enable-owasp-core-rules"),
	customHTTPErrors, disableProxyInterceptErrors, own("retry-after"),
	proxySSLLocationOnly, ofIngresses(&annotations.GlobalAllowedResponseHeaders),
	ofIngresses(&annotations.RiskLevel), ofIngresses(&annotations.AllowSnippets),
	ofIngresses(&annotations.WordBlocklist),

	httpSnippet, ofProcess(&annotations.StreamSnippet), ofProcess(&annotations.MainSnippet),
	useHTTP2, sslRejectHandshake, sslSessionTickets,
	hsts, hstsMaxAge, hstsIncludeSubdomains, hstsPreload,
	useForwardedHeaders, computeFullForwardedFor, forwardedForHeader, enableRealIP, proxyRealIPCIDR,
	useProxyProtocol, proxyProtocolHeaderTimeout,
	upstreamKeepaliveConnections, upstreamKeepaliveTimeout,
	proxyStreamTimeout, proxyStreamNextUpstream, proxyStreamNextUpstreamTimeout, proxyStreamNextUpstreamTries,
	proxyStreamResponses,
}, connectionKeys, option.Table[Config, string]{
	disableAccessLog, disableHTTPAccessLog, disableStreamAccessLog, accessLogPath, httpAccessLogPath,
	streamAccessLogPath, logFormatUpstream,
	logFormatStream, logFormatEscapeJSON, logFormatEscapeNone,
	skipAccessLogURLs, enableAccessLogForDefaultBackend, enableSyslog, syslogHost, syslogPort,
	serverTokens, allowBackendServerHeader, addHeaders, proxySetHeaders, hideHeaders, proxyAddOriginalURIHeader,
	forwardedHostHeader,
	enableUnderscoresInHeaders, ignoreInvalidHeaders,
	useGzip, gzipLevel, gzipMinLength, gzipTypes, gzipDisable, enableBrotli, brotliLevel, brotliMinLength, brotliTypes,
	enableOpenTelemetry, openTelemetryTrust, openTelemetryOperation,
	otlpCollectorHost, otlpCollectorPort, otelServiceName, otelSampler, otelSamplerRatio, otelSamplerParentBased,
	otelMaxQueueSize, otelScheduleDelay, otelMaxExportBatchSize,
	nginxStatusIPv4, nginxStatusIPv6,
	workerShutdownTimeout,
	allowCrossNamespaceResources,
	generateRequestID, defaultType, strictValidatePathType,
	blockCIDRs, blockUserAgents, blockReferers,
})

// httpSnippet sets the variables of all hosts, and requests find them before their host.
var httpSnippet = ofProcess(&annotations.HTTPSnippet)

// ofProcess is like ofIngresses, for a key that has no effect in the ConfigMap of a class.
func ofProcess(row *annotations.Annotation) Key {
	key := ofIngresses(row)
	key.Scope = process
	return key
}

// annotation returns a key that sets the default for the annotation of the same name.
func annotation(name string) Key {
	row := annotations.Table.Find(name)
	if row == nil {
		panic("there is no annotation " + name)
	}
	return ofIngresses(row)
}

// The function named returns a key that sets the default for an annotation with a different name. of is the name of the
// annotation.
func named(name, of string) Key {
	key := annotation(of)
	key.Name = name
	return key
}

// notOfNginx is the first sentence of the documentation of each key that ingress-nginx does not have.
const notOfNginx = "This key does not exist in ingress-nginx."

// own returns a key that sets the default for the annotation k8singress.io/NAME. The key is NAME, because the keys of a
// ConfigMap cannot contain a slash.
func own(name string) Key {
	key := named(name, annotations.OwnPrefix+name)
	key.Doc = notOfNginx + " " + key.Doc
	return key
}

// ofIngresses returns a ConfigMap key that changes the default settings of all Ingresses. row describes the key and
// parses its value. An annotation with the name of row does not have to exist.
func ofIngresses(row *annotations.Annotation) Key {
	return option.In(func(c *Config) *annotations.Settings { return &c.Defaults }, row)
}
