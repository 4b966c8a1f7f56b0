package featuretests

import (
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"
)

// TestEjection checks that an endpoint that fails three times in a row is skipped, although it is listed, until a
// trial request succeeds. Clients see no errors.
func TestEjection(t *testing.T) {
	in, f := fleetOf(t, 3, nil)
	bad := f.ip(1)
	f.broken(bad)
	began := time.Now()
	in.count(30)
	// After the third failure, the endpoint gets no requests for a second. The test may take longer.
	if n := int(f.asked[bad].Load()); n < 3 || n > 3+trials(began) {
		t.Errorf("the endpoint was tried %d times", n)
	}
	f.up(bad)
	in.eventually("it is tried again", func() error {
		if in.ask("/") != bad {
			return errors.New("it is still passed over")
		}
		return nil
	})
	if counts := in.count(30); counts[bad] != 10 {
		t.Errorf("it is well again, and has %d of 30 requests", counts[bad])
	}
}

// trials returns how often an endpoint may have been retried since it failed: after 1, 2, 4 seconds and so on.
func trials(since time.Time) int {
	n := 0
	for spell, elapsed := time.Second, time.Since(since); elapsed >= spell; spell *= 2 {
		elapsed -= spell
		n++
	}
	return n
}

// TestEjectionOfHalf checks that at most half of the endpoints are ejected: if more fail, the others still get
// requests.
func TestEjectionOfHalf(t *testing.T) {
	in, f := fleetOf(t, 4, nil, "proxy-next-upstream-tries", "4")
	for i := range 3 {
		f.broken(f.ip(i))
	}
	began := time.Now()
	if counts := in.count(60); counts[f.ip(3)] != 60 {
		t.Errorf("the good endpoint has %d of 60 requests", counts[f.ip(3)])
	}
	out, still := 0, 0
	for i := range 3 {
		if n := int(f.asked[f.ip(i)].Load()); n <= 3+trials(began) {
			out++
		} else if n > 10 {
			still++
		}
	}
	if out != 2 || still != 1 {
		t.Errorf("%d are passed over and %d are asked", out, still)
	}
}

func TestEjectionIsTurnedOff(t *testing.T) {
	in, f := fleetOf(t, 3, nil, "k8singress.io/eject-after-failures", "off")
	f.broken(f.ip(0))
	in.count(30)
	if n := f.asked[f.ip(0)].Load(); n < 10 {
		t.Errorf("it was tried %d times", n)
	}
}

func TestEjectionAfterAnotherNumber(t *testing.T) {
	in, f := fleetOf(t, 3, nil, "k8singress.io/eject-after-failures", "1")
	f.broken(f.ip(0))
	began := time.Now()
	in.count(30)
	if n := int(f.asked[f.ip(0)].Load()); n < 1 || n > 1+trials(began) {
		t.Errorf("it was tried %d times", n)
	}
}

// TestHealthCheck checks that an endpoint that fails its health check gets no requests until the check succeeds.
func TestHealthCheck(t *testing.T) {
	var ill atomic.Bool
	ill.Store(true)
	wrong := make(chan string, 1)
	handler := func(ip string, w http.ResponseWriter, r *http.Request) {
		if !strings.HasPrefix(r.URL.Path, "/healthz") {
			return
		}
		if r.RequestURI != "/healthz?full=1" || r.Host != "probe.example" {
			select {
			case wrong <- r.Host + r.RequestURI:
			default:
			}
		}
		if ip == "127.0.3.2" && ill.Load() {
			w.WriteHeader(http.StatusInternalServerError)
		}
	}
	in, f := fleetOf(t, 3, handler, "k8singress.io/health-check-path", "/healthz?full=1",
		"k8singress.io/health-check-interval", "1",
		"k8singress.io/health-check-timeout", "1", "k8singress.io/health-check-unhealthy-after", "1",
		"k8singress.io/health-check-healthy-after", "1", "k8singress.io/health-check-host", "probe.example")
	in.eventually("it is found ill", func() error {
		if counts := in.count(9); counts[f.ip(1)] > 0 {
			return fmt.Errorf("it has requests: %v", counts)
		}
		return nil
	})
	if counts := in.count(30); counts[f.ip(1)] > 0 {
		t.Errorf("it is ill, and has %d of 30 requests", counts[f.ip(1)])
	}
	in.eventually("what is said of it", func() error {
		if found := in.reasons("Ingress/default/web"); !slices.Contains(found, "EndpointsUnhealthy") {
			return fmt.Errorf("nothing but %v", found)
		}
		return nil
	})
	if metrics := in.metrics(); !strings.Contains(metrics,
		`k8singress_unhealthy_endpoints{backend="default/web/80"} 1`) {
		t.Error("no metric counts it")
	}
	ill.Store(false)
	in.eventually("it is found well", func() error {
		if counts := in.count(9); counts[f.ip(1)] != 3 {
			return fmt.Errorf("requests go to %v", counts)
		}
		return nil
	})
	in.eventually("nothing is said of it any more", func() error {
		if found := in.reasons("Ingress/default/web"); len(found) > 0 {
			return fmt.Errorf("there is %v", found)
		}
		return nil
	})
	if len(wrong) > 0 {
		t.Errorf("a health check asks for %s", <-wrong)
	}
}

// metrics returns the response to GET /metrics of the admin API.
func (in *ingress) metrics() string {
	in.Helper()
	response, err := in.admins.Get("http://" + in.admin + "/metrics")
	if err != nil {
		in.Fatal(err)
	}
	return read(in, response).body
}

// TestSlowStart checks that a new endpoint gets few requests at first, and its full share in the end.
func TestSlowStart(t *testing.T) {
	f := newFleet(t, 3, nil)
	with := func(n int) string {
		return class + service("web", f.port, f.ips(0, n)...) + annotated("web", "shop.example", "web",
			"k8singress.io/slow-start", "2")
	}
	in := start(t, with(2))
	if counts := in.count(10); counts[f.ip(0)] != 5 {
		t.Errorf("the first endpoints start slowly: %v", counts)
	}
	in.write("manifests.yaml", with(3))
	began := time.Now()
	early := 0
	in.eventually("the new endpoint", func() error {
		if early = in.count(100)[f.ip(2)]; early == 0 {
			return errors.New("it has no requests")
		}
		return nil
	})
	if took := time.Since(began); early > 25 && took < time.Second {
		t.Errorf("after %s it has %d of 100 requests", took, early)
	}
	in.eventually("its share", func() error {
		if n := in.count(90)[f.ip(2)]; n != 30 {
			return fmt.Errorf("it has %d of 90 requests", n)
		}
		return nil
	})
	if took := time.Since(began); took < time.Second {
		t.Errorf("it has its share after %s", took)
	}
}
