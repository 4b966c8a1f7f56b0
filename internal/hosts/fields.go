package hosts

// Settings that hold for a whole host, so that objects may contradict each other, have their names in Ingresses only.
const (
	clientAuth     = prefix + "auth-tls-secret"
	proxySSLSecret = prefix + "proxy-ssl-secret"
	sslCiphers     = prefix + "ssl-ciphers"
	sslPassthrough = prefix + "ssl-passthrough"

	prefix = "nginx.ingress.kubernetes.io/"
)

// annotated is the field of an annotation.
func annotated(key string) string { return "metadata.annotations[" + key + "]" }
