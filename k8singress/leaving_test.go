package k8singress_test

import (
	"bufio"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httptrace"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/k8singress/k8singress/internal/tests/fixture"
)

// origin is a backend. It echoes data on upgraded connections, and delays the responses to requests for /slow until the
// test releases them.
type origin struct {
	*httptest.Server
	// secure is the same backend with TLS, for hosts with TLS passthrough.
	secure         *httptest.Server
	asked, release chan struct{}
}

func newOrigin(t *testing.T) *origin {
	t.Helper()
	o := &origin{asked: make(chan struct{}), release: make(chan struct{})}
	o.Server, o.secure = httptest.NewServer(o), httptest.NewTLSServer(o)
	t.Cleanup(o.CloseClientConnections)
	t.Cleanup(o.secure.CloseClientConnections)
	return o
}

func (o *origin) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	switch {
	case r.Header.Get("Upgrade") != "":
		o.echo(w)
	case r.URL.Path == "/slow":
		close(o.asked)
		<-o.release
		fmt.Fprint(w, "at last")
	default:
		fmt.Fprint(w, "at once")
	}
}

// puts returns a replacer that inserts ports into manifests.
func (o *origin) puts(stream string) *strings.Replacer {
	return strings.NewReplacer("STREAM", portOf(stream), "SECURE", portOf(o.secure.Listener.Addr().String()),
		"PORT", portOf(o.Listener.Addr().String()))
}

func (*origin) echo(w http.ResponseWriter) {
	conn, _, err := http.NewResponseController(w).Hijack()
	if err != nil {
		return
	}
	defer conn.Close()
	fmt.Fprint(conn, "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n")
	_, _ = io.Copy(conn, conn)
}

// controller is Caddy in its own process.
type controller struct {
	*testing.T
	command             *exec.Cmd
	http, https, health string
	// stream is the address of the TCP port in front of the same backend. It may be empty.
	stream string
	// log is the file with the log of the process.
	log string
}

// launch runs `caddy run` with a host "h" in front of a backend, and waits until it is ready.
func launch(t *testing.T, o *origin, options string) *controller {
	t.Helper()
	c := newController(t)
	file := filepath.Join(t.TempDir(), "Caddyfile")
	c.write(file, c.caddyfile("manifests "+c.manifests(o)+"\n"+options))
	c.run(file)
	return c
}

// manifests writes a folder of manifests with a host "h" in front of a backend, and returns its path.
func (c *controller) manifests(o *origin) string {
	c.Helper()
	text, err := os.ReadFile(filepath.Join("testdata", "leaving", "manifests.yaml"))
	if err != nil {
		c.Fatal(err)
	}
	folder := c.TempDir()
	c.write(filepath.Join(folder, "manifests.yaml"), o.puts(c.stream).Replace(string(text)))
	return folder
}

func newController(t *testing.T) *controller {
	t.Helper()
	return &controller{
		T: t, http: fixture.Address(t), https: fixture.Address(t), health: fixture.Address(t),
		stream: fixture.Address(t),
	}
}

func (c *controller) caddyfile(options string) string {
	return fmt.Sprintf("{\nadmin off\nk8singress {\nreach_allow 127.0.0.0/8\nhttp %s\nhttps %s\nhealth %s\n%s\n}\n}\n",
		c.http, c.https, c.health, options)
}

func (c *controller) write(file, text string) {
	c.Helper()
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		c.Fatal(err)
	}
}

// run starts the process with a configuration and waits until it is ready.
func (c *controller) run(file string) {
	c.Helper()
	c.start(executable(c.T), "run", "--config", file)
}

// start starts a binary with arguments as Caddy and waits until it is ready.
func (c *controller) start(program string, arguments ...string) {
	c.Helper()
	c.spawn(nil, program, arguments...)
	c.becomes("ready", func() error { return c.probe("/readyz", http.StatusOK) })
}

// spawn starts a binary with arguments as Caddy, with additional environment variables.
func (c *controller) spawn(environment []string, program string, arguments ...string) {
	c.Helper()
	log, err := os.Create(filepath.Join(c.TempDir(), "log"))
	if err != nil {
		c.Fatal(err)
	}
	c.log = log.Name()
	c.Cleanup(func() { c.finish(log) })
	c.command = exec.CommandContext(c.Context(), program, arguments...)
	c.command.Env = append(os.Environ(), asCaddy+"=1", "HOME="+c.TempDir(), "XDG_DATA_HOME="+c.TempDir())
	c.command.Env = append(c.command.Env, environment...)
	c.command.Stdout, c.command.Stderr = log, log
	if err := c.command.Start(); err != nil {
		c.Fatal(err)
	}
}

