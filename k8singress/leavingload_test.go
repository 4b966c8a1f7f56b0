package k8singress_test

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/caddyserver/caddy/v2/caddyconfig"
	"github.com/quic-go/quic-go"
	"github.com/quic-go/quic-go/http3"

	"github.com/k8singress/k8singress/internal/tests/fixture"
)

// launchDocument runs Caddy with a document: a host "h" on the ports of the options and on two more ports of a listener
// group, one of them with TLS. It returns the addresses of the two ports.
func launchDocument(t *testing.T, o *origin, options string) (c *controller, plain, secure string) {
	t.Helper()
	c = newController(t)
	config, _, err := caddyconfig.GetAdapter("caddyfile").Adapt([]byte(c.caddyfile("source none\n"+options)),
		map[string]any{})
	if err != nil {
		t.Fatal(err)
	}
	var whole map[string]any
	if err := json.Unmarshal(config, &whole); err != nil {
		t.Fatal(err)
	}
	plain, secure = fixture.Port(t), fixture.Port(t)
	hosts := `{"h": {"routes": [{"type": "prefix", "path": "/", "backend": "o", "chain": [{"handle": [{
		"handler": "k8singress_proxy", "connect_timeout": 5000000000,
		"read_timeout": 600000000000, "write_timeout": 600000000000,
		"max_body": 1048576, "retry_on": ["error"], "tries": 3}]}]}]}}`
	live := fmt.Sprintf(
		`{"hosts": %s, "backends": {"o": {"endpoints": [%q]}}, "listener_groups": {"g": {"origin": "Gateway/default/g",
		"hosts": %s, "listeners": [{"name": "plain", "port": %s, "protocol": "HTTP"},
		{"name": "secure", "port": %s, "protocol": "HTTPS"}]}}}`,
		hosts, o.Listener.Addr(), hosts, plain, secure)
	whole["apps"].(map[string]any)["k8singress"].(map[string]any)["live"] = json.RawMessage(live)
	text, err := json.Marshal(whole)
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "caddy.json")
	c.write(file, string(text))
	c.run(file)
	plain, secure = net.JoinHostPort("127.0.0.1", plain), net.JoinHostPort("127.0.0.1", secure)
	// A ready process has opened these ports.
	for _, address := range []string{plain, secure} {
		conn, err := net.DialTimeout("tcp", address, patience)
		if err != nil {
			t.Fatal(err)
		}
		conn.Close()
	}
	return c, plain, secure
}

// errNoListener means that a connection could not be established.
var errNoListener = errors.New("nobody listens")

// firstOrSecond returns a transport for HTTP/1.1, or for HTTP/2 over TLS.
func firstOrSecond() *http.Transport {
	return &http.Transport{
		TLSClientConfig: &tls.Config{InsecureSkipVerify: true}, ForceAttemptHTTP2: true,
		DialContext: func(ctx context.Context, network, address string) (net.Conn, error) {
			conn, err := new(net.Dialer).DialContext(ctx, network, address)
			if err != nil {
				err = fmt.Errorf("%w: %w", errNoListener, err)
			}
			return conn, err
		},
	}
}

// third returns a transport for HTTP/3.
func third() *http3.Transport {
	return &http3.Transport{
		TLSClientConfig: &tls.Config{InsecureSkipVerify: true},
		Dial: func(ctx context.Context, address string, config *tls.Config, quicConfig *quic.Config,
		) (*quic.Conn, error) {
			// With QUIC, a missing socket is noticed only by a timeout.
			quicConfig.HandshakeIdleTimeout = 2 * time.Second
			conn, err := quic.DialAddrEarly(ctx, address, config, quicConfig)
			if err != nil {
				err = fmt.Errorf("%w: %w", errNoListener, err)
			}
			return conn, err
		},
	}
}

// crowd sends requests without a pause until nothing listens any more.
type crowd struct {
	*controller
	// asking waits for all clients, and first waits for the first response of each.
	asking, first sync.WaitGroup
	// exiting means that the process was told to exit. answered is the number of all responses. after is the number of
	// responses to requests that were sent after the signal.
	exiting         atomic.Bool
	answered, after atomic.Int64
}

