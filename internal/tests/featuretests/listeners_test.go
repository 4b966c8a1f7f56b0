package featuretests

import (
	"bufio"
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strconv"
	"strings"
	"testing"

	"github.com/k8singress/k8singress/internal/tests/fixture"
)

// documented is a process without a source, which serves documents.
type documented struct {
	*ingress
	// hosts and backends come from the document of another process with a folder.
	hosts, backends map[string]any
	// entered receives when slow.example has received a request.
	entered chan struct{}
}

// startDocumented serves the document of a folder. a.example leads to "one", and the other hosts to "two". slow.example
// waits until wait is closed.
func startDocumented(t *testing.T, wait chan struct{}, options ...string) *documented {
	t.Helper()
	one, onePort := backend(t, "one")
	two, twoPort := backend(t, "two")
	entered := make(chan struct{}, 1)
	slow, slowPort := endpointOf(t, func(w http.ResponseWriter, _ *http.Request) {
		entered <- struct{}{}
		<-wait
		_, _ = io.WriteString(w, "slow")
	})
	text := class + service("one", onePort, one) + service("two", twoPort, two) + service("slow", slowPort, slow) +
		rule("a", "a.example", "Prefix", "/", "one") + rule("slow", "slow.example", "Prefix", "/", "slow")
	for i, host := range []string{"own.example", "x.wild.example", "other.example"} {
		text += rule(fmt.Sprintf("own%d", i), host, "Prefix", "/", "two")
	}
	in := start(t, text)
	var whole struct {
		Apps struct {
			K8singress struct {
				Live struct{ Hosts, Backends map[string]any }
			}
		}
	}
	if err := json.Unmarshal(in.document(), &whole); err != nil {
		t.Fatal(err)
	}
	in.load("source none\n" + strings.Join(options, "\n"))
	d := &documented{in, whole.Apps.K8singress.Live.Hosts, whole.Apps.K8singress.Live.Backends, entered}
	d.serve(nil, nil)
	in.expect("a.example", "/", http.StatusOK, "one /")
	return d
}

// listener returns a listener of a group. An empty host name matches every host.
func listener(name, port, protocol, hostname string) map[string]any {
	number, err := strconv.Atoi(port)
	if err != nil {
		panic(err)
	}
	return map[string]any{"name": name, "port": number, "protocol": protocol, "hostname": hostname}
}

// group returns a listener group with some hosts of the folder.
func (d *documented) group(hosts []string, listeners ...map[string]any) map[string]any {
	some := map[string]any{}
	for _, host := range hosts {
		some[host] = d.hosts[host]
	}
	return map[string]any{"origin": "Gateway/default/gw", "hosts": some, "listeners": listeners}
}

// serve puts a document with a.example for the servers, the given groups, and ports.
func (d *documented) serve(groups, ports map[string]any) {
	d.Helper()
	live := map[string]any{
		"hosts": map[string]any{"a.example": d.hosts["a.example"]}, "backends": d.backends, "listener_groups": groups,
		"ports": ports,
	}
	text, err := json.Marshal(map[string]any{"apps": map[string]any{"k8singress": map[string]any{"live": live}}})
	if err != nil {
		d.Fatal(err)
	}
	if status, answer := d.put(text); status != http.StatusOK {
		d.Fatalf("PUT: %d %s", status, answer)
	}
}

// at returns a client for a port of 127.0.0.1. Its TLS handshakes use server as the server name.
func (d *documented) at(port, server, protocol string) *http.Client {
	transport := &http.Transport{
		TLSClientConfig: &tls.Config{ServerName: server, InsecureSkipVerify: true}, Protocols: new(http.Protocols),
		DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			return new(net.Dialer).DialContext(ctx, "tcp", "127.0.0.1:"+port)
		},
	}
	transport.Protocols.SetHTTP1(protocol == "HTTP/1.1")
	transport.Protocols.SetHTTP2(protocol == "HTTP/2.0")
	d.Cleanup(transport.CloseIdleConnections)
	return &http.Client{Timeout: deadline, Transport: transport}
}

