package examples_test

import (
	"crypto/tls"
	"net/http"
	"testing"
)

// TestClientCertificates checks the example that docs/client-certificates.md describes.
func TestClientCertificates(t *testing.T) {
	pair, err := tls.LoadX509KeyPair("client-certificates/alice.pem", "client-certificates/alice.pem")
	if err != nil {
		t.Fatal(err)
	}
	ports := copyWithFreePorts(t, "client-certificates")
	start(t, "client-certificates")
	alice := newClient(ports)
	alice.Transport.(*http.Transport).TLSClientConfig.Certificates = []tls.Certificate{pair}
	const url = "https://admin.localhost:8443/"
	await(t, alice, url, "admin: SUCCESS CN=alice,O=Shop\n")
	response, err := newClient(ports).Get(url)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusBadRequest {
		t.Errorf("without a certificate the answer is %s", response.Status)
	}
}
