package ir

import (
	"cmp"
	"time"
)

// Tracing configures the traces of the requests of a route.
type Tracing struct {
	// Operation is the name of the span. It may contain nginx variables. If it is empty, the path of the route is used.
	Operation string `json:"operation,omitempty"`
	// Untrusted starts a new trace for each request and ignores the trace that the client sends.
	Untrusted bool `json:"untrusted,omitempty"`
}

// Collector configures where and how spans are sent. Only the administrator can set it. Zero fields use ingress-nginx's
// defaults. It is comparable.
type Collector struct {
	// Host and Port are the address of an OTLP collector that accepts gRPC without TLS. An empty Host means that there
	// is no collector. A zero Port means 4317.
	Host string `json:"host,omitempty"`
	Port int    `json:"port,omitempty"`
	// Queue is the maximum number of spans that wait for an export, Batch the maximum number of spans in one export,
	// and Delay the maximum time that a span waits.
	Queue int           `json:"queue,omitempty"`
	Batch int           `json:"batch,omitempty"`
	Delay time.Duration `json:"delay,omitempty"`
	// Service is the service name of this controller in traces.
	Service string `json:"service,omitempty"`
	// Sampler selects the requests that have spans. Ratio is the fraction of requests that SampleRatio selects; zero
	// means the default, and a negative value means 0.
	Sampler Sampler `json:"sampler,omitempty"`
	Ratio   float64 `json:"ratio,omitempty"`
	// OwnChoice applies the sampler to all requests, even if a request belongs to a trace of the client. Otherwise the
	// sampling decision of the client's trace is used.
	OwnChoice bool `json:"own_choice,omitempty"`
}

// Sampler selects which requests have a span.
type Sampler string

// The samplers, by their names in ingress-nginx.
const (
	SampleAll   Sampler = "AlwaysOn"
	SampleNone  Sampler = "AlwaysOff"
	SampleRatio Sampler = "TraceIdRatioBased"
)

// WithDefaults returns the collector with ingress-nginx's defaults in place of zero values.
func (c Collector) WithDefaults() Collector {
	return Collector{
		Host: c.Host, Port: cmp.Or(c.Port, 4317), Queue: cmp.Or(c.Queue, 2048), Batch: cmp.Or(c.Batch, 512),
		Delay:   cmp.Or(c.Delay, 5*time.Second),
		Service: cmp.Or(c.Service, "nginx"), Sampler: cmp.Or(c.Sampler, SampleAll), Ratio: cmp.Or(c.Ratio, 0.01),
		OwnChoice: c.OwnChoice,
	}
}
