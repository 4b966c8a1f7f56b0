package annotations

import (
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/k8singress/k8singress/internal/model/ir"
	"github.com/k8singress/k8singress/internal/model/nginx"
	"github.com/k8singress/k8singress/internal/model/option"
)

const onOff = "on or off"

// The annotations for buffering request and response bodies, and for limiting their size.
var (
	proxyBuffering = Annotation{
		Name: "proxy-buffering",
		Doc: "With `on`, a response is read as fast as the endpoint sends it, even if the client is slow. With " +
			"`off`, it is read as fast as the client reads it.",
		Values: onOff, Example: "on", Default: "off", Scope: ScopeLocation, Risk: RiskLow,
		Parse: nginx.Into(func(s *Settings) *bool { return &s.Forwarding.BufferResponse }, nginx.OnOff),
	}
	proxyRequestBuffering = Annotation{
		Name: "proxy-request-buffering",
		Doc: "With `on`, the whole request body is read before it is sent to an endpoint. With `off`, it is " +
			"forwarded as it arrives, and the request is not retried once a part of the body has been sent.",
		Values: onOff, Example: "off", Default: "on", Scope: ScopeLocation, Risk: RiskLow,
		Parse: nginx.Into(func(s *Settings) *bool { return &s.Forwarding.StreamRequest },
			func(value string) (bool, error) {
				on, err := nginx.OnOff(value)
				return !on, err
			}),
	}
	proxyBodySize = Annotation{
		Name: "proxy-body-size",
		Doc: "The maximum size of a request body. Requests with a larger body get 413, with or without a " +
			"Content-Length header. 0 means no limit.",
		Values: "a number of bytes, or a number with the suffix k, m or g", Example: "8m", Default: "1m",
		Scope: ScopeLocation,
		Risk:  RiskMedium,
		Parse: nginx.Into(func(s *Settings) *int64 { return &s.Forwarding.MaxBody }, readBodySize),
	}
)

func readBodySize(value string) (int64, error) {
	n, err := nginx.Size(value)
	if n == 0 {
		n = ir.NoLimit
	}
	return n, err
}

// protocols maps the values of backend-protocol to the protocols in package ir.
var protocols = []struct {
	name     string
	protocol ir.BackendProtocol
}{
	{"HTTP", ir.HTTP}, {"HTTPS", ir.HTTPS}, {"AUTO_HTTP", ir.AutoHTTP}, {"GRPC", ir.GRPC}, {"GRPCS", ir.GRPCS},
	{"FCGI", ir.FastCGI},
}

const (
	hostChars  = ".-~:[]"
	indexChars = "._-/"
)

// The annotations that configure how requests are sent to the backend: the protocol, the address, and additional
// headers.
var (
	backendProtocol = Annotation{
		Name: "backend-protocol",
		Doc: "The protocol of connections to the endpoints. The certificates of HTTPS and GRPCS endpoints are not " +
			"verified unless proxy-ssl-verify is on, as in ingress-nginx. With AUTO_HTTP, requests are sent by HTTP " +
			"or HTTPS, like the client's request. An invalid value is treated as HTTP.",
		Values: "HTTP, HTTPS, AUTO_HTTP, GRPC, GRPCS or FCGI", Example: "HTTPS", Default: "HTTP", Scope: ScopeLocation,
		Risk: RiskLow, Passthrough: true,
		Parse:     nginx.Into(func(s *Settings) *ir.BackendProtocol { return &s.Forwarding.Protocol }, readProtocol),
		Meanwhile: "it is served as HTTP",
	}
	serviceUpstream = Annotation{
		Name: "service-upstream",
		Doc: "Sends requests to the cluster IP of the Service instead of its endpoints. Kubernetes then chooses the " +
			"endpoint, so load-balance, affinity and retries have no effect.",
		Values: booleans, Example: "true", Default: "false", Scope: ScopeIngress, Risk: RiskLow, Passthrough: true,
		Parse: nginx.Into(func(s *Settings) *bool { return &s.LoadBalancing.UseVirtualAddress }, nginx.Bool),
	}
	upstreamVhost = Annotation{
		Name: "upstream-vhost",
		Doc: "The Host header of requests to endpoints. It may contain nginx variables, such as " +
			"$service_name.$namespace.svc.cluster.local.",
		Values: "a host that may contain nginx variables", Example: "app.example.com",
		Default: "the client's Host header",
		Scope:   ScopeLocation, Risk: RiskLow,
		Parse: withVariables(nginx.Into(func(s *Settings) *string { return &s.Forwarding.Host }, readHost)),
	}
	connectionProxyHeader = Annotation{
		Name: "connection-proxy-header",
		Doc: "The Connection header of requests to endpoints. WebSocket requests are not affected. With keep-alive, " +
			"a connection to an endpoint is reused for other requests; with close, it is not.",
		Values: "close or keep-alive", Example: "keep-alive", Default: "depends on the request", Scope: ScopeLocation,
		Risk: RiskLow,
		Parse: nginx.Into(func(s *Settings) *string { return &s.Forwarding.Connection },
			nginx.OneOf("close", "keep-alive")),
	}
	xForwardedPrefix = Annotation{
		Name: "x-forwarded-prefix",
		Doc: "The X-Forwarded-Prefix header of requests to endpoints. It is sent only for paths that " +
			"rewrite-target rewrites.",
		Values: "a path", Example: "/app", Default: "none", Scope: ScopeLocation, Risk: RiskMedium,
		Parse: nginx.Into(func(s *Settings) *string { return &s.Asked.Prefix }, nginx.Chars("/-._~:", maxPathBytes)),
		Check: func(s *Settings) string {
			return option.Unless(s.RewriteTarget != "",
				"the setting has no effect without rewrite-target, as in ingress-nginx")
		},
	}
	fastcgiIndex = Annotation{
		Name:   "fastcgi-index",
		Doc:    "With backend-protocol FCGI, the name of the file that is served for paths with a trailing slash.",
		Values: "a file name", Example: "index.php", Default: "none", Scope: ScopeLocation, Risk: RiskMedium,
		Parse: nginx.Into(func(s *Settings) *string { return &s.Forwarding.Index },
			nginx.Chars(indexChars, maxPathBytes)),
		Check: checkCGI,
	}
	fastcgiParams = Annotation{
		Name: "fastcgi-params-configmap",
		Doc: "With backend-protocol FCGI, the ConfigMap whose data are sent to endpoints as FastCGI parameters. They " +
			"are added to nginx's usual parameters, and replace parameters with the same names. Values may contain " +
			"nginx variables, such as /var/www$fastcgi_script_name. While the ConfigMap does not exist, is in " +
			"another namespace or is invalid, all requests get 503.",
		Values: "name or namespace/name", Example: "params", Default: "none", Scope: ScopeLocation, Risk: RiskMedium,
		Parse: nginx.Into(func(s *Settings) *string { return &s.ParamsConfigMap }, readObjectName), Check: checkCGI,
		OnError: (*Settings).close, Meanwhile: ingressClosed,
	}
)

