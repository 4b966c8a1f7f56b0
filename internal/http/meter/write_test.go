package meter_test

import (
	"bytes"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/klauspost/compress/gzip"
	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	"google.golang.org/protobuf/testing/protocmp"

	"github.com/k8singress/k8singress/internal/http/meter"
	"github.com/k8singress/k8singress/internal/process/exposition"
	"github.com/k8singress/k8singress/internal/tests/fixture"
)

// The formats of a scrape.
var (
	inText     = expfmt.NewFormat(expfmt.TypeTextPlain)
	inProtobuf = expfmt.NewFormat(expfmt.TypeProtoDelim)
)

// written returns what Write writes, by the name of the family.
func written(t *testing.T, registry *meter.Registry, format expfmt.Format) map[string]*dto.MetricFamily {
	t.Helper()
	var b bytes.Buffer
	w := exposition.New(&b, format)
	if registry.Write(w); w.Flush() != nil {
		t.Fatal(w.Err())
	}
	families, err := fixture.ReadMetrics(&b, format)
	if err != nil {
		t.Fatalf("the response cannot be parsed: %v", err)
	}
	return families
}

// normalized sorts the metrics of each family, and removes buckets without a bound, which only the text format has.
func normalized(families map[string]*dto.MetricFamily) map[string]*dto.MetricFamily {
	for _, f := range families {
		slices.SortFunc(f.GetMetric(), func(a, b *dto.Metric) int {
			return strings.Compare(fmt.Sprint(a.GetLabel()), fmt.Sprint(b.GetLabel()))
		})
		for _, m := range f.GetMetric() {
			if h := m.GetHistogram(); h != nil {
				h.Bucket = slices.DeleteFunc(h.GetBucket(), func(b *dto.Bucket) bool { return b.GetUpperBound() > 1e9 })
			}
		}
	}
	return families
}

// TestWrite checks that both formats have the same families, help, labels and values as a Prometheus registry: for
// ordinary routes, canaries, labels that must be escaped, and after routes have come and gone.
func TestWrite(t *testing.T) {
	registry := new(meter.Registry)
	all := prometheus.NewPedanticRegistry()
	all.MustRegister(registry)
	check := func(routes int) {
		t.Helper()
		want := normalized(fixture.Gather(t, all))
		if n := len(want["k8singress_route_in_flight"].GetMetric()); n != routes {
			t.Fatalf("there are the series of %d routes, want %d", n, routes)
		}
		for _, format := range []expfmt.Format{inText, inProtobuf} {
			got := normalized(written(t, registry, format))
			if diff := cmp.Diff(want, got, protocmp.Transform()); diff != "" {
				t.Errorf("%s differs (-registry +written):\n%s", format, diff)
			}
		}
	}
	check(0)
	first := registry.Acquire(labels("main"))
	for i := range 400 {
		first.Record(&meter.Answer{Status: 100 + i, Took: time.Duration(i) * time.Second / 16, Received: 1 << i % 40,
			FirstByte: time.Millisecond, Retries: i % 3, Sent: int64(i)})
	}
	first.Begin()
	for _, main := range []string{"main", "other"} {
		canary := labels("canary")
		canary.Canary, canary.MainIngress = "shop/web/80", main
		registry.Acquire(canary).Record(&meter.Answer{Status: 404})
	}
	check(2)
	hostile := meter.Labels{Host: "<b>\"\\\n", Path: "/\xff\"},evil=\"", Ingress: "日本"}
	registry.Acquire(hostile).Record(&meter.Answer{Status: 200})
	check(3)
	registry.Release(first)
	check(2)
}

// TestOthers checks that Others leaves out exactly the series of routes, also if the registry itself is read at the
// same time.
func TestOthers(t *testing.T) {
	registry := new(meter.Registry)
	registry.Acquire(labels("main")).Record(&meter.Answer{Status: 200})
	other := prometheus.NewCounterVec(prometheus.CounterOpts{Name: "other_total", Help: "Another metric."},
		[]string{"code"})
	other.WithLabelValues("200").Inc()
	all := prometheus.NewPedanticRegistry()
	all.MustRegister(registry, other)
	others := registry.Others(all)
	t.Run("at once", func(t *testing.T) {
		for range 8 {
			t.Run("", func(t *testing.T) {
				t.Parallel()
				for range 20 {
					got := slices.Sorted(maps.Keys(fixture.Gather(t, others)))
					if !slices.Equal(got, []string{"other_total"}) {
						t.Errorf("the other metrics are %v", got)
					}
					if got := fixture.Gather(t, all); len(got) != 7 {
						t.Errorf("all metrics are %v", slices.Sorted(maps.Keys(got)))
					}
				}
			})
		}
	})
}

// closed is a client that has gone.
type closed struct{ writes int }

func (c *closed) Write([]byte) (int, error) {
	c.writes++
	return 0, io.ErrClosedPipe
}

// TestWriteStops checks that Write stops if the client has gone.
func TestWriteStops(t *testing.T) {
	to := new(closed)
	w := exposition.New(to, inText)
	if busy(1000).Write(w); w.Err() == nil || to.writes != 1 {
		t.Errorf("the error is %v after %d writes", w.Err(), to.writes)
	}
}

// busy returns a registry whose routes have all served a request.
func busy(routes int) *meter.Registry {
	registry := new(meter.Registry)
	for i := range routes {
		registry.Acquire(meter.Labels{
			Namespace: fmt.Sprintf("tenant-%d", i%100), Ingress: fmt.Sprintf("ingress-%d", i),
			Service: fmt.Sprintf("service-%d", i), Host: fmt.Sprintf("host-%d.tenant.example", i), Path: "/",
		}).Record(&meter.Answer{Status: 200, Took: time.Duration(i) * time.Microsecond, Sent: 1000})
	}
	return registry
}

// slow is a client that needs a millisecond to read a part of the response. It allocates no memory.
type slow struct{}

func (slow) Write(p []byte) (int, error) {
	for begin := time.Now(); time.Since(begin) < time.Millisecond; {
		continue
	}
	return len(p), nil
}

// TestWriteAllocatesLittle checks that the series of a route need no memory in the text format, and that pauses need
// none. The client is slow, so that a pause follows each write, however fast the machine is.
func TestWriteAllocatesLittle(t *testing.T) {
	const routes = 1000
	registry := busy(routes)
	if n := testing.AllocsPerRun(1, func() { registry.Write(exposition.New(slow{}, inText)) }); n > routes/5 {
		t.Errorf("writing the series of %d routes needs %v allocations", routes, n)
	}
}

// BenchmarkWrite writes the series of 10,000 routes with gzip, as Prometheus asks for them. The time includes pauses.
func BenchmarkWrite(b *testing.B) {
	registry := busy(10_000)
	b.ReportAllocs()
	for b.Loop() {
		to, err := gzip.NewWriterLevel(io.Discard, gzip.BestSpeed)
		if err != nil {
			b.Fatal(err)
		}
		registry.Write(exposition.New(to, inText))
	}
}
