package k8singress_test

import (
	"bufio"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/quic-go/quic-go"
	"github.com/quic-go/quic-go/http3"
)

// launchWith is like launch, with additional keys of the ConfigMap.
func launchWith(t *testing.T, keys, options string) *controller {
	t.Helper()
	c, o := newController(t), newOrigin(t)
	folder := c.manifests(o)
	c.write(filepath.Join(folder, "configmap.yaml"),
		"apiVersion: v1\nkind: ConfigMap\nmetadata: {name: controller}\ndata: {"+keys+"}\n")
	file := filepath.Join(t.TempDir(), "Caddyfile")
	c.write(file, c.caddyfile("manifests "+folder+"\nconfigmap default/controller\n"+options))
	c.run(file)
	return c
}

// dialFrom connects from a loopback address of this machine.
func dialFrom(ctx context.Context, from, address string) (net.Conn, error) {
	dialer := net.Dialer{LocalAddr: &net.TCPAddr{IP: net.ParseIP(from)}, Timeout: patience}
	return dialer.DialContext(ctx, "tcp", address)
}

// opens opens connections that send begin. They stay open until the end of the test unless the server closes them.
func (c *controller) opens(count int, from, address, begin string) {
	c.Helper()
	for range count {
		conn, err := dialFrom(c.Context(), from, address)
		if err != nil {
			c.Fatal(err)
		}
		c.Cleanup(func() { _ = conn.Close() })
		_, _ = io.WriteString(conn, begin) // The server may have closed the connection.
	}
}

// prompt is the maximum time in which a request must get a response while silent clients connect. It is less than the
// time for which these may stay silent.
const prompt = 5 * time.Second

// answers sends a request on a new connection, after the PROXY protocol header in header. It returns an error if there
// is no response.
func (c *controller) answers(address, header string) error {
	conn, err := net.DialTimeout("tcp", address, prompt)
	if err != nil {
		return err
	}
	defer conn.Close()
	if err := conn.SetDeadline(time.Now().Add(prompt)); err != nil {
		return err
	}
	if _, err := io.WriteString(conn, header); err != nil {
		return err
	}
	if address == c.https {
		conn = tls.Client(conn, &tls.Config{InsecureSkipVerify: true, ServerName: "h"})
	}
	path := "/"
	if address == c.health {
		path = "/healthz"
	}
	if _, err := fmt.Fprintf(conn, "GET %s HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n", path); err != nil {
		return err
	}
	response, err := http.ReadResponse(bufio.NewReader(conn), nil)
	if err != nil {
		return err
	}
	if response.StatusCode != http.StatusOK {
		err = fmt.Errorf("the answer is %s", response.Status)
	}
	return errors.Join(err, response.Body.Close())
}

// mustAnswer sends several requests, each on a new connection. All of them must get a response.
func (c *controller) mustAnswer(address, header string) {
	c.Helper()
	for i := range 10 {
		if err := c.answers(address, header); err != nil {
			c.Fatalf("request %d: %v", i, err)
		}
	}
}

// halfHead is the first part of a request head.
const halfHead = "GET / HTTP/1.1\r\nHo"

// TestSilentHandshakesAreClosed checks that a process with 400 file descriptors, which allow 87 connections, responds
// to each request while 300 connections to the TLS port are silent.
func TestSilentHandshakesAreClosed(t *testing.T) {
	t.Setenv(filesOfCaddy, "400")
	c := launch(t, newOrigin(t), "")
	for range 15 {
		c.opens(20, "127.0.0.1", c.https, "")
		c.mustAnswer(c.http, "")
		c.mustAnswer(c.https, "")
	}
}

// TestShareOfAnAddressAtThePorts checks that clients of other addresses get responses while one address has its maximum
// number of connections, none of which may be closed.
func TestShareOfAnAddressAtThePorts(t *testing.T) {
	t.Setenv(filesOfCaddy, "400")
	c := launch(t, newOrigin(t), "")
	c.opens(300, "127.0.1.1", c.http, halfHead)
	c.mustAnswer(c.http, "")
	c.mustAnswer(c.https, "")
}

// TestShareOfAnAddressBehindPROXY checks that connections of a load balancer are counted for the clients in its PROXY
// protocol headers, and that silent clients behind it are closed to make room. A connection without a valid header is
// counted and logged.
func TestShareOfAnAddressBehindPROXY(t *testing.T) {
	t.Setenv(filesOfCaddy, "400")
	c := launchWith(t, `use-proxy-protocol: "true", proxy-real-ip-cidr: 127.0.0.1/32`, "health_metrics")
	const hostile, honest = "PROXY TCP4 192.0.2.1 127.0.0.1 1111 80\r\n", "PROXY TCP4 192.0.2.2 127.0.0.1 1111 80\r\n"
	c.opens(100, "127.0.0.1", c.https, hostile)
	c.mustAnswer(c.https, honest)
	c.mustAnswer(c.http, hostile)
	c.opens(300, "127.0.0.1", c.http, hostile+halfHead)
	c.mustAnswer(c.http, honest)
	c.mustAnswer(c.https, honest)
	c.opens(1, "127.0.0.1", c.http, halfHead)
	c.becomes("counted", func() error { return c.measures("k8singress_proxy_header_failures_total", "1") })
	c.becomes("logged", func() error { return c.logs("\"closing a connection: its peer sent no valid PROXY", "1") })
}

