package featuretests

import (
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/quic-go/quic-go"

	"github.com/k8singress/k8singress/internal/tests/fixture"
)

// TestSlowHeads sends a head byte by byte, as Slowloris does. It checks that the connection ends in time in each
// version of HTTP, and that a byte does not extend the timeout.
func TestSlowHeads(t *testing.T) {
	in := reading(t, `client-header-timeout: "1"`, `keep-alive: "1"`)
	in.byEachAtOnce(t, func(t *testing.T, in *ingress) {
		q := question{method: http.MethodGet, fields: []string{"X-A: " + string(pattern(100)[60:90])}}
		text := in.written(q.usual())
		begin := time.Now()
		in.dripsUntilTheEnd(t, text[:len(text)-30], text[len(text)-30:])
		took(t, "a head of which a byte comes now and then", begin, time.Second)
	})
}

// dripsUntilTheEnd sends text, and then rest byte by byte, until the server ends the connection.
func (in *ingress) dripsUntilTheEnd(t *testing.T, text, rest string) {
	t.Helper()
	ended := make(chan struct{})
	say := in.drips(t, ended)
	if err := say(text); err != nil {
		t.Fatal(err)
	}
	tick := time.NewTicker(300 * time.Millisecond)
	defer tick.Stop()
	for i := range len(rest) - 1 {
		select {
		case <-ended:
			return
		case <-tick.C:
			_ = say(rest[i : i+1]) // After an error the connection has ended, or is about to.
		}
	}
	fixture.Receive(t, "the end of the connection", ended)
}

// drips connects, and returns a function that sends a text on the connection, or on one stream of it.
func (in *ingress) drips(t *testing.T, ended chan struct{}) (say func(text string) error) {
	t.Helper()
	if in.version == secure3 {
		// Without keep-alive packets, QUIC's idle timeout would end the connection.
		conn, _ := in.dial3(&quic.Config{KeepAlivePeriod: 500 * time.Millisecond})
		stream, err := conn.OpenStreamSync(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		go func() {
			<-conn.Context().Done()
			close(ended)
		}()
		return func(text string) error { _, err := io.WriteString(stream, text); return err }
	}
	connect := in.connect
	if in.version == plain2 || in.version == secure2 {
		connect = in.connect2
	}
	d := connect()
	go func() {
		_, _ = io.Copy(io.Discard, d.Reader)
		close(ended)
	}()
	return func(text string) error { _, err := io.WriteString(d.Conn, text); return err }
}

// TestSlowReaders requests a large response and reads nothing of it. It checks that the endpoint does not wait forever,
// in each version of HTTP.
func TestSlowReaders(t *testing.T) {
	ended := make(chan string, 10)
	ip, port := endpointOf(t, func(w http.ResponseWriter, r *http.Request) {
		piece := make([]byte, 1<<20)
		for {
			if _, err := w.Write(piece); err != nil {
				ended <- r.URL.Path
				return
			}
		}
	})
	in := newIngress(t)
	in.write("manifests.yaml", class+service("one", port, ip)+rule("a", "a.example", "Prefix", "/", "one"))
	in.withOwnServers("h2c", func(server map[string]any) { server["write_idle_timeout"] = 500 * time.Millisecond })
	var wanted []string
	for _, version := range direct {
		q := question{path: "/" + version}
		in.speaking(t, version).puts(t, q.usual())
		wanted = append(wanted, q.path)
	}
	var got []string
	for range wanted {
		got = append(got, fixture.Receive(t, "the end of an answer at the endpoint", ended))
	}
	slices.Sort(got)
	if slices.Sort(wanted); !slices.Equal(got, wanted) {
		t.Errorf("these answers have ended: %q, want %q", got, wanted)
	}
}

// puts sends a request on a new connection, which it does not read from.
func (in *ingress) puts(t *testing.T, q *question) {
	t.Helper()
	if in.version == plain1 || in.version == secure1 {
		in.connect().say("%s", q.http1())
		return
	}
	open := in.openStream2
	if in.version == secure3 {
		open = in.openStream3
	}
	if err := open().send(q); err != nil {
		t.Fatal(err)
	}
}

// TestSilentHandshakes sends a ClientHello and nothing else. It checks that the connection ends in time, whatever
// protocol the client requests, including ACME's.
func TestSilentHandshakes(t *testing.T) {
	beside := service("one", "1") + passed("shop", "shop.example", "one")
	for name, manifests := range map[string]string{"alone": class, "beside passthrough": class + beside} {
		t.Run(name, func(t *testing.T) { silentHandshakes(t, manifests) })
	}
}

func silentHandshakes(t *testing.T, manifests string) {
	in := newIngress(t)
	in.write("manifests.yaml", manifests)
	in.withOwnServers("ssl_passthrough", func(server map[string]any) {
		server["listener_wrappers"] = []map[string]any{
			{"wrapper": "k8singress", "handshake_timeout": "500ms"}, {"wrapper": "tls"},
		}
	})
	t.Run("over TCP", func(t *testing.T) {
		for name, protocols := range map[string][]string{
			"none": nil, "HTTP/1.1": {"http/1.1"}, "HTTP/2": {"h2"}, "ACME": {"acme-tls/1"}, "unknown": {"x"},
		} {
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				silentTLS(t, in.speaking(t, secure1), protocols)
			})
		}
	})
	t.Run("over QUIC", func(t *testing.T) { silentQUIC(t, in.speaking(t, secure3)) })
}

