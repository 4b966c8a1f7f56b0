package featuretests

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"
)

// behindBalancer runs a process that takes documents, with one host "shop.example" whose endpoint responds with the
// client's address from its header.
func behindBalancer(t *testing.T) *balanced {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		fmt.Fprint(w, r.Header.Get("X-Forwarded-For"))
	}))
	t.Cleanup(server.Close)
	ip, port, err := net.SplitHostPort(server.Listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	in := start(t, class+service("one", port, ip)+rule("web", "shop.example", "Prefix", "/", "one"))
	b := &balanced{ingress: in}
	if err := json.Unmarshal(in.document(), &b.whole); err != nil {
		t.Fatal(err)
	}
	in.stop()
	in.load("source none")
	return b
}

// balanced is an ingress behind a load balancer.
type balanced struct {
	*ingress
	whole map[string]any
}

// global changes the global options, which are JSON.
func (b *balanced) global(options string) {
	b.Helper()
	app := b.whole["apps"].(map[string]any)["k8singress"].(map[string]any)
	app["live"].(map[string]any)["global"] = map[string]json.RawMessage{"clients": json.RawMessage(options)}
	document, err := json.Marshal(b.whole)
	if err != nil {
		b.Fatal(err)
	}
	if status, text := b.put(document); status != http.StatusOK {
		b.Fatalf("PUT: %d %s", status, text)
	}
}

// connection is a connection to the ingress on which bytes are sent unchanged.
type connection struct {
	net.Conn
	testing.TB
	reader *bufio.Reader
}

func (b *balanced) dial(header string) *connection {
	b.Helper()
	conn := connect(b, b.http)
	c := &connection{conn, b.TB, bufio.NewReader(conn)}
	c.send(header)
	return c
}

func (c *connection) send(text string) {
	c.Helper()
	if _, err := io.WriteString(c.Conn, text); err != nil {
		c.Fatal(err)
	}
}

const request = "GET / HTTP/1.1\r\nHost: shop.example\r\n\r\n"

// ask returns the status and the body of a response, or "closed". The server may send a 400 before it closes the
// connection.
func (c *connection) ask() string {
	c.Helper()
	// The server may have closed it already.
	_, _ = io.WriteString(c.Conn, request)
	response, err := http.ReadResponse(c.reader, nil)
	if err != nil {
		if errors.Is(err, os.ErrDeadlineExceeded) {
			c.Error("neither answered nor closed")
		}
		return "closed"
	}
	defer response.Body.Close()
	if response.StatusCode == http.StatusBadRequest && response.Close {
		return "closed"
	}
	body, err := io.ReadAll(response.Body)
	if err != nil {
		c.Fatal(err)
	}
	return fmt.Sprintf("%d %s", response.StatusCode, body)
}

// The header of version 2 is this signature, a version and command, a family and protocol, and a length.
const signature = "\r\n\r\n\x00\r\nQUIT\n"

const (
	tcp4 = "\xcb\x00\x71\x07" + "\xc6\x33\x64\x01" + "\x12\x34\x01\xbb"
	tcp6 = "\x20\x01\x0d\xb8\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x07" +
		"\x20\x01\x0d\xb8\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x01" + "\x12\x34\x01\xbb"
)

