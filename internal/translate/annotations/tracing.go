package annotations

import (
	"github.com/k8singress/k8singress/internal/model/ir"
	"github.com/k8singress/k8singress/internal/model/nginx"
	"github.com/k8singress/k8singress/internal/model/option"
)

// maxOperationBytes is the maximum length of a span name before its variables are replaced, in bytes.
const maxOperationBytes = 256

// The annotations for tracing with OpenTelemetry. The collector is set in the ConfigMap; an Ingress cannot change it.
var (
	enableOpenTelemetry = Annotation{
		Name: "enable-opentelemetry",
		Doc: "Sends a span for each request to the OpenTelemetry collector in the key " +
			"[otlp-collector-host](configmap.md#otlp-collector-host). Requests to endpoints contain the trace in the " +
			"W3C Trace Context headers traceparent and tracestate.",
		Values: booleans, Example: "true", Default: "false", Scope: ScopeLocation, Risk: RiskLow,
		Parse: nginx.Into(func(s *Settings) *bool { return &s.Asked.Tracing.On }, nginx.Bool),
		Check: func(s *Settings) string {
			return option.Unless(!s.Asked.Tracing.On || s.Asked.Tracing.Collected, NoCollector)
		},
	}
	openTelemetryTrust = Annotation{
		Name: "opentelemetry-trust-incoming-span",
		Doc: "Makes the span of a request a part of the trace in the client's traceparent header. With `false`, each " +
			"request starts a new trace, and the endpoint does not get the client's trace.",
		Values: booleans, Example: "false", Default: "true", Scope: ScopeLocation, Risk: RiskLow,
		Parse: func(s *Settings, value string) error {
			trusts, err := nginx.Bool(value)
			s.Asked.Tracing.Untrusted = err == nil && !trusts
			return err
		},
		Check: checkTracing,
	}
	openTelemetryOperation = Annotation{
		Name:   "opentelemetry-operation-name",
		Doc:    "The name of the span of a request. It may contain nginx variables.",
		Values: "text with variables", Example: "$request_method $location_path", Default: "the path of the Ingress",
		Scope: ScopeLocation, Risk: RiskMedium,
		Parse: withVariables(nginx.Into(func(s *Settings) *string { return &s.Asked.Tracing.Operation },
			readTemplate("", maxOperationBytes))), Check: checkTracing,
	}
)

// NoCollector is the warning if tracing is enabled and no collector is configured.
const NoCollector = "no spans are sent: set the key otlp-collector-host of the controller's ConfigMap to an " +
	"OpenTelemetry collector"

// tracing holds the values of the OpenTelemetry annotations.
type tracing struct {
	On bool
	ir.Tracing
	// Collected is true if the ConfigMap configures a collector. No annotation changes it.
	Collected bool
}

func checkTracing(s *Settings) string {
	return option.Unless(s.Asked.Tracing.On, "the setting has no effect without enable-opentelemetry")
}

// finishTracing sets s.Tracing. It is nil if tracing is disabled, or if there is no collector.
func (s *Settings) finishTracing() {
	s.Tracing = nil
	if asked := &s.Asked.Tracing; asked.On && asked.Collected {
		tracing := asked.Tracing
		s.Tracing = &tracing
	}
}
