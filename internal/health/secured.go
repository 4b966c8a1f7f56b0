package health

import (
	"crypto/tls"
	"fmt"
	"net/http"

	"github.com/k8singress/k8singress/internal/ir"
)

// clientFor returns who asks as a check wants it.
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

// secured makes a client for one question: no connection is kept anyway, and the Secret may change until the next one.
func (c *Checker) secured(check *ir.HealthCheck) (*http.Client, error) {
	config, err := c.authority(check.Secured.Secret).Contents().ClientConfig(&check.Secured)
	if err != nil {
		return nil, fmt.Errorf("the Secret %s is no good: %w", check.Secured.Secret, err)
	}
	if check.GRPC {
		return c.speaking((*http.Protocols).SetHTTP2, config), nil
	}
	return c.speaking((*http.Protocols).SetHTTP1, config), nil
}

// careless is the TLS of endpoints that are not verified when requests go there either.
func careless() *tls.Config { return &tls.Config{InsecureSkipVerify: true} }
