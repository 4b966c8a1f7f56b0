package featuretests

import (
	"fmt"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
)

// TestHealthCheckThresholds checks that an endpoint is skipped after the configured number of failed health checks, and
// used again after the configured number of successful ones. Each check waits for the test.
func TestHealthCheckThresholds(t *testing.T) {
	asked, statuses := make(chan struct{}), make(chan int)
	in, f := fleetOf(t, 2, func(ip string, w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/healthz" {
			return
		}
		status := http.StatusNoContent
		if ip == "127.0.3.1" {
			for to := asked; ; to = nil {
				select {
				case to <- struct{}{}:
					continue
				case status = <-statuses:
				case <-r.Context().Done():
				}
				break
			}
		}
		w.WriteHeader(status)
	}, "k8singress.io/health-check-path", "/healthz", "k8singress.io/health-check-interval", "1",
		"k8singress.io/health-check-timeout", "3600",
		"k8singress.io/health-check-unhealthy-after", "2", "k8singress.io/health-check-healthy-after", "3",
		"k8singress.io/health-check-status", "204")
	await(t, "the first check", asked)
	for i, step := range []struct {
		status int
		serves bool
	}{
		{200, true}, {200, false}, {204, false}, {204, false}, {204, true},
	} {
		statuses <- step.status
		// When the next check arrives, this one has been evaluated.
		await(t, "the next check", asked)
		if serves := in.count(10)[f.ip(0)] > 0; serves != step.serves {
			t.Errorf("after check %d the endpoint gets requests: %t", i+1, serves)
		}
	}
	in.stop()
}

// TestHealthCheckTimes checks that health checks with an interval or timeout of a second are repeated, while those
// with an hour wait.
func TestHealthCheckTimes(t *testing.T) {
	const often = 4
	var manifests strings.Builder
	counts, enough := map[string]*atomic.Int32{}, make(chan struct{}, 100)
	for name, times := range map[string][2]string{
		"often": {"1", "3600"}, "seldom": {"3600", "3600"}, "impatient": {"1", "1"}, "patient": {"1", "3600"},
	} {
		count := new(atomic.Int32)
		counts[name] = count
		ip, port := endpointOf(t, func(_ http.ResponseWriter, r *http.Request) {
			if count.Add(1) == often {
				enough <- struct{}{}
			}
			if strings.HasSuffix(name, "patient") {
				<-r.Context().Done()
			}
		})
		manifests.WriteString(service(name, port, ip) + annotated(name, name+".example", name,
			"k8singress.io/health-check-path", "/healthz",
			"k8singress.io/health-check-interval", times[0], "k8singress.io/health-check-timeout", times[1]))
	}
	in := start(t, class+manifests.String())
	for range 2 {
		await(t, fmt.Sprint(often, " checks"), enough)
	}
	for name, want := range map[string]int32{"seldom": 1, "patient": 1} {
		if n := counts[name].Load(); n != want {
			t.Errorf("%s: %d checks, want %d", name, n, want)
		}
	}
	in.awaitReasons("Ingress/default/patient")
}
