package engine

import (
	"github.com/k8singress/k8singress/internal/control/webhook"
	"github.com/k8singress/k8singress/internal/model/settings"
)

// Reviews returns the numbers of reviews that the admission webhook has answered.
func (e *Engine) Reviews() webhook.Counts { return e.reviews.Counts() }

// configureWebhook applies the options of the admission webhook.
func (l *loop) configureWebhook(before, now *settings.AdmissionWebhook) {
	if now == nil {
		l.reviews.SetView(nil)
		l.webhook.Configure("", nil)
		return
	}
	if before == nil || *before != *now {
		l.webhook.Configure(now.Address(), l.certificatesOf(now))
	}
}

// certificatesOf returns the source of the webhook's certificate, or nil if there is no source.
func (l *loop) certificatesOf(o *settings.AdmissionWebhook) webhook.Source {
	if o.Certificate != "" {
		return webhook.NewFiles(o.Certificate, o.Key, l.log)
	}
	if l.publisher == nil {
		return nil
	}
	return l.publisher
}
