package meter

import (
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/k8singress/k8singress/internal/model/shrinking"
)

// NginxOptions configure the counters with the names of ingress-nginx.
type NginxOptions struct {
	// WithoutHost, UndefinedHosts and StatusClasses are options of the same name in package settings. Excluded are the
	// metrics that are not counted.
	WithoutHost, UndefinedHosts, StatusClasses bool
	Excluded                                   [Latencies + 1]bool
	// Times, Lengths and Sizes are the upper bounds of histogram buckets, in seconds and in bytes.
	Times, Lengths, Sizes []float64
	// Factor and MaxBuckets configure native histograms. There are none if Factor is zero.
	Factor     float64
	MaxBuckets uint32
	// MaxSets is the maximum number of label sets of one namespace with a path and a method. All namespaces together
	// can have an eighth more.
	MaxSets int
}

// Equal reports whether the options are the same.
func (o *NginxOptions) Equal(with *NginxOptions) bool {
	return o.WithoutHost == with.WithoutHost && o.UndefinedHosts == with.UndefinedHosts &&
		o.StatusClasses == with.StatusClasses && o.Excluded == with.Excluded && slices.Equal(o.Times, with.Times) &&
		slices.Equal(o.Lengths, with.Lengths) && slices.Equal(o.Sizes, with.Sizes) && o.Factor == with.Factor &&
		o.MaxBuckets == with.MaxBuckets && o.MaxSets == with.MaxSets
}

// NginxMetric is a metric of requests with a name of ingress-nginx.
type NginxMetric int

// The metrics of requests. The metrics between Requests and Latencies are histograms.
const (
	Requests NginxMetric = iota
	Durations
	Responses
	Headers
	Connects
	Received
	Answers
	Sent
	Latencies
)

// histograms is the number of histograms of a label set.
const histograms = int(Latencies) - 1

// Nginx counts requests with the labels of ingress-nginx. The labels are a route, a method and a status, so that a
// client cannot create more than a bounded number of label sets. If a namespace has reached its quota, its further
// label sets have the value Other for the path and the method. These label sets have a quota of the same size. Beyond
// it, all labels except the status have this value.
type Nginx struct {
	NginxOptions
	// generation is higher than the generation of the counters that these counters have replaced.
	generation uint64
	// bounds are the upper bounds of the buckets of each histogram, in nanoseconds and bytes. rows is the largest
	// number of buckets.
	bounds [histograms][]int64
	rows   int

	mu        sync.Mutex
	sets      shrinking.Map[setLabels, *set]
	latencies shrinking.Map[latencyLabels, *latency]
	// full counts the label sets with a path, and merged the label sets of a namespace with the path Other.
	full, merged quota
	// unrouted stands for the route of requests that match no route. It is nil if they are not counted.
	unrouted *Route
	// limited is the number of requests that were counted without their path and method.
	limited atomic.Uint64
}

// Other is the value of labels of label sets beyond the maximum.
const Other = "_other"

// setLabels identify a label set. method is an index of methodNames, and status is a status or a class.
type setLabels struct {
	namespace, ingress, service, canary, host, path string
	method, status                                  uint16
}

// latencyLabels are the labels of ingress_upstream_latency_seconds.
type latencyLabels struct{ namespace, ingress, service, canary string }

// latency is the sum and the number of the times to connect to an endpoint.
type latency struct {
	sum   atomic.Int64
	count atomic.Uint64
	users int
}

// row holds the number of observations in one bucket of each histogram. It fills one cache line. Most requests are in
// the same bucket of several histograms, so they write to few rows.
type row [8]atomic.Uint64

// set holds the counters of one label set. The fields that each request changes come first, in one cache line: the size
// is a multiple of 64, so the Go allocator aligns each set to a line.
type set struct {
	requests atomic.Uint64
	// sums are the sums of the observations of each histogram, in nanoseconds or bytes.
	sums [histograms]atomic.Int64
	// buckets has the numbers of observations by bucket.
	buckets []row
	// latency is shared with the other label sets that have the same Ingress, Service and canary.
	latency *latency
	// native is nil without native histograms. It has no histogram for a metric that is not counted.
	native *[histograms]prometheus.Histogram
	// limited is true if the set has fewer labels than its requests, because there are too many label sets.
	limited bool
	labels  setLabels
	// users is the number of references in routes. The lock of Nginx guards it.
	users int
	_     [32]byte
}

// newNginx returns counters without label sets.
func newNginx(o NginxOptions) *Nginx {
	n := &Nginx{NginxOptions: o}
	for i := range n.bounds {
		for _, bound := range n.boundsOf(i) {
			n.bounds[i] = append(n.bounds[i], int64(bound*scale(i)))
		}
		n.rows = max(n.rows, len(n.bounds[i])+1)
	}
	if o.WithoutHost || o.UndefinedHosts {
		n.unrouted = &Route{Labels: Labels{Host: "_"}, users: 1}
	}
	return n
}

