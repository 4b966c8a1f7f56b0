package meter_test

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/common/expfmt"

	"github.com/k8singress/k8singress/internal/http/meter"
	"github.com/k8singress/k8singress/internal/tests/fixture"
)

func labels(ingress string) meter.Labels {
	return meter.Labels{Namespace: "shop", Ingress: ingress, Service: "web", Host: "shop.example", Path: "/"}
}

// TestSeries checks all series of a route with some answers.
func TestSeries(t *testing.T) {
	registry := new(meter.Registry)
	route := registry.Acquire(labels("main"))
	registry.Acquire(labels("unused"))
	for _, a := range []meter.Answer{
		{Status: 200, Took: 4 * time.Millisecond, FirstByte: 2 * time.Millisecond, Received: 3, Sent: 10},
		{Status: 204, Took: 5 * time.Millisecond, FirstByte: 5 * time.Millisecond},
		{Status: 101, Took: time.Minute, FirstByte: time.Millisecond, Received: 100, Sent: 200},
		{Status: 301}, {Status: 503, Took: 700 * time.Millisecond, FirstByte: 700 * time.Millisecond, Retries: 2},
		{Took: 20 * time.Millisecond},
	} {
		route.Record(&a)
	}
	ended := route.Begin()
	route.Begin()
	ended.End()
	compare(t, registry, "series.txt")
}

// compare compares the series of a registry, in the text format, with a file in testdata.
func compare(t *testing.T, registry *meter.Registry, file string) {
	t.Helper()
	want, err := os.ReadFile(filepath.Join("testdata", file))
	if err != nil {
		t.Fatal(err)
	}
	if got := text(t, registry); got != string(want) {
		t.Errorf("the series are\n%s\nwant\n%s", got, want)
	}
}

// text returns the series of a registry in the text format, without help.
func text(t *testing.T, registry *meter.Registry) string {
	t.Helper()
	all := prometheus.NewPedanticRegistry()
	all.MustRegister(registry)
	families, err := all.Gather()
	if err != nil {
		t.Fatal(err)
	}
	var to strings.Builder
	for _, family := range families {
		family.Help = nil
		if _, err := expfmt.MetricFamilyToText(&to, family); err != nil {
			t.Fatal(err)
		}
	}
	return to.String()
}

// TestCountersOutliveSettings checks that counters continue while a route with their labels exists, and end with the
// last one.
func TestCountersOutliveSettings(t *testing.T) {
	registry := new(meter.Registry)
	first := registry.Acquire(labels("main"))
	first.Record(&meter.Answer{Status: 200})
	second := registry.Acquire(labels("main"))
	registry.Release(first)
	second.Record(&meter.Answer{Status: 200})
	if n := second.Totals().Requests[1]; n != 2 {
		t.Errorf("after a change of settings there are %d requests, want 2", n)
	}
	registry.Release(second)
	if n := registry.Len(); n != 0 {
		t.Errorf("%d routes are left, want 0", n)
	}
	if n := registry.Acquire(labels("main")).Totals().Requests[1]; n != 0 {
		t.Errorf("a new route begins with %d requests, want 0", n)
	}
}

// TestCanaryHasSeriesOfItsOwn checks that a canary has its own series, and that a canary beside two main objects has
// its series once.
func TestCanaryHasSeriesOfItsOwn(t *testing.T) {
	registry := new(meter.Registry)
	registry.Acquire(labels("main")).Record(&meter.Answer{Status: 200})
	for _, main := range []string{"main", "other"} {
		canary := labels("canary")
		canary.Canary, canary.MainIngress = "shop/web/80", main
		registry.Acquire(canary).Record(&meter.Answer{Status: 404})
	}
	compare(t, registry, "canary.txt")
}

