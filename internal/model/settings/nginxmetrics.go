package settings

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
)

// NginxPrefix begins the names of all metrics of ingress-nginx.
const NginxPrefix = "nginx_ingress_controller_"

// NginxRequestMetrics are the names of ingress-nginx's metrics of requests, without NginxPrefix.
var NginxRequestMetrics = []string{
	"requests", "request_duration_seconds", "response_duration_seconds", "header_duration_seconds",
	"connect_duration_seconds", "request_size", "response_size", "bytes_sent", "ingress_upstream_latency_seconds",
}

// On reports whether the metrics with the names of ingress-nginx exist.
func (m *NginxMetrics) On() bool { return m != nil && !m.Off }

// Clone returns a copy that can be changed. The copy of nil has the default settings.
func (m *NginxMetrics) Clone() *NginxMetrics {
	if m == nil {
		return new(NginxMetrics)
	}
	c := *m
	c.Exclude, c.TimeBuckets = slices.Clone(m.Exclude), slices.Clone(m.TimeBuckets)
	c.LengthBuckets, c.SizeBuckets = slices.Clone(m.LengthBuckets), slices.Clone(m.SizeBuckets)
	return &c
}

// maxBounds is the maximum number of buckets of a histogram. Each bucket is a series for each label set.
const maxBounds = 100

// ParseBounds parses the upper bounds of the buckets of a histogram. A last bound of infinity is left out, because each
// histogram has it.
func ParseBounds(list []string) ([]float64, error) {
	var bounds []float64
	for _, text := range list {
		bound, err := strconv.ParseFloat(strings.TrimSpace(text), 64)
		switch {
		case err != nil || math.IsNaN(bound):
			return nil, fmt.Errorf("%q is not a number, such as 0.25", text)
		case len(bounds) > 0 && bound <= bounds[len(bounds)-1]:
			return nil, fmt.Errorf("%s is not above the bound before it: write the bounds in ascending order", text)
		}
		bounds = append(bounds, bound)
	}
	if n := len(bounds); n > 0 && math.IsInf(bounds[n-1], 1) {
		bounds = bounds[:n-1]
	}
	switch {
	case len(bounds) == 0:
		return nil, fmt.Errorf("there is no bound: write at least one number")
	case bounds[0] <= 0:
		return nil, fmt.Errorf("%v is not above 0, so its bucket would always be empty: remove it", bounds[0])
	case len(bounds) > maxBounds:
		return nil, fmt.Errorf("there are %d bounds, and at most %d are allowed", len(bounds), maxBounds)
	}
	return bounds, nil
}

// ParseBucketFactor parses BucketFactor. 0 means that there are no native histograms, and so does each factor of at
// most 1, as in ingress-nginx.
func ParseBucketFactor(text string) (float64, error) {
	factor, err := strconv.ParseFloat(text, 64)
	if err != nil || math.IsNaN(factor) || math.IsInf(factor, 0) || factor < 0 {
		return 0, fmt.Errorf("%q is not a factor above 1, such as 1.1, or 0 for no native histograms", text)
	}
	if factor <= 1 {
		factor = 0
	}
	return factor, nil
}
