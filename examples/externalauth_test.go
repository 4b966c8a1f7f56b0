package examples_test

import (
	"net/http"
	"testing"
)

// TestExternalAuth checks the example that docs/migrate.md describes.
func TestExternalAuth(t *testing.T) {
	ports := copyWithFreePorts(t, "external-auth")
	start(t, "external-auth")
	client := newClient(ports)
	client.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	const url = "http://team.localhost:8080/"
	awaitStatus(t, client, url, http.StatusFound, "")
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, nil)
	if err != nil {
		t.Fatal(err)
	}
	request.Header.Set("Cookie", "session=demo")
	request.Header.Set("X-User", "mallory")
	response, err := client.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	body := make([]byte, 64)
	n, _ := response.Body.Read(body)
	if got := string(body[:n]); response.StatusCode != http.StatusOK || got != "team: alice\n" {
		t.Errorf("%s %q", response.Status, got)
	}
}
