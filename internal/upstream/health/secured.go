package health

import (
	"crypto/tls"
	"net/http"

	"github.com/k8singress/k8singress/internal/model/ir"
)

// clientFor returns the HTTP client that probes endpoints as the check requires: by HTTP or gRPC, with or without TLS.
func (c *Checker) clientFor(check *ir.HealthCheck) (*http.Client, error) {
	switch {
	case check.TLS && !check.Secured.Secret.IsZero():
		return c.secured(check)
	case check.GRPC && check.TLS:
		return c.grpcs, nil
	case check.GRPC:
		return c.h2c, nil
	}
	return c.client, nil
}

// secured returns an HTTP client that uses the certificates in the check's Secret. A new client is created for each
// probe, because the Secret may change between two probes, and connections are not reused anyway.
func (c *Checker) secured(check *ir.HealthCheck) (*http.Client, error) {
	config, err := c.authority(check.Secured.Secret).Contents().ClientConfig(&check.Secured)
	if err != nil {
		return nil, err
	}
	if check.GRPC {
		return c.speaking((*http.Protocols).SetHTTP2, config), nil
	}
	return c.speaking((*http.Protocols).SetHTTP1, config), nil
}

// careless returns a TLS configuration that does not verify the endpoint's certificate. It is used if proxied requests
// do not verify it either.
func careless() *tls.Config { return &tls.Config{InsecureSkipVerify: true} }