// proxyHeaders maps names to headers and to the response to a request after each header.
var proxyHeaders = map[string]struct{ header, want string }{
	"v1 TCP4":                  {"PROXY TCP4 203.0.113.7 198.51.100.1 4660 443\r\n", "200 203.0.113.7"},
	"v1 TCP6":                  {"PROXY TCP6 2001:db8::7 2001:db8::1 4660 443\r\n", "200 2001:db8::7"},
	"v1 UNKNOWN":               {"PROXY UNKNOWN\r\n", "200 127.0.0.1"},
	"v1 UNKNOWN, addresses":    {"PROXY UNKNOWN 203.0.113.7 198.51.100.1 4660 443\r\n", "200 127.0.0.1"},
	"v1 address that is none":  {"PROXY TCP4 203.0.113.700 198.51.100.1 4660 443\r\n", "closed"},
	"v1 without end":           {"PROXY TCP4 " + strings.Repeat("1", 200), "closed"},
	"v2 TCP4":                  {signature + "\x21\x11\x00\x0c" + tcp4, "200 203.0.113.7"},
	"v2 TCP4 and more":         {signature + "\x21\x11\x00\x10" + tcp4 + "\x04\x00\x01\x00", "200 203.0.113.7"},
	"v2 TCP6":                  {signature + "\x21\x21\x00\x24" + tcp6, "200 2001:db8::7"},
	"v2 LOCAL":                 {signature + "\x20\x00\x00\x00", "200 127.0.0.1"},
	"v2 LOCAL, address":        {signature + "\x20\x11\x00\x0c" + tcp4, "200 127.0.0.1"},
	"v2 PROXY, no family":      {signature + "\x21\x00\x00\x00", "200 127.0.0.1"},
	"v2 UDP":                   {signature + "\x21\x12\x00\x0c" + tcp4, "200 127.0.0.1"},
	"v2 Unix":                  {signature + "\x21\x31\x00\xd8" + strings.Repeat("/", 216), "200 127.0.0.1"},
	"v2 shorter than it says":  {signature + "\x21\x11\x00\x04" + "\xcb\x00\x71\x07", "closed"},
	"v2 of a version to come":  {signature + "\x31\x11\x00\x0c" + tcp4, "closed"},
	"none":                     {"", "closed"},
	"two":                      {"PROXY UNKNOWN\r\nPROXY TCP4 203.0.113.7 198.51.100.1 4660 443\r\n", "closed"},
	"v1 by another line break": {"PROXY TCP4 203.0.113.7 198.51.100.1 4660 443\n", "closed"},
}

func TestProxyProtocol(t *testing.T) {
	b := behindBalancer(t)
	for trust, options := range map[string]string{
		"everybody is trusted": `{"proxy_protocol":true}`,
		"the peer is trusted":  `{"proxy_protocol":true,"trusted":["192.0.2.0/24","127.0.0.0/8"]}`,
	} {
		b.global(options)
		for name, c := range proxyHeaders {
			if got := b.dial(c.header).ask(); got != c.want {
				t.Errorf("%s, %s: %q, want %q", trust, name, got, c.want)
			}
		}
	}
}

// TestProxyProtocolOfUntrustedPeers checks that an untrusted peer is treated as a client without a load balancer, and
// cannot set its address.
func TestProxyProtocolOfUntrustedPeers(t *testing.T) {
	b := behindBalancer(t)
	for _, trusted := range []string{`"192.0.2.0/24"`, `"192.0.2.1"`, `"no network"`} {
		b.global(`{"proxy_protocol":true,"trusted":[` + trusted + `]}`)
		if got := b.dial("").ask(); got != "200 127.0.0.1" {
			t.Errorf("trusting %s, a request without header: %q", trusted, got)
		}
		for name, c := range proxyHeaders {
			if name == "none" {
				continue
			}
			if got := b.dial(c.header).ask(); got != "closed" {
				t.Errorf("trusting %s, %s: %q", trusted, name, got)
			}
		}
	}
}

// TestProxyProtocolIsSlow checks that a header has to arrive soon, and that a client that delays it does not delay
// others.
func TestProxyProtocolIsSlow(t *testing.T) {
	b := behindBalancer(t)
	b.global(`{"proxy_protocol":true,"proxy_protocol_timeout":300000000}`)
	silent, half := b.dial(""), b.dial(signature)
	for range 10 {
		if got := b.dial("PROXY TCP4 203.0.113.7 198.51.100.1 4660 443\r\n").ask(); got != "200 203.0.113.7" {
			t.Fatalf("in the meantime: %q", got)
		}
	}
	for name, c := range map[string]*connection{"no header": silent, "half a header": half} {
		if n, err := io.Copy(io.Discard, c.reader); n > 0 || err != nil {
			t.Errorf("%s: %d bytes, %v", name, n, err)
		}
	}
}

