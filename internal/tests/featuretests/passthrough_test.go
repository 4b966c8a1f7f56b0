package featuretests

import (
	"bufio"
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/quic-go/quic-go"

	"github.com/k8singress/k8singress/internal/tests/fixture"
)

// tlsEnd is an endpoint that terminates TLS with its own certificate. It sends its name and the requested server name,
// and then echoes the client's lines.
type tlsEnd struct {
	ip, port  string
	authority *x509.Certificate
	roots     *x509.CertPool
}

func newTLSEnd(t testing.TB, name string, hosts ...string) *tlsEnd {
	t.Helper()
	authority := fixture.Authority(t, nil, "authority of "+name)
	pair := fixture.Identify(t, authority, &x509.Certificate{DNSNames: hosts}).Pair()
	listener := fixture.Listen(t)
	fixture.Serve(tls.NewListener(listener, &tls.Config{Certificates: []tls.Certificate{pair}}), func(conn net.Conn) {
		sayAndEcho(conn.(*tls.Conn), name)
	})
	e := &tlsEnd{authority: authority.Leaf, roots: x509.NewCertPool()}
	e.roots.AddCert(authority.Leaf)
	e.ip, e.port = hostPort(t, listener.Addr())
	return e
}

// sayAndEcho closes the connection after an error, which the client notices.
func sayAndEcho(conn *tls.Conn, name string) {
	if conn.Handshake() != nil {
		return
	}
	fmt.Fprintf(conn, "%s %s\n", name, conn.ConnectionState().ServerName)
	_, _ = io.Copy(conn, conn)
	_ = conn.CloseWrite()
}

// secureLines is a TLS connection that carries lines.
type secureLines struct {
	*tls.Conn
	testing.TB
	reader *bufio.Reader
}

// reach connects to a host, whose certificate must be one of roots.
func (in *ingress) reach(host string, roots *x509.CertPool) (*secureLines, error) {
	in.Helper()
	return in.reachBy(connect(in, in.https), host, roots)
}

func (in *ingress) reachBy(conn net.Conn, host string, roots *x509.CertPool) (*secureLines, error) {
	in.Helper()
	secure := tls.Client(conn, &tls.Config{ServerName: host, RootCAs: roots})
	if err := secure.Handshake(); err != nil {
		conn.Close()
		return nil, err
	}
	return &secureLines{secure, in.TB, bufio.NewReader(secure)}, nil
}

// reaches waits until the endpoint of a host is reached, and returns the connection to it.
func (in *ingress) reaches(host string, e *tlsEnd, line string) (conn *secureLines) {
	in.Helper()
	in.eventually("TLS of "+host, func() (err error) {
		conn, err = in.reach(host, e.roots)
		return err
	})
	conn.hears(line)
	return conn
}

func (c *secureLines) hears(line string) {
	c.Helper()
	if got, err := c.reader.ReadString('\n'); err != nil || got != line+"\n" {
		c.Fatalf("heard %q, %v, want %q", got, err, line)
	}
}

// goesOn fails the test unless the connection still works.
func (c *secureLines) goesOn() {
	c.Helper()
	if _, err := io.WriteString(c.Conn, "still there\n"); err != nil {
		c.Fatal(err)
	}
	c.hears("still there")
}

// ends waits until the connection ends, at most for the given time.
func (c *secureLines) ends(within time.Duration) {
	c.Helper()
	if err := c.SetReadDeadline(time.Now().Add(within)); err != nil {
		c.Fatal(err)
	}
	if b, err := c.reader.ReadByte(); err == nil || errors.Is(err, os.ErrDeadlineExceeded) {
		c.Fatalf("read %q, %v, want the end", b, err)
	}
}

func passed(name, host, service string) string {
	return annotated(name, host, service, "ssl-passthrough", "true")
}

