package featuretests

import (
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/k8singress/k8singress/internal/model/option"
	"github.com/k8singress/k8singress/internal/translate/annotations"
	"github.com/k8singress/k8singress/internal/translate/configmap"
)

// proofsOfAnnotations maps each annotation that has an effect to the test that shows the effect to a user. One line is
// one row of the table.
var proofsOfAnnotations = map[string]string{
	"ssl-redirect":                               "TestRedirectToHTTPS",
	"force-ssl-redirect":                         "TestRedirectToHTTPS",
	"preserve-trailing-slash":                    "TestRedirectToHTTPS",
	"use-port-in-redirects":                      "TestRedirectToHTTPS",
	"ssl-ciphers":                                "TestCiphers",
	"ssl-passthrough":                            "TestPassthrough",
	"auth-tls-secret":                            "TestClientCertificates",
	"auth-tls-verify-client":                     "TestClientCertificates",
	"auth-tls-verify-depth":                      "TestClientCertificateOptions",
	"auth-tls-error-page":                        "TestClientCertificateOptions",
	"auth-tls-pass-certificate-to-upstream":      "TestClientCertificateOptions",
	"auth-tls-match-cn":                          "TestClientCertificateOptions",
	"canary":                                     "TestCanaryRules",
	"canary-weight":                              "TestCanaryRules",
	"canary-weight-total":                        "TestCanaryRules",
	"canary-by-header":                           "TestCanaryRules",
	"canary-by-header-value":                     "TestCanaryRules",
	"canary-by-header-pattern":                   "TestCanaryRules",
	"canary-by-cookie":                           "TestCanaryRules",
	"enable-cors":                                "TestCORS",
	"cors-allow-origin":                          "TestCORS",
	"permanent-redirect":                         "TestRedirects",
	"permanent-redirect-code":                    "TestRedirects",
	"temporal-redirect":                          "TestRedirects",
	"allowlist-source-range":                     "TestSourceRanges",
	"whitelist-source-range":                     "TestSourceRanges",
	"denylist-source-range":                      "TestSourceRanges",
	"k8singress.io/maintenance":                  "TestMaintenance",
	"k8singress.io/maintenance-allowlist":        "TestMaintenance",
	"limit-rpm":                                  "TestLimitRPM",
	"limit-burst-multiplier":                     "TestLimitRPM",
	"limit-connections":                          "TestLimitConnections",
	"limit-allowlist":                            "TestLimitRPM",
	"auth-type":                                  "TestBasicAuth",
	"auth-secret":                                "TestBasicAuth",
	"auth-secret-type":                           "TestBasicAuth",
	"auth-realm":                                 "TestBasicAuth",
	"satisfy":                                    "TestSatisfyAny",
	"auth-url":                                   "TestExternalAuthAllows",
	"auth-signin":                                "TestExternalAuthRefuses",
	"auth-signin-redirect-param":                 "TestExternalAuthRefuses",
	"auth-response-headers":                      "TestExternalAuthAllows",
	"auth-proxy-set-headers":                     "TestExternalAuthComesAndGoes",
	"auth-cache-key":                             "TestExternalAuthKept",
	"auth-always-set-cookie":                     "TestExternalAuthRefuses",
	"enable-global-auth":                         "TestGlobalAuth",
	"k8singress.io/chains":                       "TestChainBehindFilters",
	"configuration-snippet":                      "TestSnippets",
	"server-snippet":                             "TestSnippets",
	"auth-snippet":                               "TestSnippets",
	"modsecurity-snippet":                        "TestSnippets",
	"enable-modsecurity":                         "TestSnippetsOfTheConfigMap",
	"enable-owasp-core-rules":                    "TestSnippets",
	"custom-http-errors":                         "TestErrorPages",
	"k8singress.io/retry-after":                  "TestRetryAfter",
	"default-backend":                            "TestErrorPages",
	"disable-proxy-intercept-errors":             "TestErrorPages",
	"use-regex":                                  "TestUseRegex",
	"rewrite-target":                             "TestRewriteTarget",
	"app-root":                                   "TestAppRoot",
	"relative-redirects":                         "TestAppRoot",
	"server-alias":                               "TestServerAlias",
	"from-to-www-redirect":                       "TestFromToWWW",
	"enable-access-log":                          "TestAccessLog",
	"proxy-body-size":                            "TestConfigMapChanges",
	"proxy-request-buffering":                    "TestSlowUpload",
	"load-balance":                               "TestLeastConnLeavesABusyOneAlone",
	"upstream-hash-by":                           "TestUpstreamHashBy",
	"upstream-hash-by-subset":                    "TestUpstreamHashBySubset",
	"upstream-hash-by-subset-size":               "TestUpstreamHashBySubset",
	"service-upstream":                           "TestServiceUpstream",
	"affinity":                                   "TestSessionCookie",
	"affinity-mode":                              "TestSessionsWhenEndpointsChange",
	"affinity-canary-behavior":                   "TestCanarySession",
	"session-cookie-name":                        "TestSessionCookieAttributes",
	"session-cookie-path":                        "TestSessionCookieAttributes",
	"session-cookie-domain":                      "TestSessionCookieAttributes",
	"session-cookie-expires":                     "TestSessionCookieExpires",
	"session-cookie-max-age":                     "TestSessionCookieAttributes",
	"session-cookie-samesite":                    "TestSessionCookieAttributes",
	"session-cookie-secure":                      "TestSessionCookieAttributes",
	"session-cookie-change-on-failure":           "TestSessionWhenItsEndpointFails",
	"k8singress.io/slow-start":                   "TestSlowStart",
	"k8singress.io/eject-after-failures":         "TestEjectionAfterAnotherNumber",
	"k8singress.io/health-check-path":            "TestHealthCheck",
	"k8singress.io/health-check-host":            "TestHealthCheck",
	"backend-protocol":                           "TestHTTPSBackend",
	"upstream-vhost":                             "TestHostOfTheEndpoint",
	"connection-proxy-header":                    "TestConnectionsToABackend",
	"x-forwarded-prefix":                         "TestHostOfTheEndpoint",
	"proxy-cookie-path":                          "TestCookieRewrite",
	"proxy-cookie-domain":                        "TestCookieRewrite",
	"proxy-redirect-from":                        "TestProxyRedirect",
	"proxy-redirect-to":                          "TestProxyRedirect",
	"fastcgi-index":                              "TestFastCGIBackend/the index",
	"fastcgi-params-configmap":                   "TestFastCGIParams",
	"custom-headers":                             "TestCustomHeaders",
	"proxy-ssl-secret":                           "TestEndpointsRequireCertificates",
	"proxy-ssl-verify":                           "TestVerifiedEndpoints/wrong-authority",
	"proxy-ssl-verify-depth":                     "TestVerifiedEndpoints/deep",
	"proxy-ssl-name":                             "TestVerifiedEndpoints/good",
	"proxy-ssl-server-name":                      "TestEndpointsRequireCertificates",
	"proxy-ssl-protocols":                        "TestVerifiedEndpoints/not-his-version",
	"proxy-connect-timeout":                      "TestConnectTimeout",
	"proxy-send-timeout":                         "TestEndpointReadsNothing",
	"proxy-read-timeout":                         "TestSlowEndpoint",
	"proxy-next-upstream":                        "TestNextUpstream",
	"proxy-next-upstream-timeout":                "TestNextUpstream/total time is over",
	"proxy-next-upstream-tries":                  "TestNextUpstream/one try",
	"proxy-buffering":                            "TestBufferedResponse",
	"limit-rate":                                 "TestLimitRate",
	"limit-rate-after":                           "TestLimitRate",
	"cors-allow-methods":                         "TestCORSHeaders",
	"cors-allow-headers":                         "TestCORSHeaders",
	"cors-expose-headers":                        "TestCORSHeaders",
	"cors-allow-credentials":                     "TestCORSHeaders",
	"cors-max-age":                               "TestCORSHeaders",
	"temporal-redirect-code":                     "TestRedirects",
	"limit-rps":                                  "TestLimitRPS",
	"limit-whitelist":                            "TestLimitRPM",
	"auth-method":                                "TestExternalAuthRequest",
	"auth-request-redirect":                      "TestExternalAuthRequest",
	"auth-cache-duration":                        "TestExternalAuthKeptFor",
	"auth-keepalive":                             "TestExternalAuthConnections",
	"auth-keepalive-requests":                    "TestExternalAuthConnections",
	"auth-keepalive-timeout":                     "TestExternalAuthIdle",
	"session-cookie-conditional-samesite-none":   "TestConditionalSameSite",
	"k8singress.io/auto-https":                   "TestAutoHTTPS",
	"proxy-http-version":                         "TestProxyHTTPVersion",
	"proxy-ssl-ciphers":                          "TestCiphersOfEndpoints",
	"k8singress.io/health-check-healthy-after":   "TestHealthCheckThresholds",
	"k8singress.io/health-check-unhealthy-after": "TestHealthCheckThresholds",
	"k8singress.io/health-check-status":          "TestHealthCheckThresholds",
	"k8singress.io/health-check-interval":        "TestHealthCheckTimes",
	"k8singress.io/health-check-timeout":         "TestHealthCheckTimes",
	"mirror-target":                              "TestMirror",
	"mirror-host":                                "TestMirror",
	"mirror-request-body":                        "TestMirror",
	"enable-opentelemetry":                       "TestTracing",
	"opentelemetry-trust-incoming-span":          "TestTracing",
	"opentelemetry-operation-name":               "TestTracing",
}

