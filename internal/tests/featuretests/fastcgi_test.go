package featuretests

import (
	"context"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"net/http/fcgi"
	"slices"
	"strings"
	"testing"

	"github.com/k8singress/k8singress/internal/tests/fixture"
)

// TestHangingFastCGI checks that no connection is kept after a timeout, or after the client disconnects.
func TestHangingFastCGI(t *testing.T) {
	listener := silent(t)
	ip, port := hostPort(t, listener.Addr())
	for _, buffering := range []string{"on", "off"} {
		t.Run("time limit, proxy-buffering "+buffering, func(t *testing.T) {
			in := inFrontOf(t, ip, port, "backend-protocol: FCGI", "proxy-read-timeout: 1", "proxy-next-upstream: off",
				"proxy-buffering: "+buffering)
			if got := in.send(http.MethodPost, "/x.php",
				strings.NewReader("body")); got.status != http.StatusGatewayTimeout {
				t.Errorf("%d %q", got.status, got.body)
			}
			await(t, "a connection", listener.begins)
			await(t, "the end of the connection", listener.ends)
		})
	}
	t.Run("client", func(t *testing.T) {
		in := inFrontOf(t, ip, port, "backend-protocol: FCGI")
		ctx, leave := context.WithCancel(t.Context())
		defer leave()
		go func() {
			<-listener.begins
			leave()
		}()
		if response, err := in.client.Do(in.request("/x.php").WithContext(ctx)); err == nil {
			response.Body.Close()
			t.Fatalf("got %d", response.StatusCode)
		}
		await(t, "the end of the connection", listener.ends)
	})
}

// TestFastCGIStopsInItsResponse checks that the timeout applies to silence, also after the response header.
func TestFastCGIStopsInItsResponse(t *testing.T) {
	ends := make(chan struct{})
	ip, port := application(t, func(conn net.Conn) {
		_, _ = io.WriteString(conn, "\x01\x06\x00\x01\x00\x06\x00\x00\r\nbody")
		_, _ = io.Copy(io.Discard, conn)
		close(ends)
	})
	in := inFrontOf(t, ip, port, "backend-protocol: FCGI", "proxy-read-timeout: 1")
	response, err := in.client.Do(in.request("/x.php"))
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	if body, err := io.ReadAll(response.Body); err == nil || string(body) != "body" {
		t.Errorf("got %q, %v", body, err)
	}
	await(t, "the end of the connection", ends)
}

// request returns a GET request for a.example.
func (in *ingress) request(path string) *http.Request {
	in.Helper()
	request, err := http.NewRequestWithContext(in.Context(), http.MethodGet, in.origin("a.example")+path, nil)
	if err != nil {
		in.Fatal(err)
	}
	return request
}

// application starts a FastCGI application that handles each connection with serve.
func application(t *testing.T, serve func(net.Conn)) (ip, port string) {
	t.Helper()
	listener := fixture.Listen(t)
	fixture.Serve(listener, serve)
	return hostPort(t, listener.Addr())
}

// TestFailingFastCGI checks that a failure results in 502, or in a retry at another endpoint.
func TestFailingFastCGI(t *testing.T) {
	good, port := fastCGI(t, func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "good") })
	for name, says := range map[string]string{
		"no FastCGI": "HTTP/1.1 200 OK\r\n\r\n",
		"nothing":    "",
		"overloaded": "\x01\x03\x00\x01\x00\x08\x00\x00\x00\x00\x00\x00\x02\x00\x00\x00",
		"no CGI": "\x01\x06\x00\x01\x00\x08\x00\x00<html>\r\n" +
			"\x01\x03\x00\x01\x00\x08\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00",
	} {
		t.Run(name, func(t *testing.T) {
			bad, badPort := application(t, func(conn net.Conn) {
				// Closing a connection with unread data would drop the response.
				_, _ = conn.Read(make([]byte, 64<<10))
				_, _ = io.WriteString(conn, says)
			})
			in := inFrontOf(t, bad, badPort, "backend-protocol: FCGI")
			if got := in.send(http.MethodGet, "/x.php", nil); got.status != http.StatusBadGateway {
				t.Errorf("alone: %d %q", got.status, got.body)
			}
			in.stop()
		})
	}
	in := inFrontOf(t, good, port, "backend-protocol: FCGI", "proxy-next-upstream: http_404")
	if got := in.send(http.MethodGet, "/x.php", nil); got.body != "good" {
		t.Errorf("%d %q", got.status, got.body)
	}
}

