package featuretests

import (
	"bufio"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"sigs.k8s.io/yaml"

	"github.com/k8singress/k8singress/internal/tests/fixture"
)

// snippetFile is a file of testdata/snippets. It has snippets, and exchanges that show their effect. In all texts,
// OTHER is the address of the second endpoint.
type snippetFile struct {
	// name is the name of the file without its extension. It is also the name of the Ingress and of its Service. The
	// host is name.example.
	name string
	// About says what authors want to reach with such a snippet.
	About string `json:"about"`
	// Snippet and Server are the configuration-snippet and the server-snippet of the Ingress.
	Snippet string `json:"snippet"`
	Server  string `json:"server"`
	// ConfigMap has the keys location-snippet and server-snippet. A file with one of them is checked alone.
	ConfigMap map[string]string `json:"configMap"`
	// HTTP is a part of the ConfigMap's http-snippet, which applies to all files.
	HTTP string `json:"http"`
	// Path is the path of the Ingress, "/" if it is empty. Any other path is a regular expression.
	Path string `json:"path"`
	// Annotations are more annotations of the Ingress.
	Annotations map[string]string `json:"annotations"`
	// Endpoints is "none" if the Service of the Ingress has no endpoints, "missing" if there is no Service, and "TLS"
	// if the endpoints speak TLS. They then have a certificate for one.internal and *.two.internal, which the authority
	// in the Secret of the Ingress signs. The Secret has the name of the Ingress. The field Server-Name of the requests
	// they get is the name in the TLS handshake.
	Endpoints string `json:"endpoints"`
	// OtherPath is the path of a second Ingress for the same host, whose Service is the second endpoint.
	OtherPath string      `json:"otherPath"`
	Nginx     nginxConfig `json:"nginx"`
	// Responses maps the targets of requests to the responses of the endpoint. Other targets get 200 and the body
	// "hello".
	Responses map[string]string `json:"responses"`
	// OtherResponses does the same for the second endpoint.
	OtherResponses map[string]string `json:"otherResponses"`
	// Fields are the names of the header fields that are compared, besides Location.
	Fields    []string          `json:"fields"`
	Exchanges []snippetExchange `json:"exchanges"`
}

// nginxConfig is the part of nginx's configuration that ingress-nginx derives from Path, Annotations and OtherPath.
type nginxConfig struct {
	// Location is the argument of the location with the snippet, "/" if it is empty.
	Location string `json:"location"`
	// Before and After are the directives before and after the snippet. Server has more locations.
	Before string `json:"before"`
	After  string `json:"after"`
	Server string `json:"server"`
}

// snippetExchange is a request and what happens to it. The first line of a request is the method and the target, the
// first line of a response is the status, and header fields follow. LARGE in a field of a request stands for 40 KiB.
type snippetExchange struct {
	Request string `json:"request"`
	snippetEffect
	// Nginx is set if nginx does something else for the reason Unlike.
	Unlike string         `json:"unlike"`
	Nginx  *snippetEffect `json:"nginx"`
}

// snippetEffect holds what endpoints and the client receive.
type snippetEffect struct {
	// Forwarded are the requests that endpoints get, one below the other.
	Forwarded string `json:"forwarded"`
	// Response is the response to the client, or "closed" if there is none. If no empty line follows the fields, the
	// body is not compared, because each proxy writes its own error page.
	Response string `json:"response"`
}

