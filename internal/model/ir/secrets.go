package ir

import "iter"

// Secrets yields every Secret that the configuration refers to, for any purpose. A Secret may be yielded several times.
func (c *Config) Secrets() iter.Seq[Name] {
	return func(yield func(Name) bool) {
		for _, some := range []iter.Seq[Name]{c.certificateSecrets, c.listenerSecrets, c.hostSecrets, c.backendSecrets,
			c.streamSecrets} {
			for name := range some {
				if !name.IsZero() && !yield(name) {
					return
				}
			}
		}
	}
}

func (c *Config) certificateSecrets(yield func(Name) bool) {
	if c.DefaultCertificate != nil && !yield(c.DefaultCertificate.Secret) {
		return
	}
	for _, cert := range c.Certificates {
		if !yield(cert.Secret) || !yield(cert.SecondSecret) {
			return
		}
	}
}

func (c *Config) listenerSecrets(yield func(Name) bool) {
	for _, g := range c.MoreGroups {
		for i := range g.Listeners {
			for _, name := range g.Listeners[i].Certificates {
				if !yield(name) {
					return
				}
			}
		}
	}
}

func (c *Config) hostSecrets(yield func(Name) bool) {
	for h := range c.AllVirtualHosts() {
		if h.ClientAuth != nil && !yield(h.ClientAuth.Secret) {
			return
		}
		for _, r := range h.Routes {
			if t := r.Proxy.TLS; t != nil && !yield(t.Secret) {
				return
			}
			for _, users := range UsersOf(r.Filters) {
				if !yield(users.Secret) {
					return
				}
			}
		}
	}
}

func (c *Config) backendSecrets(yield func(Name) bool) {
	for _, b := range c.Backends {
		if check := b.LoadBalancing.HealthCheck; check != nil && !yield(check.Secured.Secret) {
			return
		}
	}
}

func (c *Config) streamSecrets(yield func(Name) bool) {
	for _, r := range c.StreamRoutes {
		if r.TLS != nil && !yield(r.TLS.Secret) || r.BackendTLS != nil && !yield(r.BackendTLS.Secret) {
			return
		}
	}
}
