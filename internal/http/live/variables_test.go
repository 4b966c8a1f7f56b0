package live_test

import (
	"context"
	"crypto/tls"
	"net"
	"net/http"
	"testing"

	"github.com/caddyserver/caddy/v2/modules/caddyhttp"

	"github.com/k8singress/k8singress/internal/http/exchange"
)

func TestVariables(t *testing.T) {
	s := newShop(t, nil, "a:1")
	request := func(r *http.Request) {
		r.Host = "Shop.Example:8443"
		r.RequestURI = "/cart//7?id=9&Size=a%20b"
		r.URL.Path = "/cart//7"
		r.TLS = &tls.ConnectionState{HandshakeComplete: true}
		r.Header = http.Header{
			"X-User": {"ada", "bob"}, "Cookie": {"Theme=dark; lang=en"}, "X-Request-Id": {"r1"},
			"Content-Type": {"text/plain"},
		}
		local := &net.TCPAddr{IP: net.IPv4(192, 0, 2, 1), Port: 8443}
		ctx := context.WithValue(r.Context(), http.LocalAddrContextKey, local)
		*r = *r.WithContext(context.WithValue(ctx, caddyhttp.OriginalRequestCtxKey, *r))
		r.RequestURI = "/rewritten"
	}
	_, err := s.visit(request, func(r *exchange.Exchange) error {
		for text, want := range map[string]string{
			"$args": "id=9&Size=a%20b", "$query_string": "id=9&Size=a%20b", "$is_args": "?",
			"$best_http_host": "Shop.Example:8443", "$http_host": "Shop.Example:8443", "$host": "shop.example",
			"$binary_remote_addr": "\xc0\x00\x02\x07", "$remote_addr": "192.0.2.7", "$the_real_ip": "192.0.2.7",
			"$remote_port":  "4711",
			"$ingress_name": "front", "$namespace": "shop", "$service_name": "web", "$service_port": "80",
			"$location_path": "/cart",
			"$scheme":        "https", "$pass_access_scheme": "https", "$server_name": "shop.example",
			"$server_port": "8443", "$https": "on", "$server_addr": "192.0.2.1", "$server_protocol": "HTTP/1.1",
			"$content_type": "text/plain", "$document_uri": "/cart/7",
			"$request_id": "r1", "$request_method": "GET", "$request_uri": "/cart//7?id=9&Size=a%20b",
			"$uri":         "/cart/7",
			"$http_x_user": "ada, bob", "$http_x_none": "", "$cookie_theme": "dark", "$cookie_lang": "en",
			"$cookie_none": "",
			"$arg_id":      "9", "$arg_size": "a%20b", "$arg_none": "",
			"a${arg_id}b$host": "a9bshop.example",
		} {
			template, err := exchange.ParseTemplate(text)
			if err != nil {
				t.Fatal(err)
			}
			if got := r.Hash(template); got != want {
				t.Errorf("%s is %q, want %q", text, got, want)
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}
