package featuretests

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"slices"
	"strings"
	"testing"
)

func head(line string, headers ...string) string {
	return line + "\r\nHost: a.example\r\n" + strings.Join(headers, "\r\n") + "\r\n\r\n"
}

func get(path string, headers ...string) string {
	if len(headers) == 0 {
		headers = []string{"X-A: 1"}
	}
	return head("GET "+path+" HTTP/1.1", headers...)
}

// wired returns a controller with one backend for everything at a.example, and one for /admin. Each responds with its
// name and the target, and sends its requests to the channel.
func wired(t *testing.T, annotations ...string) (*ingress, <-chan *http.Request) {
	t.Helper()
	requests := make(chan *http.Request, 100)
	says := func(name string) http.HandlerFunc {
		return func(w http.ResponseWriter, r *http.Request) {
			// A request with an incomplete body is not counted.
			if _, err := io.Copy(io.Discard, r.Body); err == nil {
				requests <- r
			}
			fmt.Fprintf(w, "%s %s", name, r.RequestURI)
		}
	}
	ip, open := endpointOf(t, says("open"))
	_, secret := endpointOf(t, says("secret"))
	return start(t, class+service("one", open, ip)+service("secret", secret, ip)+oneWith(annotations...)+
		rule("secret", "a.example", "Prefix", "/admin", "secret")), requests
}

// received returns the requests that have reached an endpoint so far.
func received(requests <-chan *http.Request) (all []*http.Request) {
	for {
		select {
		case r := <-requests:
			all = append(all, r)
		default:
			return all
		}
	}
}

// malformed is the expected result of a malformed request: status 400 or, in HTTP/2 and HTTP/3, the end of its stream.
// With " or " and a status after it, that status is also allowed.
const malformed = "malformed"

// gets sends a request, and fails the test unless the reply is the wanted one, and an endpoint has received the request
// exactly once if it responds.
func (in *ingress) gets(t *testing.T, q *question, want string, requests <-chan *http.Request) *http.Request {
	t.Helper()
	got := in.exchange(q)
	reached := received(requests)
	either, status, _ := strings.Cut(want, " or ")
	if either != malformed {
		status = want
	}
	if (either != malformed || !got.malformed()) &&
		(status == "" || got.String() != status && !strings.HasPrefix(got.String(), status+" ")) {
		t.Errorf("got %q, want %q", got, want)
	}
	if answered := strings.HasPrefix(want, "200"); answered != (len(reached) == 1) {
		t.Errorf("%d requests have reached an endpoint: %v", len(reached), reached)
	}
	if len(reached) != 1 {
		return nil
	}
	return reached[0]
}

