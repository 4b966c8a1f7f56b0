package k8singress_test

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"regexp"
	"strconv"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/quic-go/quic-go"
)

// limitFiles sets the limit on open files of this process. An empty string changes nothing.
func limitFiles(most string) {
	n, err := strconv.ParseUint(most, 10, 64)
	if err != nil {
		return
	}
	if err := syscall.Setrlimit(syscall.RLIMIT_NOFILE, &syscall.Rlimit{Cur: n, Max: n}); err != nil {
		panic(err)
	}
}

// TestTenant06 checks that HTTP requests, each on a new connection, succeed in a process with 1,500 file descriptors
// while it gets 5,000 connections to a TCP port that clients keep open, and 5,000 clients of a UDP port.
func TestTenant06(t *testing.T) {
	t.Setenv(filesOfCaddy, "1500")
	c := launch(t, newOrigin(t),
		"tcp_services default/tcp-services\nudp_services default/udp-services\nstream_bind 127.0.0.1")
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	ask := func() {
		t.Helper()
		if status, _, err := c.get(client, "http://"+c.http); status != http.StatusOK {
			t.Fatalf("a request gets %d, %v", status, err)
		}
	}
	const hostile, each = 5000, 50
	for i := range hostile {
		conn, err := net.DialTimeout("tcp", c.stream, patience)
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		if i%each == 0 {
			ask()
		}
	}
	flood(t, c.stream, hostile)
	ask()
}

// TestClientConnections checks that a process with 400 file descriptors accepts 100 client connections. 300 connections
// are silent, after an HTTP/1.1 request or from the start. They are closed to make room for new connections, whose
// requests succeed.
func TestClientConnections(t *testing.T) {
	t.Setenv(filesOfCaddy, "400")
	c := launch(t, newOrigin(t), "")
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	const hostile, each = 300, 20
	for _, first := range []string{"GET / HTTP/1.1\r\nHost: h\r\n\r\n", ""} {
		for i := range hostile {
			conn, err := net.DialTimeout("tcp", c.http, patience)
			if err != nil {
				t.Fatal(err)
			}
			defer conn.Close()
			if _, err := io.WriteString(conn, first); err != nil {
				t.Fatal(err)
			}
			if first != "" {
				// From here on the connection waits. If there is no response, the connection has been closed.
				_, _ = conn.Read(make([]byte, 1<<10))
			}
			if i%each == 0 {
				c.becomes("answered", func() error {
					if status, _, err := c.get(client, "http://"+c.http); status != http.StatusOK {
						return fmt.Errorf("a request gets %d, %w", status, err)
					}
					return nil
				})
			}
		}
	}
}

// flood sends a datagram from each of many sockets.
func flood(t *testing.T, to string, count int) {
	t.Helper()
	for range count {
		conn, err := net.Dial("udp", to)
		if err != nil {
			t.Fatal(err)
		}
		_, _ = io.WriteString(conn, "x") // The port may be closed for a moment.
		conn.Close()
	}
}

// tenantOfOne is a namespace with one host and one endpoint on this machine.
const tenantOfOne = `---
apiVersion: v1
kind: Service
metadata: {name: web, namespace: %[1]s}
spec: {ports: [{name: http, port: 80}]}
---
apiVersion: discovery.k8s.io/v1
kind: EndpointSlice
metadata: {name: web-1, namespace: %[1]s, labels: {kubernetes.io/service-name: web}}
addressType: IPv4
ports: [{name: http, port: %[3]s}]
endpoints: [{addresses: [127.0.0.1]}]
---
apiVersion: networking.k8s.io/v1
kind: Ingress
metadata: {name: web, namespace: %[1]s}
spec:
  ingressClassName: nginx
  rules:
  - host: %[2]s
    http: {paths: [{path: /, pathType: Prefix, backend: {service: {name: web, port: {number: 80}}}}]}
`

