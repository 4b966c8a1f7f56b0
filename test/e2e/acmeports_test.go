package e2e

import (
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// TestTCPPortsWithIssuedCertificates opens ports with an annotation of a Service that requests a certificate for a
// host. It checks that the ports open without a reload, use a certificate of the authority, and send decrypted data to
// the endpoint. An Ingress with the same host shares the certificate.
func TestTCPPortsWithIssuedCertificates(t *testing.T) {
	r := newReplicas(t, 1, "service_tcp_ports 9211-9212", "stream_bind 127.0.0.1")
	r.deploy("db", 1)
	r.awaitEndpoints("db", 1, 0)
	host := r.host("db")
	r.annotate("db", map[string]string{
		"k8singress.io/tcp-ports": "9211:stream, 9212:http", "k8singress.io/stream-tls-host": host,
	})
	r.await("TLS at a port that echoes", func() error {
		return r.overTLS("9211", host, func(conn net.Conn) error {
			return exchange(conn,
				[]byte("to the endpoint\n"), deadline)
		})
	})
	r.answersSecurely("9212", host, "db-")
	// Clients without TLS, or with another server name, get no connection.
	if err := echoOnce(t.Context(), "tcp", "9211"); err == nil {
		t.Error("plain text is passed on")
	}
	if err := r.overTLS("9211", r.host("other"), func(net.Conn) error { return nil }); !errors.As(err,
		new(*tls.CertificateVerificationError)) {
		t.Errorf("another name: %v", err)
	}
	r.checkOrders([]string{host}, 0)

	// The ports keep working while an Ingress owns the host.
	r.ingress("db", "db", withTLS(""))
	r.answersSecurely("8443", host, "db-")
	r.answersSecurely("9212", host, "db-")
	r.checkOrders([]string{host}, 0)
	r.checkNoReload(r.all[0])
}

// annotate sets annotations of a Service.
func (c *cluster) annotate(service string, annotations map[string]string) {
	c.Helper()
	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{"annotations": annotations}})
	c.must(err)
	_, err = c.CoreV1().Services(c.namespace).Patch(c.Context(), service, types.MergePatchType, patch,
		metav1.PatchOptions{})
	c.must(err)
}

// overTLS connects to a TCP port of this machine, verifies that its certificate comes from the authority, and calls
// talk.
func (r *replicas) overTLS(port, host string, talk func(net.Conn) error) error {
	dialer := &net.Dialer{Timeout: deadline}
	conn, err := tls.DialWithDialer(dialer, "tcp", "127.0.0.1:"+port, &tls.Config{ServerName: host, RootCAs: r.roots})
	if err != nil {
		return err
	}
	defer conn.Close()
	return talk(conn)
}

// answersSecurely waits until a pod with a name prefix responds over HTTPS on a port of this machine.
func (r *replicas) answersSecurely(port, host, prefix string) {
	r.Helper()
	issuer, err := r.authority.Issuer(r.Context())
	r.must(err)
	r.await("HTTPS at port "+port, func() error {
		reply, err := once(r.Context(), "127.0.0.1:"+port, "https://"+host+"/", keyPair{certificate: issuer})
		if err == nil && !strings.HasPrefix(reply.pod, prefix) {
			return fmt.Errorf("answered by pod %q", reply.pod)
		}
		return err
	})
}
