package ir

import (
	"cmp"
	"time"
)

// Tracing is how the requests of a route are traced.
type Tracing struct {
	// Operation is the name of a span, with nginx variables; empty is the path of the route.
	Operation string `json:"operation,omitempty"`
	// Untrusted begins a trace of its own for each request, whatever trace the client says that it is a part of.
	Untrusted bool `json:"untrusted,omitempty"`
}

// Collector is where spans go, and how, which only the administrator says. What is zero has ingress-nginx's default.
// It can be compared.
type Collector struct {
	// Host speaks OTLP by gRPC without TLS on Port; empty is that there is none, and zero the port 4317.
	Host string `json:"host,omitempty"`
	Port int    `json:"port,omitempty"`
	// Queue is how many spans wait at most, Batch how many are sent at a time, and Delay for how long they may wait.
	Queue int           `json:"queue,omitempty"`
	Batch int           `json:"batch,omitempty"`
	Delay time.Duration `json:"delay,omitempty"`
	// Service is the name that this controller has there.
	Service string `json:"service,omitempty"`
	// Sampler chooses the requests that have spans, with Ratio by SampleRatio. A ratio less than zero is none, and zero the default.
	Sampler Sampler `json:"sampler,omitempty"`
	Ratio   float64 `json:"ratio,omitempty"`
	// OwnChoice samples requests alike that are part of a trace; otherwise whoever began the trace has chosen.
	OwnChoice bool `json:"own_choice,omitempty"`
}

// Sampler chooses the requests that have a span.
type Sampler string

// The samplers there are, by their names in ingress-nginx.
const (
	SampleAll   Sampler = "AlwaysOn"
	SampleNone  Sampler = "AlwaysOff"
	SampleRatio Sampler = "TraceIdRatioBased"
)

// WithDefaults returns the collector with the defaults of ingress-nginx for what is zero.
func (c Collector) WithDefaults() Collector {
	return Collector{
		Host: c.Host, Port: cmp.Or(c.Port, 4317), Queue: cmp.Or(c.Queue, 2048), Batch: cmp.Or(c.Batch, 512), Delay: cmp.Or(c.Delay, 5*time.Second),
		Service: cmp.Or(c.Service, "nginx"), Sampler: cmp.Or(c.Sampler, SampleAll), Ratio: cmp.Or(c.Ratio, 0.01), OwnChoice: c.OwnChoice,
	}
}
