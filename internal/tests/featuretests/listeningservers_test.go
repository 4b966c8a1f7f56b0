package featuretests

import (
	"bufio"
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/k8singress/k8singress/internal/tests/fixture"
)

// keptConn is a connection to a port that serves several requests.
type keptConn struct {
	net.Conn
	reader *bufio.Reader
}

func dialPort(port string) (*keptConn, error) {
	conn, err := net.Dial("tcp", "127.0.0.1:"+port)
	if err != nil {
		return nil, err
	}
	return &keptConn{conn, bufio.NewReader(conn)}, nil
}

// ask sends a request, and returns the status, the Location, the field X-From and the body of the response, separated
// by spaces.
func (c *keptConn) ask(host, path string) (string, error) {
	if _, err := fmt.Fprintf(c, "GET %s HTTP/1.1\r\nHost: %s\r\n\r\n", path, host); err != nil {
		return "", err
	}
	response, err := http.ReadResponse(c.reader, nil)
	if err != nil {
		return "", err
	}
	defer func() { _ = response.Body.Close() }()
	body, err := io.ReadAll(response.Body)
	parts := []string{fmt.Sprint(response.StatusCode), response.Header.Get("Location"),
		response.Header.Get("X-From"), string(body)}
	return strings.Join(slices.DeleteFunc(parts, func(part string) bool { return part == "" }), " "), err
}

// TestServersOfHTTPSnippet checks that servers in http-snippet open ports of their own, that changes of other objects
// keep these ports and their connections, and that the ports close with the key.
func TestServersOfHTTPSnippet(t *testing.T) {
	redirect, status, named, taken := fixture.Port(t), fixture.Port(t), fixture.Port(t), fixture.Port(t)
	snippet := global(fmt.Sprintf(`http-snippet: "server { listen %s; return 308 https://$host$request_uri; } `+
		`server { listen %s; add_header X-From server always; `+
		`location /nginx_status { stub_status on; allow 127.0.0.0/8; deny all; } `+
		`location /closed { stub_status; deny all; } } `+
		`server { listen %s; server_name a.example; return 200 a; } `+
		`server { listen %s default_server; return 200 other; } `+
		`server { listen %s; location / { proxy_pass http://one; } }"`, redirect, status, named, named, taken))
	ip, p := backend(t, "one")
	objects := class + service("one", p, ip)
	in := start(t, objects+snippet+rule("main", "old.example", "Prefix", "/", "one"), "configmap default/global")
	in.awaitVerdict("ConfigMap/default/global", "PortNotPublished", "controller.networkPolicy.ports")
	page := `200 server Active connections: \d+ \nserver accepts handled requests\n \d+ \d+ \d+ \n` +
		`Reading: \d+ Writing: \d+ Waiting: \d+ \n`
	for _, c := range []struct{ port, host, path, want string }{
		{redirect, "shop.example", "/a?b=c", `308 https://shop\.example/a\?b=c.*`},
		{redirect, "nosuch.example:81", "/", `308 https://nosuch\.example/.*`},
		{status, "x", "/closed", "403 server.*"}, {status, "x", "/", "404 server.*"},
		{status, "x", "/nginx_status", page},
		{named, "A.example", "/", "200 a"}, {named, "b.example", "/", "200 other"},
	} {
		conn, err := dialPort(c.port)
		if err != nil {
			t.Fatal(err)
		}
		got, err := conn.ask(c.host, c.path)
		_ = conn.Close()
		if !regexp.MustCompile("^(?s:"+c.want+")$").MatchString(got) || err != nil {
			t.Errorf("%s%s on port %s: %q, %v; want %s", c.host, c.path, c.port, got, err, c.want)
		}
	}
	if conn, err := dialPort(taken); err == nil {
		_ = conn.Close()
		t.Error("the port of a server that forwards requests is open")
	}
	kept, err := dialPort(redirect)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = kept.Close() }()
	in.write("manifests.yaml", objects+snippet+rule("main", "new.example", "Prefix", "/", "one"))
	in.eventually("the other host", func() error {
		if got := in.get("new.example", "/"); got.status != http.StatusOK {
			return fmt.Errorf("the status is %d", got.status)
		}
		return nil
	})
	if got, err := kept.ask("a", "/"); err != nil || !strings.HasPrefix(got, "308 https://a/") {
		t.Errorf("the kept connection gets %q, %v", got, err)
	}
	in.write("manifests.yaml", objects+global(`ssl-redirect: "false"`)+
		rule("main", "new.example", "Prefix", "/", "one"))
	in.eventually("the port to close", func() error {
		conn, err := dialPort(redirect)
		if err != nil {
			return nil
		}
		_ = conn.Close()
		return fmt.Errorf("the port %s is open", redirect)
	})
}

// TestTLSServersOfHTTPSnippet checks that a server in http-snippet with ssl speaks HTTP/1.1 and HTTP/2 over TLS, with
// the certificate of an Ingress for the requested name or else the default certificate.
func TestTLSServersOfHTTPSnippet(t *testing.T) {
	port := fixture.Port(t)
	snippet := global(fmt.Sprintf(`http-snippet: "server { listen %[1]s ssl http2; listen [::]:%[1]s ssl http2; `+
		`server_name a.example *.b.example; return 200 \"$server_protocol $host $https $server_port\"; } `+
		`server { listen %[1]s ssl default_server; return 308 https://$host$request_uri; }"`, port))
	ip, p := backend(t, "one")
	in := start(t, class+service("one", p, ip)+snippet+secret(t, "fallback", "default", "default.example")+
		secret(t, "own", "own", "a.example")+
		withTLS(rule("main", "a.example", "Prefix", "/", "one"), "a.example", "own"),
		"configmap default/global", "default_certificate default/fallback")
	in.showsCertificate("a.example", "own")
	for _, protocol := range []string{"HTTP/1.1", "HTTP/2.0"} {
		transport := &http.Transport{
			ForceAttemptHTTP2: protocol == "HTTP/2.0", TLSClientConfig: &tls.Config{InsecureSkipVerify: true},
			DialContext: func(ctx context.Context, network, _ string) (net.Conn, error) {
				return new(net.Dialer).DialContext(ctx, network, "127.0.0.1:"+port)
			},
		}
		client := &http.Client{Transport: transport, Timeout: deadline,
			CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
		t.Cleanup(client.CloseIdleConnections)
		for host, want := range map[string]string{
			"a.example": "200 own", "x.y.b.example": "200 default", "other.example": "308 default",
		} {
			response, err := client.Get("https://" + host + "/x")
			if err != nil {
				t.Fatal(err)
			}
			got := read(t, response)
			text := fmt.Sprint(got.status, " ", response.TLS.PeerCertificates[0].Subject.CommonName)
			if response.Proto != protocol || text != want {
				t.Errorf("%s gets %q with %s, want %q", host, text, response.Proto, want)
			}
			page := protocol + " " + host + " on "
			if got.status == http.StatusOK && !strings.HasPrefix(got.body, page) ||
				got.status != http.StatusOK && got.header.Get("Location") != "https://"+host+"/x" {
				t.Errorf("%s gets %+v", host, got)
			}
		}
	}
	conn, err := dialPort(port)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close() }()
	if got, err := conn.ask("a.example", "/"); err == nil && !strings.HasPrefix(got, "400") {
		t.Errorf("without TLS, the response is %q", got)
	}
}
