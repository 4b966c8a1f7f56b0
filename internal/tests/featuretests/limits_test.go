package featuretests

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptrace"
	"strings"
	"testing"
	"time"

	"golang.org/x/net/http2"
)

// reading serves a.example with an endpoint that reads bodies, and the ConfigMap default/global.
func reading(t *testing.T, data ...string) *ingress {
	t.Helper()
	ip, port := endpointOf(t, func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		fmt.Fprint(w, len(body), err)
	})
	return start(t, class+service("one", port, ip)+rule("a", "a.example", "Prefix", "/", "one")+global(data...),
		"configmap default/global")
}

// TestHeadLimitsAreLive checks that large-client-header-buffers and the timeouts also apply to open connections.
func TestHeadLimitsAreLive(t *testing.T) {
	in := reading(t, `keep-alive: "75"`)
	ip, port := endpointOf(t, func(http.ResponseWriter, *http.Request) {})
	large := get("/", "X-A: "+strings.Repeat("x", 20<<10))
	open := in.connect()
	open.say("%s", large)
	if got := open.hear(http.MethodGet); !strings.HasPrefix(got, "200") {
		t.Fatalf("with the default: %s", got)
	}
	in.write("manifests.yaml", class+service("one", port, ip)+rule("a", "a.example", "Prefix", "/", "one")+
		global(`large-client-header-buffers: "2 4k"`, `client-header-timeout: "1"`, `keep-alive: "1"`))
	in.eventually("the limit of a head", func() error {
		if got := in.raw(get("/", "Connection: close", "X-A: "+strings.Repeat("x", 20<<10))); len(got) == 0 ||
			!strings.HasPrefix(got[0], "431") {
			return fmt.Errorf("got %q", got)
		}
		return nil
	})
	open.say("%s", large)
	if got := open.hear(http.MethodGet); !strings.HasPrefix(got, "431") {
		t.Errorf("on a connection that is open: %s", got)
	}
	unfinished, begin := in.connect(), time.Now()
	unfinished.say("GET / HTTP/1.1\r\nHost: a.exa")
	if got := unfinished.hear(http.MethodGet); !strings.HasPrefix(got, "408") {
		t.Errorf("a head that does not end: %s", got)
	}
	unfinished.ends()
	took(t, "it", begin, time.Second)
	idle := in.connect()
	idle.say("%s", get("/"))
	if got := idle.hear(http.MethodGet); !strings.HasPrefix(got, "200") {
		t.Errorf("before an idle connection ends: %s", got)
	}
	begin = time.Now()
	idle.ends()
	in.connect().ends()
	took(t, "the end of idle connections", begin, time.Second)
}

// TestHeadLimitOfSnippets checks that the server-snippet of an Ingress raises the limit for all hosts without a reload,
// up to 64 KiB, and that the limit goes back with the Ingress.
func TestHeadLimitOfSnippets(t *testing.T) {
	in := reading(t, allowSnippets...)
	reloads, open := in.reloads(), in.connect()
	open.say("%s", get("/"))
	if got := open.hear(http.MethodGet); !strings.HasPrefix(got, "200") {
		t.Fatalf("a small head: %s", got)
	}
	in.limitsHeads(t, 20<<10, 40<<10)
	in.write("large.yaml", annotated("large", "large.example", "one", "server-snippet",
		"client_header_buffer_size 64k; large_client_header_buffers 4 64k;"))
	in.limitsHeads(t, 40<<10, 70<<10)
	// An HTTP/1.1 connection that is open gets the new limit.
	open.say("%s", get("/", "X-A: "+strings.Repeat("x", 40<<10)))
	if got := open.hear(http.MethodGet); !strings.HasPrefix(got, "200") {
		t.Errorf("a large head on a connection that is open: %s", got)
	}
	in.remove("large.yaml")
	in.limitsHeads(t, 20<<10, 40<<10)
	if now := in.reloads(); now != reloads {
		t.Errorf("%s reloads, %s before", now, reloads)
	}
}