// boundsOf returns the upper bounds of the buckets of a histogram, in its unit.
func (n *Nginx) boundsOf(histogram int) []float64 {
	switch NginxMetric(histogram + 1) {
	case Received, Answers:
		return n.Lengths
	case Sent:
		return n.Sizes
	default:
		return n.Times
	}
}

// scale is the number of counted units in the unit of a histogram: nanoseconds in a second, or bytes in a byte.
func scale(histogram int) float64 {
	switch NginxMetric(histogram + 1) {
	case Received, Answers, Sent:
		return 1
	default:
		return float64(time.Second)
	}
}

// methodNames are the values of the label method.
var methodNames = [...]string{
	"OTHER", "GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "CONNECT", "TRACE", Other,
}

// otherMethod is the index of Other in methodNames.
const otherMethod = uint16(len(methodNames) - 1)

// methodOf returns the index of a method in methodNames.
func methodOf(method string) uint16 {
	switch method {
	case "GET":
		return 1
	case "HEAD":
		return 2
	case "POST":
		return 3
	case "PUT":
		return 4
	case "PATCH":
		return 5
	case "DELETE":
		return 6
	case "OPTIONS":
		return 7
	case "CONNECT":
		return 8
	case "TRACE":
		return 9
	}
	return 0
}

// statusOf returns the status or the class for the label status. As in the access log, a request without a response has
// the status 499.
func (n *Nginx) statusOf(status int) uint16 {
	if status == 0 {
		status = 499
	}
	status = min(max(status, 100), 599)
	if n.StatusClasses {
		return uint16(status / 100)
	}
	return uint16(status)
}

// statusName returns the value of the label status.
func (l *setLabels) statusName() string {
	if l.status < 10 {
		return strconv.Itoa(int(l.status)) + "xx"
	}
	return strconv.Itoa(int(l.status))
}

// Details describe a request that has ended, in more detail than Answer.
type Details struct {
	Method string
	Status int
	// Took is the time from the end of the request header to the end of the response.
	Took time.Duration
	// HasAttempt is true if the request was sent to an endpoint. The next fields describe the last attempt: the time to
	// open a connection, which is zero for an open one and negative if no connection could be opened; the time to the
	// response header, which is zero without a response; and the time to the end of the response.
	HasAttempt                bool
	Connect, Header, Response time.Duration
	// Received and Sent are the sizes of the request and of the response in bytes.
	Received, Sent int64
}

// Record counts a request that has ended. route is nil if the request matches no route.
func (n *Nginx) Record(route *Route, d *Details) {
	if route == nil {
		if route = n.unrouted; route == nil {
			return
		}
	}
	s := n.find(route, methodOf(d.Method), n.statusOf(d.Status))
	if s == nil {
		return
	}
	if s.limited {
		n.limited.Add(1)
	}
	s.requests.Add(1)
	n.observe(s, Durations, int64(d.Took))
	n.observe(s, Received, d.Received)
	n.observe(s, Answers, d.Sent)
	n.observe(s, Sent, d.Sent)
	if !d.HasAttempt {
		return
	}
	n.observe(s, Responses, int64(d.Response))
	if d.Header > 0 {
		n.observe(s, Headers, int64(d.Header))
	}
	if d.Connect < 0 {
		return
	}
	n.observe(s, Connects, int64(d.Connect))
	if s.latency != nil {
		s.latency.sum.Add(int64(d.Connect))
		s.latency.count.Add(1)
	}
}

// observe adds a value to a histogram, if its metric is counted.
func (n *Nginx) observe(s *set, metric NginxMetric, value int64) {
	if n.Excluded[metric] {
		return
	}
	i, bucket := int(metric)-1, 0
	for bounds := n.bounds[i]; bucket < len(bounds) && value > bounds[bucket]; {
		bucket++
	}
	s.buckets[bucket][i].Add(1)
	s.sums[i].Add(value)
	if s.native != nil {
		s.native[i].Observe(float64(value) / scale(i))
	}
}

// routeSets are the label sets of one route. Each list has the label sets of one method.
type routeSets struct {
	owner *Nginx
	lists [len(methodNames)]atomic.Pointer[setOf]
}

// setOf is the label set for a status. It is the element of a list that begins with the newest one.
type setOf struct {
	status uint16
	set    *set
	next   *setOf
}

// find returns the label set for a request, or nil if the route has ended or n has been replaced. A route has few
// statuses for each method, so that a search is faster than a map.
func (n *Nginx) find(route *Route, method, status uint16) *set {
	if sets := route.sets.Load(); sets != nil && sets.owner == n {
		if s := sets.find(method, status); s != nil {
			return s
		}
	}
	return n.add(route, method, status)
}

func (r *routeSets) find(method, status uint16) *set {
	for of := r.lists[method].Load(); of != nil; of = of.next {
		if of.status == status {
			return of.set
		}
	}
	return nil
}

