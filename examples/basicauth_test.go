package examples_test

import (
	"net/http"
	"testing"
)

// TestBasicAuth checks the example that docs/migrate.md describes.
func TestBasicAuth(t *testing.T) {
	ports := copyWithFreePorts(t, "basic-auth")
	start(t, "basic-auth")
	client := newClient(ports)
	await(t, client, "http://alice:demo@office.localhost:8080/desk", "office: /desk\n")
	for _, url := range []string{"http://office.localhost:8080/desk", "http://alice:wrong@office.localhost:8080/desk"} {
		awaitStatus(t, client, url, http.StatusUnauthorized, "401 Unauthorized\nk8singress, request ID example\n")
	}
}