// TestTenant15Descriptors checks a process with 1,500 file descriptors that gets 2,400 requests on 20 HTTP/2
// connections for a backend that never responds. Requests without a descriptor get 503. Requests for another namespace,
// each on new connections to the controller and to the endpoint, succeed.
func TestTenant15Descriptors(t *testing.T) {
	t.Setenv(filesOfCaddy, "1500")
	o := newOrigin(t)
	o.Config.SetKeepAlivesEnabled(false)
	end := make(chan struct{})
	silent := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { <-end }))
	t.Cleanup(silent.Close)
	t.Cleanup(func() { close(end) })
	c, folder := newController(t), t.TempDir()
	c.write(filepath.Join(folder, "all.yaml"),
		"kind: IngressClass\napiVersion: networking.k8s.io/v1\nmetadata: {name: nginx}\n"+
			"spec: {controller: k8s.io/ingress-nginx}\n"+fmt.Sprintf(tenantOfOne, "a", "h",
			portOf(o.Listener.Addr().String()))+
			fmt.Sprintf(tenantOfOne, "b", "silent", portOf(silent.Listener.Addr().String())))
	file := filepath.Join(t.TempDir(), "Caddyfile")
	c.write(file, c.caddyfile("manifests "+folder))
	c.run(file)
	var refused, others atomic.Int64
	const clients, each, allowed = 20, 120, 1500 * 7 / 32
	for range clients {
		transport := &http.Transport{ForceAttemptHTTP2: true,
			TLSClientConfig: &tls.Config{InsecureSkipVerify: true, ServerName: "h"}}
		t.Cleanup(transport.CloseIdleConnections)
		// Later requests reuse this connection.
		if _, _, err := c.get(&http.Client{Transport: transport}, "https://"+c.https); err != nil {
			t.Fatal(err)
		}
		for range each {
			go func() {
				request, _ := http.NewRequestWithContext(t.Context(), http.MethodGet,
					"https://"+c.https+"/", http.NoBody)
				request.Host = "silent"
				response, err := transport.RoundTrip(request)
				switch {
				case err == nil && response.StatusCode == http.StatusServiceUnavailable:
					refused.Add(1)
				case t.Context().Err() == nil:
					others.Add(1)
				}
				if err == nil {
					response.Body.Close()
				}
			}()
		}
	}
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	for refused.Load() < clients*each-allowed {
		if status, _, err := c.get(client, "http://"+c.http); status != http.StatusOK {
			t.Fatalf("a request gets %d, %v", status, err)
		}
	}
	if others.Load() > 0 {
		t.Errorf("%d requests for the silent backend have another end than 503", others.Load())
	}
}

// TestHalfSentBodies checks a process with 800 file descriptors to which ten HTTP/2 connections send 100 incomplete
// bodies each. The bodies use memory, files and connections to the endpoint as far as these are available, and
// otherwise get 503. Other requests of the same namespace, each on a new connection, must succeed.
func TestHalfSentBodies(t *testing.T) {
	t.Setenv(filesOfCaddy, "800")
	// Most bodies do not fit into memory.
	t.Setenv("GOMEMLIMIT", "128MiB")
	reads := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
	}))
	t.Cleanup(reads.Close)
	c, folder := newController(t), t.TempDir()
	c.write(filepath.Join(folder, "all.yaml"),
		"kind: IngressClass\napiVersion: networking.k8s.io/v1\nmetadata: {name: nginx}\n"+
			"spec: {controller: k8s.io/ingress-nginx}\n"+
			fmt.Sprintf(tenantOfOne, "a", "h", portOf(reads.Listener.Addr().String()))+
			"---\napiVersion: v1\nkind: ConfigMap\nmetadata: {name: global, namespace: a}\n"+
			"data: {client-body-timeout: \"3600\"}\n")
	file := filepath.Join(t.TempDir(), "Caddyfile")
	c.write(file, c.caddyfile("health_metrics\nconfigmap a/global\nmanifests "+folder))
	c.run(file)
	const connections, each, length, sent = 10, 100, 1 << 20, 70_000
	settled, refused := make(chan struct{}, connections*each), new(atomic.Int64)
	for range connections {
		transport := &http.Transport{
			ForceAttemptHTTP2: true, TLSClientConfig: &tls.Config{InsecureSkipVerify: true, ServerName: "h"},
		}
		t.Cleanup(transport.CloseIdleConnections)
		if _, _, err := c.get(&http.Client{Transport: transport}, "https://"+c.https); err != nil {
			t.Fatal(err)
		}
		for range each {
			body := &halfBody{left: sent, settled: settled, over: t.Context().Done()}
			go c.sendHalf(transport, body, length, refused)
		}
	}
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	for n := 0; n < connections*each; {
		select {
		case <-settled:
			n++
		default:
			if status, _, err := c.get(client, "http://"+c.http); status != http.StatusOK {
				t.Fatalf("after %d bodies, a request gets %d, %v", n, status, err)
			}
		}
	}
	if status, _, err := c.get(client, "http://"+c.http); status != http.StatusOK {
		t.Fatalf("with all bodies half sent, a request gets %d, %v", status, err)
	}
	c.counts("k8singress_body_files_refused_total", "k8singress_endpoint_connections_refused_total")
	if refused.Load() == 0 {
		t.Error("all bodies have found room, so this test shows nothing")
	}
}

// halfBody is a body that stalls after a part until the test ends.
type halfBody struct {
	left    int
	settled chan<- struct{}
	once    sync.Once
	over    <-chan struct{}
}

// sendHalf sends a part of a body with the given length. It counts the response if its status is 503.
func (c *controller) sendHalf(transport *http.Transport, body *halfBody, length int64, refused *atomic.Int64) {
	request, err := http.NewRequestWithContext(c.Context(), http.MethodPost, "https://"+c.https+"/", body)
	if err != nil {
		return
	}
	request.Host, request.ContentLength = "h", length
	response, err := transport.RoundTrip(request)
	if err != nil {
		return
	}
	if response.Body.Close(); response.StatusCode == http.StatusServiceUnavailable {
		refused.Add(1)
	}
	body.settle()
}

// settle signals that the whole part has been sent, or that there is a response.
func (b *halfBody) settle() { b.once.Do(func() { b.settled <- struct{}{} }) }

