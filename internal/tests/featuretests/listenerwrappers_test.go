package featuretests

import (
	"bufio"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/caddyconfig/caddyfile"
)

func init() { caddy.RegisterModule(new(countingWrapper)) }

// countingWrapper is a listener wrapper, as a plugin could register it. It counts connections, and closes the ones
// of clients whose address ends with ".66".
type countingWrapper struct{}

// wrapped is the number of connections that countingWrapper accepted. wrappedTLS is the number of TLS connections among
// them.
var wrapped, wrappedTLS atomic.Int64

func (*countingWrapper) CaddyModule() caddy.ModuleInfo {
	return caddy.ModuleInfo{ID: "caddy.listeners.counting", New: func() caddy.Module { return new(countingWrapper) }}
}

func (*countingWrapper) UnmarshalCaddyfile(*caddyfile.Dispenser) error { return nil }

func (*countingWrapper) WrapListener(l net.Listener) net.Listener { return countingListener{l} }

type countingListener struct{ net.Listener }

// countedConn hides the methods of the wrapped connection, except those of net.Conn.
type countedConn struct{ net.Conn }

func (c countingListener) Accept() (net.Conn, error) {
	for {
		conn, err := c.Listener.Accept()
		if err != nil {
			return nil, err
		}
		wrapped.Add(1)
		if _, ok := conn.(*tls.Conn); ok {
			wrappedTLS.Add(1)
		}
		if host, _, _ := net.SplitHostPort(conn.RemoteAddr().String()); strings.HasSuffix(host, ".66") {
			_ = conn.Close()
			continue
		}
		return countedConn{conn}, nil
	}
}

// withWrappers runs the controller with listener wrappers in Caddy's global option servers. The endpoint of a.example
// responds with the client's address, and the access log is in the returned file.
func withWrappers(t *testing.T, wrappers string, keys ...string) (in *ingress, log string) {
	t.Helper()
	ip, port := endpointOf(t, func(w http.ResponseWriter, r *http.Request) {
		fmt.Fprint(w, r.Header.Get("X-Real-Ip"), " ", r.Header.Get("X-Forwarded-For"), " ",
			r.Header.Get("X-Forwarded-Proto"))
	})
	in, log = newIngress(t), filepath.Join(t.TempDir(), "access.log")
	in.write("manifests.yaml", class+service("one", port, ip)+global(append(keys, "keep-alive: '75'")...)+
		annotated("a", "a.example", "one", "ssl-redirect", "false"))
	in.loadCaddyfile(fmt.Sprintf("{\nadmin %s\nlog access {\ninclude http.log.access\noutput file %s\n}\n"+
		"servers {\nlistener_wrappers {\n%s\n}\nlog_credentials\n}\n"+
		"k8singress {\nmanifests %s\nhttp %s\nhttps %s\nh2c\nconfigmap default/global\naccess_log caddy\n}\n}\n",
		in.admin, log, wrappers, in.folder, in.http, in.https))
	in.awaitReady()
	return in, log
}

// TestProxyProtocolWrapper checks that the client in the header which Caddy's listener wrapper proxy_protocol reads is
// the client for endpoints, access lists and logs, with and without TLS. It also checks that log_credentials logs
// credentials.
func TestProxyProtocolWrapper(t *testing.T) {
	in, log := withWrappers(t, "proxy_protocol {\nallow 127.0.0.0/8\n}\ntls", "denylist-source-range: 10.0.0.0/8")
	ask := func(path, client string, secure bool) (status int, body string) {
		address := in.http
		if secure {
			address = in.https
		}
		conn := connect(t, address)
		fmt.Fprintf(conn, "PROXY TCP4 %s 192.0.2.1 1234 80\r\n", client)
		if secure {
			conn = tls.Client(conn, &tls.Config{ServerName: "a.example", InsecureSkipVerify: true})
		}
		fmt.Fprintf(conn, "GET %s HTTP/1.1\r\nHost: a.example\r\nAuthorization: secret\r\n"+
			"Connection: close\r\n\r\n", path)
		response, err := http.ReadResponse(bufio.NewReader(conn), nil)
		if err != nil {
			t.Fatal(err)
		}
		defer response.Body.Close()
		text, err := io.ReadAll(response.Body)
		if err != nil {
			t.Fatal(err)
		}
		return response.StatusCode, string(text)
	}
	for _, secure := range []bool{false, true} {
		scheme := map[bool]string{false: "http", true: "https"}[secure]
		if status, body := ask("/"+scheme, "198.51.100.7", secure); status != http.StatusOK ||
			body != "198.51.100.7 198.51.100.7 "+scheme {
			t.Errorf("%s: %d %q", scheme, status, body)
		}
		if status, _ := ask("/denied", "10.1.2.3", secure); status != http.StatusForbidden {
			t.Errorf("%s: a client on the deny list gets %d", scheme, status)
		}
		line := in.logged(log, "/"+scheme)
		if got := line.Request.Headers["Authorization"]; len(got) != 1 || got[0] != "secret" {
			t.Errorf("%s: the log has the credentials %q", scheme, got)
		}
		if line.Request.ClientIP != "198.51.100.7" {
			t.Errorf("%s: the client in the log is %q", scheme, line.Request.ClientIP)
		}
	}
}

