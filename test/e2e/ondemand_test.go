package e2e

import (
	"context"
	"crypto/tls"
	"fmt"
	"net/http"
	"net/http/httptest"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/k8singress/k8singress/test/harness"
)

// TestOneOrderForEachNameOnDemand checks that many first handshakes at once, spread over three replicas, lead to one
// order for each name. There are more names than orders that certmagic starts at once, so the last names have to wait.
func TestOneOrderForEachNameOnDemand(t *testing.T) {
	const names, handshakes = 12, 60
	var asked atomic.Int64
	permission := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { asked.Add(1) }))
	t.Cleanup(permission.Close)
	r := newReplicasWith(t, 3, "\ton_demand_tls {\n\t\task "+permission.URL+"\n\t}\n")
	r.leader()
	r.ingress("shops", "web", func(i *networkingv1.Ingress) {
		i.Spec.Rules[0].Host = r.host("*")
		metav1.SetMetaDataAnnotation(&i.ObjectMeta, "k8singress.io/on-demand-tls", "true")
	})
	for _, caddy := range r.all {
		r.await("the Ingress on "+caddy.Name, func() error {
			response, err := once(t.Context(), caddy.HTTP, "http://"+r.host("any")+"/")
			if err == nil && response.code == http.StatusNotFound {
				return fmt.Errorf("answered %d", response.code)
			}
			return err
		})
	}
	// An order that fails on a busy machine is repeated after a minute.
	ctx, cancel := context.WithTimeout(t.Context(), names*orderTime+4*deadline)
	defer cancel()
	begin := time.Now()
	var all sync.WaitGroup
	var hosts []string
	var first atomic.Int64
	for n := range handshakes {
		if n < names {
			hosts = append(hosts, r.host(fmt.Sprintf("n%d", n)))
		}
		host, caddy := hosts[n%names], r.all[n/names%len(r.all)]
		all.Go(func() {
			attempts, err := r.shakes(ctx, caddy, host)
			if err != nil {
				t.Errorf("%s, %s: %v", caddy.Name, host, err)
			}
			if attempts == 1 {
				first.Add(1)
			}
		})
	}
	all.Wait()
	t.Logf("certificates after %v, %d of %d handshakes had one at the first attempt, %d questions",
		time.Since(begin).Round(time.Millisecond), first.Load(), handshakes, asked.Load())
	r.checkOrders(hosts, 0)
	if got := r.orders(); len(got) != names {
		t.Errorf("the authority took the orders %v", got)
	}
	if got, want := asked.Load(), int64(names*len(r.all)); got > want {
		t.Errorf("there were %d questions, want one for each name and replica, at most %d", got, want)
	}
}

// shakes repeats the handshake for a host until the replica has a certificate of the authority, or ctx ends. It returns
// the number of attempts.
func (r *replicas) shakes(ctx context.Context, caddy *harness.Caddy, host string) (int, error) {
	dialer := tls.Dialer{Config: &tls.Config{ServerName: host, RootCAs: r.roots}}
	tick := time.NewTicker(100 * time.Millisecond)
	defer tick.Stop()
	for attempts := 1; ; attempts++ {
		conn, err := dialer.DialContext(ctx, "tcp", caddy.HTTPS)
		if err == nil {
			return attempts, conn.Close()
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return attempts, fmt.Errorf("after %d attempts: %w", attempts, err)
		}
	}
}
