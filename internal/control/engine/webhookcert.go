package engine

import "github.com/k8singress/k8singress/internal/model/settings"

// keepCertificates tells the publisher for which ValidatingWebhookConfiguration it keeps certificates.
func (l *loop) keepCertificates(o *settings.AdmissionWebhook) {
	if l.publisher == nil {
		return
	}
	var configuration string
	if o != nil {
		configuration = o.Configuration
	}
	l.publisher.KeepCertificates(configuration)
}
