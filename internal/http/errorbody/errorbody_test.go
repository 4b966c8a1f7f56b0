package errorbody_test

import (
	"encoding/json"
	"html"
	"mime"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/k8singress/k8singress/internal/http/errorbody"
	"github.com/k8singress/k8singress/internal/http/message"
)

const (
	plain = "text/plain; charset=utf-8"
	page  = "text/html; charset=utf-8"
	data  = "application/json"
	fault = "application/problem+json"
)

// bodyFor returns the body for a client with these values of Accept, and the response.
func bodyFor(e *errorbody.Error, accept ...string) (string, *message.Response) {
	r, response := &message.Request{Method: http.MethodGet, Major: 1, Minor: 1}, &message.Response{Status: e.Status}
	for _, value := range accept {
		r.Fields.Add(message.Accept.Field(value))
	}
	body, call := e.Begin(response, r)
	if call {
		return "a call", response
	}
	return string(body), response
}

// TestBodies checks the bodies in all formats.
func TestBodies(t *testing.T) {
	for _, c := range []struct {
		of           errorbody.Error
		accept, want string
	}{
		{errorbody.Error{Status: 503, ID: "7f"}, "", "503 Service Unavailable\nk8singress, request ID 7f\n"},
		{errorbody.Error{Status: 400, Reason: "two-hosts", ID: "7f"}, "",
			"400 Bad Request: two-hosts\nk8singress, request ID 7f\n"},
		{errorbody.Error{Status: 503, ID: "{{.Host}}"}, "", "503 Service Unavailable\nk8singress\n"},
		{errorbody.Error{Status: 404}, "", "404 Not Found\nk8singress\n"},
		{errorbody.Error{Status: 497, ID: "7f"}, "", "497\nk8singress, request ID 7f\n"},
		{errorbody.Error{Status: 999, ID: "7f"}, "", "999\nk8singress, request ID 7f\n"},
		{errorbody.Error{Status: 502, ID: "7f"}, "text/html", `<!DOCTYPE html>
<html lang="en">
<head><meta charset="utf-8"><title>502 Bad Gateway</title></head>
<body>
<h1>502 Bad Gateway</h1>
<p>k8singress, request ID <code>7f</code></p>
</body>
</html>
`},
		{errorbody.Error{Status: 400, Reason: "host"}, "text/html", `<!DOCTYPE html>
<html lang="en">
<head><meta charset="utf-8"><title>400 Bad Request</title></head>
<body>
<h1>400 Bad Request</h1>
<p>host</p>
<p>k8singress</p>
</body>
</html>
`},
		{errorbody.Error{Status: 429, ID: "7f"}, data,
			`{"status":429,"error":"Too Many Requests","server":"k8singress","request_id":"7f"}` + "\n"},
		{errorbody.Error{Status: 400, Reason: "host"}, data,
			`{"status":400,"error":"Bad Request","reason":"host","server":"k8singress"}` + "\n"},
		{errorbody.Error{Status: 400, Reason: "host", ID: "7f"}, fault, `{"type":"about:blank","title":"Bad Request",` +
			`"status":400,"detail":"host","server":"k8singress","request_id":"7f"}` + "\n"},
		{errorbody.Error{Status: 503}, fault, `{"type":"about:blank","title":"Service Unavailable","status":503,` +
			`"server":"k8singress"}` + "\n"},
	} {
		got, response := bodyFor(&c.of, c.accept)
		if got != c.want || response.Length != int64(len(got)) || response.Status != c.of.Status {
			t.Errorf("%+v for %q: %q with the length %d, want %q", c.of, c.accept, got, response.Length, c.want)
		}
	}
}

// TestContentTypeIsReplaced checks that a Content-Type that a handler has set does not apply to the body.
func TestContentTypeIsReplaced(t *testing.T) {
	response := &message.Response{Status: 500, Fields: message.Fields{message.ContentType.Field("image/png")}}
	(&errorbody.Error{Status: 500}).Begin(response, &message.Request{})
	if n := response.Fields.Count(message.ContentType); n != 1 || response.Fields.Get(message.ContentType) != plain {
		t.Errorf("the response has the fields %v", response.Fields)
	}
}

