package k8singress_test

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/caddyconfig"

	"github.com/k8singress/k8singress/internal/tests/fixture"
)

// BenchmarkRequest measures a short GET on a kept connection through the whole process between the client and the
// endpoint. All allocations are the process's, since the client and the endpoint of this benchmark allocate nothing.
func BenchmarkRequest(b *testing.B) { benchmarkRequest(b, "") }

// BenchmarkNotFound measures a request for an unknown host, which gets an error with a text of two lines.
func BenchmarkNotFound(b *testing.B) { benchmarkHost(b, "", "unknown", 2) }

// BenchmarkExternalAuth is BenchmarkRequest with external authentication: with a call per request, and with a cached
// response.
func BenchmarkExternalAuth(b *testing.B) {
	service := raw(b, "HTTP/1.1 200 OK\r\nX-User: alice\r\nContent-Length: 0\r\n\r\n")
	asks := fmt.Sprintf(
		"nginx.ingress.kubernetes.io/auth-url: http://%s/check, "+
			"nginx.ingress.kubernetes.io/auth-response-headers: X-User", service)
	b.Run("plain", func(b *testing.B) { benchmarkRequest(b, "") })
	b.Run("asked", func(b *testing.B) { benchmarkRequest(b, asks) })
	b.Run("kept", func(b *testing.B) {
		benchmarkRequest(b, asks+", nginx.ingress.kubernetes.io/auth-cache-key: $http_authorization")
	})
}

func benchmarkRequest(b *testing.B, annotations string) {
	b.Helper()
	benchmarkHost(b, annotations, "h", 1)
}

// benchmarkHost sends requests to a host. lines is the number of lines in the body of the response.
func benchmarkHost(b *testing.B, annotations, host string, lines int) {
	b.Helper()
	address := fixture.Address(b)
	load(b, address, raw(b, "HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: 3\r\n\r\nok\n"),
		annotations)
	conn, err := net.DialTimeout("tcp", address, patience)
	if err != nil {
		b.Fatal(err)
	}
	defer conn.Close()
	request, reader := []byte("GET / HTTP/1.1\r\nHost: "+host+"\r\n\r\n"), bufio.NewReader(conn)
	b.ReportAllocs()
	for b.Loop() {
		if _, err := conn.Write(request); err != nil {
			b.Fatal(err)
		}
		if err := skip(reader, lines); err != nil {
			b.Fatal(err)
		}
	}
}

// load runs Caddy with our servers, as its Caddyfile has them, and a host "h" in front of a backend.
func load(b *testing.B, address, backend, annotations string) {
	b.Helper()
	manifests, err := os.ReadFile(filepath.Join("testdata", "leaving", "manifests.yaml"))
	if err != nil {
		b.Fatal(err)
	}
	folder := b.TempDir()
	_, port, _ := net.SplitHostPort(backend)
	content := strings.ReplaceAll(string(manifests), "PORT", port)
	if annotations != "" {
		content = strings.Replace(content, "kind: Ingress\nmetadata: {",
			"kind: Ingress\nmetadata: {annotations: {"+annotations+"}, ", 1)
	}
	if err := os.WriteFile(filepath.Join(folder, "manifests.yaml"), []byte(content), 0o600); err != nil {
		b.Fatal(err)
	}
	text := fmt.Sprintf(
		"{\nadmin off\nk8singress {\nmanifests %s\nreach_allow 127.0.0.0/8\nhttp %s\nhttps %s\nhealth %s\n}\n}\n",
		folder, address, fixture.Address(b), fixture.Address(b))
	config, _, err := caddyconfig.GetAdapter("caddyfile").Adapt([]byte(text), nil)
	if err != nil {
		b.Fatal(err)
	}
	if err := caddy.Load(config, true); err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { _ = caddy.Stop() })
	(&process{TB: b}).eventually("serves", func() error {
		request, err := http.NewRequestWithContext(b.Context(), http.MethodGet, "http://"+address, nil)
		if err != nil {
			return err
		}
		request.Host = "h"
		response, err := http.DefaultClient.Do(request)
		if err != nil {
			return err
		}
		_ = response.Body.Close()
		return isOK(response.StatusCode)
	})
}

// raw starts an endpoint that responds to each request head with the same bytes. It uses as little time as possible.
func raw(b *testing.B, answer string) (address string) {
	b.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { _ = listener.Close() })
	go func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			go repeat(conn, []byte(answer))
		}
	}()
	return listener.Addr().String()
}

func repeat(conn net.Conn, answer []byte) {
	defer conn.Close()
	reader := bufio.NewReader(conn)
	for {
		line, err := reader.ReadSlice('\n')
		if err != nil {
			return
		}
		if len(line) > 2 {
			continue
		}
		if _, err := conn.Write(answer); err != nil {
			return
		}
	}
}

// skip reads a response to the end of its body, which has this number of lines.
func skip(reader *bufio.Reader, lines int) error {
	for read := -1; read < lines; {
		line, err := reader.ReadSlice('\n')
		switch {
		case err != nil:
			return err
		case len(line) == len("\r\n"), read >= 0:
			read++
		}
	}
	if reader.Buffered() > 0 {
		return io.ErrShortBuffer
	}
	return nil
}
