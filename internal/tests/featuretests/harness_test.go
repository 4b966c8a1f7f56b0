// Package featuretests runs the whole controller, in a real Caddy, on folders of manifests, and checks the responses
// that clients of the ingress get. Each file tests one feature.
package featuretests

import (
	"bufio"
	"crypto/tls"
	"encoding/binary"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/caddyconfig"
	_ "github.com/caddyserver/caddy/v2/modules/standard"

	_ "github.com/k8singress/k8singress"
	"github.com/k8singress/k8singress/internal/tests/fixture"
	"github.com/k8singress/k8singress/k8singress"
)

// processes is the number of processes that run the tests. There are more than processors, because tests mostly wait.
var processes = flag.Int("processes", min(2*runtime.GOMAXPROCS(0), 16), "number of processes that run the tests")

// deadline is the maximum time that a test waits for an expected result.
const deadline = fixture.Patience

// ingress is a controller that runs in a Caddy in this process.
type ingress struct {
	testing.TB
	folder string
	admin  string
	http   string
	https  string
	// byCaddy is the address of a server whose requests Caddy's HTTP server handles.
	byCaddy string
	// version is the version of HTTP of client. admins is the client for the admin API.
	version        string
	client, admins *http.Client
}

// accessLogOn is an option of start for tests that read the access log. It is off in other tests, because it would
// fill their output.
const accessLogOn = "# access_log on"

// start runs Caddy with a folder that has one file with manifests. Each of options is one more line of the k8singress
// block.
func start(t testing.TB, manifests string, options ...string) *ingress {
	t.Helper()
	in := newIngress(t)
	in.write("manifests.yaml", manifests)
	in.load(fmt.Sprintf("manifests %s\n%s", in.folder, strings.Join(options, "\n")))
	in.awaitReady()
	return in
}

// onThisMachine allows endpoints on this machine, which most tests have, and disables the access log, unless the
// Caddyfile sets these options itself.
func onThisMachine(caddyfile string) string {
	for option, value := range map[string]string{"reach_allow": "127.0.0.0/8 ::1/128", "access_log": "off"} {
		if !strings.Contains(caddyfile, option) {
			caddyfile = strings.Replace(caddyfile, "k8singress {\n", "k8singress {\n"+option+" "+value+"\n", 1)
		}
	}
	return strings.Replace(caddyfile, accessLogOn+"\n", "", 1)
}

func newIngress(t testing.TB) *ingress {
	t.Helper()
	in := &ingress{
		TB: t, folder: t.TempDir(), admin: fixture.Address(t), http: fixture.Address(t), https: fixture.Address(t),
		byCaddy: fixture.Address(t),
		version: plain1,
		admins:  &http.Client{Timeout: deadline},
	}
	t.Cleanup(in.end)
	in.client = in.clientOf(t, plain1, anybody())
	return in
}

// end stops Caddy, and waits for the goroutines that were started, since they may still write into folders of the
// test.
func (in *ingress) end() {
	in.admins.CloseIdleConnections()
	app, _ := caddy.ActiveContext().AppIfConfigured("k8singress")
	if err := caddy.Stop(); err != nil {
		in.Error(err)
	}
	if app, ok := app.(*k8singress.App); ok {
		select {
		case <-app.Ended():
		case <-time.After(fixture.Patience):
			in.Error("the engine has not ended")
		}
	}
}

// load adapts a Caddyfile, like `caddy run`, and runs it. Every version of HTTP is enabled.
func (in *ingress) load(block string) {
	in.Helper()
	in.loadCaddyfile(fmt.Sprintf("{\nadmin %s\nk8singress {\nhttp %s\nhttps %s\nh2c\n%s\n}\n}\n", in.admin, in.http,
		in.https, block))
}

func (in *ingress) loadCaddyfile(text string) {
	in.Helper()
	config, _, err := caddyconfig.GetAdapter("caddyfile").Adapt([]byte(onThisMachine(text)),
		map[string]any{"filename": "Caddyfile"})
	if err != nil {
		in.Fatal(err)
	}
	in.reload(in.withServerByCaddy(config))
}

// withServerByCaddy adds a server to a configuration. It is like the controller's server for HTTP, but has another
// address, and an option because of which Caddy's HTTP server handles its requests.
func (in *ingress) withServerByCaddy(config []byte) []byte {
	in.Helper()
	return in.withServers(config, func(servers map[string]any) {
		if ours, ok := servers["k8singress_http"].(map[string]any); ok {
			other := maps.Clone(ours)
			other["listen"], other["strict_sni_host"] = []string{in.byCaddy}, true
			servers["by_caddy"] = other
		}
	})
}

