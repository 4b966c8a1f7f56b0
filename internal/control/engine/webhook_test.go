package engine_test

import (
	"fmt"
	"testing"

	"go.uber.org/zap/zaptest"

	"github.com/k8singress/k8singress/internal/control/engine"
	"github.com/k8singress/k8singress/internal/model/settings"
	"github.com/k8singress/k8singress/internal/tests/fixture"
)

// TestWebhookCertificate checks that the publisher learns which certificates to keep, also after a reload, and that the
// engine serves the certificate of the publisher.
func TestWebhookCertificate(t *testing.T) {
	p := newPublisher()
	e := engine.New(newSource(), p, zaptest.NewLogger(t))
	t.Cleanup(func() {
		_ = e.Destruct()
		<-e.Done()
	})
	for _, name := range []string{"edge", "other", ""} {
		o := options()
		if name != "" {
			o.AdmissionWebhook = &settings.AdmissionWebhook{Configuration: name}
		}
		e.Adopt(provisioned(t), o, nil)
		fixture.Eventually(t, "the name of the configuration", func() error {
			if kept := p.keeps.Load(); kept == nil || *kept != name {
				return fmt.Errorf("the certificates of %v are kept", kept)
			}
			return nil
		})
		if c, err := e.WebhookCertificate(nil); err != nil || string(c.OCSPStaple) != name {
			t.Errorf("the certificate is %v, error %v", c, err)
		}
	}
	if _, err := engine.New(newSource(), nil, zaptest.NewLogger(t)).WebhookCertificate(nil); err == nil {
		t.Error("there is a certificate without a cluster")
	}
}
