package ir

import (
	"iter"
	"strings"
)

// Secrets yields every Secret that the configuration refers to, for whatever it holds. One may come several times.
func (c *Config) Secrets() iter.Seq[Ref] {
	return func(yield func(Ref) bool) {
		_ = c.certificateSecrets(yield) && c.clientSecrets(yield) && c.routeSecrets(yield) && c.checkSecrets(yield) &&
			c.streamSecrets(yield)
	}
}

func (c *Config) certificateSecrets(yield func(Ref) bool) bool {
	if d := c.DefaultCertificate; d != nil && !yield(secretRef(d.SecretNamespace, d.SecretName)) {
		return false
	}
	for _, cert := range c.Certificates {
		if !cert.Automated && !yield(secretRef(cert.SecretNamespace, cert.SecretName)) {
			return false
		}
		if cert.SecondSecretName != "" && !yield(secretRef(cert.SecretNamespace, cert.SecondSecretName)) {
			return false
		}
	}
	return true
}

func (c *Config) clientSecrets(yield func(Ref) bool) bool {
	for _, h := range c.VirtualHosts {
		if a := h.ClientAuth; a != nil && a.SecretName != "" && !yield(secretRef(a.SecretNamespace, a.SecretName)) {
			return false
		}
	}
	return true
}

func (c *Config) routeSecrets(yield func(Ref) bool) bool {
	for _, h := range c.VirtualHosts {
		for _, r := range h.Routes {
			if t := r.Proxy.TLS; t != nil && !yield(t.secretRef()) {
				return false
			}
		}
	}
	return true
}

func (c *Config) checkSecrets(yield func(Ref) bool) bool {
	for _, b := range c.Backends {
		if check := b.LoadBalancing.HealthCheck; check != nil && check.Secured.Secret != "" && !yield(check.Secured.secretRef()) {
			return false
		}
	}
	return true
}

func (c *Config) streamSecrets(yield func(Ref) bool) bool {
	for _, r := range c.StreamRoutes {
		if t := r.TLS; t != nil && t.Secret != "" && !yield(namedSecret(t.Secret)) {
			return false
		}
		if t := r.BackendTLS; t != nil && t.Secret != "" && !yield(t.secretRef()) {
			return false
		}
	}
	return true
}

func (t *BackendTLS) secretRef() Ref { return namedSecret(t.Secret) }

// namedSecret reads "namespace/name".
func namedSecret(s string) Ref {
	namespace, name, _ := strings.Cut(s, "/")
	return secretRef(namespace, name)
}

func secretRef(namespace, name string) Ref {
	return Ref{Kind: "Secret", Namespace: namespace, Name: name}
}
