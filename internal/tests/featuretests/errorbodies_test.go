package featuretests

import (
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/caddyconfig/httpcaddyfile"
	"github.com/caddyserver/caddy/v2/modules/caddyhttp"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"
	grpcstatus "google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/wrapperspb"
)

func init() {
	caddy.RegisterModule(new(panicking))
	httpcaddyfile.RegisterHandlerDirective("panicking",
		func(httpcaddyfile.Helper) (caddyhttp.MiddlewareHandler, error) { return new(panicking), nil })
}

// panicking is a Caddy handler that panics. Before, it changes the response. For the path /started it also writes a
// part of the response, and for the path /abort it panics with http.ErrAbortHandler.
type panicking struct{}

func (*panicking) CaddyModule() caddy.ModuleInfo {
	return caddy.ModuleInfo{ID: "http.handlers.panicking", New: func() caddy.Module { return new(panicking) }}
}

func (*panicking) ServeHTTP(w http.ResponseWriter, r *http.Request, _ caddyhttp.Handler) error {
	w.Header().Set("X-Unsent", "1")
	switch r.URL.Path {
	case "/started":
		w.WriteHeader(http.StatusOK)
		_ = http.NewResponseController(w).Flush()
	case "/abort":
		panic(http.ErrAbortHandler)
	}
	panic("a fault of a module")
}

// loggedErrors is a controller whose access log and error log are in files.
type loggedErrors struct {
	*ingress
	access, failures string
}

// logErrors starts a controller with hosts that fail in several ways.
func logErrors(t *testing.T, options ...string) *loggedErrors {
	t.Helper()
	ip, port := backend(t, "one")
	_, pages := errorPages(t, sameStatus)
	folder := t.TempDir()
	l := &loggedErrors{newIngress(t), filepath.Join(folder, "access.log"), filepath.Join(folder, "errors.log")}
	l.write("manifests.yaml", class+service("one", port, ip)+service("pages", pages, ip)+service("none", "1")+
		annotated("empty", "empty.example", "none")+
		annotated("denied", "denied.example", "one", "denylist-source-range", "0.0.0.0/0,::/0")+
		annotated("pages", "pages.example", "none", "custom-http-errors", "503", "default-backend", "pages")+
		annotated("own", "own.example", "one", "configuration-snippet", "return 404 own;")+
		annotated("bare", "bare.example", "one", "configuration-snippet", "return 410;")+
		annotated("replaced", "replaced.example", "one", "server-snippet",
			"error_page 403 = @page; location @page { return 402 page; }", "configuration-snippet", "return 403;")+
		annotated("broken", "broken.example", "one", "k8singress.io/chains", "broken")+
		annotated("nothing", "nothing.example", "one", "configuration-snippet", "return 204;")+
		allowingSnippets("access-log-path: "+l.access, "enable-access-log-for-default-backend: \"true\"",
			"log-format-upstream: '$status $body_bytes_sent $req_id $ingress_name'"))
	options = append(options, "chain broken {\npanicking\n}")
	l.loadCaddyfile(fmt.Sprintf("{\nadmin %s\nlog default {\noutput file %s\n}\nk8singress {\n%s\nhttp %s\n"+
		"https %s\nh2c\nmanifests %s\nconfigmap default/global\n%s\n}\n}\n", l.admin, l.failures, accessLogOn, l.http,
		l.https, l.folder, strings.Join(options, "\n")))
	l.awaitReady()
	return l
}

// lineOf waits until a log has a line with a request ID, and returns the line.
func (l *loggedErrors) lineOf(path, id string) (found string) {
	l.Helper()
	l.eventually("a line with "+id, func() error {
		text, err := os.ReadFile(path)
		for line := range strings.Lines(string(text)) {
			if strings.Contains(line, id) {
				found = strings.TrimSpace(line)
				return nil
			}
		}
		return errors.Join(err, fmt.Errorf("the log has %q", text))
	})
	return found
}

