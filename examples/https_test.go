package examples_test

import (
	"encoding/json"
	"testing"

	"github.com/caddyserver/caddy/v2/caddyconfig"
	"github.com/google/go-cmp/cmp"

	"github.com/k8singress/k8singress/internal/control/engine"
	"github.com/k8singress/k8singress/internal/model/settings"
)

// TestHTTPS checks that each case of docs/https.md does what its manifest says: where the certificate comes from, and
// which warnings the owner of the Ingress gets.
func TestHTTPS(t *testing.T) {
	result, err := engine.RunOffline("https/manifests", optionsOf(t, "https/Caddyfile"))
	if err != nil {
		t.Fatal(err)
	}
	sources := map[string]string{}
	for host, c := range result.Document.Certificates {
		sources[host] = c.Secret.String()
		if c.Automated {
			sources[host] = "issuer"
		}
	}
	want := map[string]string{
		"acme.localhost": "issuer", "*.wild.localhost": "issuer",
		"secret.localhost": "default/secret-tls", "managed.localhost": "default/managed-tls",
	}
	if diff := cmp.Diff(want, sources); diff != "" {
		t.Errorf("certificates (-want +got):\n%s", diff)
	}
	told := map[string][]string{}
	for _, v := range result.Report.Verdicts {
		for _, p := range v.Problems {
			told[v.Object.Name] = append(told[v.Object.Name], string(p.Reason))
		}
	}
	if diff := cmp.Diff(map[string][]string{"cert-manager": {"SecretNotFound"}}, told); diff != "" {
		t.Errorf("problems (-want +got):\n%s", diff)
	}
}

func optionsOf(t *testing.T, file string) settings.Config {
	t.Helper()
	adapted, _, err := caddyconfig.GetAdapter("caddyfile").Adapt([]byte(read(t, file)),
		map[string]any{"filename": file})
	if err != nil {
		t.Fatal(err)
	}
	var config struct {
		Apps struct {
			K8singress settings.Config `json:"k8singress"`
		} `json:"apps"`
	}
	if err := json.Unmarshal(adapted, &config); err != nil {
		t.Fatal(err)
	}
	return config.Apps.K8singress.WithDefaults()
}

// TestHTTPSResponses checks the responses that a user of the example sees.
func TestHTTPSResponses(t *testing.T) {
	ports := copyWithFreePorts(t, "https")
	start(t, "https")
	client := newClient(ports)
	for _, host := range []string{"acme.localhost", "any.wild.localhost", "secret.localhost", "managed.localhost"} {
		await(t, client, "https://"+host+":8443/", "web: /\n")
	}
	const challenge = "/.well-known/acme-challenge/token"
	await(t, client, "http://managed.localhost:8080"+challenge, "web: "+challenge+"\n")
}
