package featuretests

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/k8singress/k8singress/internal/tests/daemons"
	"github.com/k8singress/k8singress/internal/tests/fixture"
)

// inFrontOfUs is a proxy between the clients and the controller.
type inFrontOfUs struct {
	start func(t *testing.T, in *ingress, at string)
	// keeps means that the proxy reuses its connection.
	keeps bool
}

// nginxWith returns a function that starts nginx with directives of an upstream and a location.
func nginxWith(upstream, location string) func(t *testing.T, in *ingress, at string) {
	return func(t *testing.T, in *ingress, at string) {
		daemons.StartNginx(t, at,
			fmt.Sprintf("upstream controller { server %s; %s }\nserver {\nlisten %s;\nclient_max_body_size 0;\n"+
				"location / {\nproxy_set_header Host $http_host;\n%s\nproxy_pass http://controller;\n}\n}\n", in.http,
				upstream, at, location))
	}
}

// haproxyWith returns a function that starts haproxy with options of the server line. It connects over HTTPS if they
// contain "ssl".
func haproxyWith(mode, backend, server string) func(t *testing.T, in *ingress, at string) {
	return func(t *testing.T, in *ingress, at string) {
		address := in.http
		if strings.Contains(server, "ssl") {
			address = in.https
		}
		daemons.StartHAProxy(t, at, mode, fmt.Sprintf("\t%s\n\tserver controller %s %s", backend, address, server))
	}
}

const (
	again     = "http-reuse always"
	keepAlive = `proxy_http_version 1.1; proxy_set_header Connection "";`
)

// TestBehindProxies checks requests from other proxies, by HTTP/1.0 and 1.1, with and without keep-alive, and by
// HTTP/2.
func TestBehindProxies(t *testing.T) {
	in := inFront(t, describeRequest, "proxy-body-size: 8m")
	for name, proxy := range map[string]inFrontOfUs{
		"nginx, HTTP/1.0":             {nginxWith("", ""), false},
		"nginx, HTTP/1.1, not kept":   {nginxWith("", "proxy_http_version 1.1;"), false},
		"nginx, HTTP/1.1, kept":       {nginxWith("keepalive 8;", keepAlive), true},
		"nginx, bodies as they come":  {nginxWith("keepalive 8;", keepAlive+" proxy_request_buffering off;"), true},
		"haproxy, HTTP/1.1, not kept": {haproxyWith("http", "option httpclose", ""), false},
		"haproxy, HTTP/1.1, kept":     {haproxyWith("http", again, ""), true},
		"haproxy, HTTP/1.1 with TLS":  {haproxyWith("http", again, "ssl verify none alpn http/1.1"), true},
		"haproxy, HTTP/2":             {haproxyWith("http", again, "proto h2"), true},
		"haproxy, HTTP/2 with TLS":    {haproxyWith("http", again, "ssl verify none alpn h2"), true},
	} {
		t.Run(name, func(t *testing.T) {
			at := fixture.Address(t)
			proxy.start(t, in, at)
			askThrough(t, at, "127.0.0.1")
			if proxy.keeps {
				in.eventually("few connections that are kept",
					func() error { return in.hasConnections(1, requestsThrough/3) })
			} else {
				in.eventually("no connection that is kept", func() error { return in.hasConnections(0, 0) })
			}
		})
		in.eventually("no connection without the proxy", func() error { return in.hasConnections(0, 0) })
	}
}

// TestBehindProxyProtocol checks that a proxy that forwards bytes or requests passes on the client's address by the
// PROXY protocol.
func TestBehindProxyProtocol(t *testing.T) {
	ip, port := endpointOf(t, describeRequest)
	in := start(t, class+service("one", port, ip)+oneWith("proxy-body-size: 8m")+
		global(`use-proxy-protocol: "true"`, `proxy-real-ip-cidr: 127.0.0.1/32`), "configmap default/global")
	for name, proxy := range map[string]inFrontOfUs{
		"bytes, version 1":    {haproxyWith("tcp", "", "send-proxy"), false},
		"bytes, version 2":    {haproxyWith("tcp", "", "send-proxy-v2"), false},
		"requests, version 1": {haproxyWith("http", "http-reuse safe", "send-proxy"), true},
		"requests, version 2": {haproxyWith("http", "http-reuse safe", "send-proxy-v2"), true},
		"TLS, version 2":      {haproxyWith("http", "http-reuse safe", "ssl verify none send-proxy-v2"), true},
	} {
		t.Run(name, func(t *testing.T) {
			at := fixture.Address(t)
			proxy.start(t, in, at)
			askThrough(t, at, "127.0.0.7")
		})
	}
}

