package featuretests

import (
	"bytes"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
)

// routeCounts returns the numbers of requests by "INGRESS CLASS". Zeros are left out.
func (in *ingress) routeCounts() map[string]int {
	in.Helper()
	counts := map[string]int{}
	for line := range strings.Lines(in.metrics()) {
		rest, ok := strings.CutPrefix(strings.TrimSpace(line), "k8singress_route_requests_total{")
		if !ok {
			continue
		}
		labels, value, _ := strings.Cut(rest, "} ")
		n, err := strconv.ParseFloat(value, 64)
		if err != nil {
			in.Fatal(err)
		}
		of := map[string]string{}
		for _, label := range metricLabel.FindAllStringSubmatch(labels, -1) {
			of[label[1]] = label[2]
		}
		if n > 0 {
			counts[of["ingress"]+" "+of["class"]] += int(n)
		}
	}
	return counts
}

// awaitCounts waits for the numbers of requests.
func (in *ingress) awaitCounts(want map[string]int) {
	in.Helper()
	in.eventually("the counts of the routes", func() error {
		if got := in.routeCounts(); !maps.Equal(got, want) {
			return fmt.Errorf("they are %v, want %v", got, want)
		}
		return nil
	})
}

// TestRouteSeries sends requests that end in every way: by an endpoint, a redirect, a guard, an error page, a handler
// chain of Caddy, without endpoints and without a route. The counters of the routes, the lines of the access log and
// the responses that the client got must be the same. It also checks the gauges about problems.
func TestRouteSeries(t *testing.T) {
	ip, port := erring(t)
	_, next := backend(t, "next")
	path := filepath.Join(t.TempDir(), "access.log")
	objects := class + service("app", port, ip) + service("next", next, "127.0.0.1") + service("none", "9") +
		rule("plain", "plain.example", "Prefix", "/", "app") +
		annotated("moved", "moved.example", "app", "permanent-redirect", "https://other.example") +
		annotated("secure", "secure.example", "app", "force-ssl-redirect", "true") +
		annotated("denied", "denied.example", "app", "denylist-source-range", "127.0.0.0/8") +
		annotated("page", "page.example", "app", "custom-http-errors", "404", "default-backend", "next") +
		annotated("chained", "chained.example", "app", "k8singress.io/chains", "hello") +
		rule("empty", "empty.example", "Prefix", "/", "none") +
		rule("main", "shop.example", "Prefix", "/", "app") +
		annotated("canary", "shop.example", "next", "canary", "true", "canary-by-header", "X-Canary")
	in := start(t, objects+global("access-log-path: "+path, "log-format-upstream: $host $status"),
		"configmap default/global", accessLogOn, "chain hello {\nrespond hello 201\n}")
	wanted, logged := map[string]int{}, 0
	before := in.processCount()
	total := 0
	in.byEachVersion(t, func(t *testing.T, in *ingress) {
		for _, r := range []struct {
			ingress, host, path string
			headers             []string
		}{
			{"plain", "plain.example", "/", nil}, {"plain", "plain.example", "/404", nil},
			{"plain", "plain.example", "/500", nil}, {"moved", "moved.example", "/", nil},
			{"secure", "secure.example", "/", nil}, {"denied", "denied.example", "/", nil},
			{"page", "page.example", "/404", nil}, {"chained", "chained.example", "/", nil},
			{"empty", "empty.example", "/", nil}, {"main", "shop.example", "/", nil},
			{"canary", "shop.example", "/", []string{"X-Canary: always"}}, {"", "nobody.example", "/", nil},
		} {
			client := *in.client
			client.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
			for range 3 {
				got := in.sendBy(&client, in.origin(r.host)+r.path, http.MethodGet, nil, r.headers...)
				total++
				if r.ingress != "" {
					wanted[fmt.Sprintf("%s %dxx", r.ingress, got.status/100)]++
					logged++
				}
			}
		}
		in.awaitCounts(wanted)
		in.eventually("the lines of the log", func() error {
			text, err := os.ReadFile(path)
			if n := bytes.Count(text, []byte{'\n'}); err == nil && n != logged {
				err = fmt.Errorf("there are %d, want %d", n, logged)
			}
			return err
		})
		if n := in.processCount() - before; n != total {
			t.Errorf("the process has counted %d requests, want %d", n, total)
		}
	})
	for _, key := range []string{"plain 5xx", "moved 3xx", "denied 4xx", "chained 2xx", "empty 5xx", "canary 2xx"} {
		if wanted[key] == 0 {
			t.Errorf("the client got no response for %s", key)
		}
	}
	for name, want := range map[string]float64{
		`k8singress_ingresses_without_endpoints{namespace="default"}`:              1,
		`k8singress_verdicts{kind="Ingress",reason="NoEndpoints",severity="info"}`: 1,
	} {
		if got := in.metric(name); got != want {
			t.Errorf("%s is %v, want %v", name, got, want)
		}
	}
	if in.metric("k8singress_last_apply_timestamp_seconds") == 0 ||
		!strings.Contains(in.metrics(), `k8singress_watch_age_seconds{kind="manifests"}`) {
		t.Error("the time of the last apply or the age of the watch is missing")
	}
}

// processCount returns the number of requests to the process.
func (in *ingress) processCount() (n int) {
	in.Helper()
	for line := range strings.Lines(in.metrics()) {
		if strings.HasPrefix(line, "k8singress_http_requests_total{") {
			_, value, _ := strings.Cut(strings.TrimSpace(line), "} ")
			one, err := strconv.Atoi(value)
			if err != nil {
				in.Fatal(err)
			}
			n += one
		}
	}
	return n
}

