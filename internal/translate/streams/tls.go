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

// The annotations for TLS, which apply to TCP only.
var (
	streamTLSSecret = Annotation{
		Name: prefix + "stream-tls-secret",
		Doc: "The TLS of clients ends at the port, with the certificate and key in this Secret, and the endpoints " +
			"get the plain bytes. The ports are never opened without TLS then.",
		Values: ownSecret, Example: "pg-tls", Default: "bytes are passed on as they come",
		Parse:   nginx.Into(func(s *Settings) *string { return &s.tls.Secret.Name }, readSecret),
		OnError: (*Settings).close, Meanwhile: staysClosed,
	}
	streamTLSHost = Annotation{
		Name: prefix + "stream-tls-host",
		Doc: "As stream-tls-secret, with a certificate for this host that an issuer is asked for, as for the " +
			"hosts of Ingresses.",
		Values: "a host name", Example: "db.example.com", Default: "none",
		Parse:   nginx.Into(func(s *Settings) *string { return &s.tls.Host }, readHost),
		OnError: (*Settings).close, Meanwhile: staysClosed,
		Check: func(s *Settings) string {
			return option.Unless(s.tls.Secret.Name == "",
				"this has no effect beside "+streamTLSSecret.Name+": remove one of them")
		},
	}
	streamBackendTLS = Annotation{
		Name: prefix + "stream-backend-tls",
		Doc: "Connections to the endpoints use TLS. Without stream-backend-tls-verify their certificates are not " +
			"verified.",
		Values: booleans, Example: "true", Default: "false",
		Parse: nginx.Into(func(s *Settings) *bool { return &s.overTLS }, nginx.Bool), OnError: (*Settings).close,
		Meanwhile: staysClosed,
	}
	streamBackendTLSSecret = Annotation{
		Name: prefix + "stream-backend-tls-secret",
		Doc: "The Secret for TLS with the endpoints: `tls.crt` and `tls.key` are the client certificate, `ca.crt` " +
			"is the certificate authority that verifies the endpoints' certificates. It may have the pair, the " +
			"authority, or both. While it cannot be used, connections are closed.",
		Values: ownSecret, Example: "pg-client", Default: "no certificate, and no verification",
		Parse:   nginx.Into(func(s *Settings) *string { return &s.backend.Secret.Name }, readSecret),
		OnError: (*Settings).close, Meanwhile: staysClosed, Check: checkOverTLS,
	}
	streamBackendTLSVerify = Annotation{
		Name: prefix + "stream-backend-tls-verify",
		Doc: "An endpoint gets a connection only if its certificate was issued by one in `ca.crt` of the Secret, " +
			"and is for the name in stream-backend-tls-name.",
		Values: booleans, Example: "true", Default: "false",
		Parse:   nginx.Into(func(s *Settings) *bool { return &s.backend.Verify }, nginx.Bool),
		OnError: (*Settings).close, Meanwhile: staysClosed, Check: checkOverTLS,
	}
	streamBackendTLSName = Annotation{
		Name:   prefix + "stream-backend-tls-name",
		Doc:    "The name that the certificate of an endpoint has to be for, and that is sent in the handshake (SNI).",
		Values: "a host name", Example: "pg.internal", Default: "SERVICE.NAMESPACE.svc where certificates are verified",
		Parse:   nginx.Into(func(s *Settings) *string { return &s.backend.Name }, readHost),
		OnError: (*Settings).close, Meanwhile: staysClosed, Check: checkOverTLS,
	}
)

func checkOverTLS(s *Settings) string {
	return option.Unless(s.overTLS,
		"this has no effect, because connections to the endpoints do not use TLS: set "+
			streamBackendTLS.Name+` to "true"`)
}

// readSecret reads the name of a Secret. A Secret of another namespace is not allowed.
func readSecret(value string) (string, error) {
	if strings.Contains(value, "/") {
		return "",
			fmt.Errorf(
				"%s has a namespace in it: write the name of a Secret in the namespace of the Service, and "+
					"nothing else",
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
		return "", fmt.Errorf("%s is not a host name, such as db.example.com", nginx.Quote(value))
	}
	return host, nil
}

const unproven = "this needs stream-backend-tls-secret, with the certificate authority that verifies the endpoints; " +
	"meanwhile, " + staysClosed

// finishTLS combines the values of the TLS annotations.
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