// TestFormats checks which format a client gets.
func TestFormats(t *testing.T) {
	const browser = "text/html,application/xhtml+xml,application/xml;q=0.9,image/avif,image/webp,*/*;q=0.8"
	for _, c := range []struct {
		accept []string
		want   string
	}{
		{nil, plain}, {[]string{""}, plain}, {[]string{"*/*"}, plain}, {[]string{"image/png"}, plain},
		{[]string{browser}, page}, {[]string{"TEXT/HTML"}, page}, {[]string{"text/*"}, plain},
		{[]string{"application/json, text/plain, */*"}, data}, {[]string{"application/*"}, data},
		{[]string{"text/plain, application/json"}, plain}, {[]string{"text/html;q=0.5, application/json;q=0.6"}, data},
		{[]string{"text/html;q=0.5", "application/json;q=0.6"}, data}, {[]string{"image/png", "text/html"}, page},
		{[]string{"*/*, text/plain;q=0, text/html;q=0"}, data}, {[]string{"*/*;q=0"}, plain},
		{[]string{"text/plain;q=0, */*;q=0.001"}, page}, {[]string{"text/*;q=0.9, text/html;q=0.1"}, plain},
		{[]string{"text/html;q=0.1, text/*;q=0.9"}, plain}, {[]string{"text/html ; Q = 1 , */*"}, page},
		{[]string{"text/html;level=1;q=0.4, application/json;q=0.3"}, page},
		{[]string{`text/html;x="a,application/json"`}, page},
		{[]string{`text/html;x="a;q=0.1", text/plain;q=0.9`}, page},
		{[]string{`text/html;x="\",application/json`}, page},
		{[]string{"text/html;q=2"}, plain}, {[]string{"text/html;q=1.001"}, plain},
		{[]string{"text/html;q=0.1234"}, plain},
		{[]string{"text/html;q=-1"}, plain}, {[]string{"text/html;q="}, plain}, {[]string{"text/html;q=.5"}, plain},
		{[]string{"text/html;q=0.x"}, plain}, {[]string{"text/html;q"}, plain}, {[]string{"text/html;q=1."}, page},
		{[]string{"text/htmlx"}, plain}, {[]string{"*/html"}, plain}, {[]string{"/"}, plain},
		{[]string{",,;;,"}, plain},
		{[]string{fault}, fault}, {[]string{"Application/Problem+JSON; charset=utf-8"}, fault},
		{[]string{"application/problem+json, application/json"}, fault}, {[]string{"text/html, " + fault}, page},
		{[]string{"application/json, application/problem+json"}, data}, {[]string{"*/*, " + fault}, fault},
		{[]string{"application/problem+json;q=0.1, application/json"}, data}, {[]string{fault + ";q=0"}, plain},
		{[]string{"application/vnd.api+json"}, fault}, {[]string{"application/LD+JSON, */*;q=0.1"}, fault},
		{[]string{"application/hal+json, application/json"}, data}, {[]string{"model/gltf+json"}, fault},
		{[]string{"application/ld+json, application/problem+json;q=0"}, plain},
		{[]string{"application/problem+json;q=0.1, application/ld+json, text/html;q=0.5"}, page},
		{[]string{"application/*;q=0.1, application/ld+json"}, fault},
		{[]string{"application/+json"}, plain}, {[]string{"application/ld+jsonx"}, plain},
		{[]string{"application/problem+xml"}, plain}, {[]string{"*/ld+json"}, plain},
	} {
		_, response := bodyFor(&errorbody.Error{Status: 404}, c.accept...)
		vary, _ := response.Fields.Joined("Vary")
		if got := response.Fields.Get(message.ContentType); got != c.want || vary != "Accept" {
			t.Errorf("%q gets %q with Vary: %q, want %q", c.accept, got, vary, c.want)
		}
	}
}

func request(method string, major uint8, contentType string) *message.Request {
	return &message.Request{Method: method, Major: major,
		Fields: message.Fields{message.ContentType.Field(contentType)}}
}

// TestIsGRPC checks which requests get a gRPC status.
func TestIsGRPC(t *testing.T) {
	for _, c := range []struct {
		of   *message.Request
		want bool
	}{
		{request("POST", 2, "application/grpc"), true}, {request("POST", 3, "application/grpc+proto"), true},
		{request("POST", 2, "Application/GRPC; a=b"), true}, {request("POST", 2, "application/grpc-web"), false},
		{request("POST", 2, "application/grpcx"), false}, {request("POST", 2, "application/json"), false},
		{request("POST", 1, "application/grpc"), false}, {request("GET", 2, "application/grpc"), false},
		{request("HEAD", 2, "application/grpc"), false}, {&message.Request{Method: "POST", Major: 2}, false},
	} {
		if got := errorbody.IsGRPC(c.of); got != c.want {
			t.Errorf("%+v: %v", c.of, got)
		}
	}
}

