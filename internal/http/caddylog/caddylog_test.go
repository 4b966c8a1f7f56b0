package caddylog

import (
	"bytes"
	"context"
	"crypto/tls"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"path/filepath"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/modules/caddyhttp"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"

	"github.com/k8singress/k8singress/internal/http/exchange"
	"github.com/k8singress/k8singress/internal/http/message"
	"github.com/k8singress/k8singress/internal/http/realip"
	"github.com/k8singress/k8singress/internal/model/ir"
)

// answered returns an exchange with a 200 response of five bytes.
func answered(target string, fields ...message.Field) *exchange.Exchange {
	conn := message.NewConn(netip.MustParseAddrPort("192.0.2.1:4000"), netip.MustParseAddrPort("192.0.2.2:80"), nil)
	return &exchange.Exchange{
		Request: &message.Request{Method: "GET", Host: "a.example", Target: target, Path: target, Major: 1, Minor: 1,
			Fields: fields, Conn: conn},
		Clients: realip.New(ir.Clients{}), Global: &ir.Global{}, Writer: headed{}, Status: 200,
		Route: &exchange.Route{Host: "a.example", Path: "/", Origin: "Ingress/shop/web"},
	}
}

// headed is a Writer that accepts each head, and has sent a body of five bytes.
type headed struct{ message.Writer }

func (headed) Head(*message.Response) error { return nil }
func (headed) Sent() int64                  { return 5 }

// logTo returns an access log in Caddy's format that writes JSON lines to w.
func logTo(w io.Writer, credentials bool) *Log {
	config := zap.NewProductionEncoderConfig()
	core := zapcore.NewCore(zapcore.NewJSONEncoder(config), zapcore.AddSync(w), zapcore.DebugLevel)
	return &Log{zap.New(core).Named("http.log.access"), credentials}
}

// jsonOf decodes a JSON line.
func jsonOf(t *testing.T, line []byte) (found map[string]any) {
	t.Helper()
	if err := json.Unmarshal(line, &found); err != nil {
		t.Fatalf("%v in %s", err, line)
	}
	return found
}

// respondedTo returns the exchange of a request with a response, as answered does. l watches the request.
func respondedTo(t *testing.T, l *Log, target string, fields ...message.Field) *exchange.Exchange {
	t.Helper()
	x := answered(target, fields...)
	x.Writer = l.Watch(headed{}, x.Request)
	response := &message.Response{Status: 200, Length: 5, Fields: message.Fields{
		message.NewField("Set-Cookie", "a=1"), message.NewField("Set-Cookie", "b=2"), message.NewField("x-own", "1"),
	}}
	if err := x.Writer.Head(response); err != nil {
		t.Fatal(err)
	}
	clear(response.Fields) // The connection to the endpoint uses this memory again.
	return x
}

// TestCaddyFormat checks that a line has the fields of Caddy, and that header fields are as the client sent them.
func TestCaddyFormat(t *testing.T) {
	var out bytes.Buffer
	l := logTo(&out, false)
	x := respondedTo(t, l, "/x?y", message.NewField("X-Request-ID", "abc"),
		message.NewField("Authorization", "Basic YWxpY2U6c2VjcmV0"))
	x.Authenticated = true
	x.Fields[0].Value = "changed by a filter"
	l.Record(x, time.Second, false)
	got := jsonOf(t, out.Bytes())
	delete(got, "ts")
	want := jsonOf(t, []byte(`{"level":"info","logger":"http.log.access","msg":"handled request","request":{
		"remote_ip":"192.0.2.1","remote_port":"4000","client_ip":"192.0.2.1","proto":"HTTP/1.1","method":"GET",
		"host":"a.example","uri":"/x?y","headers":{"X-Request-Id":["abc"],"Authorization":["REDACTED"]}},
		"bytes_read":0,"user_id":"alice","duration":1,"size":5,"status":200,
		"resp_headers":{"Set-Cookie":["REDACTED"],"X-Own":["1"],"Content-Length":["5"]},
		"namespace":"shop","ingress":"web","service":"","endpoint":"","request_id":"changed by a filter"}`))
	want["request_id"] = x.ID()
	if !reflect.DeepEqual(got, want) {
		t.Errorf("the line is\n%v\nwant\n%v", got, want)
	}
}