// TestErrorBodies checks that the controller's own errors have a body in the format that the client prefers, in each
// version of HTTP, that the log has its request ID, and that other responses stay as they are.
func TestErrorBodies(t *testing.T) {
	l := logErrors(t)
	l.byEachVersion(t, func(t *testing.T, in *ingress) {
		if in.http == l.byCaddy {
			return // Caddy's HTTP server sends the errors.
		}
		for _, c := range []struct {
			host, path, accept string
			status             int
			// want is the body, with ID in place of the request ID. If it has no ID, the controller has not written it.
			want string
		}{
			{"unknown.example", "/", "", 404, "404 Not Found\nk8singress, request ID ID\n"},
			{"empty.example", "/", "*/*", 503, "503 Service Unavailable\nk8singress, request ID ID\n"},
			{"denied.example", "/", "text/html,application/xml;q=0.9,*/*;q=0.8", 403, "<!DOCTYPE html>\n" +
				"<html lang=\"en\">\n<head><meta charset=\"utf-8\"><title>403 Forbidden</title></head>\n<body>\n" +
				"<h1>403 Forbidden</h1>\n<p>k8singress, request ID <code>ID</code></p>\n</body>\n</html>\n"},
			{"bare.example", "/", "application/json, */*;q=0.1", 410,
				`{"status":410,"error":"Gone","server":"k8singress","request_id":"ID"}` + "\n"},
			{"bare.example", "/problem", "application/problem+json", 410, `{"type":"about:blank","title":"Gone",` +
				`"status":410,"server":"k8singress","request_id":"ID"}` + "\n"},
			{"pages.example", "/", "", 503, "page of 503"},
			{"own.example", "/", "", 404, "own"},
			{"replaced.example", "/", "", 402, "page"},
			{"nothing.example", "/", "", 204, ""},
			{"broken.example", "/", "", 500, "500 Internal Server Error\nk8singress, request ID ID\n"},
		} {
			id := strings.ReplaceAll(c.host+c.path+in.version, " ", "-")
			fields := []string{"X-Request-Id: " + id}
			if c.accept != "" {
				fields = append(fields, "Accept: "+c.accept)
			}
			q := question{host: c.host, path: c.path, fields: fields}
			got := in.wholeReply(q.usual())
			if want := strings.ReplaceAll(c.want, "ID ID", "ID "+id); got.status != c.status ||
				got.body != strings.NewReplacer("<code>ID<", "<code>"+id+"<", `:"ID"`, `:"`+id+`"`).Replace(want) {
				t.Errorf("%s: %d %q, want %d %q", c.host, got.status, got.body, c.status, c.want)
			}
			name, _, _ := strings.Cut(c.host, ".")
			if name == "unknown" {
				name = "-"
			}
			want := fmt.Sprint(c.status, " ", len(got.body), " ", id, " ", name)
			if line := l.lineOf(l.access, " "+id+" "); line != want {
				t.Errorf("the log has %q, want %q", line, want)
			}
			q = question{method: http.MethodHead, host: c.host, path: c.path, fields: append(fields, "Te: trailers")}
			if head := in.wholeReply(q.usual()); head.status != c.status || head.body != "" ||
				c.status != 204 && strings.Contains(c.want, "ID") &&
					head.fields.Get("Content-Length") != strconv.Itoa(len(got.body)) {
				t.Errorf("HEAD %s: %d %q with %v", c.host, head.status, head.body, head.fields)
			}
		}
		q := question{host: "unknown.example",
			fields: []string{"Accept: text/html", "X-Request-Id: <script>1</script>"}}
		if got := in.wholeReply(q.usual()); !strings.Contains(got.body, "<code>&lt;script&gt;1&lt;/script&gt;</code>") {
			t.Errorf("the page has %q", got.body)
		}
	})
}

// TestMalformedRequests checks that a request that cannot be parsed also gets a body, whose request ID the access log
// has.
func TestMalformedRequests(t *testing.T) {
	l := logErrors(t)
	d := l.connect()
	d.say("%s", "GET / HTTP/1.1\r\nAccept: application/json\r\n\r\n")
	got := d.reply(http.MethodGet)
	var body struct {
		Status         int
		Reason, Server string
		ID             string `json:"request_id"`
	}
	if err := json.Unmarshal([]byte(got.body), &body); err != nil || body.Status != 400 || body.Reason != "no-host" ||
		body.Server != "k8singress" {
		t.Fatalf("%d %q: %v", got.status, got.body, err)
	}
	if line, want := l.lineOf(l.access, body.ID), fmt.Sprint("400 ", len(got.body), " ", body.ID, " -"); line != want {
		t.Errorf("the access log has %q, want %q", line, want)
	}
}