// TestFastCGINextEndpoint checks that proxy-next-upstream applies as it does for HTTP.
func TestFastCGINextEndpoint(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	_, port := hostPort(t, listener.Addr())
	other, err := net.Listen("tcp", "127.0.0.2:"+port)
	if err != nil {
		t.Skipf("there is no second address: %v", err)
	}
	asked := &log{}
	for i, l := range []net.Listener{listener, other} {
		t.Cleanup(func() { _ = l.Close() })
		go func() {
			_ = fcgi.Serve(l, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				body, _ := io.ReadAll(r.Body)
				asked.add("%d", i)
				if i == 0 {
					w.WriteHeader(http.StatusServiceUnavailable)
				}
				fmt.Fprintf(w, "%d %s", i, body)
			}))
		}()
	}
	in := start(t, class+service("one", port, "127.0.0.1", "127.0.0.2")+oneWith("backend-protocol: FCGI",
		"proxy-next-upstream: http_503"))
	for range 4 {
		if got := in.send(http.MethodPut, "/x.php", strings.NewReader("body")); got.status != http.StatusOK ||
			got.body != "1 body" {
			t.Errorf("%d %q", got.status, got.body)
		}
	}
	if !slices.Contains(asked.take(), "0") {
		t.Error("the endpoint that fails was never asked")
	}
}

// TestFastCGIResponses checks how the response header is translated, and that a large body is forwarded in both
// directions.
func TestFastCGIResponses(t *testing.T) {
	large := pattern(5 << 20)
	ip, port := fastCGI(t, func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/early.php":
			// Write the whole response, and then read the body.
			_, _ = w.Write(large)
			_, _ = io.Copy(io.Discard, r.Body)
		case "/empty.php":
			w.WriteHeader(http.StatusNoContent)
		default:
			w.Header()["Set-Cookie"] = []string{"a=1", "b=2"}
			_, _ = w.Write(large)
		}
	})
	for _, buffering := range []string{"on", "off"} {
		in := inFrontOf(t, ip, port, "backend-protocol: FCGI", "proxy-body-size: 0",
			"proxy-request-buffering: "+buffering,
			"proxy-buffering: "+buffering)
		got := in.send(http.MethodGet, "/x.php", nil)
		if hash([]byte(got.body)) != hash(large) || fmt.Sprint(got.header["Set-Cookie"]) != "[a=1 b=2]" ||
			got.header.Get("Status") != "" {
			t.Errorf("buffering %s: %d %v, %d bytes", buffering, got.status, got.header, len(got.body))
		}
		if got := in.send(http.MethodPost, "/early.php",
			strings.NewReader(string(large))); hash([]byte(got.body)) != hash(large) {
			t.Errorf("buffering %s, early: %d, %d bytes", buffering, got.status, len(got.body))
		}
		if got := in.send(http.MethodGet, "/empty.php", nil); got.status != http.StatusNoContent {
			t.Errorf("buffering %s, empty: %d", buffering, got.status)
		}
		in.stop()
	}
}

// environment starts an application that responds with its parameters.
func environment(t *testing.T) (ip, port string) {
	t.Helper()
	return application(t, func(conn net.Conn) {
		params, text := requested(conn), "\r\n"
		for _, name := range slices.Sorted(maps.Keys(params)) {
			text += name + "=" + params[name] + "\n"
		}
		_, _ = conn.Write([]byte{1, 6, 0, 1, byte(len(text) >> 8), byte(len(text)), 0, 0})
		_, _ = io.WriteString(conn, text)
		_, _ = io.WriteString(conn, "\x01\x03\x00\x01\x00\x08\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00")
	})
}

