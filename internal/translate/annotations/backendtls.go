package annotations

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/k8singress/k8singress/internal/model/ir"
	"github.com/k8singress/k8singress/internal/model/nginx"
	"github.com/k8singress/k8singress/internal/model/option"
)

// The annotations proxy-ssl-*, which configure TLS connections to endpoints.
var (
	proxySSLSecret = Annotation{
		Name: "proxy-ssl-secret",
		Doc: "The Secret for TLS with the endpoints, with backend-protocol HTTPS, GRPCS or AUTO_HTTP: `tls.crt` and " +
			"`tls.key` are the client certificate, `ca.crt` is the certificate authority that verifies the " +
			"endpoints' certificates, and `ca.crl` lists revoked ones. It may have the pair, the authority, or " +
			"both. While it is missing or cannot be read, every request gets 502; if the annotation cannot be read, " +
			"503. A change of the Secret holds for the next request. It holds for the paths of this Ingress only. " +
			"No other proxy-ssl-* has an effect without it.",
		Values:  "namespace/name of a Secret; another namespace only with allow-cross-namespace-resources",
		Example: "shop/backend-tls",
		Default: "no certificate, and no verification", Scope: ScopeLocation, Risk: RiskMedium,
		Parse:     nginx.Into(func(s *Settings) *ir.Name { return &s.Asked.BackendTLS.Secret }, readSecretName),
		OnError:   func(s *Settings) { s.Asked.BackendTLS.NoSecret = true },
		Meanwhile: "with TLS to the endpoints, " + ingressClosed,
		Check: func(s *Settings) string {
			return option.Unless(s.UsesTLS(),
				"this has no effect, because connections to the endpoints do not use TLS: set backend-protocol to "+
					"HTTPS or GRPCS")
		},
	}
	proxySSLVerify = Annotation{
		Name: "proxy-ssl-verify",
		Doc: "With `on`, an endpoint gets a request only if its certificate was issued by one in `ca.crt` of the " +
			"Secret, and is for the name in proxy-ssl-name. The certificate authorities of the system are not " +
			"trusted. A wrong value is `off`, as in ingress-nginx.",
		Values: onOff, Example: "on", Default: "off", Scope: ScopeLocation, Risk: RiskLow,
		Parse:     nginx.Into(func(s *Settings) *bool { return &s.Asked.BackendTLS.Verify }, nginx.OnOff),
		Meanwhile: "it counts as off, as in ingress-nginx: endpoints are not verified",
		Check: func(s *Settings) string {
			return cmp.Or(checkBackendSecret(s),
				option.Unless(!s.Asked.BackendTLS.Verify || s.Asked.BackendTLS.Name != "" || !s.UsesTLS(), noName))
		},
	}
	proxySSLVerifyDepth = Annotation{
		Name: "proxy-ssl-verify-depth",
		Doc: "How many certificates may stand between the certificate of an endpoint and its root in `ca.crt`. " +
			"0 is 1.",
		Values: "a number from 0 to 100", Example: "2", Default: "1", Scope: ScopeLocation, Risk: RiskLow,
		Parse: nginx.Into(func(s *Settings) *int { return &s.Asked.BackendTLS.Depth },
			nginx.Number(0, mostBackendDepth)), Check: checkBackendSecret,
	}
	proxySSLName = Annotation{
		Name: "proxy-ssl-name",
		Doc: "The name that the certificate of an endpoint has to be for, with proxy-ssl-verify, and that is sent " +
			"in the handshake (SNI), with proxy-ssl-server-name. The default, " + proxyHost +
			", is what ingress-nginx calls every backend: set the name for verification.",
		Values: "a name", Example: "web.shop.svc", Default: proxyHost, Scope: ScopeLocation, Risk: RiskHigh,
		Parse: nginx.Into(func(s *Settings) *string { return &s.Asked.BackendTLS.Name },
			nginx.Chars(".-_:", mostDomainBytes)),
		Check: checkBackendSecret,
	}
	proxySSLServerName = Annotation{
		Name:   "proxy-ssl-server-name",
		Doc:    "With `on`, the name in proxy-ssl-name is sent in the handshake (SNI).",
		Values: onOff, Example: "on", Default: "off", Scope: ScopeLocation, Risk: RiskLow,
		Parse: nginx.Into(func(s *Settings) *bool { return &s.Asked.BackendTLS.SendName }, nginx.OnOff),
		Check: checkBackendSecret,
	}
	proxySSLProtocols = Annotation{
		Name: "proxy-ssl-protocols",
		Doc: "The versions of TLS with endpoints: all from the oldest to the newest one given. Versions before " +
			"TLSv1 are not supported.",
		Values: "some of TLSv1, TLSv1.1, TLSv1.2 and TLSv1.3, with spaces between them", Example: "TLSv1.3",
		Default: "TLSv1.2 TLSv1.3",
		Scope:   ScopeLocation, Risk: RiskLow,
		Parse: readProtocols, Check: checkBackendSecret,
	}
	proxySSLCiphers = Annotation{
		Name: "proxy-ssl-ciphers",
		Doc: "The ciphers for TLS 1.2 and older with endpoints, by OpenSSL's names. Their order means nothing, and " +
			"the ciphers of TLS 1.3 are always on.",
		Values:  "names with colons between them: " + strings.Join(cipherNames(), ", "),
		Example: "ECDHE-RSA-AES256-GCM-SHA384",
		Default: "the secure ones", Scope: ScopeLocation, Risk: RiskMedium,
		Parse: nginx.Into(func(s *Settings) *string { return &s.Asked.BackendTLS.Ciphers },
			func(value string) (string, error) {
				ciphers, err := readCiphers(value)
				return strings.Join(ciphers, " "), err
			}),
		Check: checkBackendSecret,
	}
)

