package meter

import (
	"flag"
	"fmt"
	"io"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/common/expfmt"

	"github.com/k8singress/k8singress/internal/process/exposition"
	"github.com/k8singress/k8singress/internal/tests/fixture"
)

var updateNginx = flag.Bool("update-nginx", false, "rewrite the expected metrics with the names of ingress-nginx")

func nginxOptions() NginxOptions {
	return NginxOptions{Times: []float64{0.01, 1}, Lengths: []float64{100}, Sizes: []float64{10, 1000}, MaxSets: 5000}
}

// request is a request of 0.5 s with one attempt.
func request(method string, status int) *Details {
	return &Details{
		Method: method, Status: status, Took: 500 * time.Millisecond, HasAttempt: true, Connect: 2 * time.Millisecond,
		Header: 100 * time.Millisecond, Response: 400 * time.Millisecond, Received: 80, Sent: 2000,
	}
}

// nginxText returns the metrics of the registry.
func nginxText(t testing.TB, r *Registry) string {
	t.Helper()
	var b strings.Builder
	w := exposition.New(&b, expfmt.NewFormat(expfmt.TypeTextPlain))
	r.Nginx().Write(w, "nginx_ingress_controller_", []exposition.Label{{Name: "controller_pod", Value: "pod"}})
	if err := w.Flush(); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// counted returns the lines of the counter of requests, without its name.
func counted(t testing.TB, r *Registry) (lines []string) {
	t.Helper()
	for line := range strings.Lines(nginxText(t, r)) {
		if rest, ok := strings.CutPrefix(line, "nginx_ingress_controller_requests{controller_pod=\"pod\","); ok {
			lines = append(lines, strings.TrimSpace(rest))
		}
	}
	return lines
}

func newRegistry(o NginxOptions) *Registry {
	r := new(Registry)
	r.SetNginx(&o)
	return r
}

// TestNginxText checks the metrics of requests with different methods and statuses, and of a canary, which has the
// labels of the Ingress beside which it stands.
func TestNginxText(t *testing.T) {
	r := newRegistry(nginxOptions())
	main := r.Acquire(Labels{Namespace: "shop", Ingress: "web", Service: "web", Host: "shop.example", Path: "/"})
	canary := r.Acquire(Labels{Namespace: "shop", Ingress: "web-canary", Service: "new", Host: "shop.example",
		Path: "/", Canary: "shop/new/80", MainIngress: "web", MainService: "web"})
	n := r.Nginx()
	n.Record(main, request("GET", 200))
	n.Record(main, request("GET", 200))
	n.Record(main, request("PROPFIND", 404))
	n.Record(main, &Details{Method: "POST", Took: time.Minute, Received: 100, Sent: 0})
	n.Record(canary, request("GET", 502))
	n.Record(nil, request("GET", 404))
	fixture.Generated(t, "testdata/nginx.txt", nginxText(t, r), *updateNginx)
}

// TestNginxOptions checks each option.
func TestNginxOptions(t *testing.T) {
	labels := Labels{Namespace: "a", Ingress: "b", Service: "c", Host: "d.example", Path: "/"}
	of := func(change func(*NginxOptions)) []string {
		o := nginxOptions()
		change(&o)
		r := newRegistry(o)
		route := r.Acquire(labels)
		r.Nginx().Record(route, request("GET", 204))
		r.Nginx().Record(nil, request("GET", 404))
		return counted(t, r)
	}
	const common = `canary="",ingress="b",method="GET",namespace="a",path="/",service="c",`
	const unrouted = `canary="",ingress="",method="GET",namespace="",path="",service="",`
	for name, c := range map[string]struct {
		change func(*NginxOptions)
		want   []string
	}{
		"defaults": {func(*NginxOptions) {}, []string{common + `status="204",host="d.example"} 1`}},
		"classes": {func(o *NginxOptions) { o.StatusClasses = true },
			[]string{common + `status="2xx",host="d.example"} 1`}},
		"undefined hosts": {func(o *NginxOptions) { o.UndefinedHosts = true },
			[]string{unrouted + `status="404",host="_"} 1`, common + `status="204",host="d.example"} 1`}},
		"without host": {func(o *NginxOptions) { o.WithoutHost = true },
			[]string{unrouted + `status="404"} 1`, common + `status="204"} 1`}},
		"excluded": {func(o *NginxOptions) { o.Excluded[Requests] = true }, nil},
	} {
		if got := of(c.change); !slices.Equal(got, c.want) {
			t.Errorf("%s: the counters are %q, want %q", name, got, c.want)
		}
	}
	o := nginxOptions()
	for i := range o.Excluded {
		o.Excluded[i] = true
	}
	r := newRegistry(o)
	r.Nginx().Record(r.Acquire(labels), request("GET", 204))
	if got := nginxText(t, r); got != "" {
		t.Errorf("all metrics are excluded, and there is %q", got)
	}
	before := r.Nginx()
	if r.SetNginx(&o); r.Nginx() != before {
		t.Error("the same options restart the counters")
	}
	if r.SetNginx(nil); r.Nginx() != nil {
		t.Error("the counters are on without options")
	}
}

// TestMaximumOfLabelSets checks that label sets above the maximum lose their path and method, and above twice the
// maximum everything except the status, and that no request is lost.
func TestMaximumOfLabelSets(t *testing.T) {
	const maximum, requests = 10, 40
	o := nginxOptions()
	o.MaxSets = maximum
	r := newRegistry(o)
	for i := range requests {
		ingress := fmt.Sprintf("web-%02d", i)
		route := r.Acquire(Labels{Namespace: "a", Ingress: ingress, Service: "web", Host: "a.example", Path: "/x"})
		r.Nginx().Record(route, request("GET", 200))
	}
	lines := counted(t, r)
	limited, all, sum := 0, 0, 0
	for _, line := range lines {
		_, text, _ := strings.Cut(line, "} ")
		var n int
		if _, err := fmt.Sscan(text, &n); err != nil {
			t.Fatal(err)
		}
		sum += n
		if strings.Contains(line, `path="_other"`) != strings.Contains(line, `method="_other"`) {
			t.Errorf("%s has only one of path and method", line)
		}
		switch {
		case strings.Contains(line, `ingress="_other"`):
			all += n
		case strings.Contains(line, `path="_other"`):
			limited += n
		}
	}
	if len(lines) != 2*maximum+1 || limited != maximum || all != requests-2*maximum || sum != requests {
		t.Errorf("%d label sets have %d requests, %d and %d of them limited", len(lines), sum, limited, all)
	}
	if got := r.Nginx().limited.Load(); got != requests-maximum {
		t.Errorf("%d requests are counted as limited, want %d", got, requests-maximum)
	}
}

// TestLabelSetsOfNamespaces checks that the label sets of one namespace, however many its endpoints cause with
// different statuses, leave label sets to other namespaces.
func TestLabelSetsOfNamespaces(t *testing.T) {
	for _, maximum := range []int{8, 9, 15, 16, 100, 500} {
		o := nginxOptions()
		o.MaxSets = maximum
		r := newRegistry(o)
		n := r.Nginx()
		greedy := r.Acquire(Labels{Namespace: "greedy", Ingress: "web", Service: "web", Host: "a.example", Path: "/"})
		for _, method := range methodNames {
			for status := 100; status < 600; status++ {
				n.Record(greedy, request(method, status))
			}
		}
		if n.full.used != maximum {
			t.Errorf("one namespace has %d label sets, want %d", n.full.used, maximum)
		}
		for i := range 3 {
			n.Record(r.Acquire(Labels{Namespace: fmt.Sprint("other-", i), Ingress: "web", Service: "web",
				Host: "b.example", Path: "/x"}), request("GET", 200))
		}
		got := 0
		for _, line := range counted(t, r) {
			if strings.Contains(line, `method="GET",namespace="other-`) {
				got++
			}
		}
		if want := min(3, maximum/reserve); got != want {
			t.Errorf("with a maximum of %d, %d of 3 other namespaces have their own label sets, want %d", maximum, got,
				want)
		}
	}
}

// TestLabelSetsEnd checks that label sets end with their route, and that a request in progress does not bring them
// back.
func TestLabelSetsEnd(t *testing.T) {
	o := nginxOptions()
	o.WithoutHost, o.MaxSets = true, 3
	r := newRegistry(o)
	n := r.Nginx()
	for range 3 {
		var routes []*Route
		for _, host := range []string{"a", "b", "c"} {
			for _, path := range []string{"/", "/x"} {
				route := r.Acquire(Labels{Namespace: "a", Ingress: "b", Service: "c", Host: host, Path: path})
				routes = append(routes, route)
				n.Record(route, request("GET", 200))
				n.Record(route, request("PUT", 200))
			}
		}
		// Routes of different hosts share label sets without the label host.
		r.Release(routes[0])
		if got := counted(t, r); len(got) != 4 {
			t.Errorf("the counters are %q, want 3 with a path and 1 without", got)
		}
		for _, route := range routes[1:] {
			r.Release(route)
			n.Record(route, request("DELETE", 500))
		}
		if got := nginxText(t, r); got != "" || n.latencies.Len() != 0 || n.full.used != 0 || n.merged.used != 0 {
			t.Errorf("all routes have ended, and there is %q; %d, %d, %d", got, n.latencies.Len(), n.full.used,
				n.merged.used)
		}
	}
}

// TestLabelSetsAfterNewOptions checks that a request that still uses the counters from before a change of the options
// does not keep the new label sets of its route alive.
func TestLabelSetsAfterNewOptions(t *testing.T) {
	r := newRegistry(nginxOptions())
	route, before, o := r.Acquire(Labels{Host: "a"}), r.Nginx(), nginxOptions()
	o.StatusClasses = true
	r.SetNginx(&o)
	r.Nginx().Record(route, request("GET", 200))
	before.Record(route, request("GET", 200))
	r.Release(route)
	if got := counted(t, r); len(got) > 0 {
		t.Errorf("the route has ended, and there is %q", got)
	}
}

// TestNativeHistograms checks that only the protobuf format has native histograms, beside the classic buckets.
func TestNativeHistograms(t *testing.T) {
	o := nginxOptions()
	o.Factor, o.MaxBuckets = 1.1, 100
	r := newRegistry(o)
	r.Nginx().Record(r.Acquire(Labels{Host: "a"}), request("GET", 200))
	var b strings.Builder
	w := exposition.New(&b, expfmt.NewFormat(expfmt.TypeProtoText))
	r.Nginx().Write(w, "", nil)
	if err := w.Flush(); err != nil {
		t.Fatal(err)
	}
	if got := b.String(); !strings.Contains(got, "positive_span") || !strings.Contains(got, "upper_bound") {
		t.Errorf("the message lacks one of the forms: %s", got)
	}
	if got := nginxText(t, r); !strings.Contains(got, `request_duration_seconds_bucket{controller_pod="pod",`) {
		t.Errorf("the text is %s", got)
	}
}

// TestConcurrentRequests checks that no request is lost while routes come and go.
func TestConcurrentRequests(t *testing.T) {
	r := newRegistry(nginxOptions())
	stable := r.Acquire(Labels{Host: "stable"})
	const goroutines, each = 4, 2000
	var running sync.WaitGroup
	for i := range goroutines {
		running.Add(1)
		go func() {
			defer running.Done()
			for j := range each {
				gone := r.Acquire(Labels{Host: fmt.Sprint(i, j%7)})
				r.Nginx().Record(stable, request("GET", 200+j%3))
				r.Nginx().Record(gone, request("GET", 200))
				r.Release(gone)
			}
		}()
	}
	running.Wait()
	sum := uint64(0)
	for _, s := range r.Nginx().sorted() {
		sum += s.requests.Load()
	}
	if sum != goroutines*each {
		t.Errorf("%d requests are counted, want %d", sum, goroutines*each)
	}
}

// TestRecordAllocatesNothing checks that a request with a known label set needs no memory.
func TestRecordAllocatesNothing(t *testing.T) {
	r := newRegistry(nginxOptions())
	route, d := r.Acquire(Labels{Host: "a"}), request("GET", 200)
	r.Nginx().Record(route, d)
	if got := testing.AllocsPerRun(1000, func() { r.Nginx().Record(route, d) }); got != 0 {
		t.Errorf("a request needs %v allocations", got)
	}
}

func BenchmarkRecord(b *testing.B) {
	r := newRegistry(nginxOptions())
	route, d := r.Acquire(Labels{Host: "a"}), request("GET", 200)
	b.RunParallel(func(p *testing.PB) {
		for p.Next() {
			r.Nginx().Record(route, d)
		}
	})
}

// defaultOptions returns options with the buckets of ingress-nginx.
func defaultOptions() NginxOptions {
	o := nginxOptions()
	o.Times = []float64{.005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10}
	o.Lengths, o.Sizes = []float64{10, 20, 30, 40, 50, 60, 70, 80, 90, 100}, []float64{10, 1e2, 1e3, 1e4, 1e5, 1e6, 1e7}
	return o
}

// BenchmarkRecordManySets counts requests of 5,000 label sets in turn, so that the counters are not in the caches of
// the processor.
func BenchmarkRecordManySets(b *testing.B) {
	r, routes := newRegistry(defaultOptions()), make([]*Route, 5000)
	d := request("GET", 200)
	for i := range routes {
		routes[i] = r.Acquire(Labels{Ingress: strconv.Itoa(i)})
		r.Nginx().Record(routes[i], d)
	}
	for i := 0; b.Loop(); i++ {
		r.Nginx().Record(routes[i*7919%len(routes)], d)
	}
}

// BenchmarkScrape writes 5,000 label sets with the buckets of ingress-nginx.
func BenchmarkScrape(b *testing.B) {
	r := newRegistry(defaultOptions())
	for i := range 5000 {
		route := r.Acquire(Labels{Namespace: "namespace", Ingress: fmt.Sprint("ingress-", i), Service: "service",
			Host: fmt.Sprint(i, ".shop.example"), Path: "/"})
		r.Nginx().Record(route, request("GET", 200))
	}
	for b.Loop() {
		w := exposition.New(io.Discard, expfmt.NewFormat(expfmt.TypeTextPlain))
		r.Nginx().Write(w, "nginx_ingress_controller_", []exposition.Label{{Name: "controller_pod", Value: "pod"}})
		if err := w.Flush(); err != nil {
			b.Fatal(err)
		}
	}
}

// TestFailedConnect checks that an attempt without a connection does not count as one that was opened in no time.
func TestFailedConnect(t *testing.T) {
	r := newRegistry(nginxOptions())
	route := r.Acquire(Labels{Namespace: "shop", Ingress: "web", Service: "web"})
	count := func(connects, latencies, responses int) {
		t.Helper()
		text := nginxText(t, r)
		for name, want := range map[string]int{"connect_duration_seconds": connects,
			"ingress_upstream_latency_seconds": latencies, "response_duration_seconds": responses} {
			found := regexp.MustCompile(`_` + name + `_count\{.*\} (\d+)`).FindStringSubmatch(text)
			if got := len(found) > 0; got != (want > 0) || got && found[1] != strconv.Itoa(want) {
				t.Errorf("%s has %q, want %d observations", name, found, want)
			}
		}
	}
	failed := request("GET", 502)
	failed.Connect, failed.Header = -1, 0
	r.Nginx().Record(route, failed)
	count(0, 0, 1)
	reused := request("GET", 502)
	reused.Connect = 0
	r.Nginx().Record(route, reused)
	count(1, 1, 2)
}
