package examples_test

import (
	"net/http"
	"path/filepath"
	"testing"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/caddyconfig"

	"github.com/k8singress/k8singress/internal/tests/fixture"
)

// serveFolder serves the manifests in a folder. A second call replaces the configuration of the first.
func serveFolder(folder, address string) error {
	config, _, err := caddyconfig.GetAdapter("caddyfile").Adapt([]byte(`{
		admin off
		k8singress {
			manifests `+folder+`
			http `+address+`
			https off
		}
	}`), map[string]any{"filename": "Caddyfile"})
	if err != nil {
		return err
	}
	return caddy.Load(config, true)
}

// TestEmbedding runs the function that docs/caddy.md prints.
func TestEmbedding(t *testing.T) {
	folder, port := t.TempDir(), fixture.Port(t)
	write(t, filepath.Join(folder, "moved.yaml"), `
apiVersion: networking.k8s.io/v1
kind: Ingress
metadata:
  name: moved
  annotations:
    nginx.ingress.kubernetes.io/permanent-redirect: https://new.example
spec:
  ingressClassName: nginx
  rules: [{host: moved.localhost, http: {paths: [{path: /, pathType: Prefix,
    backend: {service: {name: moved, port: {number: 80}}}}]}}]
`)
	if err := serveFolder(folder, "127.0.0.1:"+port); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := caddy.Stop(); err != nil {
			t.Error(err)
		}
	})
	client := newClient(map[string]string{"80": port})
	client.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	awaitStatus(t, client, "http://moved.localhost:80/", http.StatusMovedPermanently, "")
}