// TestWire checks requests of attackers and broken clients in each version of HTTP: the endpoint must see the same host
// and path that the request was routed by.
func TestWire(t *testing.T) {
	in, requests := wired(t)
	for name, c := range map[string]struct {
		q    question
		want string
	}{
		"two slashes":               {question{path: "//admin/x"}, "200 secret //admin/x"},
		"a dot":                     {question{path: "/./admin/x"}, "200 secret /./admin/x"},
		"dots":                      {question{path: "/x/../admin/y"}, "200 secret /x/../admin/y"},
		"escaped dots":              {question{path: "/x/%2e%2e/admin/y"}, "200 secret /x/%2e%2e/admin/y"},
		"an escaped slash":          {question{path: "/admin%2fx"}, "200 secret /admin%2fx"},
		"an escaped letter":         {question{path: "/%61dmin/x"}, "200 secret /%61dmin/x"},
		"escaped dots and slash":    {question{path: "/x/..%2fadmin/y"}, "200 secret /x/..%2fadmin/y"},
		"dots out of the guard":     {question{path: "/admin/..%2fpublic"}, "200 open /admin/..%2fpublic"},
		"dots behind a semicolon":   {question{path: "/x/..;/admin/y"}, "200 open /x/..;/admin/y"},
		"a path parameter":          {question{path: "/admin;a=b/x"}, "200 open /admin;a=b/x"},
		"a NUL in the path":         {question{path: "/x%00/admin"}, "400"},
		"a backslash":               {question{path: "/x%5cadmin"}, "200 open /x%5cadmin"},
		"a bare backslash":          {question{path: `/x\..\admin`}, "200 open /x%5C..%5Cadmin"},
		"an escaped line break":     {question{path: "/x%0d%0aX-A:%20b"}, "200 open /x%0d%0aX-A:%20b"},
		"a line break":              {question{path: "/x\nX-A: b"}, malformed},
		"a tab in the path":         {question{path: "/x\ty"}, malformed},
		"a space in the path":       {question{path: "/x y"}, malformed},
		"a fragment":                {question{path: "/x#y"}, "200 open /x%23y"},
		"escaped twice":             {question{path: "/x%252e%252e/admin"}, "200 open /x%252e%252e/admin"},
		"a space at the end":        {question{path: "/admin%20"}, "200 open /admin%20"},
		"a dot at the end":          {question{path: "/admin."}, "200 open /admin."},
		"an escape that is none":    {question{path: "/%zz"}, malformed},
		"a star":                    {question{path: "*"}, malformed},
		"a star of OPTIONS":         {question{method: "OPTIONS", path: "*"}, malformed},
		"no slash":                  {question{path: "x:admin"}, malformed},
		"TRACE":                     {question{method: "TRACE"}, "405"},
		"a method in lower case":    {question{method: "get"}, "200 open /"},
		"an unusual method":         {question{method: "PROPFIND"}, "200 open /"},
		"a method that is no token": {question{method: "G,T"}, malformed},
		"a dot behind the host":     {question{host: "a.example."}, "200 open /"},
		"a port behind the host":    {question{host: "A.Example:80"}, "200 open /"},
		"another host":              {question{host: "b.example"}, "404"},
		"a slash in the host":       {question{host: "a.example/evil"}, malformed},
		"an at in the host":         {question{host: "a.example@evil"}, malformed},
		"a space in the host":       {question{host: "a.example evil"}, malformed},
		"a port of letters":         {question{host: "a.example:x"}, malformed},
		"a name in brackets":        {question{host: "[a.example]:80"}, malformed},
		"a NUL in a value":          {question{fields: []string{"X-A: a\x00b"}}, malformed},
		"a CR in a value":           {question{fields: []string{"X-A: a\rX-B: b"}}, malformed},
		"a name with a space":       {question{fields: []string{"X A: a"}}, malformed},
		"20 KB of fields":           {question{fields: []string{"X-A: " + strings.Repeat("x", 20<<10)}}, "200 open /"},
		"40 KB of fields": {question{fields: []string{"X-A: " + strings.Repeat("x", 40<<10)}},
			"malformed or 431"},
		"40 KB of cookies": {question{fields: slices.Repeat([]string{"Cookie: a=" + strings.Repeat("x", 1000)},
			40)}, "431"},
		"40 KB of path": {question{path: "/" + strings.Repeat("x", 40<<10)}, "malformed or 431"},
		"300 fields":    {question{fields: slices.Repeat([]string{"X-A: 1"}, 300)}, "431"},
		"a loop": {question{fields: []string{"CDN-Loop: " + strings.Repeat("k8singress, ", 8) + "other"}},
			"508"},
		"a loop in many lines": {question{fields: slices.Repeat([]string{"CDN-Loop: other, k8singress; a=b"}, 8)},
			"508"},
		"two controllers":   {question{fields: []string{"CDN-Loop: k8singress, other"}}, "200 open /"},
		"Via names no loop": {question{fields: slices.Repeat([]string{"Via: 1.1 k8singress"}, 8)}, "200 open /"},
		"another coding": {question{fields: []string{"Transfer-Encoding: gzip"}, body: []string{"x"}},
			"malformed or 501"},
		"two lengths": {question{fields: []string{"Content-Length: 4", "Content-Length: 5"},
			body: []string{"body"}}, malformed},
		"a list of lengths": {question{fields: []string{"Content-Length: 4, 4"}, body: []string{"body"}},
			malformed},
		"a length that overflows": {
			question{fields: []string{"Content-Length: 18446744073709551620"}, body: []string{"body"}},
			"malformed or 413",
		},
		"a length below zero": {question{fields: []string{"Content-Length: -4"}, body: []string{"body"}}, malformed},
		"a coding with an underscore": {
			question{fields: []string{"Content-Length: 4", "Transfer_Encoding: chunked"}, body: []string{"body"},
				method: "POST"}, "200 open /",
		},
		"a length with a sign": {question{fields: []string{"Content-Length: +4"}, body: []string{"body"}},
			malformed},
		"another expectation":      {question{fields: []string{"Expect: x"}}, "417"},
		"two credentials":          {question{fields: []string{"Authorization: a", "Authorization: b"}}, "400"},
		"a body of GET":            {question{body: []string{"body"}}, "200 open /"},
		"a body of unknown length": {question{body: []string{"bo", "dy"}, method: "POST"}, "200 open /"},
		"a body that is empty":     {question{body: []string{""}, method: "POST"}, "200 open /"},
		"a length that is too large": {question{fields: []string{"Content-Length: 1048577"}, body: []string{"x"},
			method: "POST"}, "413"},
	} {
		t.Run(name, func(t *testing.T) {
			in.byEachVersion(t, func(t *testing.T, in *ingress) { in.gets(t, c.q.usual(), c.want, requests) })
		})
	}
}

