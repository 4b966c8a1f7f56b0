package configmap

// The ConfigMap keys for error pages. Whether a key has an effect also depends on the Ingresses, so package translate
// reports keys without an effect, and this package does not.
var (
	customHTTPErrors            = unchecked("custom-http-errors")
	disableProxyInterceptErrors = unchecked("disable-proxy-intercept-errors")
)

// The function unchecked returns the ConfigMap key for the annotation with this name, but without the function Check of
// the annotation: whether the key has an effect depends on the annotations of each Ingress.
func unchecked(name string) Key {
	key := annotation(name)
	key.Check = nil
	return key
}
