package exchange_test

import (
	"crypto/tls"
	"net/netip"
	"testing"
	"testing/synctest"

	"go.opentelemetry.io/otel/trace"

	"github.com/k8singress/k8singress/internal/http/exchange"
	"github.com/k8singress/k8singress/internal/http/mtls"
	"github.com/k8singress/k8singress/internal/model/ir"
	"github.com/k8singress/k8singress/internal/tests/exchangetest"
	"github.com/k8singress/k8singress/internal/upstream/balancer"
)

func TestParseTemplate(t *testing.T) {
	for _, text := range []string{"$host", "${http_x_user}", "$cookie_a_B$arg_q", "$https", "a$1", "$defined"} {
		if _, err := exchange.ParseTemplate(text, "1"); err != nil {
			t.Errorf("%q: %v", text, err)
		}
	}
	for _, text := range []string{"$", "a$1", "${http_x-y}", "$status", "$sent_http_a", "$upstream_http_a"} {
		if _, err := exchange.ParseTemplate(text); err == nil {
			t.Errorf("%q is read as a template", text)
		}
	}
}

// variableCases has the values of each variable for the two requests of TestVariables: the first has everything that a
// request can have, and the second almost nothing.
var variableCases = map[string][2]string{
	"args":                      {"x=1&Y=a%20b&y=c", ""},
	"best_http_host":            {"Shop.example:8443", ""},
	"binary_remote_addr":        {"\xc0\x00\x02\x01", ""},
	"content_length":            {"7", ""},
	"content_type":              {"text/plain", ""},
	"document_uri":              {"/a b/d", "/"},
	"escaped_request_uri":       {"%2Fa%2520b%2F%2Fc%2F..%2Fd%3Fx%3D1%26Y%3Da%2520b%26y%3Dc", "%2F"},
	"host":                      {"shop.example", ""},
	"http_host":                 {"Shop.example:8443", ""},
	"http2":                     {"h2", ""},
	"https":                     {"on", ""},
	"ingress_name":              {"web", ""},
	"is_args":                   {"?", ""},
	"location_path":             {"/a", ""},
	"msec":                      {"946684800.000", "946684800.000"},
	"namespace":                 {"shop", ""},
	"pass_access_scheme":        {"https", "http"},
	"proxy_add_x_forwarded_for": {"203.0.113.9, 203.0.113.10, 192.0.2.1", ""},
	"proxy_upstream_name":       {"shop-app-http", ""},
	"realip_remote_addr":        {"192.0.2.1", ""},
	"realip_remote_port":        {"4711", ""},
	"remote_user":               {"carol", ""},
	"request":                   {"POST /a%20b//c/../d?x=1&Y=a%20b&y=c HTTP/2.0", "GET / HTTP/1.0"},
	"request_length":            {"295", "47"},
	"ssl_cipher":                {"TLS_AES_128_GCM_SHA256", ""},
	"ssl_protocol":              {"TLSv1.3", ""},
	"ssl_server_name":           {"shop.example", ""},
	"query_string":              {"x=1&Y=a%20b&y=c", ""},
	"remote_addr":               {"192.0.2.1", ""},
	"remote_port":               {"4711", ""},
	"req_id":                    {"me", ""},
	"request_id":                {"me", ""},
	"request_method":            {"POST", "GET"},
	"request_uri":               {"/a%20b//c/../d?x=1&Y=a%20b&y=c", "/"},
	"scheme":                    {"https", "http"},
	"server_addr":               {"198.51.100.1", ""},
	"server_name":               {"*.example", "_"},
	"server_port":               {"443", "80"},
	"server_protocol":           {"HTTP/2.0", "HTTP/1.0"},
	"service_name":              {"app", ""},
	"service_port":              {"http", ""},
	"ssl_client_escaped_cert":   {"", ""},
	"ssl_client_i_dn":           {"CN=authority", ""},
	"ssl_client_s_dn":           {"CN=alice", ""},
	"ssl_client_verify":         {"SUCCESS", ""},
	"status":                    {"404", "000"},
	"the_real_ip":               {"192.0.2.1", ""},
	"upstream_addr":             {"a:1, a:1", ""},
	"upstream_status":           {"502, 404", ""},
	"uri":                       {"/a b/d", "/"},

	"opentelemetry_context_traceparent": {"00-a", ""},
	"opentelemetry_span_id":             {"0200000000000000", ""},
	"opentelemetry_trace_id":            {"01000000000000000000000000000000", ""},
}

