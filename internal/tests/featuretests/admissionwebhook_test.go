package featuretests

import (
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	admissionv1 "k8s.io/api/admission/v1"

	"github.com/k8singress/k8singress/internal/tests/fixture"
)

// reviewer sends reviews to the webhook like the API server.
type reviewer struct {
	client  *http.Client
	address string
}

// review returns the decision about a new Ingress with one path and one annotation.
func (r *reviewer) review(host, annotation string) (*admissionv1.AdmissionResponse, error) {
	body := fmt.Sprintf(`{"apiVersion":"admission.k8s.io/v1","kind":"AdmissionReview","request":{"uid":"u-1",`+
		`"kind":{"group":"networking.k8s.io","version":"v1","kind":"Ingress"},"operation":"CREATE",`+
		`"namespace":"default","name":"new","object":{"apiVersion":"networking.k8s.io/v1","kind":"Ingress",`+
		`"metadata":{"namespace":"default","name":"new","annotations":{%s}},`+
		`"spec":{"ingressClassName":"nginx","rules":[{"host":%q,"http":{"paths":[{"path":"/",`+
		`"pathType":"Prefix","backend":{"service":{"name":"one","port":{"number":80}}}}]}}]}}}}`, annotation, host)
	response, err := r.client.Post("https://"+r.address+"/networking/v1/ingresses", "application/json",
		strings.NewReader(body))
	if err != nil {
		return nil, err
	}
	defer response.Body.Close()
	var answer admissionv1.AdmissionReview
	if err := json.NewDecoder(response.Body).Decode(&answer); err != nil || answer.Response == nil {
		return nil, fmt.Errorf("%s: no review: %w", response.Status, err)
	}
	return answer.Response, nil
}

// TestAdmissionWebhook sends reviews to the address of the option, and checks that reloads of Caddy fail none of them.
func TestAdmissionWebhook(t *testing.T) {
	ip, port := backend(t, "one")
	in, address := newIngress(t), fixture.Address(t)
	identity := fixture.Certificate(t, "webhook.example")
	certificate, key := writePair(t, identity)
	in.write("manifests.yaml", class+service("one", port, ip)+annotated("web", "taken.example", "one"))
	load := func(option string) {
		in.loadCaddyfile(fmt.Sprintf("{\nadmin %s\nk8singress {\nhttp %s\nhttps off\nmanifests %s\n"+
			"admission_webhook %s {\ncertificate %s %s\n}\n%s\n}\n}\n", in.admin, in.http, in.folder, address,
			certificate, key, option))
	}
	load("")
	in.awaitReady()
	roots := x509.NewCertPool()
	roots.AddCert(identity.Leaf)
	transport := &http.Transport{TLSClientConfig: &tls.Config{RootCAs: roots, ServerName: "webhook.example"}}
	t.Cleanup(transport.CloseIdleConnections)
	r := &reviewer{&http.Client{Transport: transport, Timeout: deadline}, address}
	for _, c := range []struct{ name, host, annotation, refusal string }{
		{"a new host", "new.example", "", ""},
		{"a path of another Ingress", "taken.example", "", "Ingress/default/web has the path"},
		{"an invalid value", "new.example", `"nginx.ingress.kubernetes.io/limit-rps":"many"`, "limit-rps"},
	} {
		in.eventually(c.name, func() error {
			got, err := r.review(c.host, c.annotation)
			if err != nil {
				return err
			}
			if got.Allowed != (c.refusal == "") ||
				!got.Allowed && !strings.Contains(got.Result.Message, c.refusal) {
				return fmt.Errorf("got %+v", got)
			}
			return nil
		})
	}
	var reviews sync.WaitGroup
	var ended atomic.Bool
	sent := 0
	reviews.Go(func() {
		for ; !ended.Load(); sent++ {
			if got, err := r.review("new.example", ""); err != nil || !got.Allowed {
				t.Errorf("review %d during reloads: %v, %v", sent, got, err)
			}
		}
	})
	for i := range 5 {
		load([]string{"error_bodies off", ""}[i%2])
	}
	ended.Store(true)
	if reviews.Wait(); sent < 5 {
		t.Errorf("only %d reviews were sent", sent)
	}
	certificate += ".missing"
	load("")
	in.awaitVerdict("File/"+certificate, "WebhookNotReady", "no such file")
}

// writePair writes a certificate and its key to two files, and returns the names of the files.
func writePair(t testing.TB, who *fixture.Identity) (certificate, key string) {
	t.Helper()
	certificate, key = filepath.Join(t.TempDir(), "tls.crt"), filepath.Join(t.TempDir(), "tls.key")
	err := errors.Join(os.WriteFile(certificate, who.PEM(), 0o600), os.WriteFile(key, who.KeyPEM(), 0o600))
	if err != nil {
		t.Fatal(err)
	}
	return certificate, key
}
