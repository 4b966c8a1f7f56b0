package featuretests

import (
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/fcgi"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/k8singress/k8singress/internal/tests/fixture"
)

// encrypted starts an HTTPS endpoint with a self-signed certificate. It records the server names that clients request.
func encrypted(t *testing.T, names *log, handler http.HandlerFunc) (ip, port string) {
	t.Helper()
	server := httptest.NewUnstartedServer(handler)
	server.TLS = &tls.Config{GetConfigForClient: func(hello *tls.ClientHelloInfo) (*tls.Config, error) {
		names.add("name %q, protocols %v", hello.ServerName, hello.SupportedProtos)
		return nil, nil
	}}
	server.StartTLS()
	t.Cleanup(server.Close)
	return hostPort(t, server.Listener.Addr())
}

func TestHTTPSBackend(t *testing.T) {
	names := &log{}
	ip, port := encrypted(t, names, func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		fmt.Fprintf(w, "%s %v %s %s %s", r.Proto, r.TLS != nil, r.Host, r.Header.Get("X-Forwarded-Proto"), body)
	})
	in := inFrontOf(t, ip, port, "backend-protocol: HTTPS")
	if got := in.send(http.MethodPost, "/",
		strings.NewReader("body")); got.body != "HTTP/1.1 true a.example http body" {
		t.Errorf("%d %q", got.status, got.body)
	}
	if got := names.take(); len(got) != 1 || !strings.HasPrefix(got[0], `name "", `) {
		t.Errorf("an address is no server name: %q", got)
	}
}

// TestAutoHTTPBackend checks that AUTO_HTTP uses HTTPS for clients that connect over HTTPS.
func TestAutoHTTPBackend(t *testing.T) {
	both := listenBoth(t)
	plain := &http.Server{Handler: speaking("plain")}
	secure := &http.Server{Handler: speaking("secure"), TLSConfig: selfSigned(t)}
	go func() { _ = plain.Serve(both.plain) }()
	go func() { _ = secure.ServeTLS(both.secure, "", "") }()
	t.Cleanup(func() { _, _ = plain.Close(), secure.Close() })
	ip, port := hostPort(t, both.Addr())
	in := inFrontOf(t, ip, port, "backend-protocol: AUTO_HTTP")
	in.byEachVersion(t, func(t *testing.T, in *ingress) {
		if got, want := in.get("a.example", "/"), in.either("plain", "secure"); got.body != want {
			t.Errorf("%d %q, want %q", got.status, got.body, want)
		}
	})
}

func speaking(text string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, text) }
}

func selfSigned(t *testing.T) *tls.Config {
	t.Helper()
	server := httptest.NewUnstartedServer(nil)
	server.StartTLS()
	defer server.Close()
	return &tls.Config{Certificates: server.TLS.Certificates}
}

// both is a listener for HTTP and HTTPS. It detects the protocol by the first byte.
type both struct {
	net.Listener
	plain, secure *handedOver
}

type handedOver struct {
	net.Listener
	conns chan net.Conn
}

func (h *handedOver) Accept() (net.Conn, error) {
	conn, ok := <-h.conns
	if !ok {
		return nil, net.ErrClosed
	}
	return conn, nil
}

// peeked is a connection that returns its first byte again.
type peeked struct {
	net.Conn
	first io.Reader
}

func (p *peeked) Read(b []byte) (int, error) { return p.first.Read(b) }

func listenBoth(t *testing.T) *both {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = listener.Close() })
	b := &both{listener, &handedOver{listener, make(chan net.Conn)}, &handedOver{listener, make(chan net.Conn)}}
	go b.hand()
	return b
}

func (b *both) hand() {
	defer close(b.plain.conns)
	defer close(b.secure.conns)
	for {
		conn, err := b.Listener.Accept()
		if err != nil {
			return
		}
		first := make([]byte, 1)
		if _, err := conn.Read(first); err != nil {
			continue
		}
		to := b.plain
		if first[0] == 0x16 {
			to = b.secure
		}
		to.conns <- &peeked{conn, io.MultiReader(strings.NewReader(string(first)), conn)}
	}
}

// TestUnavailableBackends checks that an endpoint that does not listen results in 502, and a Service without endpoints
// in 503, for every backend protocol.
func TestUnavailableBackends(t *testing.T) {
	nobody := fixture.Port(t)
	for _, protocol := range []string{"HTTP", "HTTPS", "AUTO_HTTP", "GRPC", "GRPCS", "FCGI"} {
		in := inFrontOf(t, "127.0.0.1", nobody, "backend-protocol: "+protocol)
		in.byEachVersion(t, func(t *testing.T, in *ingress) {
			if got := in.send(http.MethodPost, "/", strings.NewReader("body")); got.status != http.StatusBadGateway {
				t.Errorf("%s: %d %q", protocol, got.status, got.body)
			}
		})
		in.write("manifests.yaml", class+service("one", nobody)+oneWith("backend-protocol: "+protocol))
		in.becomes("a.example", "/", http.StatusServiceUnavailable, "")
		in.stop()
	}
}

