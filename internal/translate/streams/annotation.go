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

// Annotation is one row of the table.
type Annotation = option.Row[Settings, string]

// Table lists the annotations of Services. A new annotation needs a line here, and a row in the file of its feature.
var Table = option.Table[Settings, string]{
	tcpPorts, udpPorts,
	streamIdleTimeout, streamConnectTimeout, streamMaxConnections, streamResponses,
	streamAcceptProxy, streamTrustedProxies, streamProxyProtocol,
	streamTLSSecret, streamTLSHost,
	streamBackendTLS, streamBackendTLSSecret, streamBackendTLSVerify, streamBackendTLSName,
}

const (
	prefix      = kinds.OwnPrefix
	staysClosed = "the ports of this Service stay closed"
)

// Parse reads the annotations of a Service. Settings without an annotation come from policy. An invalid annotation is
// reported and ignored, and the others take effect. For some annotations an invalid value keeps the ports closed.
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

// unknown returns the warning for an annotation with our prefix that is not in the table.
func unknown(key string) string {
	if annotations.Table.Find(key) != nil {
		return key + " is an annotation of Ingresses, and has no effect on a Service"
	}
	var names []string
	for _, name := range Table.Names() {
		names = append(names, strings.TrimPrefix(name, prefix))
	}
	return fmt.Sprintf("there is no annotation %q for Services, and it has no effect%s", key,
		suggest.Hint(strings.TrimPrefix(key, prefix), names))
}

// close keeps the ports closed, because an invalid value may restrict clients or require encryption.
func (s *Settings) close() { s.Closed = true }

// Settings holds the annotations of one Service as typed values. They apply to all ports that lead to the Service.
type Settings struct {
	// TCPPorts and UDPPorts are the ports that the Service itself requests.
	TCPPorts, UDPPorts []Listed
	Policy             ir.StreamPolicy
	// The next five fields apply to TCP only.
	AcceptProxy bool
	Trusted     []string
	SendProxy   ir.ProxyVersion
	TLS         *ir.StreamTLS
	BackendTLS  *ir.BackendTLS
	// Closed keeps the ports closed, because an invalid annotation may restrict clients.
	Closed bool

	// given means that the Service has at least one annotation of the table.
	given bool
	// tls and backend are the values of single annotations, which finishTLS combines. Secrets are names in the
	// namespace of the Service.
	tls     ir.StreamTLS
	backend ir.BackendTLS
	overTLS bool
}

// Listed is one entry in a list of ports.
type Listed struct {
	Port uint16
	// Target is the port of the Service, by number or name.
	Target string
}

// secrets yields the Secrets that the settings name.
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