// TestExemptProxiesHaveNoShare checks that the proxies in proxy-real-ip-cidr may have more connections than other
// addresses.
func TestExemptProxiesHaveNoShare(t *testing.T) {
	t.Setenv(filesOfCaddy, "400")
	c := launchWith(t, "proxy-real-ip-cidr: 127.0.1.1/32", "health_metrics")
	c.opens(80, "127.0.1.1", c.http, halfHead)
	c.becomes("connections", func() error { return c.measures("k8singress_client_connections", "80") })
	if err := c.measures("k8singress_client_connections_refused_by_address_total", "0"); err != nil {
		t.Error(err)
	}
}

// measures returns an error unless the process has a metric with the given value.
func (c *controller) measures(name, want string) error {
	request, err := http.NewRequestWithContext(c.Context(), http.MethodGet, "http://"+c.health+"/metrics", http.NoBody)
	if err != nil {
		return err
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	if err != nil {
		return err
	}
	found := regexp.MustCompile("(?m)^" + regexp.QuoteMeta(name) + " (.*)$").FindSubmatch(text)
	if found == nil || string(found[1]) != want {
		return fmt.Errorf("%s is %q, want %s", name, found, want)
	}
	return nil
}

// logs returns an error unless the log of the process contains a text the given number of times.
func (c *controller) logs(text, want string) error {
	log, err := os.ReadFile(c.log)
	if got := fmt.Sprint(strings.Count(string(log), text)); err == nil && got != want {
		err = fmt.Errorf("the log has %s times %s, want %s", got, text, want)
	}
	return err
}

// TestHealthPortIsBounded checks that with 800 file descriptors, 1,000 silent connections to the health port make no
// probe and no request fail.
func TestHealthPortIsBounded(t *testing.T) {
	t.Setenv(filesOfCaddy, "800")
	c := launch(t, newOrigin(t), "")
	for range 10 {
		c.opens(100, "127.0.0.1", c.health, "")
		c.mustAnswer(c.health, "")
		c.mustAnswer(c.http, "")
	}
}

// transports returns, for each version of HTTP, a transport with one connection from a given address, and a URL.
var transports = map[string]func(c *controller, from string) (transport http.RoundTripper, url string){
	"h2": func(c *controller, from string) (http.RoundTripper, string) {
		return c.transport(from, func(p *http.Protocols) { p.SetHTTP2(true) }), "https://" + c.https
	},
	"h2c": func(c *controller, from string) (http.RoundTripper, string) {
		return c.transport(from, func(p *http.Protocols) { p.SetUnencryptedHTTP2(true) }), "http://" + c.http
	},
	"h3": func(c *controller, from string) (http.RoundTripper, string) {
		socket, err := net.ListenUDP("udp", &net.UDPAddr{IP: net.ParseIP(from)})
		if err != nil {
			c.Fatal(err)
		}
		over := &quic.Transport{Conn: socket}
		c.Cleanup(func() { _ = errors.Join(over.Close(), socket.Close()) })
		transport := &http3.Transport{
			TLSClientConfig: &tls.Config{InsecureSkipVerify: true},
			Dial: func(ctx context.Context, address string, t *tls.Config, q *quic.Config) (*quic.Conn, error) {
				to, err := net.ResolveUDPAddr("udp", address)
				if err != nil {
					return nil, err
				}
				return over.Dial(ctx, to, t, q)
			},
		}
		c.Cleanup(func() { _ = transport.Close() })
		return transport, "https://" + c.https
	},
}

func (c *controller) transport(from string, speak func(*http.Protocols)) *http.Transport {
	transport := &http.Transport{
		TLSClientConfig: &tls.Config{InsecureSkipVerify: true}, Protocols: new(http.Protocols),
		DialContext: func(ctx context.Context, _, address string) (net.Conn, error) {
			return dialFrom(ctx, from, address)
		},
	}
	speak(transport.Protocols)
	c.Cleanup(transport.CloseIdleConnections)
	return transport
}

// mute is a request body that never arrives. It signals when its request has been sent.
type mute struct {
	ctx  context.Context //nolint:containedctx // It ends the body.
	sent chan<- struct{}
}

func (m mute) Read([]byte) (int, error) {
	select {
	case m.sent <- struct{}{}:
	default:
	}
	<-m.ctx.Done()
	return 0, m.ctx.Err()
}

// post sends a request whose body never arrives. It returns the status and the Retry-After header of the response.
func post(body mute, transport http.RoundTripper, url string, fields map[string]string) (string, error) {
	request, err := http.NewRequestWithContext(body.ctx, http.MethodPost, url+"/", body)
	if err != nil {
		return "", err
	}
	request.Host = "h"
	for name, value := range fields {
		request.Header.Set(name, value)
	}
	response, err := transport.RoundTrip(request) //nolint:bodyclose // It is closed in a goroutine.
	if err != nil {
		return "", err
	}
	go response.Body.Close() // It waits until the body of the request ends.
	return fmt.Sprint(response.StatusCode, " ", response.Header.Get("Retry-After")), nil
}

// TestSilentStreamsMakeRoom checks that connections with only silent requests are closed when new connections need
// their places.
func TestSilentStreamsMakeRoom(t *testing.T) {
	t.Setenv(filesOfCaddy, "400")
	all := map[string]*controller{}
	for name, transportOf := range transports {
		c := launchWith(t, "client-body-timeout: '3600'", "h2c")
		all[name] = c
		for range 100 {
			transport, url := transportOf(c, "127.0.0.1")
			ready := make(chan struct{}, 2)
			go func() {
				_, _ = post(mute{t.Context(), ready}, transport, url, nil) // The request may be rejected.
				ready <- struct{}{}
			}()
			<-ready
		}
	}
	for name, c := range all {
		for _, address := range []string{c.http, c.https} {
			c.becomes("a request beside silent streams of "+name, func() error { return c.answers(address, "") })
		}
	}
}

// TestBudgetOfOpenRequests checks that a process with a memory limit of 128 MiB has at most 512 open requests with 16
// KB heads whose bodies do not arrive. Further requests get 503 with Retry-After, are logged and counted, and leave
// room for other addresses.
func TestBudgetOfOpenRequests(t *testing.T) {
	for name, transportOf := range transports {
		t.Run(name, func(t *testing.T) {
			t.Setenv("GOMEMLIMIT", "128MiB")
			c := launchWith(t, "client-body-timeout: '3600'", "h2c\nhealth_metrics")
			c.fillsBudget(transportOf)
		})
	}
}

// largeHead is 16 KB of header fields.
var largeHead = map[string]string{"X-Large-1": strings.Repeat("x", 8<<10), "X-Large-2": strings.Repeat("x", 8<<10)}

// fillsBudget sends more requests than the budget allows.
func (c *controller) fillsBudget(transportOf func(c *controller, from string) (http.RoundTripper, string)) {
	c.Helper()
	ctx, cancel := context.WithCancel(c.Context())
	defer cancel()
	const connections, each, most = 7, 90, 16 << 20 / (32 << 10)
	var refused, others atomic.Int64
	ask := func(transport http.RoundTripper, url string) error {
		status, _, err := c.get(&http.Client{Transport: transport}, url)
		if err == nil && status != http.StatusOK {
			err = fmt.Errorf("a request gets %d", status)
		}
		return err
	}
	all, url := make([]http.RoundTripper, connections), ""
	for i := range all {
		// Later connections may have fewer concurrent requests.
		if all[i], url = transportOf(c, "127.0.0.1"); ask(all[i], url) != nil {
			c.Fatal("a request is not answered")
		}
	}
	for _, transport := range all {
		for range each {
			go func() {
				switch got, err := post(mute{ctx, nil}, transport, url, largeHead); {
				case err == nil && got == "503 1":
					refused.Add(1)
				case ctx.Err() == nil:
					others.Add(1)
				}
			}()
		}
	}
	c.becomes("refused", func() error {
		if n := refused.Load(); n < connections*each-most {
			return fmt.Errorf("%d requests get 503", n)
		}
		return nil
	})
	if err := errors.Join(ask(transportOf(c, "127.0.0.2")), c.answers(c.http, "")); err != nil {
		c.Error(err)
	}
	c.becomes("counted", func() error {
		n := fmt.Sprint(refused.Load())
		return errors.Join(c.measures("k8singress_request_bytes_refused_total", n),
			c.measures(`k8singress_http_requests_total{code="503"}`, n), c.logs(`"POST / HTTP/`, n))
	})
	cancel()
	c.becomes("room again", func() error { return ask(all[0], url) })
	c.becomes("nothing under way", func() error { return c.measures("k8singress_request_bytes", "0") })
	if n := others.Load(); n > 0 {
		c.Errorf("%d requests have another end than 503", n)
	}
}
