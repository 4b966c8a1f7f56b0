package examples_test

import (
	"crypto/tls"
	"testing"
)

// TestPassthrough checks that clients see the certificate of the backend on the host with the annotation, and the
// controller's certificate on the other host.
func TestPassthrough(t *testing.T) {
	ports := copyWithFreePorts(t, "passthrough")
	start(t, "passthrough")
	client := newClient(ports)
	await(t, client, "https://vault.localhost:8443/", "vault: vault.localhost\n")
	await(t, client, "https://web.localhost:8443/", "web: /\n")
	for host, rsa := range map[string]bool{"vault.localhost": true, "web.localhost": false} {
		conn, err := tls.Dial("tcp", "127.0.0.1:"+ports["8443"],
			&tls.Config{ServerName: host, InsecureSkipVerify: true})
		if err != nil {
			t.Fatal(err)
		}
		if got := conn.ConnectionState().PeerCertificates[0].PublicKeyAlgorithm.String() == "RSA"; got != rsa {
			t.Errorf("%s shows a certificate with an RSA key: %v", host, got)
		}
		conn.Close()
	}
}
