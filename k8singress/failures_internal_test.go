package k8singress

import (
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"

	"github.com/k8singress/k8singress/internal/http/exchange"
	"github.com/k8singress/k8singress/internal/http/message"
	"github.com/k8singress/k8singress/internal/model/ir"
)

// TestTenant23Log checks that any number of failed requests of one Ingress cause one log line per second, with the
// number of failures left out, and that failures of other Ingresses are logged separately.
func TestTenant23Log(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		core, lines := observer.New(zap.ErrorLevel)
		log, f := zap.New(core), failureLog{leftOut: map[failureKey]int{}}
		fail := func(origin string, status int) {
			x := &exchange.Exchange{
				Request: &message.Request{Host: "a.example", Target: "/" + strings.Repeat("x", 1<<15)},
				Route:   &exchange.Route{Origin: origin}, Global: &ir.Global{},
			}
			f.log(log, zap.ErrorLevel, x, "a request failed", exchange.Fail(status, errors.New("no")))
		}
		for range 3 {
			for range 1000 {
				fail("Ingress/b/noisy", http.StatusBadGateway)
			}
			fail("Ingress/b/noisy", http.StatusGatewayTimeout)
			fail("Ingress/a/quiet", http.StatusBadGateway)
			time.Sleep(2 * failurePeriod) //nolint:forbidigo // In a synctest bubble this takes no time.
			synctest.Wait()
		}
		seen := map[string]int{}
		for _, line := range lines.TakeAll() {
			all := line.ContextMap()
			seen[fmt.Sprint(line.Message, " ", all["ingress"], " ", all["status"], " ", all["left_out"])]++
			if uri, ok := all["uri"].(string); ok && len(uri) > 2*maxLogged {
				t.Errorf("a line has a URI of %d bytes", len(uri))
			}
		}
		for _, want := range []string{
			"a request failed Ingress/b/noisy 502 <nil>", "a request failed Ingress/b/noisy 504 <nil>",
			"a request failed Ingress/a/quiet 502 <nil>",
			"failures left out of the log: a request failed Ingress/b/noisy 502 999",
		} {
			if seen[want] != 3 {
				t.Errorf("%q stands there %d times", want, seen[want])
			}
		}
		if len(seen) != 4 || len(f.leftOut) != 0 {
			t.Errorf("the log has %v, and %v is left", seen, f.leftOut)
		}
	})
}