func (b *halfBody) Read(p []byte) (int, error) {
	if b.left == 0 {
		b.settle()
		<-b.over
		return 0, io.EOF
	}
	n := min(len(p), b.left)
	b.left -= n
	return n, nil
}

// counts waits until each of these metrics of the process is above 0.
func (c *controller) counts(counters ...string) {
	c.Helper()
	c.becomes("counted", func() error {
		response, err := http.Get("http://" + c.health + "/metrics")
		if err != nil {
			return err
		}
		defer response.Body.Close()
		text, err := io.ReadAll(response.Body)
		if err != nil {
			return err
		}
		for _, name := range counters {
			if match := regexp.MustCompile(`(?m)^` + name + ` ([1-9].*)$`).Find(text); match == nil {
				return fmt.Errorf("%s is 0", name)
			}
		}
		return nil
	})
}

// TestSlowReadersOfBrotli checks that 40 clients that read only the head of a long response use up the 16 MiB for
// encoders: only a few of these responses are compressed. Another client still gets its whole response. After the slow
// clients have left, responses are compressed again.
func TestSlowReadersOfBrotli(t *testing.T) {
	t.Setenv("GOMEMLIMIT", "256MiB")
	text := make([]byte, 24<<20)
	for i := range text {
		text[i] = 'a' + byte(rand.IntN(64))
	}
	long := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/plain")
		_, _ = w.Write(text)
	}))
	t.Cleanup(long.Close)
	c, folder := newController(t), t.TempDir()
	c.write(filepath.Join(folder, "all.yaml"),
		"kind: IngressClass\napiVersion: networking.k8s.io/v1\nmetadata: {name: nginx}\n"+
			"spec: {controller: k8s.io/ingress-nginx}\n"+
			fmt.Sprintf(tenantOfOne, "a", "h", portOf(long.Listener.Addr().String()))+
			"---\napiVersion: v1\nkind: ConfigMap\nmetadata: {name: global, namespace: a}\n"+
			"data: {enable-brotli: \"true\", brotli-level: \"4\"}\n")
	file := filepath.Join(t.TempDir(), "Caddyfile")
	c.write(file, c.caddyfile("health_metrics\nconfigmap a/global\nmanifests "+folder))
	c.run(file)
	compressed := 0
	var slow []io.ReadCloser
	for range 40 {
		head, body := c.requestsBrotli()
		slow = append(slow, body)
		if head.Get("Vary") != "Accept-Encoding" {
			t.Fatalf("the head is %v", head)
		}
		if head.Get("Content-Encoding") == "br" {
			compressed++
		}
	}
	if compressed == 0 || compressed > 4 {
		t.Errorf("%d responses are compressed", compressed)
	}
	c.counts("k8singress_encoder_bytes_refused_total")
	_, body := c.requestsBrotli()
	defer body.Close()
	if n, err := io.Copy(io.Discard, body); n != int64(len(text)) || err != nil {
		t.Errorf("another client gets %d bytes of %d, %v", n, len(text), err)
	}
	for _, body := range slow {
		body.Close()
	}
	c.becomes("compressed again", func() error {
		head, body := c.requestsBrotli()
		body.Close()
		if head.Get("Content-Encoding") != "br" {
			return errors.New("the response is not compressed")
		}
		return nil
	})
}

// requestsBrotli requests a response on a new connection and returns its head and body. The caller closes the body.
func (c *controller) requestsBrotli() (http.Header, io.ReadCloser) {
	c.Helper()
	request, err := http.NewRequestWithContext(c.Context(), http.MethodGet, "http://"+c.http+"/", nil)
	if err != nil {
		c.Fatal(err)
	}
	request.Host = "h"
	request.Header.Set("Accept-Encoding", "br")
	response, err := (&http.Client{Transport: &http.Transport{DisableKeepAlives: true}}).Do(request)
	if err != nil {
		c.Fatal(err)
	}
	return response.Header, response.Body
}

// TestClientConnectionsOfHTTP3 checks that HTTP/3 connections are limited like others, and that idle ones are closed to
// make room for new ones.
func TestClientConnectionsOfHTTP3(t *testing.T) {
	t.Setenv(filesOfCaddy, "400")
	c := launch(t, newOrigin(t), "")
	const hostile, room, each = 300, 100, 20
	open := make(chan struct{}, hostile)
	for i := range hostile {
		conn, err := quic.DialAddr(t.Context(), c.https,
			&tls.Config{InsecureSkipVerify: true, ServerName: "h", NextProtos: []string{"h3"}},
			&quic.Config{KeepAlivePeriod: time.Second})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = conn.CloseWithError(0, "") })
		open <- struct{}{}
		context.AfterFunc(conn.Context(), func() { <-open })
		if i%each == 0 {
			c.becomes("answered", func() error {
				status, _, err := c.get(&http.Client{Transport: &http.Transport{DisableKeepAlives: true}},
					"http://"+c.http)
				if status != http.StatusOK {
					return fmt.Errorf("a request gets %d, %w", status, err)
				}
				return nil
			})
		}
	}
	c.becomes("room", func() error {
		if n := len(open); n > room {
			return fmt.Errorf("%d connections are open", n)
		}
		return nil
	})
}