// repeats starts a client that requests a URL again and again. If fresh is true, each request uses a new connection.
func (c *crowd) repeats(url string, fresh bool, transport func() http.RoundTripper) {
	c.first.Add(1)
	c.asking.Go(func() {
		answered := sync.OnceFunc(c.first.Done)
		defer answered()
		client := &http.Client{Transport: transport()}
		for {
			exiting := c.exiting.Load()
			status, _, err := c.get(client, url)
			switch {
			case errors.Is(err, errNoListener) && c.exiting.Load():
				return
			case errors.Is(err, errNoListener) && isTimeout(err):
				continue // On a busy machine, a QUIC handshake may last too long.
			case err != nil && !errors.Is(err, errClosing) || status != http.StatusOK:
				c.Errorf("%s, while the process ends %t: %d %v", url, c.exiting.Load(), status, err)
				return
			}
			c.answered.Add(1)
			if exiting {
				c.after.Add(1)
			}
			answered()
			if fresh {
				closeConnections(client.Transport)
				client.Transport = transport()
			}
		}
	})
}

// isTimeout reports whether a QUIC handshake lasted too long. The errors of net/http that wrap it do not report this.
func isTimeout(err error) bool {
	var idle *quic.IdleTimeoutError
	var handshake *quic.HandshakeTimeoutError
	return errors.As(err, &idle) || errors.As(err, &handshake)
}

func closeConnections(transport http.RoundTripper) {
	if t, ok := transport.(io.Closer); ok {
		_ = t.Close()
		return
	}
	transport.(*http.Transport).CloseIdleConnections()
}

// TestEndUnderLoad checks that SIGTERM loses no request of clients that send requests continuously. Requests take two
// seconds and use every version of HTTP, the ports of the options and of listener groups, and both kept and new
// connections.
func TestEndUnderLoad(t *testing.T) {
	const takes = 2 * time.Second
	o := &origin{Server: httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		select {
		case <-time.After(takes):
			_, _ = io.WriteString(w, "at last")
		case <-r.Context().Done():
		}
	}))}
	t.Cleanup(o.Close)
	for _, delay := range []string{"0s", "3s"} {
		t.Run("shutdown_delay "+delay, func(t *testing.T) {
			t.Parallel()
			c, plain, secure := launchDocument(t, o, "shutdown_delay "+delay+"\nshutdown_timeout 10m")
			crowd := &crowd{controller: c}
			for i := range 2 * underway {
				tcp := func() http.RoundTripper { return firstOrSecond() }
				for _, url := range []string{"http://" + c.http, "https://" + c.https, "http://" + plain,
					"https://" + secure} {
					crowd.repeats(url+"/"+strconv.Itoa(i), i%2 == 0, tcp)
				}
				crowd.repeats("https://"+c.https+"/3", i%2 == 0, func() http.RoundTripper { return third() })
			}
			crowd.first.Wait()
			crowd.exiting.Store(true)
			c.terminate()
			crowd.asking.Wait()
			c.endsWithout()
			t.Logf("%d requests were answered, %d of them after the signal", crowd.answered.Load(), crowd.after.Load())
		})
	}
}

// TestEndOfTheGracePeriodOverHTTP3 checks that HTTP/3 clients are notified at the end of the grace period. With QUIC,
// the kernel does not notify them.
func TestEndOfTheGracePeriodOverHTTP3(t *testing.T) {
	o := newOrigin(t)
	c := launch(t, o, "shutdown_timeout 1s")
	failed := make(chan error, 1)
	transport := third()
	t.Cleanup(func() { transport.Close() })
	go func() {
		_, _, err := c.get(&http.Client{Transport: transport}, "https://"+c.https+"/slow")
		failed <- err
	}()
	fixture.Receive(t, "the request at the backend", o.asked)
	defer close(o.release)
	c.terminate()
	err := fixture.Receive(t, "the end of the request", failed)
	var said *http3.Error
	if !errors.As(err, &said) || !said.Remote {
		t.Errorf("the request ends with %v", err)
	}
	c.ends()
}
