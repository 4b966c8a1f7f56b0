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
		Doc: "The Secret for TLS connections to endpoints, with backend-protocol HTTPS, GRPCS or AUTO_HTTP. " +
			"`tls.crt` and `tls.key` contain the client certificate and its key, `ca.crt` contains the certificate " +
			"authority for the endpoints' certificates, and `ca.crl` lists revoked certificates. The Secret may " +
			"contain the client certificate, the certificate authority, or both.\n\n" +
			"While the Secret is missing or invalid, every request gets 502. If the value of the annotation is " +
			"invalid, every request gets 503. A change of the Secret applies from the next request on.\n\n" +
			"The annotation applies only to the paths of this Ingress. Without proxy-ssl-secret, the other " +
			"proxy-ssl-* annotations have no effect.",
		Values: "namespace/name of a Secret; if the Secret is not in the namespace of the Ingress, the key " +
			"allow-cross-namespace-resources of the ConfigMap must be `true`",
		Example: "shop/backend-tls",
		Default: "no certificate, and no verification", Scope: ScopeLocation, Risk: RiskMedium,
		Parse:     nginx.Into(func(s *Settings) *ir.Name { return &s.Asked.BackendTLS.Secret }, readSecretName),
		OnError:   func(s *Settings) { s.Asked.BackendTLS.NoSecret = true },
		Meanwhile: "with TLS to the endpoints, " + ingressClosed,
		Check: func(s *Settings) string {
			return option.Unless(s.UsesTLS(),
				"the setting has no effect, because connections to the endpoints do not use TLS: set "+
					"backend-protocol to HTTPS or GRPCS")
		},
	}
	proxySSLVerify = Annotation{
		Name: "proxy-ssl-verify",
		Doc: "With `on`, an endpoint gets requests only if its certificate is issued by a certificate authority in " +
			"`ca.crt` of the Secret in proxy-ssl-secret, and is valid for the name in proxy-ssl-name. The system's " +
			"certificate authorities are not trusted. An invalid value is treated as `off`, as in ingress-nginx.",
		Values: onOff, Example: "on", Default: "off", Scope: ScopeLocation, Risk: RiskLow,
		Parse:     nginx.Into(func(s *Settings) *bool { return &s.Asked.BackendTLS.Verify }, nginx.OnOff),
		Meanwhile: "the value is treated as \"off\", as in ingress-nginx: certificates are not verified",
		Check: func(s *Settings) string {
			return cmp.Or(checkBackendSecret(s),
				option.Unless(!s.Asked.BackendTLS.Verify || s.Asked.BackendTLS.Name != "" || !s.UsesTLS(), noName))
		},
	}
	proxySSLVerifyDepth = Annotation{
		Name: "proxy-ssl-verify-depth",
		Doc: "The maximum number of certificates between an endpoint's certificate and the root certificate in " +
			"`ca.crt` of the Secret in proxy-ssl-secret. 0 is treated as 1.",
		Values: "a number from 0 to 100", Example: "2", Default: "1", Scope: ScopeLocation, Risk: RiskLow,
		Parse: nginx.Into(func(s *Settings) *int { return &s.Asked.BackendTLS.Depth },
			nginx.Number(0, maxBackendDepth)), Check: checkBackendSecret,
	}
	proxySSLName = Annotation{
		Name: "proxy-ssl-name",
		Doc: "The name to expect in an endpoint's certificate (with proxy-ssl-verify), and to send as SNI (with " +
			"proxy-ssl-server-name). Set proxy-ssl-name if certificates are verified: the default, " + proxyHost +
			", is ingress-nginx's internal name for every backend.",
		Values: "a name", Example: "web.shop.svc", Default: proxyHost, Scope: ScopeLocation, Risk: RiskHigh,
		Parse: nginx.Into(func(s *Settings) *string { return &s.Asked.BackendTLS.Name },
			nginx.Chars(".-_:", maxDomainBytes)),
		Check: checkBackendSecret,
	}
	proxySSLServerName = Annotation{
		Name:   "proxy-ssl-server-name",
		Doc:    "With `on`, the name in proxy-ssl-name is sent as SNI.",
		Values: onOff, Example: "on", Default: "off", Scope: ScopeLocation, Risk: RiskLow,
		Parse: nginx.Into(func(s *Settings) *bool { return &s.Asked.BackendTLS.SendName }, nginx.OnOff),
		Check: checkBackendSecret,
	}
	proxySSLProtocols = Annotation{
		Name: "proxy-ssl-protocols",
		Doc: "The TLS versions for connections to endpoints: all versions from the oldest to the newest one in " +
			"the list. Versions before TLSv1 are not supported.",
		Values: "space-separated list of TLSv1, TLSv1.1, TLSv1.2 and TLSv1.3", Example: "TLSv1.3",
		Default: "TLSv1.2 TLSv1.3",
		Scope:   ScopeLocation, Risk: RiskLow,
		Parse: readProtocols, Check: checkBackendSecret,
	}
	proxySSLCiphers = Annotation{
		Name: "proxy-ssl-ciphers",
		Doc: "The ciphers for connections to endpoints with TLS 1.2 and older, by their OpenSSL names. The " +
			"order has no effect, and TLS 1.3 ciphers are always enabled.",
		Values:  "colon-separated names: " + strings.Join(cipherNames(), ", "),
		Example: "ECDHE-RSA-AES256-GCM-SHA384",
		Default: "all secure ciphers", Scope: ScopeLocation, Risk: RiskMedium,
		Parse: nginx.Into(func(s *Settings) *string { return &s.Asked.BackendTLS.Ciphers },
			func(value string) (string, error) {
				ciphers, err := readCiphers(value)
				return strings.Join(ciphers, " "), err
			}),
		Check: checkBackendSecret,
	}
)

