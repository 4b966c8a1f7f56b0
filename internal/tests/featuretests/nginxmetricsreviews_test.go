package featuretests

import (
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"

	admissionv1 "k8s.io/api/admission/v1"

	"github.com/k8singress/k8singress/internal/tests/fixture"
)

// reviewOf returns an AdmissionReview that creates an Ingress with annotations, which are JSON.
func reviewOf(name, annotations string) string {
	return fmt.Sprintf(`{"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": {"uid": "u",
"kind": {"group": "networking.k8s.io", "version": "v1", "kind": "Ingress"}, "operation": "CREATE",
"namespace": "default", "name": %[1]q, "object": {"apiVersion": "networking.k8s.io/v1", "kind": "Ingress",
"metadata": {"namespace": "default", "name": %[1]q, "annotations": %[2]s},
"spec": {"ingressClassName": "nginx", "rules": [{"host": "%[1]s.example", "http": {"paths": [{"path": "/",
"pathType": "Prefix", "backend": {"service": {"name": "one", "port": {"number": 80}}}}]}}]}}}}`, name, annotations)
}

// TestNginxMetricsOfReviews checks the metrics of the webhook: they do not exist without the webhook, count its
// decisions, and have no labels with names of Ingresses that are not stored.
func TestNginxMetricsOfReviews(t *testing.T) {
	who, health, address := fixture.Certificate(t, "webhook.example"), fixture.Address(t), fixture.Address(t)
	cert, key := writePair(t, who)
	ip, port := backend(t, "one")
	manifests := class + service("one", port, ip) + rule("a", "a.example", "Prefix", "/", "one")
	in := start(t, manifests, "health "+health, "health_metrics", "nginx_metrics")
	got, err := in.scrape(health, acceptText)
	if err != nil || len(got.of("build_info")) == 0 || len(got.of("check_success"))+len(got.of("check_errors")) > 0 {
		t.Errorf("without the webhook: %v, %v", got.of("check_success"), err)
	}
	in.load(fmt.Sprintf("manifests %s\nhealth %s\nhealth_metrics\nnginx_metrics\nadmission_webhook %s {\n"+
		"certificate %s %s\n}", in.folder, health, address, cert, key))
	roots := x509.NewCertPool()
	roots.AddCert(who.Leaf)
	transport := &http.Transport{TLSClientConfig: &tls.Config{RootCAs: roots, ServerName: "webhook.example"}}
	t.Cleanup(transport.CloseIdleConnections)
	asks := &http.Client{Transport: transport, Timeout: deadline}
	decides := func(allowed bool, text string) {
		t.Helper()
		in.eventually("the webhook decides", func() error {
			response, err := asks.Post("https://"+address+"/networking/v1/ingresses", "application/json",
				strings.NewReader(text))
			if err != nil {
				return err
			}
			defer response.Body.Close()
			var review admissionv1.AdmissionReview
			if err := json.NewDecoder(response.Body).Decode(&review); err != nil {
				return fmt.Errorf("the status is %s: %w", response.Status, err)
			}
			if review.Response == nil || review.Response.Allowed != allowed {
				t.Fatalf("allowed is not %v: %+v", allowed, review.Response)
			}
			return nil
		})
	}
	decides(true, reviewOf("b", "{}"))
	for i := range 2 {
		decides(false, reviewOf(fmt.Sprint("never", i), `{"nginx.ingress.kubernetes.io/limit-rps": "many"}`))
	}
	in.eventually("the metrics count the decisions", func() error {
		got, err := in.scrape(health, acceptProtobuf)
		if err != nil {
			return err
		}
		duration, _ := got.value("admission_roundtrip_duration")
		if n := len(got.of("check_errors")); n != 1 {
			return fmt.Errorf("check_errors has %d series, want 1", n)
		}
		return errors.Join(got.has(1, "check_success"), got.has(2, "check_errors"),
			got.has(1, "admission_tested_ingresses"), got.has(0, "admission_config_size"),
			positive(duration, "admission_roundtrip_duration"))
	})
}
