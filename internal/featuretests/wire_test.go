package featuretests

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"
)

// guarded serves a.example with one backend for everything, and one for /admin.
func guarded(t *testing.T) *ingress {
	t.Helper()
	ip, port := backend(t, "open")
	secretIP, secretPort := backend(t, "secret")
	return start(t, class+service("open", port, ip)+service("secret", secretPort, secretIP)+
		rule("open", "a.example", "Prefix", "/", "open")+rule("secret", "a.example", "Prefix", "/admin", "secret"))
}

// raw sends bytes on a connection of its own, and returns so many answers, or fewer when the connection ends or is idle.
func (in *ingress) raw(request string, most int) []string {
	in.Helper()
	conn, err := net.Dial("tcp", in.http)
	if err != nil {
		in.Fatal(err)
	}
	defer conn.Close()
	if _, err := io.WriteString(conn, request); err != nil {
		in.Fatal(err)
	}
	var answers []string
	reader := bufio.NewReader(conn)
	method, _, _ := strings.Cut(request, " ")
	for len(answers) < most {
		// All of the requests are there, so an answer that follows another one comes soon.
		within := 500 * time.Millisecond
		if len(answers) == 0 {
			within = deadline
		}
		_ = conn.SetReadDeadline(time.Now().Add(within))
		response, err := http.ReadResponse(reader, &http.Request{Method: method})
		if err != nil {
			var timeout net.Error
			if errors.As(err, &timeout) && timeout.Timeout() {
				return answers
			}
			return append(answers, "closed")
		}
		body, _ := io.ReadAll(response.Body)
		response.Body.Close()
		answers = append(answers, strings.TrimSpace(fmt.Sprintf("%d %s", response.StatusCode, body)))
	}
	return answers
}

func head(line string, headers ...string) string {
	return line + "\r\nHost: a.example\r\n" + strings.Join(headers, "\r\n") + "\r\n\r\n"
}

func get(path string, headers ...string) string {
	if len(headers) == 0 {
		headers = []string{"X-A: 1"}
	}
	return head("GET "+path+" HTTP/1.1", headers...)
}

