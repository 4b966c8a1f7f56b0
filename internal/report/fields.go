package report

// Annotations that problems of several packages name.
const (
	ClientAuthSecret       = "nginx.ingress.kubernetes.io/auth-tls-secret"
	BackendTLSSecret       = "nginx.ingress.kubernetes.io/proxy-ssl-secret"
	SSLPassthrough         = "nginx.ingress.kubernetes.io/ssl-passthrough"
	Ciphers                = "nginx.ingress.kubernetes.io/ssl-ciphers"
	StreamTLSSecret        = "k8singress.io/stream-tls-secret"
	StreamBackendTLSSecret = "k8singress.io/stream-backend-tls-secret"
)

// AnnotationField is the field of a problem with an annotation.
func AnnotationField(key string) string { return "metadata.annotations[" + key + "]" }
