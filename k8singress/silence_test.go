package k8singress_test

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"testing"
	"time"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/modules/caddyhttp"

	"github.com/k8singress/k8singress/internal/tests/fixture"
)

func init() { caddy.RegisterModule(new(listening)) }

// listening is a handler that echoes the request body after it has read all of it.
type listening struct{}

func (*listening) CaddyModule() caddy.ModuleInfo {
	return caddy.ModuleInfo{ID: "http.handlers.k8singress_test_listening",
		New: func() caddy.Module { return new(listening) }}
}

func (*listening) ServeHTTP(w http.ResponseWriter, r *http.Request, _ caddyhttp.Handler) error {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return caddyhttp.Error(http.StatusRequestTimeout, err)
	}
	_, err = w.Write(body)
	return err
}

// TestSilenceInABody checks that a request body may not stall, whatever its content type is. The content type of gRPC
// is only a claim of the client; only the route decides whether requests are streams.
func TestSilenceInABody(t *testing.T) {
	address := fixture.Address(t)
	p := start(t, socket(t), fmt.Sprintf(`{
		"http": {"servers": {"s": {"listen": [%q], "automatic_https": {"disable": true}, "read_idle_timeout": "300ms",
			"routes": [{"handle": [{"handler": "k8singress"}]}]
		}}},
		"k8singress": {"http": [], "https": [], "admin": "off", "live": {"hosts": {"h": {"routes": [
			{"type": "prefix", "path": "/", "chain": [{"handle": [{"handler": "k8singress_test_listening"}]}]}
		]}}}}
	}`, address))
	p.awaitReady()
	for _, kind := range []string{"application/grpc", "application/grpc+proto", "application/connect+json",
		"application/json"} {
		conn, err := net.DialTimeout("tcp", address, patience)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = conn.Close() })
		if err := conn.SetDeadline(time.Now().Add(patience)); err != nil {
			t.Fatal(err)
		}
		fmt.Fprintf(conn,
			"POST / HTTP/1.1\r\nHost: h\r\nContent-Type: %s\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nhi\r\n", kind)
		response, err := http.ReadResponse(bufio.NewReader(conn), nil)
		if err != nil {
			t.Fatalf("%s: %v", kind, err)
		}
		_ = response.Body.Close()
		if response.StatusCode != http.StatusRequestTimeout {
			t.Errorf("a body with the type %s may pause for ever: %d", kind, response.StatusCode)
		}
	}
}
