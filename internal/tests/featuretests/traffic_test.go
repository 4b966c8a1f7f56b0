package featuretests

import (
	"bufio"
	"crypto/sha256"
	"crypto/tls"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/k8singress/k8singress/internal/tests/fixture"
)

// endpointOf starts a server, and returns its address.
func endpointOf(t testing.TB, handler http.HandlerFunc) (ip, port string) {
	t.Helper()
	server := httptest.NewServer(handler)
	t.Cleanup(server.Close)
	return hostPort(t, server.Listener.Addr())
}

func hostPort(t testing.TB, address net.Addr) (ip, port string) {
	t.Helper()
	ip, port, err := net.SplitHostPort(address.String())
	if err != nil {
		t.Fatal(err)
	}
	return ip, port
}

// oneWith returns the rule of a.example for all paths to the Service "one", with annotations such as "proxy-body-size:
// 8m".
func oneWith(annotations ...string) string {
	var all strings.Builder
	for _, a := range annotations {
		name, value, _ := strings.Cut(a, ": ")
		fmt.Fprintf(&all, "\n    nginx.ingress.kubernetes.io/%s: %q", name, value)
	}
	return strings.Replace(rule("a", "a.example", "Prefix", "/", "one"), "metadata: {name: a}",
		"metadata:\n  name: a\n  annotations:"+all.String(), 1)
}

// inFront serves a.example with one endpoint.
func inFront(t testing.TB, handler http.HandlerFunc, annotations ...string) *ingress {
	t.Helper()
	ip, port := endpointOf(t, handler)
	return inFrontOf(t, ip, port, annotations...)
}

func inFrontOf(t testing.TB, ip, port string, annotations ...string) *ingress {
	t.Helper()
	if len(annotations) == 0 {
		return start(t, class+service("one", port, ip)+rule("a", "a.example", "Prefix", "/", "one"))
	}
	return start(t, class+service("one", port, ip)+oneWith(annotations...))
}

// dialed is a connection to the ingress on which a test can read and write freely. Its deadline is the maximum time of
// a test.
type dialed struct {
	net.Conn
	testing.TB
	*bufio.Reader
}

// Read reads the server's bytes, including heads.
func (d *dialed) Read(b []byte) (int, error) { return d.Reader.Read(b) }

// connect opens a connection for HTTP/1.1, over TLS if the test's version uses it.
func (in *ingress) connect() *dialed {
	in.Helper()
	if in.secure() {
		return in.dialed(tls.Dial("tcp", in.https, &tls.Config{ServerName: "a.example", InsecureSkipVerify: true}))
	}
	return in.dialed(net.Dial("tcp", in.http))
}

func (in *ingress) dialed(conn net.Conn, err error) *dialed {
	in.Helper()
	if err != nil {
		in.Fatal(err)
	}
	in.Cleanup(func() { _ = conn.Close() })
	if err := conn.SetDeadline(time.Now().Add(deadline)); err != nil {
		in.Fatal(err)
	}
	return &dialed{conn, in.TB, bufio.NewReader(conn)}
}

func (d *dialed) say(format string, arguments ...any) {
	d.Helper()
	if _, err := fmt.Fprintf(d, format, arguments...); err != nil {
		d.Fatal(err)
	}
}

// head reads the head of a response. The caller reads the body.
func (d *dialed) head(method string) headed {
	d.Helper()
	response, err := http.ReadResponse(d.Reader, &http.Request{Method: method})
	if err != nil {
		d.Fatal(err)
	}
	d.Cleanup(func() { _ = response.Body.Close() })
	return headed{response}
}

// headed is a response that is closed with the connection.
type headed struct{ *http.Response }

// hear reads one response, and returns its status and body.
func (d *dialed) hear(method string) string {
	d.Helper()
	response := d.head(method)
	body, err := io.ReadAll(response.Body)
	if err != nil {
		d.Fatalf("%s: %q and then %v", response.Status, body, err)
	}
	text := withoutErrorBody(response.StatusCode, string(body))
	return strings.TrimSpace(fmt.Sprintf("%d %s", response.StatusCode, text))
}

// ends waits until the server closes the connection.
func (d *dialed) ends() {
	d.Helper()
	if rest, err := io.ReadAll(d.Reader); err != nil && isTimeout(err) || len(rest) > 0 {
		d.Errorf("the connection does not end: %q, %v", rest, err)
	}
}

func isTimeout(err error) bool {
	var timeout net.Error
	return errors.As(err, &timeout) && timeout.Timeout()
}

// send sends a request with a body for a path of a.example, and returns the status, header and body of the response.
func (in *ingress) send(method, path string, body io.Reader, headers ...string) answer {
	in.Helper()
	return in.sendBy(in.client, in.origin("a.example")+path, method, body, headers...)
}

// sendBy sends a request with header fields such as "Name: value".
func (in *ingress) sendBy(client *http.Client, url, method string, body io.Reader, headers ...string) answer {
	in.Helper()
	request, err := http.NewRequestWithContext(in.Context(), method, url, body)
	if err != nil {
		in.Fatal(err)
	}
	for _, header := range headers {
		name, value, _ := strings.Cut(header, ": ")
		if name == "Host" {
			request.Host = value
			continue
		}
		request.Header[name] = append(request.Header[name], value)
	}
	response, err := client.Do(request)
	if err != nil {
		in.Fatal(err)
	}
	return read(in, response)
}

// await receives a value, or fails the test.
func await[T any](t testing.TB, what string, from <-chan T) T {
	t.Helper()
	return fixture.Receive(t, what, from)
}

func hash(b []byte) string {
	sum := sha256.Sum256(b)
	return hex.EncodeToString(sum[:8])
}

// pattern returns a body without repetitions.
func pattern(size int) []byte {
	body := make([]byte, size)
	for i := range body {
		body[i] = byte(i*7 + i>>8*13 + i>>16*31)
	}
	return body
}

// log collects the lines of several goroutines.
type log struct {
	mu    sync.Mutex
	lines []string
}

func (l *log) add(format string, arguments ...any) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.lines = append(l.lines, fmt.Sprintf(format, arguments...))
}

// take returns the collected lines, and clears them.
func (l *log) take() []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	lines := l.lines
	l.lines = nil
	return lines
}

// took fails the test unless the time since begin is at least atLeast, and shorter than without a limit, which is a
// minute or more.
func took(t testing.TB, what string, begin time.Time, atLeast time.Duration) {
	t.Helper()
	const atMost = 30 * time.Second
	if d := time.Since(begin); d < atLeast || d > atMost {
		t.Errorf("%s took %v, not between %v and %v", what, d, atLeast, atMost)
	}
}
