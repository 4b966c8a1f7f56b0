package configmap

import (
	"errors"
	"fmt"
	"net/netip"
	"strconv"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/k8singress/k8singress/internal/model/ir"
	"github.com/k8singress/k8singress/internal/model/nginx"
)

const (
	// maxSpans is the maximum number of queued spans. Each takes about a kilobyte.
	maxSpans = 1 << 16
	// maxDelay is the maximum time before a queued span is exported, in milliseconds.
	maxDelay = 600_000
	// maxServiceName is the maximum length of the service name in traces, in bytes.
	maxServiceName = 128
	maxPort        = 65535
)

// The ConfigMap keys for OpenTelemetry. Package translate warns if tracing is enabled and no collector is set.
var (
	enableOpenTelemetry    = unchecked("enable-opentelemetry")
	openTelemetryTrust     = unchecked("opentelemetry-trust-incoming-span")
	openTelemetryOperation = unchecked("opentelemetry-operation-name")
	otlpCollectorHost      = Key{
		Name: "otlp-collector-host", Scope: process,
		Doc: "The OpenTelemetry collector to which spans are sent, by OTLP over gRPC without TLS. If the key is " +
			"empty, no spans are sent. If the queue is full, spans are dropped, and no metric counts them; " +
			"[metrics](metrics.md) count only the spans that the collector did not accept. Requests never wait for " +
			"the collector.",
		Values: "a host or an IP address", Example: "otel-collector.observability.svc", Default: "none",
		Parse: nginx.Into(func(c *Config) *string { return &c.Global.Collector.Host },
			readHostFor("otlp-collector-port")),
	}
	otlpCollectorPort = Key{
		Name: "otlp-collector-port", Scope: process, Doc: "The port of the OpenTelemetry collector in " +
			"otlp-collector-host.",
		Values: "a number from 1 to 65535", Example: "4317", Default: "4317",
		Parse: nginx.Into(func(c *Config) *int { return &c.Global.Collector.Port }, nginx.Number(1, maxPort)),
	}
	otelMaxQueueSize = Key{
		Name: "otel-max-queuesize", Scope: process,
		Doc:    "The maximum number of queued spans. Further spans are dropped.",
		Values: fmt.Sprintf("a number from 1 to %d", maxSpans), Example: "4096", Default: "2048",
		Parse: nginx.Into(func(c *Config) *int { return &c.Global.Collector.Queue }, nginx.Number(1, maxSpans)),
	}
	otelScheduleDelay = Key{
		Name: "otel-schedule-delay-millis", Scope: process,
		Doc: "The maximum time that a span waits in the queue before it is sent together with others, in " +
			"milliseconds.",
		Values: fmt.Sprintf("a number from 1 to %d", maxDelay), Example: "1000", Default: "5000",
		Parse: nginx.Into(func(c *Config) *time.Duration { return &c.Global.Collector.Delay },
			func(value string) (time.Duration, error) {
				n, err := nginx.Number(1, maxDelay)(value)
				return time.Duration(n) * time.Millisecond, err
			}),
	}
	otelMaxExportBatchSize = Key{
		Name: "otel-max-export-batch-size", Scope: process, Doc: "The maximum number of spans that are sent to the " +
			"collector together.",
		Values: fmt.Sprintf("a number from 1 to %d", maxSpans), Example: "256", Default: "512",
		Parse: nginx.Into(func(c *Config) *int { return &c.Global.Collector.Batch }, nginx.Number(1, maxSpans)),
	}
	otelServiceName = Key{
		Name: "otel-service-name", Scope: process, Doc: "The name of this controller in traces.",
		Values: "text", Example: "ingress", Default: "nginx",
		Parse: nginx.Into(func(c *Config) *string { return &c.Global.Collector.Service }, readServiceName),
	}
	otelSampler = Key{
		Name: "otel-sampler", Scope: process,
		Doc: "The requests for which spans are sent: all (AlwaysOn), none (AlwaysOff), or the share in " +
			"otel-sampler-ratio (TraceIdRatioBased).",
		Values: "AlwaysOn, AlwaysOff or TraceIdRatioBased", Example: "TraceIdRatioBased", Default: "AlwaysOn",
		Parse: nginx.Into(func(c *Config) *ir.Sampler { return &c.Global.Collector.Sampler },
			func(value string) (ir.Sampler, error) {
				name, err := nginx.OneOf(string(ir.SampleAll), string(ir.SampleNone), string(ir.SampleRatio))(value)
				return ir.Sampler(name), err
			}),
	}
	otelSamplerRatio = Key{
		Name: "otel-sampler-ratio", Scope: process,
		Doc:    "The share of requests for which spans are sent, if otel-sampler is TraceIdRatioBased.",
		Values: "a number from 0 to 1", Example: "0.25", Default: "0.01",
		Parse: nginx.Into(func(c *Config) *float64 { return &c.Global.Collector.Ratio }, readRatio),
	}
	otelSamplerParentBased = Key{
		Name: "otel-sampler-parent-based", Scope: process,
		Doc: "For a request with a traceparent header, a span is sent only if the header says that the trace is " +
			"sampled. otel-sampler applies to all other requests. With `false`, otel-sampler applies to all requests.",
		Values: booleans, Example: "false", Default: "true",
		Parse: nginx.Into(func(c *Config) *bool { return &c.Global.Collector.OwnChoice },
			func(value string) (bool, error) {
				follows, err := nginx.Bool(value)
				return err == nil && !follows, err
			}),
	}
)

// readHostFor returns a parser for a host without a port. port is the name of the key for the port, for the error
// message.
func readHostFor(port string) func(string) (string, error) {
	return func(value string) (string, error) {
		if address, err := netip.ParseAddr(strings.Trim(value, "[]")); err == nil {
			return address.String(), nil
		}
		if problems := validation.IsDNS1123Subdomain(strings.TrimSuffix(strings.ToLower(value), ".")); problems != nil {
			return "",
				fmt.Errorf(
					"%s is neither a host name nor an IP address: write it without a port, and set the port in %s",
					nginx.Quote(value), port)
		}
		return value, nil
	}
}

func readServiceName(value string) (string, error) {
	if len(value) > maxServiceName || strings.ContainsFunc(value, nginx.IsControl) {
		return "", fmt.Errorf("the name contains a line break, or is longer than %d bytes", maxServiceName)
	}
	return value, nil
}

// readRatio reads a number from 0 to 1. It returns -1 for the value 0, because a zero in the parsed configuration means
// the default.
func readRatio(value string) (float64, error) {
	ratio, err := strconv.ParseFloat(value, 64)
	if err != nil || !(ratio >= 0 && ratio <= 1) {
		return 0, errors.New("the value is not a number from 0 to 1, such as 0.25")
	}
	if ratio == 0 {
		return -1, nil
	}
	return ratio, nil
}