// TestCaddyCredentials checks that credentials are logged if the administrator wants that.
func TestCaddyCredentials(t *testing.T) {
	var out bytes.Buffer
	l := logTo(&out, true)
	l.Record(respondedTo(t, l, "/", message.NewField("Cookie", "c=3")), time.Second, false)
	for _, want := range []string{`"Cookie":["c=3"]`, `"Set-Cookie":["a=1","b=2"]`} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("%s is not in %s", want, out.String())
		}
	}
}

// inJSON encodes an object with zap's encoder for JSON, and decodes it.
func inJSON(t *testing.T, of zapcore.ObjectMarshaler) map[string]any {
	t.Helper()
	line, err := zapcore.NewJSONEncoder(zapcore.EncoderConfig{}).
		EncodeEntry(zapcore.Entry{}, []zapcore.Field{zap.Inline(of)})
	if err != nil {
		t.Fatal(err)
	}
	return jsonOf(t, line.Bytes())
}

// inMap encodes an object with an encoder that keeps the types of values, as filters of Caddy's logs do.
func inMap(t *testing.T, of zapcore.ObjectMarshaler) map[string]any {
	t.Helper()
	encoder := zapcore.NewMapObjectEncoder()
	if err := of.MarshalLogObject(encoder); err != nil {
		t.Fatal(err)
	}
	return encoder.Fields
}

// TestLikeLoggableHTTPRequest checks that requests are logged as by Caddy, with few and with many header fields, and
// with each kind of encoder.
func TestLikeLoggableHTTPRequest(t *testing.T) {
	for _, n := range []int{3, maxCompared + 1} {
		x := answered("/x", message.NewField("accept", "a"), message.NewField("Accept", "b"),
			message.NewField("Cookie", "c=1"), message.NewField("Proxy-Authorization", "secret"))
		for i := range n {
			x.Fields = append(x.Fields, message.NewField("x-"+strconv.Itoa(i%5), strconv.Itoa(i)))
		}
		x.Conn.TLS = &tls.ConnectionState{Version: tls.VersionTLS13, ServerName: "a.example", NegotiatedProtocol: "h2"}
		r := x.ToHTTP()
		ctx := context.WithValue(r.Context(), caddyhttp.VarsCtxKey,
			map[string]any{caddyhttp.ClientIPVarKey: x.ClientIP()})
		for _, credentials := range []bool{false, true} {
			ours := &loggedRequest{transcriptOf(x), x.ClientIP(), credentials}
			theirs := caddyhttp.LoggableHTTPRequest{Request: r.WithContext(ctx), ShouldLogCredentials: credentials}
			for name, encode := range map[string]func(*testing.T, zapcore.ObjectMarshaler) map[string]any{
				"JSON": inJSON, "other encoders": inMap,
			} {
				if ours, theirs := encode(t, ours), encode(t, theirs); !reflect.DeepEqual(ours, theirs) {
					t.Errorf("%s: the request is\n%v\nand Caddy's is\n%v", name, ours, theirs)
				}
			}
		}
	}
}

// TestFailedRequests checks the lines of a request that was rejected before it was read, of a request whose client
// disconnected, and of a failed request.
func TestFailedRequests(t *testing.T) {
	for name, c := range map[string]struct {
		status int
		want   string
	}{
		"no response": {0, `"status":499`}, "error": {503, `"level":"error"`},
		"rejected": {400, `"size":0,"status":400`},
	} {
		var out bytes.Buffer
		x := answered("/")
		if x.Status = c.status; name == "rejected" {
			x.Writer, x.Route = nil, nil
		}
		logTo(&out, false).Record(x, time.Second, false)
		if !strings.Contains(out.String(), c.want) {
			t.Errorf("%s: %s is not in %s", name, c.want, out.String())
		}
	}
}

