package accesslog

import (
	"crypto/tls"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"net/netip"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"go.uber.org/zap"

	"github.com/k8singress/k8singress/internal/http/exchange"
	"github.com/k8singress/k8singress/internal/http/message"
	"github.com/k8singress/k8singress/internal/http/realip"
	"github.com/k8singress/k8singress/internal/model/ir"
	"github.com/k8singress/k8singress/internal/tests/exchangetest"
	"github.com/k8singress/k8singress/internal/tests/fixture"
	"github.com/k8singress/k8singress/internal/upstream/balancer"
)

// answered returns an exchange with a 200 response of five bytes.
func answered(target string, fields ...message.Field) *exchange.Exchange {
	conn := message.NewConn(netip.MustParseAddrPort("192.0.2.1:4000"), netip.MustParseAddrPort("192.0.2.2:80"), nil)
	return &exchange.Exchange{
		Request: &message.Request{Method: "GET", Host: "a.example", Target: target, Path: target, Major: 1, Minor: 1,
			Fields: fields, Conn: conn},
		Clients: realip.New(ir.Clients{}), Global: &ir.Global{}, Writer: wrote{sent: 5}, Status: 200,
		Route: &exchange.Route{Host: "a.example", Path: "/", Origin: "Ingress/shop/web"},
	}
}

// wrote is a Writer that reports the size of its body.
type wrote struct {
	message.Writer
	sent int64
}

func (w wrote) Sent() int64 { return w.sent }

func lineOf(f *format[entry], x *exchange.Exchange) string {
	return string(f.append(nil, &entry{Exchange: x, now: time.Unix(1700000000, 0).UTC(),
		took: 1234567 * time.Microsecond}))
}

// TestDefaultFormat checks that a line has the format of ingress-nginx.
func TestDefaultFormat(t *testing.T) {
	x := answered("/x?y", message.NewField("Referer", "http://b.example/"), message.NewField("User-Agent", "curl/8"),
		message.NewField("X-Request-ID", "abc"), message.NewField("Authorization", "Basic YWxpY2U6c2VjcmV0"))
	got := lineOf(newFormat(DefaultFormat, ir.EscapeDefault, valueOf), x)
	want := `192.0.2.1 - alice [14/Nov/2023:22:13:20 +0000] "GET /x?y HTTP/1.1" 200 5 "http://b.example/" ` +
		`"curl/8" 144 1.234 [] [] - - - - abc` + "\n"
	want = strings.Replace(want, "[] []", "[-] [-]", 1)
	if got != want {
		t.Errorf("the line is\n%swant\n%s", got, want)
	}
}

// TestBytesOfUpgrade checks that the bytes of a WebSocket count as sent, as in nginx.
func TestBytesOfUpgrade(t *testing.T) {
	x := answered("/")
	x.Status, x.Relayed = http.StatusSwitchingProtocols, 200
	if got := lineOf(newFormat("$body_bytes_sent $bytes_sent", ir.EscapeDefault, valueOf), x); got != "205 205\n" {
		t.Errorf("the line is %s", got)
	}
}

// TestNothingLeavesItsField checks that values from a client cannot end a line or a quoted field.
func TestNothingLeavesItsField(t *testing.T) {
	x := answered("/", message.NewField("User-Agent", "a\"b\\c\x01\x7fé"))
	x.Path = "/x\r\n\" 200"
	for escape, want := range map[ir.LogEscape]string{
		ir.EscapeDefault: `"a\x22b\x5Cc\x01\x7F\xC3\xA9" "/x\x0D\x0A\x22 200"` + "\n",
		ir.EscapeJSON:    "\"a\\\"b\\\\c\\u0001\x7fé\" \"/x\\r\\n\\\" 200\"\n",
		ir.EscapeNone:    `"a"b\c\x01\x7Fé" "/x\x0D\x0A" 200"` + "\n",
	} {
		if got := lineOf(newFormat(`"$http_user_agent" "$uri"`, escape, valueOf), x); got != want {
			t.Errorf("%q writes %s, want %s", escape, got, want)
		}
	}
}

