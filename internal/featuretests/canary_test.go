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

	"github.com/k8singress/k8singress/internal/annotations"
)

// transcript is everything that endpoints were sent.
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

// fastCGI is an endpoint that writes down what it is sent, and closes the connection.
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

// companions are what a row needs beside it to have an effect.
func companions(name string) []string {
	switch {
	case strings.HasPrefix(name, "session-cookie-"), name == "affinity-mode":
		return []string{"affinity", "cookie"}
	case strings.HasPrefix(name, "health-check-"):
		return []string{"k8singress.io/health-check-path", "/healthz", "k8singress.io/health-check-interval", "1"}
	case strings.HasPrefix(name, "upstream-hash-by-"):
		return []string{"upstream-hash-by", "$request_uri"}
	case name == "x-forwarded-prefix":
		return []string{"rewrite-target", "/rewritten"}
	}
	return nil
}

// TestPlaceholdersStayText holds for every annotation that a placeholder of Caddy in it means nothing: neither an answer, nor
// what an endpoint is sent, nor the log has what it stands for. The same goes for paths, and for what a client sends.
func TestPlaceholdersStayText(t *testing.T) {
	const secret, filed = "canary-of-the-environment", "canary-of-a-file"
	t.Setenv("CANARY", secret)
	file := filepath.Join(t.TempDir(), "canary")
	if err := os.WriteFile(file, []byte(filed), 0o600); err != nil {
		t.Fatal(err)
	}
	sent := &transcript{}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if dump, err := httputil.DumpRequest(r, true); err == nil {
			sent.add(dump)
		}
	}))
	t.Cleanup(server.Close)
	_, plain, err := net.SplitHostPort(server.Listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	fastCGI := sent.fastCGI(t)
	placeholders := []string{"{env.CANARY}", "{file." + file + "}", "{$CANARY}", "${env.CANARY}", `\{env.CANARY}`, "{http.request.host}{env.CANARY}"}

	var manifests strings.Builder
	manifests.WriteString(class)
	hosts := 0
	add := func(path string, pairs ...string) {
		for protocol, port := range map[string]string{"HTTP": plain, "FCGI": fastCGI} {
			hosts++
			name := fmt.Sprintf("i%d", hosts)
			all := pairs
			if !strings.Contains(strings.Join(pairs, " "), "backend-protocol") {
				all = append([]string{"backend-protocol", protocol}, pairs...)
			}
			manifests.WriteString(service(name, port, "127.0.0.1") + annotatedPath(name, name+".example", "ImplementationSpecific", path, name, all...))
		}
	}
	for i := range annotations.Table {
		row := &annotations.Table[i]
		// Each with the first one in several places, and with one of the others.
		other := placeholders[1+i%(len(placeholders)-1)]
		for _, value := range []string{placeholders[0], "/" + placeholders[0], row.Example + placeholders[0], "/" + other} {
			pairs := []string{row.Key(), value}
			for k, more := 0, companions(row.Name); k < len(more); k += 2 {
				if key := annotations.Prefix + more[k]; key != row.Key() && more[k] != row.Key() {
					pairs = append(pairs, more[k], more[k+1])
				}
			}
			add("/", pairs...)
		}
	}
	for _, p := range placeholders {
		add("/"+p, "fastcgi-index", "index.php", "proxy-request-buffering", "off")
	}
	in := newIngress(t)
	in.write("manifests.yaml", manifests.String())
	log := filepath.Join(t.TempDir(), "log")
	in.loadCaddyfile(fmt.Sprintf("{\nadmin %s\nlog {\noutput file %s\nlevel DEBUG\n}\nk8singress {\nhttp %s\nhttps %s\nmanifests %s\n}\n}\n",
		in.admin, log, in.http, in.https, in.folder))
	in.awaitReady()
	var got strings.Builder
	for i := range hosts {
		for _, path := range []string{"/{env.CANARY}/?a={env.CANARY}", "/{file." + file + "}"} {
			request, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "http://"+in.http+path, io.LimitReader(strings.NewReader("{env.CANARY}"), 12))
			if err != nil {
				t.Fatal(err)
			}
			request.Host = fmt.Sprintf("i%d.example", i+1)
			request.Header.Set("X-Mine", "{env.CANARY}")
			request.Header.Set("Cookie", "INGRESSCOOKIE={env.CANARY}")
			response, err := in.client.Do(request)
			if err != nil {
				t.Fatal(err)
			}
			answer := read(t, response)
			fmt.Fprintln(&got, answer.status, answer.header, answer.body)
		}
	}
	logged, err := os.ReadFile(log)
	if err != nil {
		t.Fatal(err)
	}
	var objects any
	in.adminJSON("/k8singress/objects", &objects)
	for what, text := range map[string]string{
		"an answer": got.String(), "what endpoints are sent": sent.String(), "the log": string(logged),
		"the document": string(in.document()), "the verdicts": fmt.Sprint(objects),
	} {
		for _, canary := range []string{secret, filed} {
			if at := strings.Index(text, canary); at >= 0 {
				t.Errorf("%s has %s in it: %.300q", what, canary, text[max(at-150, 0):])
			}
		}
		if text == "" {
			t.Errorf("%s is empty", what)
		}
	}
	if !strings.Contains(sent.String(), "SCRIPT_NAME") || !strings.Contains(sent.String(), "X-Mine: {env.CANARY}") {
		t.Error("the endpoints were not asked")
	}
}