const (
	// proxyHost is the value of nginx's $proxy_host, which is the same for all locations of ingress-nginx.
	proxyHost        = "upstream_balancer"
	mostBackendDepth = 100
	noName           = "without proxy-ssl-name the certificate of an endpoint has to be for " + proxyHost +
		", as in ingress-nginx, or " +
		"every request gets 502: set proxy-ssl-name to a name of the certificate"
)

func checkBackendSecret(s *Settings) string {
	return option.Unless(!s.Asked.BackendTLS.Secret.IsZero() || s.Asked.BackendTLS.NoSecret,
		"this has no effect without proxy-ssl-secret, as in ingress-nginx")
}

// UsesTLS reports whether connections to the endpoints use TLS, always or for some requests.
func (s *Settings) UsesTLS() bool {
	return slices.Contains([]ir.BackendProtocol{ir.HTTPS, ir.GRPCS, ir.AutoHTTP}, s.Forwarding.Protocol)
}

// backendTLS holds the values of proxy-ssl-*. They take effect only with a Secret, and zero fields have their defaults.
// NoSecret means that proxy-ssl-secret is invalid.
type backendTLS struct {
	ir.BackendTLS
	NoSecret bool
}

// finishBackendTLS combines the values of proxy-ssl-*. If proxy-ssl-secret is invalid, all requests get 503, because it
// is unknown how to verify the endpoints.
func (s *Settings) finishBackendTLS() {
	s.Forwarding.TLS = nil
	if !s.UsesTLS() {
		return
	}
	if s.Asked.BackendTLS.NoSecret {
		s.Closed = true
		return
	}
	if s.Asked.BackendTLS.Secret.IsZero() {
		return
	}
	all := s.Asked.BackendTLS.BackendTLS
	all.Name, all.Depth = cmp.Or(all.Name, proxyHost), cmp.Or(all.Depth, 1)
	s.Forwarding.TLS = &all
}

// protocolNames are nginx's names for ir.TLSVersions, in the same order.
var protocolNames = []string{"TLSv1", "TLSv1.1", "TLSv1.2", "TLSv1.3"}

func readProtocols(s *Settings, value string) error {
	found := map[int]bool{}
	least, most, gone := len(protocolNames), -1, []string(nil)
	for _, name := range strings.Fields(value) {
		i := slices.Index(protocolNames, name)
		switch {
		case name == "SSLv2" || name == "SSLv3":
			gone = append(gone, name)
		case i < 0:
			return fmt.Errorf("%s is not one of TLSv1, TLSv1.1, TLSv1.2 and TLSv1.3, with spaces between them",
				nginx.Quote(name))
		default:
			found[i], least, most = true, min(least, i), max(most, i)
		}
	}
	if most < 0 {
		return fmt.Errorf("%s has no version that is supported: write some of TLSv1, TLSv1.1, TLSv1.2 and TLSv1.3",
			nginx.Quote(value))
	}
	s.Asked.BackendTLS.MinVersion, s.Asked.BackendTLS.MaxVersion = ir.TLSVersions[least], ir.TLSVersions[most]
	switch {
	case len(gone) > 0:
		return nginx.Remark("left out, because it is not supported: " + strings.Join(gone, " "))
	case len(found) <= most-least:
		return nginx.Remark("all versions from " + protocolNames[least] + " to " + protocolNames[most] +
			" are offered, without a gap")
	}
	return nil
}
