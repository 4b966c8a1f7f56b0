package configmap

// The ConfigMap keys for error pages. Package translate, not this package, reports a key that has no effect, because
// this also depends on the Ingresses.
var (
	customHTTPErrors            = unchecked("custom-http-errors")
	disableProxyInterceptErrors = unchecked("disable-proxy-intercept-errors")
)

// unchecked returns the key that corresponds to the annotation of this name, but without the check of the annotation:
// whether the key has an effect depends on the annotations of each Ingress.
func unchecked(name string) Key {
	key := annotation(name)
	key.Check = nil
	return key
}
