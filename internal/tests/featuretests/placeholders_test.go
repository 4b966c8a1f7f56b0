package featuretests

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/k8singress/k8singress/internal/translate/annotations"
)

// transcript records everything that endpoints receive.
type transcript struct {
	mu   sync.Mutex
	text strings.Builder
}

func (s *transcript) add(text []byte) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.text.Write(text)
}

func (s *transcript) String() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.text.String()
}

// fastCGI starts an endpoint that records what it receives, and closes the connection.
func (s *transcript) fastCGI(t *testing.T) (port string) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	go func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			buffer := make([]byte, 64<<10)
			n, _ := conn.Read(buffer)
			s.add(buffer[:n])
			conn.Close()
		}
	}()
	_, port, _ = net.SplitHostPort(l.Addr().String())
	return port
}

// companions returns the other annotations that a row needs to have an effect.
func companions(name string) []string {
	switch {
	case strings.HasPrefix(name, "session-cookie-"), name == "affinity-mode":
		return []string{"affinity", "cookie"}
	case strings.HasPrefix(name, "k8singress.io/health-check-"):
		return []string{"k8singress.io/health-check-path", "/healthz", "k8singress.io/health-check-interval", "1"}
	case strings.HasPrefix(name, "upstream-hash-by-"):
		return []string{"upstream-hash-by", "$request_uri"}
	case name == "x-forwarded-prefix":
		return []string{"rewrite-target", "/rewritten"}
	}
	return nil
}

const fromEnvironment, fromFile = "canary-of-the-environment", "canary-of-a-file"

// birdcage has Ingresses with placeholders in their annotations and paths, for the hosts i1.example, i2.example and so
// on.
type birdcage struct {
	manifests strings.Builder
	hosts     int
	// ports has the ports of the endpoints by backend-protocol.
	ports map[string]string
}

// add adds an Ingress for each protocol, unless the annotations set one.
func (b *birdcage) add(path string, pairs ...string) {
	for protocol, port := range b.ports {
		b.hosts++
		name := fmt.Sprintf("i%d", b.hosts)
		all := pairs
		if !strings.Contains(strings.Join(pairs, " "), "backend-protocol") {
			all = append([]string{"backend-protocol", protocol}, pairs...)
		}
		b.manifests.WriteString(service(name, port, "127.0.0.1") +
			annotate(rule(name, name+".example", "ImplementationSpecific", path, name), all...))
	}
}

// fill adds every annotation, with the first placeholder in several places and with each of the others.
func (b *birdcage) fill(placeholders []string) {
	b.manifests.WriteString(class)
	for i := range annotations.Table {
		row := &annotations.Table[i]
		first, other := placeholders[0], placeholders[1+i%(len(placeholders)-1)]
		for _, value := range []string{first, "/" + first, row.Example + first, "/" + other} {
			pairs := []string{row.Name, value}
			for k, more := 0, companions(row.Name); k < len(more); k += 2 {
				if more[k] != row.Name {
					pairs = append(pairs, more[k], more[k+1])
				}
			}
			b.add("/", pairs...)
		}
	}
	for _, p := range placeholders {
		b.add("/"+p, "fastcgi-index", "index.php", "proxy-request-buffering", "off")
	}
}

// http starts an endpoint that records what it receives.
func (s *transcript) http(t *testing.T) (port string) {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		if dump, err := httputil.DumpRequest(r, true); err == nil {
			s.add(dump)
		}
	}))
	t.Cleanup(server.Close)
	_, port, _ = net.SplitHostPort(server.Listener.Addr().String())
	return port
}

// TestPlaceholdersStayText checks for every annotation that a Caddy placeholder in it is not expanded in the response,
// in the request to the endpoint, or in the log. It checks the same for paths and for the input of clients.
func TestPlaceholdersStayText(t *testing.T) {
	t.Setenv("CANARY", fromEnvironment)
	folder := t.TempDir()
	file, log := filepath.Join(folder, "canary"), filepath.Join(folder, "log")
	if err := os.WriteFile(file, []byte(fromFile), 0o600); err != nil {
		t.Fatal(err)
	}
	sent := &transcript{}
	cage := birdcage{ports: map[string]string{"HTTP": sent.http(t), "FCGI": sent.fastCGI(t)}}
	cage.fill([]string{
		"{env.CANARY}", "{file." + file + "}", "{$CANARY}", "${env.CANARY}", `\{env.CANARY}`,
		"{http.request.host}{env.CANARY}",
	})
	in := newIngress(t)
	in.write("manifests.yaml", cage.manifests.String())
	in.loadCaddyfile(
		fmt.Sprintf(
			"{\nadmin %s\nlog {\noutput file %s\nlevel DEBUG\n}\nk8singress {\nhttp %s\nhttps %s\nmanifests %s\n}\n}\n",
			in.admin, log, in.http, in.https, in.folder))
	in.awaitReady()
	var answers strings.Builder
	for i := range cage.hosts {
		for _, path := range []string{"/{env.CANARY}/?a={env.CANARY}", "/{file." + file + "}"} {
			got := in.sing(fmt.Sprintf("i%d.example", i+1), path)
			fmt.Fprintln(&answers, got.status, got.header, got.body)
		}
	}
	logged, err := os.ReadFile(log)
	if err != nil {
		t.Fatal(err)
	}
	var objects any
	in.adminJSON("/k8singress/objects", &objects)
	for what, text := range map[string]string{
		"an answer": answers.String(), "what endpoints are sent": sent.String(), "the log": string(logged),
		"the document": string(in.document()), "the verdicts": fmt.Sprint(objects),
	} {
		mute(t, what, text)
	}
	for _, part := range []string{"SCRIPT_NAME", "X-Mine: {env.CANARY}"} {
		if !strings.Contains(sent.String(), part) {
			t.Errorf("no endpoint was sent %s", part)
		}
	}
}

// mute fails the test if a text contains the value of a placeholder.
func mute(t *testing.T, what, text string) {
	t.Helper()
	for _, canary := range []string{fromEnvironment, fromFile} {
		if at := strings.Index(text, canary); at >= 0 {
			t.Errorf("%s has %s in it: %.300q", what, canary, text[max(at-150, 0):])
		}
	}
	if text == "" {
		t.Errorf("%s is empty", what)
	}
}

// sing sends a request with placeholders wherever a client can write one. The length of its body is not known in
// advance.
func (in *ingress) sing(host, path string) answer {
	in.Helper()
	body := io.LimitReader(strings.NewReader("{env.CANARY}"), 12)
	request, err := http.NewRequestWithContext(in.Context(), http.MethodPost, "http://"+in.http+path, body)
	if err != nil {
		in.Fatal(err)
	}
	request.Host = host
	request.Header.Set("X-Mine", "{env.CANARY}")
	request.Header.Set("Cookie", "INGRESSCOOKIE={env.CANARY}")
	response, err := in.client.Do(request)
	if err != nil {
		in.Fatal(err)
	}
	return read(in, response)
}