// textOf sends a request and returns the status and the body of the response in one line, or "none" without a response.
func (d *documented) textOf(client *http.Client, scheme, host string) string {
	d.Helper()
	request, err := http.NewRequestWithContext(d.Context(), http.MethodGet, scheme+"://"+host+"/", nil)
	if err != nil {
		d.Fatal(err)
	}
	response, err := client.Do(request)
	if err != nil {
		return "none"
	}
	got := read(d, response)
	return strings.TrimSpace(fmt.Sprint(got.status, " ", got.body))
}

// TestListenersHaveHostsOfTheirOwn checks that a port of a listener group serves only the hosts of the group, and that
// the servers do not serve those hosts. If groups share a port, the host name of the listener selects the group.
func TestListenersHaveHostsOfTheirOwn(t *testing.T) {
	d := startDocumented(t, nil)
	plain, secure := fixture.Port(t), fixture.Port(t)
	d.serve(map[string]any{
		"a": d.group([]string{"own.example"}, listener("http", plain, "HTTP", ""),
			listener("https", secure, "HTTPS", "own.example")),
		"b": d.group([]string{"x.wild.example", "own.example"}, listener("http", plain, "HTTP", "*.wild.example"),
			listener("https", secure, "HTTPS", "*.wild.example")),
	}, nil)
	for _, c := range []struct{ port, protocol, server, host, want string }{
		{plain, "HTTP/1.1", "", "own.example", "200 two /"},
		{plain, "HTTP/1.1", "", "x.wild.example", "200 two /"},
		{plain, "HTTP/1.1", "", "y.wild.example", "404"},
		{plain, "HTTP/1.1", "", "a.example", "404"},
		{secure, "HTTP/1.1", "own.example", "own.example", "200 two /"},
		{secure, "HTTP/2.0", "own.example", "own.example", "200 two /"},
		{secure, "HTTP/2.0", "x.wild.example", "x.wild.example", "200 two /"},
		{secure, "HTTP/2.0", "own.example", "x.wild.example", "421"},
		{secure, "HTTP/1.1", "x.wild.example", "own.example", "421"},
		{secure, "HTTP/1.1", "own.example", "a.example", "421"},
		{secure, "HTTP/1.1", "a.example", "a.example", "none"},
	} {
		scheme := map[string]string{plain: "http", secure: "https"}[c.port]
		got := d.textOf(d.at(c.port, c.server, c.protocol), scheme, c.host)
		if first, _, _ := strings.Cut(got, "\n"); got != c.want &&
			(c.want != "421" || !strings.HasPrefix(first, "421")) {
			t.Errorf("%s of %s as %q by %s: %q, want %q", c.host, scheme, c.server, c.protocol, got, c.want)
		}
	}
	d.expect("own.example", "/", http.StatusNotFound, "")
	d.expect("a.example", "/", http.StatusOK, "one /")
	if got := d.textOf(d.at(port(t, d.https), "own.example", "HTTP/2.0"), "https", "own.example"); got != "404" {
		t.Errorf("the server for HTTPS answers %q", got)
	}
	// The document is returned unchanged.
	if text := string(d.document()); !strings.Contains(text,
		`"listener_groups":{"a":{"listeners":[{"name":"http","port":`+plain) {
		t.Errorf("the document is %s", text)
	}
}

func port(t testing.TB, address string) string {
	t.Helper()
	_, port, err := net.SplitHostPort(address)
	if err != nil {
		t.Fatal(err)
	}
	return port
}