func silentTLS(t *testing.T, in *ingress, protocols []string) {
	d, begin := in.dialed(net.Dial("tcp", in.https)), time.Now()
	if _, err := d.Conn.Write(hello(t, &tls.Config{ServerName: "a.example", NextProtos: protocols})); err != nil {
		t.Fatal(err)
	}
	if _, err := io.Copy(io.Discard, d.Reader); err != nil && isTimeout(err) {
		t.Errorf("the connection does not end: %v", err)
	}
	took(t, "it", begin, 0)
}

// silentQUIC ignores the server's packets as an HTTP/3 client. It checks that its connection is counted, and ends in
// time.
func silentQUIC(t *testing.T, in *ingress) {
	counts := func(want float64) {
		t.Helper()
		in.eventually(fmt.Sprint(want, " connections"), func() error {
			if n := in.metric("k8singress_client_connections"); n != want {
				return fmt.Errorf("there are %v", n)
			}
			return nil
		})
	}
	counts(0)
	to, err := net.ResolveUDPAddr("udp", in.https)
	if err != nil {
		t.Fatal(err)
	}
	socket, err := net.ListenUDP("udp", &net.UDPAddr{IP: to.IP})
	if err != nil {
		t.Fatal(err)
	}
	transport := &quic.Transport{Conn: &deafSocket{PacketConn: socket, closed: make(chan struct{})}}
	t.Cleanup(func() { _ = errors.Join(transport.Close(), socket.Close()) })
	config := anybody()
	config.ServerName, config.NextProtos = "a.example", []string{"h3"}
	go func() {
		// It always fails.
		_, _ = transport.Dial(t.Context(), to, config, &quic.Config{HandshakeIdleTimeout: deadline})
	}()
	counts(1)
	begin := time.Now()
	counts(0)
	took(t, "the end of the handshake", begin, 0)
}

// deafSocket receives nothing until it is closed or a deadline is set.
type deafSocket struct {
	net.PacketConn
	once   sync.Once
	closed chan struct{}
}

func (s *deafSocket) ReadFrom([]byte) (int, net.Addr, error) {
	<-s.closed
	return 0, nil, net.ErrClosed
}

func (s *deafSocket) SetReadDeadline(time.Time) error {
	s.once.Do(func() { close(s.closed) })
	return nil
}