// TestLogVariables checks the values of variables for a request without a route, and that only unknown variables are
// reported.
func TestLogVariables(t *testing.T) {
	x := answered("/")
	x.Conn.TLS = &tls.ConnectionState{Version: tls.VersionTLS13, CipherSuite: tls.TLS_AES_128_GCM_SHA256,
		ServerName: "a.example"}
	x.Route = nil
	text := "$" + strings.Join(slices.Sorted(maps.Keys(values)), " $") +
		" $ssl_protocol $ssl_cipher $ssl_server_name $https $server_protocol $nothing $namespace $server_name"
	if unknown := UnknownVariables(text); !slices.Equal(unknown, []string{"nothing"}) {
		t.Errorf("the unknown variables are %q", unknown)
	}
	got := lineOf(newFormat(text, ir.EscapeDefault, valueOf), x)
	for _, want := range []string{"TLSv1.3", "TLS_AES_128_GCM_SHA256", "a.example",
		"2023-11-14T22:13:20+00:00", " on HTTP/1.1 - - _\n"} {
		if !strings.Contains(got, want) {
			t.Errorf("%s is not in %s", want, got)
		}
	}
}

// TestVariablesOfPrograms checks that a variable that a program has set is logged, and that a program cannot replace a
// variable of nginx or end a field.
func TestVariablesOfPrograms(t *testing.T) {
	x := answered("/")
	f := newFormat(`$user "$status" $host`, ir.EscapeDefault, valueOf)
	if got := lineOf(f, x); got != "- \"200\" a.example\n" {
		t.Errorf("without a program the line is %s", got)
	}
	x.SetVariable("user", "alice\" 404\n")
	x.SetVariable("status", "404")
	x.SetVariable("host", "evil.example")
	if got := lineOf(f, x); got != `alice\x22 404\x0A "200" a.example`+"\n" {
		t.Errorf("the line is %s", got)
	}
}

// TestStreamVariables checks the same as TestLogVariables for TCP and UDP ports. Unknown values are logged as "-".
func TestStreamVariables(t *testing.T) {
	text := "$" + strings.Join(StreamVariables(), " $")
	if unknown := UnknownStreamVariables(text + "$uri"); !slices.Equal(unknown, []string{"uri"}) {
		t.Errorf("the unknown variables are %q", unknown)
	}
	ended := time.Unix(1700000000, 0).UTC()
	full := Session{
		Protocol: ir.TCP, Client: netip.MustParseAddrPort("[::ffff:192.0.2.1]:4660"),
		Server:  netip.MustParseAddrPort("[2001:db8::1]:5432"),
		Backend: "shop/db/5432", Endpoint: "10.0.0.7:5432", Status: StreamServed, Received: 7, Sent: 9,
		Began: ended.Add(-1234 * time.Millisecond),
		ended: ended,
	}
	datagrams := full
	datagrams.Protocol, datagrams.Backend = ir.UDP, "shop/dns/53/udp"
	empty := Session{Protocol: ir.UDP, Status: StreamNoEndpoint, Began: ended, ended: ended}
	for _, c := range []struct {
		of   Session
		want string
	}{
		{full,
			"7 9 HOST 1700000000.000 PID TCP tcp-shop-db-5432 192.0.2.1 4660 2001:db8::1 5432 1.234 200 " +
				"2023-11-14T22:13:20+00:00 14/Nov/2023:22:13:20 +0000 10.0.0.7:5432 9 7"},
		{datagrams,
			"7 9 HOST 1700000000.000 PID UDP udp-shop-dns-53 192.0.2.1 4660 2001:db8::1 5432 1.234 200 " +
				"2023-11-14T22:13:20+00:00 14/Nov/2023:22:13:20 +0000 10.0.0.7:5432 9 7"},
		{empty,
			"0 0 HOST 1700000000.000 PID UDP - - - - - 0.000 502 2023-11-14T22:13:20+00:00 14/Nov/2023:22:13:20 " +
				"+0000 - - -"},
	} {
		of := func(name string) func(*Session) string { return streamValues[name] }
		got := strings.NewReplacer(hostname, "HOST", pid,
			"PID").Replace(string(newFormat(text, ir.EscapeDefault, of).append(nil, &c.of)))
		if got != c.want+"\n" {
			t.Errorf("the line is\n%swant\n%s", got, c.want)
		}
	}
}