// finish kills the process if it is still running, and prints its log if the test has failed.
func (c *controller) finish(log *os.File) {
	defer log.Close()
	// An error means that the process has already ended.
	_ = c.command.Process.Kill()
	_ = c.command.Wait()
	if text, err := os.ReadFile(log.Name()); c.Failed() && err == nil {
		c.Logf("%s", text)
	}
}

func (c *controller) becomes(what string, condition func() error) {
	c.Helper()
	(&process{TB: c.T}).eventually(what, condition)
}

// probe requests a path of the health port and returns an error if the status is not want.
func (c *controller) probe(path string, want int) error {
	status, _, err := c.get(http.DefaultClient, "http://"+c.health+path)
	if err == nil && status != want {
		err = fmt.Errorf("%s answers %d", path, status)
	}
	return err
}

// get sends a request and returns the status and the local port of the connection. It returns errClosing if the server
// announces that it closes the connection.
func (c *controller) get(client *http.Client, url string) (status int, port string, err error) {
	trace := httptrace.ClientTrace{GotConn: func(i httptrace.GotConnInfo) { port = i.Conn.LocalAddr().String() }}
	ctx, cancel := context.WithTimeout(httptrace.WithClientTrace(c.Context(), &trace), patience)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return 0, "", err
	}
	request.Host = "h"
	response, err := client.Do(request)
	if err != nil {
		return 0, port, err
	}
	defer response.Body.Close()
	if _, err := io.Copy(io.Discard, response.Body); err != nil {
		return 0, port, err
	}
	if response.Close {
		err = errClosing
	}
	return response.StatusCode, port, err
}

var errClosing = errors.New("the answer says that the connection is closed")

// upgrade opens a connection that looks like a WebSocket to a proxy.
func (c *controller) upgrade() net.Conn {
	c.Helper()
	return c.upgradeAt(c.http)
}

func (c *controller) upgradeAt(address string) net.Conn {
	c.Helper()
	conn, err := net.DialTimeout("tcp", address, patience)
	if err != nil {
		c.Fatal(err)
	}
	c.Cleanup(func() { _ = conn.Close() })
	c.upgradeOn(conn)
	return conn
}

func (c *controller) upgradeOn(conn net.Conn) {
	c.Helper()
	fmt.Fprint(conn, "GET /socket HTTP/1.1\r\nHost: h\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n"+
		"Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n")
	response, err := http.ReadResponse(bufio.NewReader(conn), nil) //nolint:bodyclose // The response has no body.
	if err != nil || response.StatusCode != http.StatusSwitchingProtocols {
		c.Fatalf("upgrading: %v %v", response, err)
	}
}

func (c *controller) echoes(conn net.Conn) {
	c.Helper()
	if err := conn.SetDeadline(time.Now().Add(patience)); err != nil {
		c.Fatal(err)
	}
	fmt.Fprint(conn, "ping")
	got := make([]byte, len("ping"))
	if _, err := io.ReadFull(conn, got); err != nil || string(got) != "ping" {
		c.Errorf("the stream answers %q, %v", got, err)
	}
}

func (c *controller) terminate() {
	c.Helper()
	if err := c.command.Process.Signal(syscall.SIGTERM); err != nil {
		c.Fatal(err)
	}
}

// ends waits for the process, which must exit with status 0.
func (c *controller) ends() {
	c.Helper()
	if err := c.command.Wait(); err != nil {
		c.Errorf("the process ends with %v", err)
	}
}

// endsWithout closes the last connections of a process that is shutting down. The process must then exit without
// further delay.
func (c *controller) endsWithout(last ...net.Conn) {
	c.Helper()
	begin := time.Now()
	for _, conn := range last {
		if err := conn.Close(); err != nil {
			c.Error(err)
		}
	}
	c.ends()
	if took := time.Since(begin); took > patience {
		c.Errorf("with nothing under way, it still took %v", took)
	}
}

// cutoff is the shutdown_timeout of processes whose connections stay open. A busy machine may pause for seconds before
// a test has used a connection after the signal.
const cutoff = 5 * time.Second

// cutsOff terminates a process with the shutdown_timeout cutoff while a connection stays open. The connection and the
// process must end after that time. meanwhile is called after the signal.
func (c *controller) cutsOff(conn net.Conn, meanwhile ...func()) {
	c.Helper()
	begin := time.Now()
	c.terminate()
	for _, each := range meanwhile {
		each()
	}
	c.echoes(conn)
	if _, err := io.Copy(io.Discard, conn); err != nil && !errors.Is(err, syscall.ECONNRESET) {
		c.Errorf("the connection ends with %v", err)
	}
	c.ends()
	if took := time.Since(begin); took < cutoff-100*time.Millisecond || took > cutoff+patience {
		c.Errorf("it took %v", took)
	}
}