func snippetFiles(t *testing.T) (files []*snippetFile) {
	t.Helper()
	paths, err := filepath.Glob(filepath.Join("testdata/snippets", "*.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range paths {
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		f := &snippetFile{name: strings.TrimSuffix(filepath.Base(path), ".yaml")}
		if err := yaml.UnmarshalStrict(text, f); err != nil {
			t.Fatalf("%s: %v", path, err)
		}
		f.complete(t)
		files = append(files, f)
	}
	if len(files) == 0 {
		t.Fatal("there are no files")
	}
	return files
}

// complete fails the test unless a file has all that a reader needs.
func (f *snippetFile) complete(t *testing.T) {
	t.Helper()
	hasText := f.Snippet+f.Server != "" || f.ConfigMap != nil || f.Annotations != nil
	if f.About == "" || !hasText || len(f.Exchanges) == 0 {
		t.Fatalf("%s: about, snippets or exchanges are missing", f.name)
	}
	for _, x := range f.Exchanges {
		if (x.Unlike == "") != (x.Nginx == nil) || x.Nginx != nil && *x.Nginx == x.snippetEffect {
			t.Fatalf("%s: %s\nunlike is the reason why nginx differs from the rest", f.name, x.Request)
		}
	}
}

// snippetEndpoints are the two endpoints of a file. They record the requests that they get.
type snippetEndpoints struct {
	file *snippetFile
	// ip and port are the address of the first endpoint. otherIP and otherPort are the address of the second one.
	ip, port, otherIP, otherPort string
	// authority signs the certificate of the endpoints. It is nil if they do not speak TLS.
	authority *fixture.Identity

	mu       sync.Mutex
	received strings.Builder
}

func (f *snippetFile) startEndpoints(t testing.TB) *snippetEndpoints {
	t.Helper()
	e := &snippetEndpoints{file: f}
	start := endpointOf
	if f.Endpoints == "TLS" {
		e.authority = fixture.Authority(t, nil, "authority of endpoints")
		pair := named(t, e.authority, "one.internal", "*.two.internal").Pair()
		start = func(t testing.TB, handler http.HandlerFunc) (ip, port string) {
			return serving(t, &tls.Config{Certificates: []tls.Certificate{pair}}, handler)
		}
	}
	e.ip, e.port = start(t, e.responding("", f.Responses))
	e.otherIP, e.otherPort = start(t, e.responding(" at the second endpoint", f.OtherResponses))
	return e
}

// responding returns the handler of an endpoint.
func (e *snippetEndpoints) responding(at string, responses map[string]string) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		r.Header.Set("Host", r.Host)
		if r.TLS != nil && r.TLS.ServerName != "" {
			r.Header.Set("Server-Name", r.TLS.ServerName)
		}
		e.mu.Lock()
		fmt.Fprintf(&e.received, "%s %s%s\n%s", r.Method, r.RequestURI, at, fieldsOf(r.Header, e.file.Fields))
		e.mu.Unlock()
		text, ok := responses[r.RequestURI]
		if !ok {
			text = "200\nContent-Type: text/plain\n\nhello\n"
		}
		status, fields, body, _ := parsedMessage(text)
		for name, values := range fields {
			w.Header()[name] = values
		}
		code, err := strconv.Atoi(status)
		if err != nil {
			panic(err)
		}
		w.WriteHeader(code)
		_, _ = io.WriteString(w, body)
	}
}

// take returns the requests that the endpoints have got since the last call.
func (e *snippetEndpoints) take() string {
	e.mu.Lock()
	defer e.mu.Unlock()
	defer e.received.Reset()
	return e.received.String()
}

// address replaces OTHER in a text.
func (e *snippetEndpoints) address(text string) string {
	return strings.ReplaceAll(text, "OTHER", e.otherIP+":"+e.otherPort)
}

// parsedMessage returns the parts of a message of a file. hasBody is false if there is no empty line behind the fields.
func parsedMessage(text string) (first string, fields http.Header, body string, hasBody bool) {
	head, body, hasBody := strings.Cut(text, "\n\n")
	lines := bufio.NewScanner(strings.NewReader(head))
	lines.Scan()
	first, fields = lines.Text(), http.Header{}
	for lines.Scan() {
		name, value, _ := strings.Cut(lines.Text(), ": ")
		fields[name] = append(fields[name], value)
	}
	return first, fields, strings.TrimSuffix(body, "\n"), hasBody
}

// fieldsOf returns the lines of the fields with these names. The date in Expires is relative to the field Date.
func fieldsOf(fields http.Header, names []string) string {
	var lines strings.Builder
	for _, name := range names {
		values := fields.Values(name)
		if len(values) == 0 {
			continue
		}
		value := strings.Join(values, " | ")
		if expires, err := http.ParseTime(value); name == "Expires" && err == nil {
			date, err := http.ParseTime(fields.Get("Date"))
			if after := expires.Sub(date); err == nil && after.Abs() < 20_000*time.Hour {
				value = "Date + " + after.Round(time.Minute).String()
			}
		}
		fmt.Fprintf(&lines, "%s: %s\n", name, value)
	}
	return lines.String()
}

// effectOf sends a request of a file with a client to a server.
func (e *snippetEndpoints) effectOf(t testing.TB, client *http.Client, origin, request string) snippetEffect {
	t.Helper()
	line, fields, body, hasBody := parsedMessage(request)
	method, target, _ := strings.Cut(line, " ")
	var content io.Reader
	if hasBody {
		content = strings.NewReader(body)
	}
	asked, err := http.NewRequestWithContext(t.Context(), method, origin, content)
	if err != nil {
		t.Fatal(err)
	}
	for _, values := range fields {
		for i := range values {
			values[i] = strings.ReplaceAll(values[i], "LARGE", strings.Repeat("x", 40<<10))
		}
	}
	// url.Parse would change the target.
	asked.URL.Opaque = target
	asked.Host, asked.Header = e.file.name+".example", fields
	if host := fields.Get("Host"); host != "" {
		asked.Host = host
	}
	response, err := client.Do(asked)
	if failed := new(url.Error); errors.As(err, &failed) && !failed.Timeout() {
		return snippetEffect{Forwarded: e.take(), Response: "closed\n"}
	}
	if err != nil {
		t.Fatal(err)
	}
	got, names := read(t, response), slices.Concat(e.file.Fields, []string{"Location"})
	return snippetEffect{
		Forwarded: e.take(),
		Response:  fmt.Sprintf("%d\n%s\n%s\n", got.status, fieldsOf(got.header, names), got.body),
	}
}