// TestFieldsSentTwice checks that a request with two equal lengths or expectations is rejected. The HTTP/2 server
// merges two expectations, and the HTTP/3 server two lengths: the endpoint then gets one request with one body.
func TestFieldsSentTwice(t *testing.T) {
	in, requests := wired(t)
	for name, c := range map[string]struct {
		field, refused string
		merge          []string
	}{
		"lengths":      {"Content-Length: 4", malformed, []string{secure3}},
		"expectations": {"Expect: 100-continue", "417", []string{plain2, secure2}},
	} {
		t.Run(name, func(t *testing.T) {
			in.byEachVersion(t, func(t *testing.T, in *ingress) {
				q := question{method: http.MethodPost, fields: []string{c.field, c.field}, body: []string{"body"}}
				want := c.refused
				if slices.Contains(c.merge, in.version) {
					want = "200 open /"
				}
				if r := in.gets(t, q.usual(), want, requests); r != nil &&
					(r.ContentLength != 4 || r.Header["Expect"] != nil) {
					t.Errorf("the endpoint gets a body of %d bytes, with %v", r.ContentLength, r.Header)
				}
			})
		})
	}
}

// usual sets the defaults of a question.
func (q question) usual() *question {
	if q.method == "" {
		q.method = http.MethodGet
	}
	if q.host == "" {
		q.host = "a.example"
	}
	if q.path == "" {
		q.path = "/"
	}
	return &q
}

