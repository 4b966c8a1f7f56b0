package annotations

import (
	"cmp"
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/k8singress/k8singress/internal/model/ir"
	"github.com/k8singress/k8singress/internal/model/nginx"
	"github.com/k8singress/k8singress/internal/model/option"
)

// The annotations auth-tls-*, which configure client certificates.
var (
	authTLSSecret = Annotation{
		Name: "auth-tls-secret",
		Doc: "Requires client certificates on all hosts of this Ingress. A client certificate must be issued by a " +
			"certificate authority in `ca.crt` of the Secret, and must not be in a revocation list in `ca.crl`. " +
			"While the Secret is missing or invalid, every request gets 403.\n\n" +
			"The requirement also applies to the paths of other Ingresses on the same host. If several Ingresses of " +
			"a host have the annotation, the annotation of the oldest Ingress applies.",
		Values: "namespace/name of a Secret; if the Secret is not in the namespace of the Ingress, the key " +
			"allow-cross-namespace-resources of the ConfigMap must be `true`",
		Example: "shop/client-ca",
		Default: "no client certificates", Scope: ScopeIngress, Risk: RiskMedium,
		Parse:   nginx.Into(func(s *Settings) *ir.Name { return &s.ClientAuth.Secret }, readSecretName),
		OnError: func(s *Settings) { s.Asked.ClientAuth.NoAuthority = true }, Meanwhile: hostClosed,
	}
	authTLSVerifyClient = Annotation{
		Name: "auth-tls-verify-client",
		Doc: "With `on`, clients without a valid certificate get 400. With `optional`, clients without a certificate " +
			"are allowed. With `optional_no_ca`, clients with a certificate from another certificate authority are " +
			"allowed, too. With `off`, clients are not asked for a certificate. The backend gets the result of the " +
			"verification in the header ssl-client-verify. An invalid value is treated as `on`.",
		Values: "on, off, optional or optional_no_ca", Example: "optional", Default: "on", Scope: ScopeIngress,
		Risk:      RiskMedium,
		Parse:     nginx.Into(func(s *Settings) *ir.ClientVerify { return &s.ClientAuth.Verify }, readVerify),
		Check:     checkAuthority,
		Meanwhile: "it is treated as on",
	}
	authTLSVerifyDepth = Annotation{
		Name: "auth-tls-verify-depth",
		Doc: "The maximum number of certificates between the client's certificate and the root certificate in " +
			"`ca.crt` of the Secret in auth-tls-secret. 0 is treated as 1.",
		Values: "a number from 0 to 100", Example: "2", Default: "1", Scope: ScopeIngress, Risk: RiskLow,
		Parse: nginx.Into(func(s *Settings) *int { return &s.ClientAuth.Depth }, nginx.Number(0, maxDepth)),
		Check: checkAuthority,
	}
	authTLSErrorPage = Annotation{
		Name: "auth-tls-error-page",
		Doc: "The URL to which clients without a valid certificate are redirected with status 302. Without the " +
			"annotation, these clients get 400.",
		Values: "a URL", Example: "https://example.com/certificates", Default: "none", Scope: ScopeIngress,
		Risk:      RiskHigh,
		Parse:     nginx.Into(func(s *Settings) *string { return &s.ClientAuth.ErrorPage }, readErrorPage),
		Check:     checkAuthority,
		Meanwhile: "clients get 400",
	}
	authTLSPassCertificate = Annotation{
		Name:   "auth-tls-pass-certificate-to-upstream",
		Doc:    "Sends the client's certificate to the backend in the header ssl-client-cert, as URL-encoded PEM.",
		Values: booleans, Example: "true", Default: "false", Scope: ScopeIngress, Risk: RiskLow,
		Parse: nginx.Into(func(s *Settings) *bool { return &s.ClientAuth.PassCertificate }, nginx.Bool),
		Check: checkAuthority,
	}
	authTLSMatchCN = Annotation{
		Name: "auth-tls-match-cn",
		Doc: "A regular expression (RE2) that must match the distinguished name in the client's certificate, such as " +
			"`CN=alice,O=Shop`. It may match any part of the name, so `CN=al` also matches `CN=alice`. Clients whose " +
			"name does not match get 403. If the expression is invalid, every client gets 403.",
		Values: "a regular expression that starts with CN=", Example: "CN=alice,", Default: "every client",
		Scope:   ScopeIngress,
		Risk:    RiskHigh,
		Parse:   nginx.Into(func(s *Settings) *string { return &s.ClientAuth.Subject }, readSubject),
		Check:   checkAuthority,
		OnError: func(s *Settings) { s.Asked.ClientAuth.NoSubject = true }, Meanwhile: hostClosed,
	}
)

const maxDepth = 100

const hostClosed = "every request for the hosts of this Ingress gets 403"

func checkAuthority(s *Settings) string {
	return option.Unless(s.AsksClients(), "the setting has no effect without auth-tls-secret, as in ingress-nginx")
}

// AsksClients reports whether the annotations configure client certificates for the hosts of the Ingress. It also
// returns true if the hosts must reject all clients because an annotation is invalid.
func (s *Settings) AsksClients() bool { return !s.ClientAuth.Secret.IsZero() || s.ClientAuth.Closed }

// clientAuth records which annotations are invalid: NoAuthority is true if auth-tls-secret is invalid, and NoSubject is
// true if auth-tls-match-cn is invalid.
type clientAuth struct {
	NoAuthority, NoSubject bool
}

// finishClientAuth sets ClientAuth from the values of auth-tls-*. If a value is invalid, all requests for the hosts get
// 403.
func (s *Settings) finishClientAuth() {
	s.ClientAuth.Closed = s.Asked.ClientAuth.NoAuthority || !s.ClientAuth.Secret.IsZero() &&
		s.Asked.ClientAuth.NoSubject
	if s.ClientAuth.Secret.IsZero() {
		return
	}
	s.ClientAuth.Verify = cmp.Or(s.ClientAuth.Verify, ir.VerifyOn)
	s.ClientAuth.Depth = cmp.Or(s.ClientAuth.Depth, 1)
}

func readSecretName(value string) (ir.Name, error) {
	name, err := ir.ParseName(value)
	if err != nil || len(validation.IsDNS1123Label(name.Namespace)) > 0 ||
		len(validation.IsDNS1123Subdomain(name.Name)) > 0 {
		return ir.Name{}, fmt.Errorf("%s is not the name of a Secret: write namespace/name", nginx.Quote(value))
	}
	return name, nil
}

func readVerify(value string) (ir.ClientVerify, error) {
	switch v := ir.ClientVerify(value); v {
	case ir.VerifyOn, ir.VerifyOff, ir.VerifyOptional, ir.VerifyOptionalNoCA:
		return v, nil
	}
	return "", fmt.Errorf("%s is not one of on, off, optional and optional_no_ca", nginx.Quote(value))
}

func readErrorPage(value string) (string, error) {
	if strings.HasPrefix(value, "@") || strings.HasPrefix(value, "/") {
		return "", nginx.Unsupported(nginx.Quote(value) +
			" is an internal location of nginx, which is not supported: write a URL that starts with https://")
	}
	return readURL(value)
}

func readSubject(value string) (string, error) {
	if !strings.HasPrefix(value, "CN=") {
		return "", fmt.Errorf("%s does not start with CN=", nginx.Quote(value))
	}
	return readPattern(value)
}