// labelsOfA are the labels of the only route in a test.
const labelsOfA = `host="a.example",ingress="a",namespace="default",path="/",service="one"`

// TestRouteBytesAndFlight checks the counters of bodies, and the gauge of requests in progress, with an upload and an
// upgraded connection.
func TestRouteBytesAndFlight(t *testing.T) {
	ends := make(chan string, 10)
	ip, port := endpointOf(t, sockets(t, ends))
	in := start(t, class+service("one", port, ip)+rule("a", "a.example", "Prefix", "/", "one"))
	becomes := func(name string, want float64) {
		t.Helper()
		in.eventually(name, func() error {
			if got := in.metric(name); got != want {
				return fmt.Errorf("it is %v, want %v", got, want)
			}
			return nil
		})
	}
	answered := in.sendBy(in.client, in.origin("a.example"), http.MethodPost, strings.NewReader("12345"))
	becomes(`k8singress_route_bytes_total{direction="in",`+labelsOfA+"}", 5)
	becomes(`k8singress_route_bytes_total{direction="out",`+labelsOfA+"}", float64(len(answered.body)))
	d := in.connect()
	d.say("%s", get("/", upgrade...))
	if got := d.head(http.MethodGet); got.StatusCode != http.StatusSwitchingProtocols {
		t.Fatalf("the upgrade gets %s", got.Status)
	}
	d.echoed()
	becomes("k8singress_route_in_flight{"+labelsOfA+"}", 1)
	if err := d.Close(); err != nil {
		t.Fatal(err)
	}
	becomes("k8singress_route_in_flight{"+labelsOfA+"}", 0)
	becomes(`k8singress_route_requests_total{class="1xx",`+labelsOfA+"}", 1)
	becomes(`k8singress_route_bytes_total{direction="in",`+labelsOfA+"}", float64(5+len("hello\n")))
	becomes(`k8singress_route_bytes_total{direction="out",`+labelsOfA+"}",
		float64(len(answered.body)+len("hello\n")))
}

// TestRouteRetries checks that each failed attempt counts as a retry, and that the ejected endpoint is in a gauge.
func TestRouteRetries(t *testing.T) {
	in, f := fleetOf(t, 3, nil)
	bad := f.ip(1)
	f.broken(bad)
	in.count(30)
	const labels = `host="shop.example",ingress="web",namespace="default",path="/",service="web"`
	in.eventually("the retries", func() error {
		want := float64(f.asked[bad].Load())
		if got := in.metric("k8singress_route_retries_total{" + labels + "}"); got != want {
			return fmt.Errorf("there are %v, want %v", got, want)
		}
		return nil
	})
	if n := in.metric(`k8singress_ejected_endpoints{backend="default/web/80"}`); n != 1 {
		t.Errorf("%v endpoints are ejected, want 1", n)
	}
	in.awaitCounts(map[string]int{"web 2xx": 30})
}

// TestRouteSeriesFollowRoutes checks that counters go on when the settings of their route change, and that they end
// with it.
func TestRouteSeriesFollowRoutes(t *testing.T) {
	ip, port := backend(t, "one")
	objects := class + service("one", port, ip)
	in := start(t, objects+rule("a", "a.example", "Prefix", "/", "one"))
	in.expect("a.example", "/", http.StatusOK, "one /")
	in.awaitCounts(map[string]int{"a 2xx": 1})
	in.write("manifests.yaml", objects+annotated("a", "a.example", "one", "upstream-vhost", "other.example",
		"custom-http-errors", "503"))
	in.write("manifests.yaml", objects+annotated("a", "a.example", "one", "permanent-redirect", "http://b.example"))
	in.eventually("the redirect", func() error {
		client := *in.client
		client.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
		if got := in.sendBy(&client, in.origin("a.example"), http.MethodHead, nil); got.status/100 != 3 {
			return fmt.Errorf("the status is %d", got.status)
		}
		return nil
	})
	if counts := in.routeCounts(); counts["a 2xx"] < 1 || counts["a 3xx"] != 1 {
		t.Errorf("after changes of settings the counts are %v", counts)
	}
	in.write("manifests.yaml", objects)
	in.eventually("no series", func() error {
		if strings.Contains(in.metrics(), "k8singress_route_") {
			return errors.New("there are series of the route")
		}
		return nil
	})
}

// TestRouteMetricsOff checks the option disable_route_metrics.
func TestRouteMetricsOff(t *testing.T) {
	ip, port := backend(t, "one")
	in := start(t, class+service("one", port, ip)+rule("a", "a.example", "Prefix", "/", "one"),
		"disable_route_metrics")
	in.expect("a.example", "/", http.StatusOK, "one /")
	if strings.Contains(in.metrics(), "k8singress_route_") {
		t.Error("there are series of the route")
	}
}

// TestRouteLabelsAreEscaped checks that names which users choose cannot add lines or labels to the metrics.
func TestRouteLabelsAreEscaped(t *testing.T) {
	ip, port := backend(t, "one")
	long := strings.Repeat("n", 253)
	host := strings.Repeat(strings.Repeat("h", 62)+".", 3) + strings.Repeat("h", 63)
	in := start(t, class+service("one", port, ip)+
		annotate(rule(long, host, "ImplementationSpecific", `/<b>a{1}\d?`, "one"), "use-regex", "true"))
	in.expect(host, "/<b>a", http.StatusOK, "")
	want := fmt.Sprintf(`host=%q,ingress=%q,namespace="default",path="/<b>a{1}\\d?",service="one"} 1`, host, long)
	in.eventually("the series", func() error {
		if text := in.metrics(); !strings.Contains(text, want) {
			return fmt.Errorf("the metrics lack %s", want)
		}
		return nil
	})
}