// TestFastCGIParams checks the parameters that an application gets: nginx's fastcgi_params, and the ones of a
// ConfigMap, which change without a reload.
func TestFastCGIParams(t *testing.T) {
	ip, port := environment(t)
	in := inFrontOf(t, ip, port, "backend-protocol: FCGI", "fastcgi-index: index.php",
		"fastcgi-params-configmap: params")
	in.expect("a.example", "/", http.StatusServiceUnavailable, "")
	if found := in.reasons("Ingress/default/a"); !slices.Contains(found, "ConfigMapNotFound") {
		t.Errorf("told is %v", found)
	}
	in.write("params.yaml", configMap("params",
		"SCRIPT_FILENAME: /var/www$fastcgi_script_name", "HTTP_X_OWN: own", `TEXT: "{env.HOME}"`))
	in.becomes("a.example", "/", http.StatusOK, "")
	got := in.send(http.MethodPost, "/app//../dir/x.php/info?a=b", strings.NewReader("body"),
		"Content-Type: text/x", "X-Own: client's", "X_Real_Ip: forged", "Cookie: c=d", "Proxy: evil")
	lines := strings.Split(got.body, "\n")
	_, clientPort, _ := net.SplitHostPort(in.http)
	for _, want := range []string{
		"QUERY_STRING=a=b", "REQUEST_METHOD=POST", "CONTENT_TYPE=text/x", "CONTENT_LENGTH=4", "SCRIPT_NAME=/dir/x.php",
		"REQUEST_URI=/app//../dir/x.php/info?a=b", "DOCUMENT_URI=/dir/x.php/info", "SERVER_PROTOCOL=HTTP/1.1",
		"REQUEST_SCHEME=http",
		"GATEWAY_INTERFACE=CGI/1.1", "REMOTE_ADDR=127.0.0.1", "SERVER_ADDR=127.0.0.1", "SERVER_PORT=" + clientPort,
		"SERVER_NAME=a.example",
		"REDIRECT_STATUS=200", "SCRIPT_FILENAME=/var/www/dir/x.php", "PATH_INFO=/info", "HTTP_HOST=a.example",
		"HTTP_X_OWN=own",
		"HTTP_COOKIE=c=d", "HTTP_X_REAL_IP=127.0.0.1", "TEXT={env.HOME}",
	} {
		if !slices.Contains(lines, want) {
			t.Errorf("%s is missing", want)
		}
	}
	for _, not := range []string{"HTTPS=", "HTTP_PROXY=", "client's", "forged"} {
		if strings.Contains(got.body, not) {
			t.Errorf("%s is there", not)
		}
	}
	if t.Failed() {
		t.Log(got.status, got.body)
	}
	in.write("params.yaml", configMap("params", "A: $nosuch"))
	in.becomes("a.example", "/", http.StatusServiceUnavailable, "")
	in.write("params.yaml", configMap("params", "SCRIPT_FILENAME: /other.php"))
	in.eventually("the other script", func() error {
		got := in.get("a.example", "/")
		lines := strings.Split(got.body, "\n")
		if !slices.Contains(lines, "SCRIPT_FILENAME=/other.php") || !slices.Contains(lines, "SCRIPT_NAME=/index.php") {
			return fmt.Errorf("%d %q", got.status, got.body)
		}
		return nil
	})
}

// TestFastCGIParamsOfAnotherNamespace checks that parameters of a ConfigMap in another namespace are rejected.
func TestFastCGIParamsOfAnotherNamespace(t *testing.T) {
	ip, port := environment(t)
	in := inFrontOf(t, ip, port, "backend-protocol: FCGI", "fastcgi-params-configmap: other/params")
	in.expect("a.example", "/", http.StatusServiceUnavailable, "")
}

// requested reads a request to its end, and returns its parameters.
func requested(conn net.Conn) map[string]string {
	var text []byte
	for header := make([]byte, 8); ; {
		if _, err := io.ReadFull(conn, header); err != nil {
			return nil
		}
		content := make([]byte, int(header[4])<<8|int(header[5]))
		if _, err := io.ReadFull(conn, content); err != nil {
			return nil
		}
		switch {
		case header[1] == 4:
			text = append(text, content...)
		case header[1] == 5 && len(content) == 0:
			return pairs(text)
		}
	}
}

func pairs(text []byte) map[string]string {
	all := map[string]string{}
	for pair := range slices.Chunk(fixture.FastCGIParams(text), 2) {
		all[pair[0]] = pair[1]
	}
	return all
}
