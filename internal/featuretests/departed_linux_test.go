package featuretests

import (
	"fmt"
	"net/http"
	"slices"
	"testing"
	"time"

	"github.com/k8singress/k8singress/internal/fixture"
)

// TestTheLastPodGoes: a request that is on its way to a pod which has gone is told so at once, and does not wait for the
// connect timeout. Of several, another one gets it, whatever its method.
func TestTheLastPodGoes(t *testing.T) {
	ip, port := hostPort(t, fixture.Unreachable(t))
	one := oneWith("proxy-connect-timeout: 60", "proxy-next-upstream: off")
	in := start(t, class+service("one", port, ip)+one)
	in.byEachVersion(t, func(t *testing.T, in *ingress) {
		in.write("manifests.yaml", class+service("one", port, ip)+one)
		in.eventually("the pod is there", func() error { return in.hasEndpoints() })
		answers, began := make(chan answer, 1), time.Now()
		go func() { answers <- in.send(http.MethodPost, "/", nil) }()
		in.write("manifests.yaml", class+service("one", port)+one)
		if got := await(t, "an answer", answers); got.status != http.StatusServiceUnavailable {
			t.Errorf("got %d", got.status)
		}
		took(t, "to be told", began, 0)
	})
}

// TestConnectTimeoutOfFastCGI is 504 as for any other protocol.
func TestConnectTimeoutOfFastCGI(t *testing.T) {
	ip, port := hostPort(t, fixture.Unreachable(t))
	in := inFrontOf(t, ip, port, "backend-protocol: FCGI", "proxy-connect-timeout: 1", "proxy-next-upstream-tries: 1")
	if got := in.send(http.MethodGet, "/index.php", nil); got.status != http.StatusGatewayTimeout {
		t.Errorf("got %d", got.status)
	}
}

// hasEndpoints returns an error unless the Service of a.example has any.
func (in *ingress) hasEndpoints() error {
	in.Helper()
	if found := in.reasons("Ingress/default/a"); slices.Contains(found, "NoEndpoints") {
		return fmt.Errorf("there is %v", found)
	}
	return nil
}