// endsHere waits until the ingress terminates the TLS of a host, with its own certificate.
func (in *ingress) endsHere(host string) {
	in.Helper()
	in.eventually("TLS of "+host+" that ends here", func() error {
		conn, err := tls.Dial("tcp", in.https, &tls.Config{ServerName: host, InsecureSkipVerify: true})
		if err != nil {
			return err
		}
		defer conn.Close()
		if name := conn.ConnectionState().PeerCertificates[0].Subject.CommonName; name != fake {
			return fmt.Errorf("the certificate is of %q", name)
		}
		return nil
	})
}

// TestPassthrough checks that the first passthrough host is added and the last one removed without a reload and
// without affecting other clients.
func TestPassthrough(t *testing.T) {
	e, other := newTLSEnd(t, "one", "shop.example", "*.wild.example"),
		newTLSEnd(t, "two", "other.example", "shop.example")
	ip, port := backend(t, "plain")
	in := start(t, class+service("one", e.port, e.ip)+service("two", other.port, other.ip)+service("plain", port, ip)+
		rule("plain", "plain.example", "Prefix", "/", "plain"), "ssl_passthrough", "configmap default/global")
	in.endsHere("shop.example")
	reloads := in.reloads()
	in.write("shop.yaml", passed("shop", "shop.example", "one"))
	conn := in.reaches("shop.example", e, "one shop.example")
	in.endsHere("plain.example")
	in.endsHere("nobody.example")
	in.endsHere("")
	in.write("other.yaml", passed("other", "other.example", "two")+passed("wild", "*.wild.example", "one")+
		rule("not", "not.wild.example", "Prefix", "/", "plain"))
	in.reaches("other.example", other, "two other.example")
	in.reaches("a.wild.example", e, "one a.wild.example")
	in.endsHere("not.wild.example")
	in.endsHere("a.a.wild.example")
	conn.goesOn()
	// Only new connections go to the other backend.
	in.write("shop.yaml", passed("shop", "shop.example", "two"))
	in.reaches("shop.example", other, "two shop.example")
	conn.goesOn()
	in.remove("shop.yaml")
	in.endsHere("shop.example")
	conn.goesOn()
	in.remove("other.yaml")
	in.endsHere("other.example")
	if now := in.reloads(); now != reloads {
		t.Errorf("%s reloads, %s before", now, reloads)
	}
	in.counted("connections_active", "", 4)
}

// TestPassthroughEnds checks that connections of a removed host continue until the timeout, and that half-closed ones
// end cleanly.
func TestPassthroughEnds(t *testing.T) {
	e := newTLSEnd(t, "one", "shop.example", "stays.example")
	in := start(t, class+service("one", e.port, e.ip)+passed("stays", "stays.example", "one"), "ssl_passthrough",
		"configmap default/global")
	in.globalKeys("worker-shutdown-timeout=1s")
	in.write("shop.yaml", passed("shop", "shop.example", "one"))
	conn, stays := in.reaches("shop.example", e, "one shop.example"),
		in.reaches("stays.example", e, "one stays.example")
	in.remove("shop.yaml")
	in.endsHere("shop.example")
	conn.ends(deadline)
	stays.goesOn()
	if err := stays.CloseWrite(); err != nil {
		t.Fatal(err)
	}
	if rest, err := io.ReadAll(stays.reader); err != nil || len(rest) > 0 {
		t.Errorf("heard %q, %v", rest, err)
	}
	stays.Close()
	in.counted("connections_active", "", 0)
}

// TestPassthroughKeysAreLive checks that the ConfigMap's timeout of idle connections applies to new connections
// without a reload, and that open ones keep theirs.
func TestPassthroughKeysAreLive(t *testing.T) {
	e := newTLSEnd(t, "one", "shop.example")
	in := start(t, class+service("one", e.port, e.ip)+passed("shop", "shop.example", "one"), "ssl_passthrough",
		"configmap default/global")
	before := in.reaches("shop.example", e, "one shop.example")
	reloads := in.reloads()
	in.globalKeys("proxy-stream-timeout=1s")
	begin := time.Now()
	idle := in.reaches("shop.example", e, "one shop.example")
	in.globalKeys("proxy-stream-timeout=1h")
	after := in.reaches("shop.example", e, "one shop.example")
	idle.ends(deadline)
	took(t, "an idle connection", begin, time.Second)
	before.goesOn()
	after.goesOn()
	if now := in.reloads(); now != reloads {
		t.Errorf("%s reloads, %s before", now, reloads)
	}
}