// proofsOfKeys does the same for the keys of the ConfigMap.
var proofsOfKeys = map[string]string{
	"ssl-redirect":                          "TestRedirectToHTTPS",
	"force-ssl-redirect":                    "TestRedirectToHTTPS",
	"preserve-trailing-slash":               "TestRedirectToHTTPS",
	"use-port-in-redirects":                 "TestRedirectToHTTPS",
	"http-redirect-code":                    "TestRedirectToHTTPS",
	"no-tls-redirect-locations":             "TestRedirectToHTTPS",
	"ssl-protocols":                         "TestTLSVersions",
	"ssl-ciphers":                           "TestCiphers",
	"proxy-body-size":                       "TestConfigMapChanges",
	"proxy-cookie-path":                     "TestCookieRewriteOfTheConfigMap",
	"whitelist-source-range":                "TestSourceRanges",
	"maintenance":                           "TestMaintenanceOfAll",
	"maintenance-allowlist":                 "TestMaintenanceOfAll",
	"limit-rate":                            "TestLimitRate",
	"limit-req-status-code":                 "TestLimitRPM",
	"limit-conn-status-code":                "TestLimitConnections",
	"limit-conn-zone-variable":              "TestLimitConnZoneVariable",
	"global-auth-url":                       "TestGlobalAuth",
	"global-auth-response-headers":          "TestGlobalAuth",
	"custom-http-errors":                    "TestDefaultBackend",
	"retry-after":                           "TestRetryAfterOfAll",
	"global-allowed-response-headers":       "TestCustomHeaders",
	"opentelemetry-trust-incoming-span":     "TestTracingKeys",
	"opentelemetry-operation-name":          "TestTracingKeys",
	"otel-sampler-ratio":                    "TestTracingKeys",
	"otel-sampler-parent-based":             "TestTracingKeys",
	"otel-max-queuesize":                    "TestTracingBatches",
	"otel-schedule-delay-millis":            "TestTracingBatches",
	"otel-max-export-batch-size":            "TestTracingBatches",
	"nginx-status-ipv6-whitelist":           "TestStatusOverIPv6",
	"enable-syslog":                         "TestSyslog",
	"syslog-host":                           "TestSyslog",
	"syslog-port":                           "TestSyslog",
	"app-root":                              "TestAppRootOfAll",
	"use-http2":                             "TestWithoutHTTP2",
	"ssl-reject-handshake":                  "TestRejectHandshake",
	"hsts":                                  "TestHSTS",
	"hsts-max-age":                          "TestHSTS",
	"hsts-include-subdomains":               "TestHSTS",
	"hsts-preload":                          "TestHSTS",
	"use-forwarded-headers":                 "TestForwardedHeaders/use-forwarded-headers",
	"compute-full-forwarded-for":            "TestForwardedHeaders/compute-full-forwarded-for",
	"forwarded-for-header":                  "TestForwardedHeaders/forwarded-for-header",
	"enable-real-ip":                        "TestForwardedHeaders/enable-real-ip",
	"proxy-real-ip-cidr":                    "TestForwardedHeaders/a proxy that is not",
	"use-proxy-protocol":                    "TestRedirectBehindBalancer",
	"upstream-keepalive-connections":        "TestConnectionsToABackend",
	"upstream-keepalive-timeout":            "TestIdleConnectionsEnd",
	"proxy-stream-timeout":                  "TestPassthroughKeysAreLive",
	"client-header-timeout":                 "TestHeadLimitsAreLive",
	"client-body-timeout":                   "TestClientBodyTimeout",
	"keep-alive":                            "TestWithoutKeepAlive",
	"keep-alive-requests":                   "TestKeepAliveRequests",
	"large-client-header-buffers":           "TestHeadLimitsAreLive",
	"http2-max-concurrent-streams":          "TestMaxConcurrentStreams",
	"access-log-path":                       "TestAccessLog",
	"log-format-upstream":                   "TestAccessLog",
	"log-format-stream":                     "TestStreamAccessLog",
	"stream-access-log-path":                "TestStreamAccessLog",
	"disable-stream-access-log":             "TestStreamAccessLogOff",
	"log-format-escape-json":                "TestAccessLog",
	"skip-access-log-urls":                  "TestAccessLog",
	"server-tokens":                         "TestServerAndVia",
	"allow-backend-server-header":           "TestServerAndVia",
	"add-headers":                           "TestHeaderMaps",
	"proxy-set-headers":                     "TestHeaderMaps",
	"hide-headers":                          "TestHeaderMaps",
	"proxy-add-original-uri-header":         "TestHeaderMaps",
	"forwarded-host-header":                 "TestForwardedHostHeader",
	"enable-underscores-in-headers":         "TestHeaderNames",
	"ignore-invalid-headers":                "TestHeaderNames",
	"use-gzip":                              "TestCompression",
	"enable-brotli":                         "TestCompression",
	"worker-shutdown-timeout":               "TestPassthroughEnds",
	"generate-request-id":                   "TestNoRequestID",
	"block-cidrs":                           "TestBlock",
	"block-user-agents":                     "TestBlock",
	"block-referers":                        "TestBlock",
	"http-snippet":                          "TestSnippetsOfTheConfigMap",
	"server-snippet":                        "TestSnippetsOfTheConfigMap",
	"location-snippet":                      "TestSnippetsOfTheConfigMap",
	"global-auth-snippet":                   "TestSnippetsOfTheConfigMap",
	"modsecurity-snippet":                   "TestSnippetsOfTheConfigMap",
	"enable-modsecurity":                    "TestSnippetsOfTheConfigMap",
	"enable-owasp-modsecurity-crs":          "TestSnippetsOfTheConfigMap",
	"relative-redirects":                    "TestKeys",
	"load-balance":                          "TestKeys",
	"upstream-hash-by":                      "TestKeys",
	"upstream-hash-by-subset":               "TestKeys",
	"upstream-hash-by-subset-size":          "TestKeys",
	"service-upstream":                      "TestKeys",
	"proxy-next-upstream":                   "TestKeys",
	"proxy-next-upstream-timeout":           "TestKeys",
	"proxy-next-upstream-tries":             "TestKeys",
	"retry-non-idempotent":                  "TestKeys",
	"proxy-request-buffering":               "TestKeys",
	"proxy-cookie-domain":                   "TestKeys",
	"proxy-redirect-from":                   "TestKeys",
	"proxy-redirect-to":                     "TestKeys",
	"denylist-source-range":                 "TestKeys",
	"disable-proxy-intercept-errors":        "TestKeys",
	"allow-cross-namespace-resources":       "TestKeys",
	"proxy-send-timeout":                    "TestKeysOfTime",
	"proxy-read-timeout":                    "TestKeysOfTime",
	"proxy-buffering":                       "TestKeysOfTime",
	"limit-rate-after":                      "TestKeysOfTime",
	"proxy-connect-timeout":                 "TestConnectTimeout",
	"auto-https":                            "TestAutoHTTPS",
	"proxy-http-version":                    "TestProxyHTTPVersion",
	"proxy-ssl-location-only":               "TestBackendTLSOfTheOldest",
	"ssl-session-tickets":                   "TestSessionTicketsStayOn",
	"proxy-protocol-header-timeout":         "TestProxyHeaderTimeout",
	"proxy-stream-next-upstream":            "TestStreamTries",
	"proxy-stream-next-upstream-tries":      "TestStreamTries",
	"proxy-stream-next-upstream-timeout":    "TestStreamTriesTimeout",
	"proxy-stream-responses":                "TestStreamResponses",
	"global-auth-method":                    "TestGlobalAuthKeys",
	"global-auth-signin":                    "TestGlobalAuthKeys",
	"global-auth-signin-redirect-param":     "TestGlobalAuthKeys",
	"global-auth-request-redirect":          "TestGlobalAuthKeys",
	"global-auth-cache-key":                 "TestGlobalAuthKeys",
	"global-auth-cache-duration":            "TestGlobalAuthKeys",
	"global-auth-always-set-cookie":         "TestGlobalAuthKeys",
	"no-auth-locations":                     "TestGlobalAuthKeys",
	"disable-access-log":                    "TestAccessLogKeys",
	"disable-http-access-log":               "TestAccessLogKeys",
	"http-access-log-path":                  "TestAccessLogKeys",
	"log-format-escape-none":                "TestAccessLogKeys",
	"enable-access-log-for-default-backend": "TestAccessLogKeys",
	"gzip-level":                            "TestCompressionKeys",
	"gzip-min-length":                       "TestCompressionKeys",
	"gzip-types":                            "TestCompressionKeys",
	"gzip-disable":                          "TestCompressionKeys",
	"brotli-level":                          "TestCompressionKeys",
	"brotli-min-length":                     "TestCompressionKeys",
	"brotli-types":                          "TestCompressionKeys",
	"strict-validate-path-type":             "TestStrictPathTypes",
	"enable-opentelemetry":                  "TestTracing",
	"otlp-collector-host":                   "TestTracing",
	"otlp-collector-port":                   "TestTracing",
	"otel-service-name":                     "TestTracing",
	"otel-sampler":                          "TestTracingChanges",
	"nginx-status-ipv4-whitelist":           "TestProbes",
}