// TestRequestsWithoutRequestLine checks that a request whose head was rejected before it was parsed has no line.
func TestRequestsWithoutRequestLine(t *testing.T) {
	var out bytes.Buffer
	x := answered("/")
	x.Writer, x.Route, x.Status = nil, nil, http.StatusRequestTimeout
	*x.Request = message.Request{Conn: x.Conn}
	if logTo(&out, false).Record(x, time.Second, false); out.Len() > 0 {
		t.Errorf("there is a line: %s", out.String())
	}
}

// TestBytesRead checks that the bytes of the body that were read are logged, and that the wrapped body can still be
// limited and closed.
func TestBytesRead(t *testing.T) {
	var out bytes.Buffer
	l, x, body := logTo(&out, false), answered("/"), &limitedBody{Reader: strings.NewReader("12345")}
	x.Body = body
	x.Writer = l.Watch(headed{}, x.Request)
	if _, err := io.ReadFull(x.Body, make([]byte, 3)); err != nil {
		t.Fatal(err)
	}
	x.Body.(interface{ Limit(limit int64) }).Limit(7)
	if err := x.Body.(io.Closer).Close(); err != nil || !body.closed || body.limit != 7 {
		t.Errorf("the body is %+v, and the error %v", body, err)
	}
	l.Record(x, time.Second, false)
	if !strings.Contains(out.String(), `"bytes_read":3`) {
		t.Errorf("the line is %s", out.String())
	}
}

type limitedBody struct {
	io.Reader
	limit  int64
	closed bool
}

func (b *limitedBody) Limit(limit int64) { b.limit = limit }

func (b *limitedBody) Close() error {
	b.closed = true
	return nil
}

// prepared returns the context of a request that server has prepared for Caddy handlers.
func prepared(x *exchange.Exchange, server *caddyhttp.Server) context.Context {
	return caddyhttp.PrepareRequest(x.ToHTTP(), caddy.NewReplacer(), nil, server).Context()
}

// TestHandlersOfChains checks what Caddy handlers can say about the line: other loggers, a level, more fields, the
// user, and that there is no line.
func TestHandlersOfChains(t *testing.T) {
	for name, c := range map[string]struct {
		do   func(ctx context.Context)
		want map[string]any
	}{
		"nothing": {func(context.Context) {},
			map[string]any{"user_id": "", "level": "info", "logger": "http.log.access"}},
		"log_name": {func(ctx context.Context) {
			caddyhttp.SetVar(ctx, caddyhttp.AccessLoggerNameVarKey, []any{"own"})
		}, map[string]any{"logger": "http.log.access.own"}},
		"log_level": {func(ctx context.Context) { caddyhttp.SetVar(ctx, caddyhttp.LogLevelVar, "DEBUG") },
			map[string]any{"level": "debug"}},
		"log_append": {func(ctx context.Context) {
			ctx.Value(caddyhttp.ExtraLogFieldsCtxKey).(*caddyhttp.ExtraLogFields).Add(zap.Int("more", 1))
		}, map[string]any{"more": 1.0}},
		"basic_auth": {func(ctx context.Context) {
			ctx.Value(caddy.ReplacerCtxKey).(*caddy.Replacer).Set("http.auth.user.id", "bob")
		}, map[string]any{"user_id": "bob"}},
		"log_skip": {func(ctx context.Context) { caddyhttp.SetVar(ctx, caddyhttp.LogSkipVar, true) }, nil},
	} {
		t.Run(name, func(t *testing.T) {
			var out bytes.Buffer
			x := answered("/")
			x.CaddyContext = prepared(x, new(caddyhttp.Server))
			c.do(x.CaddyContext)
			logTo(&out, false).Record(x, time.Second, false)
			if c.want == nil {
				if out.Len() > 0 {
					t.Errorf("there is a line: %s", out.String())
				}
				return
			}
			got := jsonOf(t, out.Bytes())
			for key, want := range c.want {
				if got[key] != want {
					t.Errorf("%s is %v, want %v", key, got[key], want)
				}
			}
		})
	}
}