// fastCGI starts an endpoint that speaks FastCGI.
func fastCGI(t *testing.T, handler http.HandlerFunc) (ip, port string) {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = listener.Close() })
	go func() { _ = fcgi.Serve(listener, handler) }()
	return hostPort(t, listener.Addr())
}

func TestFastCGIBackend(t *testing.T) {
	ip, port := fastCGI(t, func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		env := fcgi.ProcessEnv(r)
		w.Header().Set("X-From", "php")
		w.WriteHeader(http.StatusAccepted)
		fmt.Fprintf(w, "%s script=%s host=%s for=%s type=%s length=%d body=%s %v q=%s", r.Method,
			env["SCRIPT_FILENAME"], r.Host,
			r.Header.Get("X-Forwarded-For"), r.Header.Get("Content-Type"), r.ContentLength, hash(body), err,
			r.URL.RawQuery)
	})
	in := inFrontOf(t, ip, port, "backend-protocol: FCGI", "fastcgi-index: index.php", "proxy-body-size: 8m")
	large := pattern(3 << 20)
	for name, c := range map[string]struct {
		method, path string
		body         []byte
		want         string
	}{
		"a script":       {"GET", "/app/x.php?a=%7Benv.HOME%7D", nil, "script=/app/x.php"},
		"the index":      {"GET", "/app/?a=b", nil, "script=/app/index.php"},
		"the root":       {"HEAD", "/", nil, ""},
		"path info":      {"GET", "/app/x.php/more/info", nil, "script=/app/x.php"},
		"braces":         {"GET", "/%7Benv.HOME%7D/x.php", nil, "script=/{env.HOME}/x.php"},
		"a body":         {"POST", "/x.php", []byte("body"), "script=/x.php"},
		"a large body":   {"PUT", "/x.php", large, "script=/x.php"},
		"deletes a body": {"DELETE", "/x.php", []byte("body"), "script=/x.php"},
	} {
		t.Run(name, func(t *testing.T) {
			_, query, _ := strings.Cut(c.path, "?")
			want := fmt.Sprintf("%s %s host=a.example for=127.0.0.1 type=text/x length=%d body=%s <nil> q=%s",
				c.method, c.want,
				len(c.body), hash(c.body), query)
			if c.method == http.MethodHead {
				want = ""
			}
			in.byEachVersion(t, func(t *testing.T, in *ingress) {
				text := string(c.body)
				for _, body := range []io.Reader{strings.NewReader(text),
					struct{ io.Reader }{strings.NewReader(text)}} {
					got := in.send(c.method, c.path, body, "Content-Type: text/x")
					if got.status != http.StatusAccepted || got.body != want || got.header.Get("X-From") != "php" {
						t.Errorf("%T: %d %v\n%s\n%s", body, got.status, got.header, got.body, want)
					}
				}
			})
		})
	}
}

// TestFastCGIOfAStream checks that a request body without a length is buffered, since FastCGI requires its length.
func TestFastCGIOfAStream(t *testing.T) {
	ip, port := fastCGI(t, func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		fmt.Fprintf(w, "%d %s %v", r.ContentLength, body, err)
	})
	in := inFrontOf(t, ip, port, "backend-protocol: FCGI", "proxy-request-buffering: off")
	if got := in.send(http.MethodPost, "/x.php",
		struct{ io.Reader }{strings.NewReader("body")}); got.body != "4 body <nil>" {
		t.Errorf("%d %q", got.status, got.body)
	}
}

// TestSilentFastCGI checks that timeouts also apply to FastCGI endpoints.
func TestSilentFastCGI(t *testing.T) {
	listener := silent(t)
	ip, port := hostPort(t, listener.Addr())
	in := inFrontOf(t, ip, port, "backend-protocol: FCGI", "proxy-read-timeout: 1", "proxy-next-upstream: off")
	begin := time.Now()
	if got := in.send(http.MethodGet, "/x.php", nil); got.status != http.StatusGatewayTimeout {
		t.Errorf("%d %q", got.status, got.body)
	}
	took(t, "silence", begin, time.Second)
}

// silence accepts connections, reads everything, and writes nothing.
type silence struct {
	net.Listener
	begins, ends chan struct{}
}