// add adds a label set to a route.
func (n *Nginx) add(route *Route, method, status uint16) *set {
	n.mu.Lock()
	defer n.mu.Unlock()
	if route.ended.Load() {
		return nil
	}
	sets := n.setsOf(route)
	if sets == nil {
		return nil
	}
	if s := sets.find(method, status); s != nil {
		return s
	}
	s := n.acquire(n.labelsOf(&route.Labels, method, status))
	sets.lists[method].Store(&setOf{status, s, sets.lists[method].Load()})
	return s
}

// setsOf returns the label sets of a route in n. It returns nil if the route has label sets of newer counters already:
// a request that has begun before these must not remove them from the route, because they would never end.
func (n *Nginx) setsOf(route *Route) *routeSets {
	for {
		sets := route.sets.Load()
		switch {
		case sets != nil && sets.owner == n:
			return sets
		case sets != nil && sets.owner.generation > n.generation:
			return nil
		}
		if own := (&routeSets{owner: n}); route.sets.CompareAndSwap(sets, own) {
			return own
		}
	}
}

// labelsOf returns the labels of ingress-nginx for a route. A canary has the labels of the Ingress beside which it
// stands.
func (n *Nginx) labelsOf(l *Labels, method, status uint16) setLabels {
	labels := setLabels{namespace: l.Namespace, ingress: l.Ingress, service: l.Service, canary: canaryName(l.Canary),
		host: l.Host, path: l.Path, method: method, status: status}
	if l.Canary != "" {
		labels.ingress, labels.service = l.MainIngress, l.MainService
	}
	if n.WithoutHost {
		labels.host = ""
	}
	return labels
}

// canaryName returns the name of a backend in ingress-nginx: namespace-service-port.
func canaryName(backend string) string {
	name := []byte(backend)
	for i := range name {
		if name[i] == '/' {
			name[i] = '-'
		}
	}
	return string(name)
}

// acquire returns the label set with the labels, or one with fewer labels if there are too many. The caller holds the
// lock.
func (n *Nginx) acquire(labels setLabels) *set {
	s, limited := n.sets.Get(labels), false
	if s == nil && n.full.isReached(labels.namespace, n.MaxSets) {
		labels.path, labels.method, limited = Other, otherMethod, true
		if s = n.sets.Get(labels); s == nil && n.merged.isReached(labels.namespace, n.MaxSets) {
			labels = setLabels{Other, Other, Other, Other, Other, Other, otherMethod, labels.status}
			s = n.sets.Get(labels)
		}
	}
	if s == nil {
		s = n.newSet(labels, limited)
	}
	s.users++
	return s
}

func (n *Nginx) newSet(labels setLabels, limited bool) *set {
	s := &set{labels: labels, limited: limited, buckets: make([]row, n.rows)}
	if n.Factor > 0 {
		s.native = n.newNative()
	}
	if !n.Excluded[Latencies] {
		of := latencyLabels{labels.namespace, labels.ingress, labels.service, labels.canary}
		if s.latency = n.latencies.Get(of); s.latency == nil {
			s.latency = new(latency)
			n.latencies.Set(of, s.latency)
		}
		s.latency.users++
	}
	n.sets.Set(labels, s)
	n.count(s, 1)
	return s
}

func (n *Nginx) newNative() *[histograms]prometheus.Histogram {
	var all [histograms]prometheus.Histogram
	for i := range all {
		if !n.Excluded[i+1] {
			all[i] = prometheus.NewHistogram(prometheus.HistogramOpts{
				Name: "native", NativeHistogramBucketFactor: n.Factor, NativeHistogramMaxBucketNumber: n.MaxBuckets,
			})
		}
	}
	return &all
}

func (n *Nginx) count(s *set, change int) {
	switch {
	case s.labels.namespace == Other:
		// These label sets differ only in the status, so they need no quota.
	case s.limited:
		n.merged.add(s.labels.namespace, change)
	default:
		n.full.add(s.labels.namespace, change)
	}
}

// end ends the label sets of a route that has ended, except those that other routes have, too.
func (n *Nginx) end(route *Route) {
	n.mu.Lock()
	defer n.mu.Unlock()
	sets := route.sets.Load()
	if sets == nil || sets.owner != n {
		return
	}
	for i := range sets.lists {
		for of := sets.lists[i].Load(); of != nil; of = of.next {
			n.release(of.set)
		}
	}
}

func (n *Nginx) release(s *set) {
	if s.users--; s.users > 0 {
		return
	}
	n.sets.Delete(s.labels)
	n.count(s, -1)
	if s.latency == nil {
		return
	}
	if s.latency.users--; s.latency.users == 0 {
		n.latencies.Delete(latencyLabels{s.labels.namespace, s.labels.ingress, s.labels.service, s.labels.canary})
	}
}