// limitsHeads waits until new connections of each version of HTTP accept a header field of one size, and not of the
// other. For a field that is larger than the limit, Go's HTTP/2 server closes the connection without a response. The
// server whose requests Caddy handles is a server of the administrator, so it keeps its limit of 32 KiB.
func (in *ingress) limitsHeads(t *testing.T, accepted, refused int) {
	t.Helper()
	in.byEachVersion(t, func(t *testing.T, in *ingress) {
		if in.version == byCaddy {
			accepted, refused = 20<<10, 40<<10
		}
		in.eventually("the limit of a head", func() error {
			for _, size := range []int{accepted, refused} {
				in.client.CloseIdleConnections()
				request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, in.origin("a.example")+"/", nil)
				if err != nil {
					return err
				}
				request.Header.Set("X-A", strings.Repeat("x", size))
				status := 0
				if response, err := in.client.Do(request); err == nil {
					status = read(t, response).status
				}
				if (status == http.StatusOK) != (size == accepted) {
					return fmt.Errorf("%d bytes get %d", size, status)
				}
			}
			return nil
		})
	})
}

// pauses are bodies that pause at some point, with a length and chunked.
var pauses = map[string]string{
	"a length":                   head("POST / HTTP/1.1", "Content-Length: 100000") + "some",
	"nothing of a length":        head("POST / HTTP/1.1", "Content-Length: 100000"),
	"chunks":                     head("POST / HTTP/1.1", "Transfer-Encoding: chunked") + "186a0\r\nsome",
	"nothing of chunks":          head("POST / HTTP/1.1", "Transfer-Encoding: chunked"),
	"the size of a chunk":        head("POST / HTTP/1.1", "Transfer-Encoding: chunked") + "4\r\nsome\r\n4",
	"between chunks":             head("POST / HTTP/1.1", "Transfer-Encoding: chunked") + "4\r\nsome\r\n",
	"in front of the last chunk": head("POST / HTTP/1.1", "Transfer-Encoding: chunked") + "4\r\nsome\r\n0",
	"the trailers":               head("POST / HTTP/1.1", "Transfer-Encoding: chunked") + "4\r\nsome\r\n0\r\nX-A: 1",
}

// TestClientBodyTimeout checks that a request body that pauses gets 408 in each version of HTTP, wherever it pauses,
// with and without buffering.
func TestClientBodyTimeout(t *testing.T) {
	in := reading(t, `client-body-timeout: "1"`)
	in.write("streamed.yaml", annotated("b", "b.example", "one",
		"nginx.ingress.kubernetes.io/proxy-request-buffering", "off"))
	in.becomes("b.example", "/", http.StatusOK, "0 <nil>")
	waiting := map[string]*dialed{}
	for name, text := range pauses {
		for _, host := range []string{"a.example", "b.example"} {
			d := in.connect()
			d.say("%s", strings.Replace(text, "a.example", host, 1))
			waiting[name+" "+host] = d
		}
	}
	begin := time.Now()
	for name, d := range waiting {
		if got := d.head(http.MethodPost); got.StatusCode != http.StatusRequestTimeout || !got.Close {
			t.Errorf("%s: %s, the last one: %t", name, got.Status, got.Close)
		}
	}
	took(t, "the wait for bodies", begin, 0)
	in.byEachAtOnce(t, func(t *testing.T, in *ingress) {
		body, writer := io.Pipe()
		go func() { _, _ = io.WriteString(writer, "some") }()
		if got := in.send(http.MethodPost, "/", body); got.status != http.StatusRequestTimeout {
			t.Errorf("%d %s", got.status, got.body)
		}
		_ = writer.CloseWithError(errors.New("it is over"))
	})
}