// owed lists rows without a test. It may only become shorter.
var owed = map[string][]string{
	"option": {"email", "election", "election_ttl"},
}

// TestProofs checks that each option, and each annotation and key with an effect, has a test that exists and that
// contains its name, directly or in a function, constant or file of the test. For annotations and keys, TestMutations
// checks that the test examines the effect.
func TestProofs(t *testing.T) {
	prove(t, "annotation", effective(annotations.Table), proofsOfAnnotations)
	prove(t, "key", effective(configmap.Table), proofsOfKeys)
	prove(t, "option", optionNames(t), proofsOfOptions)
}

// effective returns the names of the rows that have an effect.
func effective[S any](table option.Table[S, string]) (names []string) {
	for i := range table {
		if table[i].Ignored == "" {
			names = append(names, table[i].Name)
		}
	}
	return names
}

// prove checks the proofs of one table. A proof is the name of a test in this folder or, after a colon, in another one.
func prove(t *testing.T, kind string, rows []string, proofs map[string]string) {
	t.Helper()
	if n := len(owed[kind]); n > 0 {
		t.Logf("%d rows have no test yet: each %s of %s", n, kind, strings.Join(owed[kind], ", "))
	}
	for _, row := range rows {
		if isOwed := slices.Contains(owed[kind], row); proofs[row] == "" && !isOwed {
			t.Errorf("the %s %s has no test: write one that shows what it does, and its name here", kind, row)
		} else if proofs[row] != "" && isOwed {
			t.Errorf("the %s %s has a test: take it off the list of those that are owed", kind, row)
		}
	}
	for _, row := range owed[kind] {
		if !slices.Contains(rows, row) {
			t.Errorf("owed names the %s %s, which does not exist", kind, row)
		}
	}
	folders, fields := map[string]*sources{}, fieldsOfOptions()
	for row, proof := range proofs {
		if !slices.Contains(rows, row) {
			t.Errorf("the table has a proof for the %s %s, which does not exist or has no effect", kind, row)
		}
		folder, test, elsewhere := strings.Cut(proof, ":")
		if !elsewhere {
			folder, test = featureTests, proof
		}
		if folders[folder] == nil {
			folders[folder] = readTests(t, filepath.Join("../../..", folder))
		}
		folders[folder].shows(t, kind, row, fields[row], test)
	}
}