// otherVariables are variables whose names contain the name of a field, a cookie or an argument, and unknown ones.
var otherVariables = map[string][2]string{
	"http_x_user": {"bob, alice", ""}, "http_host_": {"", ""}, "http_": {"", ""},
	"cookie_session": {"1", ""}, "cookie_SESSION": {"1", ""}, "cookie_none": {"", ""},
	"arg_x": {"1", ""}, "arg_y": {"a%20b", ""}, "arg_none": {"", ""},
	"sent_http_x_user": {"", ""}, "upstream_http_x_user": {"", ""}, "upstream_cookie_a": {"", ""},
	"nosuch": {"", ""}, "": {"", ""}, "1": {"", ""},
}

func TestVariables(t *testing.T) {
	for _, name := range exchange.VariableNames() {
		if _, ok := variableCases[name]; !ok {
			t.Errorf("variableCases has no values of $%s", name)
		}
	}
	synctest.Test(t, func(t *testing.T) {
		full, _ := exchangetest.New(t, "POST https://Shop.example:8443/a%20b//c/../d?x=1&Y=a%20b&y=c"+
			" | X-Request-ID: me | X-User: bob | x-user: alice | Content-Type: text/plain | Cookie: a=b; Session=1"+
			" | traceparent: 00-a | Authorization: Basic Y2Fyb2w6c2VjcmV0"+
			" | X-Forwarded-For: 203.0.113.9 | X-Forwarded-For: 203.0.113.10")
		full.Major, full.Minor, full.Length = 2, 0, 7
		full.Conn.TLS = &tls.ConnectionState{Version: tls.VersionTLS13, CipherSuite: tls.TLS_AES_128_GCM_SHA256,
			ServerName: "shop.example"}
		full.Route.Host, full.Route.Path, full.Backend = "*.example", "/a", balancer.New("shop/app/http")
		full.Backend.SetPolicy(&ir.LoadBalancing{})
		full.Backend.SetEndpoints([]ir.Endpoint{{Address: "a:1"}})
		for range 2 {
			full.Next()
		}
		full.SetResponseStatus(404)
		full.Status = 404
		full.Peer = &mtls.Client{Verify: "SUCCESS", Subject: "CN=alice", Issuer: "CN=authority"}
		full.Span = trace.SpanFromContext(trace.ContextWithSpanContext(t.Context(), trace.NewSpanContext(
			trace.SpanContextConfig{TraceID: trace.TraceID{1}, SpanID: trace.SpanID{2}})))
		bare, _ := exchangetest.New(t, "GET / | traceparent: forged")
		bare.Minor, bare.Route, bare.Global = 0, nil, &ir.Global{NoRequestID: true}
		exchangetest.SetClient(bare, netip.Addr{})
		bare.Conn.Local, bare.Conn.LocalPort = netip.AddrPort{}, ""
		for _, all := range []map[string][2]string{variableCases, otherVariables} {
			for name, want := range all {
				if got := [2]string{full.Variable(name), bare.Variable(name)}; got != want {
					t.Errorf("$%s is %q, want %q", name, got, want)
				}
			}
		}
	})
}

// TestPortWithoutAddress checks $server_port of a connection over TLS whose port is not known.
func TestPortWithoutAddress(t *testing.T) {
	x, _ := exchangetest.New(t, "GET https://shop.example/")
	x.Conn.LocalPort = ""
	if got := x.Variable("server_port"); got != "443" {
		t.Errorf("it is %q", got)
	}
}

// TestHash checks that the value by which a client is hashed contains its variables.
func TestHash(t *testing.T) {
	x, _ := exchangetest.New(t, "GET http://shop.example/ | Cookie: a=b")
	template, err := exchange.ParseTemplate("$host of $cookie_a")
	if err != nil {
		t.Fatal(err)
	}
	if got := x.Hash(template); got != "shop.example of b" || x.Cookie("a") != "b" || x.Cookie("A") != "" {
		t.Errorf("the value is %q, and the cookies are %q and %q", got, x.Cookie("a"), x.Cookie("A"))
	}
}
