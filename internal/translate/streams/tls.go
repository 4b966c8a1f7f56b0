package streams

import (
	"cmp"
	"fmt"
	"net/netip"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/k8singress/k8singress/internal/model/ir"
	"github.com/k8singress/k8singress/internal/model/nginx"
	"github.com/k8singress/k8singress/internal/model/option"
	"github.com/k8singress/k8singress/internal/model/report"
)

const ownSecret = "the name of a Secret in the namespace of the Service"

// The annotations for TLS. They apply only to TCP ports.
var (
	streamTLSSecret = Annotation{
		Name: prefix + "stream-tls-secret",
		Doc: "Terminates the TLS connections of clients with the certificate and key in this Secret, and sends the " +
			"decrypted data to the endpoints. The ports are never opened without TLS.",
		Values: ownSecret, Example: "pg-tls", Default: "data is forwarded unchanged",
		Parse:   nginx.Into(func(s *Settings) *string { return &s.tls.Secret.Name }, readSecret),
		OnError: (*Settings).close, Meanwhile: staysClosed,
	}
	streamTLSHost = Annotation{
		Name: prefix + "stream-tls-host",
		Doc: "Like stream-tls-secret, but with a certificate that the controller gets for this host from an issuer, " +
			"as for the hosts of Ingresses.",
		Values: "a host name", Example: "db.example.com", Default: "none",
		Parse:   nginx.Into(func(s *Settings) *string { return &s.tls.Host }, readHost),
		OnError: (*Settings).close, Meanwhile: staysClosed,
		Check: func(s *Settings) string {
			return option.Unless(s.tls.Secret.Name == "",
				"the setting has no effect, because "+streamTLSSecret.Name+" takes precedence: remove one of them")
		},
	}
	streamBackendTLS = Annotation{
		Name: prefix + "stream-backend-tls",
		Doc: "Uses TLS for connections to the endpoints. The certificates of the endpoints are verified only with " +
			"stream-backend-tls-verify.",
		Values: booleans, Example: "true", Default: "false",
		Parse: nginx.Into(func(s *Settings) *bool { return &s.overTLS }, nginx.Bool), OnError: (*Settings).close,
		Meanwhile: staysClosed,
	}
	streamBackendTLSSecret = Annotation{
		Name: prefix + "stream-backend-tls-secret",
		Doc: "The Secret for TLS connections to endpoints. `tls.crt` and `tls.key` contain the client certificate " +
			"and its key, and `ca.crt` contains the certificate authority for the endpoints' certificates. The " +
			"Secret may contain the client certificate, the certificate authority, or both. While the Secret is " +
			"missing or invalid, connections are closed.",
		Values: ownSecret, Example: "pg-client", Default: "no certificate, and no verification",
		Parse:   nginx.Into(func(s *Settings) *string { return &s.backend.Secret.Name }, readSecret),
		OnError: (*Settings).close, Meanwhile: staysClosed, Check: checkOverTLS,
	}
	streamBackendTLSVerify = Annotation{
		Name: prefix + "stream-backend-tls-verify",
		Doc: "Forwards connections to an endpoint only if its certificate is issued by a certificate authority in " +
			"`ca.crt` of the Secret in stream-backend-tls-secret, and is valid for the name in " +
			"stream-backend-tls-name.",
		Values: booleans, Example: "true", Default: "false",
		Parse:   nginx.Into(func(s *Settings) *bool { return &s.backend.Verify }, nginx.Bool),
		OnError: (*Settings).close, Meanwhile: staysClosed, Check: checkOverTLS,
	}
	streamBackendTLSName = Annotation{
		Name:   prefix + "stream-backend-tls-name",
		Doc:    "The name to expect in an endpoint's certificate, and to send as SNI.",
		Values: "a host name", Example: "pg.internal", Default: "SERVICE.NAMESPACE.svc if certificates are verified",
		Parse:   nginx.Into(func(s *Settings) *string { return &s.backend.Name }, readHost),
		OnError: (*Settings).close, Meanwhile: staysClosed, Check: checkOverTLS,
	}
)

func checkOverTLS(s *Settings) string {
	return option.Unless(s.overTLS,
		"the setting has no effect, because connections to the endpoints do not use TLS: set "+
			streamBackendTLS.Name+` to "true"`)
}

// readSecret parses the name of a Secret. It rejects a name with a namespace, because the Secret must be in the
// namespace of the Service.
func readSecret(value string) (string, error) {
	if strings.Contains(value, "/") {
		return "",
			fmt.Errorf(
				"%s contains a namespace: write only the name of a Secret in the namespace of the Service",
				nginx.Quote(value))
	}
	if len(validation.IsDNS1123Subdomain(value)) > 0 {
		return "", fmt.Errorf("%s is not the name of a Secret: write lower-case letters, digits, hyphens and dots",
			nginx.Quote(value))
	}
	return value, nil
}

func readHost(value string) (string, error) {
	host := strings.ToLower(value)
	if _, err := netip.ParseAddr(host); err == nil || len(validation.IsDNS1123Subdomain(host)) > 0 {
		return "", fmt.Errorf("%s is not a host name such as db.example.com", nginx.Quote(value))
	}
	return host, nil
}

const unproven = "this requires stream-backend-tls-secret with the certificate authority that verifies the " +
	"endpoints" + report.Meanwhile + staysClosed

// finishTLS derives the TLS settings from the values of single annotations.
func finishTLS(r *option.Reading[Settings], service *corev1.Service) {
	s := r.Settings
	switch {
	case s.tls.Secret.Name != "":
		s.TLS = &ir.StreamTLS{Secret: ir.Name{Namespace: service.Namespace, Name: s.tls.Secret.Name}}
	case s.tls.Host != "":
		s.TLS = &ir.StreamTLS{Host: s.tls.Host}
	}
	if !s.overTLS {
		return
	}
	t := s.backend
	if t.Verify && t.Secret.Name == "" {
		s.close()
		r.Refuse(report.InvalidAnnotation, report.AnnotationField(streamBackendTLSVerify.Name), unproven)
	}
	if t.Verify {
		t.Name, t.Depth = cmp.Or(t.Name, service.Name+"."+service.Namespace+".svc"), 1
	}
	if t.SendName = t.Name != ""; t.Secret.Name != "" {
		t.Secret.Namespace = service.Namespace
	}
	s.BackendTLS = &t
}