// TestErrorsOfCalls checks that gRPC clients get a gRPC status, and that the logs have the HTTP status of the error.
func TestErrorsOfCalls(t *testing.T) {
	l := logErrors(t)
	for _, c := range []struct {
		host   string
		want   codes.Code
		status string
	}{
		{"empty.example", codes.Unavailable, "503 Service Unavailable"},
		{"unknown.example", codes.Unimplemented, "404 Not Found"},
		{"denied.example", codes.PermissionDenied, "403 Forbidden"},
		{"bare.example", codes.Unknown, "410 Gone"},
		{"broken.example", codes.Unknown, "500 Internal Server Error"},
	} {
		for address, secure := range map[string]credentials.TransportCredentials{
			l.http:  insecure.NewCredentials(),
			l.https: credentials.NewTLS(&tls.Config{ServerName: c.host, InsecureSkipVerify: true}),
		} {
			err := callerOf(t, c.host, address, secure).Invoke(t.Context(), "/test.Echo/Say", wrapperspb.String("x"),
				new(wrapperspb.StringValue))
			s := grpcstatus.Convert(err)
			status, id, _ := strings.Cut(strings.TrimSuffix(s.Message(), ")"), " (k8singress, request ID ")
			if s.Code() != c.want || status != c.status || len(id) != 32 {
				t.Errorf("%s: %v %q", c.host, s.Code(), s.Message())
				continue
			}
			if line := l.lineOf(l.access, id); !strings.HasPrefix(line, c.status[:3]+" 0 ") {
				t.Errorf("%s: the access log has %q", c.host, line)
			}
		}
	}
}

// TestPanicsAreCounted checks that a request whose handler panics is counted and logged once, also if it gets no
// response, or only a part of it.
func TestPanicsAreCounted(t *testing.T) {
	l := logErrors(t)
	wanted := map[string]int{}
	l.byEachVersion(t, func(t *testing.T, in *ingress) {
		before := in.metric("k8singress_panics_total")
		for path, want := range map[string]string{"/": "5xx", "/started": "2xx", "/abort": "4xx"} {
			id := strings.ReplaceAll(strings.TrimPrefix(path, "/")+"."+in.version, " ", "-")
			// A client does not repeat a POST request whose connection ends without a response.
			request, err := http.NewRequestWithContext(t.Context(), http.MethodPost, in.origin("broken.example")+path,
				nil)
			if err != nil {
				t.Fatal(err)
			}
			request.Header.Set("X-Request-Id", id)
			response, err := in.client.Do(request)
			if err == nil {
				_, err = io.Copy(io.Discard, response.Body)
				_ = response.Body.Close()
			}
			if (err == nil) != (want == "5xx") || err == nil && response.Header.Get("X-Unsent") != "" {
				t.Errorf("%s: %v, %v", path, response, err)
			}
			wanted["broken "+want]++
			l.lineOf(l.access, " "+id+" ")
		}
		in.awaitCounts(wanted)
		if n := in.metric("k8singress_panics_total") - before; n != 2 {
			t.Errorf("%v panics are counted, want 2", n)
		}
	})
}

// TestErrorBodiesOff checks that errors of the controller are empty with the option, except for texts of ingress-nginx.
func TestErrorBodiesOff(t *testing.T) {
	l := logErrors(t, "error_bodies off")
	for host, want := range map[string]string{
		"unknown.example": "404 ", "empty.example": "503 ", "denied.example": "403 ", "bare.example": "410 ",
		"own.example": "404 own", "pages.example": "503 page of 503",
	} {
		q := question{host: host}
		got := l.wholeReply(q.usual())
		if text := fmt.Sprint(got.status, " ", got.body); text != want || got.fields.Get("Vary") != "" ||
			strings.HasSuffix(want, " ") && got.fields.Get("Content-Type") != "" {
			t.Errorf("%s: %q with %v, want %q", host, text, got.fields, want)
		}
	}
	d := l.connect()
	d.say("%s", "GET / HTTP/1.1\r\n\r\n")
	if got := d.reply(http.MethodGet); got.status != http.StatusBadRequest || got.body != "" {
		t.Errorf("a malformed request gets %d %q", got.status, got.body)
	}
}