// TestRedirectWrapper checks that Caddy's listener wrapper http_redirect answers HTTP requests on the port for HTTPS.
func TestRedirectWrapper(t *testing.T) {
	in, _ := withWrappers(t, "http_redirect\ntls")
	conn := connect(t, in.https)
	fmt.Fprint(conn, "GET /path HTTP/1.1\r\nHost: a.example\r\n\r\n")
	response, err := http.ReadResponse(bufio.NewReader(conn), nil)
	if err != nil {
		t.Fatal(err)
	}
	_ = response.Body.Close()
	if got := response.Header.Get("Location"); response.StatusCode != http.StatusPermanentRedirect ||
		got != "https://a.example/path" {
		t.Errorf("%d to %q", response.StatusCode, got)
	}
	secure := tls.Client(connect(t, in.https), &tls.Config{ServerName: "a.example", InsecureSkipVerify: true})
	fmt.Fprint(secure, "GET / HTTP/1.1\r\nHost: a.example\r\n\r\n")
	if response, err = http.ReadResponse(bufio.NewReader(secure), nil); err != nil || response.StatusCode != 200 {
		t.Fatalf("over TLS: %v, %v", response, err)
	}
	_ = response.Body.Close()
}

// TestListenerWrapper checks that a listener wrapper of a plugin gets the connections of all versions of HTTP over TCP,
// and can reject them, and that HTTP/3 still works. A wrapper that stands after "tls" gets TLS connections.
func TestListenerWrapper(t *testing.T) {
	for wrappers, afterTLS := range map[string]bool{
		"counting\ntls": false, "counting": true, "proxy_protocol\ntls\ncounting": true,
	} {
		t.Run(strings.ReplaceAll(wrappers, "\n", " "), func(t *testing.T) {
			in, _ := withWrappers(t, wrappers)
			wrapped.Store(0)
			wrappedTLS.Store(0)
			in.byEachVersion(t, func(_ *testing.T, in *ingress) {
				if a := in.get("a.example", "/"); a.status != http.StatusOK {
					t.Errorf("the status is %d", a.status)
				}
			})
			if wrapped.Load() < 4 {
				t.Errorf("the wrapper got %d connections", wrapped.Load())
			}
			if got := wrappedTLS.Load() > 0; got != afterTLS {
				t.Errorf("the wrapper got TLS connections: %v, want %v", got, afterTLS)
			}
			var dialer net.Dialer
			dialer.LocalAddr = &net.TCPAddr{IP: net.IPv4(127, 0, 0, 66)}
			conn, err := dialer.DialContext(t.Context(), "tcp", in.http)
			if errors.Is(err, errors.ErrUnsupported) {
				t.Skip(err)
			} else if err != nil {
				t.Fatal(err)
			}
			fmt.Fprint(ofTest(t, conn), "GET / HTTP/1.1\r\nHost: a.example\r\n\r\n")
			if n, err := conn.Read(make([]byte, 1)); err == nil {
				t.Errorf("a client that the wrapper rejects reads %d bytes", n)
			}
		})
	}
}

// TestDefaultAddresses checks that http_port, https_port and default_bind set the addresses of our servers.
func TestDefaultAddresses(t *testing.T) {
	ip, port := backend(t, "one")
	in := newIngress(t)
	portOf := func(address string) string { return strings.TrimPrefix(address, "127.0.0.1:") }
	in.write("manifests.yaml", class+service("one", port, ip)+rule("a", "a.example", "Prefix", "/", "one"))
	in.loadCaddyfile(fmt.Sprintf("{\nadmin %s\nhttp_port %s\nhttps_port %s\ndefault_bind 127.0.0.1\n"+
		"k8singress {\nmanifests %s\n}\n}\n", in.admin, portOf(in.http), portOf(in.https), in.folder))
	in.awaitReady()
	in.expect("a.example", "/", http.StatusOK, "one /")
	if got := in.certificate("a.example"); len(got) == 0 {
		t.Error("there is no certificate")
	}
}

// TestServerNames checks that name in the global option servers names the server in the configuration and in Caddy's
// metrics, and that a reload with another name closes no connection.
func TestServerNames(t *testing.T) {
	ip, port := backend(t, "one")
	in := newIngress(t)
	in.write("manifests.yaml", class+service("one", port, ip)+rule("a", "a.example", "Prefix", "/", "one"))
	caddyfile := func(name string) string {
		return fmt.Sprintf("{\nadmin %s\nmetrics\nservers %s {\nname %s\n}\n"+
			"k8singress {\nmanifests %s\nhttp %s\nhttps off\n}\n}\n", in.admin, in.http, name, in.folder, in.http)
	}
	in.loadCaddyfile(caddyfile("edge"))
	in.awaitReady()
	conn := connect(t, in.http)
	reader := bufio.NewReader(conn)
	for _, name := range []string{"edge", "front"} {
		in.loadCaddyfile(caddyfile(name))
		in.awaitReady()
		fmt.Fprint(conn, "GET / HTTP/1.1\r\nHost: a.example\r\n\r\n")
		response, err := http.ReadResponse(reader, nil)
		if err != nil {
			t.Fatalf("after a reload with the name %s: %v", name, err)
		}
		_, _ = io.Copy(io.Discard, response.Body)
		_ = response.Body.Close()
		var servers map[string]any
		in.adminJSON("/config/apps/http/servers", &servers)
		if servers[name] == nil || servers["k8singress_http"] != nil {
			t.Errorf("the servers are %v", servers)
		}
		response, err = in.admins.Get("http://" + in.admin + "/metrics")
		if err != nil {
			t.Fatal(err)
		}
		metrics, err := io.ReadAll(response.Body)
		_ = response.Body.Close()
		if err != nil || !strings.Contains(string(metrics), fmt.Sprintf(`server="%s"`, name)) {
			t.Errorf("the metrics do not name the server %s: %v", name, err)
		}
	}
}
