package engine

import (
	"crypto/tls"
	"errors"

	"github.com/k8singress/k8singress/internal/model/settings"
)

// configureWebhook tells the publisher which certificates to keep for the admission webhook.
func (l *loop) configureWebhook(o settings.Config) {
	if l.publisher == nil {
		return
	}
	var configuration string
	if o.AdmissionWebhook != nil {
		configuration = o.AdmissionWebhook.Configuration
	}
	l.publisher.KeepWebhook(configuration)
}

var errNoCluster = errors.New("admission_webhook: the controller reads no cluster, so it cannot keep a certificate " +
	"of its own: use certificate files")

// WebhookCertificate returns the certificate of the admission webhook that the controller keeps itself. It has the type
// of the field GetCertificate in tls.Config. It returns an error while there is no certificate.
func (e *Engine) WebhookCertificate(hello *tls.ClientHelloInfo) (*tls.Certificate, error) {
	if e.publisher == nil {
		return nil, errNoCluster
	}
	return e.publisher.WebhookCertificate(hello)
}