// describeRequest handles requests by describing them in the response. Some paths get another body.
func describeRequest(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return // The proxy has cut the request off.
	}
	switch r.URL.Path {
	case "/large":
		_, _ = w.Write(pattern(3 << 20))
	case "/nothing":
		w.WriteHeader(http.StatusNoContent)
	case "/same":
		w.WriteHeader(http.StatusNotModified)
	case "/pieces":
		for range 3 {
			fmt.Fprint(w, "piece ")
			_ = http.NewResponseController(w).Flush()
		}
	default:
		fmt.Fprintf(w, "%s %s %s from %s", r.Method, r.RequestURI, hash(body), r.Header.Get("X-Forwarded-For"))
	}
}

// requestsThrough is the number of requests that askThrough sends.
const requestsThrough = 3 * 8

// askThrough sends requests with all kinds of bodies, in both directions, on one connection to the proxy. It checks
// that the endpoint gets the client's address, from which the request comes.
func askThrough(t *testing.T, proxy, client string) {
	t.Helper()
	transport := &http.Transport{DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		dialer := net.Dialer{LocalAddr: &net.TCPAddr{IP: net.ParseIP(client)}}
		return dialer.DialContext(ctx, "tcp", proxy)
	}}
	t.Cleanup(transport.CloseIdleConnections)
	by := &http.Client{Transport: transport, Timeout: deadline}
	all := string(pattern(1 << 20))
	echo := func(method, path, body string) string {
		return fmt.Sprintf("200 %s %s %s from %s", method, path, hash([]byte(body)), client)
	}
	for range 3 {
		for _, c := range []struct {
			method, path string
			body         io.Reader
			want         string
		}{
			{http.MethodGet, "/a?b=c", nil, echo("GET", "/a?b=c", "")},
			{http.MethodHead, "/", nil, "200 "},
			{http.MethodPost, "/known", strings.NewReader(all), echo("POST", "/known", all)},
			{http.MethodPut, "/chunked", struct{ io.Reader }{strings.NewReader(all)}, echo("PUT", "/chunked", all)},
			{http.MethodGet, "/large", nil, "200 " + string(pattern(3<<20))},
			{http.MethodGet, "/nothing", nil, "204 "},
			{http.MethodGet, "/same", nil, "304 "},
			{http.MethodGet, "/pieces", nil, "200 piece piece piece "},
		} {
			request, _ := http.NewRequestWithContext(t.Context(), c.method, "http://a.example"+c.path, c.body)
			response, err := by.Do(request)
			if err != nil {
				t.Fatal(err)
			}
			body, err := io.ReadAll(response.Body)
			response.Body.Close()
			if got := fmt.Sprintf("%d %s", response.StatusCode, body); err != nil || got != c.want {
				t.Errorf("%s %s: %.100q, %v; want %.100q", c.method, c.path, got, err, c.want)
			}
		}
	}
}

var connectionsLine = regexp.MustCompile(`(?m)^k8singress_client_connections (\d+)$`)

// hasConnections returns an error unless the number of client connections is in the given range.
func (in *ingress) hasConnections(least, most int) error {
	match := connectionsLine.FindStringSubmatch(in.metrics())
	if match == nil {
		return fmt.Errorf("there is no %s", connectionsLine)
	}
	if n, err := strconv.Atoi(match[1]); err != nil || n < least || n > most {
		return fmt.Errorf("%d connections, %w", n, err)
	}
	return nil
}