// TestWireOfHTTP1 sends bytes that are only possible in HTTP/1, with and without TLS. It checks that malformed requests
// end the connection, and that after any other request the next one gets its response.
func TestWireOfHTTP1(t *testing.T) {
	in, requests := wired(t)
	smuggled := get("/admin/smuggled")
	for name, c := range map[string]struct{ request, want string }{
		"the URL has the host":     {"GET http://a.example/x HTTP/1.1\r\nHost: b.example\r\n\r\n", "200 open /x"},
		"the URL has another host": {head("GET http://b.example/x HTTP/1.1", "X-A: 1"), "404"},
		"no host":                  {"GET / HTTP/1.1\r\nX-A: 1\r\n\r\n", "400"},
		"two expectations":         {get("/", "Expect: 100-continue", "Expect: 100-continue"), "417"},
		"two hosts":                {get("/", "Host: b.example"), "400"},
		"an empty host":            {"GET / HTTP/1.1\r\nHost:\r\n\r\n", "400"},
		"no host in HTTP/1.0":      {"GET / HTTP/1.0\r\n\r\n", "404"},
		"CONNECT":                  {head("CONNECT a.example:443 HTTP/1.1", "X-A: 1"), "405"},
		"length beside coding": {
			head("POST / HTTP/1.1", fmt.Sprintf("Content-Length: %d", len(smuggled)+5), "Transfer-Encoding: chunked") +
				"0\r\n\r\n" + smuggled, "400",
		},
		"coding beside length": {head("POST / HTTP/1.1", "Transfer-Encoding: chunked", "Content-Length: 5") +
			"0\r\n\r\n" + smuggled, "400"},
		"equal lengths": {head("POST / HTTP/1.1", "Content-Length: 4", "Content-Length: 4") + "body" +
			smuggled, "400"},
		"a list of lengths": {head("POST / HTTP/1.1", "Content-Length: 4, 4") + "body" + smuggled, "400"},
		"an unknown coding": {head("POST / HTTP/1.1", "Transfer-Encoding: xchunked") + smuggled, "501"},
		"chunked twice":     {head("POST / HTTP/1.1", "Transfer-Encoding: chunked, chunked") + smuggled, "400"},
		"two codings": {head("POST / HTTP/1.1", "Transfer-Encoding: chunked",
			"Transfer-Encoding: identity") + smuggled, "400"},
		"a coding in HTTP/1.0": {head("POST / HTTP/1.0", "Transfer-Encoding: chunked") + "0\r\n\r\n" + smuggled,
			"400"},
		"a space before the colon": {head("POST / HTTP/1.1", "Transfer-Encoding : chunked") + "0\r\n\r\n" + smuggled,
			"400"},
		"a space before a name":    {"GET / HTTP/1.1\r\n Host: a.example\r\n\r\n", "400"},
		"a bare LF":                {"GET / HTTP/1.1\nHost: a.example\n\n", "400"},
		"a bare LF behind a value": {"GET / HTTP/1.1\r\nHost: a.example\r\nX-A: b\nX-B: c\r\n\r\n", "400"},
		"a folded line":            {get("/", "X-A: b\r\n c"), "400"},
		"a chunk with a sign": {head("POST / HTTP/1.1", "Transfer-Encoding: chunked") + "+4\r\nbody\r\n0\r\n\r\n" +
			smuggled, "400"},
		"a chunk with a prefix": {head("POST / HTTP/1.1", "Transfer-Encoding: chunked") +
			"0x4\r\nbody\r\n0\r\n\r\n" + smuggled, "400"},
		"a chunk that overflows": {
			head("POST / HTTP/1.1", "Transfer-Encoding: chunked") + "ffffffffffffffff1\r\nbody\r\n0\r\n\r\n" + smuggled,
			"400",
		},
		"a chunk with a bare LF": {head("POST / HTTP/1.1", "Transfer-Encoding: chunked") + "4\nbody\n0\n\n" + smuggled,
			"400"},
		"a chunk that is longer": {head("POST / HTTP/1.1", "Transfer-Encoding: chunked") + "4\r\nbody!\r\n0\r\n\r\n" +
			smuggled, "400"},
		"a chunk below zero": {head("POST / HTTP/1.1", "Transfer-Encoding: chunked") + "-4\r\nbody\r\n0\r\n\r\n" +
			smuggled, "400"},
		"a bare LF in an extension": {
			head("POST / HTTP/1.1", "Transfer-Encoding: chunked") + "4;a\nb\r\nbody\r\n0\r\n\r\n" + smuggled, "400",
		},
		"a control character in a coding": {head("POST / HTTP/1.1", "Transfer-Encoding: \x0bchunked") + "0\r\n\r\n" +
			smuggled, "400"},
		"a space behind a size": {head("POST / HTTP/1.1", "Transfer-Encoding: chunked") +
			"4 \r\nbody\r\n0\r\n\r\n", "200 open /"},
		"a PROXY header":              {"PROXY TCP4 1.2.3.4 5.6.7.8 1 2\r\n" + get("/"), "400"},
		"a PROXY header of version 2": {signature + "\x21\x11\x00\x0c" + tcp4 + get("/"), "400"},
		"another version":             {"GET / HTTP/1.2\r\nHost: a.example\r\n\r\n", "505"},
		"no version":                  {"GET /\r\n\r\n", "400"},
		"empty lines in front":        {"\r\n" + get("/x"), "200 open /x"},
		"an extension of a chunk": {head("POST / HTTP/1.1", "Transfer-Encoding: chunked") +
			"4;a=b\r\nbody\r\n0\r\n\r\n", "200 open /"},
		"Chunked, in another case": {head("POST / HTTP/1.1", "Transfer-Encoding: Chunked") +
			"4\r\nbody\r\n0\r\n\r\n", "200 open /"},
		"h2c is not switched to": {
			get("/", "Upgrade: h2c", "Connection: Upgrade, HTTP2-Settings", "HTTP2-Settings: AAMAAABkAAQAAP__"),
			"200 open /",
		},
		"a WebSocket of HTTP/1.0": {head("GET / HTTP/1.0", append([]string{"Connection: keep-alive"}, upgrade...)...),
			"200 open /"},
		"a body without its length": {head("POST / HTTP/1.1", "X-A: 1"), "200 open /"},
	} {
		t.Run(name, func(t *testing.T) {
			in.byHTTP1(t, func(t *testing.T, in *ingress) {
				got := in.raw(c.request + get("/last", "Connection: close"))
				served := strings.HasPrefix(c.want, "200")
				if len(got) == 0 || got[0] != c.want && !strings.HasPrefix(got[0], c.want+" ") {
					t.Fatalf("got %q, want %q", got, c.want)
				}
				rest := got[1:]
				if served && !slices.Equal(rest, []string{"200 open /last"}) || !served &&
					slices.ContainsFunc(rest, isAnswered) && c.want != "404" {
					t.Errorf("behind it comes %q", rest)
				}
				for _, r := range received(requests) {
					if !served && r.URL.Path != "/last" || r.URL.Path == "/admin/smuggled" {
						t.Errorf("%s %s has reached an endpoint", r.Method, r.RequestURI)
					}
				}
			})
		})
	}
}