// TestListenerCloses checks that a request in progress gets its response, that idle connections are closed, and
// that other ports are not affected.
func TestListenerCloses(t *testing.T) {
	for _, protocol := range []string{"HTTP", "HTTPS"} {
		t.Run(protocol, func(t *testing.T) {
			wait := make(chan struct{})
			d := startDocumented(t, wait)
			own := fixture.Port(t)
			d.serve(map[string]any{"a": d.group([]string{"own.example", "slow.example"},
				listener("l", own, protocol, ""))}, nil)
			stays, err := d.line(false)
			if err != nil {
				t.Fatal(err)
			}
			defer stays.Close()
			dial := func() net.Conn {
				conn := connect(t, "127.0.0.1:"+own)
				if protocol == "HTTPS" {
					conn = tls.Client(conn, &tls.Config{ServerName: "own.example", InsecureSkipVerify: true})
				}
				return conn
			}
			// The held connection has sent the start of a request.
			held := dial()
			fmt.Fprint(held, "GET / HTTP/1.1\r\nHost: own.example\r\n")
			busy, idle := dial(), dial()
			first, second := bufio.NewReader(busy), bufio.NewReader(idle)
			fmt.Fprint(busy, "GET / HTTP/1.1\r\nHost: slow.example\r\n\r\n")
			fmt.Fprint(idle, "GET / HTTP/1.1\r\nHost: own.example\r\n\r\n")
			if got := answerOn(t, second); got != "200 two /, the last one: false" {
				t.Errorf("before the end: %s", got)
			}
			two := d.at(own, "own.example", "HTTP/2.0")
			if protocol == "HTTPS" && d.textOf(two, "https", "own.example") != "200 two /" {
				t.Error("there is no HTTP/2")
			}
			fixture.Receive(t, "the request", d.entered)
			d.serve(nil, nil)
			if rest, err := io.ReadAll(second); err != nil || len(rest) > 0 {
				t.Errorf("an idle connection says %q, %v", rest, err)
			}
			d.eventually("no listener", func() error {
				if conn, err := net.DialTimeout("tcp", "127.0.0.1:"+own, deadline); err == nil {
					return errors.Join(errors.New("it accepts"), conn.Close())
				}
				return nil
			})
			fmt.Fprint(held, "\r\n")
			if got := answerOn(t, bufio.NewReader(held)); got != "200 two /, the last one: true" {
				t.Errorf("a request that came in while its port was closed: %s", got)
			}
			close(wait)
			if got := answerOn(t, first); got != "200 slow, the last one: true" {
				t.Errorf("the request under way: %s", got)
			}
			if err := stays.ask(); err != nil {
				t.Errorf("a connection of another port: %v", err)
			}
		})
	}
}

// answerOn reads a response, and returns it as text with whether it is the last one on its connection.
func answerOn(t *testing.T, r *bufio.Reader) string {
	t.Helper()
	response, err := http.ReadResponse(r, nil)
	if err != nil {
		t.Fatal(err)
	}
	got := read(t, response)
	return fmt.Sprintf("%d %s, the last one: %t", got.status, got.body, response.Close)
}

