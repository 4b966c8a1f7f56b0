package annotations

import "github.com/k8singress/k8singress/internal/nginx"

// buffered is why the sizes of nginx's buffers mean nothing here.
const buffered = "buffers grow as they need to, and no response is too large for them"

// The rows of tuning that nginx needs and this controller does not. They are no mistake, so they are not reported.
var (
	proxyBufferSize      = Annotation{Name: "proxy-buffer-size", Ignored: "response headers have no limit of this kind", Risk: RiskLow}
	proxyBuffersNumber   = Annotation{Name: "proxy-buffers-number", Ignored: buffered, Risk: RiskLow}
	proxyBusyBuffersSize = Annotation{Name: "proxy-busy-buffers-size", Ignored: buffered, Risk: RiskLow}
	proxyMaxTempFileSize = Annotation{Name: "proxy-max-temp-file-size", Ignored: "the controller bounds by itself how much of a response it buffers",
		Risk: RiskLow}
	clientBodyBufferSize = Annotation{Name: "client-body-buffer-size", Ignored: "the controller decides by itself how much of a body it buffers",
		Risk: RiskLow}
	http2PushPreload = Annotation{Name: "http2-push-preload", Ignored: "browsers no longer support server push", Risk: RiskLow}
)

var proxyHTTPVersion = Annotation{
	Name:   "proxy-http-version",
	Doc:    "The version of HTTP to the endpoints. 1.0 is not supported: the endpoint gets 1.1.",
	Values: "1.1", Example: "1.1", Default: "1.1", Scope: ScopeLocation, Risk: RiskLow,
	Parse: func(_ *Settings, value string) error {
		version, err := nginx.OneOf("1.1", "1.0")(value)
		if version == "1.0" {
			return nginx.Unsupported("HTTP/1.0 towards endpoints is not supported: they get HTTP/1.1")
		}
		return err
	},
}