func isAnswered(answer string) bool { return strings.HasPrefix(answer, "200") }

// raw sends bytes on a new connection, and returns all responses until its end.
func (in *ingress) raw(bytes string) (answers []string) {
	in.Helper()
	d := in.connect()
	// The server may close the connection while it reads.
	go func() { _, _ = io.WriteString(d.Conn, bytes) }()
	method, _, _ := strings.Cut(bytes, " ")
	for {
		got := d.reply(strings.TrimSpace(method))
		if got.status == 0 {
			return answers
		}
		answers = append(answers, got.String())
	}
}

// TestWireOfFrames checks requests that are only possible in frames. A request without a scheme is not tested: the
// HTTP/3 server accepts it, and the controller does not use schemes.
func TestWireOfFrames(t *testing.T) {
	in, requests := wired(t)
	usual := []string{":method: GET", ":scheme: https", ":authority: a.example", ":path: /"}
	without := func(name string) []string {
		return slices.DeleteFunc(slices.Clone(usual), func(line string) bool { return strings.HasPrefix(line, name) })
	}
	with := func(lines ...string) []string { return append(slices.Clip(usual), lines...) }
	for name, c := range map[string]struct {
		q    question
		want string
	}{
		"all of it":       {question{pseudo: usual}, "200 open /"},
		"the host beside": {question{fields: []string{"host: a.example"}}, "200 open /"},
		"the host in its place": {question{pseudo: without(":authority"), fields: []string{"host: a.example"}},
			"200 open /"},
		"two hosts": {
			question{pseudo: without(":authority"), fields: []string{"host: a.example", "host: b.example"}}, malformed,
		},
		"another host beside":      {question{fields: []string{"host: b.example"}}, malformed},
		"no method":                {question{pseudo: without(":method")}, malformed},
		"no path":                  {question{pseudo: without(":path")}, malformed},
		"two methods":              {question{pseudo: with(":method: POST")}, malformed},
		"two paths":                {question{pseudo: with(":path: /admin")}, malformed},
		"two authorities":          {question{pseudo: with(":authority: b.example")}, malformed},
		"an unknown pseudo field":  {question{pseudo: with(":x: y")}, malformed},
		"an answer's pseudo field": {question{pseudo: with(":status: 200")}, malformed},
		"an empty path":            {question{pseudo: append(without(":path"), ":path: ")}, malformed},
		"no host":                  {question{pseudo: without(":authority")}, "malformed or 404"},
		"an empty host": {question{pseudo: append(without(":authority"), ":authority: ")},
			"malformed or 404"},
		"a URL in the path":    {question{path: "http://b.example/admin"}, malformed},
		"a line in the path":   {question{path: "/ HTTP/1.1\r\nX-A: b"}, malformed},
		"a line in the method": {question{method: "GET / HTTP/1.1\r\nX-A: b\r\n\r\nGET"}, malformed},
		"a line in the host":   {question{host: "a.example\r\nX-A: b"}, malformed},
		"a line in a value":    {question{fields: []string{"x-a: b\r\nx-b: c"}}, malformed},
		"a line in a name":     {question{fields: []string{"x-a\r\nx-b: c"}}, malformed},
		"Connection":           {question{fields: []string{"connection: close"}}, malformed},
		"Keep-Alive":           {question{fields: []string{"keep-alive: 5"}}, malformed},
		"Upgrade":              {question{fields: []string{"upgrade: websocket"}}, malformed},
		"Proxy-Connection":     {question{fields: []string{"proxy-connection: x"}}, malformed},
		"Transfer-Encoding": {question{fields: []string{"transfer-encoding: chunked"},
			body: []string{"0\r\n\r\n"}}, malformed},
		"TE other than trailers": {question{fields: []string{"te: gzip"}}, malformed},
		"CONNECT": {question{pseudo: []string{":method: CONNECT", ":authority: a.example:443"}},
			"malformed or 405"},
		"CONNECT of a WebSocket": {question{pseudo: append(usual[1:], ":method: CONNECT", ":protocol: websocket")},
			"malformed or 405"},
		"a length, and nothing": {question{fields: []string{"content-length: 4"}}, malformed},
		"a length that is none": {question{fields: []string{"content-length: x"}, body: []string{"body"}},
			malformed},
		"a body that is shorter": {question{fields: []string{"content-length: 5"}, body: []string{"body"}},
			malformed},
		"a body that is longer": {question{fields: []string{"content-length: 3"}, body: []string{"body"}},
			malformed},
		"longer, piece by piece": {question{fields: []string{"content-length: 4"}, body: []string{"body", "more"}},
			malformed},
		"trailers and a short body": {
			question{fields: []string{"content-length: 5"}, body: []string{"body"}, trailers: []string{"x-a: b"}},
			malformed,
		},
		"a pseudo field in trailers": {question{body: []string{"body"}, trailers: []string{":path: /admin"}},
			malformed},
	} {
		t.Run(name, func(t *testing.T) {
			in.byEachVersion(t, func(t *testing.T, in *ingress) { in.gets(t, c.q.usual(), c.want, requests) },
				plain1, secure1)
		})
	}
}

// fillIn replaces SCHEME and PORT in want with the values for the protocol version of the test.
func (in *ingress) fillIn(want string) string {
	_, port, _ := net.SplitHostPort(in.http)
	return strings.NewReplacer("SCHEME", in.either("http", "https"), "PORT", in.either(port, "443")).Replace(want)
}
