package examples_test

import (
	"errors"
	"fmt"
	"net/http"
	"testing"

	"github.com/k8singress/k8singress/internal/tests/fixture"
)

// The responses of the example's two backends.
const (
	asItIs      = "shop: as it is\n"
	nextVersion = "shop: the next version\n"
)

// TestCanary checks the example that docs/migrate.md describes.
func TestCanary(t *testing.T) {
	ports := copyWithFreePorts(t, "canary")
	start(t, "canary")
	client := newClient(ports)
	const url = "http://shop.localhost:8080/"
	awaitAsked := func(asked, want string) {
		t.Helper()
		fixture.Eventually(t, "X-Canary: "+asked, func() error {
			request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, nil)
			if err != nil {
				return err
			}
			request.Header.Set("X-Canary", asked)
			status, body, err := ask(client, request)
			if err == nil && (status != http.StatusOK || body != want) {
				err = fmt.Errorf("the answer is %d %q", status, body)
			}
			return err
		})
	}
	awaitAsked("always", nextVersion)
	awaitAsked("never", asItIs)
	of := func(n int) (canary int) {
		t.Helper()
		for range n {
			switch status, body, err := get(t.Context(), client, url); {
			case err != nil || status != http.StatusOK:
				t.Fatalf("%d, error %v", status, err)
			case body == nextVersion:
				canary++
			}
		}
		return canary
	}
	if n := of(100); n < 15 || n > 25 {
		t.Errorf("%d of 100 requests get the canary, want 20", n)
	}
	const manifest = "examples/canary/manifests/new.yaml"
	replaceInFile(t, manifest, `canary-weight: "20"`, `canary-weight: "100"`)
	await(t, client, url, nextVersion)
	replaceInFile(t, manifest, `canary-weight: "100"`, `canary-weight: "0"`)
	fixture.Eventually(t, "a canary of weight 0", func() error {
		if of(20) > 0 {
			return errors.New("requests go to it")
		}
		return nil
	})
	awaitAsked("always", nextVersion)
}