// TestFile checks that lines are written to a file, and to a new file after the old one was renamed. If the folder does
// not exist, lines are dropped.
func TestFile(t *testing.T) {
	folder := t.TempDir()
	files := NewFiles(zap.NewNop())
	path := filepath.Join(folder, "access.log")
	l := New(&ir.AccessLog{Path: path, Format: "$request", Skip: []string{"/skipped", "~^/.*z$"}}, files, nil)
	for _, target := range []string{"/a", "/skipped", "/yz", "/b"} {
		l.Record(answered(target), time.Now(), 0, true)
	}
	l.Record(answered("/nobody"), time.Now(), 0, false)
	x := answered("/off")
	x.Route.Unlogged = true
	l.Record(x, time.Now(), 0, true)
	x = answered("/off-by-a-program")
	x.Unlogged = true
	l.Record(x, time.Now(), 0, true)
	const want = "GET /a HTTP/1.1\nGET /b HTTP/1.1\n"
	fixture.Eventually(t, "two lines", func() error { return has(path, regexp.QuoteMeta(want)) })
	if err := os.Rename(path, path+".1"); err != nil {
		t.Fatal(err)
	}
	fixture.Eventually(t, "a line in another file", func() error {
		l.Record(answered("/c"), time.Now(), 0, true)
		return has(path, "(GET /c HTTP/1.1\n)+")
	})
	lost := New(&ir.AccessLog{Path: filepath.Join(folder, "none", "access.log")}, files, nil)
	lost.Record(answered("/"), time.Now(), 0, true)
	fixture.Eventually(t, "a dropped line", func() error {
		if n := files.dropped.Load(); n != 1 {
			return fmt.Errorf("there are %d", n)
		}
		return nil
	})
	New(&ir.AccessLog{Off: true}, files, nil).Record(answered("/"), time.Now(), 0, true)
}

// TestFlush checks that all lines are in the file after Flush.
func TestFlush(t *testing.T) {
	files, path := NewFiles(zap.NewNop()), filepath.Join(t.TempDir(), "access.log")
	l := New(&ir.AccessLog{Path: path, Format: "$status"}, files, nil)
	for range 3 {
		l.Record(answered("/"), time.Now(), 0, true)
	}
	files.Flush()
	if err := has(path, "(200\n){3}"); err != nil {
		t.Error(err)
	}
}

func has(path, want string) error {
	text, err := os.ReadFile(path)
	if err == nil && !regexp.MustCompile("^"+want+"$").Match(text) {
		err = errors.New("it has " + string(text))
	}
	return err
}

func BenchmarkNote(b *testing.B) {
	l := New(&ir.AccessLog{Path: filepath.Join(b.TempDir(), "access.log")}, NewFiles(zap.NewNop()), nil)
	x := answered("/x?y", message.NewField("User-Agent", "curl/8"))
	b.ReportAllocs()
	for b.Loop() {
		l.Record(x, time.Now(), 0, true)
	}
}

// TestUpstreamLength checks that only body bytes of an endpoint count as the length of its response, and not the body
// that the controller sends because all endpoints have failed: an error, or the text of another route.
func TestUpstreamLength(t *testing.T) {
	forward := func(x *exchange.Exchange, status int, body string) error {
		if err := x.Head(&message.Response{Status: status}); err != nil {
			return err
		}
		_, err := x.Writer.Write([]byte(body))
		return err
	}
	for name, c := range map[string]struct {
		respond func(x *exchange.Exchange) error
		want    string
	}{
		"a response": {func(x *exchange.Exchange) error { return forward(x, 200, "hello") }, "0, 5"},
		"a failure":  {func(x *exchange.Exchange) error { return x.Refuse(502) }, "0, 0"},
		"a rejection": {func(x *exchange.Exchange) error {
			_, err := x.RespondError(exchange.Fail(502, nil))
			return err
		}, "0, 0"},
		"an error page": {func(x *exchange.Exchange) error {
			page := x.ErrorPage(&exchange.Page{Backend: x.Backend, Status: 502})
			page.Next()
			defer x.EndErrorPage(page)
			defer page.Conclude(nil)
			return forward(page, 502, "page")
		}, "0, 0 : 4"},
		"the text of another route": {func(x *exchange.Exchange) error {
			x.Reroute(x.Arrival())
			return x.Respond(200, "page")
		}, "0, 0"},
		"an endpoint of another route": {func(x *exchange.Exchange) error {
			backend := x.Backend
			x.Reroute(x.Arrival())
			x.Backend = backend
			x.Next()
			defer x.Conclude(nil)
			return forward(x, 200, "hello")
		}, "0, 0 : 5"},
	} {
		x, response := exchangetest.New(t, "GET http://shop.example/")
		x.ErrorBodies, x.Backend = true, balancer.New("shop/web/80")
		x.Backend.SetEndpoints([]ir.Endpoint{{Address: "a:1"}, {Address: "b:1"}})
		x.Next()
		x.Next()
		x.Done(true)
		if err := c.respond(x); err != nil || response.Sent() == 0 {
			t.Fatalf("%s: %d bytes are sent, error %v", name, response.Sent(), err)
		}
		got := lineOf(newFormat("$upstream_response_length", ir.EscapeDefault, valueOf), x)
		if got != c.want+"\n" {
			t.Errorf("%s is logged with %q, want %q", name, got, c.want)
		}
	}
}