// TestLabelsAreBounded checks labels that users can write into their objects: long, with HTML and not valid UTF-8.
func TestLabelsAreBounded(t *testing.T) {
	registry := new(meter.Registry)
	long := strings.Repeat("ä", 100_000)
	for _, l := range []meter.Labels{
		{Host: strings.Repeat("a", 253), Path: `/<script>alert("x")</script>` + "\n\\"},
		{Path: long}, {Path: "x" + long}, {Path: "/\xff\xfe"},
	} {
		registry.Acquire(l).Record(&meter.Answer{Status: 200})
	}
	for _, route := range registry.Used() {
		l := route.Labels
		if len(l.Path) > 512 || !utf8.ValidString(l.Path) || len(l.Host) != 0 && len(l.Host) != 253 {
			t.Errorf("the labels are host %q, path %q", l.Host, l.Path)
		}
	}
	const escaped = `path="/<script>alert(\"x\")</script>\n\\"`
	got := text(t, registry)
	if strings.Count(got, "k8singress_route_in_flight{") != 4 || !strings.Contains(got, escaped) {
		t.Errorf("the series are\n%s\nwant 4 routes, one with %s", got, escaped)
	}
}

// TestNoRoute checks that a request without a route counts nowhere.
func TestNoRoute(*testing.T) {
	var route *meter.Route
	route.Record(&meter.Answer{Status: 404})
	route.Begin().End()
	new(meter.Registry).Release(route)
}

// TestConcurrentRequests checks that no request is lost while the number of cells grows.
func TestConcurrentRequests(t *testing.T) {
	const workers, each = 8, 50_000
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(workers))
	route := new(meter.Registry).Acquire(labels("hot"))
	var all sync.WaitGroup
	for range workers {
		all.Go(func() {
			for range each {
				flight := route.Begin()
				route.Record(&meter.Answer{Status: 200, Took: time.Millisecond, Sent: 1})
				flight.End()
			}
		})
	}
	all.Wait()
	totals := route.Totals()
	if totals.Requests[1] != workers*each || totals.Durations[0] != workers*each || totals.Sent != workers*each ||
		totals.InFlight != 0 || totals.Answered != workers*each || totals.Duration != workers*each*time.Millisecond {
		t.Errorf("the totals are %+v, want %d requests", totals, workers*each)
	}
}

// TestComeAndGo checks that routes that are gone leave no memory in the registry.
func TestComeAndGo(t *testing.T) {
	registry := new(meter.Registry)
	kept := registry.Acquire(labels("kept"))
	var all []*meter.Route
	fixture.ReleasesMemory(t, 10_000, func(n int) {
		for i := range n {
			route := registry.Acquire(labels(fmt.Sprintf("ingress-%050d", i)))
			route.Record(&meter.Answer{Status: 200})
			all = append(all, route)
		}
	}, func(int) {
		for _, route := range all {
			registry.Release(route)
		}
		all = nil
	})
	if registry.Len() != 1 {
		t.Errorf("%d routes are left, want 1", registry.Len())
	}
	registry.Release(kept)
}

// BenchmarkRecord counts requests of one route from all processors.
func BenchmarkRecord(b *testing.B) {
	route := new(meter.Registry).Acquire(labels("hot"))
	answer := meter.Answer{Status: 200, Took: 3 * time.Millisecond, FirstByte: time.Millisecond, Sent: 1000}
	b.ReportAllocs()
	b.RunParallel(func(each *testing.PB) {
		for each.Next() {
			flight := route.Begin()
			route.Record(&answer)
			flight.End()
		}
	})
}

// BenchmarkRecordManyRoutes counts requests of 10,000 routes in turn, so that the counters are not in the caches of the
// processor.
func BenchmarkRecordManyRoutes(b *testing.B) {
	registry, routes := new(meter.Registry), make([]*meter.Route, 10_000)
	answer := meter.Answer{Status: 200, Took: 3 * time.Millisecond, FirstByte: time.Millisecond, Sent: 1000}
	for i := range routes {
		routes[i] = registry.Acquire(labels(time.Duration(i).String()))
		routes[i].Record(&answer)
	}
	b.ReportAllocs()
	for i := 0; b.Loop(); i++ {
		route := routes[i*7919%len(routes)]
		flight := route.Begin()
		route.Record(&answer)
		flight.End()
	}
}