// TestProxyProtocolIsSwitched checks that enabling and disabling the protocol needs no reload, and that open
// connections stay unchanged.
func TestProxyProtocolIsSwitched(t *testing.T) {
	const header = "PROXY TCP4 203.0.113.7 198.51.100.1 4660 443\r\n"
	b := behindBalancer(t)
	b.global(`{}`)
	plain := b.dial("")
	loads := b.reloads()
	expect := func(what, got, want string) {
		t.Helper()
		if got != want {
			t.Errorf("%s: %q, want %q", what, got, want)
		}
	}
	expect("without", plain.ask(), "200 127.0.0.1")
	b.global(`{"proxy_protocol":true}`)
	expect("switched on, on the connection from before", plain.ask(), "200 127.0.0.1")
	expect("switched on, without header", b.dial("").ask(), "closed")
	proxied := b.dial(header)
	expect("switched on, with header", proxied.ask(), "200 203.0.113.7")
	b.global(`{}`)
	expect("switched off, on the first connection", plain.ask(), "200 127.0.0.1")
	expect("switched off, on the connection with header", proxied.ask(), "200 203.0.113.7")
	expect("switched off, without header", b.dial("").ask(), "200 127.0.0.1")
	expect("switched off, with header", b.dial(header).ask(), "closed")
	if now := b.reloads(); now != loads {
		t.Errorf("%s loads, and %s before", now, loads)
	}
}

// TestProxyProtocolInFrontOfEachVersion checks the header before TLS and HTTP/2. It checks that a connection is closed
// if a required header is missing, if there is an unexpected header, or if its sender is not trusted. HTTP/3 is not
// tested, since UDP has no such header.
func TestProxyProtocolInFrontOfEachVersion(t *testing.T) {
	b := behindBalancer(t)
	const (
		on, off   = `{"proxy_protocol":true}`, `{}`
		strangers = `{"proxy_protocol":true,"trusted":["192.0.2.1"]}`
		unknown   = "PROXY UNKNOWN\r\n"
	)
	first, second := proxyHeaders["v1 TCP4"].header, proxyHeaders["v2 TCP4"].header
	for _, c := range []struct{ options, header, want string }{
		{on, first, "203.0.113.7"},
		{on, second, "203.0.113.7"},
		{on, unknown, "127.0.0.1"},
		{on, "", "closed"},
		{strangers, "", "127.0.0.1"},
		{strangers, first, "closed"},
		{strangers, second, "closed"},
		{strangers, unknown, "closed"},
		{off, "", "127.0.0.1"},
		{off, first, "closed"},
		{off, second, "closed"},
	} {
		b.global(c.options)
		b.byEachVersion(t, func(t *testing.T, in *ingress) {
			if got := in.askBehind(t, c.header); got != c.want {
				t.Errorf("with %s, behind %q: %s, want %s", c.options, c.header, got, c.want)
			}
		}, secure3)
	}
}

// askBehind sends a request after a PROXY header. It returns the response body, or "closed". The server may send a 400
// before it closes the connection.
func (in *ingress) askBehind(t *testing.T, header string) string {
	t.Helper()
	transport := in.client.Transport.(*http.Transport)
	dial := transport.DialContext
	transport.DialContext = func(ctx context.Context, network, address string) (net.Conn, error) {
		conn, err := dial(ctx, network, address)
		if err == nil {
			_, err = io.WriteString(conn, header)
		}
		return conn, err
	}
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, in.origin("shop.example"), nil)
	if err != nil {
		t.Fatal(err)
	}
	response, err := in.client.Do(request)
	if err != nil {
		if isTimeout(err) {
			t.Error("neither answered nor closed")
		}
		return "closed"
	}
	if got := read(t, response); got.status != http.StatusBadRequest {
		return got.body
	}
	return "closed"
}