// reload replaces Caddy's configuration, and waits until the servers of the previous one have closed their listeners,
// which Caddy does after it reports success. A server of a site resets connections that have not sent a request by
// then. The controller uses the same sockets for all configurations.
func (in *ingress) reload(config []byte) {
	in.Helper()
	if err := caddy.Load(config, true); err != nil {
		in.Fatal(err)
	}
	in.eventually("the listeners of before", func() error {
		for _, address := range []string{in.http, in.https} {
			if n := listening(in, address); n > 1 {
				return fmt.Errorf("%d sockets listen on %s", n, address)
			}
		}
		return nil
	})
	// Connections of the admin API are closed as well.
	in.admins.CloseIdleConnections()
}

// listening returns the number of sockets that listen on an address, according to Linux. A closed listener is gone when
// its last call of Accept has returned. On other systems it returns 0.
func listening(t testing.TB, address string) int {
	t.Helper()
	const state = "0A"
	sockets, err := os.Open("/proc/self/net/tcp")
	if errors.Is(err, fs.ErrNotExist) {
		return 0
	}
	if err != nil {
		t.Fatal(err)
	}
	defer sockets.Close()
	at := netip.MustParseAddrPort(address)
	ip := at.Addr().As4()
	// The address is hexadecimal, in the byte order of this machine.
	wanted := fmt.Sprintf("%08X:%04X", binary.NativeEndian.Uint32(ip[:]), at.Port())
	lines, count := bufio.NewScanner(sockets), 0
	lines.Scan() // This line has the names of the fields.
	// Sockets that listen come first. The others are not read, because after some tests there are thousands of them.
	for lines.Scan() {
		fields := strings.Fields(lines.Text())
		if len(fields) < 4 || fields[3] != state {
			break
		}
		if fields[1] == wanted {
			count++
		}
	}
	if err := lines.Err(); err != nil {
		t.Fatal(err)
	}
	return count
}

// write replaces a file of the folder. It fails the test if the controller ignores a manifest, or a part of it. Without
// this check, the test would fail much later, with a status that has nothing to do with the cause.
func (in *ingress) write(name, content string) {
	in.Helper()
	draft := in.draft(name, content)
	if problems := ignoredIn(in, draft); len(problems) > 0 {
		in.Fatalf("the controller ignores a part of the manifests (see writeAnything):\n%s\n%s",
			strings.Join(problems, "\n"), numbered(content))
	}
	in.publish(draft)
}

// writeAnything is like write, for manifests that the controller may ignore.
func (in *ingress) writeAnything(name, content string) {
	in.Helper()
	in.publish(in.draft(name, content))
}

// draft writes a file outside the folder.
func (in *ingress) draft(name, content string) (path string) {
	in.Helper()
	path = filepath.Join(in.TempDir(), name)
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		in.Fatal(err)
	}
	return path
}

// publish moves a file into the folder, in one step, like an editor.
func (in *ingress) publish(draft string) {
	in.Helper()
	if err := os.Rename(draft, filepath.Join(in.folder, filepath.Base(draft))); err != nil {
		in.Fatal(err)
	}
}

func (in *ingress) remove(name string) {
	in.Helper()
	if err := os.Remove(filepath.Join(in.folder, name)); err != nil {
		in.Fatal(err)
	}
}

// status holds the fields of GET /k8singress/status that the tests check.
type status struct {
	Ready      bool           `json:"ready"`
	Generation int            `json:"generation"`
	Objects    map[string]int `json:"objects"`
}

func (in *ingress) status() status {
	in.Helper()
	var s status
	in.adminJSON("/k8singress/status", &s)
	return s
}

func (in *ingress) adminJSON(path string, into any) {
	in.Helper()
	var response *http.Response
	// Loading a configuration replaces the listener of the admin API, which resets connections in its queue.
	in.eventually("the admin API", func() (err error) {
		response, err = in.admins.Get("http://" + in.admin + path) //nolint:bodyclose // Closed below.
		return err
	})
	defer response.Body.Close()
	if err := json.NewDecoder(response.Body).Decode(into); err != nil {
		in.Fatalf("GET %s: %s: %v", path, response.Status, err)
	}
}

func (in *ingress) awaitReady() {
	in.Helper()
	in.eventually("ready", func() error {
		// The verdicts on objects follow a moment later.
		if s := in.status(); !s.Ready || s.Generation == 0 {
			return fmt.Errorf("it is not: %+v", s)
		}
		return nil
	})
}

// eventually fails the test if condition keeps returning an error.
func (in *ingress) eventually(what string, condition func() error) {
	in.Helper()
	fixture.Eventually(in, what, condition)
}

// connect opens a connection that is closed at the end of the test. Reads and writes fail when deadline has passed
// since the call.
func connect(t testing.TB, address string) net.Conn {
	t.Helper()
	conn, err := net.DialTimeout("tcp", address, deadline)
	if err != nil {
		t.Fatal(err)
	}
	return ofTest(t, conn)
}

// accepted is like connect, but waits until the address accepts connections.
func (in *ingress) accepted(address string) (conn net.Conn) {
	in.Helper()
	in.eventually("a connection to "+address, func() (err error) {
		conn, err = net.DialTimeout("tcp", address, deadline)
		return err
	})
	return ofTest(in, conn)
}