// counted waits until a metric of the HTTPS port has a value. reason is empty for metrics without that label.
func (in *ingress) counted(name, reason string, n int) {
	in.Helper()
	_, port, _ := net.SplitHostPort(in.https)
	labels := fmt.Sprintf("port=%q,protocol=\"tcp\"", port)
	if reason != "" {
		labels += fmt.Sprintf(",reason=%q", reason)
	}
	line := fmt.Sprintf("k8singress_stream_%s{%s} %d\n", name, labels, n)
	in.eventually(line, func() error {
		if !strings.Contains(in.metrics(), line) {
			return errors.New("it is not among the metrics")
		}
		return nil
	})
}

// TestPassthroughIsCounted checks that connections and failures are in the metrics of streams, also after the listener
// changes.
func TestPassthroughIsCounted(t *testing.T) {
	e := newTLSEnd(t, "one", "shop.example")
	in := start(t, class+service("one", e.port, e.ip)+service("nobody", "1", "127.0.0.1")+service("none", "1"),
		"ssl_passthrough")
	if strings.Contains(in.metrics(), "k8singress_stream_connections_total{") {
		t.Error("nothing is passed through, and there are metrics of it")
	}
	in.write("hosts.yaml", passed("shop", "shop.example", "one")+passed("nobody", "nobody.example", "nobody")+
		passed("none", "none.example", "none"))
	conn := in.reaches("shop.example", e, "one shop.example")
	in.counted("connections_active", "", 1)
	for _, host := range []string{"nobody.example", "none.example"} {
		if _, err := in.reach(host, e.roots); err == nil {
			t.Errorf("%s answers", host)
		}
	}
	in.counted("failures_total", "no_endpoint", 2)
	in.load(fmt.Sprintf("manifests %s\nssl_passthrough\nshutdown_timeout 1s\n", in.folder))
	in.reaches("shop.example", e, "one shop.example").Close()
	conn.goesOn()
	in.counted("connections_active", "", 1)
	in.counted("connections_total", "", 4)
}

// TestPassthroughSurvivesReload checks that a reload of Caddy does not close passthrough connections, since its
// servers do not hold them.
func TestPassthroughSurvivesReload(t *testing.T) {
	e := newTLSEnd(t, "one", "shop.example")
	in := start(t, class+service("one", e.port, e.ip)+passed("shop", "shop.example", "one"), "ssl_passthrough")
	conn := in.reaches("shop.example", e, "one shop.example")
	in.load(fmt.Sprintf("manifests %s\nssl_passthrough\nshutdown_timeout 1s\n", in.folder))
	in.reaches("shop.example", e, "one shop.example")
	conn.goesOn()
	// Without the option, the connection ends.
	in.load(fmt.Sprintf("manifests %s\n", in.folder))
	in.endsHere("shop.example")
	conn.goesOn()
}

// TestPassthroughIsTurnedOff checks that without the option the host is served as if the annotation were absent.
func TestPassthroughIsTurnedOff(t *testing.T) {
	e := newTLSEnd(t, "one", "shop.example")
	in := start(t, class+service("one", e.port, e.ip)+passed("shop", "shop.example", "one"))
	in.endsHere("shop.example")
	if message := in.message("Ingress/default/shop", "InvalidAnnotation"); !strings.Contains(message,
		"Set the option ssl_passthrough") {
		t.Errorf("it says %q", message)
	}
}