// TestListenerPortInUse checks that an object that requests an occupied port gets a warning, and that the port
// opens when it becomes free.
func TestListenerPortInUse(t *testing.T) {
	d := startDocumented(t, nil, "stream_bind 127.0.0.1")
	holder, err := net.Listen("tcp", fixture.Address(t))
	if err != nil {
		t.Fatal(err)
	}
	defer holder.Close()
	good, stream := fixture.Port(t), fixture.Port(t)
	ports := map[string]any{"tcp/" + stream: map[string]any{
		"origin": "ConfigMap/default/tcp", "backend": "default/one/80", "server": map[string]any{
			"listen": []string{"tcp/127.0.0.1:" + stream},
			"routes": []any{map[string]any{"handle": []any{map[string]any{"handler": "k8singress",
				"backend": "default/one/80"}}}},
		},
	}}
	// The listener starts second, so it finds the port in use.
	d.serve(nil, ports)
	d.overTCP(stream)
	held := port(t, holder.Addr().String())
	hosts := []string{"own.example"}
	d.serve(map[string]any{
		"a": d.group(hosts, listener("good", good, "HTTP", ""), listener("held", held, "HTTP", ""),
			listener("admin", port(t, d.admin), "HTTP", ""),
			listener("http", port(t, d.http), "HTTP", ""), listener("stream", stream, "HTTPS", ""),
			listener("udp", "53", "UDP", ""),
			listener("none", "0", "HTTP", "")),
		"b": d.group(hosts, listener("same", good, "HTTP", ""), listener("other", good, "HTTPS", "other.example")),
	}, ports)
	const left = "port tcp/%s of the listener %s is left out: "
	for _, want := range []string{
		fmt.Sprintf(left, held, "held") + "listening on 127.0.0.1:" + held +
			": another process, or another part of this process, already listens on this address; " +
			"the controller retries until the port is free. ss -ltnp lists the processes that listen on each port",
		fmt.Sprintf(left, port(t, d.admin), "admin") +
			"the admin API already uses this port: use another port for the listener or for the admin API",
		fmt.Sprintf(left, port(t, d.http), "http") +
			"the address is already used by the http server k8singress_http, which listens on " + d.http +
			", in the Caddy configuration; one of the two needs another port",
		fmt.Sprintf(left, stream, "stream") + "the address is already used by the port tcp/" + stream +
			" of ConfigMap/default/tcp; one of the two needs another port",
		fmt.Sprintf(left, "53", "udp") + `the protocol "UDP" is not supported: use HTTP or HTTPS`,
		fmt.Sprintf(left, "0", "none") + "the listener has no port",
		fmt.Sprintf(left, good, "same") +
			"the listener a/good already uses this port for the same host name: use another port or host name",
		fmt.Sprintf(left, good, "other") +
			"the listener a/good already uses this port with the protocol HTTP: use another port or the same protocol",
	} {
		d.eventually("the verdict", func() error {
			all := d.messages("Gateway/default/gw", "PortConflict")
			for _, got := range all {
				if got == want {
					return nil
				}
			}
			return fmt.Errorf("%q is not among %q", want, all)
		})
	}
	if got := d.textOf(d.at(good, "", "HTTP/1.1"), "http", "own.example"); got != "200 two /" {
		t.Errorf("the good port answers %q", got)
	}
	if err := holder.Close(); err != nil {
		t.Fatal(err)
	}
	d.opens(held)
	d.serve(map[string]any{"a": d.group(hosts, listener("stream", stream, "HTTP", ""))}, nil)
	d.opens(stream)
	d.eventually("no verdict", func() error {
		if all := d.messages("Gateway/default/gw", "PortConflict"); len(all) > 0 {
			return fmt.Errorf("there are %q", all)
		}
		return nil
	})
}

// opens waits until a port serves own.example.
func (d *documented) opens(port string) {
	d.Helper()
	d.eventually("port "+port, func() error {
		if got := d.textOf(d.at(port, "", "HTTP/1.1"), "http", "own.example"); got != "200 two /" {
			return fmt.Errorf("it answers %q", got)
		}
		return nil
	})
}

// TestListenersComeAndGoUnderLoad checks that opening and closing ports does not affect requests on others, and that
// the ports stay open when Caddy loads another configuration.
func TestListenersComeAndGoUnderLoad(t *testing.T) {
	d := startDocumented(t, nil)
	plain, secure := fixture.Port(t), fixture.Port(t)
	l := d.newLoad()
	l.keeps("HTTP/1.1, kept", false, 2)
	l.keeps("HTTPS with HTTP/1.1, kept", true, 2)
	l.twos("HTTP/2, kept", 2)
	l.renews("HTTP/1.1, new", false)
	groups := map[string]any{"a": d.group([]string{"own.example"}, listener("http", plain, "HTTP", ""),
		listener("https", secure, "HTTPS", ""))}
	for i := range 50 {
		d.serve(groups, nil)
		if i%10 == 0 {
			d.load("source none\n" + map[bool]string{true: "disable_catch_all"}[i%20 == 0])
		}
		for port, scheme := range map[string]string{plain: "http", secure: "https"} {
			if got := d.textOf(d.at(port, "own.example", "HTTP/1.1"), scheme, "own.example"); got != "200 two /" {
				t.Errorf("%s, opened for the %d. time, answers %q", scheme, i+1, got)
			}
		}
		d.serve(nil, nil)
		l.awaitEach()
	}
	l.ends()
}