func (s *Settings) finishPrefix() {
	s.Forwarding.Prefix = ""
	if s.RewriteTarget != "" {
		s.Forwarding.Prefix = s.Asked.Prefix
	}
}

func checkCGI(s *Settings) string {
	return option.Unless(s.Forwarding.Protocol == ir.FastCGI,
		"the setting has no effect, because the backend does not use FastCGI: set backend-protocol to FCGI")
}

// readObjectName checks the name of a Kubernetes object, with or without a namespace, and returns it unchanged.
func readObjectName(value string) (string, error) {
	parts := strings.Split(value, "/")
	if len(parts) > 2 || slices.ContainsFunc(parts,
		func(part string) bool { return len(validation.IsDNS1123Subdomain(part)) > 0 }) {
		return "", fmt.Errorf("%s is not the name of an object: write name or namespace/name", nginx.Quote(value))
	}
	return value, nil
}

func readProtocol(value string) (ir.BackendProtocol, error) {
	var names []string
	for _, p := range protocols {
		if strings.EqualFold(p.name, value) {
			return p.protocol, nil
		}
		names = append(names, p.name)
	}
	return "", fmt.Errorf("%s is not one of %s%s", nginx.Quote(value), strings.Join(names, ", "),
		nginx.Suggestion(value, names))
}

// readHost reads a Host header that may contain nginx variables. It rejects braces outside of variables, so that the
// value cannot contain a Caddy placeholder.
func readHost(value string) (string, error) {
	if strings.Contains(strings.ReplaceAll(value, "${", ""), "{") {
		return "", fmt.Errorf("%s contains a brace that is not part of a variable", nginx.Quote(value))
	}
	return readTemplate(hostChars, maxPathBytes)(value)
}

// buffered is used in warnings about settings for nginx's buffer sizes. It explains why these settings have no effect.
const buffered = "buffers grow as needed, and no response is too large for them"

// The annotations that tune nginx and have no effect here. They cause no warning, because nothing needs to be fixed.
var (
	proxyBufferSize = Annotation{Name: "proxy-buffer-size", Ignored: "response headers do not have to fit into a " +
		"buffer of a fixed size",
		Risk: RiskLow}
	proxyBuffersNumber   = Annotation{Name: "proxy-buffers-number", Ignored: buffered, Risk: RiskLow}
	proxyBusyBuffersSize = Annotation{Name: "proxy-busy-buffers-size", Ignored: buffered, Risk: RiskLow}
	proxyMaxTempFileSize = Annotation{Name: "proxy-max-temp-file-size",
		Ignored: "the controller limits the size of buffered responses itself",
		Risk:    RiskLow}
	clientBodyBufferSize = Annotation{Name: "client-body-buffer-size",
		Ignored: "the controller chooses the size of buffers for request bodies itself",
		Risk:    RiskLow}
	http2PushPreload = Annotation{Name: "http2-push-preload", Ignored: "browsers no longer support server push",
		Risk: RiskLow}
)

var proxyHTTPVersion = Annotation{
	Name:   "proxy-http-version",
	Doc:    "The HTTP version of requests to endpoints. 1.0 is not supported: requests are sent with HTTP/1.1.",
	Values: "1.1", Example: "1.1", Default: "1.1", Scope: ScopeLocation, Risk: RiskLow,
	Parse: func(_ *Settings, value string) error {
		version, err := nginx.OneOf("1.1", "1.0")(value)
		if version == "1.0" {
			return nginx.Unsupported("HTTP/1.0 is not supported for endpoints: HTTP/1.1 is used")
		}
		return err
	},
}
