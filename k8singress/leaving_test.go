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

	"github.com/k8singress/k8singress/internal/fixture"
)

// origin is a backend: it echoes what comes over an upgraded connection, and holds requests for /slow until the test lets
// them go.
type origin struct {
	*httptest.Server
	// secure is the same with TLS, for hosts that leave it to their backends.
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

// puts puts ports into manifests.
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

// controller is Caddy in a process of its own.
type controller struct {
	*testing.T
	command             *exec.Cmd
	http, https, health string
	// stream is the TCP port in front of the same backend, if there is one.
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

// manifests writes a folder of manifests with a host "h" in front of a backend, and returns it.
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
		T: t, http: fixture.Address(t), https: fixture.Address(t), health: fixture.Address(t), stream: fixture.Address(t),
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

// run starts the process with a configuration, and waits until it is ready.
func (c *controller) run(file string) {
	c.Helper()
	program, err := os.Executable()
	if err != nil {
		c.Fatal(err)
	}
	c.start(program, "run", "--config", file)
}

// start starts a program with arguments as Caddy, and waits until it is ready.
func (c *controller) start(program string, arguments ...string) {
	c.Helper()
	c.spawn(nil, program, arguments...)
	c.becomes("ready", func() error { return c.probe("/readyz", http.StatusOK) })
}

// spawn starts a program with arguments as Caddy, with more variables in its environment.
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

// finish ends the process, if that has not ended yet, and shows its log where the test has failed.
func (c *controller) finish(log *os.File) {
	defer log.Close()
	// Their errors are that it has ended.
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

// probe asks for a path of the health server.
func (c *controller) probe(path string, want int) error {
	status, _, err := c.get(http.DefaultClient, "http://"+c.health+path)
	if err == nil && status != want {
		err = fmt.Errorf("%s answers %d", path, status)
	}
	return err
}

// get asks a server, and returns the status and the local port of the connection. It says so if the server closes it.
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

// upgrade opens a WebSocket, as far as a proxy knows.
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
	response, err := http.ReadResponse(bufio.NewReader(conn), nil) //nolint:bodyclose // It has none.
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

// ends waits for the process, which must have status 0.
func (c *controller) ends() {
	c.Helper()
	if err := c.command.Wait(); err != nil {
		c.Errorf("the process ends with %v", err)
	}
}

// endsWithout closes the last connections of a process that is about to end, and waits for it: it has nothing to wait for then.
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

// cutsOff tells the process to end while a connection is open that stays so. After the timeout both end. Something may happen
// meanwhile.
func (c *controller) cutsOff(conn net.Conn, timeout time.Duration, meanwhile ...func()) {
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
	if took := time.Since(begin); took < timeout-100*time.Millisecond || took > timeout+patience {
		c.Errorf("it took %v", took)
	}
}

// Caddy stops its apps in an order that differs from run to run.
const ends = 4

// TestEndOfTheProcess holds that SIGTERM loses no request: new ones are taken while readiness is off and clients are asked
// to leave, those under way are finished, and streams may go on.
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

// begin sends a request that is not answered before the origin is told to. What comes is nil if all is well.
func (c *controller) begin(o *origin) <-chan error {
	slow := make(chan error, 1)
	go func() {
		// A client of its own: its connection is its own, too.
		status, _, err := c.get(&http.Client{Transport: &http.Transport{}}, "http://"+c.http+"/slow")
		if errors.Is(err, errClosing) {
			err = nil
		}
		slow <- errors.Join(err, isOK(status))
	}()
	fixture.Receive(c, "the request at the backend", o.asked)
	return slow
}

// sendsAway looks at what happens between the signal and the end of the listeners. second is a client of HTTP/2, with a
// connection. It returns a stream that began then.
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

// refuses is a condition: that nobody listens on an address.
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

// TestStreamsThatDoNotEnd holds that the process ends without them.
func TestStreamsThatDoNotEnd(t *testing.T) {
	const timeout = 2 * time.Second
	for range ends {
		t.Run("", func(t *testing.T) {
			t.Parallel()
			c := launch(t, newOrigin(t), "shutdown_timeout "+timeout.String())
			c.cutsOff(c.upgrade(), timeout)
		})
	}
}

// Before the objects are known the process works, and is not ready.
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
		"/healthz": http.StatusOK, "/readyz": http.StatusServiceUnavailable, "/": http.StatusNotFound, "/readyz/x": http.StatusNotFound,
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
