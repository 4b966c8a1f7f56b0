package featuretests

import (
	"fmt"
	"net/http"
	"slices"
	"testing"
	"time"

	"github.com/k8singress/k8singress/internal/tests/fixture"
)

// TestTheLastPodGoes checks that a request to a pod that has just disappeared fails at once, and does not wait for the
// connect timeout. If there are other pods, one of them gets the request, whatever its method.
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

// TestConnectTimeoutOfFastCGI checks that a connect timeout results in 504, as for the other protocols.
func TestConnectTimeoutOfFastCGI(t *testing.T) {
	ip, port := hostPort(t, fixture.Unreachable(t))
	in := inFrontOf(t, ip, port, "backend-protocol: FCGI", "proxy-connect-timeout: 1", "proxy-next-upstream-tries: 1")
	if got := in.send(http.MethodGet, "/index.php", nil); got.status != http.StatusGatewayTimeout {
		t.Errorf("got %d", got.status)
	}
}

// hasEndpoints returns an error if the Service of a.example has no endpoints.
func (in *ingress) hasEndpoints() error {
	in.Helper()
	if found := in.reasons("Ingress/default/a"); slices.Contains(found, "NoEndpoints") {
		return fmt.Errorf("there is %v", found)
	}
	return nil
}