// TestPassthroughWithoutTLS checks that plain HTTP requests are handled as for any other host, and that requests on
// another host's connection get 421.
func TestPassthroughWithoutTLS(t *testing.T) {
	e := newTLSEnd(t, "one", "shop.example", "secure.example")
	ip, port := backend(t, "plain")
	in := start(t, class+service("one", e.port, e.ip)+service("plain", port, ip)+passed("shop",
		"shop.example", "plain")+
		withTLS(passed("secure", "secure.example", "one"), "secure.example", "nowhere")+
		rule("plain", "plain.example", "Prefix", "/", "plain"), "ssl_passthrough")
	in.expect("shop.example", "/a", http.StatusOK, "plain /a")
	in.expect("secure.example", "/a", http.StatusPermanentRedirect, "")
	client := in.secureClient()
	client.Transport.(*http.Transport).TLSClientConfig.ServerName = "plain.example"
	for host, want := range map[string]int{"plain.example": http.StatusOK,
		"shop.example": http.StatusMisdirectedRequest} {
		if got := in.askSecurely(client, host, "/", "X-A"); got.status != want {
			t.Errorf("%s: %d %q", host, got.status, got.body)
		}
	}
}

// TestPassthroughByQUIC checks that QUIC, which cannot be passed through, is refused, so that clients fall back to
// TCP.
func TestPassthroughByQUIC(t *testing.T) {
	e := newTLSEnd(t, "one", "shop.example")
	in := start(t, class+service("one", e.port, e.ip)+passed("shop", "shop.example", "one"), "ssl_passthrough")
	dial := func(host string) error {
		ctx, cancel := context.WithTimeout(t.Context(), deadline)
		defer cancel()
		conn, err := quic.DialAddr(ctx, in.https,
			&tls.Config{ServerName: host, InsecureSkipVerify: true, NextProtos: []string{"h3"}}, nil)
		if err == nil {
			_ = conn.CloseWithError(0, "")
		}
		return err
	}
	const unrecognized = 0x100 + 112
	var refused *quic.TransportError
	if err := dial("Shop.example"); !errors.As(err, &refused) || refused.ErrorCode != unrecognized {
		t.Errorf("the error is %v", err)
	}
	if err := dial("nobody.example"); err != nil {
		t.Error(err)
	}
}

// hello returns a client's ClientHello.
func hello(t testing.TB, config *tls.Config) []byte {
	t.Helper()
	here, there := net.Pipe()
	defer here.Close()
	go func() { _ = tls.Client(there, config).Handshake() }() // It ends with the pipe.
	all, piece := []byte(nil), make([]byte, 32<<10)
	for len(all) < 9 || len(all) < 9+int(all[6])<<16+int(all[7])<<8+int(all[8]) {
		n, err := here.Read(piece)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, piece[:n]...)
	}
	return all
}

// firstOf returns the type of the first received record, or 0 for the end of the connection.
func firstOf(t testing.TB, conn net.Conn) byte {
	t.Helper()
	first := make([]byte, 1)
	if n, err := conn.Read(first); n == 0 && errors.Is(err, os.ErrDeadlineExceeded) {
		t.Fatal("nothing comes")
	}
	return first[0]
}

const (
	alert     = 21
	handshake = 22
)