// ofTest sets the deadline of a connection, and closes it when the test ends.
func ofTest(t testing.TB, conn net.Conn) net.Conn {
	t.Helper()
	t.Cleanup(func() { _ = conn.Close() })
	if err := conn.SetDeadline(time.Now().Add(deadline)); err != nil {
		t.Fatal(err)
	}
	return conn
}

// answer is a response as the client sees it.
type answer struct {
	status int
	header http.Header
	// body is the body of the response. It is empty for an error of the controller itself: TestErrorBodies checks the
	// bodies of such errors.
	body string
}

// withoutErrorBody returns an empty string if body is the text or the page of an error of the controller with this
// status. Otherwise it returns body.
func withoutErrorBody(status int, body string) string {
	title := strings.TrimSpace(fmt.Sprint(status, " ", http.StatusText(status)))
	if strings.HasPrefix(body, title+"\nk8singress, request ID ") ||
		strings.Contains(body, "<h1>"+title+"</h1>\n<p>k8singress, request ID ") {
		return ""
	}
	return body
}

// get sends a request for a path of a host through the ingress.
func (in *ingress) get(host, path string) answer {
	in.Helper()
	return in.sendBy(in.client, in.origin(host)+path, http.MethodGet, nil)
}

// read reads a response to its end.
func read(t testing.TB, response *http.Response) answer {
	t.Helper()
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	return answer{response.StatusCode, response.Header, withoutErrorBody(response.StatusCode, string(body))}
}

// expect fails the test unless host and path respond with a status and, if it is not empty, a body.
func (in *ingress) expect(host, path string, status int, body string) {
	in.Helper()
	if err := in.check(host, path, status, body); err != nil {
		in.Error(err)
	}
}

// becomes waits for a response with this status and body.
func (in *ingress) becomes(host, path string, status int, body string) {
	in.Helper()
	in.eventually("answer", func() error { return in.check(host, path, status, body) })
}

func (in *ingress) check(host, path string, status int, body string) error {
	in.Helper()
	got := in.get(host, path)
	if got.status != status || body != "" && got.body != body {
		return fmt.Errorf("%s%s answers %d %q, want %d %q", host, path, got.status, got.body, status, body)
	}
	return nil
}

// certificate returns the names in the certificate that a TLS client of a host gets.
func (in *ingress) certificate(host string) []string {
	in.Helper()
	conn, err := tls.Dial("tcp", in.https, &tls.Config{ServerName: host, InsecureSkipVerify: true})
	if err != nil {
		in.Fatal(err)
	}
	defer conn.Close()
	leaf := conn.ConnectionState().PeerCertificates[0]
	return append([]string{leaf.Subject.CommonName}, leaf.DNSNames...)
}

// verdict is an entry of /k8singress/objects.
type verdict struct {
	Object struct{ Kind, Namespace, Name string } `json:"object"`

	Accepted bool `json:"accepted"`
	Problems []problem
}

// problem is one problem of an object.
type problem struct{ Severity, Reason, Field, Message string }

// problems returns the problems of an object, such as "Ingress/shop/web".
func (in *ingress) problems(object string) (found []problem) {
	in.Helper()
	var all []verdict
	in.adminJSON("/k8singress/objects", &all)
	for _, v := range all {
		if strings.ReplaceAll(v.Object.Kind+"/"+v.Object.Namespace+"/"+v.Object.Name, "//", "/") == object {
			found = append(found, v.Problems...)
		}
	}
	return found
}

// reasons returns the reasons of the problems of an object.
func (in *ingress) reasons(object string) (found []string) {
	in.Helper()
	for _, p := range in.problems(object) {
		found = append(found, p.Reason)
	}
	return found
}

// messages returns the messages of an object's problems that have this reason.
func (in *ingress) messages(object, reason string) (found []string) {
	in.Helper()
	for _, p := range in.problems(object) {
		if p.Reason == reason {
			found = append(found, p.Message)
		}
	}
	return found
}

// awaitVerdict waits until a verdict with a reason contains a text: verdicts are updated a moment after the routes.
func (in *ingress) awaitVerdict(object, reason, text string) {
	in.Helper()
	in.eventually("a verdict on "+object, func() error {
		if got := strings.Join(in.messages(object, reason), "; "); !strings.Contains(got, text) {
			return fmt.Errorf("%s is %q, without %s", reason, got, text)
		}
		return nil
	})
}

// message returns the first message of an object's problems that have this reason, or an empty string.
func (in *ingress) message(object, reason string) string {
	in.Helper()
	if all := in.messages(object, reason); len(all) > 0 {
		return all[0]
	}
	return ""
}

// backend starts a server that responds with its name and the path, and returns its IP address and port.
func backend(t testing.TB, name string) (ip string, port string) {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		fmt.Fprintf(w, "%s %s", name, r.URL.RequestURI())
	}))
	t.Cleanup(server.Close)
	ip, port, err := net.SplitHostPort(server.Listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	return ip, port
}
