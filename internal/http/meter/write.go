package meter

import (
	"iter"

	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"

	"github.com/k8singress/k8singress/internal/process/exposition"
)

// Write writes the series of all routes, sorted by name and by route. It holds no more than the list of the routes, and
// stops if the client has gone.
func (r *Registry) Write(to *exposition.Writer) {
	used := r.Used()
	w := &routeWriter{Writer: to}
	for _, bound := range bounds {
		w.buckets.Bounds = append(w.buckets.Bounds, bound.Seconds())
	}
	for _, each := range []struct {
		family family
		write  func(w *routeWriter, t *Totals)
	}{
		{bodies, (*routeWriter).writeBodies}, {firstBytes, (*routeWriter).writeFirstBytes},
		{inFlight, (*routeWriter).writeInFlight}, {durations, (*routeWriter).writeDurations},
		{requests, (*routeWriter).writeRequests}, {retries, (*routeWriter).writeRetries},
	} {
		to.Family(each.family.Family)
		for route, totals := range seriesOf(used) {
			if to.Err() != nil {
				return
			}
			w.labels = route.Labels.appendTo(w.labels[:0])
			to.With(w.labels, route.text)
			each.write(w, totals)
		}
	}
}

// appendTo appends the labels of the series of a route, sorted by name.
func (l *Labels) appendTo(labels []exposition.Label) []exposition.Label {
	return append(labels, exposition.Label{Name: "host", Value: l.Host},
		exposition.Label{Name: "ingress", Value: l.Ingress}, exposition.Label{Name: "namespace", Value: l.Namespace},
		exposition.Label{Name: "path", Value: l.Path}, exposition.Label{Name: "service", Value: l.Service})
}

// seriesOf returns one route for each different labels, and the values of their series. routes must be sorted. A canary
// beside two routes of different Ingresses has the same labels twice. Each iteration overwrites the values.
func seriesOf(routes []*Route) iter.Seq2[*Route, *Totals] {
	return func(yield func(*Route, *Totals) bool) {
		var totals Totals
		for rest := routes; len(rest) > 0; {
			first := rest[0]
			totals = first.Totals()
			for rest = rest[1:]; len(rest) > 0 && rest[0].text == first.text; rest = rest[1:] {
				more := rest[0].Totals()
				totals.add(&more)
			}
			if !yield(first, &totals) {
				return
			}
		}
	}
}

// routeWriter writes the series of a route. Its slices are reused.
type routeWriter struct {
	*exposition.Writer
	labels  []exposition.Label
	buckets exposition.Buckets
}

// counter writes a counter with a label of its own.
func (w *routeWriter) counter(value uint64, name, label string) {
	w.Value(float64(value), exposition.Label{Name: name, Value: label})
}

func (w *routeWriter) writeBodies(t *Totals) {
	w.counter(t.Received, "direction", "in")
	w.counter(t.Sent, "direction", "out")
}

func (w *routeWriter) writeFirstBytes(t *Totals) { w.Summary(t.FirstByte.Seconds(), t.Answered) }

func (w *routeWriter) writeInFlight(t *Totals) { w.Value(float64(t.InFlight)) }

func (w *routeWriter) writeDurations(t *Totals) {
	w.buckets.Counts, w.buckets.Sum = t.Durations[:], t.Duration.Seconds()
	w.Histogram(&w.buckets)
}

func (w *routeWriter) writeRequests(t *Totals) {
	for i, class := range classNames {
		w.counter(t.Requests[i], "class", class)
	}
}

func (w *routeWriter) writeRetries(t *Totals) { w.Value(float64(t.Retries)) }

// Others returns the metrics of a Caddy registry without the series of routes, which Write writes. The registry would
// hold all of them, and sort them.
func (r *Registry) Others(in *prometheus.Registry) prometheus.Gatherer {
	return prometheus.GathererFunc(func() ([]*dto.MetricFamily, error) {
		all := prometheus.NewRegistry()
		if err := all.Register(&others{in, r}); err != nil {
			return nil, err
		}
		return all.Gather()
	})
}

// others is a prometheus.Collector with the metrics of a registry, except the series of routes.
type others struct {
	in      *prometheus.Registry
	without *Registry
}

// Describe implements prometheus.Collector. It sends nothing, because the metrics of the registry can change.
func (*others) Describe(chan<- *prometheus.Desc) {}

// Collect implements prometheus.Collector. The registry passes its channel to all its collectors, so Registry.Collect
// recognizes it.
func (o *others) Collect(to chan<- prometheus.Metric) {
	o.without.skipping.Store(to, nil)
	defer o.without.skipping.Delete(to)
	o.in.Collect(to)
}