const (
	// proxyHost is the value of nginx's variable $proxy_host, which is the same for all locations in ingress-nginx.
	proxyHost       = "upstream_balancer"
	maxBackendDepth = 100
	noName          = "without proxy-ssl-name, every request gets 502 unless the certificate of the endpoint is " +
		"valid for " + proxyHost + ", as in ingress-nginx: set proxy-ssl-name to a name in the certificate"
)

func checkBackendSecret(s *Settings) string {
	asked := &s.Asked.BackendTLS
	return option.Unless(!asked.Secret.IsZero() || asked.NoSecret || asked.WithoutSecret,
		"the setting has no effect without proxy-ssl-secret, as in ingress-nginx")
}

// UsesTLS reports whether at least some requests are forwarded to the endpoints over TLS.
func (s *Settings) UsesTLS() bool {
	return slices.Contains([]ir.BackendProtocol{ir.HTTPS, ir.GRPCS, ir.AutoHTTP}, s.Forwarding.Protocol)
}

// backendTLS holds the values of the annotations proxy-ssl-*. Zero fields stand for the default values. NoSecret is
// true if proxy-ssl-secret is invalid. The values have no effect if proxy-ssl-secret is not set, unless WithoutSecret
// is true: a snippet sets some of them with nginx's directives proxy_ssl_*, which need no Secret.
type backendTLS struct {
	ir.BackendTLS
	NoSecret, WithoutSecret bool
}

// finishBackendTLS sets Forwarding.TLS from the values of proxy-ssl-*. If proxy-ssl-secret is invalid, all requests get
// 503, because the certificates of the endpoints cannot be verified.
func (s *Settings) finishBackendTLS() {
	s.Forwarding.TLS = nil
	if !s.UsesTLS() {
		return
	}
	if s.Asked.BackendTLS.NoSecret {
		s.Closed = true
		return
	}
	if s.Asked.BackendTLS.Secret.IsZero() && !s.Asked.BackendTLS.WithoutSecret {
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
			return fmt.Errorf("%s is not one of TLSv1, TLSv1.1, TLSv1.2 and TLSv1.3: write space-separated versions",
				nginx.Quote(name))
		default:
			found[i], least, most = true, min(least, i), max(most, i)
		}
	}
	if most < 0 {
		return fmt.Errorf("%s contains no supported version: write one or more of TLSv1, TLSv1.1, TLSv1.2 and TLSv1.3",
			nginx.Quote(value))
	}
	s.Asked.BackendTLS.MinVersion, s.Asked.BackendTLS.MaxVersion = ir.TLSVersions[least], ir.TLSVersions[most]
	switch {
	case len(gone) > 0:
		return nginx.Remark("these TLS versions are ignored, because they are not " +
			"supported: " + strings.Join(gone, " "))
	case len(found) <= most-least:
		return nginx.Remark("all versions from " + protocolNames[least] + " to " + protocolNames[most] +
			" are offered, including the versions between them")
	}
	return nil
}