// TestWire sends what only an attacker or a broken client sends. The numbers are those of a list of such requests.
func TestWire(t *testing.T) {
	in := guarded(t)
	for name, c := range map[string]struct{ request, want string }{
		// What is routed is what the backend serves.
		"1 two slashes":         {get("//admin/x"), "200 secret //admin/x"},
		"1 dot":                 {get("/./admin/x"), "200 secret /./admin/x"},
		"1 dots":                {get("/x/../admin/y"), "200 secret /x/../admin/y"},
		"1 escaped dots":        {get("/x/%2e%2e/admin/y"), "200 secret /x/%2e%2e/admin/y"},
		"1 escaped slash":       {get("/admin%2fx"), "200 secret /admin%2fx"},
		"1 escaped letter":      {get("/%61dmin/x"), "200 secret /%61dmin/x"},
		"1 escaped dots, slash": {get("/x/..%2fadmin/y"), "200 secret /x/..%2fadmin/y"},
		"2 path parameter":      {get("/admin;a=b/x"), "200 open /admin;a=b/x"},
		"3 NUL":                 {get("/x%00/admin"), "400"},
		"4 backslash":           {get("/x%5cadmin"), "200 open /x%5cadmin"},
		"5 escaped twice":       {get("/x%252e%252e/admin"), "200 open /x%252e%252e/admin"},
		"5 space at the end":    {get("/admin%20"), "200 open /admin%20"},
		"6 star":                {get("*"), "400"},
		"9 two lengths":         {head("POST / HTTP/1.1", "Content-Length: 1", "Content-Length: 2"), "400"},
		"10 unknown coding":     {head("POST / HTTP/1.1", "Transfer-Encoding: xchunked"), "501"},
		"10 coding twice":       {head("POST / HTTP/1.1", "Transfer-Encoding: chunked, chunked"), "400"},
		"11 space before colon": {head("POST / HTTP/1.1", "Transfer-Encoding : chunked"), "400"},
		"13 NUL in a header":    {get("/", "X-A: a\x00b"), "400"},
		"13 no host":            {"GET / HTTP/1.1\r\nX-A: 1\r\n\r\n", "400"},
		"13 two hosts":          {get("/", "Host: b.example"), "400"},
		"13 host with a slash":  {"GET / HTTP/1.1\r\nHost: a.example/evil\r\n\r\n", "400"},
		"13 host with an at":    {"GET / HTTP/1.1\r\nHost: a.example@evil\r\n\r\n", "400"},
		"14 dot behind host":    {"GET / HTTP/1.1\r\nHost: a.example.\r\n\r\n", "200 open /"},
		"19 CONNECT":            {"CONNECT a.example:443 HTTP/1.1\r\nHost: a.example\r\n\r\n", "405"},
		"19 TRACE":              {head("TRACE / HTTP/1.1", "X-A: 1"), "405"},
		"19 lower case":         {head("get / HTTP/1.1", "X-A: 1"), "200 open /"},
		"21 no host, old":       {"GET / HTTP/1.0\r\n\r\n", "404"},
		"22 PROXY header":       {"PROXY TCP4 1.2.3.4 5.6.7.8 1 2\r\n" + get("/"), "400"},
		"23 20 KB of headers":   {get("/", "X-A: "+strings.Repeat("x", 20<<10)), "200 open /"},
		"23 40 KB of headers":   {get("/", "X-A: "+strings.Repeat("x", 40<<10)), "431"},
		"23 40 KB of cookies":   {get("/", strings.Repeat("Cookie: a="+strings.Repeat("x", 1000)+"\r\n", 40)+"X-A: 1"), "431"},
	} {
		t.Run(name, func(t *testing.T) {
			if got := in.raw(c.request, 1); len(got) == 0 || got[0] != c.want && !strings.HasPrefix(got[0], c.want+" ") {
				t.Errorf("got %q, want %q", got, c.want)
			}
		})
	}
}

// TestWireBodyWithTwoLengths: a request with Content-Length and Transfer-Encoding could be taken for two by a peer. It is refused, and
// nothing behind it is a request (RFC 9112 6.1).
func TestWireBodyWithTwoLengths(t *testing.T) {
	in := guarded(t)
	smuggled := get("/admin/smuggled")
	got := in.raw(head("POST /first HTTP/1.1", fmt.Sprintf("Content-Length: %d", len(smuggled)+5), "Transfer-Encoding: chunked")+
		"0\r\n\r\n"+smuggled, 3)
	if len(got) != 2 || !strings.HasPrefix(got[0], "400 ") || got[1] != "closed" {
		t.Errorf("got %q, want 400 and the end", got)
	}
}