// over replaces SCHEME in the effect of a file.
func (s snippetEffect) over(scheme string) snippetEffect {
	return snippetEffect{
		Forwarded: strings.ReplaceAll(s.Forwarded, "SCHEME", scheme),
		Response:  strings.ReplaceAll(s.Response, "SCHEME", scheme),
	}
}

// check compares the effect of a request with the wanted one of a file.
func (s snippetEffect) check(t *testing.T, request string, want snippetEffect) {
	t.Helper()
	if _, _, _, hasBody := parsedMessage(want.Response); !hasBody {
		s.Response, _, _ = strings.Cut(s.Response, "\n\n")
	}
	if s.Forwarded != want.Forwarded {
		t.Errorf("%s\nis forwarded as\n%s\nwant\n%s", request, s.Forwarded, want.Forwarded)
	}
	if strings.TrimRight(s.Response, "\n") != strings.TrimRight(want.Response, "\n") {
		t.Errorf("%s\nis answered with\n%s\nwant\n%s", request, s.Response, want.Response)
	}
}

// allowSnippets are the keys of the ConfigMap that allow snippets.
var allowSnippets = []string{`allow-snippet-annotations: "true"`, "annotations-risk-level: Critical"}

// manifests returns the objects of a file.
func (e *snippetEndpoints) manifests() string {
	f := e.file
	path, kind := f.Path, "ImplementationSpecific"
	if path == "" {
		path, kind = "/", "Prefix"
	}
	annotations := []string{
		"configuration-snippet", e.address(f.Snippet), "server-snippet", e.address(f.Server),
	}
	for name, value := range f.Annotations {
		annotations = append(annotations, name, e.address(value))
	}
	objects := annotate(rule(f.name, f.name+".example", kind, path, f.name), annotations...)
	switch f.Endpoints {
	case "missing":
	case "none":
		objects += service(f.name, e.port)
	default:
		objects += service(f.name, e.port, e.ip)
	}
	if e.authority != nil {
		objects += opaque(f.name, map[string][]byte{"ca.crt": e.authority.PEM()})
	}
	if f.OtherPath != "" {
		other := f.name + "-other"
		objects += rule(other, f.name+".example", "Prefix", f.OtherPath, other) + service(other, e.otherPort, e.otherIP)
	}
	return objects
}

// trustsProxies is a directive of http-snippet in files that name the trusted proxies themselves. For other files, keys
// of the ConfigMap trust the client of the test.
const trustsProxies = "set_real_ip_from"

// TestSnippetFiles checks the files of testdata/snippets with each version of HTTP.
func TestSnippetFiles(t *testing.T) {
	var together []*snippetEndpoints
	for _, f := range snippetFiles(t) {
		e := f.startEndpoints(t)
		if f.ConfigMap == nil {
			together = append(together, e)
			continue
		}
		t.Run(f.name, func(t *testing.T) { checkSnippets(t, e) })
	}
	t.Run("together", func(t *testing.T) { checkSnippets(t, together...) })
}

// checkSnippets checks the exchanges of files that one ConfigMap applies to. It returns the controller.
func checkSnippets(t *testing.T, all ...*snippetEndpoints) *ingress {
	t.Helper()
	objects, keys := class, map[string]string{}
	for _, e := range all {
		objects += e.manifests()
		keys["http-snippet"] += e.file.HTTP
		for key, text := range e.file.ConfigMap {
			keys[key] += e.address(text)
		}
	}
	data := slices.Clone(allowSnippets)
	if !strings.Contains(keys["http-snippet"], trustsProxies) {
		data = append(data, `use-forwarded-headers: "true"`, "proxy-real-ip-cidr: 127.0.0.0/8")
	}
	for key, text := range keys {
		data = append(data, fmt.Sprintf("%s: %q", key, text))
	}
	in := start(t, objects+global(data...), "configmap default/global")
	in.byEachVersion(t, func(t *testing.T, in *ingress) {
		for _, e := range all {
			t.Run(e.file.name, func(t *testing.T) {
				for _, x := range e.file.Exchanges {
					got := e.effectOf(t, in.client, in.origin(e.file.name+".example"), x.Request)
					got.check(t, x.Request, x.over(in.either("http", "https")))
				}
			})
		}
	})
	return in
}