// TestServersWithLogs checks that a request has only one line if the Caddy server logs it, too: the line of the server,
// with the fields about the Ingress.
func TestServersWithLogs(t *testing.T) {
	for _, c := range []struct {
		logs *caddyhttp.ServerLogConfig
		ours bool
	}{
		{nil, true}, {&caddyhttp.ServerLogConfig{}, false},
		{&caddyhttp.ServerLogConfig{SkipHosts: []string{"*.example"}}, true},
		{&caddyhttp.ServerLogConfig{SkipUnmappedHosts: true}, true},
		{&caddyhttp.ServerLogConfig{SkipUnmappedHosts: true,
			LoggerNames: map[string]caddyhttp.StringArray{"a.example": {"a"}}}, false},
	} {
		var out bytes.Buffer
		l := logTo(&out, false)
		x := answered("/")
		x.Host = "a.example:8080"
		x.CaddyContext = prepared(x, &caddyhttp.Server{Logs: c.logs})
		l.Record(x, time.Second, false)
		if ours := out.Len() > 0; ours != c.ours {
			t.Errorf("%+v: our line is %q", c.logs, out.String())
		}
		added := handledBy(x.CaddyContext).fields
		names := []string{}
		for _, f := range added {
			names = append(names, f.Key)
		}
		want := []string{"namespace", "ingress", "service", "endpoint", "request_id"}
		if c.ours {
			want = []string{}
		}
		if !slices.Equal(names, want) {
			t.Errorf("%+v: the server's line has the fields %q", c.logs, names)
		}
		before := out.Len()
		if l.Record(x, time.Second, true); out.Len() > before || handledBy(x.CaddyContext).skips() {
			t.Errorf("%+v: for a path without a log, our line is %q, and the server's line must stay", c.logs,
				out.String()[before:])
		}
	}
}

// TestAnnounce checks the header fields that Caddy's error routes send.
func TestAnnounce(t *testing.T) {
	var out bytes.Buffer
	l, x := logTo(&out, false), answered("/")
	r := x.ToHTTP()
	w := httptest.NewRecorder()
	x.Writer = l.Watch(message.NewHTTPWriter(w, r), x.Request)
	x.Writer.(interface {
		Announce(response *message.Response)
	}).Announce(&message.Response{Status: http.StatusForbidden,
		Length: -1, Fields: message.Fields{message.NewField("X-A", "1")}})
	l.Record(x, time.Second, false)
	if w.Header().Get("X-A") != "1" || !strings.Contains(out.String(), `"resp_headers":{"X-A":["1"]}`) {
		t.Errorf("the header is %v, and the line %s", w.Header(), out.String())
	}
}

func BenchmarkRecord(b *testing.B) {
	out, _, err := zap.Open(filepath.Join(b.TempDir(), "access.log"))
	if err != nil {
		b.Fatal(err)
	}
	l, x := logTo(out, false), answered("/x?y", message.NewField("User-Agent", "curl/8"))
	response := &message.Response{Status: 200, Length: 5, Fields: message.Fields{message.NewField("Server", "x"),
		message.NewField("Content-Type", "text/plain"), message.NewField("Date", "Thu, 26 Nov 2026 18:15:44 GMT")}}
	b.ReportAllocs()
	for b.Loop() {
		x.Writer = l.Watch(headed{}, x.Request)
		_ = x.Writer.Head(response)
		l.Record(x, time.Second, false)
	}
}

// TestLineOfUpgrade checks that the line of a WebSocket has the bytes that were forwarded in each direction, in
// addition to the bytes of the response body.
func TestLineOfUpgrade(t *testing.T) {
	var line bytes.Buffer
	x := answered("/ws")
	x.Status, x.Received, x.Relayed = http.StatusSwitchingProtocols, 100, 200
	logTo(&line, false).Record(x, time.Second, false)
	if got := jsonOf(t, line.Bytes()); got["bytes_read"] != 100.0 || got["size"] != 205.0 {
		t.Errorf("the line has bytes_read %v and size %v", got["bytes_read"], got["size"])
	}
}
