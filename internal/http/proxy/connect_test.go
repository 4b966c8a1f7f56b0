package proxy_test

import (
	"net/http"
	"testing"

	"github.com/k8singress/k8singress/internal/http/meter"
	"github.com/k8singress/k8singress/internal/model/ir"
	"github.com/k8singress/k8singress/internal/tests/exchangetest"
)

// TestConnectIsMeasured checks that the time to connect is negative if the last attempt got no connection, with each
// of the two clients for endpoints.
func TestConnectIsMeasured(t *testing.T) {
	well, broken := serve(t, respondWith(fine)), refusing(t)
	for _, protocol := range []ir.BackendProtocol{ir.HTTP, ir.GRPC} {
		for to, fails := range map[*endpoint]bool{well: false, broken: true} {
			x, _ := exchangetest.New(t, http.MethodGet+" http://shop.example/")
			x.Backend = of(to)
			err := pool(t).Forward(x, settingsOf(ir.Proxy{Forwarding: ir.Forwarding{Protocol: protocol}}), nil)
			x.Conclude(err)
			if d := x.Describe(&meter.Answer{}); !d.HasAttempt || (d.Connect < 0) != fails {
				t.Errorf("protocol %v, failure %t: %+v, error %v", protocol, fails, d, err)
			}
		}
	}
}