// TestHellos checks that every form of a valid ClientHello reaches its endpoint, and that a connection ends at the
// ingress if its ClientHello is too large or is not TLS.
func TestHellos(t *testing.T) {
	e := newTLSEnd(t, "one", "shop.example")
	in := start(t, class+service("one", e.port, e.ip)+passed("shop", "shop.example", "one"), "ssl_passthrough")
	whole := hello(t, &tls.Config{ServerName: "shop.example"})
	large := hello(t, &tls.Config{ServerName: "large.example",
		NextProtos: slices.Repeat([]string{strings.Repeat("x", 255)}, 63)})
	if len(large) < 16<<10 {
		t.Fatalf("a large hello has %d bytes", len(large))
	}
	for name, c := range map[string]struct {
		pieces [][]byte
		want   byte
	}{
		"at once":      {[][]byte{whole}, handshake},
		"in two":       {[][]byte{whole[:70], whole[70:]}, handshake},
		"byte by byte": {slices.Collect(slices.Chunk(whole, 1)), handshake},
		"large":        {[][]byte{large}, alert},
		"SSLv2":        {[][]byte{[]byte("\x80\x2e\x01\x00\x02\x00\x15\x00\x00\x00\x10")}, alert},
		"HTTP":         {[][]byte{[]byte("GET / HTTP/1.1\r\nHost: shop.example\r\n\r\n")}, 'H'},
	} {
		t.Run(name, func(t *testing.T) {
			conn := connect(t, in.https)
			if err := conn.(*net.TCPConn).SetNoDelay(true); err != nil {
				t.Fatal(err)
			}
			for _, piece := range c.pieces {
				if _, err := conn.Write(piece); err != nil {
					t.Fatal(err)
				}
			}
			if got := firstOf(t, conn); got != c.want {
				t.Errorf("a record of type %d comes back, want %d", got, c.want)
			}
		})
	}
	in.counted("failures_total", "client_hello", 1)
}

// TestSilentClients checks that silent clients do not delay others, and are disconnected.
func TestSilentClients(t *testing.T) {
	e := newTLSEnd(t, "one", "shop.example")
	in := start(t, class+service("one", e.port, e.ip)+passed("shop", "shop.example", "one"), "ssl_passthrough")
	half := hello(t, &tls.Config{ServerName: "shop.example"})
	begin := time.Now()
	var silent []net.Conn
	for i := range 20 {
		conn := connect(t, in.https)
		if _, err := conn.Write(half[:i*5]); err != nil {
			t.Fatal(err)
		}
		silent = append(silent, conn)
	}
	in.reaches("shop.example", e, "one shop.example")
	// One after the other, they would be disconnected after 100 seconds.
	took(t, "the way past them", begin, 0)
	for _, conn := range silent {
		if err := conn.SetReadDeadline(begin.Add(deadline)); err != nil {
			t.Fatal(err)
		}
		if rest, err := io.ReadAll(conn); errors.Is(err, os.ErrDeadlineExceeded) {
			t.Fatalf("heard %q, and no end", rest)
		}
	}
	in.counted("failures_total", "client_hello", len(silent))
}

// TestPassthroughBehindBalancer checks that the ingress consumes the PROXY header of a load balancer, and takes the
// client's address from it.
func TestPassthroughBehindBalancer(t *testing.T) {
	first := newTLSEnd(t, "one", "shop.example")
	in := start(t, class+service("one", first.port, first.ip)+passed("shop", "shop.example", "one"), "ssl_passthrough",
		"configmap default/global")
	in.globalKeys("use-proxy-protocol=true")
	for name, h := range proxyHeaders {
		t.Run(name, func(t *testing.T) {
			conn := connect(t, in.https)
			in := &ingress{TB: t}
			if _, err := io.WriteString(conn, h.header); err != nil {
				t.Fatal(err)
			}
			secure, err := in.reachBy(conn, "shop.example", first.roots)
			if h.want == "closed" {
				if err == nil {
					t.Error("it gets through")
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			secure.hears("one shop.example")
			secure.goesOn()
		})
	}
}

// TestPassthroughWithoutEndpoints checks that a connection is closed without a response if there is no endpoint.
func TestPassthroughWithoutEndpoints(t *testing.T) {
	e := newTLSEnd(t, "one", "shop.example")
	in := start(t, class+service("one", e.port)+passed("shop", "shop.example", "one"), "ssl_passthrough")
	if conn, err := in.reach("shop.example", e.roots); err == nil ||
		!bytes.Contains([]byte(err.Error()), []byte("EOF")) &&
			!errors.Is(err, net.ErrClosed) && !strings.Contains(err.Error(), "reset") {
		t.Errorf("got %v, %v", conn, err)
	}
	in.write("one.yaml", strings.Replace(service("more", e.port, e.ip), "service-name: more", "service-name: one", 1))
	in.reaches("shop.example", e, "one shop.example")
}
