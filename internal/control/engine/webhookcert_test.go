package engine_test

import (
	"fmt"
	"testing"

	"go.uber.org/zap/zaptest"

	"github.com/k8singress/k8singress/internal/control/engine"
	"github.com/k8singress/k8singress/internal/model/settings"
	"github.com/k8singress/k8singress/internal/tests/fixture"
)

// TestKeepCertificates checks that the publisher learns which certificates to keep, also after a reload.
func TestKeepCertificates(t *testing.T) {
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
	}
}