// TestGRPC checks the gRPC status for each HTTP status.
func TestGRPC(t *testing.T) {
	codes := map[int]string{400: "13", 401: "16", 403: "7", 404: "12", 429: "14", 502: "14", 503: "14", 504: "14"}
	for status := 400; status < 600; status++ {
		response := &message.Response{Status: status}
		e := &errorbody.Error{Status: status, ID: "100%"}
		body, call := e.Begin(response, request("POST", 2, "application/grpc+proto"))
		code, _ := response.Fields.Joined("grpc-status")
		text, _ := response.Fields.Joined("grpc-message")
		want := codes[status]
		if want == "" {
			want = "2"
		}
		if !call || len(body) > 0 || response.Length != 0 || code != want ||
			response.Fields.Get(message.ContentType) != "application/grpc" ||
			!strings.HasPrefix(text, strconv.Itoa(status)) ||
			!strings.HasSuffix(text, "(k8singress, request ID 100%25)") {
			t.Errorf("%d: %v %q %v", status, call, body, response.Fields)
		}
	}
}

// FuzzBodies checks with any request ID and Accept that the body is well-formed, that no character of the ID can leave
// its place, and that the format is one that the client accepts.
func FuzzBodies(f *testing.F) {
	for _, accept := range []string{"", "text/html", data, `a/b;c="d,e";q=0.1, */*;q=0.2`, "text/*;q=0,application/*",
		fault, "a/ld+json"} {
		f.Add("7f", accept)
		f.Add("<script>alert(1)</script>", accept)
		f.Add(`"\&'`+"\x00\xff\r\n", accept)
	}
	f.Fuzz(func(t *testing.T, id, accept string) {
		body, response := bodyFor(&errorbody.Error{Status: 502, ID: id}, accept)
		visible := []byte(id)
		for i, c := range visible {
			if c < ' ' || c >= 0x7f {
				visible[i] = '?'
			}
		}
		media := response.Fields.Get(message.ContentType)
		switch media {
		case page:
			checkPage(t, body, string(visible))
		case data, fault:
			checkJSON(t, body, string(visible), media == fault)
		default:
			want := "502 Bad Gateway\nk8singress"
			if id != "" {
				want += ", request ID " + string(visible)
			}
			if body != want+"\n" {
				t.Errorf("%q, want %q", body, want)
			}
		}
		if media != plain && !names(accept, media) {
			t.Errorf("%q gets %s", accept, media)
		}
	})
}

// checkJSON checks the JSON of an error with the status 502, with or without the fields of problem details.
func checkJSON(t *testing.T, body, id string, details bool) {
	t.Helper()
	var got struct {
		Type, Title string
		Status      int
		ID          string `json:"request_id"`
	}
	err := json.Unmarshal([]byte(body), &got)
	if err != nil || got.Status != http.StatusBadGateway || got.ID != id {
		t.Errorf("%q: %v", body, err)
	}
	if details && (got.Title != "Bad Gateway" || got.Type != "about:blank") {
		t.Errorf("%q is not a text of problem details", body)
	}
}

// checkPage checks that a page contains the request ID as text, and no other markup.
func checkPage(t *testing.T, body, id string) {
	t.Helper()
	_, after, _ := strings.Cut(body, "<p>k8singress")
	inside, found := strings.CutSuffix(after, "</p>\n</body>\n</html>\n")
	if id != "" {
		inside, _ = strings.CutPrefix(inside, ", request ID <code>")
		inside, _ = strings.CutSuffix(inside, "</code>")
	}
	if !found || html.UnescapeString(inside) != id || strings.ContainsAny(inside, `<>"'`) {
		t.Errorf("%q does not contain %q", body, id)
	}
}

// names reports whether a list contains a media range that includes a media type.
func names(accept, media string) bool {
	media, _, _ = mime.ParseMediaType(media)
	major, _, _ := strings.Cut(media, "/")
	ranges := []string{media, major + "/*", "*/*"}
	if media == fault {
		ranges = append(ranges, "+json")
	}
	return slices.ContainsFunc(ranges,
		func(is string) bool { return strings.Contains(strings.ToLower(accept), is) })
}

// BenchmarkBody measures an error for a browser.
func BenchmarkBody(b *testing.B) {
	r := &message.Request{Method: http.MethodGet, Major: 1, Minor: 1, Fields: message.Fields{
		message.Accept.Field("text/html,application/xhtml+xml,application/xml;q=0.9,image/webp,*/*;q=0.8")}}
	e := &errorbody.Error{Status: 404, ID: "0123456789abcdef0123456789abcdef"}
	b.ReportAllocs()
	for b.Loop() {
		response := &message.Response{Status: 404}
		e.Begin(response, r)
	}
}
