package examples_test

import (
	"net/http"
	"testing"
)

// TestErrorPages checks the example that docs/error-pages.md describes.
func TestErrorPages(t *testing.T) {
	ports := copyWithFreePorts(t, "error-pages")
	start(t, "error-pages")
	client := newClient(ports)
	await(t, client, "http://shop.localhost:8080/", "shop\n")
	awaitStatus(t, client, "http://shop.localhost:8080/missing", http.StatusNotFound,
		"Sorry, /missing is an error 404.\n")
	awaitStatus(t, client, "http://closed.localhost:8080/", http.StatusServiceUnavailable,
		"Sorry, / is an error 503.\n")
	awaitStatus(t, client, "http://localhost:8080/", http.StatusNotFound, "Sorry, there is nothing at localhost.\n")
}
