package engine_test

import (
	"slices"
	"testing"

	"go.uber.org/zap/zaptest"
	corev1 "k8s.io/api/core/v1"

	"github.com/k8singress/k8singress/internal/control/engine"
	"github.com/k8singress/k8singress/internal/model/report"
	"github.com/k8singress/k8singress/internal/model/settings"
)

func external(host string) *corev1.Service {
	return &corev1.Service{ObjectMeta: meta("web"),
		Spec: corev1.ServiceSpec{Type: corev1.ServiceTypeExternalName, ExternalName: host}}
}

// holds returns a function that reports whether the document has exactly these endpoints for the Service web.
func (e *running) holds(want ...string) func() bool {
	return func() bool {
		b := e.Document().Backends["a/web/80"]
		return b != nil && slices.Equal(b.Endpoints, want)
	}
}

// TestNamesAreNotSlices checks that EndpointSlices of a Service with an external name are ignored, both by the pipeline
// and when a change of endpoints is applied without the pipeline.
func TestNamesAreNotSlices(t *testing.T) {
	s := newSource(external("198.51.100.1"), ingress("web", "web.example"), addresses("127.0.0.9"))
	e := start(t, s)
	e.eventually("the address of the name", e.holds("198.51.100.1:80"))
	if name := e.Document().Backends["a/web/80"].ExternalName; name != "198.51.100.1:80" {
		t.Errorf("the document has the name %q", name)
	}
	next := e.Generation() + 1
	s.set(addresses("127.0.0.8"), ingress("two", "two.example"))
	e.await(next)
	if !e.holds("198.51.100.1:80")() {
		t.Errorf("a slice replaced the address: %q", e.Document().Backends["a/web/80"].Endpoints)
	}
	s.set(external("198.51.100.2"))
	e.eventually("the address of the other name", e.holds("198.51.100.2:80"))
	s.set(service())
	e.eventually("the addresses of the slices", e.holds("127.0.0.8:8080"))
	s.set(external("198.51.100.3"))
	e.eventually("the address of the third name", e.holds("198.51.100.3:80"))
}

func TestNamesByOption(t *testing.T) {
	s := newSource(external("127.0.0.1"), ingress("web", "web.example"))
	o := options()
	// Do not listen on port 80: endpoints on port 80 of this machine would be our own server.
	o.HTTP, o.ExternalNames = []string{":8080"}, settings.ExternalNamesAll
	e := adoptedBy(t, provisioned(t), engine.New(s, nil, zaptest.NewLogger(t)), o)
	close(s.synced)
	e.eventually("the address of this machine is allowed", e.holds("127.0.0.1:80"))
	for _, word := range []string{"", "oll"} {
		o.ExternalNames = word
		e.Adopt(provisioned(t), o, nil)
		e.eventually("the address is left out", e.holds())
		e.eventually("the verdict", func() bool {
			for _, v := range e.Report().Verdicts {
				for _, p := range v.Problems {
					if p.Reason == report.InvalidBackend {
						return true
					}
				}
			}
			return false
		})
		o.ExternalNames = settings.ExternalNamesAll
		e.Adopt(provisioned(t), o, nil)
		e.eventually("the address is allowed again", e.holds("127.0.0.1:80"))
	}
}
