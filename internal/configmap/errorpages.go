package configmap

// The rows of error pages. Which Service answers, and for which errors, an Ingress may say: package translate says what has no effect.
var (
	customHTTPErrors            = unchecked("custom-http-errors")
	disableProxyInterceptErrors = unchecked("disable-proxy-intercept-errors")
)

// unchecked is a key with the meaning of an annotation, whose effect shows with the annotations of an Ingress only.
func unchecked(name string) Key {
	key := annotation(name)
	key.Check = nil
	return key
}