// TestWireHeaders compares what a client sends with what the backend gets of it.
func TestWireHeaders(t *testing.T) {
	requests := make(chan *http.Request, 1)
	server := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { requests <- r }))
	t.Cleanup(server.Close)
	ip, port, err := net.SplitHostPort(server.Listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	in := start(t, class+service("one", port, ip)+rule("a", "a.example", "Prefix", "/", "one"))
	_, httpPort, err := net.SplitHostPort(in.http)
	if err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		sent []string
		want map[string]string
	}{
		"15 forwarded": {
			[]string{
				"X-Forwarded-For: 6.6.6.6", "X-Forwarded-Proto: https", "X-Forwarded-Host: evil", "X-Forwarded-Port: 1",
				"X-Forwarded-Scheme: https", "X-Scheme: https",
			},
			map[string]string{
				"X-Forwarded-For": "127.0.0.1", "X-Forwarded-Proto": "http", "X-Forwarded-Host": "a.example", "X-Forwarded-Port": httpPort,
				"X-Forwarded-Scheme": "http", "X-Scheme": "http", "X-Original-Forwarded-For": "6.6.6.6", "X-Original-Forwarded-Host": "evil",
			},
		},
		"16 identity": {
			[]string{
				"X-Real-IP: 6.6.6.6", "Forwarded: for=6.6.6.6", "X-Original-URI: /x", "X-Original-URL: /x", "X-Rewrite-URL: /x",
				"X-Original-Method: PUT", "Proxy: evil",
			},
			map[string]string{
				"X-Real-Ip": "127.0.0.1", "Forwarded": "", "X-Original-Uri": "", "X-Original-Url": "", "X-Rewrite-Url": "",
				"X-Original-Method": "", "Proxy": "",
			},
		},
		"16 request id": {[]string{"X-Request-ID: abc-1"}, map[string]string{"X-Request-Id": "abc-1"}},
		"17 connection": {
			[]string{"Connection: X-Forwarded-For, X-Auth, X-Real-IP", "X-Auth: 1"},
			map[string]string{"X-Auth": "", "X-Forwarded-For": "127.0.0.1", "X-Real-Ip": "127.0.0.1"},
		},
		"17 connection, case": {[]string{"Connection: x-forwarded-for"}, map[string]string{"X-Forwarded-For": "127.0.0.1", "Connection": ""}},
		"18 underscores, dots": {
			[]string{"X_Real_IP: 6.6.6.6", "X.Forwarded.For: 6.6.6.6"}, map[string]string{"X_real_ip": "", "X.forwarded.for": ""},
		},
		"20 another protocol": {
			[]string{"Upgrade: h2c", "Connection: Upgrade, HTTP2-Settings", "HTTP2-Settings: AAMAAABkAAQAAP__"},
			map[string]string{"Upgrade": "", "Http2-Settings": "", "Connection": ""},
		},
		"20 listed with another": {[]string{"Upgrade: websocket, h2c", "Connection: Upgrade"}, map[string]string{"Upgrade": ""}},
		"29 expect":              {[]string{"Expect: 100-continue"}, map[string]string{"Expect": ""}},
	} {
		for _, way := range [...]string{"short", "long"} {
			t.Run(name+", "+way, func(t *testing.T) {
				sent := c.sent
				if way == "long" {
					sent = append([]string{"Incremental: ?0"}, sent...)
				}
				r := in.arrives(get("/", sent...), requests)
				for header, want := range c.want {
					if got := strings.Join(r.Header[header], " and "); got != want {
						t.Errorf("%s: %q, want %q", header, got, want)
					}
				}
			})
		}
	}
	for _, bad := range []string{strings.Repeat("x", 129), "a b", "a\"b"} {
		if id := in.arrives(get("/", "X-Request-ID: "+bad), requests).Header.Get("X-Request-Id"); len(id) != 32 {
			t.Errorf("the request id %q became %q", bad, id)
		}
	}
}

// arrives sends a request that the backend answers with 200, and returns what the backend got of it.
func (in *ingress) arrives(request string, requests <-chan *http.Request) *http.Request {
	in.Helper()
	if got := in.raw(request, 1); !slices.Equal(got, []string{"200"}) {
		in.Fatalf("the answer is %q, want 200 from the backend", got)
	}
	return await(in, "the request at the backend", requests)
}

// TestWireLoop: a request that comes back again and again ends.
func TestWireLoop(t *testing.T) {
	in := guarded(t)
	if got := in.raw(get("/", "Via: "+strings.Repeat("1.1 k8singress, ", 8)+"1.1 other"), 1); len(got) == 0 || got[0] != "508" {
		t.Errorf("got %q", got)
	}
	if got := in.raw(get("/", "Via: 1.1 k8singress, 1.1 other"), 1); len(got) == 0 || got[0] != "200 open /" {
		t.Errorf("one controller in front of another: %q", got)
	}
}