// TestContentTypeLiftsNoLimit checks that a client cannot disable the timeout for request bodies by a content type of
// gRPC: only the route can.
func TestContentTypeLiftsNoLimit(t *testing.T) {
	in := reading(t, `client-body-timeout: "1"`)
	in.byEachAtOnce(t, func(t *testing.T, in *ingress) {
		body, writer := io.Pipe()
		go func() { _, _ = io.WriteString(writer, "some") }()
		got := in.send(http.MethodPost, "/", body, "Content-Type: application/grpc")
		call := strings.HasPrefix(got.header.Get("Grpc-Message"), "408 ")
		if !call && got.status != http.StatusRequestTimeout {
			t.Errorf("%d %s", got.status, got.body)
		}
		_ = writer.CloseWithError(errors.New("it is over"))
	})
}

// TestKeepAliveRequests checks that a connection is closed after the maximum number of requests, and that the last
// response announces it.
func TestKeepAliveRequests(t *testing.T) {
	in := reading(t, `keep-alive-requests: "2"`)
	d := in.connect()
	d.say("%s", get("/1")+get("/2")+get("/3"))
	for n, closes := range []bool{false, true} {
		got := d.head(http.MethodGet)
		_, _ = io.Copy(io.Discard, got.Body)
		if got.StatusCode != http.StatusOK || got.Close != closes {
			t.Errorf("answer %d: %s, the last one: %t", n+1, got.Status, got.Close)
		}
	}
	d.ends()
	for _, version := range []string{secure2, secure3} {
		in.speaking(t, version).movesOn()
	}
}

// TestWithoutKeepAlive checks that each connection is closed after one request.
func TestWithoutKeepAlive(t *testing.T) {
	in := reading(t, `keep-alive: "0"`)
	in.byEachVersion(t, func(_ *testing.T, in *ingress) { in.movesOn() })
}

// movesOn waits until requests use another connection than the first one.
func (in *ingress) movesOn() {
	in.Helper()
	first := in.connectionOf(in.client)
	in.eventually("another connection", func() error {
		if in.connectionOf(in.client) == first {
			return errors.New("it is the first one")
		}
		return nil
	})
}

// connectionOf sends a request, and returns the address of its connection.
func (in *ingress) connectionOf(client *http.Client) (address string) {
	in.Helper()
	trace := &httptrace.ClientTrace{GotConn: func(c httptrace.GotConnInfo) { address = c.Conn.LocalAddr().String() }}
	request, err := http.NewRequestWithContext(httptrace.WithClientTrace(in.Context(), trace), http.MethodGet,
		in.origin("a.example")+"/", nil)
	if err != nil {
		in.Fatal(err)
	}
	response, err := client.Do(request)
	if err != nil {
		in.Fatal(err)
	}
	read(in, response)
	return address
}

// TestMaxConcurrentStreams checks the limit that a new connection announces: the key sets it for HTTP/2, with and
// without TLS. It is fixed for HTTP/3.
func TestMaxConcurrentStreams(t *testing.T) {
	in := reading(t, `http2-max-concurrent-streams: "7"`)
	in.byEachVersion(t, func(t *testing.T, in *ingress) {
		conn := in.connect2()
		s, err := newStream2(conn.Conn, conn.Reader)
		if err != nil {
			t.Fatal(err)
		}
		frame, err := s.ReadFrame()
		if err != nil {
			t.Fatal(err)
		}
		settings, ok := frame.(*http2.SettingsFrame)
		if !ok {
			t.Fatalf("the first frame is %v", frame)
		}
		if most, ok := settings.Value(http2.SettingMaxConcurrentStreams); !ok || most != 7 {
			t.Errorf("it is told %d", most)
		}
	}, plain1, secure1, secure3) // HTTP/1 has no streams, and HTTP/3 is tested below.
	t.Run(secure3, func(t *testing.T) {
		conn, _ := in.speaking(t, secure3).dial3(nil)
		opened := 0
		for err := error(nil); err == nil && opened < 1000; opened++ {
			_, err = conn.OpenStream()
		}
		if most := opened - 1; most != 100 {
			t.Errorf("it may open %d streams", most)
		}
	})
}
