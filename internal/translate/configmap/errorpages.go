package configmap

// The keys for error pages. Ingresses can set the Service and the status codes themselves, so package translate reports
// keys without effect.
var (
	customHTTPErrors            = unchecked("custom-http-errors")
	disableProxyInterceptErrors = unchecked("disable-proxy-intercept-errors")
)

// unchecked returns the key for the annotation of the same name, without its check, because only the annotations of an
// Ingress decide whether the key has an effect.
func unchecked(name string) Key {
	key := annotation(name)
	key.Check = nil
	return key
}
