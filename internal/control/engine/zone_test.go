package engine_test

import (
	"slices"
	"testing"

	discoveryv1 "k8s.io/api/discovery/v1"
)

// zoned returns an EndpointSlice of the Service web with the first endpoint in zone a, the second in zone b, and so on.
func zoned(all ...string) *discoveryv1.EndpointSlice {
	slice := addresses(all...)
	for i := range slice.Endpoints {
		slice.Endpoints[i].Hints = &discoveryv1.EndpointHints{ForZones: []discoveryv1.ForZone{{Name: string(rune('a' +
			i))}}}
	}
	return slice
}

// TestZone checks that requests go to endpoints in the configured zone, which may come from the environment and may
// change. The zone applies when the pipeline runs, and when only endpoints change.
func TestZone(t *testing.T) {
	t.Setenv("ZONE", "b")
	s := newSource(service(), zoned("10.0.0.1", "10.0.0.2"), ingress("web", "web.example"))
	e := start(t, s)
	served := func(want ...string) {
		t.Helper()
		e.eventually("the endpoints of the zone are served", func() bool {
			b := e.Document().Backends["a/web/80"]
			return b != nil && slices.Equal(b.Endpoints, want)
		})
	}
	served("10.0.0.1:8080", "10.0.0.2:8080")

	o := options()
	o.Zone = "{env.ZONE}"
	e.Adopt(provisioned(t), o, nil)
	served("10.0.0.2:8080")
	s.set(zoned("10.0.0.3", "10.0.0.4"))
	served("10.0.0.4:8080")

	o.Zone = "a"
	e.Adopt(provisioned(t), o, nil)
	served("10.0.0.3:8080")
	o.Zone = ""
	e.Adopt(provisioned(t), o, nil)
	served("10.0.0.3:8080", "10.0.0.4:8080")
}