func silent(t *testing.T) *silence {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s := &silence{listener, make(chan struct{}, 100), make(chan struct{}, 100)}
	t.Cleanup(func() { _ = listener.Close() })
	go func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			s.begins <- struct{}{}
			go func() {
				_, _ = io.Copy(io.Discard, conn)
				_ = conn.Close()
				s.ends <- struct{}{}
			}()
		}
	}()
	return s
}

// TestConnectionsToABackend checks the number of connections that an endpoint sees.
func TestConnectionsToABackend(t *testing.T) {
	conns := &log{}
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		fmt.Fprintf(w, "%q", r.Header.Get("Connection"))
	}))
	server.Config.ConnState = func(_ net.Conn, state http.ConnState) {
		if state == http.StateNew {
			conns.add("new")
		}
	}
	server.Start()
	t.Cleanup(server.Close)
	ip, port := hostPort(t, server.Listener.Addr())
	in := start(t, class+service("one", port, ip)+oneWith("proxy-connect-timeout: 5"), "configmap default/global")
	for _, c := range []struct {
		global, annotation string
		want               int
		header             string
	}{
		{"", "proxy-connect-timeout: 4", 1, `""`},
		{`upstream-keepalive-connections: "0"`, "proxy-connect-timeout: 4", 3, `"close"`},
		{`upstream-keepalive-connections: "5"`, "proxy-connect-timeout: 4", 1, `""`},
		{`upstream-keepalive-connections: "5"`, "connection-proxy-header: close", 3, `"close"`},
		{`upstream-keepalive-connections: "5"`, "connection-proxy-header: keep-alive", 1, `""`},
	} {
		t.Run(c.global+", "+c.annotation, func(t *testing.T) {
			// A new host shows when the options have taken effect.
			host := fmt.Sprintf("h%d.example", time.Now().UnixNano())
			in.write("global.yaml", global(c.global))
			in.write("manifests.yaml", class+service("one", port, ip)+oneWith(c.annotation)+rule("b", host,
				"Prefix", "/", "one"))
			in.becomes(host, "/", http.StatusOK, "")
			in.byEachVersion(t, func(t *testing.T, in *ingress) {
				server.CloseClientConnections()
				conns.take()
				for range 3 {
					got := in.send(http.MethodGet, "/", nil)
					if header := strings.Replace(got.body, `"keep-alive"`, `""`, 1); got.status != http.StatusOK ||
						header != c.header {
						t.Errorf("%d, Connection: %s", got.status, got.body)
					}
				}
				if got := conns.take(); len(got) != c.want {
					t.Errorf("%d connections for 3 requests, not %d", len(got), c.want)
				}
			})
		})
	}
}

// TestIdleConnectionsEnd checks that idle connections to an endpoint are closed after the timeout.
func TestIdleConnectionsEnd(t *testing.T) {
	states := make(chan http.ConnState, 100)
	server := httptest.NewUnstartedServer(speaking("ok"))
	server.Config.ConnState = func(_ net.Conn, state http.ConnState) { states <- state }
	server.Start()
	t.Cleanup(server.Close)
	ip, port := hostPort(t, server.Listener.Addr())
	in := start(t, class+service("one", port, ip)+rule("a", "a.example", "Prefix", "/", "one")+
		global(`upstream-keepalive-timeout: "1"`), "configmap default/global")
	in.send(http.MethodGet, "/", nil)
	begin := time.Now()
	var seen []http.ConnState
	for !slices.Contains(seen, http.StateClosed) {
		seen = append(seen, await(t, "the end of an idle connection", states))
	}
	took(t, "it", begin, 0)
}

// TestProxyHTTPVersion checks that endpoints get HTTP/1.1 requests whatever version is configured, and that other
// versions cause a warning.
func TestProxyHTTPVersion(t *testing.T) {
	ip, port := endpointOf(t, func(w http.ResponseWriter, r *http.Request) { fmt.Fprint(w, r.Proto) })
	in := start(t, class+service("one", port, ip)+annotated("new", "new.example", "one", "proxy-http-version", "1.1")+
		annotated("old", "old.example", "one", "proxy-http-version", "1.0"), "configmap default/global")
	for _, host := range []string{"new.example", "old.example"} {
		in.expect(host, "/", http.StatusOK, "HTTP/1.1")
	}
	in.awaitReasons("Ingress/default/old", "UnsupportedValue")
	in.awaitReasons("Ingress/default/new")
	in.write("configmap.yaml", global(`proxy-http-version: "1.0"`))
	in.awaitReasons("ConfigMap/default/global", "UnsupportedValue")
	in.write("configmap.yaml", global(`proxy-http-version: "1.1"`))
	in.awaitReasons("ConfigMap/default/global")
}
