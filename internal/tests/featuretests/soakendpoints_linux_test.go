package featuretests

import (
	"bufio"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"strings"
	"testing"

	"github.com/k8singress/k8singress/internal/tests/fixture"
)

// The hosts of honest endpoints: large responses with WebSockets, and requests that may be retried at another endpoint.
const (
	steady  = "a.example"
	wanting = "wanting.example"
)

// largeAnswer is the size of /large in bytes.
const largeAnswer = 1 << 20

// honestManifests are the objects of both hosts, and of their certificate.
func honestManifests(t *testing.T) string {
	t.Helper()
	echo := sockets(t, make(chan string, 100))
	ip, port := endpointOf(t, func(w http.ResponseWriter, r *http.Request) {
		switch {
		case r.Header.Get("Upgrade") != "":
			echo(w, r)
		case r.Method == http.MethodPost:
			// Go's server stops reading the body when the handler starts to respond.
			if body, err := io.ReadAll(r.Body); err == nil {
				_, _ = w.Write(body)
			}
		case r.URL.Path == "/large":
			_, _ = w.Write(make([]byte, largeAnswer))
		default:
			_, _ = io.WriteString(w, r.URL.Path)
		}
	})
	other, otherPort := hostPort(t, endpointThat(t, closesBetween))
	return service("steady", port, ip) + rule("steady", steady, "Prefix", "/", "steady") +
		service("wanting", port, ip) + fmt.Sprintf(secondSlice, other, otherPort) + rule("wanting", wanting, "Prefix",
		"/", "wanting")
}

// secondSlice adds an endpoint to the Service "wanting".
const secondSlice = `---
apiVersion: discovery.k8s.io/v1
kind: EndpointSlice
metadata: {name: wanting-2, labels: {kubernetes.io/service-name: wanting}}
addressType: IPv4
ports: [{name: http, port: %[2]s}]
endpoints: [{addresses: [%[1]s]}]
`

// closesBetween responds as if it kept the connection, and closes it.
func closesBetween(conn net.Conn, in *bufio.Reader) {
	request, err := http.ReadRequest(in)
	if err != nil {
		return
	}
	fmt.Fprintf(conn, "HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%s", len(request.URL.Path), request.URL.Path)
}

// hostileEndpoints maps hosts to endpoints. A connection ends when the function returns.
var hostileEndpoints = map[string]func(conn net.Conn, in *bufio.Reader){
	"unasked": func(conn net.Conn, _ *bufio.Reader) {
		_, _ = io.WriteString(conn, "HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nfake")
	},
	"early": afterHead(func(conn net.Conn) {
		_, _ = io.WriteString(conn, "HTTP/1.1 403 Forbidden\r\nContent-Length: 2\r\n\r\nno")
	}),
	"twice": afterHead(func(conn net.Conn) {
		_, _ = io.WriteString(conn, strings.Repeat("HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nfake", 2))
		_, _ = io.Copy(io.Discard, conn)
	}),
	"without-end": afterHead(func(conn net.Conn) {
		_, err := io.WriteString(conn, "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n")
		for piece := strings.Repeat("x", 1<<12); err == nil; {
			_, err = fmt.Fprintf(conn, "%x\r\n%s\r\n", len(piece), piece)
		}
	}),
	"endless-head": afterHead(func(conn net.Conn) {
		_, err := io.WriteString(conn, "HTTP/1.1 200 OK\r\n")
		for err == nil {
			_, err = io.WriteString(conn, strings.Repeat("X-A: b\r\n", 100))
		}
	}),
	"endless-hints": afterHead(func(conn net.Conn) {
		for err := error(nil); err == nil; {
			_, err = io.WriteString(conn, strings.Repeat("HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n", 20))
		}
	}),
	"garbage": afterHead(func(conn net.Conn) {
		piece := make([]byte, 1<<10)
		for i := range piece {
			piece[i] = byte(rand.IntN(256))
		}
		_, _ = conn.Write(piece)
	}),
	"cut": afterHead(func(conn net.Conn) {
		_, _ = io.WriteString(conn, "HTTP/1.1 200 OK\r\nContent-Length: 100000\r\n\r\nfake")
	}),
	"bad-chunks": afterHead(func(conn net.Conn) {
		_, _ = io.WriteString(conn,
			"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n4\r\nfake\r\nffffffffffffffff\r\nfake")
	}),
	"silent": afterHead(func(conn net.Conn) { _, _ = io.Copy(io.Discard, conn) }),
	"vanishes": afterHead(func(conn net.Conn) {
		_ = conn.(*net.TCPConn).SetLinger(0)
	}),
}

func afterHead(then func(net.Conn)) func(net.Conn, *bufio.Reader) {
	return func(conn net.Conn, in *bufio.Reader) {
		if _, err := http.ReadRequest(in); err == nil {
			then(conn)
		}
	}
}

// endpointThat starts a listener, and calls behave for each connection.
func endpointThat(t testing.TB, behave func(net.Conn, *bufio.Reader)) net.Addr {
	t.Helper()
	listener := fixture.Listen(t)
	fixture.Serve(listener, func(conn net.Conn) { behave(conn, bufio.NewReader(conn)) })
	return listener.Addr()
}

// hostileManifests returns the manifests for one of them. The test does not wait until they have taken effect.
func hostileManifests(t testing.TB, name string, address net.Addr) string {
	t.Helper()
	ip, port := hostPort(t, address)
	ingress := strings.Replace(rule(name, name+".example", "Prefix", "/", name),
		fmt.Sprintf("metadata: {name: %s}", name),
		fmt.Sprintf("metadata: {name: %s, annotations: {nginx.ingress.kubernetes.io/proxy-read-timeout: %q}}",
			name, "1"), 1)
	return service(name, port, ip) + ingress
}
