package streams

//go:generate go test -run ^TestReference$ -update

import (
	"fmt"
	"iter"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/k8singress/k8singress/internal/model/ir"
	"github.com/k8singress/k8singress/internal/model/kinds"
	"github.com/k8singress/k8singress/internal/model/option"
	"github.com/k8singress/k8singress/internal/model/report"
	"github.com/k8singress/k8singress/internal/model/suggest"
	"github.com/k8singress/k8singress/internal/translate/annotations"
)

// Annotation is one row of Table: an annotation of a Service with its documentation and its parser.
type Annotation = option.Row[Settings, string]

// Table lists the supported annotations of Services. To add an annotation, declare it in the file of its feature and
// add it here.
var Table = option.Table[Settings, string]{
	tcpPorts, udpPorts,
	streamIdleTimeout, streamConnectTimeout, streamMaxConnections, streamResponses,
	streamAcceptProxy, streamTrustedProxies, streamProxyProtocol, streamChains,
	streamTLSSecret, streamTLSHost,
	streamBackendTLS, streamBackendTLSSecret, streamBackendTLSVerify, streamBackendTLSName,
}

const (
	prefix      = kinds.OwnPrefix
	staysClosed = "the ports of this Service stay closed"
)

// Parse parses the annotations of a Service. For a setting without an annotation, the value from policy is used.
// Invalid annotations are ignored and reported. If an invalid annotation may restrict clients or require encryption,
// the ports stay closed.
func Parse(policy ir.StreamPolicy, service *corev1.Service) (*Settings, []report.Problem) {
	s := &Settings{Policy: policy}
	r := option.Reading[Settings]{Settings: s, Invalid: report.InvalidAnnotation}
	for _, key := range slices.Sorted(maps.Keys(service.Annotations)) {
		value := service.Annotations[key]
		switch row := Table.Find(key); {
		case row != nil:
			s.given = s.given || strings.TrimSpace(value) != ""
			r.Read(row, value, report.AnnotationField(key))
		case strings.HasPrefix(key, prefix):
			r.Warn(report.UnknownAnnotation, report.AnnotationField(key), unknown(key))
		}
	}
	finishTLS(&r, service)
	r.Check()
	return s, r.Problems
}

// The function unknown returns the warning for an annotation that starts with our prefix but is not one of the
// supported annotations.
func unknown(key string) string {
	if annotations.Table.Find(key) != nil {
		return key + " is an annotation of Ingresses, and has no effect on a Service"
	}
	var names []string
	for _, name := range Table.Names() {
		names = append(names, strings.TrimPrefix(name, prefix))
	}
	return fmt.Sprintf("the annotation %q does not exist for Services, and has no effect%s", key,
		suggest.Hint(strings.TrimPrefix(key, prefix), names))
}

// close keeps all ports of the Service closed, because an invalid annotation may restrict clients or require
// encryption.
func (s *Settings) close() { s.Closed = true }

// Settings holds the parsed annotations of a Service. They apply to all TCP and UDP ports that forward to this Service.
type Settings struct {
	// TCPPorts and UDPPorts are the ports that annotations of the Service open.
	TCPPorts, UDPPorts []Listed
	Policy             ir.StreamPolicy
	// The following six fields apply only to TCP ports.
	AcceptProxy bool
	Trusted     []string
	SendProxy   ir.ProxyVersion
	// Chains are the names of the stream chains through which connections pass.
	Chains     []string
	TLS        *ir.StreamTLS
	BackendTLS *ir.BackendTLS
	// Closed is true if all ports that forward to the Service must stay closed, because an annotation is invalid.
	Closed bool

	// given is true if at least one of the supported annotations, which Table lists, has a non-empty value.
	given bool
	// tls and backend hold the values of the individual TLS annotations. finishTLS derives the final TLS settings from
	// them. The Secrets to which they refer are in the namespace of the Service.
	tls     ir.StreamTLS
	backend ir.BackendTLS
	overTLS bool
}

// Listed is one entry of the annotation tcp-ports or udp-ports.
type Listed struct {
	Port uint16
	// Target is the number or the name of the Service port.
	Target string
}

// secrets yields the Secrets to which the settings refer.
func (s *Settings) secrets() iter.Seq[ir.Ref] {
	return func(yield func(ir.Ref) bool) {
		if s.TLS != nil && !s.TLS.Secret.IsZero() && !yield(s.TLS.Secret.Of(kinds.Secret)) {
			return
		}
		if s.BackendTLS != nil && !s.BackendTLS.Secret.IsZero() {
			yield(s.BackendTLS.Secret.Of(kinds.Secret))
		}
	}
}