// ends is the number of runs, because Caddy stops its apps in random order.
const ends = 4

// TestEndOfTheProcess checks that SIGTERM loses no request. New requests are accepted while the process is not ready
// and clients are asked to leave. Requests in progress are completed, and streams may continue.
func TestEndOfTheProcess(t *testing.T) {
	for range ends {
		t.Run("", func(t *testing.T) {
			t.Parallel()
			o := newOrigin(t)
			c := launch(t, o, "shutdown_delay 2s\nshutdown_timeout 10m")
			socket, slow := c.upgrade(), c.begin(o)
			second := &http.Client{Transport: &http.Transport{
				ForceAttemptHTTP2: true, TLSClientConfig: &tls.Config{InsecureSkipVerify: true},
			}}
			_, before, err := c.get(second, "https://"+c.https+"/")
			if err != nil {
				t.Fatal(err)
			}
			c.terminate()
			late := c.sendsAway(second, before)
			c.becomes("no listener", refuses(c.http))
			c.echoes(socket)
			close(o.release)
			if err := fixture.Receive(t, "the answer to the request under way", slow); err != nil {
				t.Errorf("the request under way: %v", err)
			}
			c.echoes(socket)
			c.endsWithout(socket, late)
		})
	}
}

// begin sends a request whose response the origin delays. The returned channel yields nil if the request succeeds.
func (c *controller) begin(o *origin) <-chan error {
	slow := make(chan error, 1)
	go func() {
		// A new client has its own connection.
		status, _, err := c.get(&http.Client{Transport: &http.Transport{}}, "http://"+c.http+"/slow")
		if errors.Is(err, errClosing) {
			err = nil
		}
		slow <- errors.Join(err, isOK(status))
	}()
	fixture.Receive(c, "the request at the backend", o.asked)
	return slow
}

// sendsAway checks the time between the signal and the closing of the listeners. second is an HTTP/2 client with an
// open connection. It returns a stream that was opened in this time.
func (c *controller) sendsAway(second *http.Client, before string) net.Conn {
	c.Helper()
	c.becomes("not ready", func() error { return c.probe("/readyz", http.StatusServiceUnavailable) })
	if err := c.probe("/healthz", http.StatusOK); err != nil {
		c.Error(err)
	}
	status, _, err := c.get(&http.Client{Transport: &http.Transport{}}, "http://"+c.http+"/")
	if !errors.Is(err, errClosing) || status != http.StatusOK {
		c.Errorf("HTTP/1.1: %d %v", status, err)
	}
	c.becomes("another HTTP/2 connection", func() error {
		_, after, err := c.get(second, "https://"+c.https+"/")
		if err == nil && after == before {
			err = errors.New("the same as before")
		}
		return err
	})
	late := c.upgrade()
	c.echoes(late)
	return late
}

// refuses returns a condition that nothing listens on an address.
func refuses(address string) func() error {
	return func() error {
		conn, err := net.DialTimeout("tcp", address, patience)
		if err == nil {
			return errors.Join(errors.New("it accepts"), conn.Close())
		}
		return nil
	}
}

func isOK(status int) error {
	if status != http.StatusOK {
		return fmt.Errorf("status %d, want 200", status)
	}
	return nil
}

// TestExitWithOpenStreams checks that the process exits although streams are still open.
func TestExitWithOpenStreams(t *testing.T) {
	for range ends {
		t.Run("", func(t *testing.T) {
			t.Parallel()
			c := launch(t, newOrigin(t), "shutdown_timeout "+cutoff.String())
			c.cutsOff(c.upgrade())
		})
	}
}

// TestHealthBeforeTheObjects checks that the process is healthy but not ready before its objects are loaded.
func TestHealthBeforeTheObjects(t *testing.T) {
	address := fixture.Address(t)
	p := start(t, socket(t), fmt.Sprintf(`{
		"http": {"servers": {"s": {"listen": [%q], "automatic_https": {"disable": true}, "routes": [
			{"handle": [{"handler": "k8singress_health"}]}
		]}}},
		"k8singress": {"http": [], "https": [], "admin": "off"}
	}`, address))
	c := &controller{T: t, health: address}
	for path, want := range map[string]int{
		"/healthz": http.StatusOK, "/readyz": http.StatusServiceUnavailable, "/": http.StatusNotFound,
		"/readyz/x": http.StatusNotFound,
	} {
		if err := c.probe(path, want); err != nil {
			t.Error(err)
		}
	}
	if got := p.ask(http.MethodPut, "config", nothing); got.status != http.StatusOK {
		t.Fatalf("PUT: %d %s", got.status, got.body)
	}
	if err := c.probe("/readyz", http.StatusOK); err != nil {
		t.Error(err)
	}
}
