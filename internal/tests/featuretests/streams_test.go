package featuretests

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/k8singress/k8singress/internal/tests/fixture"
)

// overTCP sends a request to the HTTP backend behind a TCP port, and returns the response body. It waits for the port,
// because the port may still be in use by the previous engine, and the next one then retries.
func (in *ingress) overTCP(port string) (body string) {
	in.Helper()
	in.eventually("TCP port "+port, func() (err error) {
		body, err = tryTCP(port)
		return err
	})
	return body
}

// leadsTo waits until the backend behind a TCP port sends a response.
func (in *ingress) leadsTo(port, want string) {
	in.Helper()
	in.eventually("TCP port "+port, func() error {
		got, err := tryTCP(port)
		if err == nil && got != want {
			err = fmt.Errorf("it answers %q", got)
		}
		return err
	})
}

// closes waits until a TCP port no longer responds.
func (in *ingress) closes(port string) {
	in.Helper()
	in.eventually("the end of TCP port "+port, func() error {
		if _, err := tryTCP(port); err == nil {
			return errors.New("it still answers")
		}
		return nil
	})
}

func tryTCP(port string) (string, error) {
	conn, err := net.DialTimeout("tcp", "127.0.0.1:"+port, deadline)
	if err != nil {
		return "", err
	}
	return askOnce(conn, "/tcp")
}

// askOnce sends one HTTP request on a connection, and returns the response body.
func askOnce(conn net.Conn, path string) (string, error) {
	defer conn.Close()
	if err := conn.SetDeadline(time.Now().Add(deadline)); err != nil {
		return "", err
	}
	if _, err := fmt.Fprintf(conn, "GET %s HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n", path); err != nil {
		return "", err
	}
	response, err := http.ReadResponse(bufio.NewReader(conn), nil)
	if err != nil {
		return "", err
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	return string(body), err
}

func tcpServices(entries ...string) string { return configMap("tcp-services", entries...) }

func TestTCPPortComesAndGoes(t *testing.T) {
	ip, backendPort := backend(t, "one")
	port := fixture.Port(t)
	second := fixture.Port(t)
	in := start(t, class+service("one", backendPort, ip), "tcp_services default/tcp-services", "stream_bind 127.0.0.1")
	in.write("ports.yaml", tcpServices(fmt.Sprintf(`%q: "default/one:80"`, port)))
	in.overTCP(port)
	in.write("ports.yaml", tcpServices(fmt.Sprintf(`%q: "default/one:http"`, port),
		fmt.Sprintf(`%q: "default/one:80"`, second)))
	in.overTCP(second)
	if got := in.overTCP(port); got != "one /tcp" {
		t.Errorf("the first port answers %q", got)
	}
	in.write("ports.yaml", tcpServices(fmt.Sprintf(`%q: "default/one:80"`, second)))
	in.closes(port)
	if got := in.overTCP(second); got != "one /tcp" {
		t.Errorf("the second port answers %q", got)
	}
}

func TestTCPPortInUse(t *testing.T) {
	ip, backendPort := backend(t, "one")
	good := fixture.Port(t)
	holder, err := net.Listen("tcp", fixture.Address(t))
	if err != nil {
		t.Fatal(err)
	}
	_, held, _ := net.SplitHostPort(holder.Addr().String())
	in := newIngress(t)
	_, own, _ := net.SplitHostPort(in.http)
	in.write("manifests.yaml", class+service("one", backendPort, ip)+tcpServices(
		fmt.Sprintf(`%q: "default/one:80"`, good), fmt.Sprintf(`%q: "default/one:80"`, held),
		fmt.Sprintf(`%q: "default/one:80"`, own)))
	in.load("manifests " + in.folder + "\ntcp_services default/tcp-services\nstream_bind 127.0.0.1")
	in.awaitReady()
	if got := in.overTCP(good); got != "one /tcp" {
		t.Errorf("the free port answers %q", got)
	}
	in.expect("nobody.example", "/", http.StatusNotFound, "")
	if got := in.reasons("ConfigMap/default/tcp-services"); len(got) != 2 || !slices.Contains(got, "PortConflict") {
		t.Errorf("reasons are %v", got)
	}
	if got := in.messages("ConfigMap/default/tcp-services", "PortConflict"); !slices.ContainsFunc(got,
		func(message string) bool {
			return strings.HasPrefix(message, "port tcp/"+held+" is left out: ") &&
				strings.Contains(message, "ss -ltnp")
		}) {
		t.Errorf("it says %q", got)
	}
	if err := holder.Close(); err != nil {
		t.Fatal(err)
	}
	in.overTCP(held)
}

// TestReloadWithASiteOnATCPPort checks that a site in a new configuration takes its port from a TCP stream, that the
// object gets a warning, and that the port returns when the site is removed.
func TestReloadWithASiteOnATCPPort(t *testing.T) {
	ip, backendPort := backend(t, "one")
	port := fixture.Port(t)
	const options = "tcp_services default/tcp-services\nstream_bind 127.0.0.1"
	in := start(t, class+service("one", backendPort, ip)+tcpServices(fmt.Sprintf(`%q: "default/one:80"`, port)),
		options)
	if got := in.overTCP(port); got != "one /tcp" {
		t.Fatalf("the port answers %q", got)
	}
	block := fmt.Sprintf("manifests %s\n%s", in.folder, options)
	in.loadCaddyfile(
		fmt.Sprintf("{\nadmin %s\nk8singress {\nhttp %s\nhttps %s\n%s\n}\n}\nhttp://:%s {\nrespond site\n}\n",
			in.admin, in.http, in.https, block, port))
	in.eventually("a word on the port", func() error {
		if got := in.reasons("ConfigMap/default/tcp-services"); !slices.Equal(got, []string{"PortConflict"}) {
			return fmt.Errorf("reasons are %v", got)
		}
		return nil
	})
	for range 20 {
		if got := in.overTCP(port); got != "site" {
			t.Fatalf("the port of the site answers %q", got)
		}
	}
	in.load(block)
	in.leadsTo(port, "one /tcp")
}
