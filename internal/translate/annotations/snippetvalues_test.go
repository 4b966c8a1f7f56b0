package annotations_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/k8singress/k8singress/internal/model/ir"
	"github.com/k8singress/k8singress/internal/model/report"
	"github.com/k8singress/k8singress/internal/translate/annotations"
)

// tlsOf returns the TLS settings for endpoints with a snippet, or nil if all requests get 503.
func tlsOf(snippet string) (*ir.BackendTLS, []report.Problem) {
	defaults := all
	defaults.Ingress = ir.Name{Namespace: "shop", Name: "web"}
	s, problems := annotations.Parse(defaults, map[string]string{
		annotations.Prefix + "backend-protocol":      "HTTPS",
		annotations.Prefix + "configuration-snippet": strings.ReplaceAll(snippet, "SSL", "/etc/ingress-controller/ssl"),
	})
	if s.Closed {
		return nil, problems
	}
	return s.Forwarding.TLS, problems
}

// TestTLSOfSnippets checks the meaning of nginx's directives for TLS connections to endpoints. Files stand for Secrets
// of the Ingress's namespace.
func TestTLSOfSnippets(t *testing.T) {
	secret := func(name string) ir.Name { return ir.Name{Namespace: "shop", Name: name} }
	for snippet, want := range map[string]ir.BackendTLS{
		"proxy_ssl_server_name on; proxy_ssl_name $HOST;":      {Name: "$host", SendName: true},
		"proxy_ssl_certificate SSL/shop-a.pem;":                {Secret: secret("a")},
		"grpc_ssl_certificate_key SSL/shop-a.b.pem;":           {Secret: secret("a.b")},
		"proxy_ssl_trusted_certificate SSL/ca-shop-a-shop.pem": {Secret: secret("a-shop")},
		"proxy_ssl_certificate SSL/shop-a.pem; proxy_ssl_certificate_key SSL/shop-a.pem; proxy_ssl_name a.example; " +
			"proxy_ssl_trusted_certificate SSL/shop-a.pem; proxy_ssl_crl SSL/crl-shop-a.pem; proxy_ssl_verify on; " +
			"proxy_ssl_verify_depth 2": {Secret: secret("a"), Verify: true, Depth: 2, Name: "a.example"},
	} {
		if want.Depth == 0 {
			want.Depth = 1
		}
		if want.Name == "" {
			want.Name = "upstream_balancer"
		}
		got, problems := tlsOf(strings.TrimSuffix(snippet, ";") + ";")
		if diff := cmp.Diff(&want, got); diff != "" || problems != nil {
			t.Errorf("%s: (-want +got)\n%s%v", snippet, diff, problems)
		}
	}
}

// TestUnknownFilesOfSnippets checks that files that stand for no Secret are left out with a warning. All requests get
// 503 if such a file decides which endpoints are trusted, and endpoints are verified.
func TestUnknownFilesOfSnippets(t *testing.T) {
	const verify = "proxy_ssl_verify on; grpc_ssl_name a; "
	for _, c := range []struct{ snippet, problem string }{
		{"proxy_ssl_certificate /a.pem; " + verify, "warning: tls.crt"},
		{"proxy_ssl_certificate_key SSL/other-a.pem; " + verify, "warning: tls.key"},
		{"proxy_ssl_trusted_certificate /a.pem;", "warning: ca.crt"},
		{verify + "proxy_ssl_trusted_certificate /a.pem;", "error: ca.crt"},
		{"proxy_ssl_trusted_certificate SSL/shop-../a.pem; " + verify, "error: ca.crt"},
		{"proxy_ssl_trusted_certificate SSL/shop-.pem; " + verify, "error: ca.crt"},
		{"proxy_ssl_trusted_certificate SSL/shop-a.key; " + verify, "error: ca.crt"},
		{"grpc_ssl_crl /a.pem; " + verify, "error: ca.crl"},
		{"grpc_ssl_crl /a.pem;", "warning: ca.crl"},
		{"proxy_ssl_certificate SSL/shop-a.pem; proxy_ssl_trusted_certificate SSL/ca-shop-b.pem;",
			"warning: which is shop/a: write ca.crt into it"},
		{"proxy_ssl_certificate SSL/shop-a.pem; proxy_ssl_trusted_certificate SSL/ca-shop-b.pem; " + verify,
			"error: which is shop/a: write ca.crt into it"},
	} {
		tls, problems := tlsOf(c.snippet)
		severity, text, _ := strings.Cut(c.problem, ": ")
		if len(problems) != 1 || string(problems[0].Severity) != severity ||
			!strings.Contains(problems[0].Message, text) {
			t.Errorf("%s: %v, want %s", c.snippet, problems, c.problem)
		}
		if closed := severity == "error"; closed != (tls == nil) {
			t.Errorf("%s: the TLS settings are %v", c.snippet, tls)
		}
	}
}
