package e2e

import (
	"fmt"
	"net/http"
)

var loadBalancing = []sentence{
	{"requests are spread over all endpoints of a Service, and follow its scaling", spread},
	{"a Service without endpoints answers 503", withoutEndpoints},
}

// spread checks load balancing while the Deployment many is scaled. No other sentence uses this Deployment.
func spread(f *conformance) {
	host := f.host("many")
	f.rules("many", []route{{host, prefix, "/", "many"}})
	f.answers(answer{host, "/", "many"})
	for _, replicas := range []int{3, 5, 2} {
		f.scale("many", int32(replicas))
		f.awaitPods(f.caddy, host, replicas)
		f.checkSpread(host, replicas)
	}
}

// checkSpread checks that each pod gets its share of the requests, with a tolerance of a quarter.
func (f *conformance) checkSpread(host string, pods int) {
	f.Helper()
	const part = 100
	transport := newTransport(f.caddy.HTTP)
	defer transport.CloseIdleConnections()
	counts := map[string]int{}
	for range part * pods {
		r, err := ask(f.Context(), transport, "http://"+host+"/")
		f.must(err)
		if r.code != http.StatusOK {
			f.Fatalf("answered %d", r.code)
		}
		counts[r.pod]++
	}
	for pod, count := range counts {
		if count < part*3/4 || count > part*5/4 {
			f.Errorf("pod %s got %d requests, of %d for %d pods: %v", pod, count, part*pods, pods, counts)
		}
	}
	if len(counts) != pods {
		f.Errorf("%d pods answered, not %d: %v", len(counts), pods, counts)
	}
}

func withoutEndpoints(f *conformance) {
	f.service("empty", "nobody-has-this-label")
	host := f.host("empty")
	f.rules("empty", []route{{host, prefix, "/", "empty"}})
	f.await("503 without endpoints", func() error {
		r, err := once(f.Context(), f.caddy.HTTP, "http://"+host+"/")
		if err == nil && r.code != http.StatusServiceUnavailable {
			return fmt.Errorf("answered %d", r.code)
		}
		return err
	})
	f.awaitReason(f.caddy, "empty", "NoEndpoints")
}
