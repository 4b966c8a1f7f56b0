package k8singress_test

import (
	"bufio"
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"net/http"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// launchWithServers is like launch, with a block of Caddy's global option servers.
func launchWithServers(t *testing.T, block string) *controller {
	t.Helper()
	c := newController(t)
	file := filepath.Join(t.TempDir(), "Caddyfile")
	text := c.caddyfile("access_log caddy\nmanifests " + c.manifests(newOrigin(t)))
	c.write(file, strings.Replace(text, "admin off\n", "admin off\nservers {\n"+block+"\n}\n", 1))
	c.run(file)
	return c
}

// TestServersLimits checks that timeouts and the header limit of Caddy's global option servers apply to the server for
// HTTP. Without them, the request with a long header would be served, and the others would wait for a minute. Requests
// that must be complete have no short timeout, because the test may be slow to send them.
func TestServersLimits(t *testing.T) {
	slow := launchWithServers(t, "timeouts {\nread_header 300ms\nread_body_idle 300ms\n}")
	whole := launchWithServers(t, "timeouts {\nidle 300ms\n}\nmax_header_size 2KB")
	for name, test := range map[string]struct {
		controller *controller
		request    string
		want       int
	}{
		"header size": {whole, "GET / HTTP/1.1\r\nHost: h\r\nX-Long: " + strings.Repeat("x", 3000) + "\r\n\r\n",
			431},
		"header timeout": {slow, "GET / HTTP/1.1\r\nHost: h\r\n", 408},
		"body timeout":   {slow, "POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 5\r\n\r\nx", 408},
		"idle":           {whole, "GET / HTTP/1.1\r\nHost: h\r\n\r\n", 200},
	} {
		t.Run(name, func(t *testing.T) {
			conn, err := net.Dial("tcp", test.controller.http)
			if err != nil {
				t.Fatal(err)
			}
			defer conn.Close()
			if err := conn.SetDeadline(time.Now().Add(patience)); err != nil {
				t.Fatal(err)
			}
			begin := time.Now()
			fmt.Fprint(conn, test.request)
			reader := bufio.NewReader(conn)
			response, err := http.ReadResponse(reader, nil)
			if err != nil {
				t.Fatal(err)
			}
			defer response.Body.Close()
			if response.StatusCode != test.want {
				t.Errorf("got %s, want %d", response.Status, test.want)
			}
			// The server closes the connection after the timeout, in place of a minute.
			if _, err := io.Copy(io.Discard, reader); err != nil {
				t.Error(err)
			}
			if took := time.Since(begin); took > 50*time.Second {
				t.Errorf("the connection was open for %s", took)
			}
		})
	}
}

// TestServersProtocols checks that the server for HTTPS offers only the protocols of Caddy's global option servers.
func TestServersProtocols(t *testing.T) {
	c := launchWithServers(t, "protocols h1")
	config := &tls.Config{ServerName: "h", InsecureSkipVerify: true, NextProtos: []string{"h2", "http/1.1"}}
	conn, err := tls.Dial("tcp", c.https, config)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if got := conn.ConnectionState().NegotiatedProtocol; got != "http/1.1" {
		t.Errorf("the protocol is %q", got)
	}
	fmt.Fprint(conn, "GET / HTTP/1.1\r\nHost: h\r\n\r\n")
	response, err := http.ReadResponse(bufio.NewReader(conn), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK || response.Header.Get("Alt-Svc") != "" {
		t.Errorf("got %s, Alt-Svc %q", response.Status, response.Header.Get("Alt-Svc"))
	}
	if udp, err := net.ListenPacket("udp", c.https); err != nil {
		t.Errorf("HTTP/3 is on: %v", err)
	} else {
		_ = udp.Close()
	}
}

// TestServersStrictSNI checks that a request for another host than the server name of the TLS handshake gets 421, and
// that each request has one line in the access log, in each version of HTTP.
func TestServersStrictSNI(t *testing.T) {
	c := launchWithServers(t, "strict_sni_host on")
	for name, want := range map[string]int{"h": http.StatusOK, "other": http.StatusMisdirectedRequest} {
		for _, framed := range []bool{false, true} {
			transport := &http.Transport{TLSClientConfig: &tls.Config{ServerName: name, InsecureSkipVerify: true},
				ForceAttemptHTTP2: framed}
			status, _, err := c.get(&http.Client{Transport: transport}, "https://"+c.https+"/")
			transport.CloseIdleConnections()
			if err != nil || status != want {
				t.Errorf("the server name %s gets %d, %v; want %d", name, status, err, want)
			}
		}
	}
	for text, want := range map[string]string{
		`"logger":"http.log.access"`: "4", `"status":421`: "2", `"status":200`: "2", `"proto":"HTTP/2.0"`: "2",
	} {
		c.becomes("the access log", func() error { return c.logs(text, want) })
	}
}
