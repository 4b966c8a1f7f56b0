package featuretests

import (
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"errors"
	"fmt"
	"io"
	"net"
	"slices"
	"testing"
	"time"

	"github.com/k8singress/k8singress/internal/tests/fixture"
)

// TestServiceIdleTimeout checks that a Service ends idle connections of its port.
func TestServiceIdleTimeout(t *testing.T) {
	ip, backendPort := backend(t, "one")
	port := fixture.Port(t)
	in := start(t, class+exposed("one", backendPort, ip, "tcp-ports: "+port+":80", "stream-idle-timeout: 1s"),
		servicePorts)
	in.overTCP(port)
	begin := time.Now()
	if _, err := connect(t, "127.0.0.1:"+port).Read(make([]byte, 1)); !errors.Is(err, io.EOF) {
		t.Errorf("an idle connection ends with %v, want EOF", err)
	}
	took(t, "an idle connection", begin, time.Second)
}

// TestServiceMaxConnections checks that a Service limits the open connections of its port.
func TestServiceMaxConnections(t *testing.T) {
	ip, backendPort := backend(t, "one")
	port := fixture.Port(t)
	in := start(t, class+exposed("one", backendPort, ip, "tcp-ports: "+port+":80", "stream-max-connections: 1"),
		servicePorts)
	open := in.hold(port)
	if body, err := tryTCP(port); err == nil {
		t.Errorf("the second connection gets %q", body)
	}
	_ = open.Close()
	in.overTCP(port)
}

// TestServiceProxyProtocol checks that the port of a Service reads the client address from the header of a trusted
// proxy, sends it to the endpoint, and closes connections of other proxies.
func TestServiceProxyProtocol(t *testing.T) {
	const ready = "220 ready\r\n"
	endpoint := newReceiver(t, listenFor(t, plainly, func(conn net.Conn) { _, _ = io.WriteString(conn, ready) }))
	ip, endpointPort, err := net.SplitHostPort(endpoint.address)
	if err != nil {
		t.Fatal(err)
	}
	trusting := func(name, port, networks string) string {
		return exposed(name, endpointPort, ip, "tcp-ports: "+port+":80", "stream-accept-proxy: true",
			"stream-trusted-proxies: "+networks, "stream-proxy-protocol: v2")
	}
	trusted, other := fixture.Port(t), fixture.Port(t)
	in := start(t, class+trusting("one", trusted, "127.0.0.0/8")+trusting("two", other, "192.0.2.0/24"), servicePorts)
	for port, want := range map[string]string{trusted: ready, other: ""} {
		conn := in.accepted("127.0.0.1:" + port)
		_, _ = headerOf(2).WriteTo(conn)
		// Connections of other proxies are reset, because their header is not read.
		if got, err := io.ReadAll(conn); string(got) != want || want != "" && err != nil {
			t.Errorf("the client reads %q, want %q, error %v", got, want, err)
		}
	}
	if got := endpoint.seen(); !slices.Equal(got, []string{clientAddress}) {
		t.Errorf("the endpoint gets connections of %q, want only %s", got, clientAddress)
	}
}

// TestServiceWithIssuedCertificate checks that the port of a Service terminates TLS with a certificate that an issuer
// has issued for the host in stream-tls-host.
func TestServiceWithIssuedCertificate(t *testing.T) {
	ip, backendPort := backend(t, "one")
	port := fixture.Port(t)
	in := start(t, class+exposed("one", backendPort, ip, "tcp-ports: "+port+":80", "stream-tls-host: db.example"),
		servicePorts, "issuer internal")
	in.eventually("a certificate for the host", func() error {
		conn, err := tls.Dial("tcp", "127.0.0.1:"+port, &tls.Config{ServerName: "db.example", InsecureSkipVerify: true})
		if err != nil {
			return err
		}
		if err := conn.ConnectionState().PeerCertificates[0].VerifyHostname("db.example"); err != nil {
			return errors.Join(err, conn.Close())
		}
		answer, err := askOnce(conn, "/secured")
		if err == nil && answer != "one /secured" {
			err = fmt.Errorf("the port answers %q", answer)
		}
		return err
	})
}

// TestServiceOverTLS checks that the port of a Service connects to the endpoint with TLS, sends it a client certificate
// and a server name, and only forwards connections if the certificate of the endpoint is valid for this name.
func TestServiceOverTLS(t *testing.T) {
	ca := fixture.Authority(t, nil, "ca")
	clients := x509.NewCertPool()
	clients.AddCert(ca.Leaf)
	ip, endpointPort := over(t, &tls.Config{Certificates: []tls.Certificate{named(t, ca, "pg.internal").Pair()},
		ClientCAs: clients, ClientAuth: tls.RequireAndVerifyClientCert})
	secret := fixture.Identify(t, ca, &x509.Certificate{Subject: pkix.Name{CommonName: "controller"}}).Secret()
	secret["ca.crt"] = ca.PEM()
	expecting := func(name, port, host string) string {
		return exposed(name, endpointPort, ip, "tcp-ports: "+port+":80", "stream-backend-tls: true",
			"stream-backend-tls-secret: pg", "stream-backend-tls-verify: true", "stream-backend-tls-name: "+host)
	}
	good, bad := fixture.Port(t), fixture.Port(t)
	in := start(t, class+opaque("pg", secret)+expecting("one", good, "pg.internal")+
		expecting("two", bad, "other.internal"), servicePorts)
	for port, want := range map[string]string{good: `controller "pg.internal"`, bad: ""} {
		if got, err := askOnce(in.accepted("127.0.0.1:"+port), "/"); got != want || want != "" && err != nil {
			t.Errorf("the port answers %q, want %q, error %v", got, want, err)
		}
	}
}
